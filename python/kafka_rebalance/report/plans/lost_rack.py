# SPDX-License-Identifier: Apache-2.0
"""Writes notes on members that may run in a lost rack."""

from collections.abc import Iterable, Sized

from kafka_rebalance.plans import Step
from kafka_rebalance.plans.lost_rack import at_step
from kafka_rebalance.report.text.names import counted

_AT_FIRST = "Before the changes, "


def step_note(step: Step) -> str | None:
    """Returns the note that follows a step's cause; None if the step loses no rack."""
    unknown = len(at_step(step))
    if not unknown:
        return None
    have, which, keeps = ("has", "it runs", "it") if unknown == 1 else ("have", "they run", "them")
    return (
        f": {counted(unknown, 'member')} {have} no client.rack. The plan keeps {keeps}, wherever "
        f"{which}; remove those in the rack with --remove-member"
    )


def groups_note(members: Iterable[Sized | None], *, before: bool = False) -> str | None:
    """Returns the note for groups that are not shown step by step.

    `members` are those of each group, of `plans/lost_rack.py`: `in_plan`, or with `before`,
    `at_first`.
    """
    known = [len(one) for one in members if one is not None]
    unknown, of_groups = sum(known), sum(map(bool, known))
    if not unknown:
        return None
    where = f" of {counted(of_groups, 'group')}" if len(known) > 1 else ""
    have, ran = ("has", "it ran") if unknown == 1 else ("have", "they ran")
    return (
        f"{_AT_FIRST * before}{counted(unknown, 'member')}{where} {have} no client.rack. The "
        f"figures are as if {ran} elsewhere than in the lost rack; remove those in the rack with "
        "--remove-member."
    )
