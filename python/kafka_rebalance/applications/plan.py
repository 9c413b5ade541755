# SPDX-License-Identifier: Apache-2.0
"""Plans changes to a classic Kafka Streams application, rebalance by rebalance.

A change is played to its end: its rebalance, the follow-up, and each probing rebalance until none
is due (`prediction.py`).

added      N threads of one new process. Its id is random, and only its rank among the others' ids
           counts: a plan has a course for each likely rank, with its probability.
removed    threads, or a whole process. None of them sends LeaveGroup: the rebalance comes when
           their session has timed out, and until then no thread reads their tasks.
restarted  a process with its disk. A static one is back before its session times out: no rebalance.
           A dynamic one joins with new member ids, and the rebalance ends when the old sessions
           have timed out; if it is away longer, the others rebalance without it first. If several
           processes restart, the next one does so once no rebalance is due.
settings   other settings of the leader, after a restart of all processes without a rebalance.

Errors   GroupError at `changes[i]` for any other change; NotAffected if a member does not exist.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from kafka_rebalance.assignors.registry import Engine
from kafka_rebalance.assignors.streams.application import StreamThread
from kafka_rebalance.assignors.streams.leader import HIGH_AVAILABILITY
from kafka_rebalance.errors import GroupError, NoMembersLeft
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.plans.changes.bounces import AWAY_MS, BounceMembers
from kafka_rebalance.plans.changes.change import Change, apply
from kafka_rebalance.plans.changes.edits import find_member, without
from kafka_rebalance.plans.changes.members import AddMembers, RemoveMembers
from kafka_rebalance.plans.playing import at_change
from kafka_rebalance.wire.streams_protocol import SubscriptionInfo, TaskId

from .lines import checked_settings, uuid_text
from .prediction import FOLLOW_UP, NEW, PROBING, Call, Running, running
from .replayed import Replay
from .topology import ThreadTasks

SESSION_MS = 45_000
"""The default of `session.timeout.ms`."""
_LONGS = 2**64
_MOST_TASKS = 1_000
"""The largest product of the numbers of stateful tasks and of courses to play."""


class Course(NamedTuple):
    """A possible course of a plan: the calls of the leader. `before` and `after` hold the process
    of each active task before the first call and after the last one, `tasks` the tasks of each
    thread at the end. `pauses`: see `Running`.

    `quick` is the course if copies are restored before follow-ups; None if it would be equal.
    """

    calls: tuple[Call, ...]
    settled: bool
    before: dict[TaskId, str]
    after: dict[TaskId, str]
    tasks: dict[str, ThreadTasks]
    probability: float = 1.0
    quick: "Course | None" = None
    pauses: tuple[tuple[str, int, int], ...] = ()

    @property
    def probings(self) -> int:
        return sum(one.cause == PROBING for one in self.calls)

    @property
    def phases(self) -> list[list[Call]]:
        """Returns the calls in lists: each list is a rebalance of its own, then its follow-ups."""
        found: list[list[Call]] = []
        for one in self.calls:
            if one.cause == FOLLOW_UP:
                found[-1].append(one)
            else:
                found.append([one])
        return found

    def owners(self, phase: int) -> dict[TaskId, str | None]:
        """Returns the process of each active task after a phase, or after the last one."""
        calls = [call for each in self.phases[: phase + 1] for call in each]
        return self.before | {one.task: one.now for call in calls for one in call.moved}

    def depending(self) -> list[TaskId]:
        """Returns the tasks that, after some phase, the quick course has at another process."""
        if self.quick is None:
            return []
        found = set()
        for phase in range(max(len(self.phases), len(self.quick.phases))):
            mine, quick = self.owners(phase), self.quick.owners(phase)
            found |= {task for task, owner in mine.items() if quick.get(task) != owner}
        return sorted(found)

    @property
    def duration_ms(self) -> int:
        return sum(one.waited_ms for one in self.calls)

    @property
    def moved(self) -> list[TaskId]:
        return sorted(one for one, owner in self.after.items() if self.before.get(one) != owner)

    @property
    def restored(self) -> dict[TaskId, int]:
        """Returns how many records each task must restore before it first runs."""
        copies = [copy for call in self.calls for copy in call.restored]
        return {copy.task: copy.records for copy in reversed(copies)}

    @property
    def of_new(self) -> list[TaskId]:
        return sorted(task for task, owner in self.after.items() if owner == NEW)

    def to_dict(self) -> dict[str, Any]:
        figures: dict[str, Any] = {"probability": self.probability, "settled": self.settled}
        figures |= {"moved": self.moved, "depending": self.depending()}
        quick = None if self.quick is None else self.quick.to_dict()
        calls = [one._asdict() for one in self.calls]
        return figures | {"rebalances": calls, "if_restored_before_follow_ups": quick}


class ApplicationPlan(Frozen):
    """A plan of changes to an application. If a process is added, `courses` holds a course for each
    of its 8 likeliest ranks (fewer in a large application), in order; else one course.
    """

    group: GroupSpec
    replay: Replay
    changes: tuple[Change, ...]
    courses: tuple[Course, ...]
    new_settings: Mapping[str, Any]
    restore_rate: int | None = None
    write_rate: int = 0

    @property
    def likeliest(self) -> Course:
        return max(self.courses, key=lambda one: one.probability)

    def common(self) -> list[TaskId]:
        """Returns the tasks that, in every course, end at another process than before."""
        return sorted(set.intersection(*({*one.moved} for one in self.courses)))

    def to_dict(self) -> dict[str, Any]:
        """Returns the plan as a dict for JSON; a task is [subtopology, partition]."""
        return {
            "group_id": self.group.group_id,
            "changes": [*map(str, self.changes)],
            "new_settings": {**self.new_settings},
            "moved_in_all_courses": self.common(),
            "courses": [one.to_dict() for one in self.courses],
            "application": self.replay.to_dict(),
        }


def plan_application(
    group: GroupSpec,
    replay: Replay,
    changes: Sequence[Change] = (),
    new_settings: Mapping[str, Any] | None = None,
    *,
    settings_first: bool = False,
    session_ms: int = SESSION_MS,
    restore_rate: int | None = None,
    write_rate: int = 0,
    engine: Engine = "rust",
) -> ApplicationPlan:
    """Plans changes, and new settings after them, each until no rebalance is due. With
    `settings_first`, the settings come before the changes, and only the changes are shown.

    `restore_rate` is how many records a copy restores a second; None: all are restored before the
    next probing rebalance. `write_rate` is how many records a second are written meanwhile to the
    changelogs of each task. Without changes and settings, the next rebalance is planned.
    """
    new_values = checked_settings(new_settings or {}, "new_settings")

    def course(new: Uuid | None, probability: float, *, is_quick: bool = False) -> Course:
        restore = partial(_restore, restore_rate, write_rate)
        run = running(replay, restore, new, is_quick=is_quick, engine=engine)
        played = _Played(group, run, session_ms)
        own = run.application.settings._replace(**new_values)
        if settings_first:
            run.application = run.application._replace(settings=own)
            played.settle("settings", 0)
            run.calls.clear()
        now = run.owners
        for i, change in enumerate(changes):
            try:
                played.play(change)
            except GroupError as error:
                raise at_change(error, i) from None
        if not settings_first and (new_settings or not changes):
            run.application = run.application._replace(settings=own)
            if replay.deadline is None or new_settings:
                played.settle("new settings" if new_settings else "the next rebalance", 0)
            else:
                played.probe()
        ends = now, run.owners, dict(run.tasks), probability, None, (*run.pauses,)
        found = Course((*run.calls,), played.settled, *ends)
        if is_quick or not any(one.is_open for each in found.phases for one in each[:-1]):
            return found
        quick = course(new, probability, is_quick=True)
        same = [one.tasks for one in quick.calls] == [one.tasks for one in found.calls]
        return found if same else found._replace(quick=quick)

    courses = tuple(course(*one) for one in _new_ids(replay, changes))
    rates = restore_rate, write_rate
    return ApplicationPlan(group, replay, tuple(changes), courses, new_settings or {}, *rates)


def _new_ids(replay: Replay, changes: Sequence[Change]) -> list[tuple[Uuid | None, float]]:
    """Returns likely ids of a new process, with probabilities; (None, 1) if none is added."""
    adding = [i for i, one in enumerate(changes) if isinstance(one, AddMembers)]
    if not adding:
        return [(None, 1.0)]
    if replay.application.assignor != HIGH_AVAILABILITY:
        problem = "its answer depends on the new process's random id, so it is not known before"
        raise GroupError(f"changes[{adding[0]}]", f"{replay.application.assignor}: {problem}")
    if len(adding) > 1:
        raise GroupError(f"changes[{adding[1]}]", "plan one new process at a time")
    return [*_likeliest_ranks(replay)]


def _restore(rate: int | None, write_rate: int, behind: int, waited_ms: int) -> int:
    if rate is None:
        return 0 if waited_ms else behind
    return max(0, behind + (write_rate - rate) * waited_ms // 1000)


def _likeliest_ranks(replay: Replay) -> list[tuple[Uuid, float]]:
    """Returns an id for each rank, in order, with the rank's probability: for the likeliest 8
    ranks, or for fewer if the application has many tasks, because their courses are slow to play.
    """
    borders = [-_LONGS // 2, *(most for most, _ in replay.processes()), _LONGS // 2]
    found = [(((low + high) // 2, 0), (high - low) / _LONGS) for low, high in pairwise(borders)]
    count = max(1, min(8, _MOST_TASKS // (1 + len(replay.topology.stateful))))
    return sorted(sorted(found, key=lambda one: -one[1])[:count])


@dataclass
class _Played:
    """Plays changes one after another. `group` contains the remaining members."""

    group: GroupSpec
    run: Running
    session_ms: int
    settled: bool = True

    def settle(self, cause: str, waited_ms: int, within_ms: int | None = None) -> None:
        self.settled &= self.run.settle(cause, waited_ms, within_ms)

    def probe(self) -> None:
        """Plays the probing rebalance that is due one interval after the last rebalance."""
        interval = self.run.application.settings.probing_rebalance_interval_ms
        self.run.wait(interval)
        self.settle(PROBING, interval)

    def play(self, change: Change) -> None:
        if isinstance(change, AddMembers) and self.run.new is not None:
            self._join(change, self.run.new)
        elif isinstance(change, RemoveMembers):
            threads = self._process(change.member) if change.member else ()
            gone = {one.member_id for one in threads}
            after = without(self.group, gone) if gone else apply(change, self.group)
            left = {one.member_id for one in after.members}
            self.group = after
            self.run.leave([one for one in [*self.run.tasks] if one not in left])
            self.settle(str(change), self.session_ms)
        elif isinstance(change, BounceMembers):
            self._bounce(change)
        else:
            planned = "add-members, remove-members, remove-member, remove-client, bounce-members"
            problem = f"not planned for a classic Kafka Streams application; these are: {planned}"
            raise GroupError("change", problem)

    def _join(self, change: AddMembers, new: Uuid) -> None:
        there = self.run.tasks.keys()
        like = self.group.members[-1]
        like = like if change.like is None else find_member(self.group, change.like)
        threads = self.run.application.threads
        tags = next(one.info.client_tags for one in threads if one.member_id == like.member_id)
        info = SubscriptionInfo(process_id=new, client_tags=tags)
        self.group = apply(change, self.group)
        members = [one for one in self.group.members if one.member_id not in there]
        self.run.join(StreamThread(one.member_id, one.rack, (), info) for one in members)
        self.settle(str(change), 0)

    def _process(self, name: str) -> list[StreamThread]:
        """Returns threads of the process whose id begins with `name`; [] if none or several do."""
        threads = self.run.application.threads
        of = [one for one in threads if uuid_text(one.info.process_id).startswith(name)]
        return of if len({one.info.process_id for one in of}) == 1 else []

    def _bounce(self, change: BounceMembers) -> None:
        """Plays the restart of a process, or of each process in turn."""
        away_ms = AWAY_MS if change.away_ms is None else change.away_ms
        static = {one.member_id: one.group_instance_id is not None for one in self.group.members}
        processes = dict.fromkeys(one.info.process_id for one in self.run.application.threads)
        if change.member is not None:
            of = self._process(change.member)
            member_id = of[0].member_id if of else find_member(self.group, change.member).member_id
            processes = {self.run.process_of()[member_id]: None}
        for process_id in processes:
            threads = self._process(uuid_text(process_id))
            is_static = all(static[one.member_id] for one in threads)
            is_static = is_static if change.static is None else change.static
            if is_static and away_ms < self.session_ms:
                self.run.pauses.append((uuid_text(process_id), away_ms, len(self.run.calls)))
                continue
            disk = {
                place: late for place, late in self.run.behind.items() if place[0] == process_id
            }
            self.run.leave([one.member_id for one in threads])
            if away_ms >= self.session_ms and not self.run.tasks:
                raise NoMembersLeft("change", "nobody reads until the only process is back")
            waited_ms, before = self.session_ms, len(self.run.calls)
            if away_ms >= self.session_ms:
                within_ms = away_ms - self.session_ms
                self.settle(f"{uuid_text(process_id)} is away", self.session_ms, within_ms)
                waited_ms = away_ms - sum(one.waited_ms for one in self.run.calls[before:])
            self.run.behind |= disk
            self.run.join(threads)
            self.settle(f"{uuid_text(process_id)} restarts", waited_ms)
