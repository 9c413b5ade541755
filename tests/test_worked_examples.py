# SPDX-License-Identifier: Apache-2.0
"""Worked examples: both engines and Kafka's own classes return equal answers in equal order.

If older versions of Kafka assigned partitions differently, the test expects the answer of Kafka 4,
and a comment states the older one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import kafka_rebalance as kr
from kafka_rebalance.assignors import CooperativeSticky, RebalanceProtocol, Sticky

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine
    from tests.support.oracle import Oracle

Owned = dict[str, str]


def _partitions(text: str) -> tuple[kr.TopicPartition, ...]:
    """Parses partitions such as `t1-0 t2-1`."""
    pairs = (name.rsplit("-", 1) for name in text.split())
    return tuple(kr.TopicPartition(topic, int(partition)) for topic, partition in pairs)


def _group(
    topics: dict[str, int],
    subscriptions: dict[str, str],
    owned: Owned | None = None,
    instances: dict[str, str] | None = None,
) -> kr.GroupSpec:
    """Makes a group with the members in order; members in `owned` have generation 1."""
    held, static = owned or {}, instances or {}
    return kr.GroupSpec(
        "worked-example",
        tuple(kr.Topic(name, count) for name, count in topics.items()),
        tuple(
            kr.Member(
                member_id,
                tuple(names.split()),
                group_instance_id=static.get(member_id),
                owned_partitions=_partitions(held.get(member_id, "")),
                generation_id=1 if member_id in held else None,
            )
            for member_id, names in subscriptions.items()
        ),
    )


TWO_OF_THREE = _group({"t1": 3, "t2": 3}, {"C1": "t1 t2", "C2": "t1 t2"})
UNEQUAL = _group({"t1": 1, "t2": 2, "t3": 2}, {"C1": "t1", "C2": "t1 t2", "C3": "t1 t2 t3"})
STAIRS = _group({"t0": 1, "t1": 2, "t2": 3}, {"C0": "t0", "C1": "t0 t1", "C2": "t0 t1 t2"})
FOUR = {"t1": 2, "t2": 2, "t3": 2, "t4": 2}
ALL_FOUR = "t1 t2 t3 t4"
FIRST_OF_FOUR = {"C1": "t1-0 t2-1 t4-0", "C2": "t1-1 t3-0 t4-1", "C3": "t2-0 t3-1"}
C1_LEFT = {"C2": ALL_FOUR, "C3": ALL_FOUR}
FROM_ZERO = {"t0": 2, "t1": 2, "t2": 2, "t3": 2}

EXAMPLES: dict[str, tuple[str, kr.GroupSpec, Owned]] = {
    "A1 the skew grows with the topics": (
        "range",
        TWO_OF_THREE,
        {"C1": "t1-0 t1-1 t2-0 t2-1", "C2": "t1-2 t2-2"},
    ),
    "A2 the first m mod n get one more": (
        "range",
        _group({"t": 11}, dict.fromkeys(["C0", "C1", "C2", "C3"], "t")),
        {"C0": "t-0 t-1 t-2", "C1": "t-3 t-4 t-5", "C2": "t-6 t-7 t-8", "C3": "t-9 t-10"},
    ),
    "A3 static members first, by instance id": (
        "range",
        _group(
            {"t": 5},
            dict.fromkeys(["a", "b", "c", "d"], "t"),
            instances={"c": "i2", "d": "i1"},
        ),
        {"d": "t-0 t-1", "c": "t-2", "a": "t-3", "b": "t-4"},
    ),
    "B1 over all partitions": (
        "roundrobin",
        TWO_OF_THREE,
        {"C1": "t1-0 t1-2 t2-1", "C2": "t1-1 t2-0 t2-2"},
    ),
    "B2 uneven although a better one exists": (
        "roundrobin",
        UNEQUAL,
        {"C1": "t1-0", "C2": "t2-0", "C3": "t2-1 t3-0 t3-1"},
    ),
    "B3 stairs": (
        "roundrobin",
        STAIRS,
        {"C0": "t0-0", "C1": "t1-0", "C2": "t1-1 t2-0 t2-1 t2-2"},
    ),
    "C1 as B2, but even": (
        "sticky",
        UNEQUAL,
        {"C1": "t1-0", "C2": "t2-0 t2-1", "C3": "t3-0 t3-1"},
    ),
    "C2 as B3, fewest potential members first": (
        "sticky",
        STAIRS,
        {"C0": "t0-0", "C1": "t1-0 t1-1", "C2": "t2-0 t2-1 t2-2"},
    ),
    "C3 the first assignment is round-robin's": (
        "sticky",
        _group(FOUR, dict.fromkeys(["C1", "C2", "C3"], ALL_FOUR)),
        FIRST_OF_FOUR,
    ),
    "C3 a member leaves, round-robin reshuffles": (
        "roundrobin",
        _group(FOUR, C1_LEFT, FIRST_OF_FOUR),
        {"C2": "t1-0 t2-0 t3-0 t4-0", "C3": "t1-1 t2-1 t3-1 t4-1"},
    ),
    # Kafka 2.8 did not assign these partitions to members in turn: it returned C2[t1-1 t3-0 t4-1
    # t2-1] C3[t2-0 t3-1 t1-0 t4-0]. The order within the lists has changed, too.
    "C3 a member leaves, sticky deals what it had": (
        "sticky",
        _group(FOUR, C1_LEFT, FIRST_OF_FOUR),
        {"C2": "t3-0 t1-1 t4-1 t1-0", "C3": "t2-0 t3-1 t2-1 t4-0"},
    ),
    # Kafka 0.11 to 2.x assigned t2-0 to C0, and t0-1 and t3-1 to C2.
    "C4 a member crashes": (
        "sticky",
        _group(
            FROM_ZERO,
            dict.fromkeys(["C0", "C2"], "t0 t1 t2 t3"),
            {"C0": "t0-0 t1-1 t3-0", "C2": "t1-0 t2-1"},
        ),
        {"C0": "t0-0 t3-0 t1-1 t0-1", "C2": "t1-0 t2-1 t2-0 t3-1"},
    ),
    "D1 the target, as sticky has it": (
        "sticky",
        _group({"t": 3}, dict.fromkeys(["C1", "C2", "C3"], "t"), {"C1": "t-0 t-1", "C2": "t-2"}),
        {"C1": "t-0", "C2": "t-2", "C3": "t-1"},
    ),
    "D1 first rebalance: partition 1 is with nobody": (
        "cooperative-sticky",
        _group({"t": 3}, dict.fromkeys(["C1", "C2", "C3"], "t"), {"C1": "t-0 t-1", "C2": "t-2"}),
        {"C1": "t-0", "C2": "t-2", "C3": ""},
    ),
    "D1 second rebalance": (
        "cooperative-sticky",
        _group(
            {"t": 3},
            dict.fromkeys(["C1", "C2", "C3"], "t"),
            {"C1": "t-0", "C2": "t-2", "C3": ""},
        ),
        {"C1": "t-0", "C2": "t-2", "C3": "t-1"},
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name: str, engine: Engine) -> None:
    assignor, group, expected = EXAMPLES[name]
    result = kr.assign(group, assignor, engine=engine)
    assert dict(result) == {member: _partitions(text) for member, text in expected.items()}
    assert result.anomalies == ()


@pytest.mark.oracle
@pytest.mark.parametrize("name", EXAMPLES)
def test_kafka_says_the_same(name: str, oracle: Oracle) -> None:
    assignor, group, expected = EXAMPLES[name]
    answer = oracle.ask(group.to_dict() | {"assignor": assignor})
    assert answer["assignment"] == {
        member: [list(tp) for tp in _partitions(text)] for member, text in expected.items()
    }


@pytest.mark.parametrize("members", [1, 2, 3, 7])
@pytest.mark.parametrize("partitions", [0, 1, 6, 7, 20])
def test_example_a2_for_many_groups(partitions: int, members: int, engine: Engine) -> None:
    names = [f"C{n}" for n in range(members)]
    group = _group({"t": partitions}, dict.fromkeys(names, "t"))
    share, extras = divmod(partitions, members)
    result = kr.assign(group, "range", engine=engine)
    assert result.counts() == [share + (n < extras) for n in range(members)]
    assert [tp.partition for name in names for tp in result[name]] == list(range(partitions))


def test_c3_and_c4_move_nothing_that_a_survivor_held(engine: Engine) -> None:
    for name in ("C3 a member leaves, sticky deals what it had", "C4 a member crashes"):
        assignor, group, _ = EXAMPLES[name]
        delta = kr.assign(group, assignor, engine=engine) - kr.Assignment.owned(group)
        assert delta.revoked.partitions == ()
        assert delta.transferring.partitions == ()


def test_d_cooperative_stops_only_what_moves(engine: Engine) -> None:
    """D1 and D2: cooperative members revoke only t-1 in the first round; eager ones revoke all."""
    _, group, _ = EXAMPLES["D1 first rebalance: partition 1 is with nobody"]
    owned = kr.Assignment.owned(group)
    first = kr.assign(group, "cooperative-sticky", engine=engine)
    delta = first - owned
    assert dict(delta.revoked) == {"C1": _partitions("t-1"), "C2": (), "C3": ()}
    assert dict(delta.kept) == {"C1": _partitions("t-0"), "C2": _partitions("t-2"), "C3": ()}
    assert delta.moves == 0
    # Eager members own nothing when they join, so all partitions are unavailable.
    assert Sticky.supported_protocols == (RebalanceProtocol.EAGER,)
    assert RebalanceProtocol.COOPERATIVE in CooperativeSticky.supported_protocols
    assert len(owned.partitions) == 3
