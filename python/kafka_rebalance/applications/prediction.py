# SPDX-License-Identifier: Apache-2.0
"""Predicts what threads send in their next JoinGroup, and what the leader answers, call by call.

1. A thread sends its partitions, and positions: LATEST_OFFSET for each stateful active task that
   runs; the copy's position for each standby task, and for each active task that it restores.
2. The first thread of a process also sends the positions of tasks that the process has lost, from
   its disk, until they are deleted (`state.cleanup.delay.ms`). In Kafka, any thread may send them:
   that decides only which thread of the process gets the task.
3. After an answer with withheld tasks, the next call follows at once or within a few seconds.
   Whether a copy is restored by then depends on its records and on which thread rejoins first. So
   there are two bounds: nothing is restored, or, if `is_quick`, as much as in `FOLLOW_UP_MS`.
4. Otherwise, if a probing rebalance is due, the next call is at its time; until then, each thread
   restores its tasks.
5. Without either, the application is stable.

Assumed  now, all active tasks run, and all standby tasks are caught up, except warm-ups: their
         positions are as last sent. No records are written meanwhile.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafka_rebalance.assignors.registry import Engine
from kafka_rebalance.assignors.streams import engines
from kafka_rebalance.assignors.streams.application import (
    Application,
    LeaderAnswer,
    StreamThread,
    Topology,
    end_offset_sums,
)
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.java.order import by_name
from kafka_rebalance.wire.streams_protocol import LATEST_OFFSET, TaskId

from .lines import uuid_text
from .replayed import Place, Replay, ideal_owners, places, sending
from .topology import ThreadTasks, answered_tasks

FOLLOW_UP, PROBING = "follow-up", "probing"
NEW = "new"
"""The name of a process that does not exist yet; any other process is named by its id."""
CLEANUP_MS = 600_000
"""The default of `state.cleanup.delay.ms`."""
FOLLOW_UP_MS = 3_000
"""The default of `heartbeat.interval.ms`: by then, each thread has rejoined for a follow-up."""
_MOST_CALLS = 200


class Move(NamedTuple):
    """An active task, its process before and its process now; None if no process has the task."""

    task: TaskId
    before: str | None
    now: str | None


class Copy(NamedTuple):
    """A copy of a task's state, and how many records the process still has to restore."""

    task: TaskId
    process: str
    records: int


class Call(NamedTuple):
    """A call of the leader, `waited_ms` after the previous call. `tasks` are by member id. `unread`
    tasks are withheld: no thread reads them until the next call. `restored` are active tasks that
    must be restored before they run; `warming` are warm-ups, `standby` the other copies. `ended`
    are the tasks of threads that ended `waited_ms` before the call and that nobody has read since.
    """

    cause: str
    waited_ms: int
    moved: tuple[Move, ...]
    unread: tuple[TaskId, ...]
    restored: tuple[Copy, ...]
    warming: tuple[Copy, ...]
    standby: tuple[Copy, ...]
    tasks: dict[str, ThreadTasks]
    ended: tuple[TaskId, ...] = ()

    @property
    def is_open(self) -> bool:
        """Returns whether a copy is still behind, so it could be restored before the next call."""
        return bool(self.restored or self.warming or self.standby)

    def only(self, task: TaskId) -> "Call":
        """Returns the call with only the moves and copies of this task."""
        kinds = ("moved", "restored", "warming", "standby")
        found: dict[str, Any] = {
            name: tuple(one for one in getattr(self, name) if one.task == task) for name in kinds
        }
        return self._replace(**found, unread=(task,) * (task in self.unread))


Restore = Callable[[int, int], int]
"""Takes how many records a copy was behind, and the ms since; returns how many it is behind now."""


@dataclass
class Running:
    """An application at some moment: which thread has which task, and how far behind each copy is.

    `behind` holds the records between a copy of a task's state and the end of its changelogs.
    `owners` holds the process of each active task after the last call, even if this process has
    left since; `ended` are the active tasks of threads that have left. `restore` plays how copies
    catch up. `pauses` are the processes that were away without a rebalance: each with its time away
    in ms, and the number of earlier calls.
    """

    application: Application
    topology: Topology
    ends: dict[TaskId, int]
    tasks: dict[str, ThreadTasks]
    behind: dict[Place, int]
    running: set[Place]
    restore: Restore
    new: Uuid | None = None
    is_quick: bool = False
    engine: Engine = "rust"
    calls: list[Call] = field(default_factory=list)
    owners: dict[TaskId, str] = field(default_factory=dict)
    ended: list[TaskId] = field(default_factory=list)
    pauses: list[tuple[str, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.owners = self._owners()

    def process_of(self) -> dict[str, Uuid]:
        return {one.member_id: one.info.process_id for one in self.application.threads}

    def name(self, process_id: Uuid) -> str:
        return NEW if process_id == self.new else uuid_text(process_id)

    def leave(self, member_ids: Iterable[str]) -> None:
        """Removes threads; when the last thread of a process leaves, its disk is lost, too."""
        for member_id in member_ids:
            self.ended += self.tasks.pop(member_id).active
        left = tuple(one for one in self.application.threads if one.member_id in self.tasks)
        there = {one.info.process_id for one in left}
        leader = self.application.leader_process_id
        if leader not in there and left:  # any other process can stand for the next leader
            leader = left[0].info.process_id
        self.application = self.application._replace(threads=left, leader_process_id=leader)
        self.behind = {place: one for place, one in self.behind.items() if place[0] in there}
        self.running &= self._places(active=True)

    def join(self, threads: Iterable[StreamThread]) -> None:
        new = tuple(threads)
        self.application = self.application._replace(threads=(*self.application.threads, *new))
        self.tasks |= {one.member_id: ThreadTasks() for one in new}

    def settle(self, cause: str, waited_ms: int, within_ms: int | None = None) -> bool:
        """Plays calls until none is due, or none within `within_ms` after the first; returns False
        if this takes more than 200 calls.
        """
        interval = self.application.settings.probing_rebalance_interval_ms
        ideal = ideal_owners(self.application, engine=self.engine)
        for _ in range(_MOST_CALLS):
            later = self._call(cause, waited_ms, ideal)
            # 3.
            if 0 in later:
                cause, waited_ms = FOLLOW_UP, 0
                if self.is_quick:
                    self.wait(FOLLOW_UP_MS)
            # 4.
            elif within_ms is not None and (within_ms < interval or later == {None}):
                self.wait(within_ms)
                return True
            elif later - {None}:
                cause, waited_ms = PROBING, interval
                self.wait(interval)
                within_ms = None if within_ms is None else within_ms - interval
            else:
                self.wait(interval, lambda *_: 0)
                return True
        return False

    def wait(self, waited_ms: int, restore: Restore | None = None) -> None:
        """Lets time pass: threads restore tasks; after CLEANUP_MS, the state of lost tasks goes."""
        had, restore = self._places(), restore or self.restore
        for place in list(self.behind):
            if place in had:
                late = 0 if place in self.running else restore(self.behind[place], waited_ms)
                self.behind[place] = late
            elif waited_ms >= CLEANUP_MS:
                del self.behind[place]
        self.running = {one for one in self._places(active=True) if not self.behind.get(one)}

    def _call(self, cause: str, waited_ms: int, ideal: set[Place]) -> set[int | None]:
        # 1. and 2.
        had = self._places()
        lost: dict[Uuid, set[Place]] = {}
        for place in self.behind.keys() - had:
            lost.setdefault(place[0], set()).add(place)
        by_id = {one.member_id: one for one in self.application.threads}
        sends = {}
        for member_id in by_name(by_id):
            one = by_id[member_id]
            sends[member_id] = self._next(one, lost.pop(one.info.process_id, set()))
        threads = tuple(sends[one] for one in by_id)
        sent = self.application._replace(threads=threads)
        answer = engines.assign(sent, reference=self.engine == "reference", with_lags=False)
        if any(one.error_code for one in answer.members.values()):
            raise GroupError("change", "the leader would answer with an error")
        self._apply(answer)
        before, self.owners = self.owners, self._owners()
        tasks = self.topology.tasks
        pairs = [Move(task, before.get(task), self.owners.get(task)) for task in tasks]
        standby = self._places(active=False)
        self.calls.append(
            Call(
                cause,
                waited_ms,
                tuple(one for one in pairs if one.before != one.now),
                tuple(one.task for one in pairs if one.now is None),
                self._copies(self._places(active=True)),
                self._copies(standby & ideal),
                self._copies(standby - ideal),
                dict(self.tasks),
                tuple(self.ended),
            )
        )
        self.ended.clear()
        return {one.next_rebalance_ms for one in answer.members.values()}

    def _next(self, thread: StreamThread, lost: set[Place]) -> StreamThread:
        """Returns the thread with the data that it will send in its next JoinGroup."""
        process_id = thread.info.process_id
        own = lost | {(process_id, task) for task in self.tasks[thread.member_id].all()}
        sums = {
            place[1]: LATEST_OFFSET
            if place in self.running
            else max(0, self.ends[place[1]] - self.behind[place])
            for place in sorted(own & self.behind.keys())
        }
        active = self.tasks[thread.member_id].active
        owned = (TopicPartition(*tp) for task in active for tp in self.topology.inputs[task])
        return sending(thread, sums, tuple(owned))

    def _apply(self, answer: LeaderAnswer) -> None:
        process_of = self.process_of()
        for member_id, one in answer.members.items():
            tasks = self.tasks[member_id] = answered_tasks(one)
            for task in {*tasks.all()} & self.ends.keys():
                self.behind.setdefault((process_of[member_id], task), self.ends[task])
        self.running &= self._places(active=True)

    def _owners(self) -> dict[TaskId, str]:
        names = {one: self.name(process_id) for one, process_id in self.process_of().items()}
        return {task: names[one] for one, of in self.tasks.items() for task in of.active}

    def _places(self, *, active: bool | None = None) -> set[Place]:
        return places(self.application, self.tasks, active=active)

    def _copies(self, where: set[Place]) -> tuple[Copy, ...]:
        """Returns the copies in these places that are still behind."""
        return tuple(
            Copy(place[1], self.name(place[0]), self.behind[place])
            for place in sorted(where, key=lambda place: (place[1], place[0]))
            if self.behind.get(place)
        )


def running(
    replay: Replay,
    restore: Restore,
    new: Uuid | None = None,
    *,
    is_quick: bool = False,
    engine: Engine = "rust",
) -> Running:
    """Returns the application as it runs now (see "Assumed" above); `new` is a process to join."""
    application, topology = replay.now, replay.topology
    ends = end_offset_sums(application, topology) or {}
    tasks = replay.tasks
    warming = set() if replay.deadline is None else replay.warming(engine=engine)
    behind: dict[Place, int] = {}
    for place, total in replay.sums().items():
        if place[1] in ends:
            behind[place] = 0 if total < 0 else max(0, ends[place[1]] - total)
    for one in application.threads:
        for task in {*tasks[one.member_id].all()} & ends.keys():
            place = one.info.process_id, task
            behind[place] = behind.get(place, ends[task]) if place in warming else 0
    found = Running(
        application, topology, ends, tasks, behind, set(), restore, new, is_quick, engine
    )
    found.wait(0, lambda behind, _: behind)
    return found
