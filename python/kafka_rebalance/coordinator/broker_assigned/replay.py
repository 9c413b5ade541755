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
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from kafka_rebalance.java.timeline_hash_map import TimelineHashMap

from ..classic_group.group import Group
from ..consumer_group.group import ConsumerGroup
from ..machine.state import AnyGroup
from ..streams_group.group import StreamsGroup
from .group import DELETED_EPOCH, NOT_ASSIGNED_MS, AssigningGroup, IllegalRecord

Groups = MutableMapping[str, AnyGroup]
_LEFT_EPOCH = -1

_Kind = TypeVar("_Kind", ConsumerGroup, StreamsGroup)


class _Members(Protocol):
    """The members of a group of any kind."""

    @property
    def members(self) -> TimelineHashMap[str, Any]: ...

    @property
    def targets(self) -> dict[str, Any]: ...

    def update(self, new: Any) -> None: ...
    def remove(self, member_id: str) -> None: ...


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


def delete_current(group: _Members, member_id: str, **nothing: object) -> None:
    """Takes the assignment from a member; `nothing` are the fields of its kind without any."""
    if member_id in group.members:
        epochs = {"member_epoch": _LEFT_EPOCH, "previous_member_epoch": _LEFT_EPOCH}
        group.update(replace(group.members[member_id], **epochs, **nothing))


def delete_member(group: _Members, member_id: str) -> None:
    """Removes a member. Errors: IllegalRecord unless its assignment and target were deleted."""
    member = group.members.get(member_id)
    if member is None:
        return
    if member.member_epoch != _LEFT_EPOCH or member_id in group.targets:
        raise IllegalRecord(f"member {member_id!r} is deleted while it has an assignment")
    group.remove(member_id)
