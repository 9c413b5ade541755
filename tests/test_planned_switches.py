# SPDX-License-Identifier: Apache-2.0
"""`switch-assignor` is a rolling bounce; real members did as its plan shows."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

import kafka_rebalance as kr
from kafka_rebalance.assignors.registry import BUILT_IN, SERVER_SIDE, protocol_name
from kafka_rebalance.plans import plans_by_leader
from kafka_rebalance.plans.changes.other_assignor import run_by
from kafka_rebalance.switching.rounds import Bounce, bounce_of_one_name, one_bounce, two_bounces
from tests.support.generate_changes import groups_and_changes
from tests.support.groups_by_library import group, said
from tests.support.plan_checks import check_rounds

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_rebalance.assignors.registry import Engine

COOPERATIVE = "cooperative-sticky"


def running(static: tuple[int, ...] = (), assignor: str = COOPERATIVE) -> kr.GroupSpec:
    """Three Java members of a[0-6] and b[0-3]; some are static."""
    tps = [kr.TopicPartition("a", p) for p in range(7)] + [
        kr.TopicPartition("b", p) for p in range(4)
    ]
    members = tuple(
        kr.Member(
            f"j-{i}-abcdef0{i}-1111-4222-8333-444455556666",
            ("a", "b"),
            client_id=f"j-{i}",
            group_instance_id=f"s-{i}" if i in static else None,
            owned_partitions=tuple(tps[i - 1 :: 3]),
            generation_id=5,
        )
        for i in (1, 2, 3)
    )
    return kr.GroupSpec("g", (kr.Topic("a", 7), kr.Topic("b", 4)), members, assignor)


def ends(plan: kr.RebalancePlan) -> dict[str, str]:
    return {
        member.client_id or "": " ".join(f"{t}{p}" for t, p in sorted(plan.after[member.member_id]))
        for member in plan.final.members
    }


def test_a_switch_ends_as_three_real_java_members_did(engine: Engine) -> None:
    """On a broker, sticky assigned a[4-6] to j-3, which had left and come back."""
    plan = kr.plan(running(), changes=["switch-assignor=sticky"], engine=engine)
    assert ends(plan) == {"j-1": "a0 a2 b1 b3", "j-2": "a1 a3 b0 b2", "j-3": "a4 a5 a6"}
    assert [step.cause.split()[-2:] for step in plan.steps[-2:]] == [
        ["takes", "over"],
        ["comes", "back"],
    ]
    assert [len(one.assignment) for one in plan.rounds[-2:]] == [2, 3]
    assert plan.figures().depends_on_ids
    assert len(plan.newcomers) == 3


def test_the_last_static_member_takes_over_with_its_new_id(engine: Engine) -> None:
    plan = kr.plan(running(static=(1, 2, 3)), changes=["switch-assignor=sticky"], engine=engine)
    (taken,) = plan.rounds
    assert plan.steps[-1].cause == "s-3 restarts as a static member, and sticky takes over"
    assert {one.group_instance_id for one in taken.group.members} == {"s-1", "s-2", "s-3"}
    assert not {m.member_id for m in taken.group.members} & {m.member_id for m in running().members}
    assert not any(member.owned_partitions for member in taken.group.members)


def test_members_that_have_restarted_are_eager_in_a_cooperative_group(engine: Engine) -> None:
    plan = kr.plan(running(), changes=["switch-assignor=sticky"], engine=engine)
    (gone,) = plan.steps[2].rounds  # j-1 is back, j-2 leaves
    claims = {one.client_id: bool(one.owned_partitions) for one in gone.group.members}
    assert claims == {"j-1": False, "j-3": True}


def first_bounce(drawn: kr.GroupSpec, old: str, new: str, engine: Engine) -> Bounce:
    if protocol_name(old) == protocol_name(new):
        return bounce_of_one_name(drawn, old, new, engine)
    return two_bounces(drawn, old, new, engine)[0]


@pytest.mark.soak
def test_a_plan_of_a_switch_is_the_first_bounce_of_compare(engine: Engine) -> None:
    random, compared = Random(4), 0
    for drawn, _ in groups_and_changes(91, 60):
        old = drawn.assignor or ""
        names = [one for one in BUILT_IN if one not in SERVER_SIDE and one != old]
        new = random.choice(names)
        if old in SERVER_SIDE:
            continue
        try:
            plan = kr.plan(drawn, changes=[f"switch-assignor={new}"], engine=engine)
        except kr.AssignorThrows:
            continue
        check_rounds(plan)
        try:
            first = first_bounce(drawn, old, new, engine)
        except kr.AssignorThrows:
            with pytest.raises(kr.AssignorThrows):  # in the second bounce, after the plan's end
                one_bounce(plan.final, (new, old), new, engine)
            continue
        assert first.rebalances == len(plan.rounds)
        assert first.moves == (plan.moves if first.is_exact else None)
        compared += first.is_exact
    assert compared > 40


def test_later_changes_are_planned_for_members_that_list_the_new_assignor_alone(
    engine: Engine,
) -> None:
    plan = kr.plan(
        running(assignor="range"),
        changes=[f"switch-assignor={COOPERATIVE}", "remove-members=1"],
        engine=engine,
    )
    assert [one.kind for one in plan.rounds] == ["eager"] * 6 + ["cooperative"]


def test_a_group_of_librdkafka_alone_switches_to_the_librarys_own_class() -> None:
    own = group("g", "range", "librdkafka")
    (led,) = plans_by_leader(own, ["switch-assignor=roundrobin"])
    assert led.answering == ("librdkafka/range", "librdkafka/roundrobin")
    mixed = own.edited(members=(*own.members, kr.Member("j", ("t",), client_library="java")))
    for led in plans_by_leader(mixed, ["switch-assignor=roundrobin"]):
        assert led.answering[-1] == "roundrobin"
    with pytest.raises(kr.GroupError, match="already"):
        plans_by_leader(own, ["switch-assignor=range"])


def test_the_leader_decides_between_classes_of_one_name(engine: Engine) -> None:
    """The last member to restart leads: until it leaves, its old class answers."""
    began = running(assignor="range")
    led = began.edited(leader=began.members[-1].member_id)
    plan = kr.plan(led, changes=["switch-assignor=librdkafka/range"], engine=engine)
    answered = [one.group.assignor for one in plan.rounds]
    assert answered == ["range"] * 4 + ["librdkafka/range"] * 2
    other = kr.plan(run_by(led, "librdkafka/range"), changes=["switch-assignor=range"])
    assert [one.group.assignor for one in other.rounds] == [
        *(["librdkafka/range"] * 4),
        *(["range"] * 2),
    ]


def test_the_rounds_before_the_take_over_are_counted_and_not_shown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    switch = ("plan", "--switch-assignor", "sticky")
    text = said(capsys, tmp_path, [running()], *switch)
    assert "6 rounds of cooperative-sticky before it is replaced (--all shows them)" in text
    assert "j-3-abcd leaves, and sticky takes over, round 1 (eager), generation 12" in text
    assert "j-1-abcd leaves, round 1" not in text
    assert "j-1-abcd leaves, round 1" in said(capsys, tmp_path, [running()], *switch, "--all")
