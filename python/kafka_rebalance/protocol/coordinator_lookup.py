# SPDX-License-Identifier: Apache-2.0
"""Which broker coordinates a group, and which broker a client asks for it.

Source   GroupMetadataManager.partitionFor (Utils.abs), KafkaApis FindCoordinator;
         NetworkClient.leastLoadedNode.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafka_rebalance.java.order import string_hash

from .error_codes import ErrorCode
from .messages import FindCoordinatorResponse


def partition_for(group_id: str, partitions: int = 50) -> int:
    """The group's partition of `__consumer_offsets`; its leader is the coordinator.

    >>> partition_for("my-group")
    12
    """
    signed = string_hash(group_id)
    if signed >= 1 << 31:
        signed -= 1 << 32
    # Java's least integer has no positive counterpart: it counts as 0.
    return 0 if signed == -(1 << 31) else abs(signed) % partitions


def find_coordinator(
    group_id: str, leaders: Mapping[int, int], partitions: int = 50
) -> FindCoordinatorResponse:
    """`leaders` maps a partition of `__consumer_offsets` to the broker that leads it.

    COORDINATOR_NOT_AVAILABLE where the topic or its leader is missing; the client asks again.
    """
    node = leaders.get(partition_for(group_id, partitions))
    if node is None:
        return FindCoordinatorResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return FindCoordinatorResponse(node_id=node)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A broker, as a client's network layer sees it.

    ready        connected and able to take a request, if `can_send_more`
    connecting   or still asking for versions
    otherwise    not connected; may be tried where `may_connect` (the back-off is over)
    """

    node_id: int
    ready: bool = False
    can_send_more: bool = True
    in_flight: int = 0
    connecting: bool = False
    may_connect: bool = True
    last_attempt_ms: int = 0


def least_loaded_node(nodes: Sequence[Node], offset: int) -> Node | None:
    """Whom to ask: the scan starts at `offset`, which the caller draws at random.

    1. ready: nothing in flight wins at sight, else the fewest
    2. connecting: the last one seen
    3. may be tried: the one whose last attempt is the oldest

    Errors: ValueError without nodes.
    """
    if not nodes:
        raise ValueError("a cluster without nodes has no least loaded one")
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
