# SPDX-License-Identifier: Apache-2.0
"""Searches for an assignment with a low greatest level and few taken partitions, for `weighted`.

A member's level is how full it is (`weights.py`); the greatest is the level of the fullest member.
An assignment is a list `where`: partition -> member, or NOBODY while it is unassigned. `Effort`
counts the work of a whole search, so that no answer depends on the time that it took.
Mirror   `src/assignors/balance/search.rs`.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heapreplace

from .weights import NOBODY, Loads

PARTNERS, MOST_PARTNERS, LOOKS = 6, 64, 8


@dataclass(slots=True)
class Effort:
    """The number of comparisons that are left; the search ends early at 0."""

    left: int

    def spend(self, work: int) -> bool:
        """Counts `work` comparisons; returns whether any are left."""
        self.left -= work
        return self.left > 0


def hand_out(loads: Loads, where: list[int], effort: Effort) -> None:
    """Assigns the unassigned partitions: the heaviest first, each to the subscriber that is least
    full afterwards. Partitions without weight go to the one with the fewest partitions.
    """
    load, count = [0] * len(loads.members), [0] * len(loads.members)
    for i in loads.parts:
        if where[i] != NOBODY:
            load[where[i]] += loads.weight[i]
            count[where[i]] += 1
    free = [i for i in loads.parts if where[i] == NOBODY]
    for has_weight in (True, False):
        batch = [i for i in free if (loads.weight[i] > 0) == has_weight]
        if not batch:
            continue
        queues = []
        for pool in loads.pools:
            queue = [(load[m], count[m], m) if has_weight else (count[m], load[m], m) for m in pool]
            heapify(queue)
            queues.append(queue)
        for i in batch:
            weight, best, least = loads.weight[i], NOBODY, 0
            effort.spend(1 + len(loads.readers(i)))
            for q in loads.readers(i):
                if queues[q]:
                    first, _, m = queues[q][0]
                    after = loads.level(m, first + weight) if has_weight else first
                    if best == NOBODY or after < least:
                        best, least = q, after
            m = where[i] = queues[best][0][2]
            load[m] += weight
            count[m] += 1
            one = (load[m], count[m], m) if has_weight else (count[m], load[m], m)
            heapreplace(queues[best], one)


class State:
    """An assignment that single steps change, and the loads of its members."""

    def __init__(self, loads: Loads, where: list[int], effort: Effort) -> None:
        self.loads, self.where, self.effort = loads, where, effort
        self.load = [0] * len(loads.members)
        self.has: list[list[int]] = [[] for _ in loads.members]
        self.taken = 0
        for i in loads.parts:
            self.load[where[i]] += loads.weight[i]
            self.has[where[i]].append(i)
            self.taken += loads.owner[i] not in (NOBODY, where[i])
        self.order = [sorted((self.load[m], m) for m in pool) for pool in loads.pools]
        self.near: dict[int, list[int]] = {}
        effort.spend(len(loads.parts))

    def fullest(self) -> tuple[int, int]:
        """Returns the greatest level, and the negated number of the member that has it."""
        tops = [of[-1] for of in self.order if of]
        return max((self.loads.level(m, load), -m) for load, m in tops) if tops else (0, 0)

    def move(self, i: int, to: int) -> None:
        sender, weight = self.where[i], self.loads.weight[i]
        self.taken += self.cost(i, sender, to)
        self.has[sender].remove(i)
        insort(self.has[to], i)
        self.where[i] = to
        for m, more in ((sender, -weight), (to, weight)):
            order = self.order[self.loads.pool_of[m]]
            del order[bisect_left(order, (self.load[m], m))]
            self.load[m] += more
            insort(order, (self.load[m], m))

    def cost(self, i: int, sender: int, to: int) -> int:
        """Returns the change in taken partitions (-1, 0, 1) if i goes from `sender` to `to`."""
        owner = self.loads.owner[i]
        return 0 if owner == NOBODY else (owner == sender) - (owner == to)

    def partners(self, m: int) -> list[int]:
        """Returns the least full members that can read a topic of m: a few from each pool."""
        loads, mine = self.loads, self.loads.pool_of[m]
        if mine not in self.near:
            self.near[mine] = sorted({q for of in loads.reads if mine in of for q in of})
        found = []
        for q in self.near[mine]:
            for load, other in self.order[q][:PARTNERS]:
                if other != m:
                    found.append((loads.level(other, load), other))
        self.effort.spend(len(found))
        return [other for _, other in sorted(found)[:MOST_PARTNERS]]


def improve(state: State, target: int, budget: int) -> None:
    """Takes load from the fullest member until no level is above `target`, or no step helps.

    In a step, the fullest member gives one partition to another member, or swaps one with it. All
    results up to the target are equally good: then the fewest taken partitions decide.
    """
    while True:
        level, m = state.fullest()
        m = -m
        if level <= target or state.effort.left <= 0:
            return
        best, chosen = (level, 0, 0), None
        # The first step that reaches `lowest`, and takes at most 1 partition, ends the search.
        heaviest = state.loads.weight[state.has[m][0]]
        lowest = max(target, state.loads.level(m, state.load[m] - heaviest))
        for other in state.partners(m):
            for cost, after, give, back in _steps(state, m, other, budget - state.taken, best[0]):
                key = max(after, target), cost, after
                if key < best:
                    best, chosen = key, (give, back, other)
            if best < (lowest, 2):
                break
        if chosen is None:
            return
        give, back, other = chosen
        state.move(give, other)
        if back != NOBODY:
            state.move(back, m)


def _steps(
    state: State, m: int, other: int, most: int, limit: int
) -> Iterator[tuple[int, int, int, int]]:
    """Yields the steps that take at most `most` more partitions: (change in taken partitions, the
    fuller member's level afterwards, partition given, partition given back or NOBODY).

    A step is left out if its partition is so light that m stays above the level `limit`, or if
    the partition given back is so light that `other` rises above it.
    """
    loads, load = state.loads, state.load
    weight, factor = loads.weight, loads.factor
    mine, theirs = loads.pool_of[m], loads.pool_of[other]
    more = loads.level(m, load[m]) - loads.level(other, load[other])
    if more <= 0:
        return
    least = load[m] - loads.room(m, limit)
    gives = [i for i in state.has[m] if weight[i] >= least and theirs in loads.readers(i)]
    if not gives:
        return
    # With this difference of weights, both members are equally full afterwards.
    ideal = more // (factor[m] + factor[other])
    least = load[other] + weight[gives[-1]] - loads.room(other, limit)
    back = [j for j in state.has[other] if weight[j] >= least and mine in loads.readers(j)]
    lightest_first = [weight[j] for j in reversed(back)]
    state.effort.spend(len(gives) + len(back))
    for i in gives:
        cost = state.cost(i, m, other)

        def after(change: int) -> int:
            return max(loads.level(m, load[m] - change), loads.level(other, load[other] + change))

        if weight[i] and cost <= most:
            yield cost, after(weight[i]), i, NOBODY
        if weight[i] < ideal:
            continue
        # Of `back`, try only partitions near the weight that makes both members equally full.
        at = len(back) - bisect_left(lightest_first, weight[i] - ideal + 1)
        for near in back[at : at + LOOKS], back[max(0, at - LOOKS) : at][::-1]:
            for j in near:
                state.effort.spend(1)
                both = cost + state.cost(j, other, m)
                if both <= most and weight[j] < weight[i]:
                    yield both, after(weight[i] - weight[j]), i, j
                    break


def bring_home(state: State, limit: int) -> None:
    """Returns partitions to their owners, the lightest first, where levels stay at most `limit`."""
    loads = state.loads
    for i in reversed(loads.parts):
        owner = loads.owner[i]
        if owner in (NOBODY, state.where[i]):
            continue
        if loads.level(owner, state.load[owner] + loads.weight[i]) <= limit:
            state.move(i, owner)
