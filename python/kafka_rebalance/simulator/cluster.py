# SPDX-License-Identifier: Apache-2.0
"""Simulates the cluster as clients see it: topics, racks, brokers that leave; and when they look.

While a broker is away, no member reads the partitions that only this broker can lead. If the event
names the broker's rack, the metadata lack the rack of its replicas. A broker that has returned
responds to metadata requests before it has loaded its topics: for `unseen_ms` of the scenario's
event, its metadata do not contain them.

Source   KRaftMetadataCache (a broker publishes topics as it replays the log), MetadataResponse (a
         replica whose broker is not alive is a node without rack).
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from kafka_rebalance.coordinator.machine.events import ClusterTopic, TopicsChanged
from kafka_rebalance.frozen import Mutable
from kafka_rebalance.group.model import Topic, id_text, uuid_of
from kafka_rebalance.member.consumer import Consumer
from kafka_rebalance.member.interface import MetadataUpdated
from kafka_rebalance.member.subscriber import subscribed_topics
from kafka_rebalance.wire.classic_groups import JoinGroupResponse

from .agenda import Agenda
from .intervals import Holds
from .process import Process
from .scenario import Happening, Kind, Scenario

if TYPE_CHECKING:
    from .process import AnyConsumer


class SimulatedCluster:
    """The topics, and the brokers that are down; clients see both in their metadata."""

    def __init__(self, scenario: Scenario, holds: Holds, agenda: Agenda) -> None:
        created = {one.topic for one in scenario.happenings if one.kind is Kind.CREATE_TOPIC}
        self._plans = scenario.topics
        self._holds = holds
        self._agenda = agenda
        self._version = 0
        rng = random.Random(f"{scenario.seed} topic ids")
        self._ids = {
            name: plan.topic_id or id_text(rng.getrandbits(128).to_bytes(16, "big"))
            for name, plan in scenario.topics.items()
        }
        # A topic without a subscriber never counts as unread.
        self._wanted = {
            name for name in scenario.topics if any(one.wants(name) for one in scenario.members)
        }
        self.partitions: dict[str, int] = {}
        self._dark: Counter[str] = Counter()
        self._away: list[Happening] = []
        self._unseen_until: dict[str, int] = {}
        self._all_seen_ms = 0  # the latest time of `_unseen_until`
        self._topics: tuple[Topic, ...] | None = None  # all topics; None after a change
        for name in scenario.topics:
            if name not in created:
                self.create(name)

    def metadata(self) -> tuple[Topic, ...]:
        """Returns the topics in the metadata that a client receives now."""
        now_ms = self._agenda.now_ms
        if self._topics is None:
            self._topics = tuple(
                Topic(name, count, self._racks(name, count), self._ids[name])
                for name, count in self.partitions.items()
            )
        if now_ms >= self._all_seen_ms:
            return self._topics
        unseen = self._unseen_until
        return tuple(one for one in self._topics if unseen.get(one.name, 0) <= now_ms)

    def topics_changed(self) -> TopicsChanged:
        """Returns the topics as the coordinator learns them, with the racks of lost brokers."""
        self._version += 1
        return TopicsChanged(
            tuple(
                ClusterTopic(name, uuid_of(self._ids[name]), count, self._known_racks(name, count))
                for name, count in self.partitions.items()
            ),
            self._version,
        )

    def _known_racks(self, name: str, count: int) -> tuple[tuple[str, ...], ...]:
        racks = self._plans[name].racks or ((),)
        known = [tuple(one for one in each if one is not None) for each in racks]
        return tuple(known[number % len(known)] for number in range(count))

    def has(self, topic: str, partition: int) -> bool:
        return partition < self.partitions.get(topic, 0)

    def is_reachable(self) -> bool:
        """Returns whether any broker answers metadata requests."""
        return not any(one.is_whole_cluster for one in self._away)

    def _racks(self, name: str, count: int) -> tuple[tuple[str | None, ...], ...] | None:
        racks = self._plans[name].racks
        if racks is None:
            return None
        gone = {one.rack for one in self._away if one.rack}
        return tuple(
            tuple(None if rack in gone else rack for rack in racks[number % len(racks)])
            for number in range(count)
        )

    # Changes ------------------------------------------------------------------------------------

    def create(self, name: str) -> None:
        self.partitions[name] = 0
        self.grow(name, self._plans[name].partitions)

    def delete(self, name: str) -> frozenset[str]:
        """Deletes a topic. Returns the names of its partitions."""
        gone = frozenset(f"{name}-{number}" for number in range(self.partitions.pop(name)))
        for partition in gone:
            self._holds.disappear(partition, self._agenda.now_ms)
        self._topics = None
        return gone

    def grow(self, name: str, partitions: int) -> None:
        """Raises a topic's number of partitions to `partitions`; a topic never shrinks."""
        for number in range(self.partitions[name], partitions if name in self._wanted else 0):
            self._holds.appear(f"{name}-{number}", self._agenda.now_ms)
        self.partitions[name] = max(self.partitions[name], partitions)
        self._topics = None

    def leave(self, event: Happening) -> tuple[str, ...]:
        """Takes a broker down. Returns the partitions that only it can lead: nobody can read them.

        Partitions that are created while it is away are on other brokers.
        """
        self._away.append(event)
        self._topics = None
        dark = tuple(self._leaderless(event))
        for partition in dark:
            self._dark[partition] += 1
            self._holds.darken(partition, self._agenda.now_ms, is_dark=True)
        return dark

    def come_back(self, event: Happening, dark: Iterable[str]) -> None:
        """Brings a broker back, which leads `dark`; its metadata lack topics for `unseen_ms`."""
        now_ms = self._agenda.now_ms
        self._away.remove(event)
        self._topics = None
        for partition in dark:
            self._dark[partition] -= 1
            if self._dark[partition] <= 0:
                self._holds.darken(partition, now_ms, is_dark=False)
        for name in event.topics or self.partitions:
            until = max(self._unseen_until.get(name, 0), now_ms + event.unseen_ms)
            self._unseen_until[name] = until
            self._all_seen_ms = max(self._all_seen_ms, until)

    def _leaderless(self, event: Happening) -> Iterable[str]:
        """Yields the partitions that no broker can lead while the event's broker is away.

        They belong to the event's topics (all topics if it names none) and, if the event names a
        rack, have all replicas in that rack.
        """
        for name in event.topics or self.partitions:
            racks = self._plans[name].racks or ((),)
            for number in range(self.partitions.get(name, 0)):
                if not event.rack or set(racks[number % len(racks)]) == {event.rack}:
                    yield f"{name}-{number}"


class Metadata(Mutable):
    """Decides when clients request metadata, and sends them the metadata.

        age       each client requests them every `metadata.max.age.ms`, first at a random time
        missing   a client does so every `retry.backoff.max.ms` while a subscribed topic is missing,
                  or no broker answers
        deleted   clients that hold partitions of a deleted topic: within `retry.backoff.max.ms`
        broker    when a broker leaves or returns, all clients do so within `retry.backoff.max.ms`
        pattern   a client with a pattern does so in each poll that joins, before the join
        leader    a leader does so before it assigns topics to which it does not subscribe
        ids       a member of a consumer group does so when it gets a topic with an unknown id

    Source   Metadata.handleMetadataResponse (UNKNOWN_TOPIC_OR_PARTITION asks for an update),
             FetchCollector.handleInitializeErrors (so does this error in a fetch),
             NetworkClient.handleServerDisconnect, ConsumerCoordinator.poll,
             updateGroupSubscription.
    """

    cluster: SimulatedCluster
    processes: Mapping[str, Process]
    rng: random.Random
    agenda: Agenda
    tell: Callable[[Process, int, MetadataUpdated], None]

    def start(self, process: Process) -> None:
        consumer = process.consumer
        assert consumer is not None
        at = self.agenda.now_ms + 1 + self.rng.randrange(consumer.config.metadata_max_age_ms)
        self._arm_refresh(process, min(at, self._next_ms(consumer)))

    def refresh(self, process: Process, incarnation: int) -> None:
        consumer = process.consumer
        if process.incarnation == incarnation and consumer is not None:
            self._update(process)
            self._arm_refresh(process, self._next_ms(consumer))

    def refresh_soon(self, held: frozenset[str] | None = None) -> None:
        """Makes consumers request metadata, at a random time within `retry.backoff.max.ms`.

        Without `held`, all consumers do so; else only those that hold one of these partitions.
        """
        for process in self.processes.values():
            if held is not None and held.isdisjoint(process.held):
                continue
            if (consumer := process.consumer) is not None:
                spread = consumer.config.retry_backoff_max_ms
                self._arm_refresh(process, self.agenda.now_ms + 1 + self.rng.randrange(spread))

    def refresh_early(self, process: Process) -> None:
        """Makes a client that misses a subscribed topic request metadata before the maximum age."""
        consumer = process.consumer
        if consumer is not None and consumer.misses_topics:
            at = self._next_ms(consumer)
            if consumer.kind == "async" and consumer.misses_names:
                at = self.agenda.now_ms + 1  # the consumer asks for metadata at once
            armed = process.refresh.due_ms
            if armed is None or armed >= at:
                self._arm_refresh(process, at)

    def match_again(self, process: Process) -> None:
        """Makes a client with a pattern request metadata before a poll that sends JoinGroup."""
        if isinstance(process.member, Consumer) and process.member.matches_before_joining:
            self._update(process)

    def learn_topics(self, process: Process, response: JoinGroupResponse) -> None:
        """Makes a leader request metadata before it assigns topics outside its own subscription."""
        consumer = process.member
        if (
            isinstance(consumer, Consumer)
            and response.leader == response.member_id
            and consumer.sees(self.cluster.metadata())
            and not subscribed_topics(response.members) <= consumer.subscription
        ):
            self._update(process)

    def _update(self, process: Process) -> None:
        consumer, metadata = process.consumer, self.cluster.metadata()
        if consumer is not None and self.cluster.is_reachable() and consumer.sees(metadata):
            self.tell(process, process.incarnation, MetadataUpdated(metadata))

    def _next_ms(self, consumer: "AnyConsumer") -> int:
        config = consumer.config
        soon = consumer.misses_topics or not self.cluster.is_reachable()
        after_ms = config.retry_backoff_max_ms if soon else config.metadata_max_age_ms
        return self.agenda.now_ms + after_ms

    def _arm_refresh(self, process: Process, at: int) -> None:
        self.agenda.arm(at, process.refresh, process.incarnation)
