# SPDX-License-Identifier: Apache-2.0
"""A consumer with `group.protocol=consumer`: it takes events and the time, and returns effects.

    Getters   state, member_id, generation_id, owned_partitions, is_idle, next_poll_ms,
              next_deadline_ms, next_heartbeat_ms
    Inputs    handle(event, now_ms), where `now_ms` never decreases

The caller sends every Send and reports Answered or Failed, calls `handle(Tick(), t)` when
`next_deadline_ms()` is `t`, and polls. After Revoked, Assigned or Lost in a poll it reports
CallbackCompleted when the callback has returned; heartbeats continue meanwhile. Unsubscribe and
Close themselves wait for their callback. Only the member id and back-offs are random, from `rng`.

With `client_library` "librdkafka", the consumer reconciles as librdkafka does (`reconciliation`).

Source   AsyncKafkaConsumer, ConsumerMembershipManager, ConsumerHeartbeatRequestManager (Kafka
         4.4.0); docs/behaviour/consumer-members.md; KIP-848.
"""

import random
from typing import Literal

from kafka_rebalance.group.model import Topic, TopicPartition, uuid_of
from kafka_rebalance.wire.classic_groups import FindCoordinator
from kafka_rebalance.wire.messages import Tick
from kafka_rebalance.wire.offsets import OffsetCommit

from .. import interface
from ..config import ConsumerConfig
from . import heartbeats, reconciliation
from .membership import AsyncMembership, Callback
from .states import NOT_IN_GROUP, ConsumerMemberState

_S = ConsumerMemberState


class AsyncConsumer:
    """A consumer in a broker-assigned group; the module's docstring explains its use."""

    kind: Literal["async"] = "async"
    reads_in_poll = False  # the background thread reads responses
    matches_before_joining = False  # the coordinator resolves patterns

    def __init__(self, config: ConsumerConfig, *, rng: random.Random, member_id: str = "") -> None:
        self._state = AsyncMembership(config, rng, member_id)
        self._metadata: tuple[Topic, ...] = ()

    @property
    def config(self) -> ConsumerConfig:
        return self._state.config

    @property
    def state(self) -> ConsumerMemberState:
        return self._state.state

    @property
    def member_id(self) -> str:
        """Returns the random id that the client chose once for all joins: 22 characters."""
        return self._state.member_id

    @property
    def generation_id(self) -> int:
        """Returns the member epoch; -1 outside a group."""
        return self._state.member_epoch if self._state.member_epoch > 0 else -1

    @property
    def owned_partitions(self) -> interface.Partitions:
        return self._state.owned

    @property
    def is_in_poll(self) -> bool:
        """Returns whether the last poll is still running, with callbacks left to run.

        In librdkafka, a poll that has revoked partitions continues until it has assigned new ones.
        """
        state = self._state
        running = state.reconciliation
        is_between = state.is_librdkafka and running is not None and running.has_revoked
        return state.callbacks_in_poll > 0 or is_between

    @property
    def subscription(self) -> frozenset[str]:
        return self._state.subscription

    @property
    def heartbeat_interval_ms(self) -> int:
        """Returns the interval that the coordinator sent; 0 before its first response."""
        return self._state.heartbeat_interval_ms

    @property
    def poll_until_ms(self) -> int:
        return self._state.poll_until_ms

    @property
    def misses_topics(self) -> bool:
        """Returns whether the metadata lack a topic that is subscribed or assigned."""
        state = self._state
        unknown = state.subscription - set(state.topics.values())
        return bool(unknown) or self.misses_names

    @property
    def misses_names(self) -> bool:
        """Returns whether the metadata lack an assigned topic id; they are requested at once."""
        return reconciliation.misses_names(self._state)

    def sees(self, topics: tuple[Topic, ...]) -> bool:
        return self._metadata != topics

    def is_idle(self) -> bool:
        """Returns whether nothing but heartbeats is due; the host may then send Vouched instead."""
        state = self._state
        is_at_work = state.sent or state.callbacks or state.running or state.reconciliation
        return (
            state.state is _S.STABLE
            and state.coordinator_node is not None
            and state.fatal is None
            and not is_at_work
            and not heartbeats.has_news(state)
        )

    def next_poll_ms(self) -> int | None:
        """Returns when a poll can take the next step; None if an event must come first."""
        state = self._state
        if state.running is not None:
            return None  # the application is in the callback
        joins = state.state is _S.UNSUBSCRIBED and state.is_subscription_new
        is_stale = state.state is _S.STALE and not state.rejoins_when_released
        waits = joins or is_stale or state.fatal is not None or bool(state.callbacks)
        return state.now_ms if waits or reconciliation.needs_poll(state) else None

    def next_deadline_ms(self) -> int | None:
        """Returns when the host must call Tick: the earliest of the timers and timeouts."""
        state = self._state
        due = [one.expires_ms for one in state.sent.values()]
        if state.coordinator_node is None:
            if self._wants_node() and not state.is_waiting_for(FindCoordinator):
                due.append(max(state.find_at_ms, state.now_ms))
            return min(due, default=None)
        beat = heartbeats.due_ms(state)
        if beat is not None:
            due.append(beat)
        if state.state not in NOT_IN_GROUP:
            due.append(state.poll_until_ms)
        running = state.reconciliation
        if running is not None and running.commit_at_ms is not None:
            due.append(max(running.commit_at_ms, state.now_ms))
        return min(due, default=None)

    def next_heartbeat_ms(self) -> int | None:
        """Returns when the next heartbeat of the interval is due; None outside a group."""
        state = self._state
        return None if state.state in NOT_IN_GROUP else state.heartbeat_at_ms

    def handle(self, event: interface.MemberEvent, now_ms: int) -> list[interface.MemberEffect]:
        state = self._state
        effects = state.begin(now_ms)
        match event:
            case interface.Poll(positions):
                self._poll(dict(positions))
                return effects
            case Tick():
                for sent in state.expired():
                    heartbeats.failed(state, sent)
            case interface.Answered(number, response):
                if (answered := state.sent.pop(number, None)) is not None:
                    heartbeats.answered(state, answered, response)
            case interface.Failed(number):
                if (failed := state.sent.pop(number, None)) is not None:
                    heartbeats.failed(state, failed)
            case interface.CallbackCompleted():
                running, state.running = state.running, None
                if running is not None:
                    reconciliation.returned(state, running)
            case interface.Vouched(heartbeat_ms, polled_ms):
                state.heartbeat_at_ms = heartbeat_ms + state.heartbeat_interval_ms
                state.poll_until_ms = polled_ms + state.config.max_poll_interval_ms
                return effects
            case interface.Polled(at_ms):
                if state.state is not _S.STALE:  # a STALE member joins again at its next poll
                    state.poll_until_ms = at_ms + state.config.max_poll_interval_ms
                return effects
            case interface.Subscribe(topics):
                self._subscribe(frozenset(topics), None)
            case interface.SubscribePattern(pattern):
                self._subscribe(frozenset(), pattern)
            case interface.MetadataUpdated(topics):
                self._metadata = topics
                known = ((one.topic_id, one.name) for one in topics)
                state.topics = {uuid_of(topic): name for topic, name in known if topic is not None}
            case interface.Unsubscribe() | interface.Close():
                self._leave(commits=isinstance(event, interface.Close))
            case _:
                raise TypeError(f"an AsyncConsumer takes no {type(event).__name__}")
        self._run_background()
        return effects

    # The application's thread ---------------------------------------------------------------------

    def _subscribe(self, topics: frozenset[str], pattern: str | None) -> None:
        state = self._state
        state.subscription, state.pattern = topics, pattern
        state.is_subscription_new = True
        state.effects.append(interface.FetchMetadata())

    def _poll(self, positions: dict[TopicPartition, int]) -> None:
        state, config = self._state, self._state.config
        state.positions = positions
        was_late = state.poll_until_ms <= state.now_ms
        state.poll_until_ms = state.now_ms + config.max_poll_interval_ms
        due = self._next_callback()
        if state.is_subscription_new and state.state is _S.UNSUBSCRIBED:
            state.is_subscription_new = False
            state.join()
        if was_late and state.state is _S.STALE:
            state.rejoins_when_released = True
            if due is None and not state.is_releasing():
                state.released()
        reconciliation.reconcile(state, is_poll=True)
        self._commit()
        self._run_background()
        if state.fatal is not None:
            state.effects.append(state.fatal)
            state.fatal = None
        if due is not None:
            state.running = due
            state.effects.append(due.effect)

    def _next_callback(self) -> Callback | None:
        """Removes and returns the next callback, if any; a poll runs those queued at its start."""
        state = self._state
        if not state.callbacks or state.running is not None:
            return None
        if not state.callbacks_in_poll:
            state.callbacks_in_poll = len(state.callbacks)
        state.callbacks_in_poll -= 1
        return state.callbacks.popleft()

    def _commit(self) -> None:
        state, config = self._state, self._state.config
        due = state.now_ms >= state.commit_at_ms and not state.is_waiting_for(OffsetCommit)
        if config.enable_auto_commit and due and state.owned:
            state.commit_at_ms = state.now_ms + config.auto_commit_interval_ms
            reconciliation.commit(state, state.owned)

    def _leave(self, *, commits: bool) -> None:
        """Gives up all partitions, and leaves the group; callbacks that still wait are dropped."""
        state = self._state
        if commits and state.config.enable_auto_commit and state.member_epoch > 0:
            reconciliation.commit(state, state.owned)
        state.callbacks.clear()
        state.callbacks_in_poll = 0
        state.running = state.reconciliation = None
        in_group = state.state not in NOT_IN_GROUP
        if state.owned:
            sure = in_group and state.member_epoch > 0
            state.effects.append(
                interface.Revoked(state.owned) if sure else interface.Lost(state.owned)
            )
        if in_group:
            state.move(_S.PREPARE_LEAVING)
        elif state.state is _S.FENCED:
            state.move(_S.UNSUBSCRIBED)
        state.clear_assignment()
        if in_group:
            heartbeats.prepare_to_send_leave(state)
        state.subscription, state.pattern = frozenset(), None
        state.is_subscription_new = False

    # The background thread ------------------------------------------------------------------------

    def _run_background(self) -> None:
        state = self._state
        if (
            state.coordinator_node is None
            and self._wants_node()
            and state.now_ms >= state.find_at_ms
        ):
            state.find_coordinator()
        reconciliation.reconcile(state, is_poll=False)
        reconciliation.go_on(state)
        heartbeats.beat(state)
        # The background thread runs again: after an acknowledgement, a reconciliation can start.
        reconciliation.reconcile(state, is_poll=False)

    def _wants_node(self) -> bool:
        state = self._state
        return bool(state.subscription) or state.pattern is not None
