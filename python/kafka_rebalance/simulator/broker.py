# SPDX-License-Identifier: Apache-2.0
"""The broker of a simulation: one coordinator, its log, and its node.

Every node responds to FindCoordinator. A node without the coordinator responds NOT_COORDINATOR to
all other requests. An append is durable after the network's `log_ms`. A node refuses commits for
partitions that do not exist; the coordinator stores the request's other offsets.

Source   KafkaApis.handleOffsetCommit (Kafka 4.4.0).
"""

from collections.abc import Callable
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import kafka_rebalance.coordinator.machine.events as c
from kafka_rebalance.coordinator.coordinator import Coordinator
from kafka_rebalance.frozen import Mutable
from kafka_rebalance.wire.broker_groups import ConsumerGroupHeartbeat
from kafka_rebalance.wire.classic_groups import (
    FindCoordinator,
    FindCoordinatorResponse,
    JoinGroup,
    LeaveGroup,
)
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import Request, Response
from kafka_rebalance.wire.offsets import OffsetCommit, OffsetCommitResponse, PartitionError

if TYPE_CHECKING:
    from kafka_rebalance.coordinator.consumer_group.group import ConsumerGroup

    from .journal import Entry


class Broker(Mutable):
    """The broker that coordinates the group.

    `has` returns whether a partition exists. `watch` receives each change of a classic group's
    state. The broker calls `look` after an append of records, because only records change the
    epochs of a consumer group.
    """

    coordinator: Coordinator
    has: Callable[[str, int], bool]
    watch: Callable[[int, c.Transition, str], None]
    respond: Callable[[int, Response], None]
    append: Callable[[c.Appended | c.PatternsDue], None]
    look: Callable[[int, str], None]
    journal: "list[Entry] | None"
    node: int | None = 0
    sender: str = ""  # the process whose request is being handled
    is_touched: bool = False  # the coordinator handled an event, so its deadlines may differ
    log: list[c.LogEntry] = field(default_factory=list)
    refused: dict[int, tuple[PartitionError, ...]] = field(default_factory=dict)
    moves: int = 0  # how often another node became the coordinator; also the newest node's number

    def receive(self, node: int | None, event: c.Received, sender: str, now_ms: int) -> None:
        request = event.request
        if isinstance(request, FindCoordinator):
            self.respond(event.request_id, self._found())
        elif node != self.node:
            self.respond(event.request_id, request.refused(ErrorCode.NOT_COORDINATOR))
        else:
            if isinstance(request, OffsetCommit) and request.offsets:
                event, request = self._without_unknown(event, request)
                if not request.offsets:
                    number = event.request_id
                    self.respond(number, self._whole(number, OffsetCommitResponse()))
                    return
            self.sender = sender
            self.handle(event, now_ms, self._cause(request, sender))
            self.sender = ""

    def _without_unknown(
        self, event: c.Received, request: OffsetCommit
    ) -> tuple[c.Received, OffsetCommit]:
        """Returns the commit without nonexistent partitions; `_whole` adds errors for them."""
        unknown = [one for one in request.offsets if not self.has(one.topic, one.partition)]
        if not unknown:
            return event, request
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        self.refused[event.request_id] = tuple(
            PartitionError(one.topic, one.partition, error) for one in unknown
        )
        known = tuple(one for one in request.offsets if self.has(one.topic, one.partition))
        request = replace(request, offsets=known)
        return replace(event, request=request), request

    def _whole(self, number: int, response: Response) -> Response:
        refused = self.refused.pop(number, ())
        if not (refused and isinstance(response, OffsetCommitResponse)):
            return response
        return replace(response, partitions=(*refused, *response.partitions))

    def _found(self) -> Response:
        if self.node is None:
            return FindCoordinatorResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return FindCoordinatorResponse(node_id=self.node)

    def _cause(self, request: Request, sender: str) -> str:
        if isinstance(request, LeaveGroup):
            return f"{sender} leaves"
        if isinstance(request, JoinGroup):
            group = self.coordinator.classic_group(request.group_id)
            known = group is not None and (
                request.member_id in group.members
                or request.group_instance_id in group.static_members
            )
            return f"{sender} {'rejoins' if known else 'joins'}"
        if isinstance(request, ConsumerGroupHeartbeat):
            return self._cause_of_heartbeat(request, sender)
        return f"{sender} answers"

    def _cause_of_heartbeat(self, request: ConsumerGroupHeartbeat, sender: str) -> str:
        if request.member_epoch < 0:
            return f"{sender} leaves"
        if request.member_epoch > 0:
            return "the topics changed"
        group: Any = self.coordinator.groups().get(request.group_id)
        known = group is not None and (
            request.member_id in group.members or request.instance_id in group.static_members
        )
        return f"{sender} {'rejoins' if known else 'joins'}"

    def consumer_group(self, group_id: str) -> "ConsumerGroup | None":
        """Returns the consumer group (KIP-848) with this id; None if there is none."""
        group: Any = self.coordinator.groups().get(group_id)
        return None if group is None or group.group_type == "classic" else group

    def leave_node(self, now_ms: int) -> None:
        self.handle(c.Unloaded(), now_ms, "the coordinator moves")
        self.node = None

    def take_node(self, now_ms: int) -> None:
        self.moves += 1
        self.node = self.moves
        self.handle(c.Loaded(tuple(self.log)), now_ms, "the coordinator moves")

    def handle(self, event: c.CoordinatorEvent, now_ms: int, cause: str = "") -> None:
        """Passes an event to the coordinator; `cause` explains a rebalance that it starts."""
        effects = self.coordinator.handle(event, now_ms)
        self.is_touched = True
        if self.journal is not None:
            from .journal import CoordinatorEntry

            self.journal.append(CoordinatorEntry(now_ms, event, tuple(effects)))
        has_written = False
        for effect in effects:
            match effect:
                case c.Respond():
                    number = effect.request_id
                    self.respond(number, self._whole(number, effect.response))
                case c.Append(append_id, records):
                    position = len(self.log)
                    self.log += (c.LogEntry(position + i, *one) for i, one in enumerate(records))
                    self.append(c.Appended(append_id, position))
                    has_written = True
                case c.PatternsDue():
                    self.append(effect)
                case c.Transition():
                    self.watch(now_ms, effect, cause)
                case c.Expired(key):
                    cause = f"{key.member_id or 'somebody'}{_EXPIRED[key.kind]}"
                case _:
                    pass
        if has_written:
            self.look(now_ms, cause)


_EXPIRED = {
    "heartbeat": "'s session ended",
    "session-timeout": "'s session ended",
    "rebalance-timeout": " revoked too late",
    "sync": " synced too late",
    "join": "",
}
