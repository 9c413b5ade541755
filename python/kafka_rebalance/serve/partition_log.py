# SPDX-License-Identifier: Apache-2.0
"""The records of one partition in memory: batches by offset, producers, and transactions.

    start <= last stable offset <= end

The log has a bound: when it is full, the oldest batches are dropped, and `start` moves. The size of
a batch counts its bytes and its object. A producer is known as long as one of its batches is in the
log, or its transaction is open; a real broker knows it for a day.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Collection, Iterator
from itertools import islice
from operator import attrgetter
from typing import TypeVar

from kafka_rebalance.errors import WireError
from kafka_rebalance.frozen import Frozen

from .batches import NO_PRODUCER, Batch, Refused, is_commit
from .frames import KafkaError

_T = TypeVar("_T")
_REMEMBERED = 5
"""The number of a producer's newest batches that are recognised as repeats, as in Kafka."""
KEPT = 7 / 8
"""The share of a full log that is kept: dropping one batch at each append would be slow."""
_PRODUCER_BYTES = 600
"""The approximate number of bytes in memory of a producer with one batch."""
_OBJECT_BYTES = 200
"""The approximate number of bytes in memory of a batch, besides its data."""


class _Producer:
    """A producer's epoch, its newest batches of this epoch, and its last offset."""

    __slots__ = ("batches", "epoch", "last_offset")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: tuple[Batch, ...] = ()
        self.last_offset = -1


class Waiter(asyncio.Event):
    """A fetch that waits until `missing` more bytes arrive or, if it reads only committed
    records, until the last stable offset moves.
    """

    def __init__(self, *, committed: bool) -> None:
        super().__init__()
        self.committed, self.missing = committed, 0

    async def until(
        self,
        attempt: "Callable[[Waiter], Awaitable[_T | None]]",
        watched: "Collection[set[Waiter]]",
        wait_s: float,
    ) -> _T | None:
        """Calls `attempt` now, and each time this event is set, until it returns a result. Returns
        that result; None after `wait_s`.

        Meanwhile, this waiter is in the `watched` sets, whose owners set the event.
        """
        for each in watched:
            each.add(self)
        try:
            async with asyncio.timeout(wait_s):
                while (found := await attempt(self)) is None:
                    await self.wait()
                return found
        except TimeoutError:
            return None
        finally:
            for each in watched:
                each.discard(self)

    def appended(self, size: int, *, stable: bool) -> None:
        self.missing -= size
        if stable if self.committed else self.missing <= 0:
            self.set()


class Aborted(Frozen):
    """A transaction that was aborted. `last_offset` is the offset of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int


class PartitionLog:
    """One partition's records, which take at most `most_bytes`."""

    def __init__(self, most_bytes: int) -> None:
        self.start = self.end = self.size = 0
        self.write: Callable[[bytes], None] | None = None
        """Writes each batch to a file, if there is one. Errors: Refused."""
        self.waiting: set[Waiter] = set()
        """The fetches that wait for records; each adds and removes itself."""
        self._most_bytes = most_bytes
        self._batches: list[Batch] = []
        self._producers: dict[int, _Producer] = {}
        self._open: dict[int, int] = {}
        self._aborted: list[Aborted] = []

    @property
    def last_stable(self) -> int:
        """Returns the first offset of the oldest open transaction, or else the end."""
        return max(self.start, next(iter(self._open.values()), self.end))

    @property
    def open(self) -> dict[int, int]:
        return {one: self._producers[one].epoch for one in self._open}

    def append(self, batch: Batch) -> int:
        """Appends a producer's batch; returns its first offset. Errors: Refused.

        A batch that its producer sends again is not appended: its first offset is returned again.
        """
        if batch.producer_id != NO_PRODUCER:
            known = self._checked(batch)
            if known is not None:
                return known.base_offset
        return self._add(batch)

    def restore(self, batch: Batch) -> int:
        """Appends a batch, or a marker, that was in the log before a restart."""
        if batch.is_control:
            return self.end_transaction(batch, is_commit(batch))
        return self._add(batch)

    def _add(self, batch: Batch) -> int:
        stable = self.last_stable
        placed = self._put(batch)
        if batch.producer_id != NO_PRODUCER:
            producer = self._producer_of(placed)
            newest = (*producer.batches, placed._replace(data=b""))
            producer.batches = newest[-_REMEMBERED:]
        if batch.is_transactional:
            self._open.setdefault(batch.producer_id, placed.base_offset)
        self._tell(placed, stable)
        return placed.base_offset

    def _checked(self, batch: Batch) -> Batch | None:
        """Returns the batch with its offset if it was appended before, or None. Errors: Refused."""
        producer = self._producers.get(batch.producer_id)
        if producer is not None and batch.producer_epoch == producer.epoch:
            for one in producer.batches:
                if (one.base_sequence, one.last_delta) == (batch.base_sequence, batch.last_delta):
                    return one
            newest = producer.batches[-1].last_sequence if producer.batches else -1
            if batch.base_sequence != (newest + 1) % 2**31:
                raise Refused(KafkaError.out_of_order_sequence_number)
        elif producer is not None:
            if batch.producer_epoch < producer.epoch:
                raise Refused(KafkaError.invalid_producer_epoch)
            if batch.base_sequence != 0:
                raise Refused(KafkaError.out_of_order_sequence_number)
        if batch.producer_id in self._open and not batch.is_transactional:
            raise Refused(KafkaError.invalid_txn_state)
        return None

    def _producer_of(self, placed: Batch) -> _Producer:
        """Returns the producer of a new batch; a new epoch replaces the state of older epochs."""
        producer = self._producers.get(placed.producer_id)
        if producer is None:
            self.size += _PRODUCER_BYTES
        if producer is None or producer.epoch != placed.producer_epoch:
            producer = self._producers[placed.producer_id] = _Producer(placed.producer_epoch)
        producer.last_offset = placed.last_offset
        return producer

    def end_transaction(self, end: Batch, committed: bool) -> int:
        """Appends the marker `end`; batches of its producer's older epochs are then refused."""
        stable = self.last_stable
        placed = self._put(end)
        self._producer_of(placed)
        first = self._open.pop(end.producer_id, None)
        if first is not None and not committed:
            self._aborted.append(Aborted(end.producer_id, first, placed.base_offset))
        self._tell(placed, stable)
        return placed.base_offset

    def _put(self, batch: Batch) -> Batch:
        placed = batch.at(self.end)
        if self.write is not None:
            self.write(placed.data)
        self._batches.append(placed)
        self.end = placed.last_offset + 1
        self.size += _bytes_of(placed)
        if self.size > self._most_bytes:
            self.shrink(int(self._most_bytes * KEPT))
        return placed

    def _tell(self, placed: Batch, stable: int) -> None:
        for one in self.waiting:
            one.appended(len(placed.data), stable=self.last_stable != stable)

    def shrink(self, most_bytes: int, keep: int = 1) -> None:
        """Drops the oldest batches until at most `most_bytes`, or only `keep` batches, are left."""
        at, size = 0, self.size
        while size > most_bytes and at < len(self._batches) - keep:
            size -= _bytes_of(self._batches[at])
            at += 1
        if at:
            self.delete_before(self._batches[at - 1].last_offset + 1)

    def delete_before(self, offset: int) -> None:
        """Moves the start of the log to `offset`; drops the batches with only older records."""
        self.start = offset
        at = self._index(offset)
        self.size -= sum(map(_bytes_of, self._batches[:at]))
        del self._batches[:at]
        del self._aborted[: bisect_left(self._aborted, offset, key=attrgetter("last_offset"))]
        for key in [k for k, one in self._producers.items() if one.last_offset < offset]:
            if key not in self._open:
                del self._producers[key]
                self.size -= _PRODUCER_BYTES

    def _index(self, offset: int) -> int:
        return bisect_left(self._batches, offset, key=attrgetter("last_offset"))

    def read(self, offset: int, most_bytes: int, before: int, *, whole: bool) -> list[Batch]:
        """Returns at most `most_bytes` of batches, from the one that contains `offset` to `before`.

        With `whole`, the first batch is returned even if it is longer.
        """
        found: list[Batch] = []
        size = 0
        for batch in self.after(offset):
            size += len(batch.data)
            if batch.base_offset >= before or (size > most_bytes and (found or not whole)):
                break
            found.append(batch)
        return found

    def after(self, offset: int) -> Iterator[Batch]:
        """Yields the batches from the one with `offset` on; use them before the next append."""
        return islice(self._batches, self._index(offset), None)

    def aborted(self, offset: int, before: int) -> list[Aborted]:
        """Returns the aborted transactions with records from `offset` up to the offset `before`."""
        first = bisect_left(self._aborted, offset, key=attrgetter("last_offset"))
        return [one for one in self._aborted[first:] if one.first_offset < before]

    def is_aborted(self, batch: Batch) -> bool:
        found = self.aborted(batch.base_offset, batch.last_offset + 1)
        return batch.is_transactional and any(one.producer_id == batch.producer_id for one in found)

    def batches(self) -> list[Batch]:
        return list(self._batches)

    def offset_of(self, timestamp: int) -> tuple[int, int] | None:
        """Returns offset and time of the first record at or after the time; None if all are older.

        If a batch is compressed, or its bytes are not records, only its header is read: otherwise a
        small request could make the server unpack a batch of any size.
        """
        for batch in self._batches:
            if batch.max_timestamp < timestamp:
                continue
            first = max(batch.base_offset, self.start), batch.max_timestamp
            if batch.is_compressed:
                return first
            try:
                for one in batch.records(0):
                    if one.timestamp >= timestamp and one.offset >= self.start:
                        return one.offset, one.timestamp
            except WireError:
                return first
        return None

    def newest(self) -> tuple[int, int] | None:
        """Returns offset and time of the first record with the largest time; None if empty."""
        if not self._batches:
            return None
        return self.offset_of(max(one.max_timestamp for one in self._batches))


def _bytes_of(batch: Batch) -> int:
    return len(batch.data) + _OBJECT_BYTES
