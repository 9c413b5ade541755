# SPDX-License-Identifier: Apache-2.0
"""Clients ask for metadata at the maximal age, sooner if a topic is missing, or in a poll.

    age       every `metadata.max.age.ms`; the first time is drawn
    missing   a client that subscribes to a missing topic asks after `retry.backoff.max.ms`
    broker    clients that were connected to a broker that goes down or returns ask at once
    pattern   with a pattern, a poll that joins asks first
    leader    a leader asks before it assigns topics that it does not subscribe to

Source   Metadata.handleMetadataResponse (UNKNOWN_TOPIC_OR_PARTITION asks for an update),
         NetworkClient.handleServerDisconnect, ConsumerCoordinator.poll, updateGroupSubscription.
"""

import random
from collections.abc import Callable, Mapping

from kafka_rebalance.member import Consumer, MetadataUpdated
from kafka_rebalance.member.leading import subscribed_topics
from kafka_rebalance.protocol import JoinGroupResponse

from .agenda import Agenda
from .cluster import SimulatedCluster
from .process import Process
from .scheduled import Refresh


class Metadata:
    """Decides when clients ask for metadata, and sends it to them.

    `deliver` sends metadata to a process; the agenda has its next Refresh.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        processes: Mapping[str, Process],
        rng: random.Random,
        agenda: Agenda,
        deliver: Callable[[Process, MetadataUpdated], None],
    ) -> None:
        self._cluster = cluster
        self._processes = processes
        self._rng = rng
        self._agenda = agenda
        self._deliver = deliver

    def start(self, process: Process, now_ms: int) -> None:
        """A client has started with the current metadata: arms its first Refresh."""
        consumer = process.member
        assert isinstance(consumer, Consumer)
        at = now_ms + 1 + self._rng.randrange(consumer.config.metadata_max_age_ms)
        self._arm_refresh(process, min(at, self._next_ms(consumer, now_ms)))

    def refresh(self, process: Process, incarnation: int, now_ms: int) -> None:
        """A client asks for metadata; arms its next Refresh."""
        consumer = process.member
        if process.incarnation == incarnation and isinstance(consumer, Consumer):
            self._update(process, now_ms)
            self._arm_refresh(process, self._next_ms(consumer, now_ms))

    def refresh_soon(self, now_ms: int) -> None:
        """Lets every client ask within the longest back-off."""
        for process in self._processes.values():
            if isinstance(process.member, Consumer):
                spread = process.member.config.retry_backoff_max_ms
                self._arm_refresh(process, now_ms + 1 + self._rng.randrange(spread))

    def refresh_early(self, process: Process, now_ms: int) -> None:
        """Lets a client that misses a topic of its subscription ask before the maximal age."""
        consumer = process.member
        if isinstance(consumer, Consumer) and consumer.misses_topics:
            at = self._next_ms(consumer, now_ms)
            armed = self._agenda.timer_ms(process.name, Refresh)
            if armed is None or armed >= at:
                self._arm_refresh(process, at)

    def match_anew(self, process: Process, now_ms: int) -> None:
        """Lets a client with a pattern ask for metadata, before a poll that joins."""
        if isinstance(process.member, Consumer) and process.member.matches_before_joining:
            self._update(process, now_ms)

    def learn_topics(self, process: Process, response: JoinGroupResponse, now_ms: int) -> None:
        """Lets a leader ask before it assigns, if members have topics outside its subscription."""
        consumer = process.member
        if (
            isinstance(consumer, Consumer)
            and response.leader == response.member_id
            and consumer.sees(self._cluster.metadata(now_ms))
            and not subscribed_topics(response.members) <= consumer.subscription
        ):
            self._update(process, now_ms)

    def _update(self, process: Process, now_ms: int) -> None:
        """Sends the cluster's metadata to a client, if it differs from the client's own."""
        consumer, metadata = process.member, self._cluster.metadata(now_ms)
        if not isinstance(consumer, Consumer) or not self._cluster.is_reachable():
            return
        if consumer.sees(metadata):
            self._deliver(process, MetadataUpdated(metadata))

    def _next_ms(self, consumer: Consumer, now_ms: int) -> int:
        config = consumer.config
        soon = consumer.misses_topics or not self._cluster.is_reachable()
        return now_ms + (config.retry_backoff_max_ms if soon else config.metadata_max_age_ms)

    def _arm_refresh(self, process: Process, at: int) -> None:
        self._agenda.arm(at, Refresh(process.name, process.incarnation))
