# SPDX-License-Identifier: Apache-2.0
"""Checks the statements of docs/clients.md about the clients' own tests and about mass joins."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance import Topic, TopicPartition
from kafka_rebalance.assignors.objects import CooperativeSticky
from kafka_rebalance.wire import consumer_protocol as wire

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("aiokafka", reason="aiokafka is not installed: pip install -e '.[aiokafka]'")

from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

from kafka_rebalance.clients import aiokafka as ours_aiokafka
from kafka_rebalance.clients import kafka_python as ours_kafka
from tests.support.client_members import Aiokafka, Group, Java, Joined, KafkaPython

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.support.oracle import Oracle

pytestmark = pytest.mark.oracle

DOCS = (Path(__file__).parent.parent / "docs" / "clients.md").read_text("utf-8")


def answers(
    topics: Mapping[str, int],
    subscriptions: Mapping[str, Sequence[str]],
    owned: Mapping[str, tuple[int, Sequence[TopicPartition]]],
    oracle: Oracle,
) -> dict[str, list[TopicPartition]]:
    """Asserts that both plug-ins answer as Java does, and returns Java's answer.

    Members are those of the clients' own tests of sticky: version 0, with claims in the user data.
    """
    cluster = [Topic(name, count) for name, count in topics.items()]
    joined = []
    for member_id, subscription in subscriptions.items():
        generation, partitions = owned.get(member_id, (-1, ()))
        data = wire.encode_sticky_user_data(partitions, generation)
        sent = wire.Subscription(tuple(subscription), data, version=0)
        joined.append(Joined(member_id, None, wire.encode_subscription(sent)))
    first, wanted = next(iter(subscriptions.items()))
    told = [
        leader.lead(9, joined, "sticky")
        for leader in (
            Java(first, CooperativeSticky(), wanted, cluster, oracle),
            KafkaPython(first, [ours_kafka.Sticky], wanted, cluster),
            Aiokafka(first, [ours_aiokafka.Sticky], wanted, cluster),
        )
    ]
    assert told[0] == told[1] == told[2]
    return {m: list(wire.decode_assignment(given).partitions) for m, given in told[0].items()}


def alike(members: Sequence[str], topics: Mapping[str, int]) -> dict[str, list[str]]:
    """Makes members that all subscribe to all topics."""
    return {member_id: list(topics) for member_id in members}


def shown(answer: Mapping[str, Sequence[TopicPartition]]) -> dict[str, str]:
    return {m: " ".join(f"{topic}-{p}" for topic, p in given) for m, given in answer.items()}


def test_sticky_assignor1(oracle: Oracle) -> None:
    """Java lists kept partitions first, then gained ones; the clients' test expects t2-0 at C0."""
    topics = {"t0": 2, "t1": 2, "t2": 2, "t3": 2}
    first = answers(topics, alike(("C0", "C1", "C2"), topics), {}, oracle)
    owned = {m: (-1, first[m]) for m in ("C0", "C2")}
    then = answers(topics, alike(("C0", "C2"), topics), owned, oracle)
    assert shown(then) == {"C0": "t0-0 t0-1 t3-0 t1-1", "C2": "t1-0 t2-1 t2-0 t3-1"}
    assert {tp for tp in then["C0"] if tp.topic == "t2"} == set()  # the clients' test expects t2-0


def test_sticky_assignor2(oracle: Oracle) -> None:
    """Java lists gained partitions last; the clients' test expects partitions sorted by name."""
    topics = {"t0": 1, "t1": 2, "t2": 3}
    wanted = {"C0": ["t0"], "C1": ["t0", "t1"], "C2": ["t0", "t1", "t2"]}
    first = answers(topics, wanted, {}, oracle)
    assert shown(first) == {"C0": "t0-0", "C1": "t1-0 t1-1", "C2": "t2-0 t2-1 t2-2"}
    del wanted["C0"]
    then = answers(topics, wanted, {m: (-1, first[m]) for m in wanted}, oracle)
    assert shown(then) == {"C1": "t1-0 t1-1 t0-0", "C2": "t2-0 t2-1 t2-2"}


def test_sticky_add_remove_topic_two_consumers(oracle: Oracle) -> None:
    """After t2 is added, Java assigns t2-0 to C1; the clients' test expects t2-1."""
    first = answers({"t1": 3}, {"C1": ["t1"], "C2": ["t1"]}, {}, oracle)
    assert shown(first) == {"C1": "t1-0 t1-2", "C2": "t1-1"}
    topics = {"t1": 3, "t2": 3}
    both = {"C1": [*topics], "C2": [*topics]}
    then = answers(topics, both, {m: (-1, first[m]) for m in first}, oracle)
    assert shown(then) == {"C1": "t1-0 t1-2 t2-0", "C2": "t1-1 t2-1 t2-2"}


def test_assignment_with_multiple_generations2(oracle: Oracle) -> None:
    """C1's and C3's claims are older than C2's; Java ignores them, unlike the clients' test."""
    topics = {"t": 6}
    first = answers(topics, alike(("C1", "C2", "C3"), topics), {}, oracle)
    assert shown(first) == {"C1": "t-0 t-3", "C2": "t-1 t-4", "C3": "t-2 t-5"}
    alone = answers(topics, {"C2": ["t"]}, {"C2": (1, first["C2"])}, oracle)
    assert len(alone["C2"]) == 6
    owned = {"C1": (1, first["C1"]), "C2": (2, alone["C2"]), "C3": (1, first["C3"])}
    then = answers(topics, alike(("C1", "C2", "C3"), topics), owned, oracle)
    assert shown(then) == {"C1": "t-2 t-4", "C2": "t-0 t-1", "C3": "t-3 t-5"}


# Mass joins ---------------------------------------------------------------------------------------


class Light(Java):
    """A follower that runs kafka-python's own assignor: version 1, without a generation."""

    def join(self, assignor: str | None = None) -> bytes:
        sent = wire.decode_subscription(super().join(assignor))
        bare = wire.Subscription(sent.topics, b"", sent.owned_partitions, version=1)
        return wire.encode_subscription(bare)


def mass_join(leader: str, waves: Sequence[int], oracle: Oracle) -> tuple[int, list[Any]]:
    """Plays a generation for each wave of new members, then further generations until no member
    rejoins.

    Returns the number of generations, and the assignments.
    """
    rng = random.Random(13)
    topics = [Topic(f"t{n}", 12) for n in range(6)]
    ids = [f"m-{rng.getrandbits(64):016x}" for _ in range(sum(waves))]
    wanted = [sorted(rng.sample([one.name for one in topics], 2)) for _ in ids]

    def member(n: int) -> Any:
        strategy = {"plug-in": ours_kafka.CooperativeSticky, "own": CooperativeStickyAssignor}
        if n == 0 and leader in strategy:
            return KafkaPython(ids[0], [strategy[leader]], wanted[0], topics)
        follower = Light if leader == "own" else Java
        return follower(ids[n], CooperativeSticky(), wanted[n], topics, oracle)

    group = Group("cooperative-sticky", [])
    told = []
    for wave in waves:
        size = len(group.members)
        group.members += [member(n) for n in range(size, size + wave)]
        told.append(group.rebalance())
    while any(one.rejoins for one in group.members):
        told.append(group.rebalance())
    return group.generation, told


@pytest.mark.parametrize(
    "waves",
    [[60], [1, 59], [1, 19, 40], [1, *[10] * 5, 9]],
    ids=lambda waves: f"{len(waves)} waves",
)
def test_a_mass_join_makes_one_generation_for_each_wave_of_members(
    waves: list[int], oracle: Oracle
) -> None:
    """Java, the plug-in and kafka-python's own assignor need equally many generations.

    One wave needs one generation; several waves need one more generation than there are waves.
    """
    expected = len(waves) + (len(waves) > 1)
    java, of_java = mass_join("java", waves, oracle)
    plug_in, of_plug_in = mass_join("plug-in", waves, oracle)
    own, _ = mass_join("own", waves, oracle)
    assert (java, plug_in, own) == (expected, expected, expected)
    assert of_plug_in == of_java


def arriving(members: int, over_ms: int, generation_ms: int) -> list[int]:
    """Returns the sizes of waves: members arrive evenly, and wait while a generation runs."""
    arrivals = [n * over_ms // members for n in range(members)]
    waves, since = [1], 0
    while sum(waves) < members:
        # A generation starts when the previous generation has ended and a member waits.
        until = max(since, arrivals[sum(waves)]) + generation_ms
        waves.append(sum(since <= at < until for at in arrivals[1:]) or 1)
        since = until
    return waves


def test_a_slow_leader_gathers_members(oracle: Oracle) -> None:
    """60 members within 3 s need fewer generations if the leader takes 1 s for its answer."""
    told = {
        leader_ms: mass_join("plug-in", arriving(60, 3_000, 300 + leader_ms), oracle)[0]
        for leader_ms in (10, 1_000)
    }
    assert told == {10: 11, 1_000: 5}


def test_the_docs_have_a_verdict_on_each_upstream_test() -> None:
    here = {name for name in globals() if name.startswith(("test_sticky", "test_assignment"))}
    assert set(re.findall(r"`(test_(?:sticky|assignment)\w+)`", DOCS)) == here
