# SPDX-License-Identifier: Apache-2.0
"""A consumer with `group.protocol=consumer`: it takes events and the time, and returns effects.

    Getters   state, member_id, generation_id, owned_partitions, is_idle, next_poll_ms,
              next_deadline_ms, next_heartbeat_ms
    Inputs    handle(event, now_ms), where `now_ms` never decreases

The caller sends every Send and reports Answered or Failed, calls `handle(Tick(), t)` when
`next_deadline_ms()` is `t`, and polls. After Revoked, Assigned or Lost in a poll it reports
CallbackCompleted when the callback has returned; heartbeats continue meanwhile. A callback of
Unsubscribe or Close is not reported: these calls wait for it. Only the member id and the back-offs
are random; `rng` chooses them.

With `client_library` "librdkafka", the consumer reconciles as librdkafka does (`reconciliation`).

Source   AsyncKafkaConsumer, ConsumerMembershipManager, ConsumerHeartbeatRequestManager (Kafka
         4.4.0); docs/behaviour/consumer-members.md; KIP-848.
"""

from dataclasses import KW_ONLY
from typing import ClassVar, Literal

from kafka_rebalance.group.model import Topic, TopicPartition, uuid_of
from kafka_rebalance.wire.classic_groups import FindCoordinator
from kafka_rebalance.wire.messages import Tick
from kafka_rebalance.wire.offsets import OffsetCommit

from .. import interface
from ..states import NOT_IN_GROUP, ConsumerMemberState
from . import heartbeats, reconciliation
from .membership import AsyncMembership, Callback

_S = ConsumerMemberState


class AsyncConsumer(AsyncMembership):
    """A consumer in a broker-assigned group; the module's docstring explains its use."""

    _: KW_ONLY
    kind: ClassVar[Literal["async"]] = "async"
    reads_in_poll: ClassVar[bool] = False  # the background thread reads responses
    matches_before_joining: ClassVar[bool] = False  # the coordinator resolves patterns
    metadata: tuple[Topic, ...] = ()

    @property
    def generation_id(self) -> int:
        """Returns the member epoch; -1 outside of a group."""
        return self.member_epoch if self.member_epoch > 0 else -1

    @property
    def is_in_poll(self) -> bool:
        """Returns whether the last poll is still running, with callbacks left to run.

        In librdkafka, a poll that has revoked partitions continues until it has assigned new ones.
        """
        running = self.reconciliation
        is_between = self.is_librdkafka and running is not None and running.has_revoked
        return self.callbacks_in_poll > 0 or is_between

    @property
    def misses_topics(self) -> bool:
        """Returns whether the metadata lack a topic that is subscribed or assigned."""
        unknown = self.subscription - set(self.topics.values())
        return bool(unknown) or self.misses_names

    @property
    def misses_names(self) -> bool:
        """Returns whether the metadata lack an assigned topic id; they are requested at once."""
        known = self.names.keys() | self.topics.keys()
        return any(topic not in known for topic in self.target.partitions)

    def sees(self, topics: tuple[Topic, ...]) -> bool:
        return self.metadata != topics

    def is_idle(self) -> bool:
        """Returns whether nothing but heartbeats is due; the host may then send Vouched instead."""
        is_at_work = self.sent or self.callbacks or self.running or self.reconciliation
        return (
            self.state is _S.STABLE
            and self.coordinator_node is not None
            and self.fatal is None
            and not is_at_work
            and not heartbeats.has_news(self)
        )

    def next_poll_ms(self) -> int | None:
        """Returns when a poll can take the next step; None if an event must come first."""
        if self.running is not None:
            return None  # the application is in the callback
        joins = self.state is _S.UNSUBSCRIBED and self.is_subscription_new
        is_stale = self.state is _S.STALE and not self.rejoins_when_released
        waits = joins or is_stale or self.fatal is not None or bool(self.callbacks)
        return self.now_ms if waits or reconciliation.needs_poll(self) else None

    def next_deadline_ms(self) -> int | None:
        """Returns when the host must call Tick: the earliest of the timers and timeouts."""
        due = [one.expires_ms for one in self.sent.values()]
        if self.coordinator_node is None:
            if self._wants_node() and not self.is_waiting_for(FindCoordinator):
                due.append(max(self.find_at_ms, self.now_ms))
            return min(due, default=None)
        beat = heartbeats.due_ms(self)
        if beat is not None:
            due.append(beat)
        if self.state not in NOT_IN_GROUP:
            due.append(self.poll_until_ms)
        running = self.reconciliation
        if running is not None and running.commit_at_ms is not None:
            due.append(max(running.commit_at_ms, self.now_ms))
        return min(due, default=None)

    def next_heartbeat_ms(self) -> int | None:
        """Returns when the next regular heartbeat is due; None outside of a group."""
        return None if self.state in NOT_IN_GROUP else self.heartbeat_at_ms

    def handle(self, event: interface.MemberEvent, now_ms: int) -> list[interface.MemberEffect]:
        effects = self.begin(now_ms)
        match event:
            case interface.Poll(positions):
                self._poll(dict(positions))
                return effects
            case Tick():
                for sent in self.expired():
                    heartbeats.failed(self, sent)
            case interface.Answered(number, response):
                if (answered := self.sent.pop(number, None)) is not None:
                    heartbeats.answered(self, answered, response)
            case interface.Failed(number):
                if (failed := self.sent.pop(number, None)) is not None:
                    heartbeats.failed(self, failed)
            case interface.CallbackCompleted():
                running, self.running = self.running, None
                if running is not None:
                    reconciliation.returned(self, running)
            case interface.Vouched(heartbeat_ms, polled_ms):
                self.heartbeat_at_ms = heartbeat_ms + self.heartbeat_interval_ms
                self.poll_until_ms = polled_ms + self.config.max_poll_interval_ms
                return effects
            case interface.Polled(at_ms):
                if self.state is not _S.STALE:  # a STALE member joins again at its next poll
                    self.poll_until_ms = at_ms + self.config.max_poll_interval_ms
                return effects
            case interface.Subscribe(topics):
                self._subscribe(frozenset(topics), None)
            case interface.SubscribePattern(pattern):
                self._subscribe(frozenset(), pattern)
            case interface.MetadataUpdated(topics):
                self.metadata = topics
                known = ((one.topic_id, one.name) for one in topics)
                self.topics = {uuid_of(topic): name for topic, name in known if topic is not None}
            case interface.Unsubscribe() | interface.Close():
                self._leave(commits=isinstance(event, interface.Close))
            case _:
                raise TypeError(f"an AsyncConsumer takes no {type(event).__name__}")
        self._run_background()
        return effects

    # The application's thread ---------------------------------------------------------------------

    def _subscribe(self, topics: frozenset[str], pattern: str | None) -> None:
        self.subscription, self.pattern = topics, pattern
        self.is_subscription_new = True
        self.effects.append(interface.FetchMetadata())

    def _poll(self, positions: dict[TopicPartition, int]) -> None:
        self.positions = positions
        was_late = self.poll_until_ms <= self.now_ms
        self.poll_until_ms = self.now_ms + self.config.max_poll_interval_ms
        due = self._next_callback()
        if self.is_subscription_new and self.state is _S.UNSUBSCRIBED:
            self.is_subscription_new = False
            self.join()
        if was_late and self.state is _S.STALE:
            self.rejoins_when_released = True
            if due is None and not self.is_releasing():
                self.released()
        reconciliation.reconcile(self, is_poll=True)
        self._commit()
        self._run_background()
        if self.fatal is not None:
            self.effects.append(self.fatal)
            self.fatal = None
        if due is not None:
            self.running = due
            self.effects.append(due.effect)

    def _next_callback(self) -> Callback | None:
        """Removes and returns the next callback, or None; one poll runs the callbacks that waited
        when it began.
        """
        if not self.callbacks or self.running is not None:
            return None
        if not self.callbacks_in_poll:
            self.callbacks_in_poll = len(self.callbacks)
        self.callbacks_in_poll -= 1
        return self.callbacks.popleft()

    def _commit(self) -> None:
        config = self.config
        due = self.now_ms >= self.commit_at_ms and not self.is_waiting_for(OffsetCommit)
        if config.enable_auto_commit and due and self.owned_partitions:
            self.commit_at_ms = self.now_ms + config.auto_commit_interval_ms
            reconciliation.commit(self, self.owned_partitions)

    def _leave(self, *, commits: bool) -> None:
        """Gives up all partitions, and leaves the group; callbacks that still wait are dropped."""
        if commits and self.config.enable_auto_commit and self.member_epoch > 0:
            reconciliation.commit(self, self.owned_partitions)
        self.callbacks.clear()
        self.callbacks_in_poll = 0
        self.running = self.reconciliation = None
        in_group = self.state not in NOT_IN_GROUP
        if owned := self.owned_partitions:
            sure = in_group and self.member_epoch > 0
            self.effects.append(interface.Revoked(owned) if sure else interface.Lost(owned))
        if in_group:
            self.move(_S.PREPARE_LEAVING)
        elif self.state is _S.FENCED:
            self.move(_S.UNSUBSCRIBED)
        self.clear_assignment()
        if in_group:
            heartbeats.prepare_to_send_leave(self)
        self.subscription, self.pattern = frozenset(), None
        self.is_subscription_new = False

    # The background thread ------------------------------------------------------------------------

    def _run_background(self) -> None:
        wants_node = self.coordinator_node is None and self._wants_node()
        if wants_node and self.now_ms >= self.find_at_ms:
            self.find_coordinator()
        reconciliation.reconcile(self, is_poll=False)
        reconciliation.go_on(self)
        heartbeats.beat(self)
        # The background thread runs again: after an acknowledgement, a reconciliation can start.
        reconciliation.reconcile(self, is_poll=False)

    def _wants_node(self) -> bool:
        return bool(self.subscription) or self.pattern is not None
