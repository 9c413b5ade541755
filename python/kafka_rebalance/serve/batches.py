# SPDX-License-Identifier: Apache-2.0
"""Record batches (KIP-98): the header that a broker reads, and the records inside.

A broker keeps a batch as it came, compressed or not: it reads the 61 bytes of the header, and
writes only the first offset and the leader's epoch into it, which the checksum does not cover.
"""

import gzip
import struct
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from crc32c import crc32c

from kafka_rebalance.errors import MissingExtra, WireError
from kafka_rebalance.wire.primitives import Source

from .frames import KafkaError

MOST_BATCH_BYTES = 1_048_588
"""The longest batch, as Kafka's `message.max.bytes`."""
NO_PRODUCER = -1
_START = struct.Struct(">qiibI")
"""First offset, length of all that follows it, leader's epoch, magic, checksum."""
_REST = struct.Struct(">hiqqqhii")
"""The other fields, as `Batch` names them."""
_HEADER_BYTES = _START.size + _REST.size
_PLACED = struct.Struct(">qii")
_AFTER_LENGTH = 12
_MAGIC = 2
_CODEC, TRANSACTIONAL, CONTROL = 0x07, 0x10, 0x20
MARKER = struct.Struct(">hh")
"""The key of a transaction's marker: version 0, and 1 for a commit or 0 for an abort."""
_XERIAL = b"\x82SNAPPY\0"


class Refused(Exception):
    """A batch that a broker does not take; `error` is the code of the answer."""

    def __init__(self, error: KafkaError) -> None:
        super().__init__(error.name)
        self.error = error


class StoredRecord(NamedTuple):
    """A record in a partition; `timestamp` is in ms since 1970."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Batch(NamedTuple):
    """A batch and the fields of its header that a broker needs."""

    base_offset: int
    attributes: int
    last_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    data: bytes

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_delta

    @property
    def last_sequence(self) -> int:
        """Returns the sequence number of the last record; these numbers go on at 0 after 2^31-1."""
        return (self.base_sequence + self.last_delta) % 2**31

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def is_compressed(self) -> bool:
        return bool(self.attributes & _CODEC)

    def at(self, base_offset: int) -> "Batch":
        """Returns the batch with this first offset, as the leader in epoch 0 keeps it."""
        placed = _PLACED.pack(base_offset, len(self.data) - _AFTER_LENGTH, 0)
        data = placed + self.data[_PLACED.size :]
        return self._replace(base_offset=base_offset, data=data)

    def records(self, partition: int) -> Iterator[StoredRecord]:
        """Yields the records.

        Errors: WireError if a client sent other bytes; MissingExtra for a codec without library.
        """
        payload = self.data[_HEADER_BYTES:]
        try:
            source = Source(_decompressed(self.attributes & _CODEC, payload))
            for _ in range(self.record_count):
                yield self._record(source, partition)
        except (ImportError, GeneratorExit):
            raise
        except Exception as error:  # the codecs raise errors of many kinds
            raise WireError(f"offset {self.base_offset}: no records: {error!r}") from error

    def _record(self, source: Source, partition: int) -> StoredRecord:
        _signed(source)
        source.take(1)
        timestamp = self.base_timestamp + _signed(source)
        offset = self.base_offset + _signed(source)
        key, value = _bytes(source), _bytes(source)
        headers = tuple(
            ((_bytes(source) or b"").decode(), _bytes(source)) for _ in range(_signed(source))
        )
        return StoredRecord(partition, offset, timestamp, key, value, headers)


def received(data: bytes | None) -> Batch:
    """Returns the one batch of a partition in a Produce request. Errors: Refused."""
    if data is None or len(data) < _HEADER_BYTES:
        raise Refused(KafkaError.corrupt_message)
    base, length, _, magic, crc = _START.unpack_from(data)
    if magic != _MAGIC:
        raise Refused(KafkaError.unsupported_for_message_format)
    if len(data) > MOST_BATCH_BYTES:
        raise Refused(KafkaError.message_too_large)
    if length != len(data) - _AFTER_LENGTH:
        several = 0 < length < len(data) - _AFTER_LENGTH
        raise Refused(KafkaError.invalid_record if several else KafkaError.corrupt_message)
    if crc != crc32c(memoryview(data)[_START.size :]):
        raise Refused(KafkaError.corrupt_message)
    batch = Batch._make((base, *_REST.unpack_from(data, _START.size), data))
    if batch.is_control or batch.record_count < 1 or batch.last_delta != batch.record_count - 1:
        raise Refused(KafkaError.invalid_record)
    return batch


def new_batch(records: Iterable[StoredRecord], **header: int) -> Batch:
    """Returns a batch of at least one record, not compressed; offsets count from 0.

    `header` has fields of `Batch` with other values than those of a producer without an id.
    """
    parts: list[bytes] = []
    times = []
    for delta, one in enumerate(records):
        times.append(one.timestamp)
        body = [b"\0", _varint(one.timestamp - times[0]), _varint(delta)]
        body += [*_with_length(one.key), *_with_length(one.value), _varint(len(one.headers))]
        for name, value in one.headers:
            body += [*_with_length(name.encode()), *_with_length(value)]
        record = b"".join(body)
        parts += [_varint(len(record)), record]
    ours = {
        "attributes": 0,
        "last_delta": len(times) - 1,
        "base_timestamp": times[0],
        "max_timestamp": max(times),
        "producer_id": NO_PRODUCER,
        "producer_epoch": -1,
        "base_sequence": -1,
        "record_count": len(times),
    }
    fields = tuple((ours | header).values())
    signed = _REST.pack(*fields) + b"".join(parts)
    length = _START.size + len(signed) - _AFTER_LENGTH
    start = _START.pack(0, length, 0, _MAGIC, crc32c(signed))
    return Batch._make((0, *fields, start + signed))


def marker(producer_id: int, producer_epoch: int, committed: bool, now_ms: int) -> Batch:
    """Returns the batch that ends a producer's transaction in a partition."""
    record = StoredRecord(0, 0, now_ms, MARKER.pack(0, committed), struct.pack(">hi", 0, 0))
    return new_batch(
        [record],
        attributes=TRANSACTIONAL | CONTROL,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


# Bytes --------------------------------------------------------------------------------------------


def _signed(source: Source) -> int:
    """Reads a zigzag varint of up to 64 bits."""
    value = 0
    for shift in range(0, 70, 7):
        byte = source.take(1)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value >> 1 ^ -(value & 1)
    raise ValueError("a number of more than 10 bytes")


def _bytes(source: Source) -> bytes | None:
    length = _signed(source)
    return None if length < 0 else source.take(length)


def _varint(value: int) -> bytes:
    value = value << 1 ^ value >> 63
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _with_length(data: bytes | None) -> tuple[bytes, ...]:
    return (_varint(-1),) if data is None else (_varint(len(data)), data)


def _decompressed(codec: int, data: bytes) -> bytes:
    if codec == 0:
        return data
    if codec == 1:
        return gzip.decompress(data)
    try:
        import cramjam
    except ImportError:
        raise MissingExtra("snappy, lz4 and zstd", "serve") from None
    if codec == 2 and not data.startswith(_XERIAL):
        return bytes(cramjam.snappy.decompress_raw(data))
    if codec == 2:
        return b"".join(_xerial(data))
    kind: Any = cramjam.lz4 if codec == 3 else cramjam.zstd
    return bytes(kind.decompress(data))


def _xerial(data: bytes) -> Iterator[bytes]:
    """Yields the blocks of snappy in the frames that Java writes."""
    import cramjam

    at = 16
    while at < len(data):
        (length,) = struct.unpack_from(">i", data, at)
        yield bytes(cramjam.snappy.decompress_raw(data[at + 4 : at + 4 + length]))
        at += 4 + length
