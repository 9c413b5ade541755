# SPDX-License-Identifier: Apache-2.0
"""Finds the best loads for each number of taken partitions: the budget and the curve of `balanced`.

A partition is *taken* if its present owner loses it. With at most K of them taken, the best loads
have the smallest possible largest load, the `cap`; then the least sum of squares; then the fewest
partitions taken.

1. Every owner keeps all its partitions. Those without an owner go where they raise the sum of
   squares least.
2. Lower the cap by 1, repeatedly. Each time, the members above it release one partition each,
   on the cheapest paths, where a taken partition costs more than any load. So K is the least number
   of taken partitions for this cap, and the squares are the least for this K.
3. From there up to the next cap's K, take step after step. A step is a path from one member to
   another; it takes t partitions and lowers the squares by 2 * gain. The largest gain / t comes
   first. This keeps the sum (squares + taken * 2 * gain / t) minimal, which gives a lower bound for
   the squares at each K. If all steps take one partition, as with equal subscriptions, each K is
   exact.
4. A step can take more than one partition: if a's partitions can go to b only, and b's to c only,
   a and c even out in steps of 2. For a K inside such a step, take the smaller step with the
   largest gain; the loads that it makes may not be the best ones.

Mirror: `src/assignors/balance/budget.rs`.

Cost     step 2: each taken partition is in one path of a flow over topic classes x subscription
         classes + holdings. Step 3: a search of this network for each taken partition.
Source   Ahuja, Magnanti, Orlin: Network Flows, chapter 9 (shortest augmenting paths).
"""

from collections import deque
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from kafka_rebalance.frozen import Frozen

from .classes import Classes
from .flow import UNLIMITED, Flow

_START, _SINK = 0, 1
MOST_ARCS = 30_000_000
"""With a budget, the search for the least squares stops after visiting about this many arcs. In
groups of more than 10,000 arcs, the squares may then be above the least; the largest load is
exact."""


class CurvePoint(Frozen):
    """The best loads that were found if at most `taken_at_most` partitions are taken.

    `greatest` is the smallest possible largest load. No assignment with it has a smaller sum of
    squared loads than `bound`; so if `squares` equals `bound`, it is exact.
    """

    taken_at_most: int
    taken: int
    greatest: int
    squares: int
    bound: int

    @property
    def exact(self) -> bool:
        return self.squares == self.bound

    def to_dict(self) -> dict[str, Any]:
        names = ("taken_at_most", "taken", "greatest", "squares", "bound", "exact")
        return {name: getattr(self, name) for name in names}


def curve_points(classes: Classes, most: int) -> Iterator[CurvePoint]:
    """Yields the points of all K up to `most`; beyond it, only the smallest K of each cap.

    If the curve ends by `most`, its last point is the first K with the least possible squares.
    """
    at = _Loads(classes)
    while True:
        lower = deepcopy(at)
        end = lower.taken if lower.lower() else UNLIMITED
        if at.taken < end:
            inside = at.window(min(end, most + 1)) if at.taken <= most else [(at.point(), [])]
            yield from (point for point, _ in inside)
        if end == UNLIMITED:
            return
        at = lower


def best_within(classes: Classes, taken_at_most: int) -> list[int]:
    """Returns the best loads found for K = `taken_at_most`: a list, by member."""
    at = _Loads(classes)
    while (lower := deepcopy(at)).lower() and lower.taken <= taken_at_most:
        at = lower
    most_steps = 1 + MOST_ARCS // (1 + at.inner)
    *_, (_, loads) = at.window(min(taken_at_most, at.taken + most_steps) + 1)
    return loads


@dataclass(slots=True)
class _Step:
    """A path through the network; it takes `taken` partitions and lowers the squares by 2 gain."""

    gain: int
    taken: int
    giver: int
    arcs: list[int]
    gainer: int


class _Loads:
    """A flow from topic classes to members, and the loads that it makes.

        start --without owner--> orphans of a class --0--> hub --> member --2 * load + 1--> sink
                           held of a class --taken--> hub
                           held of a class --0, as many as held--> member

    The arc to the sink has room for one partition, and its cost rises with each one: the sum of
    costs is the sum of squares. Steps use the first `inner` arcs of `flow`.
    """

    def __init__(self, classes: Classes) -> None:
        hubs, members = len(classes.members), len(classes.class_of_member)
        held: list[dict[int, int]] = [{} for _ in classes.topics]
        for tp, m in classes.owner.items():
            of_class = held[classes.class_of_topic[tp.topic]]
            of_class[m] = of_class.get(m, 0) + 1
        first_hub = 2 + 2 * len(classes.topics)
        self.nodes = range(first_hub + hubs, first_hub + hubs + members)
        self.loads = [sum(of_class.get(m, 0) for of_class in held) for m in range(members)]
        self.order = classes.order
        self.classes = len(classes.topics)
        self.cap = UNLIMITED
        self.flow = flow = Flow(self.nodes.stop)
        self.taken_arcs: list[int] = []
        dear = 2 * sum(classes.supply) + 4
        place = {m: i for i, m in enumerate(classes.order)}
        potential = [-2 * load for load in self.loads]
        for c, of_class in enumerate(held):
            node = 2 + 2 * c
            for m in sorted(of_class, key=lambda m: place[m]):
                flow.preset(flow.add(node, self.nodes[m], of_class[m]))
            flow.potential[node] = min((potential[m] for m in of_class), default=0)
            for k in classes.subscribers[c]:
                self.taken_arcs.append(flow.add(node, first_hub + k, UNLIMITED, dear))
                flow.add(node + 1, first_hub + k, UNLIMITED)
        for k, sharers in enumerate(classes.members):
            flow.potential[first_hub + k] = max(potential[m] for m in sharers)
            for m in sharers:
                flow.add(first_hub + k, self.nodes[m], UNLIMITED)
                flow.potential[self.nodes[m]] = potential[m]
        self.inner = len(flow.head)
        for c, of_class in enumerate(held):
            flow.add(_START, 3 + 2 * c, classes.supply[c] - sum(of_class.values()))
        self.release = {m: flow.add(_START, self.nodes[m], 0) for m in classes.order}
        self.gain = [
            flow.add(node, _SINK, 1, 2 * x + 1)
            for node, x in zip(self.nodes, self.loads, strict=True)
        ]
        # 1.
        self._send()
        self.cap = max(self.loads, default=0)

    @property
    def taken(self) -> int:
        return sum(self.flow.sent(arc) for arc in self.taken_arcs)

    @property
    def squares(self) -> int:
        return sum(x * x for x in self.loads)

    def lower(self) -> bool:
        """Lowers the cap by 1. Returns False if not all partitions fit; `loads` is then void."""
        # 2.
        if self.cap == 0:
            return False
        self.cap -= 1
        wanted = 0
        for m, load in enumerate(self.loads):
            above = load - self.cap
            wanted += max(above, 0)
            self.flow.set_room(self.release[m], max(above, 0))
            self._set_load(m, min(load, self.cap))
        return self._send() == wanted

    def window(self, end: int) -> Iterator[tuple[CurvePoint, list[int]]]:
        """Yields each point, with its loads, from the present K up to `end` - 1."""
        while True:
            yield self.point(), list(self.loads)
            # 3.
            step = self._steepest()
            taken = self.taken
            if step is None or taken + 1 >= end:
                return
            # 4.
            steps = self._steps(step.taken - 1)
            for k in range(1, min(step.taken, end - taken)):
                fitting = (one for taken, one in steps.items() if taken <= k)
                small = max(fitting, key=attrgetter("gain"), default=None)
                line = self.squares - 2 * step.gain * k // step.taken
                # All possible sums of squares are even, or all are odd: round the bound up to one.
                yield self._after(small, taken + k, line + (line + self.squares) % 2)
            if taken + step.taken >= end:
                return
            self._take(step)

    def point(self) -> CurvePoint:
        return self._after(None, self.taken, self.squares)[0]

    def _after(self, step: _Step | None, k: int, bound: int) -> tuple[CurvePoint, list[int]]:
        """Returns the curve's point at `k` after the step (None: no step), and its loads."""
        loads, taken = list(self.loads), self.taken
        if step is not None:
            loads[step.giver] -= 1
            loads[step.gainer] += 1
            taken += step.taken
        squares = sum(x * x for x in loads)
        return CurvePoint(k, taken, max(loads), squares, bound), loads

    def _steepest(self) -> _Step | None:
        """Returns the step with the largest gain per taken partition, or None if no step gains."""
        open_loads = [x for x in self.loads if x < self.cap]
        if not open_loads:
            return None
        most_gain = max(self.loads) - min(open_loads) - 1
        best, most = None, 1
        while most_gain > 0:
            for step in self._steps(most).values():
                if best is None or step.gain * best.taken > best.gain * step.taken:
                    best = step
            # A path leaves each topic class at most once, so it takes at most `classes` partitions.
            if most >= self.classes or (best and best.gain * (most + 1) >= most_gain * best.taken):
                break
            most = min(2 * most, self.classes)
        return best

    def _steps(self, most: int) -> dict[int, _Step]:
        """Returns t -> the step with the largest gain that takes t partitions, for t up to `most`.

        The search goes from members with high loads to those with low ones, over (node, t). A path
        may also return partitions to their owners: then t falls, by `below` at most.
        """
        below = self._most_home()
        width = most + 2 * below + 1
        came: dict[int, int] = {}  # (node, t) -> the arc to it; -1 for the first node
        giver: dict[int, int] = {}
        place = {m: i for i, m in enumerate(self.order)}
        for m in sorted(self.order, key=lambda m: (-self.loads[m], place[m])):
            first = self.nodes[m] * width + below
            if first in came or not self.loads[m]:
                continue
            came[first], giver[first] = -1, m
            queue = deque([first])
            while queue:
                state = queue.popleft()
                node, t = divmod(state, width)
                for arc in self.flow.arcs_of[node]:
                    if arc >= self.inner or not self.flow.room[arc]:
                        continue
                    far = t + self._takes(arc)
                    other = self.flow.head[arc] * width + far
                    if 0 <= far < width and other not in came:
                        came[other], giver[other] = arc, m
                        queue.append(other)
        best: dict[int, _Step] = {}
        for m in sorted(self.order, key=lambda m: (self.loads[m], place[m])):
            for t in range(1, most + 1):
                state = self.nodes[m] * width + below + t
                if self.loads[m] >= self.cap or state not in giver:
                    continue
                gain = self.loads[giver[state]] - self.loads[m] - 1
                if gain > 0 and (t not in best or gain > best[t].gain):
                    arcs = self._path(came, state, width)
                    best[t] = _Step(gain, t, giver[state], arcs, m)
        return dict(sorted(best.items()))

    def _path(self, came: dict[int, int], state: int, width: int) -> list[int]:
        arcs = []
        while (arc := came[state]) >= 0:
            arcs.append(arc)
            t = state % width - self._takes(arc)
            state = self.flow.head[arc ^ 1] * width + t
        return arcs

    def _takes(self, arc: int) -> int:
        cost = self.flow.cost[arc]
        return (cost > 0) - (cost < 0)

    def _most_home(self) -> int:
        """Returns how many partitions a path can return to their owners at most (Bellman-Ford)."""
        least = [0] * self.nodes.stop
        changed = True
        while changed:
            changed = False
            for arc in range(self.inner):
                tail, head = self.flow.head[arc ^ 1], self.flow.head[arc]
                if self.flow.room[arc] and least[tail] + self._takes(arc) < least[head]:
                    least[head] = least[tail] + self._takes(arc)
                    changed = True
        return -min(least)

    def _take(self, step: _Step) -> None:
        for arc in step.arcs:
            self.flow.room[arc] -= 1
            self.flow.room[arc ^ 1] += 1
        self.loads[step.giver] -= 1
        self.loads[step.gainer] += 1

    def _set_load(self, m: int, load: int) -> None:
        self.loads[m] = load
        self.flow.set_room(self.gain[m], 1 if load < self.cap else 0, 2 * load + 1)

    def _send(self) -> int:
        """Sends the waiting flow from the start, raises the loads by it, and returns its amount."""
        self.flow.potential[_START] = max(self.flow.potential)
        total = 0
        while self.flow.tighten(_START, _SINK):
            total += self.flow.largest(_START, _SINK)
            for m, arc in enumerate(self.gain):
                if self.flow.sent(arc):
                    self._set_load(m, self.loads[m] + 1)
        return total
