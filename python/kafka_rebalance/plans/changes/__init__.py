# SPDX-License-Identifier: Apache-2.0
"""Changes of a group, as objects and as short strings."""

from .assignor import SwitchAssignor
from .bounces import BounceMembers
from .change import Change, Verb, apply
from .edits import Edited, GroupEvent
from .made_up import Basis, Draw, MadeUp, Newcomer
from .members import AddMembers, RemoveMembers
from .protocol import SwitchProtocol
from .text import change_from_text
from .topics import AddPartitions, AddTopics, RemoveTopics, Resubscribe

__all__ = [
    "AddMembers", "AddPartitions", "AddTopics", "Basis", "BounceMembers", "Change", "Draw",
    "Edited", "GroupEvent", "MadeUp", "Newcomer", "RemoveMembers", "RemoveTopics", "Resubscribe",
    "SwitchAssignor", "SwitchProtocol", "Verb", "apply", "change_from_text",
]  # fmt: skip
