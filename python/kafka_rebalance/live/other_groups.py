# SPDX-License-Identifier: Apache-2.0
"""Reads one live group for `describe`: a Connect group, or a broker-assigned group.

Errors   GroupError if the group cannot be read; ClusterError if the cluster cannot be read.
Source   Kafka's ListGroups, DescribeGroups, ConsumerGroupDescribe, ShareGroupDescribe and
         StreamsGroupDescribe messages.
"""

import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kafka_rebalance.errors import GroupError, WireError
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.present.broker_assigned import (
    AssignedByBroker,
    Lags,
    StreamsGroupWithLag,
    tasks_of,
)
from kafka_rebalance.present.connect_workers import ConnectGroup, ConnectWorker
from kafka_rebalance.wire.connect_protocol import decode_connect_assignment, decode_connect_metadata
from kafka_rebalance.wire.streams_groups import DescribedStreamsGroup

from .broker_groups import DESCRIBE_APIS, DescribeApi, Described, describe_request
from .cluster import admin_client
from .committed_offsets import group_lags
from .described_topics import require_described, require_stable
from .raw_requests import ask_coordinator, leave_undecoded


def other_group(
    bootstrap_server: str, group_id: str, *, configs: Mapping[str, Any] | None = None
) -> ConnectGroup | AssignedByBroker | StreamsGroupWithLag | None:
    """Returns a Connect or broker-assigned group; None for others, and if the broker is too old."""
    with admin_client(bootstrap_server, configs) as admin:
        leave_undecoded(admin)
        listed = next((one for one in admin.list_groups() if one["group_id"] == group_id), None)
        if listed is None:
            return None
        if listed["protocol_type"] == "connect":
            return connect_group(admin.describe_groups([group_id])[group_id])
        api = DESCRIBE_APIS.get((listed.get("group_type") or "").lower())
        described = None if api is None else _described(admin, group_id, api)
    if described is None:
        return None
    leaderless: list[TopicPartition] = []

    def lags(partitions: Iterable[TopicPartition]) -> Lags:
        # None stands for all partitions with a committed offset.
        asked = {group_id: partitions if described.members else None}
        return group_lags(
            bootstrap_server, asked, configs=configs, on_leaderless=leaderless.append
        )[group_id]

    if isinstance(described, DescribedStreamsGroup):
        read = lags(tp for tps in tasks_of(described).values() for tp in tps)
        return StreamsGroupWithLag(described, read, leaderless)
    if described.group_type != "consumer":
        return AssignedByBroker(described)
    owned = lags(tp for member in described.members for tp in member.assigned)
    return AssignedByBroker(described, owned, leaderless)


def connect_groups(
    bootstrap_server: str, group_ids: Sequence[str], *, configs: Mapping[str, Any] | None = None
) -> Iterator[tuple[str, ConnectGroup | GroupError]]:
    """Yields each group's id with the group or, if it cannot be read, with a GroupError."""
    with admin_client(bootstrap_server, configs) as admin:
        leave_undecoded(admin)
        found = admin.describe_groups(list(group_ids))
    for group_id, described in found.items():
        try:
            yield group_id, connect_group(described)
        except GroupError as error:
            yield group_id, error


def _described(admin: Any, group_id: str, api: DescribeApi) -> Described | None:
    """Returns the group; None if the broker is too old for the request."""
    incompatible = importlib.import_module("kafka.errors").IncompatibleBrokerVersion
    try:
        body = describe_request(group_id)
        (group,) = api.read(*ask_coordinator(admin, group_id, api.api_key, api.versions, body))
    except incompatible:
        return None
    except WireError as error:
        raise GroupError("group_id", f"Group {group_id} is not described: {error}") from error
    require_described(group)
    return group


def connect_group(described: Any) -> ConnectGroup:
    """Returns a Connect group from its part of a DescribeGroups response."""
    require_described(described)
    if described.members:
        require_stable(described)
    return ConnectGroup(
        described.group_id,
        described.group_state,
        described.protocol_data,
        tuple(_worker(one, f"members[{i}]") for i, one in enumerate(described.members)),
    )


def _worker(member: Any, at: str) -> ConnectWorker:
    try:
        sent = decode_connect_metadata(member.member_metadata)
        given = decode_connect_assignment(member.member_assignment)
    except WireError as error:
        raise GroupError(at, str(error)) from error
    return ConnectWorker(member.member_id, member.client_id, member.client_host, sent, given)
