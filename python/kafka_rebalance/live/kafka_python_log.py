# SPDX-License-Identifier: Apache-2.0
"""Reads ranges of a Kafka log with kafka-python."""

import importlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kafka_rebalance.errors import ClusterError

from .cluster import admin_client, consumer_client
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
_POLL_MS = 200
_POLL_RECORDS = 10_000
_FETCH_BYTES = 4 << 20


class KafkaPythonLog:
    """A TopicLog that uses kafka-python, with one consumer for each range."""

    def __init__(self, settings: Mapping[str, str], topic: str, idle_s: float) -> None:
        self._kafka: Any = importlib.import_module("kafka")
        self._settings, self._topic, self._idle_s = settings, topic, idle_s
        self._server = settings.get("bootstrap.servers", "localhost:9092")

    def bounds(self) -> dict[int, Bounds]:
        with (
            cluster_errors(self._settings, self._kafka.errors.KafkaError),
            admin_client(self._server, self._configs()) as admin,
        ):
            return self._bounds(admin)

    def records(self, partition: int, start: int, end: int) -> "Iterator[pa.RecordBatch]":
        with cluster_errors(self._settings, self._kafka.errors.KafkaError):
            # By default, kafka-python returns records of aborted transactions.
            more = {
                "isolation_level": "read_committed",
                "max_poll_records": _POLL_RECORDS,
                "max_partition_fetch_bytes": _FETCH_BYTES,
            }
            with consumer_client(self._server, {**self._configs(), **more}) as consumer:
                yield from self._range(consumer, partition, start, end)

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

    def _bounds(self, admin: Any) -> dict[int, Bounds]:
        messages = importlib.import_module("kafka.protocol.consumer")
        spec, level = messages.OffsetSpec, messages.IsolationLevel
        [described] = self._retried(lambda: admin.describe_topics([self._topic]))
        places = [
            self._kafka.TopicPartition(self._topic, one["partition_index"])
            for one in described["partitions"]
        ]
        if not places:
            raise no_partitions(self._topic)

        def offsets(which: Any, isolation: Any) -> dict[int, int]:
            wanted = dict.fromkeys(places, which)
            found = self._retried(lambda: admin.list_partition_offsets(wanted, isolation))
            return {place.partition: one.offset for place, one in found.items()}

        earliest = offsets(spec.EARLIEST, level.READ_COMMITTED)
        stable = offsets(spec.LATEST, level.READ_COMMITTED)
        high = offsets(spec.LATEST, level.READ_UNCOMMITTED)
        # The log may change between these requests, so `stable` may be below `earliest`.
        return {
            place: Bounds(earliest[place], max(earliest[place], stable[place]), high[place])
            for place in sorted(earliest)
        }

    def _range(
        self, consumer: Any, partition: int, start: int, end: int
    ) -> "Iterator[pa.RecordBatch]":
        place = self._kafka.TopicPartition(self._topic, partition)
        consumer.assign([place])
        consumer.seek(place, start)
        columns = RecordColumns(self._topic, partition)
        idle = IdleLimit(self._idle_s, partition, end)
        # The position also moves over compaction gaps, control records and aborted records.
        while (position := consumer.position(place)) is not None and position < end:
            idle.check(position)
            try:
                polled = consumer.poll(timeout_ms=_POLL_MS)
            except self._kafka.errors.OffsetOutOfRangeError:
                raise lost_offset(partition, position) from None
            for record in polled.get(place, ()):
                if record.offset >= end:
                    break
                kind = -1 if record.timestamp_type is None else record.timestamp_type
                columns.append(record.key, record.value, record.offset, record.timestamp, kind)
                if columns.is_full:
                    yield columns.batch()
        if columns:
            yield columns.batch()

    def _retried(self, call: Any) -> Any:
        return retried(call, lambda error: bool(getattr(error, "retriable", False)))
