# SPDX-License-Identifier: Apache-2.0
"""The racks of new partitions' replicas are guessed; Kafka could choose the same racks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

import kafka_rebalance as kr
from kafka_rebalance.bulk import plan_batch
from kafka_rebalance.plans.changes import apply
from kafka_rebalance.plans.changes.made_up import Draw, MadeUp

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine

Racks = tuple[tuple[str | None, ...], ...]


def _group(racks: Racks, members: str, assignor: str = "range") -> kr.GroupSpec:
    """Makes topic t with these racks, and for each letter of `members` a member in that rack."""
    return kr.GroupSpec(
        "g",
        (kr.Topic("t", len(racks), racks),),
        tuple(kr.Member(f"m{n}", ("t",), rack_id=rack) for n, rack in enumerate(members)),
        assignor,
    )


def _grown(group: kr.GroupSpec, partitions: int) -> Racks | None:
    return apply(kr.AddPartitions("t", partitions), group).topics[0].racks


def test_in_as_many_racks_as_there_are_nothing_is_guessed(engine: Engine) -> None:
    group = _group((("a",), ("a",)), "aa", "cooperative-sticky")
    assert _grown(group, 4) == (("a",),) * 4
    plan = kr.plan(group, None, ["partitions t=4"], engine=engine)
    assert not plan.places_guessed
    assert not plan.has_guesses


def test_replicas_go_round_the_racks() -> None:
    assert _grown(_group((("a", "b"), ("b", "c")), "abc"), 5) == (
        *(("a", "b"), ("b", "c")),
        *(("c", "a"), ("a", "b"), ("b", "c")),
    )


def test_a_rack_that_only_members_are_in_may_have_brokers() -> None:
    """The replicas show that racks a and b have brokers; rack c, of a member, may have none."""
    group = _group((("a",), ("b",)), "abc")
    assert _grown(group, 3) == (("a",), ("b",), ("a",))
    (event,) = kr.AddPartitions("t", 3).events(group)
    drawn = (event.edit(group, MadeUp("g", Draw(draw, 32))).group for draw in range(1, 33))
    assert {(grown.topics[0].racks or ())[2] for grown in drawn} == {("a",), ("b",), ("c",)}


def test_one_broker_has_one_rack_whatever_members_say() -> None:
    """In some draws, each partition ends at its owner in a group with all replicas in rack a."""
    group = _group((("a",),), "abc")
    plan = kr.plan(group, None, ["partitions t=4"])
    assert plan.places_guessed
    only = kr.plan(_group((("a",),) * 4, "abc"), None).after
    samples = plan.sample(32)
    for member_id, owned in only.items():
        assert all(member_id in samples.ends[tp] for tp in owned)


def test_a_topic_of_which_nothing_is_known_stays_so() -> None:
    group = kr.GroupSpec("g", (kr.Topic("t", 1),), (kr.Member("m", ("t",), rack_id="a"),))
    assert _grown(group, 2) is None
    assert _grown(_group(((),), "a"), 2) == ((), ())


def test_draws_place_new_replicas_elsewhere(engine: Engine) -> None:
    group = _group((("a",), ("b",), ("c",)), "abc")
    plan = kr.plan(group, None, ["partitions t=5"], engine=engine)
    assert plan.places_guessed
    samples = plan.sample(32)
    new = {kr.TopicPartition("t", 3), kr.TopicPartition("t", 4)}
    assert samples.depends == new
    assert samples.to_dict()["varied"] == ["racks"]
    for tp in new:
        assert set(samples.ends[tp]) == {"m0", "m1", "m2"}


def test_the_core_places_them_alike() -> None:
    """`plan_batch` computes the figures of `plan`, including the share read in a replica's rack."""
    groups = [
        _group((("b",), ("a",)), "abc"),
        _group((("a", "b"), ("b", "c")), "abc", "sticky"),
        _group((("z", "a"), ()), "ab", "cooperative-sticky"),
    ]
    batch = pa.RecordBatch.from_pylist([group.to_dict() for group in groups])
    for partitions in (3, 7):
        text = f"partitions t={partitions}"
        rows = plan_batch(batch, None, [text]).to_pylist()
        for group, row in zip(groups, rows, strict=True):
            figures = kr.plan(group, None, [text]).figures().to_dict()
            assert {name: row[name] for name in figures} == figures
