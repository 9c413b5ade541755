# SPDX-License-Identifier: Apache-2.0
"""Predicts what threads send in their next JoinGroup, and what the leader answers, call by call.

1. A thread sends its partitions; of each stateful active task that runs, LATEST_OFFSET; of each
   standby, and of each active task that it restores, its position.
2. The first thread of a process also sends the positions of the tasks that the process has lost,
   from its disk, until they are deleted (`state.cleanup.delay.ms`). In Kafka, any thread may: that
   matters only for which thread of the process gets the task.
3. After an answer with withheld tasks the next call follows at once, and nothing is restored.
4. Else, if a probing rebalance is due, the next call is at its time; until then, each thread
   restores its tasks.
5. Without either, the application is stable.

Assumed  now, all active tasks run, and all standby tasks are caught up, except warm-ups: the
         positions of these are those that were last sent. No records are written meanwhile.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kafka_rebalance.assignors.registry import Engine
from kafka_rebalance.assignors.streams import engines
from kafka_rebalance.assignors.streams.application import (
    Application,
    LeaderAnswer,
    StreamThread,
    ThreadAssignment,
    Topology,
    end_offset_sums,
)
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.java.order import by_name
from kafka_rebalance.wire.streams_protocol import LATEST_OFFSET, TaskId, TaskOffsetSum

from .replayed import Replay, ideal_owners
from .topology import present_tasks

CLEANUP_MS = 600_000
"""The default of `state.cleanup.delay.ms`."""
_MOST_CALLS = 200

Place = tuple[Uuid, TaskId]


class Call(NamedTuple):
    """A call of the leader.

    `waited_ms` is the time since the call before. `moved` lists task, old process and new process
    of active tasks; a process is None if the task has none. `unread` are withheld: nobody reads
    them until the next call. `restored`, `warming` and `standby` map a task's place to the records
    that are to be restored: by active tasks before they run, by warm-ups, by other standby tasks.
    """

    cause: str
    waited_ms: int
    moved: tuple[tuple[TaskId, Uuid | None, Uuid | None], ...]
    unread: tuple[TaskId, ...]
    restored: Mapping[Place, int]
    warming: Mapping[Place, int]
    standby: Mapping[Place, int]
    is_probing_due: bool


@dataclass
class Running:
    """An application at some moment: who has which task, and how far behind each copy is.

    `behind` counts the records between a copy of a task's state and the end of its changelogs.
    """

    application: Application
    topology: Topology
    ends: dict[TaskId, int]
    tasks: dict[str, tuple[tuple[TaskId, ...], tuple[TaskId, ...]]]
    behind: dict[Place, int]
    running: set[tuple[str, TaskId]]
    owner_of: dict[TaskId, Uuid] = field(default_factory=dict)
    """The process that had each active task after the last call; it may have left since."""
    calls: list[Call] = field(default_factory=list)

    def copy(self) -> "Running":
        return replace(
            self,
            tasks=dict(self.tasks),
            behind=dict(self.behind),
            running=set(self.running),
            owner_of=dict(self.owner_of),
            calls=list(self.calls),
        )

    def owners(self) -> dict[TaskId, Uuid]:
        """Returns the process of each active task."""
        of = {one.member_id: one.info.process_id for one in self.application.threads}
        return {task: of[member] for member, (active, _) in self.tasks.items() for task in active}

    def leave(self, member_ids: Iterable[str]) -> None:
        """Removes threads; a process without any other thread takes its disk with it."""
        for member_id in member_ids:
            del self.tasks[member_id]
        left = tuple(one for one in self.application.threads if one.member_id in self.tasks)
        self.application = self.application._replace(threads=left)
        there = {one.info.process_id for one in left}
        self.behind = {place: one for place, one in self.behind.items() if place[0] in there}
        self.running = {place for place in self.running if place[0] in self.tasks}

    def join(self, threads: Iterable[StreamThread]) -> None:
        new = tuple(threads)
        self.application = self.application._replace(threads=(*self.application.threads, *new))
        self.tasks |= {one.member_id: ((), ()) for one in new}

    def settle(
        self, cause: str, waited_ms: int, restore: Callable[[int, int], int], *, engine: Engine
    ) -> bool:
        """Plays calls until none is due; returns False if that takes more than 200.

        `restore` returns how many records a copy is behind, from that number and a time in ms.
        """
        interval = self.application.settings.probing_rebalance_interval_ms
        for _ in range(_MOST_CALLS):
            later = self._call(cause, waited_ms, engine)
            # 3.
            if 0 in later:
                cause, waited_ms = "follow-up", 0
            # 4.
            elif later - {None}:
                cause, waited_ms = "probing", interval
                self.wait(interval, restore)
            else:
                self.wait(interval, lambda *_: 0)
                return True
        return False

    def wait(self, waited_ms: int, restore: Callable[[int, int], int]) -> None:
        """All threads restore their tasks; the disks are cleaned of those that nobody has."""
        of = {one.member_id: one.info.process_id for one in self.application.threads}
        had = {
            (of[member], task)
            for member, (active, standby) in self.tasks.items()
            for task in (*active, *standby)
        }
        for place in list(self.behind):
            if place in had:
                self.behind[place] = restore(self.behind[place], waited_ms)
            elif waited_ms >= CLEANUP_MS:
                del self.behind[place]
        self.running = {
            (member, task)
            for member, (active, _) in self.tasks.items()
            for task in active
            if not self.behind.get((of[member], task))
        }

    def _call(self, cause: str, waited_ms: int, engine: Engine) -> set[int | None]:
        # 1. and 2.
        before = self.owner_of
        first: dict[Uuid, str] = {}
        for one in by_name(self.tasks):
            first.setdefault(self._process(one), one)
        threads = tuple(self._next(one, first) for one in self.application.threads)
        sent = self.application._replace(threads=threads)
        answer = engines.assign(sent, reference=engine == "reference")
        if any(one.error_code for one in answer.members.values()):
            raise GroupError("change", "the leader would answer with an error")
        self._apply(answer)
        now = self.owner_of = self.owners()
        copies = self._open(active=False)
        warm = copies.keys() & ideal_owners(sent, engine=engine) if copies else set()
        self.calls.append(
            Call(
                cause,
                waited_ms,
                tuple(
                    (task, before.get(task), now.get(task))
                    for task in self.topology.tasks
                    if before.get(task) != now.get(task)
                ),
                tuple(task for task in self.topology.tasks if task not in now),
                self._open(active=True),
                {place: copies[place] for place in copies if place in warm},
                {place: copies[place] for place in copies if place not in warm},
                bool(answer.probing_rebalance_needed),
            )
        )
        return {one.next_rebalance_ms for one in answer.members.values()}

    def _process(self, member_id: str) -> Uuid:
        threads = self.application.threads
        return next(one.info.process_id for one in threads if one.member_id == member_id)

    def _next(self, thread: StreamThread, first: Mapping[Uuid, str]) -> StreamThread:
        active, standby = self.tasks[thread.member_id]
        process_id = thread.info.process_id
        own = {*active, *standby}
        if first[process_id] == thread.member_id:
            had = {
                task
                for one in self.application.threads
                if one.info.process_id == process_id
                for tasks in self.tasks[one.member_id]
                for task in tasks
            }
            own |= {task for place, task in self.behind if place == process_id} - had
        sums = {
            task: LATEST_OFFSET
            if (thread.member_id, task) in self.running
            else max(0, self.ends[task] - self.behind[process_id, task])
            for task in sorted(own)
            if task in self.ends and (process_id, task) in self.behind
        }
        return thread._replace(
            owned_partitions=tuple(
                TopicPartition(*tp) for task in active for tp in self.topology.inputs[task]
            ),
            info=thread.info._replace(
                prev_tasks=(),
                standby_tasks=(),
                offset_sums_by_subtopology=(),
                version=11,
                task_offset_sums=tuple(TaskOffsetSum(*task, sum_) for task, sum_ in sums.items()),
            ),
        )

    def _apply(self, answer: LeaderAnswer) -> None:
        for member_id, one in answer.members.items():
            process_id = self._process(member_id)
            self.tasks[member_id] = _tasks(one)
            for task in {*one.active_tasks, *one.standby_tasks} & self.ends.keys():
                self.behind.setdefault((process_id, task), self.ends[task])
        self.running &= {
            (member, task) for member, (active, _) in self.tasks.items() for task in active
        }

    def _open(self, *, active: bool) -> dict[Place, int]:
        """Returns the records that active, or standby, tasks have to restore."""
        found = {}
        for member_id, tasks in self.tasks.items():
            process_id = self._process(member_id)
            for task in tasks[0 if active else 1]:
                if self.behind.get((process_id, task)):
                    found[process_id, task] = self.behind[process_id, task]
        return found


def _tasks(one: ThreadAssignment) -> tuple[tuple[TaskId, ...], tuple[TaskId, ...]]:
    return tuple(sorted({*one.active_tasks})), tuple(sorted(one.standby_tasks))


def running(replay: Replay, *, engine: Engine = "rust") -> Running:
    """Returns the application as it runs now (see "Assumed" above)."""
    application, topology = replay.application, replay.topology
    ends = end_offset_sums(application, topology) or {}
    tasks = present_tasks(replay.assigned)
    warming = set() if replay.deadline is None else replay.warming(engine=engine)
    behind: dict[Place, int] = {}
    now = set()
    for one in application.threads:
        process_id = one.info.process_id
        for task, total in one.info.offset_sums().items():
            if task in ends:
                behind[process_id, task] = 0 if total < 0 else max(0, ends[task] - total)
    for one in application.threads:
        process_id, (active, standby) = one.info.process_id, tasks[one.member_id]
        now |= {(one.member_id, task) for task in active if task in ends}
        for task in {*active, *standby} & ends.keys():
            if (process_id, task) not in warming:
                behind[process_id, task] = 0
            else:
                behind.setdefault((process_id, task), ends[task])
    found = Running(application, topology, ends, tasks, behind, now)
    found.owner_of = found.owners()
    return found
