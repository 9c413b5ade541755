"""The plug-ins for Python clients: through the clients' own types, to the answers of the core."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance import GroupSpec, Member, Topic, TopicPartition

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("aiokafka", reason="aiokafka is not installed: pip install -e '.[aiokafka]'")

import aiokafka.coordinator.assignors.abstract as aiokafka_base
import kafka.coordinator.assignors.abstract as kafka_base
from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from kafka.protocol.consumer.group import JoinGroupResponse
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

from kafka_rebalance.clients import aiokafka as ours_aiokafka
from kafka_rebalance.clients import kafka_python as ours_kafka

KAFKA = [ours_kafka.Range, ours_kafka.RoundRobin, ours_kafka.Sticky, ours_kafka.CooperativeSticky]
AIOKAFKA = [ours_aiokafka.Range, ours_aiokafka.RoundRobin, ours_aiokafka.Sticky]
TOPICS = (Topic("orders", 7), Topic("refunds", 4))
SUBSCRIPTIONS = {
    "same": [("orders", "refunds")] * 4,
    "different": [("orders",), ("orders", "refunds"), ("refunds",), ("orders", "nowhere")],
}


class Cluster:
    """Metadata of TOPICS, and of nothing else."""

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        counts = {topic.name: topic.partitions for topic in TOPICS}
        return set(range(counts[topic])) if topic in counts else None


def rounds(assignor: str, subscriptions: list[tuple[str, ...]], *, keeps: bool) -> list[GroupSpec]:
    """Three rounds of a group by the core: what its leader is asked, a member more each time."""
    members: list[Member] = []
    groups = []
    for generation, topics in enumerate(subscriptions[1:], 1):
        first = len(members) or 2
        members += [Member(f"m{n}", subscriptions[n]) for n in range(len(members), first)]
        if len(members) > 2 or generation > 1:
            members.append(Member(f"m{len(members)}", topics))
        group = GroupSpec("g", TOPICS, tuple(members), assignor)
        groups.append(group)
        answer = kr.assign(group)
        members = [
            Member(
                m.member_id,
                m.topics,
                owned_partitions=answer[m.member_id] if keeps else (),
                generation_id=generation if keeps else None,
            )
            for m in members
        ]
    return groups


def by_topic(owned: tuple[TopicPartition, ...]) -> list[tuple[str, list[int]]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in owned:
        topics.setdefault(topic, []).append(partition)
    return list(topics.items())


def kafka_member(plug_in: Any, member: Member) -> Any:
    """A member that was given what it owns, sends its metadata, and is read by the leader."""
    own = plug_in()
    if member.generation_id is not None:
        given = ConsumerProtocolAssignment(0, by_topic(member.owned_partitions), b"")
        own.on_assignment(given, member.generation_id)
    sent = ConsumerProtocolSubscription.decode(own.metadata(set(member.topics)).encode())
    return JoinGroupResponse.JoinGroupResponseMember(
        member_id=member.member_id, group_instance_id=member.group_instance_id, metadata=sent
    )


@pytest.mark.parametrize("subscriptions", SUBSCRIPTIONS)
@pytest.mark.parametrize("plug_in", KAFKA)
def test_kafka_python_answers_as_the_core_does(plug_in: Any, subscriptions: str) -> None:
    keeps = "sticky" in plug_in.name
    for group in rounds(plug_in.name, SUBSCRIPTIONS[subscriptions], keeps=keeps):
        members = [kafka_member(plug_in, member) for member in group.members]
        answer = plug_in().assign(Cluster(), members)
        expected = kr.assign(group)
        assert list(answer) == list(expected)
        for member_id, assignment in answer.items():
            read = ConsumerProtocolAssignment.decode(assignment.encode())
            given = [
                (topic, list(partitions)) for topic, partitions in by_topic(expected[member_id])
            ]
            assert [(t, list(ps)) for t, ps in read.assigned_partitions] == given


@pytest.mark.parametrize("subscriptions", SUBSCRIPTIONS)
@pytest.mark.parametrize("plug_in", AIOKAFKA)
def test_aiokafka_answers_as_the_core_does(plug_in: Any, subscriptions: str) -> None:
    keeps = plug_in.name == "sticky"
    for group in rounds(plug_in.name, SUBSCRIPTIONS[subscriptions], keeps=keeps):
        members = {}
        for member in group.members:
            mine: Any = type("Mine", (plug_in,), {})
            if member.generation_id is not None:
                given = ConsumerProtocolMemberAssignment(0, by_topic(member.owned_partitions), b"")
                mine.on_assignment(given)
            sent = mine.metadata(set(member.topics)).encode()
            members[member.member_id] = ConsumerProtocolMemberMetadata.decode(sent)
        answer = plug_in.assign(Cluster(), members)
        expected = kr.assign(_without_generations(group))
        for member_id, assignment in answer.items():
            assert [tuple(tp) for tp in assignment.partitions()] == [
                tuple(tp)
                for topic, partitions in by_topic(expected[member_id])
                for tp in [(topic, p) for p in partitions]
            ]


def _without_generations(group: GroupSpec) -> GroupSpec:
    """aiokafka's assignors are never told the generation: histories carry -1."""
    return group.edited(
        members=tuple(
            Member(
                m.member_id,
                m.topics,
                owned_partitions=m.owned_partitions,
                generation_id=None if m.generation_id is None else -1,
            )
            for m in group.members
        )
    )


def test_what_is_sent_has_owned_partitions_generation_and_rack() -> None:
    own = ours_kafka.CooperativeSticky(rack_id="b")
    own.on_assignment(ConsumerProtocolAssignment(0, [("u", [3, 1]), ("t", [0])], b""), 7)
    sent = ConsumerProtocolSubscription.decode(own.metadata({"u", "t"}).encode())
    assert (sent.topics, sent.generation_id, sent.rack_id) == (["t", "u"], 7, "b")
    owned = [(entry.topic, list(entry.partitions)) for entry in sent.owned_partitions]
    assert owned == [("t", [0]), ("u", [1, 3])]
    assert sent.user_data == (7).to_bytes(4, "big")
    # A member before its first assignment sends no generation.
    assert ours_kafka.CooperativeSticky().metadata(["t"]).generation_id == -1


def test_static_members_and_racks_reach_the_assignor() -> None:
    first = kafka_member(ours_kafka.Range, Member("z", ("orders",), group_instance_id="a"))
    second = kafka_member(ours_kafka.Range, Member("b", ("orders",)))
    answer = ours_kafka.Range().assign(Cluster(), [second, first])
    assert answer["z"].assigned_partitions == [("orders", [0, 1, 2, 3])]


@pytest.mark.parametrize(
    ("plug_in", "base"),
    [
        *((one, kafka_base.AbstractPartitionAssignor) for one in KAFKA),
        *((one, aiokafka_base.AbstractPartitionAssignor) for one in AIOKAFKA),
    ],
)
def test_parity_with_the_clients_base_class(plug_in: Any, base: Any) -> None:
    """Whatever a client adds to its interface shows here."""
    assert issubclass(plug_in, base)
    assert not inspect.isabstract(plug_in)
    for name, method in inspect.getmembers(base, inspect.isroutine):
        if not name.startswith("_"):
            wanted = list(inspect.signature(method).parameters)
            assert list(inspect.signature(getattr(plug_in, name)).parameters) == wanted
    protocols = plug_in().supported_protocols() if base.__module__.startswith("kafka.") else []
    modes = [protocol.name for protocol in protocols]
    cooperative = ["COOPERATIVE", "EAGER"] if "cooperative" in plug_in.name else ["EAGER"]
    assert modes == (cooperative if protocols else [])
