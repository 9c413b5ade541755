# SPDX-License-Identifier: Apache-2.0
"""Changes of a group, as objects and as short texts."""

from .change import Change, apply
from .members import AddMembers, BounceMembers, RemoveMembers, SwitchAssignor
from .text import change_from_text
from .topics import AddPartitions, AddTopics, RemoveTopics, Resubscribe

__all__ = [
    "AddMembers",
    "AddPartitions",
    "AddTopics",
    "BounceMembers",
    "Change",
    "RemoveMembers",
    "RemoveTopics",
    "Resubscribe",
    "SwitchAssignor",
    "apply",
    "change_from_text",
]
