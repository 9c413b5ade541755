# SPDX-License-Identifier: Apache-2.0
"""Proves lower bounds for the greatest level, for `weighted`.

A member's level is how full it is (`weights.py`); the greatest is the level of the fullest member.

    area        topics that only a set of members reads weigh more than these members have room for
    partition   a topic's heaviest partition alone, at the subscriber with the largest capacity
    pigeonhole  m equal members read all topics: of the m·k + 1 heaviest partitions, one member has
                k + 1, which weigh at least as much as the k + 1 lightest of them
    budget      below this level, owners must give up more partitions (their heaviest ones) than the
                budget allows

Each bound has its witness: the set, the partition, the partitions, or the members.
Source   budget: Aggarwal, Motwani, Zhu: The load rebalancing problem, J. Algorithms 2006.
Mirror   `src/assignors/balance/bound.rs`.
"""

from collections.abc import Callable
from itertools import accumulate

from .levels import cut
from .weights import NOBODY, Loads


def area(loads: Loads) -> int:
    """Returns the greatest level of the best assignment, if partitions could be divided."""
    classes = loads.classes
    supply = [0] * len(classes.topics)
    for i in loads.parts:
        supply[loads.topic_class[i]] += loads.weight[i]
    stuck = [c for c, weight in enumerate(supply) if weight]
    full = sorted({k for c in stuck for k in classes.subscribers[c]})
    level, total = 0, sum(supply)
    while stuck:
        level = _least_level(loads, sum(supply[c] for c in stuck), full, level)
        room = {k: min(total, _room(loads, [k], level)) for k in full}
        # Only topics that are stuck at this level can be stuck at a higher one.
        _, stuck, full = cut(classes, stuck, room, supply)
    return level


def _room(loads: Loads, members: list[int], level: int) -> int:
    pools = [loads.pools[q] for k in members for q in loads.pools_of[k] if loads.pools[q]]
    return sum(len(pool) * loads.room(pool[0], level) for pool in pools)


def _least_level(loads: Loads, weight: int, members: list[int], low: int) -> int:
    """Returns the lowest level, at least `low`, at which the `members` have room for `weight`."""
    high = max(low, weight * max(loads.factor))
    return _least(low, high, lambda level: _room(loads, members, level) >= weight)


def _least(low: int, high: int, fits: Callable[[int], bool]) -> int:
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    return low


def alone(loads: Loads) -> list[int]:
    """Returns the level of each partition's largest subscriber if it owns only this partition."""
    strongest: dict[int, int] = {}
    for c in {loads.topic_class[i] for i in loads.parts}:
        pools = [loads.pools[q] for q in loads.reads[c]]
        strongest[c] = min(loads.factor[pool[0]] for pool in pools if pool)
    return [loads.weight[i] * strongest[loads.topic_class[i]] for i in loads.parts]


def pigeonhole(loads: Loads) -> int:
    read = {q for c in {loads.topic_class[i] for i in loads.parts} for q in loads.reads[c]}
    pools = [loads.pools[q] for q in read if loads.pools[q]]
    if len(pools) != 1:
        return 0
    m, found = len(pools[0]), 0
    before = [0, *accumulate(loads.weight[i] for i in loads.parts)]
    for k in range(1, (len(loads.parts) - 1) // m + 1):
        found = max(found, before[m * k + 1] - before[m * k - k])
    return loads.level(pools[0][0], found)


def owned_by(loads: Loads) -> list[list[int]]:
    """Returns the partitions of each present owner, the heaviest first."""
    found: dict[int, list[int]] = {}
    for i in loads.parts:
        if loads.owner[i] != NOBODY:
            found.setdefault(loads.owner[i], []).append(i)
    return list(found.values())


def shed(loads: Loads, owned: list[list[int]], level: int, most: int) -> list[int] | None:
    """Returns the fewest partitions that owners must give up so that no owner exceeds the level;
    None if these are more than `most`.

    Each owner gives up its heaviest partitions; its last one is the lightest that suffices.
    """
    gone: list[int] = []
    for parts in owned:
        excess = sum(loads.weight[i] for i in parts) - loads.room(loads.owner[parts[0]], level)
        n = 0
        while excess > 0:
            excess -= loads.weight[parts[n]]
            n += 1
        if n:
            least = excess + loads.weight[parts[n - 1]]
            gone += parts[: n - 1]
            gone.append(next(i for i in reversed(parts) if loads.weight[i] >= least))
            if len(gone) > most:
                return None
    return gone


def within_budget(loads: Loads, owned: list[list[int]], budget: int, low: int) -> int:
    """Returns the lowest level, at least `low`, for which owners must give up at most `budget`
    partitions.
    """

    def fits(level: int) -> bool:
        return shed(loads, owned, level, budget) is not None

    if fits(low):
        return low
    high = max(loads.level(loads.owner[of[0]], sum(loads.weight[i] for i in of)) for of in owned)
    return _least(low, high, fits)
