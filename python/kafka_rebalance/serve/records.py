# SPDX-License-Identifier: Apache-2.0
"""Produce, Fetch, ListOffsets and DeleteRecords of the partitions' logs in memory.

Fetch sessions (KIP-227) are not kept: each answer has session 0, so that a client names all of its
partitions again.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .batches import Refused, StoredRecord, marker, new_batch, received
from .cluster import Cluster
from .connections import Limits
from .frames import Asked, KafkaError
from .partition_log import PartitionLog

_FETCH_BYTES = 50 * 1024 * 1024
_READ_COMMITTED = 1
_PRODUCED = {"log_append_time": None, "record_errors": (), "error_message": None}
# The other fields of a partition whose answer is an error.
_NOTHING = {
    **_PRODUCED,
    "base_offset": -1,
    "offset": -1,
    "timestamp": -1,
    "leader_epoch": -1,
    "low_watermark": -1,
    "high_watermark": -1,
    "last_stable_offset": -1,
    "log_start_offset": -1,
    "aborted_transactions": None,
    "records": b"",
}

Place = tuple[str, int]
"""A topic and a partition."""


class Records:
    """The logs of all partitions; see the module."""

    def __init__(self, cluster: Cluster, limits: Limits, now_ms: Callable[[], int]) -> None:
        self.size = 0
        self._cluster, self._limits, self._now_ms = cluster, limits, now_ms
        self._logs: dict[Place, PartitionLog] = {}
        self._in_transaction: defaultdict[int, set[Place]] = defaultdict(set)

    async def answer(self, asked: Asked) -> Mapping[str, Any] | None:
        """Returns the fields of the response; None for a request about something else."""
        match asked.api:
            case "produce":
                return {"responses": self._each(asked, "topic_data", self._produce)}
            case "fetch":
                return await self._fetch(asked)
            case "list_offsets":
                return {"topics": self._each(asked, "topics", self._list_offset)}
            case "delete_records":
                return {"topics": self._each(asked, "topics", self._delete)}
        return None

    def log(self, topic: str, partition: int) -> PartitionLog:
        """Returns the log of a partition, which is made if it is absent."""
        log = self._logs.get((topic, partition))
        if log is None:
            log = self._logs[topic, partition] = PartitionLog(self._limits.partition_bytes)
        return log

    def drop(self, places: Iterable[Place]) -> None:
        """Drops the records of deleted partitions."""
        for place in places:
            log = self._logs.pop(place, None)
            self.size -= 0 if log is None else log.size

    def _each(self, asked: Asked, entries: str, answer: Callable[..., Any]) -> list[dict[str, Any]]:
        """Returns the answers for each partition of a request, by topic."""
        found = []
        for topic in getattr(asked.body, entries):
            each = []
            for one in getattr(topic, "partition_data" if asked.api == "produce" else "partitions"):
                partition = next(
                    getattr(one, name)
                    for name in ("index", "partition_index", "partition")
                    if hasattr(one, name)
                )
                fields = {"index": partition, "partition_index": partition}
                error = self._cluster.error(asked, topic, partition)
                try:
                    if error is not KafkaError.none:
                        raise Refused(error)
                    name = self._cluster.named(topic)
                    fields |= {"error_code": error, **answer(asked, (name, partition), one)}
                except Refused as refused:
                    fields |= {"error_code": refused.error, **_NOTHING}
                each.append(fields)
            ids = {one: getattr(topic, one, None) for one in ("name", "topic", "topic_id")}
            found.append({**ids, "partitions": each, "partition_responses": each})
        return found

    # Produce --------------------------------------------------------------------------------------

    def _produce(self, asked: Asked, place: Place, one: Any) -> dict[str, Any]:
        batch = received(one.records)
        if batch.is_transactional and place not in self._in_transaction.get(batch.producer_id, ()):
            raise Refused(KafkaError.invalid_txn_state)
        log = self.log(*place)
        offset = self._append(log, log.append, batch)
        return {"base_offset": offset, "log_start_offset": log.start, **_PRODUCED}

    def _append(self, log: PartitionLog, append: Callable[..., int], *given: Any) -> int:
        """Appends, and halves the largest logs while all together are too large."""
        before = log.size
        try:
            return append(*given)
        finally:
            self.size += log.size - before
            while self.size > self._limits.records_bytes:
                largest = max(self._logs.values(), key=lambda one: one.size)
                before = largest.size
                largest.shrink(before // 2)
                self.size += largest.size - before

    def produce(self, topic: str, records: Iterable[StoredRecord]) -> list[StoredRecord]:
        """Appends records that have no offset yet, one batch for each partition in a row."""
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
        """Returns the records of a topic's partitions, also those of transactions of any state."""
        found = []
        for (name, partition), log in sorted(self._logs.items()):
            for batch in log.batches() if name == topic else ():
                if not batch.is_control:
                    found += [one for one in batch.records(partition) if one.offset >= log.start]
        return found

    # Transactions ---------------------------------------------------------------------------------

    def add_to_transaction(self, producer_id: int, places: Iterable[Place]) -> None:
        self._in_transaction[producer_id].update(places)

    def end_transaction(self, producer_id: int, epoch: int, committed: bool) -> None:
        """Ends the producer's transaction in each partition that it added."""
        for place in sorted(self._in_transaction.pop(producer_id, ())):
            if self._cluster.has(*place):
                log, end = self.log(*place), marker(producer_id, epoch, committed, self._now_ms())
                self._append(log, log.end_transaction, end, committed)

    # Fetch ----------------------------------------------------------------------------------------

    async def _fetch(self, asked: Asked) -> dict[str, Any]:
        """Answers when `min_bytes` are there, a partition has an error, or `max_wait` is over."""
        logs = [
            self.log(self._cluster.named(topic), one.partition)
            for topic in asked.body.topics
            for one in topic.partitions
            if self._cluster.error(asked, topic, one.partition) is KafkaError.none
        ]
        until = asyncio.get_running_loop().time() + asked.body.max_wait.total_seconds()
        appended = asyncio.Event()
        for log in logs:
            log.waiting.add(appended)
        try:
            async with asyncio.timeout_at(until):
                while (found := self._read(asked)) is None:
                    appended.clear()
                    await appended.wait()
        except TimeoutError:
            found = self._read(asked, least_bytes=0)
        finally:
            for log in logs:
                log.waiting.discard(appended)
        return {"error_code": KafkaError.none, "session_id": 0, "responses": found}

    def _read(self, asked: Asked, least_bytes: int | None = None) -> list[dict[str, Any]] | None:
        """Returns the answers for all partitions; None for fewer bytes and without an error."""
        left = most = min(asked.body.max_bytes, _FETCH_BYTES)

        def read(_: Asked, place: Place, one: Any) -> dict[str, Any]:
            nonlocal left
            log = self.log(*place)
            if not log.start <= one.fetch_offset <= log.end:
                raise Refused(KafkaError.offset_out_of_range)
            committed = asked.body.isolation_level == _READ_COMMITTED
            before = log.last_stable if committed else log.end
            most_bytes = min(left, one.partition_max_bytes)
            found = log.read(one.fetch_offset, most_bytes, before, whole=left == most)
            left -= sum(map(len, found))
            return {
                "high_watermark": log.end,
                "last_stable_offset": log.last_stable,
                "log_start_offset": log.start,
                "aborted_transactions": log.aborted(one.fetch_offset, before)
                if committed
                else None,
                "records": b"".join(found),
            }

        found = self._each(asked, "topics", read)
        failed = any(one["error_code"] for topic in found for one in topic["partitions"])
        enough = most - left >= (asked.body.min_bytes if least_bytes is None else least_bytes)
        return found if failed or enough else None

    # Offsets --------------------------------------------------------------------------------------

    def _list_offset(self, asked: Asked, place: Place, one: Any) -> dict[str, Any]:
        log = self.log(*place)
        found: tuple[int, int] | None = None
        match one.timestamp:
            case -1:
                committed = getattr(asked.body, "isolation_level", 0) == _READ_COMMITTED
                found = log.last_stable if committed else log.end, -1
            case -2 | -4:  # -4: the first offset on the broker's own disk (KIP-405)
                found = log.start, -1
            case -3:
                found = log.newest()
            case time if time >= 0:
                found = log.offset_of(time)
        offset, timestamp = found or (-1, -1)
        return {"offset": offset, "timestamp": timestamp, "leader_epoch": 0 if found else -1}

    def _delete(self, _: Asked, place: Place, one: Any) -> dict[str, Any]:
        """Moves the start of the log; offset -1 means its end."""
        log = self.log(*place)
        offset = log.end if one.offset == -1 else one.offset
        if not log.start <= offset <= log.end:
            raise Refused(KafkaError.offset_out_of_range)
        before = log.size
        log.delete_before(offset)
        self.size += log.size - before
        return {"low_watermark": log.start}
