# SPDX-License-Identifier: Apache-2.0
"""A group member without I/O: it takes events and the time, and returns effects.

    Getters   state, member_id, generation_id, is_leader, coordinator_node, is_in_poll,
              reads_in_poll, is_idle, next_poll_ms, next_deadline_ms, next_heartbeat_ms
    Inputs    handle(event, now_ms), where `now_ms` never decreases; nothing else changes a member

The caller sends every Send and reports Answered or Failed, calls `handle(Tick(), t)` when
`next_deadline_ms()` is `t`, and polls; before `next_poll_ms()` a poll takes no step of a rebalance.
As in Kafka's clients, callbacks and the steps of a rebalance happen in `Poll`; heartbeats depend
only on the clock. Only the back-off is random; `rng` chooses it.

Source   AbstractCoordinator, Heartbeat of kafka-clients 4.4.0; docs/behaviour/member.md.
"""

from kafka_rebalance.errors import WireError
from kafka_rebalance.wire.classic_groups import FindCoordinator, Heartbeat, JoinGroup
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import Tick

from . import answers
from .config import join_timeout_ms
from .interface import Answered, Failed, MemberEffect, MemberEvent, Poll, Polled, Vouched
from .membership import Membership
from .states import MemberState

_JOIN_VERSION = 9


class GroupMember(Membership):
    """The methods that consumers and workers share; the module's docstring explains their use."""

    @property
    def member_id(self) -> str:
        """Returns the id that the coordinator chose; an empty string if the member has none yet."""
        return self.generation.member_id

    @property
    def generation_id(self) -> int:
        return self.generation.generation_id

    @property
    def heartbeat_interval_ms(self) -> int:
        return self.config.heartbeat_interval_ms

    @property
    def reads_in_poll(self) -> bool:
        """Returns whether only polls read responses: a JoinGroup pauses the heartbeat thread."""
        return self.state is MemberState.PREPARING_REBALANCE

    def is_idle(self) -> bool:
        """Returns whether nothing but heartbeats is due; the host may then send Vouched instead."""
        return (
            self.state is MemberState.STABLE
            and self.fatal is None
            and not self.sent
            and self.coordinator_node is not None
            and not self.is_rebalancing()
        )

    def next_poll_ms(self) -> int | None:
        """Returns when a poll can take the next step; None if an event must come first."""
        if self.fatal is not None:
            return self.now_ms
        if not self.wants_in():
            return None
        return self._next_step_ms() if self.is_rebalancing() else self.next_settle_ms()

    def _next_step_ms(self) -> int | None:
        """Returns when (ms) `_go_on` can take its next step; None if an event must come first."""
        if self.coordinator_node is None:
            return None if self.is_waiting_for(FindCoordinator) else self.retry_at_ms
        if self.arrived is not None:
            return self.now_ms
        if self.is_joining():
            return None
        waits = self.prepares_until_ms()
        return max(self.now_ms, self.retry_at_ms) if waits is None else waits

    def next_deadline_ms(self) -> int | None:
        """Returns when the host must call Tick: the earliest of the timers and timeouts."""
        due = self.heartbeat_at_ms
        if due is not None:
            if self.coordinator_node is not None:
                due = min(due, self.session_until_ms, self.poll_until_ms)
            elif self.is_waiting_for(FindCoordinator):
                due = None
            else:
                due = max(self.retry_at_ms, self.now_ms)
        for one in self.sent.values():
            if due is None or one.expires_ms < due:
                due = one.expires_ms
        return due

    def next_heartbeat_ms(self) -> int | None:
        return self.heartbeat_at_ms

    def handle(self, event: MemberEvent, now_ms: int) -> list[MemberEffect]:
        """Handles one event. Errors: ValueError if `now_ms` decreases."""
        effects = self.begin(now_ms)
        match event:
            case Poll():
                self._poll(event)
            case Tick():
                self._tick()
            case Answered(number, response):
                if (sent := self.sent.pop(number, None)) is not None:
                    answers.answered(self, sent, response)
            case Failed(number):
                if (sent := self.sent.pop(number, None)) is not None:
                    answers.failed(self, sent)
            case Vouched(heartbeat_ms, polled_ms):
                self.heartbeat_at_ms = heartbeat_ms + self.config.heartbeat_interval_ms
                self.session_until_ms = heartbeat_ms + self.config.session_timeout_ms
                self.poll_until_ms = polled_ms + self.config.rebalance_timeout_ms
                self.heartbeat_failures = 0
            case Polled(at_ms):
                self.poll_until_ms = at_ms + self.config.rebalance_timeout_ms
            case _:
                self._handle_own(event)
        return effects

    def _handle_own(self, event: MemberEvent) -> None:
        raise TypeError(f"{type(self).__name__} takes no {type(event).__name__}")

    def _poll(self, event: Poll) -> None:
        if self.fatal is None:
            self.poll_until_ms = self.now_ms + self.config.rebalance_timeout_ms
            self._go_on()
        if self.fatal is not None:
            self.effects.append(self.fatal)
            self.fatal = None
        elif not self.is_rebalancing():
            self.settle()
        self.is_in_poll = self._waits_in_poll()

    def _waits_in_poll(self) -> bool:
        """Returns whether poll() blocks: it looks for the coordinator, or an eager member commits.

        A poll that blocks returns no records. The caller polls again at `next_poll_ms`; until then,
        the application processes no records.

        Source   ConsumerCoordinator.poll, maybeMarkPartitionsPendingRevocation.
        """
        waits = self.coordinator_node is None or self.is_pending_revocation
        return waits and self.needs_rejoin()

    def _go_on(self) -> None:
        """Takes all steps of a rebalance that one poll can take without waiting.

        1. rejoin?      yes if `rejoin_needed` is set, or `has_news` returns a reason
        2. coordinator  is looked up if it is unknown
        3. prepare      once for each rebalance
        4. JoinGroup    is sent with the protocols; `answers.joined` handles the response
        5. take         applies the assignment

        Source   AbstractCoordinator.joinGroupIfNeeded; docs/behaviour/member.md#3-poll,
                 docs/behaviour/member.md#4-join.
        """
        while self.is_rebalancing():
            if self.coordinator_node is None:
                self.find_coordinator()
                return
            if self.arrived is not None:
                assignment, self.arrived = self.arrived, None
                if self.state is MemberState.STABLE and self.generation.is_known:
                    try:
                        self.take(assignment)
                    except WireError as error:
                        problem = f"the assignment cannot be read: {error}"
                        self.throw(ErrorCode.UNKNOWN_SERVER_ERROR, problem)
                        self.arrived = assignment  # kept, so that every later poll throws again
                    self.needs_prepare = True
                    if self.fatal is not None:
                        return
                else:
                    self.reset(keep_id=False)
                continue
            if self.is_joining() or self.now_ms < self.retry_at_ms:
                return
            if self.needs_prepare:
                if not self.prepare():
                    return
                self.needs_prepare = self.is_leader = False
            self._join()
            return

    def _join(self) -> None:
        config = self.config
        self.move(MemberState.PREPARING_REBALANCE)
        self.rejoin_needed = True
        request = JoinGroup(
            group_id=config.group_id,
            member_id=self.member_id,
            group_instance_id=config.group_instance_id,
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=config.rebalance_timeout_ms,
            protocol_type=self.protocol_type,
            protocols=self.protocols(),
        )
        self.send(request, join_timeout_ms(config), _JOIN_VERSION)

    def _leave(self) -> None:
        self.give_up()
        self.leave()

    def _tick(self) -> None:
        """Fails expired requests; then runs one due timer: session, poll interval or heartbeat."""
        for sent in self.expired():
            answers.failed(self, sent)
        if self.heartbeat_at_ms is None:
            return
        if self.coordinator_node is None:
            self.find_coordinator()
        elif self.session_until_ms <= self.now_ms:
            # The partitions are kept, because only the coordinator can end a session.
            self.forget_coordinator()
            self.find_coordinator()
        elif self.poll_until_ms <= self.now_ms:
            self.leave()
        elif self.heartbeat_at_ms <= self.now_ms:
            self.heartbeat_at_ms = self.now_ms + self.config.heartbeat_interval_ms
            request = Heartbeat(
                group_id=self.config.group_id,
                member_id=self.member_id,
                generation_id=self.generation_id,
                group_instance_id=self.config.group_instance_id,
            )
            self.send(request)
