# SPDX-License-Identifier: Apache-2.0
"""In a plan's rounds, each member claims the partitions that its client library claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import kafka_rebalance as kr
from kafka_rebalance.bulk import plan_batch
from tests.support import java_clients

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine
    from tests.support.oracle import Oracle

A, B = (kr.TopicPartition("a", 0), kr.TopicPartition("a", 1)), kr.TopicPartition("b", 0)


def _owning_two_topics() -> kr.GroupSpec:
    """Makes topics a and b with two partitions; m1 owns the first of each topic, m2 the second."""
    members = tuple(
        kr.Member(
            f"m{p + 1}",
            ("a", "b"),
            owned_partitions=(kr.TopicPartition("a", p), kr.TopicPartition("b", p)),
            generation_id=3,
        )
        for p in (0, 1)
    )
    topics = (kr.Topic("a", 2), kr.Topic("b", 2))
    return kr.GroupSpec("g", topics, members, "cooperative-sticky")


def _figures(group: kr.GroupSpec, change: str) -> dict[str, int]:
    import pyarrow as pa

    batch = pa.RecordBatch.from_pylist([group.to_dict()])
    (row,) = plan_batch(batch, None, [change]).to_pylist()
    return {name: row[name] for name in ("rounds", "unavailable")}


def test_a_removed_topic_takes_one_round(engine: Engine) -> None:
    plan = kr.plan(_owning_two_topics(), None, ["remove-topics=b"], engine=engine)
    assert len(plan.rounds) == 1
    assert plan.settled
    assert plan.unavailable == {}
    assert _figures(_owning_two_topics(), "remove-topics=b") == {"rounds": 1, "unavailable": 0}


def test_a_topic_that_a_member_left_is_handed_out_at_once(engine: Engine) -> None:
    plan = kr.plan(_owning_two_topics(), None, ["resubscribe=m1:a"], engine=engine)
    assert B in plan.rounds[0].gained["m2"]
    assert all(B not in withheld for withheld in plan.rounds[0].withheld.values())
    # m1 revoked partition B before it joined, so B is unavailable in this round.
    assert plan.rounds[0].unavailable == (B,)
    assert _figures(_owning_two_topics(), "resubscribe=m1:a")["unavailable"] == len(
        plan.unavailable
    )


def test_claims_are_what_is_held_and_still_subscribed(engine: Engine) -> None:
    """C1 unsubscribes from topic a. As a Java client, C1 claims only b: one round is enough."""
    members = (
        kr.Member("C1", ("a", "b"), owned_partitions=(A[0], B), generation_id=1),
        kr.Member("C2", ("a",), owned_partitions=(A[1],), generation_id=1),
    )
    topics = (kr.Topic("a", 2), kr.Topic("b", 1))
    group = kr.GroupSpec("g", topics, members, "cooperative-sticky")
    plan = kr.plan(group, None, ["resubscribe=C1:b"], engine=engine)
    assert len(plan.rounds) == 1
    assert plan.rounds[0].group.members[0].owned_partitions == (B,)
    assert plan.after.to_dict() == {"C1": [["b", 0]], "C2": [["a", 1], ["a", 0]]}


def test_a_client_that_never_sends_a_generation(engine: Engine) -> None:
    """Two members run aiokafka's sticky assignor, one runs Java; the new member runs aiokafka."""
    members = tuple(
        kr.Member(
            f"m{p}",
            ("a",),
            owned_partitions=(kr.TopicPartition("a", p),),
            generation_id=4,
            subscription_version=None if p == 0 else 0,
            user_data=None if p == 0 else "partitions",
        )
        for p in range(3)
    )
    group = kr.GroupSpec("g", (kr.Topic("a", 6),), members, "sticky")
    plan = kr.plan(group, None, ["add-members=1,like=m1"], engine=engine)
    again = plan.final.members
    assert [(m.generation_id, m.user_data) for m in again] == [
        (5, None),
        (5, "partitions"),
        (5, "partitions"),
        (5, "partitions"),
    ]


@pytest.mark.oracle
@pytest.mark.parametrize("change", ["remove-topics=b", "resubscribe=m1:a", "add-members=2"])
def test_java_plays_the_same_rounds(oracle: Oracle, change: str) -> None:
    plan = kr.plan(_owning_two_topics(), None, [change])
    assert [java_clients.difference(oracle, step) for step in plan.steps] == [None]


CLAIMED = (  # by i, a, b, c: None while the member is away
    (2, 3, 3, 2),
    *((0, None, 3, 3), (0, 0, 4, 4), (0, 0, 3, 3)),
    *((0, 0, None, 3), (0, 0, 0, 4), (0, 0, 0, 3)),
)
"""How many partitions the members of a real group claimed in the generations 2 to 8."""


@pytest.mark.parametrize("new", ["sticky", "roundrobin"])
def test_in_a_bounce_restarted_members_claim_nothing(engine: Engine, new: str) -> None:
    """Java's consumers (Kafka 4.4.0) did so on a broker: d left, then all restarted with `new`
    before cooperative-sticky in their list; i is static.
    """
    members = tuple(
        kr.Member(
            f"{name}-0b5c2d1e-0000-4000-8000-123456789000",
            ("t", "u"),
            client_id=name,
            group_instance_id="i" if name == "i" else None,
        )
        for name in "iabcd"
    )
    topics = (kr.Topic("t", 7), kr.Topic("u", 5))
    group = kr.GroupSpec("g", topics, members, "cooperative-sticky")
    group = group.owning(kr.assign(group), generation_id=1)
    changes = [f"remove-member={members[-1].member_id}", f"switch-assignor={new}"]
    rounds = kr.plan(group, None, changes, engine=engine).rounds
    claimed = [
        {m.client_id: len(m.owned_partitions) for m in one.group.members}
        for one in rounds
        if one.assignor == "cooperative-sticky"
    ]
    assert [tuple(one.get(name) for name in "iabc") for one in claimed] == [*CLAIMED]
    assert [one.generation_id for one in rounds] == [*range(2, 11)]
