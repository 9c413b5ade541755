# SPDX-License-Identifier: Apache-2.0
"""Finds a group's coordinator, and the broker that a client asks for it.

Source   KafkaApis FindCoordinator; NetworkClient.leastLoadedNode.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafka_rebalance.wire.classic_groups import FindCoordinatorResponse
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.group_records import partition_for


def find_coordinator(
    group_id: str, leaders: Mapping[int, int], partitions: int = 50
) -> FindCoordinatorResponse:
    """Returns the group's coordinator; `leaders` maps partitions to leaders, if they have one."""
    node = leaders.get(partition_for(group_id, partitions))
    if node is None:
        return FindCoordinatorResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return FindCoordinatorResponse(node_id=node)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A broker in the view of a client's network layer.

    ready        connected; takes a request if `can_send_more`
    connecting   a connection is being opened, or the API versions are still being requested
    neither      not connected; `may_connect` means that the reconnect back-off is over
    """

    node_id: int
    ready: bool = False
    can_send_more: bool = True
    in_flight: int = 0
    connecting: bool = False
    may_connect: bool = True
    last_attempt_ms: int = 0


def least_loaded_node(nodes: Sequence[Node], offset: int) -> Node | None:
    """Returns the node to use, or None. The scan starts at `offset`, drawn at random by the caller.

    1. ready: the first node with no request in flight, else the node with the fewest
    2. connecting: the last such node of the scan
    3. not connected, but the back-off is over: the node whose last attempt is the oldest

    Errors: ValueError without nodes.
    """
    if not nodes:
        raise ValueError("the cluster has no nodes")
    ready: Node | None = None
    connecting: Node | None = None
    to_try: Node | None = None
    for place in range(len(nodes)):
        node = nodes[(offset + place) % len(nodes)]
        if node.ready and node.can_send_more:
            if node.in_flight == 0:
                return node
            if ready is None or node.in_flight < ready.in_flight:
                ready = node
        elif node.connecting:
            connecting = node
        elif (
            not node.ready
            and node.may_connect
            and (to_try is None or node.last_attempt_ms < to_try.last_attempt_ms)
        ):
            to_try = node
    return ready or connecting or to_try
