# SPDX-License-Identifier: Apache-2.0
"""Decides when the simulated clients request metadata.

    age       each client does so every `metadata.max.age.ms`, first at a random time
    missing   a client does so every `retry.backoff.max.ms` while a subscribed topic is missing, or
              no broker answers
    deleted   clients that hold partitions of a deleted topic do so within `retry.backoff.max.ms`
    broker    when a broker leaves or returns, all clients do so within `retry.backoff.max.ms`
    pattern   a client that subscribes by pattern does so in each poll that joins, before the join
    leader    a leader does so before it assigns topics to which it does not subscribe
    ids       a member of a consumer group does so when it gets a topic whose id it does not know

Source   Metadata.handleMetadataResponse (UNKNOWN_TOPIC_OR_PARTITION asks for an update),
         FetchCollector.handleInitializeErrors (it answers a fetch, too),
         NetworkClient.handleServerDisconnect, ConsumerCoordinator.poll, updateGroupSubscription.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kafka_rebalance.member import AnyConsumer, AsyncConsumer, Consumer, MetadataUpdated
from kafka_rebalance.member.subscriber import subscribed_topics
from kafka_rebalance.wire.classic_groups import JoinGroupResponse

from .agenda import Agenda, Refresh
from .cluster import SimulatedCluster
from .process import Process


@dataclass(eq=False, slots=True)
class Metadata:
    """Decides when clients request metadata, and passes it to them with `deliver`."""

    cluster: SimulatedCluster
    processes: Mapping[str, Process]
    rng: random.Random
    agenda: Agenda
    deliver: Callable[[Process, MetadataUpdated], None]

    def start(self, process: Process, now_ms: int) -> None:
        consumer = process.member
        assert isinstance(consumer, AnyConsumer)
        at = now_ms + 1 + self.rng.randrange(consumer.config.metadata_max_age_ms)
        self._arm_refresh(process, min(at, self._next_ms(consumer, now_ms)))

    def refresh(self, process: Process, incarnation: int, now_ms: int) -> None:
        consumer = process.member
        if process.incarnation == incarnation and isinstance(consumer, AnyConsumer):
            self._update(process, now_ms)
            self._arm_refresh(process, self._next_ms(consumer, now_ms))

    def refresh_soon(self, now_ms: int, held: frozenset[str] | None = None) -> None:
        """Lets consumers request metadata, at some time within `retry.backoff.max.ms`.

        Without `held`, all consumers do so; else those that hold one of the partitions in it.
        """
        for process in self.processes.values():
            if held is not None and held.isdisjoint(process.held):
                continue
            if isinstance(process.member, AnyConsumer):
                spread = process.member.config.retry_backoff_max_ms
                self._arm_refresh(process, now_ms + 1 + self.rng.randrange(spread))

    def refresh_early(self, process: Process, now_ms: int) -> None:
        """Lets a client that lacks a subscribed topic request metadata before the maximum age."""
        consumer = process.member
        if isinstance(consumer, AnyConsumer) and consumer.misses_topics:
            at = self._next_ms(consumer, now_ms)
            if isinstance(consumer, AsyncConsumer) and consumer.misses_names:
                at = now_ms + 1  # it asks for metadata at once
            armed = self.agenda.timer_ms(process.name, Refresh)
            if armed is None or armed >= at:
                self._arm_refresh(process, at)

    def match_again(self, process: Process, now_ms: int) -> None:
        """Lets a client with a pattern request metadata, before a poll that sends JoinGroup."""
        if isinstance(process.member, Consumer) and process.member.matches_before_joining:
            self._update(process, now_ms)

    def learn_topics(self, process: Process, response: JoinGroupResponse, now_ms: int) -> None:
        """Lets a leader request metadata before it assigns topics outside its own subscription."""
        consumer = process.member
        if (
            isinstance(consumer, Consumer)
            and response.leader == response.member_id
            and consumer.sees(self.cluster.metadata(now_ms))
            and not subscribed_topics(response.members) <= consumer.subscription
        ):
            self._update(process, now_ms)

    def _update(self, process: Process, now_ms: int) -> None:
        consumer, metadata = process.member, self.cluster.metadata(now_ms)
        if not isinstance(consumer, AnyConsumer) or not self.cluster.is_reachable():
            return
        if consumer.sees(metadata):
            self.deliver(process, MetadataUpdated(metadata))

    def _next_ms(self, consumer: AnyConsumer, now_ms: int) -> int:
        config = consumer.config
        soon = consumer.misses_topics or not self.cluster.is_reachable()
        return now_ms + (config.retry_backoff_max_ms if soon else config.metadata_max_age_ms)

    def _arm_refresh(self, process: Process, at: int) -> None:
        self.agenda.arm(at, Refresh(process.name, process.incarnation))
