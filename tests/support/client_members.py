# SPDX-License-Identifier: Apache-2.0
"""Members that run the coordinator code of the Python clients, without a broker.

    member.join()                               returns the subscription bytes of its JoinGroup
    member.lead(generation, joined, assignor)   returns the leader's assignments for SyncGroup
    member.take(generation, bytes, assignor)    receives its assignment; sets `rejoins` and `held`

A `Java` is a member whose assignor is Kafka's own class. A `Group` has members of any kind.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import aiokafka.cluster
import kafka.cluster
from aiokafka.consumer import group_coordinator as aiokafka_coordinator
from aiokafka.consumer.subscription_state import SubscriptionState as AiokafkaSubscriptions
from aiokafka.protocol.group import JoinGroupResponse_v5, SyncGroupResponse_v3
from aiokafka.protocol.metadata import MetadataResponse_v1
from kafka.consumer.subscription_state import SubscriptionState as KafkaSubscriptions
from kafka.coordinator.base import Generation
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.protocol.consumer.group import JoinGroupResponse
from kafka.protocol.metadata import MetadataResponse

from kafka_rebalance import Topic, TopicPartition
from kafka_rebalance.assignors.interface import RebalanceProtocol
from kafka_rebalance.wire import consumer_protocol as wire

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Sequence

    from kafka_rebalance.assignors.interface import Assignor
    from tests.support.oracle import Oracle

GROUP = "g"
RACKS: tuple[str | None, ...] = ("a", "b", "c", None)
"""The racks of brokers 0 to 3."""


@dataclass(frozen=True)
class Joined:
    """A member, as the leader receives it in the JoinGroup response."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


def _replicas(topic: Topic, partition: int) -> list[int]:
    if topic.racks is None:
        return [3]
    return [RACKS.index(rack) for rack in topic.racks[partition]]


class KafkaPython:
    """A consumer of kafka-python; `strategy` is its setting partition_assignment_strategy."""

    def __init__(
        self,
        member_id: str,
        strategy: Sequence[Any],
        topics: Iterable[str],
        cluster: Sequence[Topic],
        *,
        group_instance_id: str | None = None,
    ) -> None:
        self.member_id, self.group_instance_id = member_id, group_instance_id
        metadata = kafka.cluster.ClusterMetadata(bootstrap_servers="localhost:1")
        metadata.update_metadata(_kafka_metadata(cluster))
        self._subscriptions = KafkaSubscriptions()
        self._coordinator = ConsumerCoordinator(
            MagicMock(_manager=MagicMock(cluster=metadata)),
            self._subscriptions,
            group_id=GROUP,
            group_instance_id=group_instance_id,
            assignors=strategy,
            enable_auto_commit=False,
            api_version=(2, 6),
            metrics=None,
        )
        self.subscribe(topics)

    @property
    def held(self) -> set[TopicPartition]:
        return {TopicPartition(*tp) for tp in self._subscriptions.assigned_partitions()}

    @property
    def rejoins(self) -> bool:
        return bool(self._coordinator.need_rejoin())

    def subscribe(self, topics: Iterable[str]) -> None:
        self._subscriptions.subscribe(topics=sorted(topics))

    def lose(self) -> None:
        """Informs the member that the broker has removed it."""
        self._coordinator.reset_generation()

    def join(self, assignor: str | None = None) -> bytes:
        """Returns the subscription bytes for `assignor`, or for the member's first assignor."""
        _run(self._coordinator._on_join_prepare_async(-1, self.member_id))
        self._coordinator.rejoin_needed = False
        protocols = dict(self._coordinator.group_protocols())
        return bytes(protocols[assignor or next(iter(protocols))].encode())

    def lead(self, generation: int, joined: Sequence[Joined], assignor: str) -> dict[str, bytes]:
        self._generation(generation)
        members = [
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=one.member_id,
                group_instance_id=one.group_instance_id,
                metadata=one.metadata,
            )
            for one in joined
        ]
        answer = self._coordinator._perform_assignment(self.member_id, assignor, members)
        return {member_id: bytes(given.encode()) for member_id, given in answer.items()}

    def take(self, generation: int, assignment: bytes, assignor: str) -> None:
        self._generation(generation)
        _run(
            self._coordinator._on_join_complete_async(
                generation, self.member_id, assignor, assignment
            )
        )

    def _generation(self, generation: int) -> None:
        self._coordinator._generation = Generation(generation, self.member_id, None)


def _kafka_metadata(cluster: Sequence[Topic]) -> Any:
    broker, topic = MetadataResponse.MetadataResponseBroker, MetadataResponse.MetadataResponseTopic
    partition = topic.MetadataResponsePartition
    return MetadataResponse(
        version=7,
        brokers=[
            broker(version=7, node_id=node, host="h", port=1, rack=rack)
            for node, rack in enumerate(RACKS)
        ],
        controller_id=0,
        topics=[
            topic(
                version=7,
                error_code=0,
                name=one.name,
                is_internal=False,
                partitions=[
                    partition(
                        version=7,
                        error_code=0,
                        partition_index=p,
                        leader_id=0,
                        replica_nodes=_replicas(one, p),
                        isr_nodes=[],
                    )
                    for p in range(one.partitions)
                ],
            )
            for one in cluster
        ],
    )


class Aiokafka:
    """A consumer of aiokafka: its coordinator's functions run in an event loop of its own."""

    def __init__(
        self,
        member_id: str,
        strategy: Sequence[Any],
        topics: Iterable[str],
        cluster: Sequence[Topic],
        *,
        group_instance_id: str | None = None,
    ) -> None:
        self.member_id, self.group_instance_id = member_id, group_instance_id
        self._loop = asyncio.new_event_loop()
        self._subscriptions = AiokafkaSubscriptions(loop=self._loop)
        coordinator = object.__new__(aiokafka_coordinator.GroupCoordinator)
        self._coordinator: Any = coordinator
        coordinator.group_id, coordinator._group_instance_id = GROUP, group_instance_id
        coordinator.generation, coordinator.member_id = -1, member_id
        coordinator._assignors = strategy
        coordinator._subscription = self._subscriptions
        coordinator._rebalance_timeout_ms = 1
        coordinator._cluster = aiokafka.cluster.ClusterMetadata(bootstrap_servers="localhost:1")
        coordinator._cluster.update_metadata(_aiokafka_metadata(cluster))
        coordinator._client = MagicMock(_maybe_wait_metadata=_nothing)
        coordinator._commit_refresh_task = None
        coordinator.start_commit_offsets_refresh_task = MagicMock()
        coordinator._send_req = self._send
        self._sent: Any = None
        self._answers: list[Any] = []
        self.subscribe(topics)

    def close(self) -> None:
        self._loop.close()

    @property
    def held(self) -> set[TopicPartition]:
        return {TopicPartition(*tp) for tp in self._subscriptions.assigned_partitions()}

    rejoins = False

    def subscribe(self, topics: Iterable[str]) -> None:
        self._subscriptions.subscribe(set(topics))

    def lose(self) -> None:
        """Informs the member that the broker has removed it."""
        self._coordinator.generation = -1

    def join(self, assignor: str | None = None) -> bytes:
        loading = [SimpleNamespace(error_code=14)] * len(self._coordinator._assignors)
        self._rebalance(loading)
        protocols = dict(self._sent[-1]._group_protocols)
        return bytes(protocols[assignor or next(iter(protocols))])

    def lead(self, generation: int, joined: Sequence[Joined], assignor: str) -> dict[str, bytes]:
        members = [(one.member_id, one.group_instance_id, one.metadata) for one in joined]
        response = JoinGroupResponse_v5(
            0, 0, generation, assignor, self.member_id, self.member_id, members
        )
        self._rebalance([response, SyncGroupResponse_v3(0, 27, b"")])
        return dict(self._sent[-1]._group_assignment)

    def take(self, generation: int, assignment: bytes, assignor: str) -> None:
        response = JoinGroupResponse_v5(0, 0, generation, assignor, "another", self.member_id, [])
        protocol, given = self._rebalance([response, SyncGroupResponse_v3(0, 0, assignment)])
        self._loop.run_until_complete(
            self._coordinator._on_join_complete(generation, self.member_id, protocol, given)
        )

    def _rebalance(self, answers: list[Any]) -> Any:
        self._sent, self._answers = [], answers
        self._coordinator._rejoin_needed_fut = self._loop.create_future()
        rebalance = aiokafka_coordinator.CoordinatorGroupRebalance(
            self._coordinator, GROUP, 0, self._subscriptions.subscription,
            self._coordinator._assignors, 1, 0,
        )  # fmt: skip
        return self._loop.run_until_complete(rebalance.perform_group_join())

    async def _send(self, request: Any) -> Any:
        self._sent.append(request)
        return self._answers.pop(0)


def _aiokafka_metadata(cluster: Sequence[Topic]) -> Any:
    return MetadataResponse_v1(
        [(node, "h", 1, rack) for node, rack in enumerate(RACKS)],
        0,
        [
            (0, one.name, False, [(0, p, 0, _replicas(one, p), []) for p in range(one.partitions)])
            for one in cluster
        ],
    )


def _run(coroutine: Coroutine[Any, Any, Any]) -> None:
    """Runs a coroutine to its end; it must not wait for anything."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise AssertionError("it waits")


async def _nothing() -> None:
    pass


def topic_to_json(topic: Topic) -> dict[str, Any]:
    """Returns the topic as in a contract line, the JSON input of the commands."""
    fields = {"name": topic.name, "partitions": topic.partitions}
    return fields if topic.racks is None else {**fields, "racks": topic.racks}


class KafkaThrows(Exception):
    """Kafka's class throws or never ends, so it returns no assignment."""


class Java:
    """A Java consumer; as the leader, it assigns with Kafka's own classes."""

    def __init__(
        self,
        member_id: str,
        assignor: Assignor,
        topics: Iterable[str],
        cluster: Sequence[Topic],
        oracle: Oracle,
        *,
        rack_id: str | None = None,
        group_instance_id: str | None = None,
    ) -> None:
        self.member_id, self.group_instance_id = member_id, group_instance_id
        self._assignor, self._topics, self._cluster = assignor, set(topics), cluster
        self._rack_id, self._oracle = rack_id, oracle
        self._generation = -1
        self.held: set[TopicPartition] = set()
        self.rejoins = False

    @property
    def _is_cooperative(self) -> bool:
        return RebalanceProtocol.COOPERATIVE in self._assignor.supported_protocols

    def subscribe(self, topics: Iterable[str]) -> None:
        self._topics = set(topics)

    def join(self, assignor: str | None = None) -> bytes:
        self.held = {tp for tp in self.held if self._is_cooperative and tp.topic in self._topics}
        return wire.encode_subscription(
            wire.Subscription(
                tuple(self._topics),
                self._assignor.subscription_user_data(self._topics),
                tuple(self.held),
                self._generation if self._generation >= 0 else None,
                self._rack_id,
            )
        )

    def lead(self, generation: int, joined: Sequence[Joined], assignor: str) -> dict[str, bytes]:
        group = {
            "assignor": assignor,
            "topics": [topic_to_json(topic) for topic in self._cluster],
            "members": [
                {
                    "member_id": one.member_id,
                    "group_instance_id": one.group_instance_id,
                    "subscription": one.metadata.hex(),
                }
                for one in joined
            ],
        }
        answer = self._oracle.ask(group)
        if "error" in answer:
            raise KafkaThrows(answer["error"])
        return {
            member_id: wire.encode_assignment(
                wire.AssignmentData(tuple(TopicPartition(*tp) for tp in given))
            )
            for member_id, given in answer["assignment"].items()
        }

    def take(self, generation: int, assignment: bytes, assignor: str) -> None:
        self._generation = generation
        given = wire.decode_assignment(assignment).partitions
        self.rejoins = not {tp.topic for tp in given} <= self._topics
        if self.rejoins:
            return
        self.rejoins = self._is_cooperative and not self.held <= set(given)
        self._assignor.on_assignment(given, generation)
        self.held = set(given)


class Group:
    """A group of these members; each call of `rebalance` plays one generation."""

    def __init__(self, assignor: str, members: Iterable[Any]) -> None:
        self.assignor, self.members = assignor, list(members)
        self.generation = 0

    def joined(self) -> list[Joined]:
        return [
            Joined(one.member_id, one.group_instance_id, one.join(self.assignor))
            for one in self.members
        ]

    def rebalance(self) -> dict[str, bytes]:
        """Plays one generation; the first member leads. Returns the leader's assignment bytes."""
        joined = self.joined()
        self.generation += 1
        answer: dict[str, bytes] = self.members[0].lead(self.generation, joined, self.assignor)
        for one in self.members:
            given = answer.get(one.member_id) or wire.encode_assignment(wire.AssignmentData(()))
            one.take(self.generation, given, self.assignor)
        return answer

    def settle(self, *, within: int = 50) -> int:
        """Rebalances until no member joins again; returns the number of rebalances."""
        for count in range(1, within + 1):
            self.rebalance()
            if not any(one.rejoins for one in self.members):
                return count
        raise AssertionError(f"not settled after {within} rebalances")
