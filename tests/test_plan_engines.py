# SPDX-License-Identifier: Apache-2.0
"""Plans of both engines are equal in every attribute of every step and round."""

from __future__ import annotations

import copy
import pickle
from dataclasses import fields
from typing import Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance import GroupSpec, Member, Topic, TopicPartition
from tests.support.generate_changes import groups_and_changes

ATTRIBUTES = (
    "has_guesses",
    "made_up",
    "before",
    "after",
    "settled",
    "moves",
    "unavailable",
    "waiting",
    "leaderless",
    "knows_generation",
    "newcomers",
    "places_guessed",
    "possible",
    "final",
    "group",
    "changes",
)


def both(group: GroupSpec, assignor: str | None, changes: list[Any]) -> list[Any]:
    plans: list[Any] = []
    for engine in ("rust", "reference"):
        try:
            plans.append(kr.plan(group, assignor, changes, engine=engine))
        except kr.GroupError as error:
            plans.append((type(error), error.path, error.problem))
    return plans


def parts(assignment: kr.Assignment) -> Any:
    return list(assignment.items()), assignment.anomalies


def check(core: kr.RebalancePlan, reference: kr.RebalancePlan) -> None:
    for name in ATTRIBUTES:
        assert getattr(core, name) == getattr(reference, name), name
    assert core.figures() == reference.figures()
    assert [*core.unavailable] == [*reference.unavailable]
    assert len(core.steps) == len(reference.steps)
    # The last step is read first: then the core must also compute the groups before it.
    for mine, its in reversed([*zip(core.steps, reference.steps, strict=True)]):
        for step_field in fields(its):
            if step_field.name != "rounds":
                name = step_field.name
                assert getattr(mine, name) == getattr(its, name), (its.cause, name)
        for one, other in zip(mine.rounds, its.rounds, strict=True):
            for round_field in fields(other):
                name = round_field.name
                assert getattr(one, name) == getattr(other, name), (its.cause, name)
            for name in ("held", "assignment", "kept", "revoked", "gained", "withheld"):
                assert parts(getattr(one, name)) == parts(getattr(other, name)), name
            assert one.moves == other.moves == one.delta.moves
    assert core.to_dict() == reference.to_dict()


@pytest.mark.soak
def test_every_attribute_is_equal(first_seed: int) -> None:
    planned = failed = drawn = 0
    for group, changes in groups_and_changes(first_seed, 160):
        core, reference = both(group, None, changes)
        if isinstance(reference, tuple):
            assert core == reference
            failed += 1
            continue
        check(core, reference)
        planned += 1
        if reference.has_guesses and drawn < 4:
            drawn += 1
            assert core.sample(4) == reference.sample(4)
    assert planned > 60
    assert failed > 10
    assert drawn == 4


OWNED = tuple(TopicPartition("t", p) for p in range(6))
PAIR = GroupSpec(
    "g",
    (Topic("t", 6), Topic("u", 2)),
    (
        Member("a", ("t", "u"), owned_partitions=OWNED[:3], generation_id=7),
        Member("b-1", ("t",), "static", owned_partitions=OWNED[3:], generation_id=6),
    ),
    "cooperative-sticky",
    generation_id=9,
)


@pytest.mark.parametrize(
    "changes",
    [
        # A topic is removed and added again while members still own its partitions.
        ["remove-topics=t", "add-topics t=4", "add-members=1"],
        ["remove-topics=t,u", "add-topics u=3,t=2"],
        ["bounce-members=*", "bounce-members=*,dynamic", "bounce-members=a,static"],
        ["switch-assignor=range", "add-members=2,instance-id=s-1", "remove-member=s-2"],
        ["partitions t=9", "switch-assignor=sticky", "bounce-members=static,dynamic"],
        # Numbers and a name that the core cannot represent, and changes that do not fit the group.
        [kr.RemoveMembers(2**40)],
        [kr.AddPartitions("t", 2**40)],
        [kr.AddTopics((("v", 2**40),))],
        ["add-members=1", "remove-member=c"],
        ["add-topics \ud800=1"],
        ["remove-members=2"],
    ],
)
def test_small_plans_are_equal_in_both_engines(changes: list[Any]) -> None:
    core, reference = both(PAIR, None, changes)
    if isinstance(reference, tuple):
        assert core == reference
    else:
        check(core, reference)


def test_a_single_member_that_restarts_and_a_plan_upon_a_plan() -> None:
    alone = PAIR.edited(members=PAIR.members[:1])
    core, reference = both(alone, None, ["bounce-members=a"])
    check(core, reference)
    check(*both(core.final, None, ["bounce-members=*", "add-members=2"]))


def test_a_plan_can_be_copied_and_pickled() -> None:
    plan = kr.plan(PAIR, None, ["add-members=1"])
    assert copy.deepcopy(plan.steps) == plan.steps
    assert pickle.loads(pickle.dumps(plan.rounds)) == plan.rounds
    for again in (copy.deepcopy(plan), pickle.loads(pickle.dumps(plan))):
        assert again == plan
        assert len({again, plan}) == 1
        assert again.to_dict() == plan.to_dict()
    assert not hasattr(plan.rounds[0], "nothing of this name")


def test_a_repeated_plan_does_not_compute_the_best_result_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for engine in ("rust", "reference"):
        plan = kr.plan(PAIR, None, ["add-members=1"], engine=engine)
        name = "kafka_rebalance.plans.playing.best_possible"
        monkeypatch.setattr(name, lambda *_, **__: pytest.fail("the optimum is known"))
        assert plan.sample(8).draws == 8
        monkeypatch.undo()
