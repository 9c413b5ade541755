# SPDX-License-Identifier: Apache-2.0
"""Reads `__consumer_offsets` into Spark, once or as a stream, without a connector's jars.

    records = read_consumer_offsets(spark, bootstrap_servers="broker:9092")
    current_groups(records, topics)

This is a Python Data Source: tasks read ranges of offsets with the executors' Kafka client, without
a consumer group. Only committed records are read, so an open transaction holds back all later
records of its partition; `offset_bounds` shows how many offsets are held back.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from kafka_rebalance.errors import ClusterError
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.live.log_records import IDLE_S, Bounds
from kafka_rebalance.live.topic_log import CLIENTS, TopicLog, open_log

from .session import check_sources_python, use_this_python

RECORDS_SCHEMA = (
    "key binary, value binary, topic string, partition int, offset bigint, "
    "timestamp timestamp, timestampType int"
)
"""The columns of `read_consumer_offsets`: the columns of Spark's own Kafka source."""

BOUNDS_SCHEMA = "partition int, earliest bigint, last_stable bigint, high_watermark bigint"
"""The columns of `offset_bounds`."""

TOPIC = "__consumer_offsets"
RECORDS_PER_TASK = 500_000

_FORMAT = "kafka_rebalance_records"
_CLIENT_PREFIX = "kafka."
_OPTIONS = {
    "topic": "the topic, in place of __consumer_offsets",
    "client": " or ".join(CLIENTS),
    "optionsFile": "a file of lines `kafka.name=value`, on the driver and on every executor",
    "maxRecordsPerPartition": "offsets that one task reads at most",
    "maxOffsetsPerTrigger": "offsets that one micro-batch reads at most",
    "kafkaConsumer.pollTimeoutMs": "how long a task may stand still",
}


def read_consumer_offsets(
    spark: SparkSession, *, bootstrap_servers: str, options: Mapping[str, str] | None = None
) -> DataFrame:
    """Returns the present records of `__consumer_offsets`: RECORDS_SCHEMA.

    `options` are librdkafka's client settings with the prefix `kafka.` ("kafka.sasl.password"),
    and: topic, client, optionsFile, maxRecordsPerPartition, kafkaConsumer.pollTimeoutMs.

    Errors: ValueError for an option that does not exist; SparkFailedError if a Spark Connect server
    of this process would run the source in a `python3` without this package. When the frame is
    used, Spark wraps a ClusterError in its own exception; a topic without partitions is such an
    error.
    """
    named = _checked(bootstrap_servers, options)
    _register(spark)
    return spark.read.format(_FORMAT).options(**named).load()


def stream_consumer_offsets(
    spark: SparkSession, *, bootstrap_servers: str, options: Mapping[str, str] | None = None
) -> DataFrame:
    """Returns the records of `__consumer_offsets` from the beginning, as a stream.

    `options` are as in `read_consumer_offsets`, with maxOffsetsPerTrigger. Spark's progress shows
    offsets as JSON; `latestOffset` is the high watermark, so it includes open transactions.
    """
    named = _checked(bootstrap_servers, options)
    _register(spark)
    return spark.readStream.format(_FORMAT).options(**named).load()


def _register(spark: SparkSession) -> None:
    check_sources_python(spark)
    use_this_python(spark)  # `register` stores the path of the Python that plans and reads
    spark.dataSource.register(KafkaRecords)


def offset_bounds(
    spark: SparkSession, *, bootstrap_servers: str, options: Mapping[str, str] | None = None
) -> DataFrame:
    """Returns the present bounds of each partition: BOUNDS_SCHEMA. This process requests them.

    `high_watermark - last_stable` is the number of offsets that an open transaction holds back.
    """
    bounds = _source(_checked(bootstrap_servers, options)).open().bounds()
    rows = [(partition, *one) for partition, one in bounds.items()]
    return spark.createDataFrame(rows, BOUNDS_SCHEMA)


def _checked(bootstrap_servers: str, options: Mapping[str, str] | None) -> dict[str, str]:
    """Returns all options as strings. Errors: ValueError for an unknown option or a wrong value."""
    known = {name.lower(): name for name in _OPTIONS}
    for name in options or {}:
        if name.lower() not in known and not name.lower().startswith(_CLIENT_PREFIX):
            raise ValueError(
                f"options: {name} does not exist; there are {', '.join(_OPTIONS)}, and "
                "kafka.NAME for a setting of the Kafka client"
            )
    named = {name: str(value) for name, value in (options or {}).items()}
    named["kafka.bootstrap.servers"] = bootstrap_servers
    _source(named)  # a wrong value is an error here, before any task runs
    return named


class _Source(Frozen):
    """The parsed options. Client settings can be secret, so no text or repr shows them."""

    settings: Mapping[str, str] = field(repr=False)
    topic: str
    client: str | None
    options_file: str | None
    records_per_task: int
    offsets_per_trigger: int | None
    idle_s: float

    def open(self) -> TopicLog:
        settings = dict(self.settings)
        if self.options_file is not None:
            settings = {**_settings(_lines(self.options_file)), **settings}
        return open_log(settings, self.topic, client=self.client, idle_s=self.idle_s)


def _source(options: Mapping[str, str]) -> _Source:
    # Options are case-insensitive for Spark, which passes them on in lower case.
    given = {name.lower(): value for name, value in options.items()}
    client = given.get("client")
    if client is not None and client not in CLIENTS:
        raise ValueError(f"options.client: {client} is none of {', '.join(CLIENTS)}")
    idle_ms = _whole(given, "kafkaConsumer.pollTimeoutMs")
    return _Source(
        settings=_settings(given),
        topic=given.get("topic", TOPIC),
        client=client,
        options_file=given.get("optionsfile"),
        records_per_task=_whole(given, "maxRecordsPerPartition") or RECORDS_PER_TASK,
        offsets_per_trigger=_whole(given, "maxOffsetsPerTrigger"),
        idle_s=IDLE_S if idle_ms is None else idle_ms / 1000,
    )


def _settings(options: Mapping[str, str]) -> dict[str, str]:
    return {
        name.lower().removeprefix(_CLIENT_PREFIX): value
        for name, value in options.items()
        if name.lower().startswith(_CLIENT_PREFIX)
    }


def _whole(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name.lower())
    if text is None:
        return None
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"options.{name}: {text} is not a whole number above 0")
    return int(text)


def _lines(path: str) -> dict[str, str]:
    """Reads `name=value` lines; skips blank lines and lines that begin with #."""
    named = {}
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            name, equals, value = line.partition("=")
            if not equals or not name.strip().lower().startswith(_CLIENT_PREFIX):
                raise ValueError(f"{path}:{number}: not a line kafka.NAME=VALUE")
            named[name.strip()] = value.strip()
    return named


# Offsets ------------------------------------------------------------------------------------------

Offsets = dict[str, int]
"""The JSON that Spark keeps, such as {"0": 183}: partition number -> next offset."""


def beginning(bounds: Mapping[int, Bounds]) -> Offsets:
    """Returns the beginning of a new stream: partition -> its earliest offset."""
    return {str(partition): one.earliest for partition, one in bounds.items()}


def next_end(
    start: Mapping[str, int],
    bounds: Mapping[int, Bounds],
    *,
    limit: int | None = None,
    target: Mapping[str, int] | None = None,
) -> Offsets:
    """Returns the end of the micro-batch that begins at `start`.

    1. A partition that `start` lacks begins at its earliest offset.
    2. A partition can be read up to its last stable offset, but not beyond `target`.
    3. If more than `limit` offsets can be read, each partition gets a share of the limit in
       proportion to its number of readable offsets, but at least one if it has any.

    No end is below its start, although a new leader's last stable offset can be too low at first.
    Errors: ClusterError if a log ends below a partition's start: the topic was created again.
    """
    starts = {**beginning(bounds), **start}
    can_be_read = {}
    for partition, one in bounds.items():
        key = str(partition)
        if one.high_watermark < starts[key]:
            raise ClusterError(
                f"partition {partition}: its log ends at {one.high_watermark}, and the stream is "
                f"at {starts[key]}: the topic was made again; read it into another table, with "
                "another checkpoint"
            )
        end = one.last_stable if target is None else min(one.last_stable, target.get(key, 0))
        can_be_read[key] = max(0, end - starts[key])
    total = sum(can_be_read.values())
    if limit is None or total <= limit:
        return {key: at + can_be_read.get(key, 0) for key, at in starts.items()}
    parts = {key: min(n, max(1, n * limit // total)) for key, n in can_be_read.items()}
    return {key: at + parts.get(key, 0) for key, at in starts.items()}


def ranges(start: int, end: int, longest: int) -> list[tuple[int, int]]:
    """Splits [start, end) into ranges of about equal size, at most `longest` offsets each."""
    count = -(-max(0, end - start) // longest)
    cuts = [start + (end - start) * n // count for n in range(count)] + [end]
    return list(pairwise(cuts)) if count else []


# Readers ------------------------------------------------------------------------------------------


class OffsetRange(InputPartition):
    """The offsets [start, end) of a partition, which one task reads."""

    def __init__(self, partition: int, start: int, end: int) -> None:
        self.partition, self.start, self.end = partition, start, end


class _RangeReader:
    """Divides offsets into ranges on the driver, and reads a range on an executor."""

    def __init__(self, source: _Source) -> None:
        self._source = source

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, OffsetRange):
            log = self._source.open()
            yield from log.records(partition.partition, partition.start, partition.end)
        # If the list of ranges is empty, Spark passes None as the range: there is nothing to read.

    def _ranges(self, start: Offsets, end: Offsets) -> list[OffsetRange]:
        longest = self._source.records_per_task
        return [
            OffsetRange(int(partition), *one)
            for partition, last in end.items()
            for one in ranges(start.get(partition, last), last, longest)
        ]


class _BatchReader(_RangeReader, DataSourceReader):
    def partitions(self) -> list[OffsetRange]:
        bounds = self._source.open().bounds()
        return self._ranges(beginning(bounds), next_end({}, bounds))


class _StreamReader(_RangeReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The stream's part on the driver: one process of Spark calls it during the whole query."""

    def __init__(self, source: _Source) -> None:
        super().__init__(source)
        self._log = source.open()
        self._target: Offsets | None = None

    def initialOffset(self) -> Offsets:  # noqa: N802
        return beginning(self._log.bounds())

    # Spark (4.2 and later) passes a limit only to a method with exactly these two parameters.
    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:  # noqa: N802
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return next_end(start, self._log.bounds(), limit=most, target=self._target)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        most = self._source.offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def reportLatestOffset(self) -> Offsets:  # noqa: N802
        bounds = self._log.bounds()
        return {str(partition): one.high_watermark for partition, one in bounds.items()}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = next_end({}, self._log.bounds())

    def partitions(self, start: Offsets, end: Offsets) -> list[OffsetRange]:
        if end.keys() - start.keys():  # new partitions since the last micro-batch
            start = {**beginning(self._log.bounds()), **start}
        return self._ranges(start, end)


class KafkaRecords(DataSource):
    """The data source of `read_consumer_offsets` and `stream_consumer_offsets`."""

    @classmethod
    def name(cls) -> str:
        return _FORMAT

    def schema(self) -> str:
        return RECORDS_SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        return _BatchReader(_source(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return _StreamReader(_source(self.options))
