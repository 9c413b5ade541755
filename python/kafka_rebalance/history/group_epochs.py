# SPDX-License-Identifier: Apache-2.0
"""Reads the records of a consumer group (KIP-848) as generations: one for each group epoch.

A heartbeat that changes the group writes the member's record and the new epoch. Targets for the
epoch follow at once, or with a heartbeat within `group.consumer.assignment.interval.ms`; if another
epoch comes first, this one has no targets of its own. Then each member's record of its current
assignment shows the way to its target. So:

1. An epoch's record opens a generation with the members of that moment.
2. The record of the targets' epoch completes it, or the next epoch does. `GroupHistory` compares it
   with the generation before, as for classic groups, and infers the causes.
3. Until the next epoch, the members' current assignments show whom the broker asked to revoke, when
   each had done so, when all had their targets, and how long a partition was between two owners.
4. A static member that comes back under a new id has a record, but no epoch, if nothing else
   changes. The generation is then written again.

A topic's name is in the records of committed offsets (Kafka 4.4); else its id stands for it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kafka_rebalance.errors import WireError
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.wire.broker_records import (
    BrokerRecord,
    CurrentValue,
    EpochValue,
    MemberValue,
    RecordType,
    decode_record,
)
from kafka_rebalance.wire.consumer_protocol import AssignmentData, Subscription

from .departures import CommitTimes
from .group_history import GroupHistory
from .group_log import RecordedGeneration, RecordedMember
from .recorded import Cause, RecordedRebalance, Revocation
from .records import OffsetsRecord

CONSUMER_TYPES = frozenset(one for one in RecordType if one.group_type == "consumer")
SESSION_MS = 45_000
"""The default of `group.consumer.session.timeout.ms`; no record has the session of a group."""

_STATIC_LEAVE = -2  # the member epoch of a static member that has left and may come back

_Row = tuple[RecordedRebalance, RecordedGeneration | None]
_Partitions = frozenset[TopicPartition]


@dataclass(slots=True)
class _Epoch:
    """An epoch's record, and the members of that moment."""

    record: OffsetsRecord
    value: EpochValue
    members: dict[str, MemberValue]
    commits: list[tuple[TopicPartition, CommitTimes]] = field(default_factory=list)


@dataclass(slots=True)
class _Reconciliation:
    """The members' way to the targets of one epoch, whose record was written at `began_ms`."""

    began_ms: int
    revocations: list[Revocation] = field(default_factory=list)
    between_ms: int | None = None
    reconciled_ms: int | None = None


class GroupEpochs:
    """The consumer group's part of a `GroupHistory`: reads its records, and yields their rows.

    A row is yielded when the next epoch begins, because only then all is known about it.
    """

    def __init__(self, history: GroupHistory, names: Mapping[Uuid, str], session_ms: int) -> None:
        self._history, self._names, self._session_ms = history, names, session_ms
        self._begin()

    def _begin(self) -> None:
        self._members: dict[str, MemberValue] = {}
        self._targets: dict[str, _Partitions] = {}
        self._target_epoch = -1
        self._current: dict[str, CurrentValue] = {}
        self._asked: dict[str, tuple[int, int]] = {}  # member id -> since when, and how many
        self._free: dict[TopicPartition, int] = {}  # partition -> when its owner released it
        self._open: _Epoch | None = None
        self._last: _Epoch | None = None
        self._replaced: OffsetsRecord | None = None  # the record of a static member's new id
        self._row: _Row | None = None
        self._way = _Reconciliation(0)

    def commit(self, tp: TopicPartition, times: CommitTimes) -> None:
        """Called for commits. Those of an open epoch count after its members are compared."""
        if self._open is not None:
            self._open.commits.append((tp, times))
        else:
            self._history.commit(tp, times)

    def add(self, record: OffsetsRecord) -> Iterator[_Row]:
        """Yields the rows that end with this record. A record that cannot be read has a row."""
        try:
            read = decode_record(record.key, record.value)
        except WireError as error:
            name = group_name(record.key)
            if name is not None:
                place = (record.partition, record.offset, record.timestamp_ms, record.timestamp_ms)
                yield (
                    RecordedRebalance(name, *place, group_type="consumer", error=str(error)),
                    None,
                )
            return
        if read is None:
            return
        if self._replaced is not None and record.timestamp_ms > self._replaced.timestamp_ms:
            yield from self._written_again(self._replaced)
        kind = read.key.type
        if kind == RecordType.CONSUMER_GROUP_METADATA:
            yield from self._of_epoch(read, record)
        elif kind == RecordType.CONSUMER_GROUP_MEMBER_METADATA:
            self._of_member(read.key.name or "", read.value, record)
        elif kind == RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER:
            self._store(self._targets, read, self._partitions(read.value and read.value.topics))
        elif kind == RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA:
            self._target_epoch = -1 if read.value is None else read.value.assignment_epoch
            self._complete(record.timestamp_ms)
        elif kind == RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT:
            self._of_current(read.key.name or "", read.value, record.timestamp_ms)

    def end(self) -> Iterator[_Row]:
        """Yields the row of the last epoch: no more records come."""
        if self._replaced is not None:
            yield from self._written_again(self._replaced)
        yield from self._close()

    @staticmethod
    def _store(where: dict[str, Any], read: BrokerRecord, value: Any) -> None:
        name = read.key.name or ""
        if read.value is None:
            where.pop(name, None)
        else:
            where[name] = value

    def _of_epoch(self, read: BrokerRecord, record: OffsetsRecord) -> Iterator[_Row]:
        yield from self._close()
        self._replaced = None
        converted = self._history.consumer_group(read.key.group_id, record)
        if read.value is None:
            self._history.forget_members()
            self._begin()
            return
        epoch = _Epoch(record, read.value, dict(self._members))
        if converted is not None:
            # The record of the conversion holds the classic group's assignment.
            self._history.converted(self._generation(epoch, record.timestamp_ms))
            self._last = epoch
            yield converted, None
        else:
            self._open = epoch
            self._way = _Reconciliation(record.timestamp_ms)

    def _of_member(self, name: str, value: MemberValue | None, record: OffsetsRecord) -> None:
        if value is None:
            self._members.pop(name, None)
            return
        is_new = name not in self._members
        before = () if self._last is None else self._last.members.items()
        if is_new and value.instance_id is not None:
            replaced = any(
                one.instance_id == value.instance_id and old != name for old, one in before
            )
            self._replaced = record if replaced else self._replaced
        self._members[name] = value
        self._history.heard(name, record.timestamp_ms)

    def _of_current(self, name: str, value: CurrentValue | None, time_ms: int) -> None:
        old, owned = self._owned(self._current.get(name)), self._owned(value)
        self._free |= dict.fromkeys(old - owned, time_ms)
        if name in self._asked and (value is None or not value.pending_revocation):
            since_ms, number = self._asked.pop(name)
            took = None if value is None else time_ms - since_ms
            self._way.revocations.append(Revocation(name, number, took))
            limit = self._members[name].rebalance_timeout_ms if name in self._members else -1
            if value is None and 0 <= limit <= time_ms - since_ms:
                told = f"asked to revoke, and did not within {limit / 1000:.1f} s"
                self._history.known(name, Cause("timed out", "likely", (name,), told))
        if value is None:
            gone = self._current.pop(name, None)
            if gone is not None and gone.member_epoch == _STATIC_LEAVE:
                told = "left to be restarted, and did not come back within its session"
                self._history.known(name, Cause("timed out", "likely", (name,), told))
            return
        self._current[name] = value
        self._history.heard(name, time_ms)
        if value.pending_revocation and name not in self._asked:
            self._asked[name] = (time_ms, len(self._partitions(value.pending_revocation)))
        waited = [time_ms - self._free.pop(tp) for tp in owned - old if tp in self._free]
        if waited:
            self._way.between_ms = max(*waited, self._way.between_ms or 0)
        if self._way.reconciled_ms is None and self._is_reconciled():
            self._way.reconciled_ms = time_ms - self._way.began_ms

    def _is_reconciled(self) -> bool:
        if self._open is not None or self._last is None:
            return False
        epoch = self._last.value.epoch
        return all(
            (one := self._current.get(name)) is not None
            and (
                one.member_epoch == _STATIC_LEAVE or (one.member_epoch == epoch and one.state == 0)
            )
            for name in self._members
        )

    def _complete(self, time_ms: int) -> None:
        """Compares the open epoch with the one before, as soon as its targets are known."""
        epoch = self._open
        if epoch is None or time_ms < epoch.record.timestamp_ms:
            return
        self._open = None
        generation = self._generation(epoch, time_ms)
        self._row = (self._history.record(generation), generation)
        self._last = epoch
        for tp, times in epoch.commits:
            self._history.commit(tp, times)

    def _close(self) -> Iterator[_Row]:
        if self._open is not None:
            self._complete(self._open.record.timestamp_ms)
        if self._row is None:
            return
        row, generation = self._row
        self._row = None
        yield (
            replace(
                row,
                revocations=tuple(self._way.revocations),
                between_ms=self._way.between_ms,
                reconciled_ms=self._way.reconciled_ms,
            ),
            generation,
        )

    def _written_again(self, record: OffsetsRecord) -> Iterator[_Row]:
        self._replaced = None
        if self._last is None or self._open is not None:
            return
        yield from self._close()
        epoch = _Epoch(record, self._last.value, dict(self._members))
        generation = self._generation(epoch, record.timestamp_ms)
        self._way = _Reconciliation(record.timestamp_ms)
        self._last = epoch
        yield self._history.record(generation), generation

    def _generation(self, epoch: _Epoch, written_ms: int) -> RecordedGeneration:
        record = epoch.record
        assignors = [one.server_assignor for one in epoch.members.values() if one.server_assignor]
        # The broker follows the assignor that most members name; without one, its own default.
        assignor = max(sorted(set(assignors)), key=assignors.count, default=None)
        return RecordedGeneration(
            group_name(record.key) or "",
            record.partition,
            record.offset,
            written_ms,
            record.timestamp_ms,
            "consumer",
            epoch.value.epoch,
            assignor,
            None,
            tuple(self._member(name, one) for name, one in sorted(epoch.members.items())),
            group_type="consumer",
            metadata_hash=epoch.value.metadata_hash,
        )

    def _member(self, name: str, value: MemberValue) -> RecordedMember:
        current = self._current.get(name)
        # A pattern counts as a topic: other topics that match it are no other subscription.
        pattern = (value.subscribed_topic_regex,) if value.subscribed_topic_regex else ()
        owned = self._partitions(current.assigned) if current else ()
        return RecordedMember(
            name,
            value.instance_id,
            value.client_id,
            value.client_host,
            value.classic.session_timeout_ms if value.classic else self._session_ms,
            value.rebalance_timeout_ms,
            Subscription((*value.subscribed_topic_names, *pattern), None, tuple(owned)),
            AssignmentData(tuple(self._targets.get(name, ()))),
        )

    def _owned(self, value: CurrentValue | None) -> _Partitions:
        if value is None:
            return frozenset()
        return self._partitions((*value.assigned, *value.pending_revocation))

    def _partitions(self, topics: Any) -> _Partitions:
        return frozenset(
            TopicPartition(self._names.get(one.topic_id) or _text(one.topic_id), partition)
            for one in topics or ()
            for partition in one.partitions
        )


def _text(topic_id: Uuid) -> str:
    """Returns a topic's id in hexadecimal."""
    return "".join(f"{half & 0xFFFFFFFFFFFFFFFF:016x}" for half in topic_id)


def group_name(key: bytes) -> str | None:
    """Returns the group id in the key of a consumer group's record; None for other records."""
    if len(key) < 4 or int.from_bytes(key[:2], signed=True) not in CONSUMER_TYPES:
        return None
    length = int.from_bytes(key[2:4], signed=True)
    return key[4 : 4 + length].decode("utf-8", "replace") if length >= 0 else None
