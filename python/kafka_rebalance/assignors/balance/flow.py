# SPDX-License-Identifier: Apache-2.0
"""Finds flows in small integer networks: a largest flow, and the cheapest of the largest flows.

Largest: Dinic's algorithm (shortest augmenting paths in phases). Cheapest: the primal-dual method.
The reduced cost of an arc is its cost, plus its tail's potential, minus its head's potential. Each
phase finds distances from the source by Dijkstra on reduced costs, and sends flow only along tight
arcs, whose reduced cost is 0. No arc with room ever has a negative reduced cost, which proves the
result. Mirror: `src/assignors/balance/flow.rs`.

Cost     phases are few, because distances are small integers here.
Source   Dinic 1970; Ahuja, Magnanti, Orlin: Network Flows, chapter 9.8 (primal-dual).
"""

from collections import deque
from heapq import heappop, heappush

UNLIMITED = 2**62


class Flow:
    """A network and its flow; arc `2i` is the i-th arc added, `2i + 1` is its reverse."""

    def __init__(self, nodes: int) -> None:
        self.arcs_of: list[list[int]] = [[] for _ in range(nodes)]
        self.head: list[int] = []
        self.room: list[int] = []
        self.cost: list[int] = []
        self.potential = [0] * nodes

    def add(self, tail: int, head: int, capacity: int, cost: int = 0) -> int:
        """Adds an arc and returns its number; `cost` is not negative."""
        arc = len(self.head)
        for node, other, room, price in ((tail, head, capacity, cost), (head, tail, 0, -cost)):
            self.arcs_of[node].append(len(self.head))
            self.head.append(other)
            self.room.append(room)
            self.cost.append(price)
        return arc

    def preset(self, arc: int) -> None:
        """Fills a new arc. The caller must choose potentials with no negative reduced cost."""
        self.room[arc], self.room[arc + 1] = 0, self.room[arc]

    def set_room(self, arc: int, room: int, cost: int = 0) -> None:
        """Resets an arc to this room and cost; the flow that it has sent remains at its head."""
        self.room[arc], self.room[arc + 1] = room, 0
        self.cost[arc], self.cost[arc + 1] = cost, -cost

    def sent(self, arc: int) -> int:
        return self.room[arc + 1]

    def largest(self, source: int, sink: int) -> int:
        """Sends as much as possible along tight arcs (reduced cost 0); returns the amount."""
        total = 0
        while (level := self._levels(source))[sink] is not None:
            unused = [0] * len(self.arcs_of)
            while sent := self._augment(source, sink, level, unused):
                total += sent
        return total

    def cheapest(self, source: int, sink: int) -> int:
        """Sends as much flow as possible at the least cost; returns the cost."""
        total = 0
        while self.tighten(source, sink):
            sent = self.largest(source, sink)
            total += sent * (self.potential[sink] - self.potential[source])
        return total

    def tighten(self, source: int, sink: int) -> bool:
        """Makes the arcs of all cheapest paths tight; returns False if no path is left."""
        distance = self._distances(source)
        farthest = distance[sink]
        if farthest is None:
            return False
        for node, far in enumerate(distance):
            self.potential[node] += farthest if far is None else min(far, farthest)
        return True

    def reachable(self, source: int) -> list[bool]:
        """Returns, by node, whether more flow can reach it from the source along tight arcs."""
        return [level is not None for level in self._levels(source)]

    def _reduced(self, tail: int, arc: int) -> int:
        return self.cost[arc] + self.potential[tail] - self.potential[self.head[arc]]

    def _levels(self, source: int) -> list[int | None]:
        """Returns each node's distance from the source in tight arcs with room; None: no path."""
        level: list[int | None] = [None] * len(self.arcs_of)
        level[source] = 0
        queue = deque([(source, 0)])
        while queue:
            node, depth = queue.popleft()
            for arc in self.arcs_of[node]:
                head = self.head[arc]
                if self.room[arc] and level[head] is None and not self._reduced(node, arc):
                    level[head] = depth + 1
                    queue.append((head, depth + 1))
        return level

    def _augment(self, source: int, sink: int, level: list[int | None], unused: list[int]) -> int:
        """Sends flow along one path and returns the amount (0: no path is left).

        The first `unused[n]` arcs of node n are not tried again: they cannot reach the sink.
        """
        path: list[int] = []
        node = source
        while node != sink:
            arcs = self.arcs_of[node]
            depth = level[node]
            assert depth is not None
            while unused[node] < len(arcs):
                arc = arcs[unused[node]]
                deeper = level[self.head[arc]] == depth + 1
                if self.room[arc] and deeper and not self._reduced(node, arc):
                    break
                unused[node] += 1
            else:
                if not path:
                    return 0
                node = self.head[path.pop() ^ 1]
                unused[node] += 1
                continue
            path.append(arc)
            node = self.head[arc]
        sent = min(self.room[arc] for arc in path)
        for arc in path:
            self.room[arc] -= sent
            self.room[arc ^ 1] += sent
        return sent

    def _distances(self, source: int) -> list[int | None]:
        """Returns each node's least reduced cost from the source (Dijkstra); None: unreachable."""
        distance: list[int | None] = [None] * len(self.arcs_of)
        heap = [(0, source)]
        while heap:
            far, node = heappop(heap)
            if distance[node] is not None:
                continue
            distance[node] = far
            for arc in self.arcs_of[node]:
                head = self.head[arc]
                if self.room[arc] and distance[head] is None:
                    heappush(heap, (far + self._reduced(node, arc), head))
        return distance
