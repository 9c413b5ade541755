# SPDX-License-Identifier: Apache-2.0
"""Members that leave one after another: a plan names the owners in another order."""

from __future__ import annotations

import pytest

import kafka_rebalance as kr
from kafka_rebalance.notes.broker import broker_notes
from kafka_rebalance.notes.other_courses import other_order
from tests.support.broker_groups import broker_group, note_kinds

GROUP = broker_group("consumer/uniform", [[0, 1], [5], [4], [2], [3]])
LEAVE = ["remove-member=m4", "remove-member=m0"]


def elsewhere(one: kr.RebalancePlan, other: kr.RebalancePlan) -> int:
    owners = {tp: member for member, owned in one.after.items() for tp in owned}
    return sum(owners[tp] != member for member, owned in other.after.items() for tp in owned)


@pytest.mark.parametrize("changes", [LEAVE, LEAVE[::-1], ["remove-client=c-4", LEAVE[1]]])
def test_the_other_order_is_that_of_the_plan_with_the_changes_turned_round(
    changes: list[str],
) -> None:
    plan, turned = kr.plan(GROUP, None, changes), kr.plan(GROUP, None, changes[::-1])
    count = elsewhere(plan, turned)
    assert count > 0
    assert other_order(plan) == (1, count, turned.moves)
    (note,) = (one.text for one in broker_notes(plan) if one.kind == "order")
    ends = f"In the other order, {count} partitions end elsewhere, with {turned.moves} moves."
    assert note.endswith(ends)


def test_only_members_that_leave_in_a_row_have_another_order() -> None:
    apart = kr.plan(GROUP, None, [LEAVE[0], "add-members=1", LEAVE[1]])
    one = kr.plan(GROUP, None, [LEAVE[0], "remove-members=1"])
    led = kr.plan(GROUP.edited(assignor="cooperative-sticky"), None, LEAVE)
    assert [other_order(plan) for plan in (apart, one, led)] == [None] * 3
    assert "order" not in note_kinds(apart)


def test_three_members_have_five_other_orders() -> None:
    three = [*LEAVE, "remove-member=m2"]
    plan = kr.plan(GROUP, None, three)
    found = other_order(plan)
    assert found is not None
    assert found.orders == 5
    turned = kr.plan(GROUP, None, [three[1], three[0], three[2]])
    assert found.elsewhere >= elsewhere(plan, turned)


def test_an_order_without_effect_is_not_named() -> None:
    group = broker_group("consumer/uniform", [[0, 1], [2, 3], [4, 5]])
    plan = kr.plan(group, None, ["remove-member=m0", "remove-member=m1"])
    assert other_order(plan) is None  # one member is left, and owns everything
    assert "order" not in note_kinds(plan)
