# SPDX-License-Identifier: Apache-2.0
"""Answers Produce, Fetch, ListOffsets and DeleteRecords; logs are in memory, perhaps also in files.

Fetch sessions (KIP-227) are not supported: each answer has session id 0, so a client lists all of
its partitions in each request.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from kafka_rebalance.errors import WireError

from .batches import (
    MOST_BATCH_BYTES,
    NO_PRODUCER,
    Refused,
    StoredRecord,
    marker,
    new_batch,
    received,
)
from .cluster import Cluster, is_legal
from .connections import Limits
from .frames import Asked, KafkaError
from .partition_log import KEPT, PartitionLog, Waiter
from .record_log import RecordFiles
from .topic_configs import APPEND_TIME, MOST_BYTES, POLICY, TIMESTAMPS
from .transactions import Ended, Place

FETCH_BYTES = 50 * 1024 * 1024
"""The largest number of bytes of records in an answer, unless one batch is longer."""
_READ_COMMITTED = 1
_ACKS = (-1, 0, 1)
_ENDS = (-1, -2, -4)
"""The timestamps in ListOffsets that mean the end or the start of the log."""
# The other fields of a partition with an error, where their values are not kio's defaults.
_NOTHING = {"base_offset": -1, "low_watermark": -1, "high_watermark": -1, "records": b""}
_NO_KEY = {"batch_index_error_message": "Compacted topic cannot accept message without key."}
_AT_ONCE = 500
"""After this many partitions of one request, other requests get their turn."""

Verified = Callable[[Asked, int, int, Place], KafkaError]
"""Returns the error for a batch whose producer or partition is not in a transaction, or `none`."""


class Records:
    """The logs of all partitions, and the answers to requests about them."""

    def __init__(
        self, cluster: Cluster, limits: Limits, now_ms: Callable[[], int], verified: Verified
    ) -> None:
        self.size = 0
        self._cluster, self._limits, self._now_ms = cluster, limits, now_ms
        self._verified = verified
        self.answers: dict[str, Callable[[Asked], Awaitable[Mapping[str, Any] | None]]] = {
            "produce": self._produced,
            "fetch": self._fetch,
            "list_offsets": partial(self._topics, self._list_offset),
            "delete_records": partial(self._topics, self._delete),
        }
        self._logs: dict[tuple[str, int], PartitionLog] = {}
        self._files: RecordFiles | None = None

    def load(self, files: RecordFiles) -> int:
        """Reads the records in `files`, and from now on writes new ones there, too.

        Returns the largest producer id. Transactions that were open are aborted: no producer that
        this server knows can end them.
        """
        largest = NO_PRODUCER
        for place in files.places():
            log = self.log(*place)
            for batch in files.read(*place):
                self._append(log, log.restore, batch)
                largest = max(largest, batch.producer_id)
        self._files = files
        for place, log in self._logs.items():
            log.write = partial(self._write, *place)
            for producer_id, epoch in log.open.items():
                end = marker(producer_id, epoch, committed=False, now_ms=self._now_ms())
                self._append(log, log.end_transaction, end, False)
        return largest

    def _write(self, topic: str, partition: int, data: bytes) -> None:
        assert self._files is not None
        try:
            self._files.append(topic, partition, data)
        except OSError:
            raise Refused(KafkaError.kafka_storage_error) from None

    def log(self, topic: str, partition: int) -> PartitionLog:
        """Returns the log of a partition, which is created if it is absent."""
        log = self._logs.get((topic, partition))
        if log is None:
            log = self._logs[topic, partition] = PartitionLog(self._limits.partition_bytes)
            if self._files is not None and is_legal(topic):
                log.write = partial(self._write, topic, partition)
        return log

    def drop(self, places: Iterable[tuple[str, int]]) -> None:
        """Drops the records of deleted partitions, and wakes the fetches that wait for more."""
        for place in places:
            log = self._logs.pop(place, None)
            if log is not None:
                if self._files is not None and is_legal(place[0]):
                    self._files.drop(*place)
                self.size -= log.size
                for one in log.waiting:
                    one.set()

    async def _each(
        self, asked: Asked, entries: str, answer: Callable[..., Any]
    ) -> list[dict[str, Any]]:
        """Returns an entry for each topic of a request; `answer` makes its partitions' entries."""
        found, count = [], 0
        for topic in getattr(asked.body, entries):
            each = []
            for one in getattr(topic, "partition_data" if asked.api == "produce" else "partitions"):
                count += 1
                if count % _AT_ONCE == 0:
                    await asyncio.sleep(0)
                partition = _partition_of(one)
                fields: dict[str, Any] = {"index": partition, "partition_index": partition}
                try:
                    if error := self._cluster.error(asked, topic, partition):
                        raise Refused(error)
                    name = self._cluster.named(topic)
                    fields |= {"error_code": error, **answer(asked, (name, partition), one)}
                except Refused as refused:
                    wrong = [{"batch_index": at, **_NO_KEY} for at in refused.wrong]
                    fields |= {"error_code": refused.error, **_NOTHING, "record_errors": wrong}
                each.append(fields)
            ids = {one: getattr(topic, one, None) for one in ("name", "topic", "topic_id")}
            found.append({**ids, "partitions": each, "partition_responses": each})
        return found

    async def _topics(self, answer: Callable[..., Any], asked: Asked) -> Mapping[str, Any]:
        return {"topics": await self._each(asked, "topics", answer)}

    # Produce --------------------------------------------------------------------------------------

    async def _produced(self, asked: Asked) -> Mapping[str, Any] | None:
        """Returns the answer, or None for acks 0. An error with acks 0 becomes a WireError, which
        closes the connection.
        """
        found = await self._each(asked, "topic_data", self._produce)
        if asked.body.acks != 0:
            return {"responses": found}
        for one in (one for topic in found for one in topic["partitions"]):
            if one["error_code"]:
                raise WireError(f"acks 0: {one['error_code'].name}")
        return None

    def _produce(self, asked: Asked, place: tuple[str, int], one: Any) -> dict[str, Any]:
        settings = self._cluster.topics[place[0]].settings
        batch = received(one.records, asked.version, settings.get(MOST_BYTES, MOST_BATCH_BYTES))
        if asked.body.acks not in _ACKS:
            raise Refused(KafkaError.invalid_required_acks)
        if batch.is_transactional:
            if asked.body.transactional_id is None:
                raise Refused(KafkaError.transactional_id_authorization_failed)
            producer = (batch.producer_id, batch.producer_epoch)
            if error := self._verified(asked, *producer, place):
                raise Refused(error)
        if "compact" in settings.get(POLICY, ()):
            batch.check_keys()
        log, appended = self.log(*place), None
        if settings.get(TIMESTAMPS) == APPEND_TIME:
            batch = batch.appended(self._now_ms())
            appended = datetime.fromtimestamp(batch.max_timestamp / 1000, UTC)
        offset = self._append(log, log.append, batch)
        placed = {"base_offset": offset, "log_start_offset": log.start}
        return {**placed, "log_append_time": appended}

    def _append(self, log: PartitionLog, append: Callable[..., int], *given: Any) -> int:
        """Appends; returns the offset. If all logs together are too large, halves the largest ones.

        The newest batch of `log` is kept: its producer has not received the answer yet.
        """
        before = log.size
        try:
            return append(*given)
        finally:
            self.size += log.size - before
            if self.size > self._limits.records_bytes:
                for one in sorted(self._logs.values(), key=lambda one: one.size, reverse=True):
                    before = one.size
                    one.shrink(before // 2, keep=int(one is log))
                    self.size += one.size - before
                    if self.size <= self._limits.records_bytes * KEPT:
                        break

    def produce(self, topic: str, records: Iterable[StoredRecord]) -> list[StoredRecord]:
        """Appends records as one batch for each partition; returns them with their offsets."""
        by_partition: defaultdict[int, list[StoredRecord]] = defaultdict(list)
        for one in records:
            by_partition[one.partition].append(one)
        placed = []
        for partition, several in by_partition.items():
            log = self.log(topic, partition)
            first = self._append(log, log.append, new_batch(several))
            placed += [one._replace(offset=first + at) for at, one in enumerate(several)]
        return placed

    def records(self, topic: str) -> list[StoredRecord]:
        """Returns all records of a topic, including those of open and of aborted transactions."""
        found = []
        for (name, partition), log in sorted(self._logs.items()):
            for batch in log.batches() if name == topic else ():
                if not batch.is_control:
                    found += [one for one in batch.records(partition) if one.offset >= log.start]
        return found

    # Transactions ---------------------------------------------------------------------------------

    def end_transaction(self, ended: Ended) -> None:
        """Ends a transaction in each of its partitions that exist."""
        for place in sorted(one for one in ended.places if not isinstance(one, str)):
            if self._cluster.has(*place):
                end = marker(ended.producer_id, ended.epoch, ended.committed, self._now_ms())
                log = self.log(*place)
                self._append(log, log.end_transaction, end, ended.committed)

    # Fetch ----------------------------------------------------------------------------------------

    async def _fetch(self, asked: Asked) -> dict[str, Any]:
        """Answers when `min_bytes` are available, a partition has an error, or `max_wait` is over.

        It waits for `request_s` at most, because it cannot notice that a client has left meanwhile.
        """
        logs = [
            self.log(self._cluster.named(topic), one.partition)
            for topic in asked.body.topics
            for one in topic.partitions
            if not self._cluster.error(asked, topic, one.partition)
        ]
        wait_s = min(asked.body.max_wait.total_seconds(), self._limits.request_s)
        waiter = Waiter(committed=asked.body.isolation_level == _READ_COMMITTED)
        waiting = [log.waiting for log in logs]
        found = await waiter.until(partial(self._read, asked), waiting, wait_s)
        if found is None:
            found = await self._read(asked, waiter, least_bytes=0)
        return {"responses": found}

    async def _read(
        self, asked: Asked, waiter: Waiter, least_bytes: int | None = None
    ) -> list[dict[str, Any]] | None:
        """Returns the answers for all partitions; None if there are too few bytes and no errors."""
        left = most = min(asked.body.max_bytes, FETCH_BYTES)
        least = min(most, asked.body.min_bytes if least_bytes is None else least_bytes)
        waiter.missing = least
        waiter.clear()

        def read(_: Asked, place: tuple[str, int], one: Any) -> dict[str, Any]:
            nonlocal left
            log = self.log(*place)
            if not log.start <= one.fetch_offset <= log.end:
                raise Refused(KafkaError.offset_out_of_range)
            before = log.last_stable if waiter.committed else log.end
            most_bytes = min(left, one.partition_max_bytes)
            found = log.read(one.fetch_offset, most_bytes, before, whole=left == most)
            data = b"".join(batch.data for batch in found)
            left -= len(data)
            waiter.missing -= len(data)
            end = found[-1].last_offset + 1 if found else one.fetch_offset
            aborted = log.aborted(one.fetch_offset, end) if waiter.committed else None
            return {
                "high_watermark": log.end,
                "last_stable_offset": log.last_stable,
                "log_start_offset": log.start,
                "aborted_transactions": aborted,
                "records": data,
            }

        found = await self._each(asked, "topics", read)
        failed = any(one["error_code"] for topic in found for one in topic["partitions"])
        return found if failed or most - left >= least else None

    # Offsets --------------------------------------------------------------------------------------

    def _list_offset(self, asked: Asked, place: tuple[str, int], one: Any) -> dict[str, Any]:
        log = self.log(*place)
        committed = getattr(asked.body, "isolation_level", 0) == _READ_COMMITTED
        end = log.last_stable if committed else log.end
        found: tuple[int, int] | None = None
        match one.timestamp:
            case -1:
                found = end, -1
            case -2 | -4:  # -4: the first offset on the broker's own disk (KIP-405)
                found = log.start, -1
            case -3:
                found = log.newest()
            case time if time >= 0:
                found = log.offset_of(time)
        if found is not None and one.timestamp not in _ENDS and found[0] >= end:
            found = None
        offset, timestamp = found or (-1, -1)
        return {"offset": offset, "timestamp": timestamp, "leader_epoch": 0 if found else -1}

    def _delete(self, _: Asked, place: tuple[str, int], one: Any) -> dict[str, Any]:
        """Moves the log's start forward to an offset; -1 means the log's end. Errors: Refused."""
        log = self.log(*place)
        offset = log.end if one.offset == -1 else one.offset
        if not 0 <= offset <= log.end:
            raise Refused(KafkaError.offset_out_of_range)
        before = log.size
        log.delete_before(max(offset, log.start))
        self.size += log.size - before
        return {"low_watermark": log.start}


def _partition_of(one: Any) -> int:
    names = ("index", "partition_index", "partition")
    return int(next(getattr(one, name) for name in names if hasattr(one, name)))
