# SPDX-License-Identifier: Apache-2.0
"""Writes notes on members that may run in a lost rack: they send no rack, so it is unknown.

librdkafka sends an empty text if `client.rack` is not set, other libraries send null.
"""

from collections.abc import Iterable

from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans import RebalancePlan, Step
from kafka_rebalance.report.text.names import counted

_LOST_RACK = "remove-rack="
_AT_FIRST = "Before the changes, "


def step_note(step: Step) -> str | None:
    """Returns the note that follows a step's cause; None if the step loses no rack."""
    unknown = len(_unknown_at(step))
    if not unknown:
        return None
    have, which, keeps = ("has", "it runs", "it") if unknown == 1 else ("have", "they run", "them")
    return (
        f": {counted(unknown, 'member')} {have} no client.rack. The plan keeps {keeps}, wherever "
        f"{which}; remove those in the rack with --remove-member"
    )


def in_plan(plan: RebalancePlan) -> int | None:
    """Returns how many members' racks are unknown when a rack is lost; None if none is lost."""
    if not _loses_rack(map(str, plan.changes)):
        return None
    return len(set().union(*map(_unknown_at, plan.steps)))


def at_first(group: GroupSpec, changes: Iterable[str]) -> int | None:
    """Returns how many racks are unknown before any change; None if no rack is lost."""
    if not _loses_rack(changes):
        return None
    return sum(member.rack is None for member in group.members)


def groups_note(members: Iterable[int | None], *, before: bool = False) -> str | None:
    """Returns the note for groups that are not shown step by step.

    `members` has a count for each group: of `in_plan`, or with `before`, of `at_first`.
    """
    known = [count for count in members if count is not None]
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


def _unknown_at(step: Step) -> set[str]:
    """Returns the members that stay where a rack is lost only because they send no rack."""
    if not _loses_rack([step.cause]):
        return set()
    return {member.member_id for member in step.before.members if member.rack is None}


def _loses_rack(changes: Iterable[str]) -> bool:
    return any(change.startswith(_LOST_RACK) for change in changes)
