# SPDX-License-Identifier: Apache-2.0
"""Searches all assignments of a group of few partitions, for `weighted`: branch and bound.

Each search is for an assignment better than the last one found: first for a lower greatest level
(of the fullest member, `weights.py`); once that is at the target, for fewer taken partitions. If
there is none, the last one found is proven to be the best.
Mirror   `src/assignors/balance/small.rs`.
"""

from .search import Effort
from .weights import NOBODY, Loads

MOST_PARTS, MOST_NODES = 24, 100_000


def fitting(loads: Loads, level: int, budget: int, effort: Effort) -> list[int] | None:
    """Returns an assignment within the level that takes at most `budget` partitions.

    None means that there is none, or that `effort` is used up.

    The partitions are assigned in order, the heaviest first; each tries its owner, then the other
    members, the least full first. Of interchangeable members, one is tried. A branch ends if the
    lightest remaining partition fits nowhere, or if the remaining ones exceed the room in total.
    """
    parts, members = loads.parts, [m for pool in loads.pools for m in pool]
    room = {m: loads.room(m, level) for m in members}
    left = sum(loads.weight[i] for i in parts)
    lightest = min(loads.weight[i] for i in parts)
    owned = [0] * (len(loads.members) + 1)
    for i in parts:
        owned[loads.owner[i]] += 1
    is_free = budget >= len(parts)
    where = [NOBODY] * len(loads.partitions)

    def place(n: int, left: int, budget: int) -> bool:
        if n == len(parts):
            return True
        if not effort.spend(1) or sum(r for r in room.values() if r >= lightest) < left:
            return False
        i = parts[n]
        weight, owner, seen = loads.weight[i], loads.owner[i], set()
        readers = [m for q in loads.readers(i) for m in loads.pools[q] if room[m] >= weight]
        readers.sort(key=lambda m: (m != owner, -room[m] * loads.factor[m], m))
        owned[owner] -= 1
        for m in readers:
            is_taken = owner not in (NOBODY, m)
            like = loads.pool_of[m], room[m], NOBODY if is_free or not owned[m] else m
            if is_taken > budget or (m != owner and like in seen):
                continue
            seen.add(like)
            room[m] -= weight
            where[i] = m
            if place(n + 1, left - weight, budget - is_taken):
                return True
            room[m] += weight
        owned[owner] += 1
        return False

    return where if place(0, left, budget) else None
