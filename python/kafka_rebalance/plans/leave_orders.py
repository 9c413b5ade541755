# SPDX-License-Identifier: Apache-2.0
"""Plays members that leave one after another in other orders.

The threads of one application, or several consumers that stop together, leave in an order that
nobody chooses. A broker computes a target after each leave, and the next target depends on it.
"""

from collections.abc import Iterator
from itertools import groupby, permutations
from typing import NamedTuple

from kafka_rebalance.assignors.registry import SERVER_SIDE
from kafka_rebalance.group.model import TopicPartition

from .changes import Change, RemoveMembers
from .changes.made_up import PLANNED
from .rebalance_plan import RebalancePlan, replay

_MOST_PERMUTED = 3
"""Of more members that leave in a row, only the opposite order is played."""


class OtherOrder(NamedTuple):
    """The order of leaving, of `orders` others, in which most partitions end elsewhere."""

    orders: int
    elsewhere: int
    moves: int


def other_order(plan: RebalancePlan) -> OtherOrder | None:
    """Returns the other order that differs most from the plan's.

    Returns None if a leader assigns, if fewer than two changes in a row remove a named member or
    client, or if every order that was played ends at the plan's owners.

    Cost     a plan for each other order: up to 5 for three members in a row.
    """
    if plan.group.assignor not in SERVER_SIDE or plan.final.assignor not in SERVER_SIDE:
        return None
    others = list(_orders(plan.changes))
    ends = _ends(plan)
    found = []
    for changes in others:
        played = replay(plan.group, changes, plan.engine, PLANNED, plan.possible)
        elsewhere = {tp for _, tp in _ends(played) ^ ends}
        found.append(OtherOrder(len(others), len(elsewhere), played.moves))
    most = max(found, key=lambda one: one.elsewhere, default=None)
    return most if most is not None and most.elsewhere else None


def _orders(changes: tuple[Change, ...]) -> Iterator[tuple[Change, ...]]:
    """Yields the changes with one row of removals in another order."""
    start = 0
    for is_removal, members in groupby(changes, _names_who_leaves):
        row = tuple(members)
        end = start + len(row)
        if is_removal:
            few = len(row) <= _MOST_PERMUTED
            for other in permutations(row) if few else [row[::-1]]:
                if other != row:
                    yield (*changes[:start], *other, *changes[end:])
        start = end


def _names_who_leaves(change: Change) -> bool:
    """Returns whether a change removes members by name; "the last" are others in another order."""
    if not isinstance(change, RemoveMembers):
        return False
    return change.member is not None or change.client_id is not None


def _ends(plan: RebalancePlan) -> set[tuple[str, TopicPartition]]:
    return {(member_id, tp) for member_id, owned in plan.after.items() for tp in owned}
