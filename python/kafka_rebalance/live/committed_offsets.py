# SPDX-License-Identifier: Apache-2.0
"""Reads the lag of consumer groups.

Lag      the end of the partition minus the committed offset, at least 0. The end is the last stable
         offset, up to which a consumer can read committed records. A partition without a committed
         offset has no lag, because it is unknown where its consumer would begin. Only the leader
         of a partition knows the end: without a leader that answers, the lag is unknown, too.
Errors   ClusterError if the cluster cannot be read.
Source   Kafka's OffsetFetch, Metadata and ListOffsets messages.
"""

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kafka_rebalance.group.field_paths import a_type
from kafka_rebalance.group.model import TopicPartition

from .cluster import admin_client, kafka_module
from .raw_requests import may_pass

NO_LEADER = -1
"""The id that Metadata shows as the leader of a partition without a leader."""


def group_lags(
    bootstrap_server: str,
    partitions: Mapping[str, Iterable[TopicPartition] | None],
    *,
    configs: Mapping[str, Any] | None = None,
    on_leaderless: Callable[[TopicPartition], None] | None = None,
) -> dict[str, dict[TopicPartition, int]]:
    """Returns group id -> partition -> lag; partitions without a committed offset are left out.

    None in place of a group's partitions means all partitions with a committed offset. Partitions
    for which no leader answers are left out, too: `on_leaderless` is called with each of them.
    Errors: ClusterError; TypeError if `partitions` is not a mapping.
    """
    if not isinstance(partitions, Mapping):
        how = "give {group_id: [TopicPartition(topic, partition), …]}"
        raise TypeError(f"partitions: {a_type(partitions)} is not a mapping; {how}")
    kafka = kafka_module()
    asked = {
        group_id: None if tps is None else [kafka.TopicPartition(*tp) for tp in dict.fromkeys(tps)]
        for group_id, tps in partitions.items()
    }
    asked = {group_id: tps for group_id, tps in asked.items() if tps != []}
    with admin_client(bootstrap_server, configs) as admin:
        found = admin.list_group_offsets(asked) if asked else {}
        committed = {
            group_id: {tp: one.offset for tp, one in of_group.items() if one.offset >= 0}
            for group_id, of_group in found.items()
        }
        known = {tp for of_group in committed.values() for tp in of_group}
        leaders = _leaders(admin, known | {tp for tps in asked.values() for tp in tps or ()})
        ends, silent = read_offsets(admin, leaders, known)
    if on_leaderless is not None:
        for tp, leader in leaders.items():
            if leader in silent:
                on_leaderless(TopicPartition(*tp))
    # A committed offset beyond the end may come from an earlier topic with this name: its lag is 0.
    return {
        group_id: {
            TopicPartition(*tp): max(0, ends[tp] - offset)
            for tp, offset in committed.get(group_id, {}).items()
            if tp in ends
        }
        for group_id in partitions
    }


def partition_ends(
    bootstrap_server: str,
    partitions: Iterable[TopicPartition],
    *,
    configs: Mapping[str, Any] | None = None,
) -> dict[TopicPartition, int]:
    """Returns the ends of those partitions whose leader answers. Errors: ClusterError."""
    with admin_client(bootstrap_server, configs) as admin:
        return read_ends(admin, partitions, "READ_COMMITTED")


def read_ends(
    admin: Any, partitions: Iterable[tuple[str, int]], isolation: str = "READ_UNCOMMITTED"
) -> dict[TopicPartition, int]:
    """Returns the ends of those partitions whose leader answers. The default `isolation` is that of
    a Kafka Streams application's leader: open transactions count.
    """
    asked = [kafka_module().TopicPartition(*tp) for tp in partitions]
    ends, _ = read_offsets(admin, _leaders(admin, asked), asked, isolation)
    return {TopicPartition(*tp): end for tp, end in ends.items()}


def _leaders(admin: Any, partitions: Iterable[Any]) -> dict[Any, int]:
    """Returns the leader of each partition that exists; `NO_LEADER` if it has none."""
    wanted = set(partitions)
    topics = sorted({tp.topic for tp in wanted})
    leaders = {
        (topic["name"], int(one["partition_index"])): int(one["leader_id"])
        for topic in (admin.describe_topics(topics) if topics else ())
        for one in topic["partitions"]
    }
    return {tp: leaders[tp] for tp in sorted(wanted) if tp in leaders}


def read_offsets(
    admin: Any,
    leaders: Mapping[Any, int],
    partitions: Iterable[Any],
    isolation: str = "READ_COMMITTED",
    spec: str = "LATEST",
) -> tuple[dict[Any, int], set[int]]:
    """Returns partition -> end, or its first offset if `spec` is EARLIEST; and a set of `NO_LEADER`
    and the ids of leaders that do not answer.
    """
    offsets = importlib.import_module("kafka.protocol.consumer.offsets")
    errors = importlib.import_module("kafka.errors")
    level, which = getattr(offsets.IsolationLevel, isolation), getattr(offsets.OffsetSpec, spec)
    of_leader: dict[int, list[Any]] = {}
    for tp in partitions:
        if leaders.get(tp, NO_LEADER) != NO_LEADER:
            of_leader.setdefault(leaders[tp], []).append(tp)
    ends: dict[Any, int] = {}
    silent = {NO_LEADER}
    for leader, tps in of_leader.items():
        try:
            found = admin.list_partition_offsets(dict.fromkeys(tps, which), level)
        except errors.KafkaError as error:
            if not may_pass(error):
                raise
            silent.add(leader)
        else:
            ends |= {tp: one.offset for tp, one in found.items()}
    return ends, silent
