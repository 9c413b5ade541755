# SPDX-License-Identifier: Apache-2.0
"""Finds the members that may run in a lost rack: they send no rack, so their racks are unknown.

librdkafka sends an empty string if `client.rack` is not set, other libraries send null.
"""

from collections.abc import Iterable, Iterator

from kafka_rebalance.group.spec import GroupSpec, counted
from kafka_rebalance.plans.rebalance_plan import RebalancePlan
from kafka_rebalance.plans.rounds import Step

from .findings import Note

_LOST_RACK = "remove-rack="
BEFORE = "Before the changes, "


def lost_rack_of_plan(plan: RebalancePlan) -> Iterator[Note]:
    """Yields a note if a step of the plan removes a rack while racks of members are unknown."""
    ids = [member_id for step in plan.steps for member_id in at_step(step)]
    if unknown := tuple(dict.fromkeys(ids)):
        yield Note("lost rack", lost_rack_text(len(unknown)), unknown)


def lost_rack(group: GroupSpec, changes: Iterable[str]) -> Iterator[Note]:
    """Yields a note if a change removes a rack and racks of the group's members are unknown."""
    unknown = tuple(_without_rack(group)) if loses_rack(changes) else ()
    if unknown:
        yield Note("lost rack", f"{BEFORE}{lost_rack_text(len(unknown))}", unknown)


def lost_rack_text(unknown: int, where: str = "") -> str:
    """Returns sentences on `unknown` members without a known rack; `where` follows "members"."""
    have, ran = ("has", "it ran") if unknown == 1 else ("have", "they ran")
    return (
        f"{counted(unknown, 'member')}{where} {have} no client.rack. The figures are as if {ran} "
        "elsewhere than in the lost rack; remove those in the rack with --remove-member."
    )


def step_note(step: Step) -> str | None:
    """Returns the text to append to a step's cause; None if the step loses no rack, or all members'
    racks are known.
    """
    unknown = len(at_step(step))
    return f": {lost_rack_text(unknown).removesuffix('.')}" if unknown else None


def at_step(step: Step) -> list[str]:
    """Returns the ids of the members without a known rack if the step loses a rack, else []."""
    return _without_rack(step.before) if loses_rack([step.cause]) else []


def _without_rack(group: GroupSpec) -> list[str]:
    return [member.member_id for member in group.members if member.rack is None]


def loses_rack(changes: Iterable[str]) -> bool:
    return any(change.startswith(_LOST_RACK) for change in changes)
