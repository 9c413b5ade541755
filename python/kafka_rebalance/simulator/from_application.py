# SPDX-License-Identifier: Apache-2.0
"""Makes a run from the likeliest course in the plan of a classic Kafka Streams application.

    application_run: ApplicationPlan -> Run

The plan (`applications/plan.py`) holds the calls of the leader. Here, each call gets a time, and
each task the process that runs it. The run begins ten seconds before the change, or before the last
rebalance if there is no change.

1. The tasks of a process that stops are idle from then on. If a process restarts as a static
   member, its tasks are idle while it is away.
2. A rebalance lasts a heartbeat interval, in which each thread learns of it and rejoins. Only after
   that do threads give up and take tasks. Probing rebalances are due a probing interval after
   the last answer.
3. A task with state begins when its process has restored the missing records.

Differs  from real times: a thread can learn of a rebalance sooner; several threads whose sessions
         expire one after another cause several rebalances.
"""

from collections.abc import Sequence

from kafka_rebalance.applications.plan import ApplicationPlan
from kafka_rebalance.applications.prediction import FOLLOW_UP_MS, Call
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.spec import counted
from kafka_rebalance.plans.summary import in_words
from kafka_rebalance.wire.streams_protocol import TaskId

from .intervals import Holds
from .run import Rebalance, Run
from .scenario import Happening, Kind

BEFORE_MS = 10_000
_AFTER_MS = 60_000
_NEVER_MS = 10**12


def application_run(plan: ApplicationPlan) -> Run:
    """Returns the likeliest course of the plan as a run; its members are the processes.

    Errors   GroupError at `restore_rate` if records are to be restored and no rate is given.
    """
    course = plan.likeliest
    lacking = [copy for call in course.calls for copy in (*call.restored, *call.warming)]
    if lacking and plan.restore_rate is None:
        most = counted(max(copy.records for copy in lacking), "record")
        problem = f"missing; copies of state have up to {most} to restore, and it gives the time"
        raise GroupError("restore_rate", problem)
    return _Played(plan).run()


class _Played:
    """Plays the calls of a course. `now_ms` is the time at which threads receive the last answer.

    `last_ms` is the time at which the last task has been restored.
    """

    def __init__(self, plan: ApplicationPlan) -> None:
        self.plan, self.course, self.names = plan, plan.likeliest, plan.replay.names
        self.net_rate = (plan.restore_rate or 0) - plan.write_rate
        self.now_ms = self.last_ms = BEFORE_MS
        self.generation = plan.group.generation_id or 0
        self.holds = Holds()
        self.owners: dict[TaskId, str | None] = {**self.course.before}
        self.rebalances = [Rebalance(1, ["as it is"], 0, self.generation, 1, 1)]
        self.happenings: list[Happening] = []

    def run(self) -> Run:
        for task in self.plan.replay.topology.tasks:
            self.holds.appear(str(task), 0)
            self.start(task, 0)
        pauses, played = [*self.course.pauses], 0
        for phase in (*self.course.phases, ()):
            while pauses and pauses[0][2] == played:
                self.pause(*pauses.pop(0)[:2])
            if phase:
                self.play(phase)
            played += len(phase)
        until = max(self.now_ms, self.last_ms) + _AFTER_MS * self.course.settled
        holds = self.holds.finish(until)
        plan = self.plan
        return Run(
            title=f"{plan.group.group_id}: {in_words(plan.changes)}",
            until_ms=until,
            held="task",
            assumed=_assumed(plan),
            members=tuple(dict.fromkeys(one.member for one in holds)),
            happenings=tuple(self.happenings),
            holds=tuple(holds),
            gaps=tuple(self.holds.gaps(holds, until)),
            rebalances=tuple(self.rebalances),
            absences=(),
            empty_handed=(),
            crashed={},
            events=len(self.course.calls),
        )

    def pause(self, process: str, away_ms: int) -> None:
        mine = [task for task, owner in self.owners.items() if owner == process]
        for kind, at_ms in ((Kind.STOP, self.now_ms), (Kind.START, self.now_ms + away_ms)):
            self.happens(kind, process, at_ms)
            for task in mine:
                (self.stop if kind is Kind.STOP else self.start)(task, at_ms)
        self.now_ms += away_ms

    def play(self, phase: Sequence[Call]) -> None:
        first = phase[0]
        for task in first.ended:  # 1.
            self.happens(Kind.KILL, self.owners[task], self.now_ms)
            self.stop(task, self.now_ms)
        self.now_ms += first.waited_ms
        number, from_ms = len(self.rebalances) + 1, self.now_ms
        for call in phase:  # 2.
            self.now_ms += FOLLOW_UP_MS
            self.generation += 1
            self.answer(call)
        cause = first.cause
        for process, name in self.names.items():
            cause = cause.replace(process, name)
        span = from_ms, self.generation, len(phase), self.now_ms
        self.rebalances.append(Rebalance(number, [cause], *span))

    def answer(self, call: Call) -> None:
        late = {one.task: one.records for one in call.restored}
        for task, _, now in call.moved:
            self.stop(task, self.now_ms)
            self.owners[task] = now
        for task in {*call.ended, *(one.task for one in call.moved)}:
            self.start(task, self.now_ms, late.get(task, 0))

    def start(self, task: TaskId, at_ms: int, records: int = 0) -> None:
        """Records that a task's owner runs the task once the owner has restored `records`."""
        if owner := self.owners.get(task):
            ready = _NEVER_MS
            if not records or self.net_rate > 0:  # 3.
                ready = at_ms + -(-records * 1000 // max(1, self.net_rate))
                self.last_ms = max(self.last_ms, ready)
            self.holds.take(str(task), self.named(owner), self.generation, ready)

    def stop(self, task: TaskId, at_ms: int) -> None:
        if owner := self.owners.get(task):
            self.holds.give(str(task), self.named(owner), at_ms)

    def happens(self, kind: Kind, process: str | None, at_ms: int) -> None:
        one = Happening(at_ms=at_ms, kind=kind, member=self.named(process or ""))
        if process and one not in self.happenings:
            self.happenings.append(one)

    def named(self, process: str) -> str:
        return self.names.get(process, process)


def _assumed(plan: ApplicationPlan) -> str:
    text = f"assumed: each rebalance takes {FOLLOW_UP_MS / 1000:g} s, a heartbeat interval"
    if plan.restore_rate is not None:
        text += f"; a copy restores {counted(plan.restore_rate, 'record')} a second"
    if plan.write_rate:
        text += f", and {plan.write_rate:,} a second are written for each task"
    return text
