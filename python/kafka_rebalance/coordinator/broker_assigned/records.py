# SPDX-License-Identifier: Apache-2.0
"""The records of broker-assigned groups: how all kinds build and replay them.

Each kind has five types of records: `epoch` and `target_epoch` of the group, `member`, `target` and
`current` of each member. A member's record contains the member's fields by name, some of them in
another form. A group is created by the first of its records, and removed by the tombstone of its
epoch; a tombstone of an absent group is ignored. Consumer groups and streams groups replace a group
that has only offsets.

After an IllegalRecord, the group may be half changed, and the caller restores or drops it. A record
replaces the hash maps of a member, so their order depends only on the record.

Source   GroupCoordinatorRecordHelpers, StreamsCoordinatorRecordHelpers, GroupMetadataManager.replay
         (Kafka 4.4.0); docs/behaviour/coordinator.md#93-load.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.java.order import by_name, name_key
from kafka_rebalance.wire.broker_groups import TopicPartitions
from kafka_rebalance.wire.broker_records import (
    BrokerRecord,
    RecordKey,
    RecordType,
    TargetEpochValue,
    encode_record,
)
from kafka_rebalance.wire.messages import common_fields
from kafka_rebalance.wire.streams_groups import KeyValue

from ..classic_group.group import Group
from ..machine.events import LogRecord
from ..machine.state import GroupKind, Groups, of_kind
from .group import DELETED_EPOCH, NOT_ASSIGNED_MS, AssigningGroup, IllegalRecord
from .table_order import name_set

_LEFT_EPOCH = -1


Forms = Mapping[str, Callable[[Any], Any]]


def key_values(strings: Mapping[str, str]) -> tuple[KeyValue, ...]:
    return tuple(KeyValue(*pair) for pair in strings.items())


def sorted_pairs(strings: Mapping[str, str]) -> tuple[KeyValue, ...]:
    return tuple(KeyValue(name, strings[name]) for name in sorted(strings, key=name_key))


_WRITTEN: Forms = {
    "subscribed_topic_names": lambda names: tuple(by_name(names)),
    "client_tags": sorted_pairs,
}
_READ: Forms = {"subscribed_topic_names": name_set, "client_tags": dict}


def converted(source: Any, kind: Any, forms: Forms) -> dict[str, Any]:
    """Returns the fields of `source` that the dataclass `kind` has, converted by `forms`."""
    values = common_fields(source, kind)
    return values | {name: forms[name](values[name]) for name in forms.keys() & values.keys()}


def target_topics(partitions: Mapping[Uuid, Iterable[int]]) -> tuple[TopicPartitions, ...]:
    return tuple(TopicPartitions(topic, tuple(each)) for topic, each in partitions.items())


class RecordTypes(NamedTuple):
    """The record types of one kind of group, and functions for fields that members do not have.

    `targeted` returns the fields of a target, `held` the fields of a member's assignment. `before`
    and `after` are further types: a deletion writes their tombstones before and after the tombstone
    of the epoch.
    """

    epoch: RecordType
    target_epoch: RecordType
    member: RecordType
    target: RecordType
    current: RecordType
    targeted: Callable[[Any], Iterable[Any]]
    held: Callable[[Any], Iterable[Any]]
    before: tuple[RecordType, ...] = ()
    after: tuple[RecordType, ...] = ()

    def epoch_record(self, group_id: str, *fields: Any) -> BrokerRecord:
        return BrokerRecord(RecordKey(self.epoch, group_id), self.epoch.content(*fields))

    def target_epoch_record(self, group_id: str, epoch: int, timestamp_ms: int) -> BrokerRecord:
        key = RecordKey(self.target_epoch, group_id)
        return BrokerRecord(key, TargetEpochValue(epoch, timestamp_ms))

    def member_record(self, group_id: str, member: Any) -> BrokerRecord:
        value = self.member.content
        key = RecordKey(self.member, group_id, member.member_id)
        return BrokerRecord(key, value(**converted(member, value, _WRITTEN)))

    def target_record(self, group_id: str, member_id: str, target: Any) -> BrokerRecord:
        key = RecordKey(self.target, group_id, member_id)
        return BrokerRecord(key, self.target.content(*self.targeted(target)))

    def current_record(self, group_id: str, member: Any) -> BrokerRecord:
        key = RecordKey(self.current, group_id, member.member_id)
        epochs = (member.member_epoch, member.previous_member_epoch)
        return BrokerRecord(key, self.current.content(*epochs, member.state, *self.held(member)))

    def member_tombstones(self, group_id: str, member_id: str) -> list[BrokerRecord]:
        """Returns the tombstones of a member that leaves."""
        kinds = (self.current, self.target, self.member)
        return [BrokerRecord(RecordKey(kind, group_id, member_id)) for kind in kinds]

    def group_tombstones(
        self,
        group: Any,
        others: Collection[BrokerRecord] = (),
        renamed: Mapping[str, str] | None = None,
    ) -> list[BrokerRecord]:
        """Returns the tombstones of a whole group; `renamed` maps a member id to a newer id."""
        group_id, new_ids = group.group_id, renamed or {}
        ids = [new_ids.get(member_id, member_id) for member_id in group.members]

        def of_all(kind: RecordType) -> list[BrokerRecord]:
            return [BrokerRecord(RecordKey(kind, group_id, member_id)) for member_id in ids]

        def of_group(*kinds: RecordType) -> list[BrokerRecord]:
            return [BrokerRecord(RecordKey(kind, group_id)) for kind in kinds]

        return [
            *of_all(self.current),
            *of_all(self.target),
            *of_group(self.target_epoch),
            *of_all(self.member),
            *others,
            *of_group(*self.before, self.epoch, *self.after),
        ]


def record_types(
    kind: str,
    targeted: Callable[[Any], Iterable[Any]],
    held: Callable[[Any], Iterable[Any]],
    before: tuple[RecordType, ...] = (),
    after: tuple[RecordType, ...] = (),
) -> RecordTypes:
    """Returns the record types of one kind of group; their names start with `kind`."""
    names = (
        "METADATA",
        "TARGET_ASSIGNMENT_METADATA",
        "MEMBER_METADATA",
        "TARGET_ASSIGNMENT_MEMBER",
        "CURRENT_MEMBER_ASSIGNMENT",
    )
    types = (RecordType[f"{kind}_GROUP_{name}"] for name in names)
    return RecordTypes._make([*types, targeted, held, before, after])


class Recorded(GroupKind):
    """A kind of broker-assigned group: its classes, its types of records, and their replay."""

    group_class: ClassVar[type[AssigningGroup[Any, Any]]]
    member_class: ClassVar[type[Any]]
    records: ClassVar[RecordTypes]
    becomes_classic: ClassVar[bool] = True
    """Whether a JoinGroup makes an empty group classic; a heartbeat then does the reverse."""
    nothing: ClassVar[Mapping[str, object]]
    """The fields of a member that has lost its assignment."""
    assignment_of_record: Callable[[Any], dict[str, Any]]
    """Returns the fields of a member's assignment from a `current` record."""
    target_of_record: Callable[[Any], Any]
    replay_other: Callable[[Any, str | None, Any, int], None]
    """Applies a record of the group's epoch, or of a type that only this kind has."""
    bury_other: Callable[[Any, RecordType, str], None]
    """Applies a tombstone of a type that only this kind has."""

    def tombstones(self, group: Any) -> list[LogRecord]:
        return [LogRecord(*encode_record(one)) for one in self.group_tombstones(group)]

    def group_tombstones(self, group: Any) -> list[BrokerRecord]:
        return self.records.group_tombstones(group)

    def replay(self, groups: Groups, record: BrokerRecord, now_ms: int) -> None:
        (kind, group_id, name), value = record
        group = self._group_of_record(groups, group_id, creates=value is not None)
        types, member_id = self.records, name or ""
        if group is None:
            return
        if value is None:
            self._bury(groups, group, kind, member_id)
        elif kind is types.member:
            fields = converted(value, type(value), _READ)
            group.update(replace(self.member_of(group, member_id), **fields))
        elif kind is types.current:
            group.update(self._with_current(self.member_of(group, member_id), value))
        elif kind is types.target:
            group.targets[member_id] = self.target_of_record(value)
        elif kind is types.target_epoch:
            target: Any = value
            group.assignment_epoch = target.assignment_epoch
            group.assignment_timestamp_ms = target.assignment_timestamp_ms
        else:
            self.replay_other(group, name, value, now_ms)

    def _group_of_record(self, groups: Groups, group_id: str, *, creates: bool) -> Any:
        """Returns a record's group, a new one if `creates`; None if the record has no effect."""
        group = groups.get(group_id)
        known = of_kind(group, self.group_class)
        if known is not None or (group is None and not creates):
            return known
        classic = of_kind(group, Group) if self.becomes_classic else None
        if group is not None and (classic is None or not classic.is_simple()):
            kind = self.group_class.group_type
            raise IllegalRecord(f"group {group_id!r} is not a {kind} group")
        new = groups[group_id] = self.group_class(group_id)
        return new

    def member_of(self, group: Any, member_id: str) -> Any:
        """Returns the member of a record, a new one if the group does not have it."""
        known = group.members.get(member_id)
        return self.member_class(member_id) if known is None else known

    def _with_current(self, member: Any, value: Any) -> Any:
        """Returns the member with the epoch and the assignment of a record."""
        return replace(
            member,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=type(member.state)(value.state),
            **self.assignment_of_record(value),
        )

    def _bury(self, groups: Groups, group: Any, kind: RecordType, member_id: str) -> None:
        types = self.records
        if kind is types.epoch:
            if not self.is_removable(group) or group.assignment_epoch != DELETED_EPOCH:
                raise IllegalRecord(f"group {group.group_id!r} is deleted while it has members")
            del groups[group.group_id]
        elif kind is types.target_epoch:
            if group.targets:
                raise IllegalRecord(f"group {group.group_id!r} still has targets")
            group.assignment_epoch = DELETED_EPOCH
            group.assignment_timestamp_ms = NOT_ASSIGNED_MS
        elif kind is types.target:
            group.targets.pop(member_id, None)
        elif kind is types.current:
            if member_id in group.members:
                epochs = {"member_epoch": _LEFT_EPOCH, "previous_member_epoch": _LEFT_EPOCH}
                group.update(replace(group.members[member_id], **epochs, **self.nothing))
        elif kind is types.member:
            member = group.members.get(member_id)
            if member is None:
                return
            if member.member_epoch != _LEFT_EPOCH or member_id in group.targets:
                raise IllegalRecord(f"member {member_id!r} is deleted while it has an assignment")
            group.remove(member_id)
        else:
            self.bury_other(group, kind, member_id)

    def is_removable(self, group: Any) -> bool:
        """Returns whether the group can be deleted: it has neither members nor targets."""
        return group.is_empty and not group.targets
