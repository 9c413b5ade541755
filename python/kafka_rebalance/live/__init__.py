# SPDX-License-Identifier: Apache-2.0
"""Reads live clusters: consumer groups through a broker, Connect clusters through REST."""

from kafka_rebalance.errors import ClusterError

from .client_properties import client_configs, read_properties
from .committed_offsets import group_lags
from .consumer_groups import Listed, Progress, snapshot, snapshot_lines
from .offsets_log import NoLogError, NoTopicError, group_leaders, offsets_records
from .other_groups import connect_groups, other_group

__all__ = [
    "ClusterError", "Listed", "NoLogError", "NoTopicError", "Progress", "client_configs",
    "connect_groups", "group_lags", "group_leaders", "offsets_records", "other_group",
    "read_properties", "snapshot", "snapshot_lines",
]  # fmt: skip
