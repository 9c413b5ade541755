# SPDX-License-Identifier: Apache-2.0
"""Under another assignor than its own, a group's members send what that assignor's library
sends.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import kafka_rebalance as kr
from kafka_rebalance.assignors.registry import KAFKAS, protocol_name
from kafka_rebalance.bulk import compare_batch, plan_batch
from kafka_rebalance.plans.changes.other_assignor import run_by
from kafka_rebalance.switching.rounds import two_bounces
from tests.support import java_clients
from tests.support.generate_changes import groups_and_changes

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine
    from tests.support.oracle import Oracle


def _of_kafka_python(members: int = 3, partitions: int = 9, **sent: Any) -> kr.GroupSpec:
    """Makes a settled group on kafka-python's own range, as a snapshot describes it."""
    each = partitions // members
    made = tuple(
        kr.Member(
            f"kafka-python-3.0.12-{m}",
            ("t",),
            client_id="kafka-python-3.0.12",
            owned_partitions=tuple(
                kr.TopicPartition("t", p) for p in range(m * each, (m + 1) * each)
            ),
            generation_id=4,
            client_library="kafka-python",
            **({"subscription_version": 0} | sent),
        )
        for m in range(members)
    )
    topics = (kr.Topic("t", partitions),)
    return kr.GroupSpec("g", topics, made, "range", 4, leader_library="python")


def _batch(group: kr.GroupSpec) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([group.to_dict()])


@pytest.mark.oracle
@pytest.mark.parametrize("changes", [[], ["add-members=1"], ["switch-assignor=cooperative-sticky"]])
def test_the_plug_ins_members_keep_what_they_own(oracle: Oracle, changes: list[str]) -> None:
    """Kafka's class is the reference, because the plug-in sends Java's bytes
    (tests/test_clients_sent.py).
    """
    name = None if changes and changes[0].startswith("switch") else "cooperative-sticky"
    group = _of_kafka_python()
    for engine in ("rust", "reference"):
        plan = kr.plan(group, name, changes, engine=engine)
        newest = [
            replace(
                step, before=step.before.edited(members=tuple(map(_newest, step.before.members)))
            )
            for step in plan.steps
        ]
        if name is None:
            steps = java_clients.bounced(group, "cooperative-sticky", newest)
            found = [java_clients.difference_in_bounce(oracle, one) for one in steps]
        else:
            found = [java_clients.difference(oracle, step) for step in newest]
        assert found == [None] * len(newest)


@pytest.mark.oracle
def test_java_plays_the_same_rounds_of_random_groups(oracle: Oracle) -> None:
    """Members of any library change to another one of Kafka's assignors; both engines agree."""
    rng, rounds = random.Random(18), 0
    for drawn, changes in groups_and_changes(18, 200):
        group = java_clients.with_clients(drawn, rng)
        name = rng.choice([one for one in KAFKAS if one != protocol_name(group.assignor or "")])
        texts = [one for one in changes if not one.startswith("switch")]
        planned, other = (_planned(group, name, texts, one) for one in ("rust", "reference"))
        if isinstance(planned, str) or isinstance(other, str):
            assert planned == other
            continue
        assert planned.to_dict() == other.to_dict()
        for step in planned.steps:
            newest = step.before.edited(members=tuple(map(_newest, step.before.members)))
            assert java_clients.difference(oracle, replace(step, before=newest)) is None
            rounds += len(step.rounds)
    assert rounds > 200


def _planned(
    group: kr.GroupSpec, name: str, changes: list[str], engine: Engine
) -> kr.RebalancePlan | str:
    """Returns the plan, or the text of the error."""
    try:
        return kr.plan(group, name, changes, engine=engine)
    except kr.GroupError as error:
        return f"{type(error).__name__}: {error}"


def _newest(member: kr.Member) -> kr.Member:
    return replace(member, subscription_version=None, user_data=None, user_data_generation_id=None)


@pytest.mark.parametrize("sent", [{}, {"user_data": "none"}, {"subscription_version": 1}])
def test_a_settled_group_moves_nothing(engine: Engine, sent: dict[str, Any]) -> None:
    group = _of_kafka_python(**sent)
    for name in ("sticky", "cooperative-sticky"):
        assert kr.plan(group, name, engine=engine).moves == 0
    compared = kr.compare(group, engine=engine)
    moves = {one.assignor: one.figures.moves for one in compared.candidates if one.figures}
    assert set(moves.values()) == {0} | {moves["roundrobin"]}


def test_batches_and_plans_agree() -> None:
    group = _of_kafka_python()
    (row,) = plan_batch(_batch(group), "cooperative-sticky", []).to_pylist()
    assert (row["rounds"], row["moves"]) == (1, 0)
    (row,) = plan_batch(_batch(group), None, ["switch-assignor=sticky"]).to_pylist()
    assert row["moves"] == kr.plan(group, None, ["switch-assignor=sticky"]).moves
    (row,) = compare_batch(_batch(group), ["add-members=1"]).to_pylist()
    one = kr.compare(group, ["add-members=1"])
    found = {each["assignor"]: each["moves"] for each in row["candidates"]}
    assert found == {each.assignor: each.figures.moves for each in one.candidates if each.figures}


def test_the_same_protocol_name_keeps_what_members_sent(engine: Engine) -> None:
    group = _of_kafka_python(user_data="none").edited(assignor="sticky")
    sent = [(member.subscription_version, member.user_data) for member in group.members]
    for name in ("sticky", "kafka-python/sticky"):
        kept = run_by(group, name)
        assert [(m.subscription_version, m.user_data) for m in kept.members] == sent
    assert kr.plan(group, None, engine=engine).moves == 9 - 3  # Kafka's class reads no claims


def test_old_clients_stay_old_for_librdkafkas_leader(engine: Engine) -> None:
    """Members that send version 1 or 2 have no rack, and a leader with librdkafka needs racks."""
    racks = (("a",), ("b",), ("a",), ("b",))
    members = (
        kr.Member("j", ("t",), subscription_version=2, client_library="java"),
        kr.Member("r", ("t",), rack_id="a", client_library="librdkafka"),
    )
    group = kr.GroupSpec("g", (kr.Topic("t", 4, racks=racks),), members, "range")
    with pytest.raises(kr.AssignorThrows, match="older than 3"):
        kr.plan(group, "librdkafka/cooperative-sticky", engine=engine)
    unknown = run_by(group.edited(members=(replace(members[0], rack_id="b"),)), "sticky")
    assert unknown.members[0].rack_id is None


def test_members_that_restart_for_a_switch_send_anew(engine: Engine) -> None:
    """The plan predicts the rebalances of a group whose members already sent the newest version."""
    group = _of_kafka_python()
    newest = group.edited(members=tuple(map(_newest, group.members)))
    for old, new in (("range", "cooperative-sticky"), ("range", "sticky")):
        assert two_bounces(group, old, new, engine) == two_bounces(newest, old, new, engine)
