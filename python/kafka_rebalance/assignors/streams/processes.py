# SPDX-License-Identifier: Apache-2.0
"""The processes of an application with the tasks that each had, and those that it gets."""

from collections.abc import Callable, Iterable, Sequence

from kafka_rebalance.java.hash_map import HashMap, Uuid
from kafka_rebalance.wire.streams_protocol import LATEST_OFFSET, UNKNOWN_OFFSET_SUM, TaskId

from .application import StreamThread, Topology, task_hash


class StreamsProcess:
    """A process; the leader takes tags, end point and racks from the first member that it meets."""

    def __init__(self, process_id: Uuid) -> None:
        self.process_id = process_id
        self.threads: list[StreamThread] = []
        self.racks: list[str | None] = []
        self.tags: dict[str, str] = {}
        self.end_point = ""
        self.sums: dict[TaskId, int] = {}
        self.reported: dict[str, set[TaskId]] = {}
        self.previous_active: set[TaskId] = set()
        self.previous_standby: set[TaskId] = set()
        self.lags: dict[TaskId, int] = {}
        self.active: set[TaskId] = set()
        self.standby: set[TaskId] = set()
        self.placed: HashMap[TaskId, bool] = HashMap(task_hash)
        """Task -> True if active, in the order of KIP-924's map, which stores every placement."""

    @property
    def rack(self) -> str | None:
        return self.racks[0]

    def join(self, thread: StreamThread, *, is_future: bool) -> None:
        if not self.threads and not is_future:
            self.tags = thread.info.tags()
            self.end_point = thread.info.user_end_point.decode(errors="replace")
        self.threads.append(thread)
        self.racks.append(thread.rack_id)
        sums = {} if is_future else thread.info.offset_sums()
        self.reported[thread.member_id] = set(sums)
        self.sums |= sums

    def had(
        self, owned: Iterable[TaskId], topology: Topology, ends: dict[TaskId, int] | None
    ) -> None:
        """Stores the previous tasks, and computes the lag of every stateful task."""
        self.previous_active = {*owned}
        for task, total in self.sums.items():
            (self.previous_active if total == LATEST_OFFSET else self.previous_standby).add(task)
        self.previous_standby -= self.previous_active
        for task in topology.stateful:
            total = self.sums.get(task, 0)
            end = UNKNOWN_OFFSET_SUM if ends is None else ends[task]
            if total in (LATEST_OFFSET, UNKNOWN_OFFSET_SUM):
                self.lags[task] = total
            else:
                self.lags[task] = end if total > end else end - total

    @property
    def capacity(self) -> int:
        return len(self.threads)

    @property
    def count(self) -> int:
        return len(self.active) + len(self.standby)

    @property
    def load(self) -> float:
        return self.count / self.capacity

    @property
    def active_load(self) -> float:
        return len(self.active) / self.capacity

    def has(self, task: TaskId) -> bool:
        return task in self.active or task in self.standby

    def give(self, task: TaskId, *, active: bool) -> None:
        (self.active if active else self.standby).add(task)
        self.placed.put(task, active)

    def take(self, task: TaskId, *, active: bool) -> None:
        (self.active if active else self.standby).remove(task)
        self.placed.remove(task)


def least(processes: Iterable[StreamsProcess], *, active: bool = False) -> StreamsProcess | None:
    """Returns the first process with the least load (or `active_load`); None if there is none.

    `processes` are sorted by id.
    """
    return min(processes, key=lambda one: one.active_load if active else one.load, default=None)


def balance(
    processes: Sequence[StreamsProcess],
    *,
    active: bool,
    allowed: Callable[[StreamsProcess, StreamsProcess], bool],
) -> None:
    """Moves tasks from process to process while a move reduces the difference of their loads."""
    moved = True
    while moved:
        moved = False
        for source in processes:
            for target in processes:
                if source is target or not allowed(source, target):
                    continue
                for task in sorted(source.active if active else source.standby):
                    if not _should_move(source, target):
                        break
                    if not target.has(task):
                        source.take(task, active=active)
                        target.give(task, active=active)
                        moved = True


def _should_move(source: StreamsProcess, target: StreamsProcess) -> bool:
    skew = source.load - target.load
    if skew <= 0:
        return False
    new = (source.count - 1) / source.capacity - (target.count + 1) / target.capacity
    return 0 <= new < skew
