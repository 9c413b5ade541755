# SPDX-License-Identifier: Apache-2.0
"""Swaps tasks between processes so that fewer partitions are read from another rack (KIP-925).

1. Swaps are enabled if a strategy is set and all racks are known: each process has one rack, and
   each replica of each input partition has one; with standby replicas, of each changelog partition
   too. KIP-924's form reads a process's rack from its first member only, and one replica with a
   rack is enough. Members of a future version share a process, so the racks in a process can
   differ.
2. A task at a process costs the traffic cost for each partition that has no replica in the rack of
   the process, and the non-overlap cost if the task is not there now.
3. Active tasks: a flow of minimum cost from the tasks to the processes. Each process keeps its
   number of tasks. `balance_subtopology` also bounds a process's tasks of each subtopology.
4. Standby tasks: such a flow for each pair of processes with different racks, with the tasks that
   may move between the two; at most 4 rounds over all pairs, while a round moves a task.

Source   RackAwareTaskAssignor, MinTrafficGraphConstructor, BalanceSubtopologyGraphConstructor,
         TaskAssignmentUtils (kafka-streams 4.3.1).
"""

import math
from collections.abc import Callable, Sequence
from itertools import combinations

from kafka_rebalance.wire.streams_protocol import TaskId

from .application import Partition, Topology
from .min_cost_flow import Graph
from .processes import StreamsProcess

NONE, BALANCE_SUBTOPOLOGY = "none", "balance_subtopology"
_ROUNDS = 4
_SOURCE = -1

MayMove = Callable[[StreamsProcess, StreamsProcess, TaskId], bool]
PartitionsOf = Callable[[TaskId], Sequence[Partition]]


def is_known(
    topology: Topology,
    processes: Sequence[StreamsProcess],
    *,
    inputs: bool = True,
    changelogs: bool,
    public: bool = False,
) -> bool:
    """Returns whether all needed racks are known (step 1); `public`: in KIP-924's form."""
    if any(not one.rack or not (public or {*one.racks} == {one.rack}) for one in processes):
        return False
    counted = [
        *(topology.inputs.values() if inputs else ()),
        *(topology.changelogs.values() if changelogs else ()),
    ]
    enough = any if public else all
    return all(enough(topology.racks[topic][p]) for tps in counted for topic, p in tps)


class RackCosts:
    """Makes the swaps for one assignor. `partitions_of`: task -> partitions that have costs."""

    def __init__(
        self,
        topology: Topology,
        strategy: str,
        partitions_of: PartitionsOf,
        traffic_cost: int,
        non_overlap_cost: int,
    ) -> None:
        self._topology = topology
        self._balanced = strategy == BALANCE_SUBTOPOLOGY
        self._partitions_of = partitions_of
        self._traffic_cost = traffic_cost
        self._non_overlap_cost = non_overlap_cost

    def swap_active(
        self,
        processes: Sequence[StreamsProcess],
        tasks: Sequence[TaskId],
        subtopologies: Sequence[int],
    ) -> None:
        """Does step 3 for assigned, sorted `tasks`; `subtopologies` matter if balanced."""
        self._swap(processes, tasks, subtopologies if self._balanced else None, active=True)

    def swap_standby(
        self, processes: Sequence[StreamsProcess], may_move: MayMove, *, balanced: bool = False
    ) -> None:
        """Does step 4."""
        for _ in range(_ROUNDS):
            moved = False
            for pair in combinations(processes, 2):
                if pair[0].rack == pair[1].rack:
                    continue
                lists = [
                    [t for t in source.standby if not target.has(t) and may_move(source, target, t)]
                    for source, target in (pair, pair[::-1])
                ]
                if all(lists):
                    tasks = sorted(lists[0] + lists[1])
                    own = sorted({task.subtopology_id for task in tasks})
                    moved |= self._swap(pair, tasks, own if balanced else None, active=False)
            if not moved:
                break

    def _swap(
        self,
        processes: Sequence[StreamsProcess],
        tasks: Sequence[TaskId],
        subtopologies: Sequence[int] | None,
        *,
        active: bool,
    ) -> bool:
        """Moves tasks by a flow of minimum cost; returns whether any task moved."""
        if not tasks:
            return False
        now = [
            next(
                i for i, one in enumerate(processes) if t in (one.active if active else one.standby)
            )
            for t in tasks
        ]
        costs = [[self._cost(t, one, active=active) for one in processes] for t in tasks]
        if subtopologies is None:
            chosen = _min_traffic(costs, now)
        else:
            chosen = _balance_subtopology(costs, now, tasks, subtopologies)
        for task, old, new in zip(tasks, now, chosen, strict=True):
            if old != new:
                processes[old].take(task, active=active)
                processes[new].give(task, active=active)
        return chosen != now

    def _cost(self, task: TaskId, process: StreamsProcess, *, active: bool) -> int:
        """Returns the cost of a task at a process (step 2)."""
        racks = self._topology.racks
        remote = sum(process.rack not in racks[topic][p] for topic, p in self._partitions_of(task))
        here = task in (process.active if active else process.standby)
        return self._traffic_cost * remote + (0 if here else self._non_overlap_cost)


def _min_traffic(costs: list[list[int]], now: list[int]) -> list[int]:
    tasks, processes = len(costs), len(costs[0])
    graph, sink = Graph(), tasks + processes
    for task, row in enumerate(costs):
        graph.add(_SOURCE, task, 1, 0, 1)
        for i, cost in enumerate(row):
            graph.add(task, tasks + i, 1, cost, int(now[task] == i))
    for i in range(processes):
        graph.add(tasks + i, sink, now.count(i), 0, now.count(i))
    graph.solve()
    return [_first(graph, task, range(tasks, sink)) for task in range(tasks)]


def _balance_subtopology(
    costs: list[list[int]], now: list[int], tasks: Sequence[TaskId], subtopologies: Sequence[int]
) -> list[int]:
    count, processes = len(tasks), len(costs[0])
    second = count + processes * len(subtopologies)
    graph, sink = Graph(), second + processes
    firsts: list[int] = []
    for task, row in zip(tasks, costs, strict=True):
        n = len(firsts)
        firsts.append(count + processes * subtopologies.index(task.subtopology_id))
        graph.add(_SOURCE, n, 1, 0, 0)
        for i, cost in enumerate(row):
            graph.add(n, firsts[n] + i, 1, cost, 0)
    for i in range(processes):
        graph.add(second + i, sink, now.count(i), 0, 0)
        for start in range(count, second, processes):
            if of_one := firsts.count(start):
                most = math.ceil(now.count(i) * 1.0 / count * of_one)
                graph.add(start + i, second + i, most, 0, 0)
    graph.fill(_SOURCE, sink)
    graph.solve()
    return [_first(graph, n, range(at, at + processes)) for n, at in enumerate(firsts)]


def _first(graph: Graph, task: int, ends: range) -> int:
    return next(i for i, end in enumerate(ends) if graph.edges[task, end].flow > 0)
