# SPDX-License-Identifier: Apache-2.0
"""A plug-in's leader sends only answers that consumers accept, and logs Kafka's unsound answers."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance import AssignorThrows, GroupSpec, Member, NeverEnds, Topic, TopicPartition
from kafka_rebalance.wire import consumer_protocol as wire

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("aiokafka", reason="aiokafka is not installed: pip install -e '.[aiokafka]'")

from kafka_rebalance.clients import aiokafka as ours_aiokafka
from kafka_rebalance.clients import kafka_python as ours_kafka
from kafka_rebalance.clients import leader as legal_module
from kafka_rebalance.clients.leader import legal
from tests.support.client_members import Aiokafka, Group, Joined, KafkaPython

TP = TopicPartition
NEVER_ENDS = Path(__file__).parent / "vectors" / "never_ends.jsonl"
STICKY = ("sticky", "cooperative-sticky")

# m1 has unsubscribed from topic a but still claims a-1, as with aiokafka's own sticky assignor.
TOPICS = (Topic("a", 2), Topic("b", 1))
LEFT = (
    Member("m0", ("a", "b"), owned_partitions=(TP("b", 0),)),
    Member("m1", ("b",), owned_partitions=(TP("a", 1),)),
    Member("m2", ("a", "b"), generation_id=1),
)
NOTHING = (Member("m0", ()), Member("m1", ("b",)))
"""m0 subscribes to a pattern that matches no topic yet: an empty subscription."""
ONE_EACH = (Topic("a", 1), Topic("b", 1))
THROWS = (
    Member("m0", (), owned_partitions=(TP("a", 0),)),
    Member("m1", ("a",)),
    Member("m2", ("a", "b"), owned_partitions=(TP("a", 0),), generation_id=2),
)


def same(one: Any, other: Any) -> bool:
    """Returns whether both answers have equal partitions in equal order."""
    return {m: list(tps) for m, tps in one.items()} == {m: list(tps) for m, tps in other.items()}


def unsound(members: tuple[Member, ...], assignor: str) -> set[str]:
    group = GroupSpec("g", TOPICS, members)
    return {anomaly.kind for anomaly in kr.assign(group, assignor).anomalies}


@pytest.mark.parametrize("assignor", STICKY)
@pytest.mark.parametrize("members", [LEFT, NOTHING])
def test_no_member_is_given_what_it_does_not_subscribe_to(
    members: tuple[Member, ...], assignor: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert "unsubscribed" in unsound(members, assignor)  # Kafka's own answer
    answer = legal("g", TOPICS, members, assignor)
    assert list(answer) == [member.member_id for member in members]
    for member in members:
        assert {tp.topic for tp in answer[member.member_id]} <= set(member.topics)
    assert "unsubscribed" in caplog.text
    assert "this answer is not sent" in caplog.text
    assert "range assigns" not in caplog.text  # Kafka's assignor computed the second answer


@pytest.mark.parametrize("assignor", STICKY)
def test_where_kafkas_class_throws_it_is_asked_again_first(
    assignor: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(AssignorThrows):
        kr.assign(GroupSpec("g", ONE_EACH, THROWS), assignor)
    answer = legal("g", ONE_EACH, THROWS, assignor)
    # m2 holds a-0, so in a cooperative group m1 has to wait.
    free = [TP("a", 0)] if assignor == "sticky" else []
    assert [list(answer[m]) for m in ("m0", "m1", "m2")] == [[], free, [TP("b", 0)]]
    assert "NullPointerException" in caplog.text


def test_where_kafkas_class_never_ends_range_assigns(caplog: pytest.LogCaptureFixture) -> None:
    group = GroupSpec.from_json(NEVER_ENDS.read_text("utf-8").splitlines()[0])
    answer = legal("g", group.topics, group.members, "sticky")
    assert same(answer, kr.assign(group, "range"))
    assert "never ends" in caplog.text
    assert "range assigns this generation in place of sticky" in caplog.text


def test_in_a_cooperative_group_range_waits_for_what_others_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If range answers in place of Kafka's class, claimed partitions change owners in two steps."""

    def throws(group: GroupSpec, assignor: str) -> kr.Assignment:
        if assignor != "range":
            raise NeverEnds.here(assignor)
        return kr.assign(group, assignor)

    monkeypatch.setattr(legal_module, "assign", throws)
    topics = (Topic("a", 6),)
    held: dict[str, list[TopicPartition]] = {
        "m0": [TP("a", 5)],
        "m1": [TP("a", p) for p in range(5)],
        "m2": [],
    }
    told = []
    for generation in (1, 2):
        members = tuple(
            Member(m, ("a",), owned_partitions=tuple(tps), generation_id=generation)
            for m, tps in held.items()
        )
        held = {
            m: list(tps) for m, tps in legal("g", topics, members, "cooperative-sticky").items()
        }
        told.append({m: [tp.partition for tp in tps] for m, tps in held.items()})
    assert told == [{"m0": [], "m1": [2, 3], "m2": []}, {"m0": [0, 1], "m1": [2, 3], "m2": [4, 5]}]


def test_members_that_no_assignor_accepts_do_not_crash_the_leader(
    caplog: pytest.LogCaptureFixture,
) -> None:
    members = (Member("m0", ("a",), owned_partitions=(TP("a", -1),)), Member("m1", ("a",)))
    answer = legal("g", TOPICS, members, "sticky")
    assert {m: list(given) for m, given in answer.items()} == {
        "m0": [TP("a", 0)],
        "m1": [TP("a", 1)],
    }
    assert "not a partition" in caplog.text
    assert "range assigns" not in caplog.text


def test_anomalies_are_logged_and_kafkas_answer_stands(caplog: pytest.LogCaptureFixture) -> None:
    """Kafka's answer is sent unchanged, and its anomalies are logged.

    Two members claim partitions, some of which do not exist, in one generation.
    """
    gone = tuple(TP("a", p) for p in range(4))
    members = tuple(
        Member(f"m{n}", ("a",), owned_partitions=gone, generation_id=3) for n in range(2)
    )
    topics = (Topic("a", 2),)
    expected = kr.assign(GroupSpec("g", topics, members), "sticky")
    answer = legal("g", topics, members, "sticky")
    assert same(answer, expected)
    assert ("unsound" in caplog.text) == bool(expected.anomalies)


@pytest.mark.parametrize("assignor", [*STICKY, "range", "roundrobin"])
def test_a_legal_answer_is_kafkas_and_any_answer_is_legal(assignor: str) -> None:
    """Each answer fits the subscriptions. If Kafka's own answer fits them, it is sent.

    In the random groups, members claim unsubscribed topics or other members' partitions, or have no
    topics.
    """
    rng = random.Random(14)
    told = {"kafka's": 0, "other": 0}
    for _ in range(2_000):
        topics = tuple(Topic(name, rng.randint(1, 3)) for name in "abc")
        everything = [TP(t.name, p) for t in topics for p in range(t.partitions)]
        members = tuple(
            Member(
                f"m{n}",
                tuple(sorted(rng.sample("abc", rng.randint(0, 3)))),
                owned_partitions=tuple(tp for tp in everything if rng.random() < 0.3),
                generation_id=rng.choice([None, 1, 2]),
            )
            for n in range(rng.randint(1, 4))
        )
        answer = legal("g", topics, members, assignor)
        for member in members:
            assert {tp.topic for tp in answer[member.member_id]} <= set(member.topics)
        try:
            expected = kr.assign(GroupSpec("g", topics, members), assignor)
            sound = all(anomaly.kind != "unsubscribed" for anomaly in expected.anomalies)
        except AssignorThrows:
            sound = False
        told["kafka's" if sound else "other"] += 1
        if sound:
            assert same(answer, expected)
            continue
        given = [tp for partitions in answer.values() for tp in partitions]
        assert len(given) == len(set(given))
        waits = {tp for m in members for tp in m.owned_partitions} if "coop" in assignor else set()
        wanted = {tp for tp in everything if any(tp.topic in m.topics for m in members)}
        assert wanted - set(given) <= waits
    assert told["kafka's"] > 500
    assert (told["other"] > 100) == (assignor in STICKY)


# Through the clients ------------------------------------------------------------------------------


def claiming(member_id: str, topics: tuple[str, ...], claim: TopicPartition) -> Joined:
    """Makes a member with a claim but no generation, as aiokafka's own sticky assignor sends it."""
    sent = wire.Subscription(topics, wire.encode_sticky_user_data([claim], -1), version=0)
    return Joined(member_id, None, wire.encode_subscription(sent))


@pytest.mark.parametrize("client", [KafkaPython, Aiokafka])
def test_a_resubscribed_consumer_survives(client: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Two of three consumers change their subscriptions, one at a time."""
    ours: Any = ours_kafka if client is KafkaPython else ours_aiokafka
    topics = [Topic("a", 2), Topic("b", 1)]
    members = [client(f"m{n}", [ours.Sticky], ["a", "b"], topics) for n in range(3)]
    group = Group("sticky", members)
    group.rebalance()
    for one, subscription in ((members[1], ["b"]), (members[0], ["a"]), (members[1], ["a"])):
        one.subscribe(subscription)
        group.rebalance()
        assert {tp.topic for tp in one.held} <= set(subscription)
        assert not any(member.rejoins for member in members)
    assert sum(len(member.held) for member in members) == 3
    assert "not sent" not in caplog.text


@pytest.mark.parametrize("client", [KafkaPython, Aiokafka])
def test_a_member_of_another_library_cannot_end_consumers(
    client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    ours: Any = ours_kafka if client is KafkaPython else ours_aiokafka
    leader = client("m2", [ours.Sticky], ["a", "b"], [Topic("a", 2), Topic("b", 1)])
    leader.take(1, wire.encode_assignment(wire.AssignmentData(())), "sticky")
    joined = [
        claiming("m0", ("a", "b"), TP("b", 0)),
        claiming("m1", ("b",), TP("a", 1)),
        Joined("m2", None, leader.join()),
    ]
    answer = leader.lead(2, joined, "sticky")
    given = {m: wire.decode_assignment(one).partitions for m, one in answer.items()}
    assert {tp.topic for tp in given["m1"]} <= {"b"}
    assert sum(map(len, given.values())) == 3
    assert "group g: Kafka's sticky assignor assigns members topics" in caplog.text
