# SPDX-License-Identifier: Apache-2.0
"""The parts that both log readers (confluent-kafka, kafka-python) use: bounds, columns, errors.

Settings have librdkafka's names ("bootstrap.servers", "sasl.password") for both clients. Secret
values never appear in the text of an error: `cluster_errors` removes them.
"""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka_rebalance.errors import ClusterError, NotReachedError

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 20_000
BATCH_BYTES = 4 << 20
"""A batch is complete after this many bytes of keys and values, or after BATCH_ROWS records."""

IDLE_S = 120.0
"""Reading fails after this many seconds without progress; leader elections take less time."""

_SECRETS = ("password", "secret", "jaas", "pem", "token", "oauthbearer", "passphrase")
_LONG_SECRET = 4  # characters; `masked` replaces a shorter secret only as a whole word
_YEAR_10000_MS = 253_402_300_800_000  # Python and Spark cannot represent later times
POLL_MS = 200


class Bounds(NamedTuple):
    """The offsets of a partition: a reader gets the committed records in [earliest, last_stable).

    While a transaction is open, the last stable offset is the offset of its first record: no reader
    gets the records from there on, although they are below the high watermark.
    """

    earliest: int
    last_stable: int
    high_watermark: int


class RecordColumns:
    """Collects records as the columns of Spark's own Kafka source."""

    def __init__(self, topic: str, partition: int) -> None:
        self._topic, self._partition = topic, partition
        self._rows: list[tuple[bytes | None, bytes | None, int, int, int]] = []
        self._bytes = 0

    def append(
        self, key: bytes | None, value: bytes | None, offset: int, time_ms: int, time_type: int
    ) -> None:
        """Adds a record; `time_type` is 0 for CreateTime, 1 for LogAppendTime, -1 for none."""
        self._rows.append((key, value, offset, min(time_ms, _YEAR_10000_MS - 1), time_type))
        self._bytes += len(key or b"") + len(value or b"")

    @property
    def is_full(self) -> bool:
        return self._bytes >= BATCH_BYTES or len(self._rows) >= BATCH_ROWS

    def __bool__(self) -> bool:
        return bool(self._rows)

    def batch(self) -> "pa.RecordBatch":
        """Returns the records collected so far as a batch, and starts a new batch."""
        import pyarrow as pa

        rows = len(self._rows)
        keys, values, offsets, times, types = zip(*self._rows, strict=True) if rows else [()] * 5
        columns = {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": pa.repeat(pa.scalar(self._topic, pa.string()), rows),
            "partition": pa.repeat(pa.scalar(self._partition, pa.int32()), rows),
            "offset": pa.array(offsets, pa.int64()),
            "timestamp": pa.array(times, pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC")),
            "timestampType": pa.array(types, pa.int32()),
        }
        self._rows, self._bytes = [], 0
        return pa.record_batch(columns)


class IdleLimit:
    """Stops a reader that makes no progress, where a client would retry forever."""

    def __init__(self, seconds: float, partition: int, end: int) -> None:
        self._seconds, self._partition, self._end = seconds, partition, end
        self._position = -1
        self._deadline = time.monotonic() + seconds

    def check(self, position: int) -> None:
        """Raises a NotReachedError if `position` has not changed for the whole idle time."""
        if position != self._position:
            self._position = position
            self._deadline = time.monotonic() + self._seconds
        elif time.monotonic() > self._deadline:
            raise NotReachedError(
                f"partition {self._partition}: nothing after offset {position} for "
                f"{self._seconds:.0f} s, {self._end} is the end of the range; is its leader alive?"
            )


def polled(
    consumer: Any, place: Any, offsets: range, idle: IdleLimit
) -> Iterator[tuple[int, list[Any]]]:
    """Yields the position after each poll of a kafka-python consumer, and the poll's records.

    The position, not the last record, shows the end: the last offsets may have no record.
    """
    consumer.assign([place])
    consumer.seek(place, offsets.start)
    while (position := consumer.position(place)) is not None and position < offsets.stop:
        idle.check(position)
        found = consumer.poll(timeout_ms=POLL_MS).get(place, ())
        position = min(offsets.stop, consumer.position(place) or position)
        yield position, [one for one in found if one.offset < offsets.stop]


def no_partitions(topic: str) -> ClusterError:
    """Returns the error for a topic without partitions: an empty table would hide it."""
    return ClusterError(
        f"topic {topic}: the cluster shows no partition of it; no group has been there yet, "
        "or the principal may not describe the topic"
    )


def lost_offset(partition: int, offset: int) -> ClusterError:
    """Returns the error for a range whose records have been deleted."""
    return ClusterError(
        f"partition {partition}: the log no longer has offset {offset}; its records were deleted, "
        "or the topic was made again: read it again, into another table with another checkpoint"
    )


@contextmanager
def cluster_errors(settings: Mapping[str, str], *kinds: type[Exception]) -> Iterator[None]:
    """Turns a client's exceptions into ClusterErrors; their texts and causes show no secret."""
    caught: tuple[type[Exception], ...] = (*kinds, OSError, ValueError)
    try:
        yield
    except ClusterError:
        raise
    except caught as error:
        name = type(error).__name__
        problem = without_secrets(f"{name}: {error}", settings)
        raise ClusterError(f"{settings.get('bootstrap.servers')}: {problem}") from None


def without_secrets(text: str, settings: Mapping[str, str]) -> str:
    """Returns the text with the values of secret settings replaced by ***."""
    for name, value in settings.items():
        if value and any(secret in name for secret in _SECRETS):
            text = masked(text, value)
    return text


def masked(text: str, secret: str) -> str:
    """Replaces the secret with ***; a short secret is replaced only where it is a whole word."""
    pattern = re.escape(secret)
    if len(secret) < _LONG_SECRET:
        pattern = rf"(?<!\w){pattern}(?!\w)"
    return re.sub(pattern, "***", text)


def client_name(settings: Mapping[str, Any]) -> str:
    return str(settings.get("client.id", "kafka-rebalance"))
