# SPDX-License-Identifier: Apache-2.0
"""ShareFetch and ShareAcknowledge (KIP-932): records that members of share groups have in flight.

    start <= offsets with a state < end        of a partition, in one group

An offset before `end` without a state is done: accepted, rejected, or delivered too often. Records
from `end` on were never delivered. An offset in flight belongs to one member until it is
acknowledged, its lock ends, or the member's share session ends; if it is not done then, it is
available again.

A share session holds the partitions of a member, and an epoch that grows with each request. It ends
with its connection. All this exists only in memory. A real broker answers a fetch when `min_bytes`
are available; this one answers as soon as a record is available.

Source   SharePartition, SharePartitionManager, ShareSessionContext of Kafka; KIP-932, KIP-1206,
         KIP-1222.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from itertools import islice, takewhile
from typing import Any, NamedTuple

from .batches import Batch, Refused
from .cluster import MOST_PARTITIONS, Cluster
from .configs import GroupConfigs
from .connections import Limits
from .frames import Asked, KafkaError
from .partition_log import PartitionLog, Waiter
from .records import FETCH_BYTES, Records

MOST_SESSIONS = 2_000
"""The largest number of share sessions: the default of `group.share.max.share.sessions`."""
_FIRST, _LAST = 0, -1
"""The epochs of a request that opens a session, and of one that closes it."""
_GAP, _ACCEPT, _RELEASE, _REJECT, _RENEW = range(5)
_MOST_ID = 36
"""The largest number of characters in a member's id."""
_MOST_AT_ONCE = 100_000
"""The largest number of records that a member gets at a time."""
_RECORD_LIMIT = 1
"""The mode in which a fetch gets at most `max_records`, even if a batch contains more."""

Place = tuple[str, int]
Key = tuple[str, str]
"""A group id and a member id."""


class _Offset:
    """The state of an offset: the member that has it in flight, or None; its delivery count."""

    __slots__ = ("deliveries", "due", "member")

    def __init__(self) -> None:
        self.deliveries, self.due = 0, 0
        self.member: str | None = None


class Acquired(NamedTuple):
    """Consecutive offsets that a member got, with the number of their deliveries."""

    first_offset: int
    last_offset: int
    delivery_count: int


class SharePartition:
    """The state of a partition in one share group; times are in ms on the server's clock."""

    def __init__(self, start: int) -> None:
        self.start = self.end = start
        self.waiting: set[Waiter] = set()
        self._offsets: dict[int, _Offset] = {}

    def acquire(
        self, log: PartitionLog, member: str, due: int, wanted: "Wanted"
    ) -> tuple[list[Acquired], bytes]:
        """Locks available records for a member until `due` (ms); returns offsets and batches."""
        self._begin_at(log.start)
        acquired: list[Acquired] = []
        data: list[bytes] = []
        before = log.last_stable if wanted.committed else log.end
        records, size = min(wanted.records, _MOST_AT_ONCE), wanted.bytes
        for batch in log.after(self.start):
            is_full = batch.last_offset >= self.end and self.end - self.start >= wanted.most_locks
            if records <= 0 or size <= 0 or batch.base_offset >= before or is_full:
                break
            available = self._available(batch, log, wanted)
            offsets = list(islice(available, records if wanted.exact else _MOST_AT_ONCE))
            if offsets and len(batch.data) > size and (data or not wanted.whole):
                break
            is_whole = next(available, None) is None
            self.end = max(self.end, (batch.last_offset if is_whole else offsets[-1]) + 1)
            for offset in offsets:
                one = self._offsets.setdefault(offset, _Offset())
                one.member, one.due, one.deliveries = member, due, one.deliveries + 1
                _join(acquired, offset, one.deliveries)
            if offsets:
                records, size = records - len(offsets), size - len(batch.data)
                data.append(batch.data)
            else:
                self._begin_at(self.start)  # skips batches without records
        return acquired, b"".join(data)

    def _available(self, batch: Batch, log: PartitionLog, wanted: "Wanted") -> Iterator[int]:
        """Yields the offsets of a batch that the group may read, neither in flight nor done."""
        first, end = max(batch.base_offset, self.start), self.end
        if batch.is_control or (wanted.committed and log.is_aborted(batch)):
            return
        for offset in range(first, batch.last_offset + 1):
            one = self._offsets.get(offset)
            if offset >= end or (one is not None and one.member is None):
                yield offset

    def acknowledge(self, member: str, batches: Iterable[Any], due: int, limit: int) -> KafkaError:
        """Applies all acknowledgements, or returns an error; renewed locks end at `due`."""
        changes: list[tuple[int, int]] = []
        for batch in batches:
            first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
            if last >= self.end and self._offsets:
                return KafkaError.invalid_request
            if last >= self.end:
                return KafkaError.invalid_record_state
            for offset in range(max(first, self.start), last + 1):
                one = self._offsets.get(offset)
                if one is None or one.member != member:
                    return KafkaError.invalid_record_state
                changes.append((offset, types[0 if len(types) == 1 else offset - first]))
        for offset, kind in changes:
            if kind == _RENEW:
                self._offsets[offset].due = due
            elif kind == _RELEASE:
                self._release(offset, limit)
            else:
                del self._offsets[offset]
        self._begin_at(self.start)
        self._wake()
        return KafkaError.none

    def release(self, member: str) -> None:
        """Releases the records that a member has in flight; this delivery does not count."""
        for one in self._offsets.values():
            if one.member == member:
                one.member, one.deliveries = None, one.deliveries - 1
        self._wake()

    def expire(self, until: int, limit: int) -> None:
        """Releases the records whose locks have ended at `until`."""
        for offset, one in list(self._offsets.items()):
            if one.member is not None and one.due <= until:
                self._release(offset, limit)
        self._begin_at(self.start)
        self._wake()

    def is_done(self, log: PartitionLog) -> bool:
        """Returns whether no record of the log is in flight or left to deliver."""
        return not self._offsets and self.end >= log.end

    def position(self, log: PartitionLog) -> tuple[int, int]:
        """Returns the first offset that is not done, and the number of all such offsets."""
        self._begin_at(log.start)
        return self.start, max(0, log.end - self.end) + len(self._offsets)

    def _release(self, offset: int, limit: int) -> None:
        one = self._offsets[offset]
        one.member = None
        if one.deliveries >= limit:
            del self._offsets[offset]

    def _begin_at(self, start: int) -> None:
        """Moves the start to the first offset at or after `start` that is not done."""
        if start >= self.end:
            self._offsets.clear()
        for offset in list(takewhile(start.__gt__, self._offsets)):
            del self._offsets[offset]
        self.end = max(self.end, start)
        self.start = next(iter(self._offsets), self.end)

    def _wake(self) -> None:
        for one in self.waiting:
            one.set()


def _join(acquired: list[Acquired], offset: int, deliveries: int) -> None:
    """Adds an offset to `acquired`: it extends the last entry, or becomes an entry of its own."""
    if acquired and acquired[-1][1:] == (offset - 1, deliveries):
        acquired[-1] = acquired[-1]._replace(last_offset=offset)
    else:
        acquired.append(Acquired(offset, offset, deliveries))


class Wanted(NamedTuple):
    """The limits of a fetch for a partition; with `whole`, the first batch may exceed `bytes`."""

    records: int
    bytes: int
    exact: bool
    committed: bool
    most_locks: int
    whole: bool = True


class _Session:
    """A member's share session, which ends with its `connection` (a number)."""

    def __init__(self, connection: int) -> None:
        self.epoch, self.connection = 1, connection
        self.places: dict[Place, Any] = {}


class Shares:
    """The share sessions, and the partitions of all share groups; see the module's docstring."""

    def __init__(
        self,
        cluster: Cluster,
        records: Records,
        configs: GroupConfigs,
        limits: Limits,
        now_ms: Callable[[], int],
        groups: Callable[[], Container[str]],
    ) -> None:
        self._cluster, self._records, self._configs = cluster, records, configs
        self._limits, self._now_ms, self._groups = limits, now_ms, groups
        self._sessions: dict[Key, _Session] = {}
        self._partitions: dict[tuple[str, Place], SharePartition] = {}
        self._locks: list[tuple[int, str, Place]] = []

    async def answer(self, asked: Asked) -> Mapping[str, Any]:
        """Returns the fields of the response to a ShareFetch or ShareAcknowledge."""
        try:
            if asked.error:
                raise Refused(asked.error)
            return await self._answered(asked)
        except Refused as refused:
            return {"error_code": refused.error}

    async def _answered(self, asked: Asked) -> Mapping[str, Any]:
        body = asked.body
        key = (body.group_id or "", body.member_id or "")
        renews = getattr(body, "is_renew_ack", False)
        if body.group_id is None or not 0 < len(key[1]) <= _MOST_ID:
            raise Refused(KafkaError.invalid_request)
        limits = (getattr(body, f"max_{one}", 0) for one in ("bytes", "records", "wait"))
        if renews and asked.api == "share_fetch" and any((*limits, body.min_bytes)):
            raise Refused(KafkaError.invalid_request)  # a renewal must not ask for records
        if key[0] not in self._groups():
            raise Refused(KafkaError.group_id_not_found)
        given = {
            (one.partition_index, topic.topic_id): one
            for topic in body.topics
            for one in topic.partitions
        }
        acknowledges = any(one.acknowledgement_batches for one in given.values())
        session = self._session(asked, key, acknowledges=acknowledges)
        found: dict[tuple[Any, int], dict[str, Any]] = {}
        for (partition, topic_id), one in given.items():
            if one.acknowledgement_batches:
                error = self._acknowledge(asked, key, topic_id, one)
                field = (
                    "error_code" if asked.api == "share_acknowledge" else "acknowledge_error_code"
                )
                found[topic_id, partition] = {field: error}
        if body.share_session_epoch == _LAST:
            self._close(key)
        elif asked.api == "share_fetch" and not renews:
            self._update(session, asked)
            if len(session.places) > MOST_PARTITIONS:
                self._close(key)
                raise Refused(KafkaError.share_session_limit_reached)
            await self._fetch(asked, key, session, found)
        lock_ms = self._configs.value(key[0], "share.record.lock.duration.ms")
        return {"acquisition_lock_timeout": lock_ms, "responses": _by_topic(found)}

    # Sessions -------------------------------------------------------------------------------------

    def _session(self, asked: Asked, key: Key, *, acknowledges: bool) -> _Session:
        """Returns a request's session (new at epoch 0), and advances its epoch. Errors: Refused."""
        epoch, known = asked.body.share_session_epoch, self._sessions.get(key)
        if epoch == _FIRST and asked.api == "share_fetch":
            if acknowledges:
                raise Refused(KafkaError.invalid_request)
            if known is None and len(self._sessions) >= MOST_SESSIONS:
                raise Refused(KafkaError.share_session_limit_reached)
            session = self._sessions[key] = _Session(asked.connection)
            return session
        if epoch == _FIRST:
            raise Refused(KafkaError.invalid_share_session_epoch)
        if known is None:
            raise Refused(KafkaError.share_session_not_found)
        if epoch != _LAST:
            if epoch != known.epoch:
                raise Refused(KafkaError.invalid_share_session_epoch)
            known.epoch = 1 if epoch == 2**31 - 1 else epoch + 1
        return known

    def _update(self, session: _Session, asked: Asked) -> None:
        for topic in asked.body.topics:
            for one in topic.partitions:
                session.places[topic.topic_id, one.partition_index] = topic
        for topic in asked.body.forgotten_topics_data:
            for partition in topic.partitions:
                session.places.pop((topic.topic_id, partition), None)

    def _close(self, key: Key) -> None:
        """Ends a session, and releases the records that the member has in flight."""
        if self._sessions.pop(key, None) is not None:
            group_id, member = key
            for (group, _), partition in self._partitions.items():
                if group == group_id:
                    partition.release(member)

    def disconnected(self, connection: int) -> None:
        for key in [k for k, one in self._sessions.items() if one.connection == connection]:
            self._close(key)

    # Partitions -----------------------------------------------------------------------------------

    def _partition(self, group_id: str, place: Place) -> SharePartition:
        """Returns a group's partition; its first use sets its start (`share.auto.offset.reset`)."""
        found = self._partitions.get((group_id, place))
        if found is None:
            log = self._records.log(*place)
            reset = self._configs.value(group_id, "share.auto.offset.reset")
            found = SharePartition(log.start if reset == "earliest" else log.end)
            self._partitions[group_id, place] = found
        return found

    def places(self, group_id: str) -> list[Place]:
        """Returns the partitions in which a group has a position."""
        return [place for group, place in self._partitions if group == group_id]

    def position(self, group_id: str, place: Place) -> tuple[int, int] | None:
        """Returns `SharePartition.position` of a partition; None if the group has none there."""
        found = self._partitions.get((group_id, place))
        return None if found is None else found.position(self._records.log(*place))

    def start_at(self, group_id: str, place: Place, offset: int | None) -> None:
        """Sets a group's position in a partition; for None, the next fetch sets it."""
        self._partitions.pop((group_id, place), None)
        if offset is not None:
            self._partitions[group_id, place] = SharePartition(offset)

    def forget(self) -> None:
        """Forgets the partitions of deleted groups and topics."""
        groups = self._groups()
        for group_id, place in list(self._partitions):
            if group_id not in groups or not self._cluster.has(*place):
                del self._partitions[group_id, place]

    def next_due(self) -> int | None:
        """Returns the time (ms) at which the next lock ends; None without locks."""
        return self._locks[0][0] if self._locks else None

    def expire(self) -> None:
        """Releases the records whose locks have ended."""
        now = self._now_ms()
        while self._locks and self._locks[0][0] <= now:
            _, group_id, place = heappop(self._locks)
            partition = self._partitions.get((group_id, place))
            if partition is not None:
                limit = self._configs.value(group_id, "share.delivery.count.limit")
                partition.expire(now, limit)

    def _due(self, group_id: str) -> int:
        """Returns the time (ms) until which records that are locked now stay locked."""
        return self._now_ms() + int(self._configs.value(group_id, "share.record.lock.duration.ms"))

    def _acknowledge(self, asked: Asked, key: Key, topic_id: Any, one: Any) -> KafkaError:
        group_id, member = key
        topic = _Topic(topic_id)
        if error := self._cluster.error(asked, topic, one.partition_index):
            return error
        if not _fit(one.acknowledgement_batches, asked.version):
            return KafkaError.invalid_request
        place = (self._cluster.named(topic), one.partition_index)
        limit = self._configs.value(group_id, "share.delivery.count.limit")
        partition, due = self._partition(group_id, place), self._due(group_id)
        if any(_RENEW in each.acknowledge_types for each in one.acknowledgement_batches):
            heappush(self._locks, (due, group_id, place))
        return partition.acknowledge(member, one.acknowledgement_batches, due, limit)

    # Fetch ----------------------------------------------------------------------------------------

    async def _fetch(
        self, asked: Asked, key: Key, session: _Session, found: dict[Any, dict[str, Any]]
    ) -> None:
        """Adds records to `found`; waits for them, up to `max_wait`, only if `found` is empty."""
        wait_s = min(asked.body.max_wait.total_seconds(), self._limits.request_s)
        watched: list[set[Waiter]] = []
        for topic_id, index in session.places:
            topic = _Topic(topic_id)
            if not self._cluster.error(asked, topic, index):
                place = (self._cluster.named(topic), index)
                watched.append(self._records.log(*place).waiting)
                watched.append(self._partition(key[0], place).waiting)

        async def attempt(waiter: Waiter) -> bool | None:
            waiter.clear()
            return self._acquire(asked, key, session, found) or None

        await Waiter(committed=False).until(attempt, watched, 0 if found else wait_s)

    def _acquire(
        self, asked: Asked, key: Key, session: _Session, found: dict[Any, dict[str, Any]]
    ) -> bool:
        """Adds records and partitions' errors to `found`; returns whether there were any."""
        group_id, member = key
        body, configs = asked.body, self._configs
        size = most = min(body.max_bytes, FETCH_BYTES)
        wanted = Wanted(
            body.max_records,
            size,
            getattr(body, "share_acquire_mode", 0) == _RECORD_LIMIT,
            configs.value(group_id, "share.isolation.level") == "read_committed",
            configs.value(group_id, "share.partition.max.record.locks"),
        )
        some, due = False, self._due(group_id)
        for topic_id, index in list(session.places):
            topic = _Topic(topic_id)
            if error := self._cluster.error(asked, topic, index):
                found.setdefault((topic_id, index), {})["error_code"] = error
                some = True
                continue
            place = (self._cluster.named(topic), index)
            log, partition = self._records.log(*place), self._partition(group_id, place)
            if wanted.records <= 0 or wanted.bytes <= 0 or partition.is_done(log):
                continue
            acquired, data = partition.acquire(log, member, due, wanted)
            if acquired:
                heappush(self._locks, (due, group_id, place))
                answer = found.setdefault((topic_id, index), {})
                answer |= {"records": data, "acquired_records": [a._asdict() for a in acquired]}
                size -= len(data)
                records = sum(one.last_offset - one.first_offset + 1 for one in acquired)
                left = wanted.records - records
                wanted = wanted._replace(records=left, bytes=size, whole=size == most)
                some = True
        # Rotates the partitions, as Kafka does: the next fetch begins with another one.
        for one in list(session.places)[:1]:
            session.places[one] = session.places.pop(one)
        return some


class _Topic(NamedTuple):
    topic_id: Any


def _fit(batches: Iterable[Any], version: int) -> bool:
    """Returns whether batches of acknowledgements are in order, each with one valid type for all
    its offsets or with one for each.
    """
    before = -1
    newest = _RENEW if version >= 2 else _REJECT
    for one in batches:
        types, length = one.acknowledge_types, one.last_offset - one.first_offset + 1
        if not before < one.first_offset <= one.last_offset or len(types) not in (1, length):
            return False
        if not all(_GAP <= kind <= newest for kind in types):
            return False
        before = one.last_offset
    return True


def _by_topic(found: Mapping[tuple[Any, int], dict[str, Any]]) -> list[dict[str, Any]]:
    topics: dict[Any, list[dict[str, Any]]] = {}
    for (topic_id, partition), fields in found.items():
        topics.setdefault(topic_id, []).append({"partition_index": partition, **fields})
    return [{"topic_id": topic, "partitions": several} for topic, several in topics.items()]
