# SPDX-License-Identifier: Apache-2.0
"""Explains where a task of a classic Kafka Streams application is, where it belongs, and when it
moves there.

The explanation comes from the replay of the last rebalance, and from a plan: of changes, or of the
probing rebalances that are due.
"""

from collections.abc import Iterator
from typing import NamedTuple

from kafka_rebalance.assignors.streams import engines
from kafka_rebalance.assignors.streams.leader import HIGH_AVAILABILITY
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import quoted
from kafka_rebalance.group.spec import counted
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.wire.streams_protocol import LATEST_OFFSET, UNKNOWN_OFFSET_SUM, TaskId

from .lines import utc_text, uuid_text
from .plan import ApplicationPlan
from .replayed import Replay, ideal_owners

_SHORT_S = 120


class TaskExplanation(NamedTuple):
    """Why a task is at the process `owner`. `reasons` are sentences; the first is the answer.

    `belongs_to` is the process that gets the task as soon as this process is caught up; None for an
    assignor that keeps tasks at their processes.
    """

    task: TaskId
    owner: str | None
    belongs_to: str | None
    reasons: tuple[str, ...]


class _Place(NamedTuple):
    """A task, its process, the process where it belongs, and the lag of each process in records."""

    replay: Replay
    task: TaskId
    owner: Uuid | None
    ideal: Uuid | None
    lags: dict[Uuid, int]
    counts: dict[Uuid, int]
    """Process -> how many active tasks of this kind (stateful or not) ideally belong to it."""

    @property
    def is_stateful(self) -> bool:
        return bool(self.replay.topology.changelogs[self.task])

    @property
    def is_waiting(self) -> bool:
        return self.is_stateful and self.ideal not in (None, self.owner)

    @property
    def most(self) -> int:
        return self.replay.application.settings.acceptable_recovery_lag


def explain_task(plan: ApplicationPlan, name: str) -> TaskExplanation:
    """Returns why a task is where it is. `name` is `1_2`, or a partition that the task reads.

    Errors   GroupError at `explain` if the application has no such task.
    """
    place = _place(plan.replay, _named(plan.replay, name))
    reasons = (
        _answer(place),
        *_belongs(place),
        *(_not_yet(place) if place.is_waiting else ()),
        *_when(plan, place),
    )
    owner, ideal = (None if one is None else uuid_text(one) for one in (place.owner, place.ideal))
    return TaskExplanation(place.task, owner, ideal, reasons)


def _named(replay: Replay, name: str) -> TaskId:
    inputs = replay.topology.inputs
    for task, partitions in inputs.items():
        if name == str(task) or name in (f"{topic}-{p}" for topic, p in partitions):
            return task
    problem = f"{quoted(name)} is not a task such as {next(iter(inputs))}, or a partition of one"
    raise GroupError("explain", f"{problem}; describe lists the tasks")


def _place(replay: Replay, task: TaskId) -> _Place:
    tasks, processes = replay.tasks, replay.processes()
    has = (one for one, of in processes.items() if any(task in tasks[each].active for each in of))
    answer = engines.assign(replay.application).processes or {}
    stateful = {*replay.topology.stateful}
    ideals = {(process_id, one) for process_id, of in answer.items() for one in of.active}
    if task in stateful:
        ideals = ideal_owners(replay.application)
    if replay.application.assignor != HIGH_AVAILABILITY:
        ideals = set()
    counts = dict.fromkeys(processes, 0)
    for process_id, one in ideals:
        counts[process_id] += (one in stateful) == (task in stateful)
    return _Place(
        replay,
        task,
        next(has, None),
        next((process_id for process_id, one in ideals if one == task), None),
        {one: of.lags[task] for one, of in answer.items() if task in of.lags},
        counts,
    )


def _answer(place: _Place) -> str:
    task = place.task
    if place.owner is None:
        return (
            f"Nobody reads {task}: it changes threads, and its old thread has given it up. Its new "
            "thread gets it in the rebalance that follows at once."
        )
    owner = uuid_text(place.owner)
    if not place.is_waiting or place.ideal is None:
        return f"{task} is at {owner}{'' if place.ideal is None else ', where it belongs'}."
    late, ideal = counted(place.lags[place.ideal], "record"), uuid_text(place.ideal)
    return (
        f"{task} is at {owner}, not yet at {ideal}, where it belongs: {ideal} was {late} behind in "
        f"the last rebalance, over {place.most:,} (acceptable.recovery.lag)."
    )


def _belongs(place: _Place) -> Iterator[str]:
    """Yields why the task belongs to its ideal process, by the assignor's rule."""
    replay, assignor = place.replay, place.replay.application.assignor
    if place.ideal is None:
        yield (
            f"The assignor {assignor} keeps a task at its process as long as this has fewer active "
            "tasks than its share, else where a standby of it is."
        )
        return
    ideal, total = uuid_text(place.ideal), sum(place.counts.values())
    threads, all_threads = len(replay.processes()[place.ideal]), len(replay.application.threads)
    has = f"{place.counts[place.ideal]} of {total}, with {threads} of {all_threads} threads"
    if place.is_stateful:
        yield (
            "Previous owners do not decide where a stateful task belongs: tasks in order are dealt "
            "to the processes in the order of their ids, then balanced by tasks per thread; "
            f"{ideal} is to have {has}."
        )
        if place.lags.get(place.ideal) == UNKNOWN_OFFSET_SUM:
            yield (
                f"The lag of {ideal} is unknown: its threads send no positions, as Kafka Streams "
                "before 2.6. Such a lag counts as the smallest, so the task moves there without a "
                "warm-up, and its state is restored before it runs."
            )
    else:
        yield (
            "It has no state, so previous owners do not count: stateless tasks in order go to the "
            f"process with the fewest active tasks per thread; {ideal} has {has}."
        )


def _not_yet(place: _Place) -> Iterator[str]:
    """Yields why the task is not at its ideal process yet: lag, and warm-up, or why it has none."""
    replay, ideal = place.replay, place.ideal
    assert ideal is not None
    if place.owner is not None:
        late, owner = place.lags[place.owner], uuid_text(place.owner)
        ran = ": it ran the task before the last rebalance" * (late == LATEST_OFFSET)
        is_least = f"No process is caught up; {owner} is the least behind."
        yield is_least if late > place.most else f"{owner} is caught up{ran}."
    warming = replay.warming()
    if (ideal, place.task) in warming:
        yield f"It warms up at {uuid_text(ideal)}."
    else:
        most = replay.application.settings.max_warmup_replicas
        others = ", ".join(sorted(str(task) for _, task in warming)) or "none"
        yield (
            f"It does not warm up yet: max.warmup.replicas is {most} for the whole group, and "
            f"others come first (warming up: {others})."
        )


def _when(plan: ApplicationPlan, place: _Place) -> Iterator[str]:
    """Yields when the task moves to where it belongs, by the plan of the probing rebalances."""
    replay, course = place.replay, plan.likeliest
    if not place.is_waiting or place.ideal is None or replay.deadline is None or plan.changes:
        return
    ideal, late = uuid_text(place.ideal), place.lags[place.ideal]
    interval = replay.application.settings.probing_rebalance_interval_ms
    moves = (n for n in range(len(course.phases)) if course.owners(n).get(place.task) == ideal)
    number = next(moves, None)
    if number is None:
        rates = f"--restore-rate {plan.restore_rate}, --write-rate {plan.write_rate}"
        yield (
            f"It never moves: {ideal} is not caught up in any of the next {len(course.phases)} "
            f"probing rebalances ({rates})."
        )
        return
    at_ms = replay.deadline[1] + number * interval
    text = f"It moves at the probing rebalance of {utc_text(at_ms)}"
    text += f", after {counted(number, 'other')}" if number else ""
    if plan.restore_rate is not None:
        net = plan.restore_rate - plan.write_rate
        seconds = max(0, late - place.most) / net if net > 0 else 0
        took = f"{seconds:.0f} s" if seconds < _SHORT_S else f"{seconds / 60:.0f} min"
        yield f"{text}: it is caught up after {took} of restoring."
    else:
        needed = -(-max(0, late - place.most) * 1000 // interval)
        least = f"{counted(needed, 'record')} a second"
        yield f"{text}, if {ideal} restores at least {least} (--restore-rate)."
