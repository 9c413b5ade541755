"""What can happen to a group: changes, as objects and as short texts."""

from .kinds import (
    AddMembers,
    AddPartitions,
    AddTopics,
    BounceMembers,
    Change,
    RemoveMembers,
    RemoveTopics,
    Resubscribe,
    SwitchAssignor,
    apply,
)
from .text import change_from_text

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
