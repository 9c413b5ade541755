# SPDX-License-Identifier: Apache-2.0
"""Reads the leaders of live groups from the records of `__consumer_offsets`.

DescribeGroups does not return the leader. The newest metadata record of a group contains it. The
records of a group are in one partition, which is read from its beginning: with many offset commits
in it, this takes a while. The user needs Read on the topic `__consumer_offsets`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from kafka_rebalance.errors import WireError
from kafka_rebalance.wire import group_records

from .offsets_log import offsets_records

_GROUP_KEY = (2).to_bytes(2, "big")


def group_leaders(
    bootstrap_server: str, group_ids: Iterable[str], *, configs: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """Returns group -> member id of its last leader. Groups without a leader are left out.

    `configs` are those of `snapshot`. Errors: ClusterError; MissingExtra without kafka-python 3.
    """
    groups = set(group_ids)
    leaders: dict[str, str] = {}
    for record in offsets_records(bootstrap_server, configs=configs, groups=groups):
        if record.key[:2] == _GROUP_KEY:
            _keep(leaders, groups, record)
    return leaders


def _keep(leaders: dict[str, str], groups: set[str], record: group_records.OffsetsRecord) -> None:
    """Stores the leader of the newest readable record; a deleted group has no leader."""
    try:
        key = group_records.decode_key(record.key)
        value = group_records.decode_value(key, record.value)
    except WireError:
        return
    if isinstance(key, group_records.GroupMetadataKey) and key.group_id in groups:
        leaders.pop(key.group_id, None)
        if isinstance(value, group_records.GroupMetadataValue) and value.leader:
            leaders[key.group_id] = value.leader
