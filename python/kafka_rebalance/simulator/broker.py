# SPDX-License-Identifier: Apache-2.0
"""The broker of a simulation: one coordinator, its log, and its node.

Requests arrive at a node; only the coordinator's node answers them. Appends take the network's
`log_ms`. Each Transition of the group is reported to `watch(now_ms, transition, cause)`.
"""

from collections.abc import Callable

from kafka_rebalance.coordinator import (
    Append,
    Appended,
    Coordinator,
    CoordinatorConfig,
    CoordinatorEvent,
    Effect,
    Expired,
    Heard,
    Loaded,
    LogEntry,
    Received,
    Respond,
    Silent,
    Transition,
    Unloaded,
)
from kafka_rebalance.coordinator.refusals import refuse
from kafka_rebalance.protocol import (
    ErrorCode,
    FindCoordinator,
    FindCoordinatorResponse,
    JoinGroup,
    LeaveGroup,
    Request,
    Response,
    Tick,
)

from .journal import CoordinatorEntry, Entry

Watch = Callable[[int, Transition, str], None]


class Broker:
    """The broker. Getters: node, sender, coordinator, next_deadline_ms. Inputs: receive, tick, …"""

    def __init__(
        self,
        config: CoordinatorConfig,
        new_id: Callable[[], str],
        watch: Watch,
        respond: Callable[[int, Response], None],
        append: Callable[[Appended], None],
        journal: list[Entry] | None,
    ) -> None:
        self.node: int | None = 0
        self.sender = ""  # the process whose request is being handled
        self.coordinator = Coordinator(config, new_id, vouched=True)
        self._watch = watch
        self._respond = respond
        self._append = append
        self._journal = journal
        self._log: list[LogEntry] = []
        self._nodes = 0

    def next_deadline_ms(self) -> int | None:
        """Returns when to call `tick` next."""
        return self.coordinator.next_deadline_ms()

    def receive(self, node: int | None, event: Received, sender: str, now_ms: int) -> None:
        """Receives a request at a node."""
        request = event.request
        if isinstance(request, FindCoordinator):
            self._respond(event.request_id, self._found())
        elif node != self.node:
            self._respond(event.request_id, refuse(request, ErrorCode.NOT_COORDINATOR))
        else:
            self.sender = sender
            self._handle(event, now_ms, self._cause(request, sender))
            self.sender = ""

    def _found(self) -> Response:
        if self.node is None:
            return FindCoordinatorResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return FindCoordinatorResponse(node_id=self.node)

    def _cause(self, request: Request, sender: str) -> str:
        if isinstance(request, LeaveGroup):
            return f"{sender} leaves"
        if isinstance(request, JoinGroup):
            group = self.coordinator.groups().get(request.group_id)
            known = group is not None and (
                group.has(request.member_id) or request.group_instance_id in group.static_members
            )
            return f"{sender} {'rejoins' if known else 'joins'}"
        return f"{sender} answers"

    def tick(self, now_ms: int) -> None:
        """Runs the deadlines that are due."""
        self._handle(Tick(), now_ms, "time is up")

    def appended(self, event: Appended, now_ms: int) -> None:
        """Takes a durable append; ignores one from before the coordinator moved."""
        self._handle(event, now_ms, "the log answers")

    def silent(self, group_id: str, member_id: str, since_ms: int, now_ms: int) -> None:
        """Reports a member as silent since `since_ms`."""
        self._handle(Silent(group_id, member_id, since_ms), now_ms, "")

    def heard(self, group_id: str, member_id: str, now_ms: int) -> None:
        """Reports that a silent member sends heartbeats again."""
        self._handle(Heard(group_id, member_id), now_ms, "")

    def leave_node(self, now_ms: int) -> None:
        """Stops coordinating at this node, so that the group has no coordinator."""
        self._handle(Unloaded(), now_ms, "the coordinator moves")
        self.node = None

    def take_node(self, now_ms: int) -> None:
        """Starts to coordinate at another node, which has loaded the log."""
        self._nodes += 1
        self.node = self._nodes
        self._handle(Loaded(tuple(self._log)), now_ms, "the coordinator moves")

    def _handle(self, event: CoordinatorEvent, now_ms: int, cause: str) -> None:
        effects = self.coordinator.handle(event, now_ms)
        if self._journal is not None:
            self._journal.append(CoordinatorEntry(now_ms, event, tuple(effects)))
        for effect in effects:
            cause = self._carry_out(effect, now_ms, cause)

    def _carry_out(self, effect: Effect, now_ms: int, cause: str) -> str:
        match effect:
            case Respond(number, response):
                self._respond(number, response)
            case Append(append_id, records):
                position = len(self._log)
                for place, record in enumerate(records):
                    self._log.append(LogEntry(position + place, *record))
                self._append(Appended(append_id, position))
            case Transition():
                self._watch(now_ms, effect, cause)
            case Expired(key):
                what = {"heartbeat": "'s session ended", "sync": " synced too late", "join": ""}
                return f"{key.member_id or 'somebody'}{what[key.kind]}"
            case _:
                pass
        return cause
