# SPDX-License-Identifier: Apache-2.0
"""Finds a flow of minimum cost, by cancelling negative cycles in Kafka's order.

Several flows can have the minimum cost, so the order of nodes and edges decides the answer.

1. The residual graph has, for each edge, an edge with the capacity that is left, and an edge back
   with the flow as its capacity and the negative cost.
2. Bellman-Ford begins at an added node, with an edge of cost 0 to each other node. There are as
   many rounds as nodes, the added one included. In each round, each node in order relaxes its
   edges, in the order of their ends.
3. The first edge that is relaxed in the last round leads to a negative cycle, whose edges take as
   much flow as fits. Begin again at 1, until the last round relaxes no edge.

Source   org.apache.kafka.streams.processor.internals.assignment.Graph (kafka-streams 4.3.1).
"""

from collections import deque
from collections.abc import Iterator
from itertools import pairwise


class _Edge:
    def __init__(self, capacity: int, cost: int, flow: int) -> None:
        self.capacity = capacity
        self.cost = cost
        self.flow = flow


class Graph:
    """A graph with a flow; nodes are integers, with at most one edge between two nodes."""

    def __init__(self) -> None:
        self.edges: dict[tuple[int, int], _Edge] = {}
        self._ends: dict[int, list[int]] = {}

    def add(self, start: int, end: int, capacity: int, cost: int, flow: int) -> None:
        self.edges[start, end] = _Edge(capacity, cost, flow)
        self._ends.setdefault(start, []).append(end)
        self._ends.setdefault(end, []).append(start)

    def fill(self, source: int, sink: int) -> None:
        """Finds a first flow: shortest paths to the sink, lower neighbours visited first."""
        nodes = self._sorted()
        while True:
            parent = {source: source}
            queue = deque([source])
            while queue and sink not in parent:
                at = queue.popleft()
                for end, left, _ in self._residual(at, nodes[at]):
                    if left and end not in parent:
                        parent[end] = at
                        queue.append(end)
            if sink not in parent:
                return
            path = [sink]
            while path[-1] != source:
                path.append(parent[path[-1]])
            self._push(path[::-1])

    def solve(self) -> None:
        """Makes the flow one of minimum cost."""
        nodes = self._sorted()
        while cycle := self._negative_cycle(nodes):
            self._push(cycle)

    def _negative_cycle(self, nodes: dict[int, list[int]]) -> list[int] | None:
        # 1.
        residual = [(at, [*self._residual(at, ends)]) for at, ends in nodes.items()]
        # 2.
        distance = dict.fromkeys(nodes, 0)
        parent: dict[int, int] = {}
        for number in range(len(nodes) + 1):
            relaxed = False
            for at, edges in residual:
                for end, left, cost in edges:
                    if left and distance[at] + cost < distance[end]:
                        distance[end] = distance[at] + cost
                        parent[end] = at
                        relaxed = True
                        if number == len(nodes):
                            return _cycle(parent, end)
            # If this round relaxes no edge, no later round does.
            if not relaxed:
                break
        return None

    def _residual(self, at: int, ends: list[int]) -> Iterator[tuple[int, int, int]]:
        """Yields end, capacity and cost of each edge of the residual graph from a node."""
        for end in ends:
            edge = self.edges.get((at, end))
            if edge is not None:
                yield end, edge.capacity - edge.flow, edge.cost
            else:
                back = self.edges[end, at]
                yield end, back.flow, -back.cost

    def _push(self, path: list[int]) -> None:
        """Sends as much flow as fits along a path."""
        steps = [*pairwise(path)]
        most = min(next(self._residual(a, [b]))[1] for a, b in steps)
        for a, b in steps:
            edge = self.edges.get((a, b))
            if edge is not None:
                edge.flow += most
            else:
                self.edges[b, a].flow -= most

    def _sorted(self) -> dict[int, list[int]]:
        return {node: sorted(ends) for node, ends in sorted(self._ends.items())}


def _cycle(parent: dict[int, int], node: int) -> list[int]:
    # 3. Following the parents leads into the cycle.
    met = set()
    while node not in met:
        met.add(node)
        node = parent[node]
    cycle, at = [node], parent[node]
    while at != node:
        cycle.append(at)
        at = parent[at]
    return [node, *reversed(cycle)]
