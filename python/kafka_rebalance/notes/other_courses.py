# SPDX-License-Identifier: Apache-2.0
"""Plays other courses of a plan: members leave in another order, or return at another time."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby, permutations
from typing import NamedTuple

from kafka_rebalance.assignors.registry import SERVER_SIDE
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.plans.changes.bounces import BounceMembers, heartbeat_ms
from kafka_rebalance.plans.changes.change import Change
from kafka_rebalance.plans.changes.made_up import PLANNED
from kafka_rebalance.plans.changes.members import RemoveMembers
from kafka_rebalance.plans.rebalance_plan import RebalancePlan, replay

_MOST_PERMUTED = 3
"""If more members than this leave one after another, only the reverse order is played."""


class OtherOrder(NamedTuple):
    """The order of departures after which the most partitions have other owners than in the plan.

    `elsewhere` is the number of these partitions, `moves` the number of moves in this order, and
    `orders` the number of orders that were played.
    """

    orders: int
    elsewhere: int
    moves: int


def other_order(plan: RebalancePlan) -> OtherOrder | None:
    """Returns the order of departures whose result differs most from the plan's; None if none does.

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


class OtherPause(NamedTuple):
    """The other course of restarts, not played by the plan. `is_sooner`: members return sooner.

    `elsewhere` is the number of partitions that have another owner than in the plan. `chance` is
    the chance (0 to 1) of the plan's own course at each restart; None if the plan assumes the time.
    """

    is_sooner: bool
    rebalances: int
    moves: int
    elsewhere: int
    chance: float | None


def other_pause(plan: RebalancePlan) -> OtherPause | None:
    """Returns the other course of restarts; None if the plan's is certain. Cost: up to 2 plans."""
    bounces = [one for one in plan.changes if isinstance(one, BounceMembers)]
    groups = (plan.group, plan.final) if bounces else ()
    doubtful = [one for one in bounces if not all(map(one.is_certain_in, groups))]
    if not doubtful:
        return None
    for away_ms in (0, heartbeat_ms(plan.group)):
        changes = tuple(
            replace(one, away_ms=away_ms) if one in doubtful else one for one in plan.changes
        )
        played = replay(plan.group, changes, plan.engine, PLANNED, plan.possible)
        if len(played.steps) != len(plan.steps):
            chance = doubtful[0].chance_to_be_first(plan.group)
            return OtherPause(
                is_sooner=away_ms == 0,
                rebalances=len(played.rounds),
                moves=played.moves,
                elsewhere=len({tp for _, tp in _by_origin(played) - _by_origin(plan)}),
                chance=None
                if doubtful[0].away_ms is None
                else round(1 - chance if away_ms == 0 else chance, 2),
            )
    return None


def _by_origin(plan: RebalancePlan) -> set[tuple[str, TopicPartition]]:
    """Returns (owner, partition) at the plan's end; owners are named by their first ids."""
    origins = plan.steps[-1].origins
    return {(origins.get(member_id, member_id), tp) for member_id, tp in _ends(plan)}


def _orders(changes: tuple[Change, ...]) -> Iterator[tuple[Change, ...]]:
    """Yields `changes` in other orders: each permutes one run of consecutive removals."""
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
    """Returns whether a change removes named members, so that its order among others can vary."""
    if not isinstance(change, RemoveMembers):
        return False
    return change.member is not None or change.client_id is not None


def _ends(plan: RebalancePlan) -> set[tuple[str, TopicPartition]]:
    return {(member_id, tp) for member_id, owned in plan.after.items() for tp in owned}
