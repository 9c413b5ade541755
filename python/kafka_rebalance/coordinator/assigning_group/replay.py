# SPDX-License-Identifier: Apache-2.0
"""Rules of the replay of records that hold for every kind of group whose broker assigns.

    a tombstone of an absent group                     is ignored
    a record of a group of another kind                IllegalRecord; consumer groups and streams
                                                       groups replace a group that has only offsets
    the tombstone of a group with members or targets   IllegalRecord
    the tombstone of the targets' epoch before theirs  IllegalRecord
    the tombstone of a member with an assignment       IllegalRecord

Source   GroupMetadataManager.replay, getOrMaybeCreatePersistedConsumerGroup and its twin for
         streams groups (Kafka 4.4.0).
"""

from collections.abc import MutableMapping
from typing import Any, Protocol, TypeVar

from ..consumer_group.group import ConsumerGroup
from ..coordinator_state import AnyGroup
from ..group import Group
from ..streams_group.group import StreamsGroup
from .group import DELETED_EPOCH, NOT_ASSIGNED_MS, AssigningGroup

Groups = MutableMapping[str, AnyGroup]
LEFT_EPOCH = -1

_Kind = TypeVar("_Kind", ConsumerGroup, StreamsGroup)


class _Member(Protocol):
    @property
    def member_id(self) -> str: ...

    @property
    def member_epoch(self) -> int: ...


class IllegalRecord(ValueError):
    """A record that does not fit the groups, so Kafka fails on it."""


def group_of_record(
    groups: Groups, group_id: str, kind: type[_Kind], *, creates: bool
) -> _Kind | None:
    """Returns the group of a record, a new one if `creates`; None: the record has no effect."""
    group = groups.get(group_id)
    if isinstance(group, kind):
        return group
    if group is None and not creates:
        return None
    if group is not None and not (isinstance(group, Group) and group.is_simple()):
        raise IllegalRecord(f"group {group_id!r} is not a {kind.group_type} group")
    new = groups[group_id] = kind(group_id)
    return new


def delete_group(groups: Groups, group: AssigningGroup[Any, Any]) -> None:
    if len(group.members) or group.targets or group.assignment_epoch != DELETED_EPOCH:
        raise IllegalRecord(f"group {group.group_id!r} is deleted while it has members")
    del groups[group.group_id]


def delete_target_epoch(group: AssigningGroup[Any, Any]) -> None:
    if group.targets:
        raise IllegalRecord(f"group {group.group_id!r} still has targets")
    group.assignment_epoch, group.assignment_timestamp_ms = DELETED_EPOCH, NOT_ASSIGNED_MS


def check_has_left(group: AssigningGroup[Any, Any], member: _Member) -> None:
    """Checks that the assignment and the target of a deleted member were deleted before."""
    if member.member_epoch != LEFT_EPOCH or member.member_id in group.targets:
        raise IllegalRecord(f"member {member.member_id!r} is deleted while it has an assignment")
