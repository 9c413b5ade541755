# SPDX-License-Identifier: Apache-2.0
"""Reads the leaders of live groups from the records of `__consumer_offsets`.

DescribeGroups does not return the leader. The newest metadata record of a group contains it. The
records of a group are in one partition, which is read from its beginning: with many offset commits
in it, this takes a while. The user needs Read on the topic `__consumer_offsets`.
"""

import importlib
import time
from collections.abc import Iterable, Mapping
from typing import Any

from kafka_rebalance.errors import ClusterError, WireError
from kafka_rebalance.protocol.coordinator_lookup import partition_for
from kafka_rebalance.wire import group_records

from .cluster import kafka_module

TOPIC = "__consumer_offsets"
IDLE_S = 30.0
"""Reading ends with an error after this many seconds without progress."""

_GROUP_KEY = (2).to_bytes(2, "big")
_POLL_MS = 200
_NO_ADMIN_SETTING = ("bootstrap_timeout_ms",)


def group_leaders(
    bootstrap_server: str, group_ids: Iterable[str], *, configs: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """Returns group -> member id of its last leader. Groups without one are left out.

    `configs` are those of `snapshot`. Errors: ClusterError; MissingExtra without kafka-python 3.
    """
    kafka = kafka_module()
    errors: Any = importlib.import_module("kafka.errors")
    servers = [server.strip() for server in bootstrap_server.split(",")]
    settings = {k: v for k, v in (configs or {}).items() if k not in _NO_ADMIN_SETTING}
    try:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=servers,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            allow_auto_create_topics=False,
            **settings,
        )
        try:
            return _read(kafka, consumer, set(group_ids))
        finally:
            consumer.close(autocommit=False)
    except (errors.KafkaError, OSError, ValueError) as error:
        problem = f"{TOPIC}: {type(error).__name__}: {error}"
        raise ClusterError(f"{bootstrap_server}: {problem}") from None


def _read(kafka: Any, consumer: Any, groups: set[str]) -> dict[str, str]:
    count = len(consumer.partitions_for_topic(TOPIC) or ())
    if not count:
        return {}
    places = [kafka.TopicPartition(TOPIC, p) for p in {partition_for(g, count) for g in groups}]
    consumer.assign(places)
    consumer.seek_to_beginning(*places)
    ends = consumer.end_offsets(places)
    leaders: dict[str, str] = {}
    progress, since_s = -1, time.monotonic()
    while any(consumer.position(place) < ends[place] for place in places):
        position = sum(consumer.position(place) for place in places)
        if position > progress:
            progress, since_s = position, time.monotonic()
        elif time.monotonic() - since_s > IDLE_S:
            raise ClusterError(f"{TOPIC}: no record for {IDLE_S:g} s")
        for records in consumer.poll(timeout_ms=_POLL_MS).values():
            for record in records:
                _keep(leaders, groups, record)
    return leaders


def _keep(leaders: dict[str, str], groups: set[str], record: Any) -> None:
    """Keeps the leader in the record; a deleted group has none. Skips a record it cannot read."""
    if record.key is None or record.key[:2] != _GROUP_KEY:
        return
    try:
        key = group_records.decode_key(record.key)
        value = group_records.decode_value(key, record.value)
    except WireError:
        return
    if isinstance(key, group_records.GroupMetadataKey) and key.group_id in groups:
        leaders.pop(key.group_id, None)
        if isinstance(value, group_records.GroupMetadataValue) and value.leader:
            leaders[key.group_id] = value.leader
