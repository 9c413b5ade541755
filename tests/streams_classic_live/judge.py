# SPDX-License-Identifier: Apache-2.0
"""Runs applications, plans their changes, and compares each rebalance."""

from __future__ import annotations

import contextlib
import io
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

from kafka import KafkaProducer
from kafka.admin import NewTopic

from kafka_rebalance.applications.lines import read_application, read_assigned, uuid_text
from kafka_rebalance.applications.plan import ApplicationPlan, Course, plan_application
from kafka_rebalance.applications.prediction import NEW
from kafka_rebalance.applications.replayed import Replay, replay
from kafka_rebalance.applications.topology import ThreadTasks, present_tasks
from kafka_rebalance.cli import main
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.live import snapshot_lines
from kafka_rebalance.live.cluster import admin_client
from kafka_rebalance.plans.rebalance_plan import parse_changes
from kafka_rebalance.wire.streams_protocol import TaskId
from tests.support.broker import LIB_STREAMS
from tests.support.live_members import JavaMembers

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path
    from random import Random
    from typing import TextIO

SESSION_MS = 6_000
PROBING_MS = 60_000
_RECORDS = 60
_CALM_S = 3.0
"""An application has settled if it looks equal for this long."""
_TIMEOUT_S = 150.0
_ON_TIME_MS = 10_000
_TAGS = "rack.aware.assignment.tags"


@dataclass
class Stage:
    """An application: its topics, settings, and processes with their numbers of threads."""

    group_id: str
    topics: dict[str, int]
    standbys: int
    is_static: bool
    lag: int = 5
    is_tagged: bool = False
    processes: dict[str, int] = field(default_factory=dict)
    zones: dict[str, str] = field(default_factory=dict)
    """The client tag `zone` of each process that was ever started, if the stage has tags."""
    planned: ApplicationPlan | None = None
    phase: int = 0
    next: Course | None = None
    there: set[str] = field(default_factory=set)

    @staticmethod
    def drawn(number: int, random: Random) -> Stage:
        a, b, c = random.sample(range(2, 7), 3)
        name = f"app{number}"
        topics = {f"{name}-orders": a, f"{name}-returns": b, f"{name}-clicks": c}
        is_tagged = number % 5 == 3
        return Stage(name, topics, number % 2, number % 3 == 2, is_tagged=is_tagged)


@dataclass
class Found:
    """Counts, and a line for each change."""

    changes: int = 0
    declined: int = 0
    compared: int = 0
    equal: int = 0
    """Rebalances after which all threads had the planned tasks."""
    planned: int = 0
    """Rebalances after which all processes had the planned active tasks."""
    told: int = 0
    """Rebalances after which each task was where the plan or its quick course had it."""
    again: int = 0
    told_again: int = 0
    """As `told`, but of probing rebalances that were planned from the state before each."""
    ends: int = 0
    right_ends: int = 0
    right_lengths: int = 0
    """How many changes had as many probing rebalances as their plan said: a number, or a range."""
    probings: int = 0
    on_time: int = 0
    due: list[tuple[str, int]] = field(default_factory=list)
    """The group and the time in ms of each probing rebalance that was compared."""
    named: int = 0
    """How many of these `history` names, at their time."""
    causes: Counter[str] = field(default_factory=Counter)
    """What `history --json` has as causes of all rebalances."""
    lines: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        self.lines.append(line)
        print(line, flush=True)

    def __str__(self) -> str:
        return (
            f"{self.changes} changes, {self.declined} declined before; of {self.compared} "
            f"rebalances, {self.told} as told, {self.planned} of them with nothing restored before "
            f"follow-ups, {self.equal} also in threads; {self.told_again} of {self.again} probing "
            f"rebalances as told from the state before; {self.right_ends} of {self.ends} ends as "
            f"planned, {self.right_lengths} after as many probing rebalances as told; probing "
            f"times right in {self.on_time} of {self.probings}"
        )


class _Run:
    def __init__(self, server: str, random: Random, directory: Path, record: TextIO | None) -> None:
        self.server, self.random, self.directory = server, random, directory
        self.names = count(1)
        self.last: dict[str, str] = {}
        self.record = record
        self.described: dict[str, dict[str, Any]] = {}
        self.java = JavaMembers(server, directory / "java.log", "BrokerAssigned", [LIB_STREAMS])

    def send(self, **command: Any) -> None:
        if failures := self.java.send(**command)["failures"]:
            raise RuntimeError(str(failures))

    def start(self, stage: Stage, threads: int, zone: str = "") -> None:
        name = f"{stage.group_id}-{next(self.names)}"
        stage.processes[name] = threads
        stage.zones[name] = zone or "ab"[len(stage.zones) % 2]
        orders, returns, _ = stage.topics
        configs = {
            "group.protocol": "classic",
            "num.standby.replicas": stage.standbys,
            "acceptable.recovery.lag": stage.lag,
            "probing.rebalance.interval.ms": PROBING_MS,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": 500,
            "statestore.cache.max.bytes": 0,
        }
        if stage.is_static:
            configs["group.instance.id"] = name
        if stage.is_tagged:
            configs |= {_TAGS: "zone", "client.tag.zone": stage.zones[name]}
        one = {
            "name": name,
            "kind": "streams",
            "group_id": stage.group_id,
            "topics": [*stage.topics],
            "stateful": [orders],
            "repartitioned": [returns],
            "threads": threads,
            "state_dir": str(self.directory / name),
            "persistent": True,
            "configs": configs,
        }
        self.described[name] = one
        self.send(add=[one])

    def restart(self, name: str) -> None:
        """Starts a process again that was abandoned, with its disk."""
        self.send(add=[self.described[name]])

    def fill(self, stage: Stage) -> None:
        topics = [NewTopic(name, n, 1) for name, n in stage.topics.items()]
        with admin_client(self.server, None) as admin:
            admin.create_topics(topics)
        producer = KafkaProducer(bootstrap_servers=self.server)
        for topic, partitions in stage.topics.items():
            for n in range(_RECORDS * partitions):
                text = b"%d" % n
                producer.send(topic, key=text, value=text, partition=n % partitions)
        producer.flush()
        producer.close()

    def looks(self, stages: list[Stage]) -> dict[str, tuple[GroupSpec, Replay] | str]:
        """Returns each application as it is, or why it cannot be read."""
        found: dict[str, tuple[GroupSpec, Replay] | str] = {}
        by_id = {one.group_id: one for one in stages}
        for line in snapshot_lines(self.server, [one.group_id for one in stages]):
            self._keep(line)
            try:
                group, field_ = GroupSpec.from_dict(line), line["application"]
                read, assigned = read_application(field_), read_assigned(field_)
                stage = by_id[group.group_id]
                given = {
                    "acceptable.recovery.lag": stage.lag,
                    "probing.rebalance.interval.ms": PROBING_MS,
                    _TAGS: ["zone"] * stage.is_tagged,
                }
                found[group.group_id] = group, replay(group.group_id, read, assigned, given)
            except (GroupError, KeyError) as error:
                found[line["group_id"]] = line.get("error") or str(error)
        return found

    def _keep(self, line: dict[str, Any]) -> None:
        """Writes the group's line to the recording, unless only its times have changed."""
        field_ = line.get("application", {})
        text = json.dumps([field_.get(name) for name in ("assigned", "members", "end_offsets")])
        if self.record and "error" not in line and self.last.get(line["group_id"]) != text:
            self.last[line["group_id"]] = text
            self.note(**line)

    def note(self, **line: Any) -> None:
        """Writes a line to the record: a group, its change, or how a rebalance compares."""
        if self.record:
            self.record.write(json.dumps(line) + "\n")
            self.record.flush()

    def settled(self, stages: list[Stage]) -> dict[str, tuple[GroupSpec, Replay]]:
        """Returns the applications once all have the expected threads and are calm."""
        end = time.monotonic() + _TIMEOUT_S
        calm: dict[str, tuple[Any, float]] = {}
        while time.monotonic() < end:
            looks = self.looks(stages)
            done = {}
            for stage in stages:
                look = looks.get(stage.group_id, "")
                if isinstance(look, str) or not _is_whole(stage, look[1]):
                    calm.pop(stage.group_id, None)
                    continue
                one = look[1]
                ends = one.application.end_offsets  # they grow while records are processed
                state = (present_tasks(one.assigned), one.deadline, ends)
                known, since = calm.get(stage.group_id, (None, 0.0))
                if known != state:
                    calm[stage.group_id] = state, time.monotonic()
                elif time.monotonic() - since > _CALM_S:
                    done[stage.group_id] = look
            if len(done) == len(stages):
                return done
            time.sleep(0.3)
        raise TimeoutError(f"not settled: {self.looks(stages)}")


def _is_whole(stage: Stage, one: Replay) -> bool:
    """Returns whether the group has the expected threads, all records have been processed, and no
    follow-up is due.
    """
    threads, (orders, returns, _) = sum(stage.processes.values()), stage.topics.values()
    ends = sum(map(sum, (one.application.end_offsets or {}).values()))
    is_done = ends == _RECORDS * (orders + returns)  # each record changes one value
    return len(one.application.threads) == threads and is_done and not one.rebalances_at_once


def judged(
    server: str,
    stages: list[Stage],
    changes: int,
    random: Random,
    directory: Path,
    record: TextIO | None = None,
) -> Found:
    """Makes the changes of all applications, one of each at a time."""
    run, found = _Run(server, random, directory, record), Found()
    try:
        for stage in stages:
            run.fill(stage)
            for _ in range(4 if stage.is_tagged else 2):  # tags count if a zone has two processes
                run.start(stage, random.randint(1, 2))
        run.settled(stages)
        for _ in range(changes):
            # An application is final before its next change, so that a plan begins with it.
            final = _await_final(run, stages)
            busy = [one for one in stages if _change(run, one, final[one.group_id], found)]
            _compare(run, busy, found)
            print(found, flush=True)
        _ask_history(server, found)
        return found
    finally:
        run.java.close()


def _ask_history(server: str, found: Found) -> None:
    """Counts the causes that `history` has, and the probing rebalances that it names."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main(["history", "--bootstrap-server", server, "--json"])
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    found.causes.update(row["cause"] for row in rows)
    probings = [(row["group_id"], row["time_ms"]) for row in rows if row["cause"] == "probing"]
    found.named = sum(
        any(one == group_id and 0 <= at_ms - due < _ON_TIME_MS for one, at_ms in probings)
        for group_id, due in found.due
    )
    found.add(f"history: {dict(found.causes)}; named {found.named} of {len(found.due)} probings")


def _await_final(run: _Run, stages: list[Stage]) -> dict[str, tuple[GroupSpec, Replay]]:
    end = time.monotonic() + 4 * PROBING_MS / 1000
    while time.monotonic() < end:
        looks = run.settled(stages)
        if not any(look[1].deadline for look in looks.values()):
            return looks
        time.sleep(2)
    raise TimeoutError("an application still has a deadline")


def _change(run: _Run, stage: Stage, look: tuple[GroupSpec, Replay], found: Found) -> bool:
    """Plans and makes a change; returns whether there is something to compare."""
    group, one = look
    found.changes += 1
    if one.problem is not None:
        found.declined += 1
        found.add(f"{stage.group_id}: declined: {one.problem}")
        return False
    kinds = ["add", "remove"] if len(stage.processes) > 2 else ["add"]
    kinds += ["restart"] if stage.is_static else []
    kind, threads = run.random.choice(kinds), run.random.randint(1, 2)
    victim = run.random.choice([*stage.processes])
    member = next(m for m in group.members if (m.client_id or "").startswith(f"{victim}-"))
    if kind == "add":  # with the tags of the victim
        texts = [f"add-members={threads},like={member.member_id}"]
    else:
        process_id = uuid_text(one.process_of(member.member_id))
        texts = [f"remove-member={process_id}"]
        if kind == "restart":
            texts = [f"bounce-members={process_id},away=1s"]
    changes = parse_changes(texts)
    stage.planned = plan_application(group, one, changes, session_ms=SESSION_MS)
    stage.there = {each.member_id for each in group.members}
    stage.phase, stage.next = 0, None
    found.add(f"{stage.group_id}: {texts[0]}, {stage.standbys} standbys")
    run.note(group_id=stage.group_id, change=texts[0])
    if kind == "add":
        run.start(stage, threads, stage.zones[victim])
    elif kind == "remove":
        run.send(abandon=[victim])
        del stage.processes[victim]
    else:
        run.send(abandon=[victim])
        run.restart(victim)
    return kind != "restart"


def _compare(run: _Run, stages: list[Stage], found: Found) -> None:
    """Compares all rebalances after the changes of these applications."""
    left = list(stages)
    looks = run.settled(left) if left else {}
    while left:
        for stage in left:
            group, look = looks[stage.group_id]
            how = _judged(stage, look, found)
            run.note(group_id=stage.group_id, compared=how)
            found.add(f"  {stage.group_id}: {how}; probing {'not ' * (not look.deadline)}due")
            stage.phase += 1
            stage.next = plan_application(group, look).likeliest if look.deadline else None
        left = [one for one in left if one.next]
        if left:
            due = {one.group_id: (looks[one.group_id][1].deadline or ("", 0))[1] for one in left}
            until = max(due.values()) / 1000 - time.time()
            time.sleep(max(0.0, until) + 3)
            looks = run.settled(left)
            for one in left:
                found.probings += 1
                found.due.append((one.group_id, due[one.group_id]))
                found.on_time += _was_on_time(looks[one.group_id][1], due[one.group_id])


def _judged(stage: Stage, look: Replay, found: Found) -> str:
    """Counts how a rebalance compares with the plan; returns it in words."""
    course, present = _course(stage, look), _owners(look, stage.there)
    quick = course.quick or course
    phase = min(stage.phase, len(course.phases) - 1)
    found.compared += 1
    found.equal += _renamed(stage, course.phases[phase][-1].tasks, look) == present_tasks(
        look.assigned
    )
    differing = _outside(course, stage.phase, present, look.topology.stateful)
    is_planned = not any(present[one] != course.owners(stage.phase).get(one) for one in present)
    found.planned += is_planned
    found.told += not differing
    if stage.next is not None:
        found.again += 1
        found.told_again += not _outside(stage.next, 0, _owners(look), look.topology.stateful)
    if look.deadline is None:
        found.ends += 1
        found.right_ends += present == course.after
        found.right_lengths += stage.phase + 1 in range(len(quick.phases), len(course.phases) + 1)
    if is_planned:
        return "as planned"
    return f"DIFFERS: {', '.join(map(str, differing))}" if differing else "between the bounds"


def _outside(
    course: Course, phase: int, present: dict[TaskId, str], stateful: Collection[TaskId]
) -> list[TaskId]:
    """Returns the tasks that are where neither the course nor its quick one has them.

    If the two differ in a phase, stateless tasks follow the load, which may be between the two.
    """
    slow, quick = (one.owners(phase) for one in (course, course.quick or course))
    known = stateful if slow != quick else present.keys()
    return [one for one in known if present.get(one) not in (slow.get(one), quick.get(one))]


def _owners(look: Replay, there: set[str] | None = None) -> dict[TaskId, str]:
    """Returns the process of each active task, as a plan names it that was made when the members
    `there` were in the group (None: all that are in it now).
    """
    tasks = present_tasks(look.assigned)
    return {
        task: NEW if there is not None and there.isdisjoint(of) else uuid_text(process_id)
        for process_id, of in look.processes().items()
        for one in of
        for task in tasks[one].active
    }


def _was_on_time(look: Replay, due_ms: int) -> bool:
    """Returns whether the rebalance that was due has taken place."""
    return look.deadline is None or look.deadline[1] > due_ms + PROBING_MS - _ON_TIME_MS


def _course(stage: Stage, look: Replay) -> Course:
    """Returns the course of the rank that the new process has."""
    assert stage.planned is not None
    new = [one for one, of in look.processes().items() if not {*of} & stage.there]
    return stage.planned.courses[[*look.processes()].index(new[0]) if new else 0]


def _renamed(
    stage: Stage, expected: dict[str, ThreadTasks], look: Replay
) -> dict[str, ThreadTasks]:
    """Returns planned tasks with the real names of new threads."""
    present = present_tasks(look.assigned)
    new = sorted(one for one in present if one not in stage.there)
    made_up = sorted(one for one in expected if one not in stage.there)
    names = dict(zip(made_up, new, strict=False))
    return {names.get(one, one): tasks for one, tasks in expected.items()}
