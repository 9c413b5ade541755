# SPDX-License-Identifier: Apache-2.0
"""Reads ranges of a Kafka log with the installed client: confluent-kafka, else kafka-python.

log = open_log({"bootstrap.servers": "broker:9092"}, "__consumer_offsets")
for partition, bounds in log.bounds().items():
    for batch in log.records(partition, bounds.earliest, bounds.last_stable):
        ...
"""

import importlib
import importlib.util
import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing
from typing import TYPE_CHECKING, Any, ClassVar

from kafka_rebalance.errors import ClusterError, MissingExtra

from .cluster import admin_client, consumer_client
from .log_records import (
    IDLE_S,
    Bounds,
    IdleLimit,
    RecordColumns,
    client_name,
    cluster_errors,
    lost_offset,
    no_partitions,
    polled,
)
from .raw_requests import retried

if TYPE_CHECKING:
    import pyarrow as pa

CLIENTS = {"confluent-kafka": "confluent_kafka", "kafka-python": "kafka"}
"""The clients by name, each with the name of its module; the first one is preferred.

confluent-kafka takes a third of kafka-python's CPU time.
"""

_Offsets = dict[int, int]


def open_log(
    settings: Mapping[str, str], topic: str, *, client: str | None = None, idle_s: float = IDLE_S
) -> "TopicLog":
    """Returns the log of a topic, read by `client` or the first installed one of CLIENTS."""
    names = [client] if client else list(CLIENTS)
    installed = [name for name in names if importlib.util.find_spec(CLIENTS[name])]
    if not installed:
        raise MissingExtra("reading a topic", "kafka")
    reader = ConfluentLog if installed[0] == "confluent-kafka" else KafkaPythonLog
    return reader(settings, topic, idle_s)


class TopicLog:
    """The log of one topic, read without joining a group: nothing is written to the cluster.

    There is a subclass for each client; it opens one consumer for each range.
    """

    _CLIENT: ClassVar[str]
    _error: Any  # the base class of the client's exceptions
    _offsets: Any  # () -> each partition's earliest offset, last stable offset, high watermark
    _consumer: Any  # () -> a context manager that yields a consumer
    _range: Any  # yields full batches of records; leaves the remaining records in `columns`

    def __init__(self, settings: Mapping[str, str], topic: str, idle_s: float) -> None:
        self._client: Any = importlib.import_module(CLIENTS[self._CLIENT])
        self._settings, self._topic, self._idle_s = settings, topic, idle_s

    def bounds(self) -> dict[int, Bounds]:
        """Returns the bounds of all partitions. Errors: ClusterError, also if there are none."""
        with cluster_errors(self._settings, self._error):
            earliest, stable, high = self._offsets()
        if not earliest:
            raise no_partitions(self._topic)
        # The log may change between the requests: `stable` below `earliest` means no records.
        return {
            place: Bounds(earliest[place], max(earliest[place], stable[place]), high[place])
            for place in sorted(earliest)
        }

    def records(self, partition: int, start: int, end: int) -> "Iterator[pa.RecordBatch]":
        """Yields the committed records at offsets [start, end); compaction leaves gaps.

        Errors: ClusterError if the log no longer contains `start`, or if the position does not
        change during the idle time.
        """
        columns = RecordColumns(self._topic, partition)
        idle = IdleLimit(self._idle_s, partition, end)
        place = self._client.TopicPartition(self._topic, partition)
        with cluster_errors(self._settings, self._error), self._consumer() as consumer:
            yield from self._range(consumer, place, range(start, end), columns, idle)
            if columns:
                yield columns.batch()


# confluent-kafka ----------------------------------------------------------------------------------

_CONSUMED_RECORDS = 5_000
_CONSUME_S = 0.05  # `consume` returns after these seconds, or with _CONSUMED_RECORDS records
_REQUEST_S = 30.0
_TIME_TYPES = {0: -1, 1: 0, 2: 1}  # librdkafka's code -> Kafka's: none, create, append

# Without a logger, librdkafka writes to standard error.
_LOGGER = logging.getLogger("kafka_rebalance.live")
_LOGGER.addHandler(logging.NullHandler())


class ConfluentLog(TopicLog):
    _CLIENT = "confluent-kafka"

    @property
    def _error(self) -> Any:
        return self._client.KafkaException

    def _consumer(self) -> AbstractContextManager[Any]:
        configs = {
            **self._configs(),
            "group.id": "kafka-rebalance",  # required, but never written to the cluster
            "allow.auto.create.topics": False,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "queued.max.messages.kbytes": 16384,
        }
        return closing(self._client.Consumer(configs, logger=_LOGGER))

    def _partitions(self) -> list[int]:
        # A consumer lists them: the admin client's request would create the topic on some brokers.
        with self._consumer() as consumer:
            listed = retried(
                lambda: consumer.list_topics(self._topic, timeout=_REQUEST_S), _is_retriable
            )
        return sorted(listed.topics[self._topic].partitions)

    def _configs(self) -> dict[str, Any]:
        return {"client.id": client_name(self._settings), **self._settings}

    def _offsets(self) -> tuple[_Offsets, _Offsets, _Offsets]:
        admin_module: Any = importlib.import_module("confluent_kafka.admin")
        admin = admin_module.AdminClient(self._configs(), logger=_LOGGER)
        partitions = self._partitions()
        spec, level = admin_module.OffsetSpec, self._client.IsolationLevel

        def offsets(which: Any, isolation: Any) -> _Offsets:
            wanted = {self._client.TopicPartition(self._topic, p): which for p in partitions}

            def ask() -> _Offsets:
                futures = admin.list_offsets(
                    wanted, isolation_level=isolation, request_timeout=_REQUEST_S
                )
                return {place.partition: one.result().offset for place, one in futures.items()}

            return retried(ask, _is_retriable) if wanted else {}

        return (
            offsets(spec.earliest(), level.READ_COMMITTED),
            offsets(spec.latest(), level.READ_COMMITTED),
            offsets(spec.latest(), level.READ_UNCOMMITTED),
        )

    def _range(
        self, consumer: Any, place: Any, offsets: range, columns: RecordColumns, idle: IdleLimit
    ) -> "Iterator[pa.RecordBatch]":
        codes, end = self._client.KafkaError, offsets.stop
        place.offset = offsets.start
        consumer.assign([place])
        # The client returns neither aborted records nor transaction markers, so a range may end
        # without its last offsets. The range is complete after its last offset or a later one, or
        # when the client reports the end of the partition.
        position = offsets.start
        while position < end:
            idle.check(position)
            for message in consumer.consume(_CONSUMED_RECORDS, _CONSUME_S):
                error = message.error()
                if error is None:
                    position = message.offset() + 1
                    if position > end:
                        break
                    kind, time_ms = message.timestamp()
                    kind = _TIME_TYPES.get(kind, -1)
                    columns.append(message.key(), message.value(), position - 1, time_ms, kind)
                    if columns.is_full:
                        yield columns.batch()
                elif error.code() == codes._PARTITION_EOF:
                    position = max(position, message.offset())
                elif error.code() in (codes._AUTO_OFFSET_RESET, codes.OFFSET_OUT_OF_RANGE):
                    raise lost_offset(place.partition, position)
                elif not _is_passing(error, codes):
                    raise self._client.KafkaException(error)


def _is_passing(error: Any, codes: Any) -> bool:
    """Returns whether the client recovers from the error itself, as after a leader election."""
    transport = (codes._TRANSPORT, codes._ALL_BROKERS_DOWN, codes._TIMED_OUT, codes._RESOLVE)
    return bool(error.retriable()) or error.code() in transport


def _is_retriable(error: Exception) -> bool:
    return bool(error.args) and bool(getattr(error.args[0], "retriable", bool)())


# kafka-python -------------------------------------------------------------------------------------

_NAMES = {
    "bootstrap.servers": "bootstrap_servers",
    "client.id": "client_id",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
}
# By default, kafka-python returns records of aborted transactions, too.
_CONSUMER = {
    "isolation_level": "read_committed",
    "max_poll_records": 10_000,
    "max_partition_fetch_bytes": 4 << 20,
}


class KafkaPythonLog(TopicLog):
    _CLIENT = "kafka-python"

    @property
    def _error(self) -> Any:
        return self._client.errors.KafkaError

    @property
    def _server(self) -> str:
        return self._settings.get("bootstrap.servers", "localhost:9092")

    def _consumer(self) -> AbstractContextManager[Any]:
        return consumer_client(self._server, {**self._configs(), **_CONSUMER})

    def _configs(self) -> dict[str, Any]:
        configs: dict[str, Any] = {"client_id": client_name(self._settings)}
        for name, value in self._settings.items():
            if name not in _NAMES:
                known = ", ".join(f"kafka.{one}" for one in _NAMES)
                raise ClusterError(
                    f"kafka.{name}: not a setting that kafka-python takes; these are: {known}; "
                    "with confluent-kafka installed, every setting of librdkafka is"
                )
            configs[_NAMES[name]] = value
        configs.pop("bootstrap_servers", None)
        return configs

    def _offsets(self) -> tuple[_Offsets, _Offsets, _Offsets]:
        messages = importlib.import_module("kafka.protocol.consumer")
        spec, level = messages.OffsetSpec, messages.IsolationLevel
        with admin_client(self._server, self._configs()) as admin:
            [described] = _retried(lambda: admin.describe_topics([self._topic]))
            places = [
                self._client.TopicPartition(self._topic, one["partition_index"])
                for one in described["partitions"]
            ]

            def offsets(which: Any, isolation: Any) -> _Offsets:
                wanted = dict.fromkeys(places, which)
                found = _retried(lambda: admin.list_partition_offsets(wanted, isolation))
                return {place.partition: one.offset for place, one in found.items()}

            if not places:
                return {}, {}, {}
            return (
                offsets(spec.EARLIEST, level.READ_COMMITTED),
                offsets(spec.LATEST, level.READ_COMMITTED),
                offsets(spec.LATEST, level.READ_UNCOMMITTED),
            )

    def _range(
        self, consumer: Any, place: Any, offsets: range, columns: RecordColumns, idle: IdleLimit
    ) -> "Iterator[pa.RecordBatch]":
        read = offsets.start
        try:
            for position, records in polled(consumer, place, offsets, idle):
                for one in records:
                    kind = -1 if one.timestamp_type is None else one.timestamp_type
                    columns.append(one.key, one.value, one.offset, one.timestamp, kind)
                    if columns.is_full:
                        yield columns.batch()
                read = position
        except self._client.errors.OffsetOutOfRangeError:
            raise lost_offset(place.partition, read) from None


def _retried(call: Any) -> Any:
    return retried(call, lambda error: bool(getattr(error, "retriable", False)))
