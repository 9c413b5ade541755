# SPDX-License-Identifier: Apache-2.0
"""Proves that no assignment has a lower greatest level, for `weighted`.

    area        topics that only members of a set read weigh more than the room of the set
    partition   the heaviest partition of a topic, at its strongest subscriber
    pigeonhole  equal members, each may read everything: of the m·k + 1 heaviest partitions, one of
                m members has k + 1, at least the k + 1 lightest of them (k = 1 to 3)
    budget      members above a level must give up at least this many partitions (the heaviest
                ones), and more than the budget allows

Each bound has its witness: the set, the partition, the partitions, or the members.
Source   budget: Aggarwal, Motwani, Zhu: The load rebalancing problem, J. Algorithms 2006.
Mirror   `src/assignors/balance/bound.rs`.
"""

from collections import Counter

from .levels import cut
from .weights import NOBODY, Loads


def area(loads: Loads) -> int:
    """Returns the least level at which the weights fit if partitions could be divided."""
    classes = loads.classes
    supply = [0] * len(classes.topics)
    for i in loads.parts:
        supply[loads.topic_class[i]] += loads.weight[i]
    # By subscription class: how many members have each factor.
    sizes: list[Counter[int]] = [Counter() for _ in classes.members]
    for pool in loads.pools:
        for m in pool:
            sizes[classes.class_of_member[loads.members[m]]][loads.factor[m]] += 1
    topics = [c for c, weight in enumerate(supply) if weight]
    members = sorted({k for c in topics for k in classes.subscribers[c] if sizes[k]})
    level, full = 0, members
    stuck, total = topics, sum(supply)
    while stuck:
        level = _least_level(sum(supply[c] for c in stuck), [sizes[k] for k in full], level)
        room = {k: min(total, _room(sizes[k], level)) for k in members}
        _, stuck, full = cut(classes, topics, room, supply)
    return level


def _room(sizes: Counter[int], level: int) -> int:
    return sum(count * (level // factor) for factor, count in sizes.items())


def _least_level(weight: int, sizes: list[Counter[int]], low: int) -> int:
    """Returns the least level, above `low`, at which members of these sizes have enough room."""
    every = sum(sizes, Counter())
    high = max(low, weight * max(every, default=0))
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _room(every, middle) >= weight else (middle + 1, high)
    return low


def heaviest(loads: Loads) -> dict[int, int]:
    """Returns topic class -> its heaviest partition."""
    found: dict[int, int] = {}
    for i in loads.parts:
        found.setdefault(loads.topic_class[i], i)
    return found


def strongest(loads: Loads, part: int) -> int:
    """Returns the level of a subscriber with the largest capacity that has only this partition."""
    pools = [loads.pools[q] for q in loads.readers(part)]
    return loads.weight[part] * min(loads.factor[pool[0]] for pool in pools if pool)


def pigeonhole(loads: Loads) -> int:
    read = {q for c in heaviest(loads) for q in loads.reads[c]}
    pools = [loads.pools[q] for q in read if loads.pools[q]]
    if len(pools) != 1:
        return 0
    m, found = len(pools[0]), 0
    for k in (1, 2, 3):
        if m * k < len(loads.parts):
            lightest = loads.parts[m * k - k : m * k + 1]
            found = max(found, sum(loads.weight[i] for i in lightest))
    return found * loads.factor[pools[0][0]]


def owned_by(loads: Loads) -> dict[int, list[int]]:
    """Returns member -> its partitions, the heaviest first."""
    found: dict[int, list[int]] = {}
    for i in loads.parts:
        if loads.owner[i] != NOBODY:
            found.setdefault(loads.owner[i], []).append(i)
    return found


def shed(loads: Loads, owned: dict[int, list[int]], level: int) -> list[int]:
    """Returns the fewest partitions without which no owner exceeds the level.

    Each owner gives up its heaviest ones; in place of the last of them, the lightest that suffices.
    """
    gone = []
    for m, parts in owned.items():
        excess = sum(loads.weight[i] for i in parts) - loads.room(m, level)
        n = 0
        while excess > 0:
            excess -= loads.weight[parts[n]]
            n += 1
        if n:
            gone += parts[: n - 1]
            least = excess + loads.weight[parts[n - 1]]
            gone.append(next(i for i in reversed(parts) if loads.weight[i] >= least))
    return gone


def within_budget(loads: Loads, owned: dict[int, list[int]], budget: int, high: int) -> int:
    """Returns the least level that at most `budget` given up partitions allow; at most `high`."""
    low = 0
    while low < high:
        middle = (low + high) // 2
        fits = len(shed(loads, owned, middle)) <= budget
        low, high = (low, middle) if fits else (middle + 1, high)
    return low
