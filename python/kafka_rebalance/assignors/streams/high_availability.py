# SPDX-License-Identifier: Apache-2.0
"""Kafka Streams' default task assignor: a task moves to its ideal owner once the owner caught up.

1. Ideal active stateful tasks: in their order, they go to the processes in turn.
2. Balance them by load, the tasks of a process divided by its threads.
3. Swap them for less traffic between racks, if that is enabled.
4. Standby replicas, balanced and swapped as in 2 and 3. Steps 1 to 4 do not read the previous
   tasks.
5. A process is caught up on a task if it runs it (lag -2), or if its lag is at most
   `acceptable.recovery.lag`.
6. If the process of an ideal active task is not caught up, and another process has a smaller lag, a
   caught-up process with the task as standby swaps with it. Without one, the least loaded caught-up
   process gets the task, or else the process with the smallest lag. The ideal process keeps the
   task as a warm-up, while there are fewer than `max.warmup.replicas`.
7. Standby tasks, except those warm-ups, are moved in this way to processes without the task.
8. Stateless tasks: each to the process with the smallest active load, then swapped by racks.
9. A probing rebalance is needed if 6 or 7 moved a task.

Order    processes by id, as two signed 64-bit numbers; tasks by subtopology and partition. Moves
         come from a `PriorityQueue` by the number of caught-up processes, then task.
Source   HighAvailabilityTaskAssignor, TaskMovement (kafka-streams 4.3.1); KIP-441, KIP-925.
"""

from collections.abc import Sequence
from itertools import cycle

from kafka_rebalance.java.priority_queue import PriorityQueue
from kafka_rebalance.wire.streams_protocol import LATEST_OFFSET, TaskId

from . import standby_tasks
from .application import LONG_MAX, Settings, Topology
from .processes import StreamsProcess, balance, least
from .rack_costs import NONE, RackCosts, is_known

_TRAFFIC_COST, _NON_OVERLAP_COST = 10, 1


def assign(processes: Sequence[StreamsProcess], topology: Topology, settings: Settings) -> bool:
    """Assigns all tasks to processes; returns whether a probing rebalance is needed."""
    processes = sorted(processes, key=lambda one: one.process_id)
    racks = _Racks(processes, topology, settings)
    # 1.
    for task, process in zip(topology.stateful, cycle(processes), strict=False):
        process.give(task, active=True)
    # 2.
    balance(processes, active=True, allowed=lambda *_: True)
    # 3.
    racks.swap_active(topology.stateful, *racks.costs)
    # 4.
    if settings.num_standby_replicas > 0:
        standby_tasks.assign(processes, topology.stateful, settings)
        balance(
            processes,
            active=False,
            allowed=lambda *pair: standby_tasks.may_balance(settings, *pair),
        )
        racks.swap_standby()
    moves = _Moves(processes, topology, settings)
    count = moves.move_active() + moves.move_standby()
    # 8.
    for task in topology.stateless:
        idlest = least(processes, active=True)
        assert idlest is not None  # a group has processes
        idlest.give(task, active=True)
    racks.swap_active(topology.stateless, 1, 0)
    # 9.
    return count > 0


class _Racks:
    """The swaps of steps 3, 4 and 8, if they are enabled."""

    def __init__(
        self, processes: Sequence[StreamsProcess], topology: Topology, settings: Settings
    ) -> None:
        self._processes, self._topology, self._settings = processes, topology, settings
        replicas = settings.num_standby_replicas > 0
        self.costs = costs(settings, _TRAFFIC_COST, _NON_OVERLAP_COST)
        self._strategy = settings.rack_aware_assignment_strategy
        self.enabled = self._strategy != NONE and is_known(topology, processes, changelogs=replicas)

    def swap_active(self, tasks: Sequence[TaskId], traffic: int, non_overlap: int) -> None:
        if self.enabled:
            inputs = self._topology.inputs.__getitem__
            racks = RackCosts(self._topology, self._strategy, inputs, traffic, non_overlap)
            racks.swap_active(self._processes, tasks, sorted(self._topology.subtopologies))

    def swap_standby(self) -> None:
        if self.enabled:
            changelogs = self._topology.changelogs.__getitem__
            racks = RackCosts(self._topology, self._strategy, changelogs, *self.costs)
            racks.swap_standby(
                self._processes,
                lambda *move: standby_tasks.may_swap(self._processes, self._settings, *move),
            )


def costs(settings: Settings, traffic: int, non_overlap: int) -> tuple[int, int]:
    """Returns the traffic and the non-overlap cost: as set, or else the defaults given here."""
    set_traffic = settings.rack_aware_assignment_traffic_cost
    set_overlap = settings.rack_aware_assignment_non_overlap_cost
    return (
        traffic if set_traffic is None else set_traffic,
        non_overlap if set_overlap is None else set_overlap,
    )


class _Moves:
    """Makes the moves of steps 5 to 7."""

    def __init__(
        self, processes: Sequence[StreamsProcess], topology: Topology, settings: Settings
    ) -> None:
        self._processes = processes
        self._warmups_left = settings.max_warmup_replicas
        self._warmups: set[tuple[StreamsProcess, TaskId]] = set()
        # 5.
        most = settings.acceptable_recovery_lag
        self._caught_up = {
            task: [one for one in processes if _is_caught_up(one.lags[task], most)]
            for task in topology.stateful
        }
        self._by_lag = {
            task: sorted(processes, key=lambda one: one.lags[task]) for task in topology.stateful
        }

    def move_active(self) -> int:
        """Moves active tasks (step 6); returns the number of moves."""
        moves = self._needed({one: one.active for one in self._processes})
        for task, ideal in moves:
            caught_up = self._caught_up[task]
            standby = least(one for one in caught_up if task in one.standby)
            source = standby or least(caught_up) or self._by_lag[task][0]
            ideal.take(task, active=True)
            if task in source.standby:
                source.take(task, active=False)
                ideal.give(task, active=False)
            elif self._is_warmup_left():
                self._warmups.add((ideal, task))
                ideal.give(task, active=False)
            source.give(task, active=True)
        return len(moves)

    def move_standby(self) -> int:
        """Moves standby tasks (step 7); returns the number of moves."""
        count = 0
        own = {
            one: {task for task in one.standby if (one, task) not in self._warmups}
            for one in self._processes
        }
        for task, ideal in self._needed(own):
            by_lag = self._by_lag[task]
            before = by_lag[: by_lag.index(ideal)]
            without = [one for one in self._caught_up[task] if not one.has(task)]
            source = least(without) or next((one for one in before if not one.has(task)), None)
            if source is not None:
                source.give(task, active=False)
                if not self._is_warmup_left():
                    ideal.take(task, active=False)
                count += 1
        return count

    def _needed(
        self, own: dict[StreamsProcess, set[TaskId]]
    ) -> list[tuple[TaskId, StreamsProcess]]:
        queue = PriorityQueue[tuple[TaskId, StreamsProcess]]()
        for one, tasks in own.items():
            for task in sorted(tasks):
                caught_up = self._caught_up[task]
                if one not in caught_up and self._by_lag[task][0].lags[task] < one.lags[task]:
                    queue.add((len(caught_up), task), (task, one))
        moves = []
        while (move := queue.poll()) is not None:
            moves.append(move)
        return moves

    def _is_warmup_left(self) -> bool:
        self._warmups_left -= 1
        return self._warmups_left >= 0


def _is_caught_up(lag: int, acceptable: int) -> bool:
    return lag == LATEST_OFFSET or acceptable == LONG_MAX or 0 <= lag <= acceptable
