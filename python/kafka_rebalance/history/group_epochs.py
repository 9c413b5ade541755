# SPDX-License-Identifier: Apache-2.0
"""Reads the records of a broker-assigned group as generations: one for each group epoch.

Consumer groups (KIP-848), share groups (KIP-932) and streams groups (KIP-1071) have records of
the same kinds: of the epoch, its members, their targets and their current assignments. A heartbeat
that changes the group writes the member's record and the new epoch. Targets for the epoch follow at
once, or with a heartbeat within the assignment interval; if another epoch comes first, this one has
no targets of its own. Then each record of a member's current assignment shows one of the member's
steps to its target. So:

1. An epoch's record opens a generation with the members of that moment.
2. The record of the targets' epoch completes it, or the next epoch does. `GroupHistory` compares it
   with the previous generation, as for classic groups, and infers the causes.
3. Until the next epoch, the members' current assignments show whom the broker asked to revoke, when
   each had done so, when all had their targets, and how long a partition was between two owners.
4. If a static member comes back under a new id and nothing else changes, its record is written, but
   no new epoch. Its row counts as a generation that was written again (`again`).
5. If no record shows why a member is gone, and its client is back in the next epoch, less than a
   quarter of the session timeout later, the member has left.

In a streams group, a partition is an active task, with its subtopology's id as the topic. In a
share group, several members own a partition, and nobody revokes.

Records of committed offsets (Kafka 4.4) and of share groups' states contain a topic's name; without
one, the topic is shown by its id.
"""

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from kafka_rebalance.errors import WireError
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.wire import broker_records as wire
from kafka_rebalance.wire.consumer_protocol import AssignmentData, Subscription
from kafka_rebalance.wire.streams_groups import StreamsTopology

from .departures import Commits, CommitsSeen
from .epoch_inputs import (
    AnyCurrent,
    AnyEpoch,
    AnyMember,
    AnyTarget,
    EpochInputs,
    assignors_of,
    given,
    instance_of,
    pattern_of,
    rebalance_timeout_ms,
    settings_of,
    to_revoke,
    topic_of,
    topics_of,
)
from .group_history import GroupHistory
from .group_log import RecordedGeneration, RecordedMember
from .recorded import Cause, NamedMember, RecordedRebalance, Revocation, by_rank
from .records import OffsetsRecord

SESSION_MS = 45_000
"""The default of `group.consumer.session.timeout.ms`, and of the equivalent settings of share and
streams groups; no record contains a group's session timeout."""

Sessions = int | Mapping[str, int]
"""The session timeout of all groups, or group -> its timeout; other groups have the default."""

_TYPES = {int(one): one for one in wire.RecordType}
_STATIC_LEAVE = -2  # the member epoch of a static member that has left and may come back

Row = tuple[RecordedRebalance, RecordedGeneration | None]
"""A row with its record's generation, or with None if that is unreadable or not needed later."""

_Partitions = frozenset[TopicPartition]


class _Client(NamedTuple):
    client_id: str
    client_host: str
    instance_id: str | None


@dataclass(slots=True)
class _Epoch:
    """An epoch's record, and the members when it was written."""

    record: OffsetsRecord
    value: AnyEpoch
    members: dict[str, AnyMember]
    ready: _Partitions  # the initialised partitions of a share group
    rewritten: tuple[str, ...] = ()
    commits: CommitsSeen = field(default_factory=CommitsSeen)


@dataclass(slots=True)
class _Reconciliation:
    """How members reached the targets of one epoch, whose record was written at `began_ms`."""

    began_ms: int
    revocations: list[Revocation] = field(default_factory=list)
    between_ms: int | None = None
    reconciled_ms: int | None = None


class GroupEpochs:
    """The part of `GroupHistory` for broker-assigned groups: reads records, yields their rows.

    An epoch's row is yielded when the next epoch begins, because it is not complete before that.
    """

    def __init__(
        self, history: GroupHistory, names: MutableMapping[Uuid, str], sessions: Sessions
    ) -> None:
        self._history, self._names, self._sessions = history, names, sessions
        self._begin()

    def _begin(self) -> None:
        self._members: dict[str, AnyMember] = {}
        self._clients: dict[str, _Client] = {}  # the client of each present or former member
        self._rewritten: dict[str, None] = {}  # members whose record was written after the epoch's
        self._most = 0  # the largest number of members so far
        self._targets: dict[str, AnyTarget] = {}
        self._old: dict[str, AnyTarget] = {}  # the targets of the previous epoch
        self._current: dict[str, AnyCurrent] = {}
        self._ready: _Partitions = frozenset()  # partitions whose share state is initialised
        self._state: wire.ShareStateValue | None = None
        self._added: dict[str, int] = {}  # grown topic of a share group -> its least size
        self._patterns: dict[str, tuple[str, ...]] = {}
        self._topology: StreamsTopology | None = None
        self._asked: dict[str, tuple[int, int]] = {}  # member -> (must revoke since, how many)
        self._free: dict[TopicPartition, int] = {}  # partition -> when its owner released it
        self._open: _Epoch | None = None
        self._last: _Epoch | None = None
        self._replaced: OffsetsRecord | None = None  # the record of a static member's new id
        self._row: Row | None = None
        self._way = _Reconciliation(0)

    def commit(self, times: Commits) -> None:
        """Stores commits; those of an open epoch wait until its members have been compared."""
        seen = self._history.commits if self._open is None else self._open.commits
        if self._topology is None:
            seen.add(times)
            return
        for tp, one in times.items():
            for task in self._tasks_of(tp):
                seen.add({tp: one}, task)

    def _tasks_of(self, tp: TopicPartition) -> Iterator[TopicPartition]:
        """Yields the streams group's tasks, as (subtopology, number), that read the partition."""
        for one in self._topology.subtopologies if self._topology is not None else ():
            repartitioned = (topic.name for topic in one.repartition_source_topics)
            if tp.topic in (*one.source_topics, *repartitioned):
                yield TopicPartition(one.subtopology_id, tp.partition)

    def add(self, record: OffsetsRecord) -> Iterator[Row]:
        """Yields the rows that this record completes; an unreadable record has an error row."""
        try:
            read = wire.decode_record(record.key, record.value)
        except WireError as error:
            key = read_group_key(record.key)
            if key is not None:
                place = (record.partition, record.offset, record.timestamp_ms, record.timestamp_ms)
                kind, name = key.type.group_type, key.group_id
                yield RecordedRebalance(name, *place, group_type=kind, error=str(error)), None
            return
        if read is None:
            return
        if self._replaced is not None and record.timestamp_ms > self._replaced.timestamp_ms:
            yield from self._written_again(self._replaced)
        role, name = read.key.type.role, read.key.name or ""
        if role == "METADATA":
            yield from self._of_epoch(read, record)
        elif role == "MEMBER_METADATA":
            self._of_member(name, read.value, record)
        elif role == "TARGET_ASSIGNMENT_MEMBER":
            self._of_target(name, read.value)
        elif role == "TARGET_ASSIGNMENT_METADATA":
            self._of_targets(read.value, record.timestamp_ms)
        elif role == "CURRENT_MEMBER_ASSIGNMENT":
            self._of_current(name, read.value, record.timestamp_ms)
        else:
            self._of_topics(name, read.value, record.timestamp_ms)

    def end(self) -> Iterator[Row]:
        """Called after the last record: yields the row of the last epoch."""
        if self._replaced is not None:
            yield from self._written_again(self._replaced)
        yield from self._close()

    def _of_epoch(self, read: wire.BrokerRecord, record: OffsetsRecord) -> Iterator[Row]:
        yield from self._close(record.timestamp_ms)
        self._replaced = None
        converted = self._history.broker_group(read.key, record)
        if read.value is None:
            self._history.forget()
            self._begin()
            return
        again = tuple(self._rewritten)
        epoch = _Epoch(record, read.value, dict(self._members), self._ready, again)
        self._rewritten, self._added = {}, {}
        if converted is not None:
            # No targets are awaited: a conversion keeps the classic group's assignment.
            first = self._generation(epoch, record.timestamp_ms)
            self._last = epoch
            yield self._history.converted(converted, first), None
        else:
            self._open = epoch
            self._way = _Reconciliation(record.timestamp_ms)

    def _of_member(self, name: str, value: AnyMember | None, record: OffsetsRecord) -> None:
        if value is None:
            self._members.pop(name, None)
            return
        is_new = name not in self._members
        before = () if self._last is None else self._last.members.items()
        if is_new and (instance := instance_of(value)) is not None:
            replaced = any(instance_of(one) == instance and old != name for old, one in before)
            self._replaced = record if replaced else self._replaced
        if not is_new and value != self._members[name]:
            self._rewritten[name] = None
        self._members[name] = value
        self._clients[name] = _Client(value.client_id, value.client_host, instance_of(value))
        self._most = max(self._most, len(self._members))
        self._history.heard(name, record.timestamp_ms)

    def _of_topics(self, name: str, value: Any, time_ms: int) -> None:
        if isinstance(value, wire.ShareStateValue):
            # A heartbeat that finds new partitions writes an epoch first; they explain that epoch.
            topics = {tp.topic for tp in self._ready}
            new = (one for one in value.initializing if one.topic_name in topics)
            self._added = {one.topic_name: max(one.partitions, default=0) + 1 for one in new}
            if self._row is not None and self._row[0].written_ms == time_ms:
                self._row = (self._with_added(self._row[0]), self._row[1])
            self._names.update({one.topic_id: one.topic_name for one in value.initialized})
            self._state, self._ready = value, self._partitions(value.initialized)
        elif isinstance(value, wire.PatternValue):
            self._patterns[name] = value.topics
        elif isinstance(value, StreamsTopology):
            self._topology = value

    def _with_added(self, row: RecordedRebalance) -> RecordedRebalance:
        if row.cause != "topics changed" or not self._added:
            return row
        told = ", ".join(f"{topic}: at least {n}" for topic, n in sorted(self._added.items()))
        return replace(row, causes=(Cause("partitions added", detail=told), *row.causes[1:]))

    def _of_target(self, name: str, value: AnyTarget | None) -> None:
        if value is None:
            self._targets.pop(name, None)
            self._old.pop(name, None)
        else:
            self._targets[name] = value
            if self._replaced is not None:  # the member had this target under its old id
                self._old[name] = value

    def _of_targets(self, value: wire.TargetEpochValue | None, time_ms: int) -> None:
        """Called when an epoch's targets are written; `value` is None when the last member left."""
        inputs = None
        epoch = self._open.value if self._open is not None else None
        if value and epoch and value.assignment_epoch == epoch.epoch and self._members:
            inputs = EpochInputs(
                dict(self._members),
                self._old,
                dict(self._targets),
                dict(self._current),
                self._most,
                dict(self._patterns),
                self._state,
                dict(settings_of(epoch)),
                self._topology,
                self._names,
            )
        self._old = dict(self._targets)
        self._complete(time_ms, inputs)

    def _of_current(self, name: str, value: AnyCurrent | None, time_ms: int) -> None:
        old, owned = self._owned(self._current.get(name)), self._owned(value)
        if not isinstance(value or self._current.get(name), wire.ShareCurrentValue):
            self._free |= dict.fromkeys(old - owned, time_ms)
        pending = to_revoke(value)
        if name in self._asked and not pending:
            since_ms, number = self._asked.pop(name)
            took = None if value is None else time_ms - since_ms
            self._way.revocations.append(Revocation(name, number, took))
            limit = rebalance_timeout_ms(self._members.get(name))
            if value is None and 0 <= limit <= time_ms - since_ms:
                told = f"asked to revoke, and did not within {limit / 1000:.1f} s"
                self._history.timed_out(name, told)
        if value is None:
            gone = self._current.pop(name, None)
            if gone is not None and gone.member_epoch == _STATIC_LEAVE:
                told = "left to be restarted, and did not come back within its session"
                self._history.timed_out(name, told)
            return
        self._current[name] = value
        self._history.heard(name, time_ms)
        if pending and name not in self._asked:
            self._asked[name] = (time_ms, sum(len(one.partitions) for one in pending))
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

    def _complete(self, time_ms: int, inputs: EpochInputs | None = None) -> None:
        """Compares the open epoch with the previous one, once its targets or a next epoch exist."""
        epoch = self._open
        if epoch is None or time_ms < epoch.record.timestamp_ms:
            return
        self._open = None
        generation = replace(self._generation(epoch, time_ms), inputs=inputs)
        self._row = (self._with_added(self._history.record(generation)), generation)
        self._last = epoch
        self._history.commits.add(epoch.commits.since)
        for task, times in epoch.commits.of_tasks.items():
            self._history.commits.add(times, task)

    def _close(self, next_ms: int | None = None) -> Iterator[Row]:
        """Yields the row of the last epoch; `next_ms` is when the next epoch begins, if there is
        one.
        """
        if self._open is not None:
            self._complete(self._open.record.timestamp_ms)
        if self._row is None:
            return
        row, generation = self._row
        self._row = None
        soon_ms = row.time_ms + self._session_ms(row.group_id) / 4
        if next_ms is not None and next_ms < soon_ms and not row.gap:
            row = self._with_returns(row, next_ms)
        row = replace(
            row,
            revocations=tuple(self._way.revocations),
            between_ms=self._way.between_ms,
            reconciled_ms=self._way.reconciled_ms,
        )
        yield self._with_clients(row), generation

    def _with_returns(self, row: RecordedRebalance, now_ms: int) -> RecordedRebalance:
        """Replaces the cause "gone" with "left" for clients that are back soon after the epoch.

        A client whose session expired may be back before the epoch, or much later. So a client
        that is back soon after the epoch had most likely left.
        """
        there = {} if self._last is None else self._last.members
        new = {self._clients[name] for name in self._members if name not in there}
        told = f"it came back {(now_ms - row.time_ms) / 1000:.1f} s later"
        causes = [
            Cause("left", "likely", one.members, told)
            if one.kind == "gone" and {self._clients.get(name) for name in one.members} <= new
            else one
            for one in row.causes
        ]
        return replace(row, causes=by_rank(causes))

    def _with_clients(self, row: RecordedRebalance) -> RecordedRebalance:
        named = {one: None for cause in row.causes for one in cause.members}
        named |= {one.member_id: None for one in row.revocations}
        known = (NamedMember(m, self._clients[m].client_id) for m in named if m in self._clients)
        return replace(row, clients=tuple(known))

    def _written_again(self, record: OffsetsRecord) -> Iterator[Row]:
        self._replaced = None
        if self._last is None or self._open is not None:
            return
        yield from self._close()
        epoch = _Epoch(record, self._last.value, dict(self._members), self._ready)
        generation = self._generation(epoch, record.timestamp_ms)
        self._way = _Reconciliation(record.timestamp_ms)
        self._last = epoch
        yield self._with_clients(self._history.record(generation)), generation

    def _generation(self, epoch: _Epoch, written_ms: int) -> RecordedGeneration:
        record, members = epoch.record, sorted(epoch.members.items())
        key = read_group_key(record.key)
        assert key is not None
        assignors = assignors_of(epoch.members.values())
        is_named = any(getattr(one, "server_assignor", None) for _, one in members)
        return RecordedGeneration(
            key.group_id,
            record.partition,
            record.offset,
            written_ms,
            record.timestamp_ms,
            key.type.group_type,
            epoch.value.epoch,
            assignors[0].partition("/")[2] if is_named else None,
            None,
            tuple(self._member(name, one, key.group_id) for name, one in members),
            group_type=key.type.group_type,
            metadata_hash=epoch.value.metadata_hash,
            settings=settings_of(epoch.value),
            ready=epoch.ready,
            rewritten=epoch.rewritten,
            assignors=assignors,
        )

    def _session_ms(self, group_id: str) -> int:
        of = self._sessions
        return of if isinstance(of, int) else of.get(group_id, SESSION_MS)

    def _member(self, name: str, value: AnyMember, group_id: str) -> RecordedMember:
        current, target = self._current.get(name), self._targets.get(name)
        classic = value.classic if isinstance(value, wire.MemberValue) else None
        # A pattern counts as a topic: if one more topic matches it, the subscription is unchanged.
        topics = (*topics_of(value), *filter(None, [pattern_of(value)]))
        return RecordedMember(
            name,
            instance_of(value),
            value.client_id,
            value.client_host,
            classic.session_timeout_ms if classic else self._session_ms(group_id),
            rebalance_timeout_ms(value),
            Subscription(topics, None, tuple(self._partitions(given(current)))),
            AssignmentData(tuple(self._partitions(given(target)))),
        )

    def _owned(self, value: AnyCurrent | None) -> _Partitions:
        if isinstance(value, wire.StreamsCurrentValue):
            return self._partitions((*value.active, *value.active_pending))
        return self._partitions((*given(value), *to_revoke(value)))

    def _partitions(self, runs: Any) -> _Partitions:
        return frozenset(
            TopicPartition(topic_of(one, self._names), partition)
            for one in runs
            for partition in one.partitions
        )


def read_group_key(key: bytes) -> wire.RecordKey | None:
    """Returns the type and the group id in a broker-assigned group's key; None for other keys."""
    kind = _TYPES.get(int.from_bytes(key[:2], signed=True)) if len(key) > 3 else None
    length = int.from_bytes(key[2:4], signed=True)
    if kind is None or length < 0:
        return None
    return wire.RecordKey(kind, key[4 : 4 + length].decode("utf-8", "replace"))
