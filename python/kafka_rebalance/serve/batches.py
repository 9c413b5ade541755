# SPDX-License-Identifier: Apache-2.0
"""Record batches (KIP-98): the header, which a broker reads, and the records.

A broker stores a batch as it arrived, compressed or not. It reads the 61 bytes of the header, and
writes only the first offset and the leader's epoch, which the checksum does not cover.
"""

import gzip
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

from crc32c import crc32c

from kafka_rebalance.errors import MissingExtra, WireError
from kafka_rebalance.wire.primitives import Source, put_varint

from .frames import KafkaError

MOST_BATCH_BYTES = 1_048_588
"""The largest number of bytes in a batch: the default of Kafka's `message.max.bytes`."""
NO_PRODUCER = -1
_START = struct.Struct(">qiibI")
"""The header's beginning: first offset, length of the rest, leader epoch, magic, checksum."""
_REST = struct.Struct(">hiqqqhii")
"""The other fields of the header, as `Batch` names them."""
_HEADER_BYTES = _START.size + _REST.size
_PLACED = struct.Struct(">qii")
_LENGTH, _CRC = struct.Struct(">i"), struct.Struct(">I")
_LENGTH_AT, _AFTER_LENGTH, _MAGIC_AT, _CODEC_AT = 8, 12, 16, 22
_LEAST_LENGTH = 14
"""The smallest value of the `length` field of a batch in the oldest format, in bytes."""
_MAGIC = 2
_CODEC, _APPEND_TIME, TRANSACTIONAL, CONTROL = 0x07, 0x08, 0x10, 0x20
_ZSTD, _KNOWS_ZSTD = 4, 7
"""The number of the newest codec, zstd, and the first version of Produce that allows it."""
_LEAST_RECORD = 6
"""The smallest size of a record in bytes: attributes, 2 numbers, 2 lengths, number of headers."""
MARKER = struct.Struct(">hh")
"""The key of a transaction's marker: version 0, and 1 for a commit or 0 for an abort."""
_XERIAL = b"\x82SNAPPY\0"


class Refused(Exception):
    """A request or batch that the broker refuses. `error` is the error code of the answer.

    `wrong` holds the indexes of the records in the batch that are the reason, if there are any.
    """

    def __init__(
        self, error: KafkaError, message: str | None = None, wrong: Sequence[int] = ()
    ) -> None:
        super().__init__(message or error.name)
        self.error, self.message, self.wrong = error, message, wrong


class StoredRecord(NamedTuple):
    """A record in a partition. `timestamp` is in ms since 1970."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Batch(NamedTuple):
    """A batch, and the fields of its header that a broker reads."""

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
        """Returns the sequence number of the last record; after 2^31-1, numbers continue at 0."""
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

    def holds_its_records(self) -> bool:
        """Returns whether the record count is right or, in a compressed batch, can be right.

        Kafka, in addition, unpacks the batch and reads each record.
        """
        count, data, end = self.record_count, self.data, len(self.data)
        if count < 1 or self.last_delta != count - 1 or self.is_compressed:
            # Each record has at least one byte, so this limit, which Kafka lacks, refuses no batch.
            most = MOST_BATCH_BYTES
            return 1 <= count == self.last_delta + 1 <= most and end > _HEADER_BYTES
        at = _HEADER_BYTES
        try:
            for _ in range(count):
                length, shift = data[at], 7
                at += 1
                while length >> shift and shift < 35:  # another byte of the number follows
                    length = length & ~(1 << shift) | data[at] << shift
                    at, shift = at + 1, shift + 7
                if length & 1 or not 2 * _LEAST_RECORD <= length <= 2 * end:
                    return False
                at += length >> 1
        except IndexError:
            return False
        return at == end

    def check_keys(self) -> None:
        """Checks that each record has a key, for a compacted topic. Errors: Refused.

        Records of compressed batches are not checked.
        """
        try:
            each = [] if self.is_compressed else [*self.records(0)]
        except WireError:
            raise Refused(KafkaError.invalid_record) from None
        if wrong := [at for at, one in enumerate(each) if one.key is None]:
            raise Refused(KafkaError.invalid_record, wrong=wrong)

    def appended(self, now_ms: int) -> "Batch":
        """Returns the batch with the time of its append, which applies to all its records."""
        attributes = self.attributes | _APPEND_TIME
        fields = (attributes, *self[2:4], now_ms, *self[5:9])
        signed = _REST.pack(*fields) + self.data[_HEADER_BYTES:]
        data = self.data[: _START.size - _CRC.size] + _CRC.pack(crc32c(signed)) + signed
        return self._replace(attributes=attributes, max_timestamp=now_ms, data=data)

    def at(self, base_offset: int) -> "Batch":
        """Returns the batch with this first offset, and with leader epoch 0."""
        placed = _PLACED.pack(base_offset, len(self.data) - _AFTER_LENGTH, 0)
        data = placed + self.data[_PLACED.size :]
        return self._replace(base_offset=base_offset, data=data)

    def records(self, partition: int) -> Iterator[StoredRecord]:
        """Yields the records.

        Errors: WireError if the bytes are not records; MissingExtra if the codec's library is
        missing.
        """
        payload = self.data[_HEADER_BYTES:]
        try:
            source = Source(_decompressed(self.attributes & _CODEC, payload))
            for delta in range(self.record_count):
                yield self._record(source, partition, delta)
        except (ImportError, GeneratorExit):
            raise
        except Exception as error:  # the codecs raise errors of many kinds
            raise WireError(f"offset {self.base_offset}: no records: {error!r}") from error

    def _record(self, source: Source, partition: int, delta: int) -> StoredRecord:
        _signed(source)
        source.take(1)
        timestamp = self.base_timestamp + _signed(source)
        if self.attributes & _APPEND_TIME:
            timestamp = self.max_timestamp
        if _signed(source) != delta or not -(2**63) <= timestamp < 2**63:
            raise ValueError("an offset or a time that no producer sends")
        offset = self.base_offset + delta
        key, value = _bytes(source), _bytes(source)
        headers = tuple(
            ((_bytes(source) or b"").decode(), _bytes(source)) for _ in range(_signed(source))
        )
        return StoredRecord(partition, offset, timestamp, key, value, headers)


def received(data: bytes | None, version: int, most_bytes: int = MOST_BATCH_BYTES) -> Batch:
    """Returns the one batch that a Produce request of this version contains for a partition.

    An incomplete batch at the end is ignored, as in Kafka. Errors: Refused.
    """
    size = _size(data := data or b"", 0)
    if not size or data[_MAGIC_AT] != _MAGIC:
        raise Refused(KafkaError.invalid_record)
    if version < _KNOWS_ZSTD and size >= _HEADER_BYTES and data[_CODEC_AT] & _CODEC == _ZSTD:
        raise Refused(KafkaError.unsupported_compression_type)
    if _size(data, size):
        raise Refused(KafkaError.invalid_record)
    base, _, _, _, crc = _START.unpack_from(data)
    if base != 0:
        raise Refused(KafkaError.invalid_record)
    if size > most_bytes:
        raise Refused(KafkaError.message_too_large)
    data = data[:size]
    if size < _HEADER_BYTES or crc != crc32c(memoryview(data)[_START.size :]):
        raise Refused(KafkaError.corrupt_message)
    batch = Batch._make((base, *_REST.unpack_from(data, _START.size), data))
    if batch.attributes & _CODEC > _ZSTD:
        raise Refused(KafkaError.unknown_server_error)
    has_sequence = batch.producer_id == NO_PRODUCER or batch.base_sequence >= 0
    if batch.is_control or not has_sequence or not batch.holds_its_records():
        raise Refused(KafkaError.invalid_record)
    return batch


def batches(file: BinaryIO, left: int) -> Iterator[Batch]:
    """Yields the batches of a log before the first one that a crash has cut or damaged.

    `left` is the log's size in bytes.
    """
    while left >= _HEADER_BYTES:
        start = file.read(_HEADER_BYTES)
        base, length, _, _, crc = _START.unpack_from(start)
        size = length + _AFTER_LENGTH
        if not _HEADER_BYTES <= size <= left:
            return
        data = start + file.read(size - _HEADER_BYTES)
        if crc != crc32c(memoryview(data)[_START.size :]):
            return
        yield Batch._make((base, *_REST.unpack_from(data, _START.size), data))
        left -= size


def _size(data: bytes, at: int) -> int:
    """Returns the size in bytes of the batch at `at`; 0 if it is incomplete. Errors: Refused."""
    left = len(data) - at
    if left < _AFTER_LENGTH:
        return 0
    (length,) = _LENGTH.unpack_from(data, at + _LENGTH_AT)
    if length < _LEAST_LENGTH or (left > _MAGIC_AT and data[at + _MAGIC_AT] > _MAGIC):
        raise Refused(KafkaError.corrupt_message)
    return length + _AFTER_LENGTH if left >= max(_MAGIC_AT + 1, length + _AFTER_LENGTH) else 0


def new_batch(records: Iterable[StoredRecord], **header: int) -> Batch:
    """Returns an uncompressed batch of the records, at least one; their offsets count from 0.

    `header` replaces fields of `Batch`, whose defaults fit a producer without an id.
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


def is_commit(end: Batch) -> bool:
    """Returns whether the marker of a transaction commits it."""
    (record,) = end.records(0)
    _, committed = MARKER.unpack(record.key or b"")
    return bool(committed)


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
    parts: list[bytes] = []
    put_varint(parts, value << 1 ^ value >> 63)
    return b"".join(parts)


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
    """Yields the decompressed blocks of snappy data, which is in the framing of snappy-java."""
    import cramjam

    at = 16
    while at < len(data):
        (length,) = struct.unpack_from(">i", data, at)
        yield bytes(cramjam.snappy.decompress_raw(data[at + 4 : at + 4 + length]))
        at += 4 + length
