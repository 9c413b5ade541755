"""A classic consumer's membership without I/O: events in, effects out, the clock as a number.

    Getters   state, member_id, generation_id, owned_partitions, is_leader, coordinator_node,
              subscription, next_poll_ms, next_deadline_ms
    Inputs    handle(event, now_ms), times never going back

The application's calls are events (Subscribe, Poll, Close). `Poll` is where callbacks happen and a
rebalance goes on, as in Kafka's consumer, while heartbeats follow the clock alone. The caller
sends every Send and says Answered or Failed; it calls `handle(Tick(), t)` when `next_deadline_ms()`
is `t`, and polls as its application does; `next_poll_ms()` says from when on a poll would change
something.
Nothing is random but the back-off, from `rng`.

Source   ConsumerCoordinator, AbstractCoordinator, Heartbeat of kafka-clients 4.4.0; section 7 of
         the behaviour.
"""

import random
import re

from kafka_rebalance.coordinator import FindCoordinator, Heartbeat, OffsetCommit
from kafka_rebalance.model import Topic

from . import answers, joining
from .config import ConsumerConfig
from .events import (
    Answered,
    Close,
    Failed,
    FetchMetadata,
    MemberEffect,
    MemberEvent,
    MetadataUpdated,
    Partitions,
    Poll,
    Subscribe,
    SubscribePattern,
    Tick,
    Unsubscribe,
    Vouched,
)
from .state import State
from .states import MemberState


class Consumer:
    """See the module."""

    def __init__(self, config: ConsumerConfig, *, rng: random.Random) -> None:
        self._state = State(config, rng, config.assignors())

    @property
    def config(self) -> ConsumerConfig:
        """The settings."""
        return self._state.config

    @property
    def state(self) -> MemberState:
        """Where it stands."""
        return self._state.state

    @property
    def member_id(self) -> str:
        """The id that the coordinator gave it, or nothing."""
        return self._state.generation.member_id

    @property
    def generation_id(self) -> int:
        """Its generation, -1 for none."""
        return self._state.generation.generation_id

    @property
    def owned_partitions(self) -> Partitions:
        """What it owns, in the assignment's order."""
        return self._state.owned

    @property
    def is_leader(self) -> bool:
        """Whether it led the last rebalance, and watches the topics of all."""
        return self._state.is_leader

    @property
    def coordinator_node(self) -> int | None:
        """The coordinator's node, None while it is not known."""
        return self._state.coordinator_node

    @property
    def subscription(self) -> frozenset[str]:
        """Topics; of a pattern, those that match now."""
        return self._state.subscription

    def is_idle(self) -> bool:
        """Whether nothing but heartbeats is to be done: then the host may vouch for it."""
        state = self._state
        return (
            state.state is MemberState.STABLE
            and state.fatal is None
            and not state.sent
            and state.coordinator_node is not None
            and not (joining.needs_rejoin(state) or state.is_joining())
        )

    def next_poll_ms(self) -> int | None:
        """From when on a poll would go on with a rebalance; None while it waits, or has none."""
        state = self._state
        if state.fatal is not None:
            return state.now_ms
        if not joining.is_subscribed(state):
            return None
        if not (joining.needs_rejoin(state) or state.is_joining()):
            return None
        if state.coordinator_node is None:
            return None if state.is_waiting_for(FindCoordinator) else state.retry_at_ms
        if state.arrived is not None:
            return state.now_ms
        if state.is_joining():
            return None
        if state.prepare_until_ms is not None and state.is_waiting_for(OffsetCommit):
            return state.prepare_until_ms
        return max(state.now_ms, state.retry_at_ms)

    def next_deadline_ms(self) -> int | None:
        """When to Tick: heartbeats, the session, the poll interval, requests that time out."""
        state = self._state
        due = [one.expires_ms for one in state.sent.values()]
        if state.heartbeat_at_ms is not None:
            if state.coordinator_node is not None:
                due += [state.heartbeat_at_ms, state.session_until_ms, state.poll_until_ms]
            elif not state.is_waiting_for(FindCoordinator):
                due.append(max(state.retry_at_ms, state.now_ms))
        return min(due, default=None)

    def next_heartbeat_ms(self) -> int | None:
        """When the next heartbeat goes out; None while there are none."""
        return self._state.heartbeat_at_ms

    def sees(self, topics: tuple[Topic, ...]) -> bool:
        """Whether this metadata is another than the one it has."""
        return tuple(self._state.topics.values()) != topics

    def handle(self, event: MemberEvent, now_ms: int) -> list[MemberEffect]:
        """One event. Errors: ValueError where time goes back."""
        state = self._state
        if now_ms < state.now_ms:
            raise ValueError(f"now_ms: {now_ms} is before {state.now_ms}")
        state.now_ms = now_ms
        effects: list[MemberEffect] = []
        state.effects = effects
        match event:
            case Poll(positions):
                _poll(state, dict(positions))
            case Tick():
                _tick(state)
            case Answered(number, response):
                sent = state.sent.pop(number, None)
                if sent is not None:
                    answers.answered(state, sent, response)
            case Failed(number):
                sent = state.sent.pop(number, None)
                if sent is not None:
                    answers.failed(state, sent)
            case Subscribe(topics):
                state.subscription, state.pattern = frozenset(topics), None
                effects.append(FetchMetadata())
            case SubscribePattern(pattern):
                state.pattern = pattern
                _match(state)
                effects.append(FetchMetadata())
            case MetadataUpdated(topics):
                state.topics = {topic.name: topic for topic in topics}
                _match(state)
            case Unsubscribe():
                _leave(state)
                state.subscription, state.pattern = frozenset(), None
            case Close():
                if state.config.enable_auto_commit and state.generation.is_known:
                    state.commit()
                _leave(state)
                state.subscription, state.pattern = frozenset(), None
            case Vouched(heartbeat_ms, polled_ms):
                state.heartbeat_at_ms = heartbeat_ms + state.config.heartbeat_interval_ms
                state.session_until_ms = heartbeat_ms + state.config.session_timeout_ms
                state.poll_until_ms = polled_ms + state.config.max_poll_interval_ms
        return effects


def _match(state: State) -> None:
    """A pattern's topics, anew."""
    if state.pattern is not None:
        matching = (name for name in state.topics if re.fullmatch(state.pattern, name))
        state.subscription = frozenset(matching)


def _leave(state: State) -> None:
    joining.give_up(state)
    state.leave()


def _poll(state: State, positions: dict) -> None:  # type: ignore[type-arg]
    if state.fatal is not None:
        state.effects.append(state.fatal)
        state.fatal = None
        return
    state.positions = positions
    state.poll_until_ms = state.now_ms + state.config.max_poll_interval_ms
    joining.go_on(state)
    if state.fatal is not None:
        state.effects.append(state.fatal)
        state.fatal = None
    elif (
        state.config.enable_auto_commit
        and state.state is MemberState.STABLE
        and not joining.needs_rejoin(state)
        and state.now_ms >= state.commit_at_ms
        and not state.is_waiting_for(OffsetCommit)
    ):
        state.commit_at_ms = state.now_ms + state.config.auto_commit_interval_ms
        state.commit()


def _tick(state: State) -> None:
    """The heartbeat thread, and requests that have waited too long."""
    for number, sent in list(state.sent.items()):
        if sent.expires_ms <= state.now_ms:
            del state.sent[number]
            answers.failed(state, sent)
    if state.heartbeat_at_ms is None:
        return
    if state.coordinator_node is None:
        state.find_coordinator()
    elif state.session_until_ms <= state.now_ms:
        # Nothing is given up: only the coordinator can end a session.
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
        state.send(request, state.config.request_timeout_ms)
