# SPDX-License-Identifier: Apache-2.0
"""The records of one partition in memory: batches by offset, producers, and transactions.

    start <= last stable offset <= end

The log has a bound: when it is full, the oldest batches are dropped, and `start` moves.
"""

import asyncio
from bisect import bisect_left
from collections import deque
from operator import attrgetter

from kafka_rebalance.errors import WireError
from kafka_rebalance.wire.messages import Frozen

from .batches import NO_PRODUCER, Batch, Refused
from .frames import KafkaError

_REMEMBERED = 5
"""The number of a producer's newest batches that are known again, as in Kafka."""
_KEPT = 7 / 8
"""The part of a full log that is kept: dropping a batch at each append would be slow."""


class _Producer:
    """A producer's epoch and its newest batches."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: deque[Batch] = deque(maxlen=_REMEMBERED)


class Aborted(Frozen):
    """A transaction that was aborted; the last offset is that of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int


class PartitionLog:
    """One partition's records, with the bound `most_bytes`."""

    def __init__(self, most_bytes: int) -> None:
        self.start = self.end = self.size = 0
        self.waiting: set[asyncio.Event] = set()
        """Set at each append; those who wait put their events here, and remove them."""
        self._most_bytes = most_bytes
        self._batches: list[Batch] = []
        self._producers: dict[int, _Producer] = {}
        self._open: dict[int, int] = {}
        self._aborted: list[Aborted] = []

    @property
    def last_stable(self) -> int:
        """Returns the first offset of the oldest open transaction, or else the end."""
        return max(self.start, min(self._open.values(), default=self.end))

    def append(self, batch: Batch) -> int:
        """Appends a producer's batch; returns its first offset. Errors: Refused.

        A batch that its producer sends again has the offset that it got first.
        """
        if batch.producer_id != NO_PRODUCER:
            known = self._checked(batch)
            if known is not None:
                return known.base_offset
        placed = self._put(batch)
        if batch.producer_id != NO_PRODUCER:
            self._producers[batch.producer_id].batches.append(placed._replace(data=b""))
        if batch.is_transactional:
            self._open.setdefault(batch.producer_id, placed.base_offset)
        return placed.base_offset

    def _checked(self, batch: Batch) -> Batch | None:
        """Returns the batch if it was appended before. Errors: Refused, by epoch or sequence."""
        producer = self._producers.get(batch.producer_id)
        if producer is None:
            self._producers[batch.producer_id] = _Producer(batch.producer_epoch)
            return None
        if batch.producer_epoch < producer.epoch:
            raise Refused(KafkaError.invalid_producer_epoch)
        if batch.producer_epoch > producer.epoch:
            if batch.base_sequence != 0:
                raise Refused(KafkaError.out_of_order_sequence_number)
            self._producers[batch.producer_id] = _Producer(batch.producer_epoch)
            return None
        for one in producer.batches:
            if (one.base_sequence, one.last_delta) == (batch.base_sequence, batch.last_delta):
                return one
        if producer.batches:
            expected = (producer.batches[-1].last_sequence + 1) % 2**31
            if batch.base_sequence != expected:
                raise Refused(KafkaError.out_of_order_sequence_number)
        return None

    def end_transaction(self, end: Batch, committed: bool) -> int:
        """Appends the marker `end`; batches of its producer's older epochs are then refused."""
        placed = self._put(end)
        producer = self._producers.get(end.producer_id)
        if producer is None or producer.epoch != end.producer_epoch:
            self._producers[end.producer_id] = _Producer(end.producer_epoch)
        first = self._open.pop(end.producer_id, None)
        if first is not None and not committed:
            self._aborted.append(Aborted(end.producer_id, first, placed.base_offset))
        return placed.base_offset

    def _put(self, batch: Batch) -> Batch:
        placed = batch.at(self.end)
        self._batches.append(placed)
        self.end = placed.last_offset + 1
        self.size += len(placed.data)
        if self.size > self._most_bytes:
            self.shrink(int(self._most_bytes * _KEPT))
        for one in self.waiting:
            one.set()
        return placed

    def shrink(self, most_bytes: int) -> None:
        """Drops the oldest batches until the rest has at most `most_bytes`."""
        at, size = 0, self.size
        while size > most_bytes:
            size -= len(self._batches[at].data)
            at += 1
        if at:
            self.delete_before(self._batches[at - 1].last_offset + 1)

    def delete_before(self, offset: int) -> None:
        """Moves the start of the log; a batch is dropped when all its records are before it."""
        self.start = offset
        at = self._index(offset)
        self.size -= sum(len(one.data) for one in self._batches[:at])
        del self._batches[:at]
        self._aborted = [one for one in self._aborted if one.last_offset >= offset]

    def _index(self, offset: int) -> int:
        """Returns the index of the batch that holds the offset."""
        return bisect_left(self._batches, offset, key=attrgetter("last_offset"))

    def read(self, offset: int, most_bytes: int, before: int, *, whole: bool) -> list[bytes]:
        """Returns batches from the one with `offset` on, up to the offset `before`.

        With `whole`, the first one is returned even if it is longer than `most_bytes`.
        """
        found: list[bytes] = []
        size = 0
        for at in range(self._index(offset), len(self._batches)):
            batch = self._batches[at]
            size += len(batch.data)
            if batch.base_offset >= before or (size > most_bytes and (found or not whole)):
                break
            found.append(batch.data)
        return found

    def aborted(self, offset: int, before: int) -> list[Aborted]:
        """Returns the aborted transactions with records in a range of offsets."""
        return [
            one for one in self._aborted if one.last_offset >= offset and one.first_offset < before
        ]

    def batches(self) -> list[Batch]:
        return list(self._batches)

    def offset_of(self, timestamp: int) -> tuple[int, int] | None:
        """Returns offset and time of the first record that is not older; None if all are older.

        Of a compressed batch, the first record is returned: a small request could otherwise make
        the server unpack a batch of any size. So it is of a batch whose bytes are not records.
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
