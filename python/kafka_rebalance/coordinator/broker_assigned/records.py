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

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.java.order import by_name, name_key
from kafka_rebalance.wire.broker_groups import TopicPartitions
from kafka_rebalance.wire.broker_records import BrokerRecord, RecordKey, RecordType, encode_record
from kafka_rebalance.wire.messages import common_fields
from kafka_rebalance.wire.streams_groups import KeyValue

from ..classic_group.group import Group
from ..machine.events import LogRecord
from ..machine.state import GroupKind, Groups, of_kind
from .group import DELETED_EPOCH, NOT_ASSIGNED_MS, AssignedMember, AssigningGroup, IllegalRecord
from .table_order import name_set

_LEFT_EPOCH = -1
_Member = TypeVar("_Member", bound=AssignedMember)
_Target = TypeVar("_Target")

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


# The roles of the records that each kind has (`RecordType.role`).
_EPOCH, _TARGET_EPOCH = "METADATA", "TARGET_ASSIGNMENT_METADATA"
_MEMBER, _TARGET_OF = "MEMBER_METADATA", "TARGET_ASSIGNMENT_MEMBER"
_CURRENT = "CURRENT_MEMBER_ASSIGNMENT"


class RecordedGroup(AssigningGroup[_Member, _Target]):
    """A broker-assigned group, with the functions that make its records.

    A deletion ends with tombstones of the roles `before`, of the epoch, and of the roles `after`.
    """

    before: ClassVar[tuple[str, ...]] = ()
    after: ClassVar[tuple[str, ...]] = ()

    def targeted(self, target: Any) -> Iterable[Any]:
        """Returns the fields of a target in its record."""
        return [target_topics(target)]

    def held(self, member: Any) -> Iterable[Any]:
        """Returns the fields of a member's assignment in its `current` record."""
        return [target_topics(member.assigned)]

    def key(self, role: str, name: str | None = None) -> RecordKey:
        kind = RecordType[f"{self.group_type.upper()}_GROUP_{role}"]
        return RecordKey(kind, self.group_id, name)

    def tombstone(self, role: str, name: str | None = None) -> BrokerRecord:
        return BrokerRecord(self.key(role, name))

    def record(self, role: str, name: str | None, *fields: Any, **named: Any) -> BrokerRecord:
        key = self.key(role, name)
        content: Any = key.type.content
        return BrokerRecord(key, content(*fields, **named))

    def epoch_record(self, *fields: Any) -> BrokerRecord:
        return self.record(_EPOCH, None, *fields)

    def target_epoch_record(self, epoch: int, timestamp_ms: int) -> BrokerRecord:
        return self.record(_TARGET_EPOCH, None, epoch, timestamp_ms)

    def member_record(self, member: _Member) -> BrokerRecord:
        content = self.key(_MEMBER).type.content
        return self.record(_MEMBER, member.member_id, **converted(member, content, _WRITTEN))

    def target_record(self, member_id: str, target: _Target) -> BrokerRecord:
        return self.record(_TARGET_OF, member_id, *self.targeted(target))

    def current_record(self, member: _Member) -> BrokerRecord:
        fields = (member.member_epoch, member.previous_member_epoch, member.state)
        return self.record(_CURRENT, member.member_id, *fields, *self.held(member))

    def member_tombstones(self, member_id: str) -> list[BrokerRecord]:
        return [self.tombstone(role, member_id) for role in (_CURRENT, _TARGET_OF, _MEMBER)]

    def other_tombstones(self) -> list[BrokerRecord]:
        """Returns the tombstones of records that belong neither to a member nor to the epoch."""
        return []

    def tombstones(self, renamed: Mapping[str, str] | None = None) -> list[BrokerRecord]:
        """Returns the tombstones of the whole group; `renamed` maps member ids to newer ids."""
        new_ids = renamed or {}
        ids = [new_ids.get(member_id, member_id) for member_id in self.members]
        return [
            *(self.tombstone(role, one) for role in (_CURRENT, _TARGET_OF) for one in ids),
            self.tombstone(_TARGET_EPOCH),
            *(self.tombstone(_MEMBER, one) for one in ids),
            *self.other_tombstones(),
            *map(self.tombstone, (*self.before, _EPOCH, *self.after)),
        ]


class Recorded(GroupKind):
    """A kind of broker-assigned group: its classes, its types of records, and their replay."""

    group_class: ClassVar[type[RecordedGroup[Any, Any]]]
    member_class: ClassVar[type[Any]]
    becomes_classic: ClassVar[bool] = True
    """Whether a JoinGroup makes an empty group classic, and a heartbeat does the reverse."""
    assignment_of_record: Callable[[Any], dict[str, Any]]
    """Returns the fields of a member's assignment from a `current` record."""
    target_of_record: Callable[[Any], Any]
    replay_other: Callable[[Any, str | None, Any, int], None]
    """Applies a record of the group's epoch, or of a type that only this kind has."""
    bury_other: Callable[[Any, str, str], None]
    """Applies a tombstone of a role that only this kind has."""

    @property
    def nothing(self) -> dict[str, Any]:
        """Returns the fields of a member that has lost its assignment."""
        new, names = self.member_class(""), ("assigned", "pending_revocation")
        return {name: getattr(new, name) for name in names if hasattr(new, name)}

    def tombstones(self, group: Any) -> list[LogRecord]:
        return [LogRecord(*encode_record(one)) for one in group.tombstones()]

    def replay(self, groups: Groups, record: BrokerRecord, now_ms: int) -> None:
        (kind, group_id, name), value = record
        group = self._group_of_record(groups, group_id, creates=value is not None)
        role, member_id = kind.role, name or ""
        if group is None:
            return
        if value is None:
            self._bury(groups, group, role, member_id)
        elif role == _MEMBER:
            fields = converted(value, type(value), _READ)
            group.update(replace(self.member_of(group, member_id), **fields))
        elif role == _CURRENT:
            group.update(self._with_current(self.member_of(group, member_id), value))
        elif role == _TARGET_OF:
            group.targets[member_id] = self.target_of_record(value)
        elif role == _TARGET_EPOCH:
            target: Any = value
            group.assignment_epoch = target.assignment_epoch
            group.assignment_timestamp_ms = target.assignment_timestamp_ms
        else:
            self.replay_other(group, name, value, now_ms)

    def _group_of_record(self, groups: Groups, group_id: str, *, creates: bool) -> Any:
        """Returns a record's group; if it is absent, a new one if `creates`, or else None."""
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
        """Returns the group's member with this id, or else a new member."""
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

    def _bury(self, groups: Groups, group: Any, role: str, member_id: str) -> None:
        if role == _EPOCH:
            if not self.is_removable(group) or group.assignment_epoch != DELETED_EPOCH:
                raise IllegalRecord(f"group {group.group_id!r} is deleted while it has members")
            del groups[group.group_id]
        elif role == _TARGET_EPOCH:
            if group.targets:
                raise IllegalRecord(f"group {group.group_id!r} still has targets")
            group.assignment_epoch = DELETED_EPOCH
            group.assignment_timestamp_ms = NOT_ASSIGNED_MS
        elif role == _TARGET_OF:
            group.targets.pop(member_id, None)
        elif role == _CURRENT:
            if member_id in group.members:
                epochs = {"member_epoch": _LEFT_EPOCH, "previous_member_epoch": _LEFT_EPOCH}
                group.update(replace(group.members[member_id], **epochs, **self.nothing))
        elif role == _MEMBER:
            member = group.members.get(member_id)
            if member is None:
                return
            if member.member_epoch != _LEFT_EPOCH or member_id in group.targets:
                raise IllegalRecord(f"member {member_id!r} is deleted while it has an assignment")
            group.remove(member_id)
        else:
            self.bury_other(group, role, member_id)

    def is_removable(self, group: Any) -> bool:
        """Returns whether the group can be deleted: it has neither members nor targets."""
        return group.is_empty and not group.targets
