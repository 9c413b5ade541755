# SPDX-License-Identifier: Apache-2.0
"""A group member without I/O: it takes events and the time, and returns effects.

    Getters   state, member_id, generation_id, is_leader, coordinator_node, is_in_poll,
              reads_in_poll, is_idle, next_poll_ms, next_deadline_ms, next_heartbeat_ms
    Inputs    handle(event, now_ms), where `now_ms` never decreases

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


def needs_rejoin(state: Membership) -> bool:
    """Returns whether the member wants to be in a group, and has a reason to send JoinGroup."""
    role = state.role
    return (state.rejoin_needed or role.has_news(state)) and role.wants_in()


def go_on(state: Membership) -> None:
    """Takes all steps of a rebalance that one poll can take without waiting.

    1. rejoin?      yes if `rejoin_needed` is set, or the role has a reason
    2. coordinator  is looked up if it is unknown
    3. prepare      the role prepares, once for each rebalance
    4. JoinGroup    is sent with the role's protocols; `answers.joined` handles the response
    5. take         the role applies the assignment

    Source   AbstractCoordinator.joinGroupIfNeeded; docs/behaviour/member.md#3-poll,
             docs/behaviour/member.md#4-join.
    """
    while needs_rejoin(state) or state.is_joining():
        if state.coordinator_node is None:
            state.find_coordinator()
            return
        if state.arrived is not None:
            assignment, state.arrived = state.arrived, None
            if state.state is MemberState.STABLE and state.generation.is_known:
                try:
                    state.role.take(state, assignment)
                except WireError as error:
                    problem = f"the assignment cannot be read: {error}"
                    state.throw(ErrorCode.UNKNOWN_SERVER_ERROR, problem)
                    state.arrived = assignment  # kept, so that every later poll throws again
                state.needs_prepare = True
                if state.fatal is not None:
                    return
            else:
                state.reset(keep_id=False)
            continue
        if state.is_joining() or state.now_ms < state.retry_at_ms:
            return
        if state.needs_prepare:
            if not state.role.prepare(state):
                return
            state.needs_prepare = state.is_leader = False
        join(state)
        return


def join(state: Membership) -> None:
    config = state.config
    state.move(MemberState.PREPARING_REBALANCE)
    state.rejoin_needed = True
    request = JoinGroup(
        group_id=config.group_id,
        member_id=state.generation.member_id,
        group_instance_id=config.group_instance_id,
        session_timeout_ms=config.session_timeout_ms,
        rebalance_timeout_ms=config.rebalance_timeout_ms,
        protocol_type=state.role.protocol_type,
        protocols=state.role.protocols(state),
    )
    state.send(request, join_timeout_ms(config), _JOIN_VERSION)


def waits_in_poll(state: Membership) -> bool:
    """Returns whether poll() blocks until the coordinator is known or an eager commit has ended.

    Source   ConsumerCoordinator.poll, maybeMarkPartitionsPendingRevocation (nothing is fetched).
    """
    waits = state.coordinator_node is None or state.role.is_pending_revocation
    return waits and needs_rejoin(state)


def next_step_ms(state: Membership) -> int | None:
    """Returns when (ms) `go_on` can take its next step; None if an event must come first."""
    if state.coordinator_node is None:
        return None if state.is_waiting_for(FindCoordinator) else state.retry_at_ms
    if state.arrived is not None:
        return state.now_ms
    if state.is_joining():
        return None
    waits = state.role.prepares_until_ms(state)
    return max(state.now_ms, state.retry_at_ms) if waits is None else waits


class GroupMember:
    """The methods that consumers and workers share; the module's docstring explains their use."""

    def __init__(self, state: Membership) -> None:
        self._state = state

    @property
    def state(self) -> MemberState:
        return self._state.state

    @property
    def member_id(self) -> str:
        """Returns the id that the coordinator chose; an empty string if the member has none yet."""
        return self._state.generation.member_id

    @property
    def generation_id(self) -> int:
        return self._state.generation.generation_id

    @property
    def is_leader(self) -> bool:
        return self._state.is_leader

    @property
    def coordinator_node(self) -> int | None:
        """Returns the coordinator's node; None while the coordinator is unknown."""
        return self._state.coordinator_node

    @property
    def heartbeat_interval_ms(self) -> int:
        return self._state.config.heartbeat_interval_ms

    @property
    def poll_until_ms(self) -> int:
        return self._state.poll_until_ms

    @property
    def is_in_poll(self) -> bool:
        """Returns whether the last poll blocks; a poll that blocks returns no records.

        A poll blocks while it looks for the coordinator, or while an eager member commits. The
        caller polls again at `next_poll_ms`; until then, the application processes no records.
        """
        return self._state.poll_waits

    @property
    def reads_in_poll(self) -> bool:
        """Returns whether only polls read responses: in a join, the heartbeat thread is paused."""
        return self._state.state is MemberState.PREPARING_REBALANCE

    def is_idle(self) -> bool:
        """Returns whether nothing but heartbeats is due; the host may then send Vouched instead."""
        state = self._state
        return (
            state.state is MemberState.STABLE
            and state.fatal is None
            and not state.sent
            and state.coordinator_node is not None
            and not (needs_rejoin(state) or state.is_joining())
        )

    def next_poll_ms(self) -> int | None:
        """Returns when a poll can take the next step; None if an event must come first."""
        state = self._state
        if state.fatal is not None:
            return state.now_ms
        if not state.role.wants_in():
            return None
        if needs_rejoin(state) or state.is_joining():
            return next_step_ms(state)
        return state.role.next_settle_ms(state)

    def next_deadline_ms(self) -> int | None:
        """Returns when the host must call Tick: the earliest of the timers and timeouts."""
        state = self._state
        due = state.heartbeat_at_ms
        if due is not None:
            if state.coordinator_node is not None:
                due = min(due, state.session_until_ms, state.poll_until_ms)
            elif state.is_waiting_for(FindCoordinator):
                due = None
            else:
                due = max(state.retry_at_ms, state.now_ms)
        for one in state.sent.values():
            if due is None or one.expires_ms < due:
                due = one.expires_ms
        return due

    def next_heartbeat_ms(self) -> int | None:
        return self._state.heartbeat_at_ms

    def handle(self, event: MemberEvent, now_ms: int) -> list[MemberEffect]:
        """Handles one event. Errors: ValueError if `now_ms` decreases."""
        state = self._state
        effects = state.begin(now_ms)
        match event:
            case Poll():
                self._poll(event)
            case Tick():
                _tick(state)
            case Answered(number, response):
                if (sent := state.sent.pop(number, None)) is not None:
                    answers.answered(state, sent, response)
            case Failed(number):
                if (sent := state.sent.pop(number, None)) is not None:
                    answers.failed(state, sent)
            case Vouched(heartbeat_ms, polled_ms):
                state.heartbeat_at_ms = heartbeat_ms + state.config.heartbeat_interval_ms
                state.session_until_ms = heartbeat_ms + state.config.session_timeout_ms
                state.poll_until_ms = polled_ms + state.config.rebalance_timeout_ms
                state.heartbeat_failures = 0
            case Polled(at_ms):
                state.poll_until_ms = at_ms + state.config.rebalance_timeout_ms
            case _:
                self._handle_own(event)
        return effects

    def _handle_own(self, event: MemberEvent) -> None:
        raise TypeError(f"{type(self).__name__} takes no {type(event).__name__}")

    def _poll(self, event: Poll) -> None:
        state = self._state
        if state.fatal is None:
            state.poll_until_ms = state.now_ms + state.config.rebalance_timeout_ms
            go_on(state)
        if state.fatal is not None:
            state.effects.append(state.fatal)
            state.fatal = None
        elif not (needs_rejoin(state) or state.is_joining()):
            state.role.settle(state)
        state.poll_waits = waits_in_poll(state)

    def _leave(self) -> None:
        self._state.role.give_up(self._state)
        self._state.leave()


def _tick(state: Membership) -> None:
    """Runs the timers that are due: of requests, the session, the poll interval, the heartbeat."""
    for sent in state.expired():
        answers.failed(state, sent)
    if state.heartbeat_at_ms is None:
        return
    if state.coordinator_node is None:
        state.find_coordinator()
    elif state.session_until_ms <= state.now_ms:
        # The partitions are kept, because only the coordinator can end a session.
        state.forget_coordinator()
        state.find_coordinator()
    elif state.poll_until_ms <= state.now_ms:
        state.leave()
    elif state.heartbeat_at_ms <= state.now_ms:
        state.heartbeat_at_ms = state.now_ms + state.config.heartbeat_interval_ms
        request = Heartbeat(
            group_id=state.config.group_id,
            member_id=state.generation.member_id,
            generation_id=state.generation.generation_id,
            group_instance_id=state.config.group_instance_id,
        )
        state.send(request)
