# SPDX-License-Identifier: Apache-2.0
"""Reads ranges of a Kafka log with confluent-kafka, in a third of kafka-python's CPU time."""

import importlib
import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .log_records import (
    Bounds,
    IdleLimit,
    RecordColumns,
    client_name,
    cluster_errors,
    lost_offset,
    no_partitions,
)
from .retries import retried

if TYPE_CHECKING:
    import pyarrow as pa

_POLL_RECORDS = 5_000
_POLL_S = 0.05  # `consume` returns after this time, or as soon as it has _POLL_RECORDS records
_REQUEST_S = 30.0
_TIME_TYPES = {0: -1, 1: 0, 2: 1}  # none, CreateTime, LogAppendTime in librdkafka -> Kafka

# Without a logger, librdkafka writes to standard error.
_LOGGER = logging.getLogger("kafka_rebalance.live")
_LOGGER.addHandler(logging.NullHandler())


class ConfluentLog:
    """A TopicLog that uses confluent-kafka, with one consumer for each range."""

    def __init__(self, settings: Mapping[str, str], topic: str, idle_s: float) -> None:
        self._client: Any = importlib.import_module("confluent_kafka")
        self._settings, self._topic, self._idle_s = settings, topic, idle_s

    def bounds(self) -> dict[int, Bounds]:
        with cluster_errors(self._settings, self._client.KafkaException):
            return self._bounds()

    def records(self, partition: int, start: int, end: int) -> "Iterator[pa.RecordBatch]":
        with cluster_errors(self._settings, self._client.KafkaException):
            consumer = self._consumer()
            try:
                yield from self._range(consumer, partition, start, end)
            finally:
                consumer.close()

    def _consumer(self) -> Any:
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
        return self._client.Consumer(configs, logger=_LOGGER)

    def _partitions(self) -> list[int]:
        # The admin client's request would create the topic on brokers that allow it.
        consumer = self._consumer()
        try:
            listed = retried(
                lambda: consumer.list_topics(self._topic, timeout=_REQUEST_S), _is_retriable
            )
        finally:
            consumer.close()
        return sorted(listed.topics[self._topic].partitions)

    def _configs(self) -> dict[str, Any]:
        return {"client.id": client_name(self._settings), **self._settings}

    def _bounds(self) -> dict[int, Bounds]:
        admin_module: Any = importlib.import_module("confluent_kafka.admin")
        admin = admin_module.AdminClient(self._configs(), logger=_LOGGER)
        partitions = self._partitions()
        if not partitions:
            raise no_partitions(self._topic)
        spec, level = admin_module.OffsetSpec, self._client.IsolationLevel

        def offsets(which: Any, isolation: Any) -> dict[int, int]:
            wanted = {self._client.TopicPartition(self._topic, p): which for p in partitions}

            def ask() -> dict[int, int]:
                futures = admin.list_offsets(
                    wanted, isolation_level=isolation, request_timeout=_REQUEST_S
                )
                return {place.partition: one.result().offset for place, one in futures.items()}

            return retried(ask, _is_retriable)

        earliest = offsets(spec.earliest(), level.READ_COMMITTED)
        stable = offsets(spec.latest(), level.READ_COMMITTED)
        high = offsets(spec.latest(), level.READ_UNCOMMITTED)
        # The log may change between these requests, so `stable` may be below `earliest`.
        return {
            place: Bounds(earliest[place], max(earliest[place], stable[place]), high[place])
            for place in partitions
        }

    def _range(
        self, consumer: Any, partition: int, start: int, end: int
    ) -> "Iterator[pa.RecordBatch]":
        codes = self._client.KafkaError
        consumer.assign([self._client.TopicPartition(self._topic, partition, start)])
        columns = RecordColumns(self._topic, partition)
        idle = IdleLimit(self._idle_s, partition, end)
        # The client returns neither aborted records nor transaction markers, so the last offsets of
        # a range may never come. The range is complete after its last offset or a later one, or
        # when the client reports the end of the partition.
        position = start
        while position < end:
            idle.check(position)
            for message in consumer.consume(_POLL_RECORDS, _POLL_S):
                error = message.error()
                if error is None:
                    position = message.offset() + 1
                    if position > end:
                        break
                    kind, time_ms = message.timestamp()
                    columns.append(
                        message.key(),
                        message.value(),
                        message.offset(),
                        time_ms,
                        _TIME_TYPES.get(kind, -1),
                    )
                    if columns.is_full:
                        yield columns.batch()
                elif error.code() == codes._PARTITION_EOF:
                    position = max(position, message.offset())
                elif error.code() in (codes._AUTO_OFFSET_RESET, codes.OFFSET_OUT_OF_RANGE):
                    raise lost_offset(partition, position)
                elif not _is_passing(error, codes):
                    raise self._client.KafkaException(error)
        if columns:
            yield columns.batch()


def _is_passing(error: Any, codes: Any) -> bool:
    """Returns whether the client recovers by itself, for example with a new leader."""
    transport = (codes._TRANSPORT, codes._ALL_BROKERS_DOWN, codes._TIMED_OUT, codes._RESOLVE)
    return bool(error.retriable()) or error.code() in transport


def _is_retriable(error: Exception) -> bool:
    return bool(error.args) and bool(getattr(error.args[0], "retriable", bool)())
