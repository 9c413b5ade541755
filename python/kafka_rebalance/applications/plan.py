# SPDX-License-Identifier: Apache-2.0
"""Plans changes of a classic Kafka Streams application, rebalance by rebalance.

A change is played to its end: its rebalance, the follow-up, and each probing rebalance until none
is due (`prediction.py`).

added      N threads of one new process. Its id is random, and only its rank among the others
           counts: a plan has a course for each rank, with its probability.
removed    threads, or a whole process. Nobody sends LeaveGroup: the rebalance comes when the
           session has timed out, and until then nobody reads their tasks.
restarted  a process with its disk. A static one is back before its session times out: no rebalance.
           A dynamic one joins with new member ids, and the rebalance ends when the old sessions
           have timed out; if it is away longer, the others rebalance without it first.
settings   other settings for the leader, after a restart of all processes without a rebalance.

Errors   GroupError at `change` for other changes; NotAffected if the application lacks a member.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from kafka_rebalance.assignors.registry import Engine
from kafka_rebalance.assignors.streams.application import StreamThread
from kafka_rebalance.assignors.streams.leader import HIGH_AVAILABILITY
from kafka_rebalance.errors import GroupError, NoMembersLeft, NotAffected
from kafka_rebalance.group.model import Member, quoted
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.plans.changes import AddMembers, BounceMembers, Change, RemoveMembers
from kafka_rebalance.plans.changes.bounces import AWAY_MS
from kafka_rebalance.plans.changes.edits import find_member
from kafka_rebalance.wire.streams_protocol import TaskId

from .lines import settings, uuid_text
from .prediction import Call, Place, Running, running
from .replayed import Replay

SESSION_MS = 45_000
"""The default of `session.timeout.ms`."""
_LONGS = 2**64


class Course(NamedTuple):
    """How a plan goes: `rank` of the new process among all (0: first) and its probability."""

    calls: tuple[Call, ...]
    settled: bool
    before: dict[TaskId, Uuid]
    after: dict[TaskId, Uuid]
    new: tuple[Uuid, ...] = ()
    probability: float = 1.0

    @property
    def probings(self) -> int:
        return sum(one.cause == "probing" for one in self.calls)

    @property
    def moved(self) -> list[TaskId]:
        """Returns the tasks that another process has in the end."""
        return [task for task, owner in self.after.items() if self.before.get(task) != owner]

    @property
    def of_new(self) -> list[TaskId]:
        """Returns the active tasks of the new process in the end."""
        return [task for task, owner in self.after.items() if owner in self.new]


@dataclass(frozen=True, slots=True)
class ApplicationPlan:
    """Changes of an application; `courses` has one for each rank of a new process, in order."""

    group: GroupSpec
    replay: Replay
    changes: tuple[Change, ...]
    courses: tuple[Course, ...]
    new_settings: Mapping[str, Any]
    session_ms: int

    @property
    def likeliest(self) -> Course:
        return max(self.courses, key=lambda one: one.probability)

    def to_dict(self) -> dict[str, Any]:
        """Returns the plan as a dict for JSON; tasks are `s_p`, processes their ids."""
        return {
            "group_id": self.group.group_id,
            "changes": [*map(str, self.changes)],
            "new_settings": {**self.new_settings},
            "moved_in_all_courses": [*map(str, self.common())],
            "courses": [_course(one) for one in self.courses],
            "application": self.replay.to_dict(),
        }

    def common(self) -> list[TaskId]:
        """Returns the tasks that move to another process in all courses."""
        moved = [{*one.moved} for one in self.courses]
        return sorted(set.intersection(*moved))


def plan_application(
    group: GroupSpec,
    replay: Replay,
    changes: Sequence[Change] = (),
    new_settings: Mapping[str, Any] | None = None,
    *,
    session_ms: int = SESSION_MS,
    restore_rate: int | None = None,
    engine: Engine = "rust",
) -> ApplicationPlan:
    """Plays changes, and new settings after them, each until no rebalance is due.

    `restore_rate` counts the records that a copy restores a second; None: all of them before the
    next probing rebalance. Without changes and settings, the next rebalance is played.
    """
    now = running(replay, engine=engine)
    ranks = [one for one in changes if isinstance(one, AddMembers)]
    if len(ranks) > 1:
        raise GroupError("changes[1]", "plan one new process at a time: its id is not known")
    ids: Iterable[tuple[Uuid | None, float]] = [(None, 1.0)]
    if ranks and replay.application.assignor == HIGH_AVAILABILITY:
        ids = _ranks({one.info.process_id for one in now.application.threads})
    elif ranks:
        problem = f"{replay.application.assignor} places tasks by the new process's random id"
        raise GroupError("changes[0]", f"{problem}, so there is no answer before it has joined")
    restore = partial(_restore, restore_rate)
    courses = []
    for new_id, probability in ids:
        run, settled = now.copy(), True
        for i, change in enumerate(changes):
            try:
                settled &= _play(group, run, change, new_id, session_ms, restore, engine)
            except NotAffected as error:
                raise NotAffected(f"changes[{i}]", error.problem) from None
        if new_settings or not changes:
            new = {name.replace(".", "_"): one for name, one in (new_settings or {}).items()}
            configs = run.application.settings._asdict() | new
            cause = "new settings" if new_settings else "next rebalance"
            run.application = run.application._replace(settings=settings(configs, "settings"))
            settled &= run.settle(cause, 0, restore, engine=engine)
        place = () if new_id is None else (new_id,)
        courses.append(
            Course(tuple(run.calls), settled, now.owners(), run.owners(), place, probability)
        )
    return ApplicationPlan(
        group, replay, tuple(changes), tuple(courses), new_settings or {}, session_ms
    )


def _restore(rate: int | None, behind: int, waited_ms: int) -> int:
    return 0 if rate is None else max(0, behind - rate * waited_ms // 1000)


def _ranks(processes: Iterable[Uuid]) -> list[tuple[Uuid, float]]:
    """Returns an id for each rank, in order, with the probability of the rank."""
    borders = [-_LONGS // 2, *sorted(most for most, _ in processes), _LONGS // 2]
    return [(((low + high) // 2, 0), (high - low) / _LONGS) for low, high in pairwise(borders)]


def _play(
    group: GroupSpec,
    run: Running,
    change: Change,
    new: Uuid | None,
    session_ms: int,
    restore: Callable[[int, int], int],
    engine: Engine,
) -> bool:
    if isinstance(change, AddMembers) and new is not None:
        run.join(_threads(group, run, change, new))
        return run.settle(str(change), 0, restore, engine=engine)
    if isinstance(change, RemoveMembers):
        run.leave(_gone(group, run, change))
        return run.settle(str(change), session_ms, restore, engine=engine)
    if isinstance(change, BounceMembers):
        return _bounce(group, run, change, session_ms, restore, engine)
    problem = "is not planned for a classic Kafka Streams application; these are: add-members, "
    raise GroupError("change", f"{problem}remove-member(s), remove-client, bounce-members")


def _threads(group: GroupSpec, run: Running, change: AddMembers, new: Uuid) -> list[StreamThread]:
    model = group.members[-1] if change.like is None else find_member(group, change.like)
    like = next(
        (one for one in run.application.threads if one.member_id == model.member_id),
        run.application.threads[-1],
    )
    info = like.info._replace(
        process_id=new,
        task_offset_sums=(),
        offset_sums_by_subtopology=(),
        prev_tasks=(),
        standby_tasks=(),
        user_end_point=b"",
    )
    rack = like.rack_id if change.rack is None else change.rack
    name = f"{group.group_id}-{uuid_text(new)}-StreamThread"
    return [
        StreamThread(f"{name}-{n}-consumer", rack, (), info) for n in range(1, change.count + 1)
    ]


def _gone(group: GroupSpec, run: Running, change: RemoveMembers) -> set[str]:
    """Returns the ids of the threads that leave; a process id stands for all of its threads."""
    there = [one for one in group.members if one.member_id in run.tasks]
    if change.rack is not None:
        gone = {one.member_id for one in there if one.rack == change.rack}
    elif change.client_id is not None:
        gone = {one.member_id for one in there if one.client_id == change.client_id}
    elif change.count is not None:
        gone = {one.member_id for one in there[-change.count :]}
    else:
        gone = set(_named(group, run, change.member or ""))
    if not gone:
        raise NotAffected("change", f"no member is left by {change}")
    if gone >= run.tasks.keys():
        raise NoMembersLeft("change", "no thread is left: nobody reads until one is back")
    return gone


def _named(group: GroupSpec, run: Running, name: str) -> list[str]:
    """Returns the member ids of a process id (or its beginning), or of one member."""
    of = [one for one in run.application.threads if uuid_text(one.info.process_id).startswith(name)]
    if len({one.info.process_id for one in of}) == 1 and len(name) > 1:
        return [one.member_id for one in of]
    return [find_member(group, name).member_id]


def _bounce(
    group: GroupSpec,
    run: Running,
    change: BounceMembers,
    session_ms: int,
    restore: Callable[[int, int], int],
    engine: Engine,
) -> bool:
    away_ms = AWAY_MS if change.away_ms is None else change.away_ms
    named = None if change.member is None else _named(group, run, change.member)
    by_id: dict[str, Member] = {one.member_id: one for one in group.members}
    settled = True
    processes = {one.info.process_id: None for one in run.application.threads}
    for process_id in processes:
        threads = [one for one in run.application.threads if one.info.process_id == process_id]
        if named is not None and not {one.member_id for one in threads} & {*named}:
            continue
        instances = [by_id[one.member_id].group_instance_id for one in threads]
        is_static = all(instances) if change.static is None else change.static
        if is_static and away_ms < session_ms:
            continue
        on_disk = {place for place in run.behind if place[0] == process_id}
        copies = {place: run.behind[place] for place in on_disk}
        run.leave([one.member_id for one in threads])
        if not run.tasks and away_ms >= session_ms:
            raise NoMembersLeft("change", "the only process is away: nobody reads until it is back")
        if away_ms >= session_ms:
            cause = f"{quoted(uuid_text(process_id)[:8])} timed out"
            settled &= run.settle(cause, session_ms, restore, engine=engine)
        run.behind |= copies
        run.join([one._replace(owned_partitions=()) for one in threads])
        settled &= run.settle(str(change), max(away_ms, session_ms), restore, engine=engine)
    return settled


def _course(one: Course) -> dict[str, Any]:
    return {
        "probability": one.probability,
        "settled": one.settled,
        "probing_rebalances": one.probings,
        "moved": [*map(str, one.moved)],
        "active_tasks_of_new_process": [*map(str, one.of_new)] if one.new else None,
        "rebalances": [_call(call, one.new) for call in one.calls],
    }


def _call(one: Call, new: tuple[Uuid, ...]) -> dict[str, Any]:
    def name(process_id: Uuid | None) -> str | None:
        if process_id is None:
            return None
        return "new" if process_id in new else uuid_text(process_id)

    def places(found: Mapping[Place, int]) -> list[dict[str, Any]]:
        return [
            {"task": str(task), "process_id": name(process_id), "records": count}
            for (process_id, task), count in found.items()
        ]

    return {
        "cause": one.cause,
        "waited_ms": one.waited_ms,
        "moved": [
            {"task": str(task), "from": name(old), "to": name(to)} for task, old, to in one.moved
        ],
        "unread": [*map(str, one.unread)],
        "restored_first": places(one.restored),
        "warming": places(one.warming),
        "standby": places(one.standby),
        "probing_rebalance_needed": one.is_probing_due,
    }
