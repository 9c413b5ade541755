# SPDX-License-Identifier: Apache-2.0
"""Computes the cells of a plan's picture: members by partitions, before and after."""

from dataclasses import dataclass
from enum import Enum

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.plans import RebalancePlan

from .plan import names_in_plan


class Cell(Enum):
    """The state of one partition at one member over the whole plan."""

    KEPT = "kept"
    REVOKED = "revoked"
    GAINED = "gained"


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells by row and partition. Each member before or after the plan has a row, new ones last.

    A member that returns from a restart keeps its row. `names` has the short name of each row's
    member; `counts` has its numbers of partitions before and after, None while it is absent.
    """

    title: str
    names: list[str]
    partitions: list[TopicPartition]
    cells: dict[tuple[int, TopicPartition], Cell]
    counts: list[tuple[int | None, int | None]]


def grid_of(plan: RebalancePlan) -> Grid:
    names = names_in_plan(plan)
    origins = plan.steps[-1].origins
    rows = {member.member_id: row for row, member in enumerate(plan.group.members)}
    row_of = dict(rows)
    for member in plan.final.members:
        origin = origins.get(member.member_id, member.member_id)
        row_of[member.member_id] = rows.setdefault(origin, len(rows))
    before = _by_row(plan.before, row_of)
    after = _by_row(plan.after, row_of)
    partitions = sorted({tp for _, tp in before | after})
    cells = {
        place: Cell.KEPT
        if place in before and place in after
        else (Cell.REVOKED if place in before else Cell.GAINED)
        for place in before | after
    }
    old, new = ({row_of[m]: len(held[m]) for m in held} for held in (plan.before, plan.after))
    return Grid(
        plan.title,
        [names[member_id] for member_id in rows],
        partitions,
        cells,
        [(old.get(row), new.get(row)) for row in range(len(rows))],
    )


def _by_row(held: Assignment, row_of: dict[str, int]) -> set[tuple[int, TopicPartition]]:
    return {(row_of[member_id], tp) for member_id, owned in held.items() for tp in owned}
