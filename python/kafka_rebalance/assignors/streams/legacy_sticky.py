# SPDX-License-Identifier: Apache-2.0
"""The sticky task assignors of Kafka Streams clients: tasks stay where they were, without warm-ups.

1. Previous active tasks stay if their process has fewer active tasks than its number of threads
   times the tasks per thread (all tasks / all threads, rounded down). With `keep`, they always
   stay.
2. The other tasks go to the first process that had them as standby and is below this bound.
3. Each task that is left, in order, goes to its best process: the previous owner; else the least
   loaded process that had it as standby; else the least loaded one. If the best process is full
   while another has more room, the task goes to the least loaded process that had it as standby. If
   there is none, or that one is full too in this sense, it goes to the least loaded of all. The
   least loaded process is the first without tasks. If all have tasks, it is the one with the most
   room; processes with some task that has not yet shared a process with this task come first.
4. Active tasks are swapped by racks, if that is enabled: stateful ones, then stateless ones.
5. Stateful tasks get each standby replica as in 3, from the processes without the task.
6. Standby tasks are swapped by racks.

The algorithm has three forms. `fallback` (`keep`, without racks) runs instead of high availability
while end offsets are not known. `legacy_sticky` is an internal setting. `sticky` is KIP-924's
`StickyTaskAssignor`: in it, to have more room means to have a smaller load; its swaps by racks need
both costs to be set, take the processes in hash order, and count the changelogs of active tasks,
too (once if they are inputs).

Order    processes and tasks are in the order of their `HashMap`s and `HashSet`s.
Differs  `sticky` gives standby replicas in the order of identity hashes, which differ from run to
         run, so with replicas Kafka has several possible answers. This code takes tasks in order.
Source   LegacyStickyTaskAssignor, FallbackPriorTaskAssignor; StickyTaskAssignor of
         org.apache.kafka.streams.processor.assignment.assignors (kafka-streams 4.3.1).
"""

from collections.abc import Collection, Sequence

from kafka_rebalance.java.hash_map import HashMap, HashSet, Uuid, uuid_hash
from kafka_rebalance.wire.streams_protocol import TaskId

from .application import Settings, Topology, in_set, task_hash
from .high_availability import costs
from .processes import StreamsProcess
from .rack_costs import BALANCE_SUBTOPOLOGY, NONE, RackCosts, is_known

_TRAFFIC_COST, _NON_OVERLAP_COST = 1, 10


def assign(
    processes: Sequence[StreamsProcess],
    topology: Topology,
    settings: Settings,
    *,
    keep: bool = False,
    public: bool = False,
) -> None:
    """Assigns all tasks to processes, which are in hash order; `public` is KIP-924's form."""
    work = _Work(processes, topology, public=public)
    work.give_active(keep=keep)
    # 4.
    racks = _Racks(processes, topology, settings, public=public) if not keep else None
    if racks is not None:
        racks.swap_active()
    # 5.
    if settings.num_standby_replicas > 0:
        work.give_standby(settings.num_standby_replicas)
        # 6.
        if racks is not None:
            racks.swap_standby()


class _Work:
    """The previous owners of tasks, and the pairs of tasks that one process got so far."""

    def __init__(
        self, processes: Sequence[StreamsProcess], topology: Topology, *, public: bool
    ) -> None:
        self._processes = processes
        self._by_id = {one.process_id: one for one in processes}
        self._topology = topology
        self._public = public
        self._pairs: set[frozenset[TaskId]] = set()
        self._had_active: HashMap[TaskId, StreamsProcess] = HashMap(task_hash)
        self._had_standby: dict[TaskId, HashSet[Uuid]] = {}
        for one in processes:
            for task in sorted(one.previous_active):
                self._had_active.put(task, one)
            for task in sorted(one.previous_standby):
                ids = self._had_standby.setdefault(task, HashSet(uuid_hash))
                ids.add(one.process_id)

    def give_active(self, *, keep: bool) -> None:
        tasks = self._topology.in_java_order(self._topology.tasks)
        per_thread = len(tasks) // sum(one.capacity for one in self._processes)
        left: HashSet[TaskId] = HashSet.copied(task_hash, tasks)
        # 1.
        for task, process in self._had_active.items():
            if task in left and (keep or len(process.active) < process.capacity * per_thread):
                self._give(process, task, active=True)
                left.remove(task)
        # 2.
        for task in list(left):
            for process in self._of(self._had_standby.get(task, ())):
                if len(process.active) < process.capacity * per_thread:
                    self._give(process, task, active=True)
                    left.remove(task)
                    break
        # 3.
        for task in sorted(left):
            self._give(self._best(task, self._processes), task, active=True)

    def give_standby(self, replicas: int) -> None:
        stateful = self._topology.stateful
        if not self._public:
            stateful = in_set(self._topology.in_java_order(stateful))
        for task in stateful:
            for _ in range(replicas):
                without: HashSet[Uuid] = HashSet(uuid_hash)
                for one in self._processes:
                    if not one.has(task):
                        without.add(one.process_id)
                if not len(without):
                    break
                self._give(self._best(task, self._of(without)), task, active=False)

    def _of(self, ids: Collection[Uuid] | HashSet[Uuid]) -> list[StreamsProcess]:
        return [self._by_id[one] for one in ids]

    def _give(self, process: StreamsProcess, task: TaskId, *, active: bool) -> None:
        self._pairs.update(frozenset((task, one)) for one in process.active | process.standby)
        process.give(task, active=active)

    def _best(self, task: TaskId, candidates: Sequence[StreamsProcess]) -> StreamsProcess:
        if len(candidates) == 1:
            return candidates[0]
        standby = self._least_loaded(task, self._previous_standby(task, candidates))
        owner = self._had_active.get(task)
        previous = owner if owner in candidates else standby
        if previous is not None and not self._is_too_full(previous):
            return previous
        if previous is not None and standby is not None and not self._is_too_full(standby):
            return standby
        found = self._least_loaded(task, candidates)
        assert found is not None  # there are candidates
        return found

    def _previous_standby(
        self, task: TaskId, candidates: Sequence[StreamsProcess]
    ) -> list[StreamsProcess]:
        ids = list(self._had_standby.get(task, ()))
        return [one for one in self._of(HashSet.copied(uuid_hash, ids)) if one in candidates]

    def _is_too_full(self, process: StreamsProcess) -> bool:
        full = process.count >= process.capacity
        return full and any(self._has_more_room(one, process) for one in self._processes)

    def _has_more_room(self, one: StreamsProcess, other: StreamsProcess) -> bool:
        if one.load == other.load and not self._public:
            return one.capacity > other.capacity
        return one.load < other.load

    def _least_loaded(
        self, task: TaskId, candidates: Sequence[StreamsProcess]
    ) -> StreamsProcess | None:
        for only_new in (True, False):
            found: StreamsProcess | None = None
            for one in candidates:
                if not one.count:
                    return one
                if (found is None or self._has_more_room(one, found)) and (
                    not only_new or self._meets_new(one, task)
                ):
                    found = one
            if found is not None:
                return found
        return None

    def _meets_new(self, process: StreamsProcess, task: TaskId) -> bool:
        others = process.active | process.standby
        return any(frozenset((task, one)) not in self._pairs for one in others)


class _Racks:
    """The swaps of steps 4 and 6, if they are enabled."""

    def __init__(
        self,
        processes: Sequence[StreamsProcess],
        topology: Topology,
        settings: Settings,
        *,
        public: bool,
    ) -> None:
        self._topology, self._settings, self._public = topology, settings, public
        self._processes = processes if public else sorted(processes, key=lambda one: one.process_id)
        self._strategy = settings.rack_aware_assignment_strategy
        self._costs = costs(settings, _TRAFFIC_COST, _NON_OVERLAP_COST)
        costs_are_set = None not in (
            settings.rack_aware_assignment_traffic_cost,
            settings.rack_aware_assignment_non_overlap_cost,
        )
        self._is_on = self._strategy != NONE and (costs_are_set or not public)

    def _is_known(self, *, active: bool) -> bool:
        """Returns whether the needed racks are known; in KIP-924's form, `active` decides which."""
        return is_known(
            self._topology,
            self._processes,
            inputs=active or not self._public,
            changelogs=self._settings.num_standby_replicas > 0 or self._public,
            public=self._public,
        )

    def swap_active(self) -> None:
        if self._is_on and self._is_known(active=True):
            self._swap_active(self._stateful(), *self._costs)
            stateful = set(self._stateful())
            self._swap_active([t for t in self._topology.tasks if t not in stateful], 1, 0)

    def swap_standby(self) -> None:
        if self._is_on and self._is_known(active=False):
            changelogs = self._topology.changelogs.__getitem__
            racks = RackCosts(self._topology, self._strategy, changelogs, *self._costs)
            balanced = self._public and self._strategy == BALANCE_SUBTOPOLOGY
            racks.swap_standby(self._processes, lambda *_: True, balanced=balanced)

    def _swap_active(self, tasks: Sequence[TaskId], traffic: int, non_overlap: int) -> None:
        racks = RackCosts(self._topology, self._strategy, self._partitions, traffic, non_overlap)
        own = {task.subtopology_id for task in tasks}
        racks.swap_active(
            self._processes, tasks, sorted(own if self._public else self._topology.subtopologies)
        )

    def _partitions(self, task: TaskId) -> Sequence[tuple[str, int]]:
        inputs, changelogs = self._topology.inputs[task], self._topology.changelogs[task]
        return tuple(dict.fromkeys((*inputs, *changelogs))) if self._public else inputs

    def _stateful(self) -> list[TaskId]:
        if not self._public:
            return self._topology.stateful
        stateful = set(self._topology.stateful)
        subtopologies = self._topology.subtopologies
        return [
            task
            for task in self._topology.tasks
            if task in stateful or subtopologies[task.subtopology_id].unlogged_stores
        ]
