# SPDX-License-Identifier: Apache-2.0
"""Reads the lag of consumer groups.

Lag      the end of the partition minus the committed offset, at least 0. The end is the last stable
         offset, up to which a consumer can read committed records. A partition without a committed
         offset has no lag, because it is unknown where its consumer would begin.
Errors   ClusterError if the cluster cannot be read.
Source   Kafka's OffsetFetch and ListOffsets messages.
"""

import importlib
from collections.abc import Iterable, Mapping
from typing import Any

from kafka_rebalance.group.field_paths import a_type
from kafka_rebalance.group.model import TopicPartition

from .cluster import admin_client, kafka_module


def group_lags(
    bootstrap_server: str,
    partitions: Mapping[str, Iterable[TopicPartition]],
    *,
    configs: Mapping[str, Any] | None = None,
) -> dict[str, dict[TopicPartition, int]]:
    """Returns group id -> partition -> lag; partitions without a committed offset are left out.

    Errors: ClusterError; TypeError for no mapping.
    """
    if not isinstance(partitions, Mapping):
        how = "give {group_id: [TopicPartition(topic, partition), …]}"
        raise TypeError(f"partitions: {a_type(partitions)} is not a mapping; {how}")
    kafka = kafka_module()
    offsets = importlib.import_module("kafka.protocol.consumer.offsets")
    asked = {
        group_id: [kafka.TopicPartition(*tp) for tp in dict.fromkeys(tps)]
        for group_id, tps in partitions.items()
    }
    asked = {group_id: tps for group_id, tps in asked.items() if tps}
    with admin_client(bootstrap_server, configs) as admin:
        found = admin.list_group_offsets(asked) if asked else {}
        committed = {
            group_id: {tp: one.offset for tp, one in of_group.items() if one.offset >= 0}
            for group_id, of_group in found.items()
        }
        known = {tp for of_group in committed.values() for tp in of_group}
        latest = dict.fromkeys(known, offsets.OffsetSpec.LATEST)
        level = offsets.IsolationLevel.READ_COMMITTED
        ends = admin.list_partition_offsets(latest, level) if known else {}
    # A committed offset beyond the end may come from an earlier topic with this name.
    return {
        group_id: {
            TopicPartition(*tp): max(0, ends[tp].offset - offset)
            for tp, offset in committed.get(group_id, {}).items()
        }
        for group_id in partitions
    }
