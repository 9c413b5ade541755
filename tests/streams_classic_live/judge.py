# SPDX-License-Identifier: Apache-2.0
"""Runs applications, plans their changes, and compares each rebalance."""

from __future__ import annotations

import contextlib
import io
import json
import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from kafka import KafkaProducer
from kafka.admin import NewTopic

from kafka_rebalance.applications.lines import read_application, read_assigned, uuid_text
from kafka_rebalance.applications.plan import ApplicationPlan, Course, plan_application
from kafka_rebalance.applications.prediction import NEW
from kafka_rebalance.applications.replayed import Replay, replay
from kafka_rebalance.applications.topology import ThreadTasks
from kafka_rebalance.assignors.streams import engines
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
_TRAFFIC_BEFORE_S = 15.0
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
    changed_ms: float = 0.0
    probed_ms: int = 0
    """When the last probing rebalance was due."""
    next: Course | None = None
    there: set[str] = field(default_factory=set)

    @property
    def given(self) -> dict[str, Any]:
        return {
            "acceptable.recovery.lag": self.lag,
            "probing.rebalance.interval.ms": PROBING_MS,
            _TAGS: ["zone"] * self.is_tagged,
        }

    @staticmethod
    def drawn(number: int, random: Random) -> Stage:
        a, b, c = random.sample(range(2, 7), 3)
        name = f"app{number}"
        topics = {f"{name}-orders": a, f"{name}-returns": b, f"{name}-clicks": c}
        is_tagged = number % 5 == 3
        standbys = 1 if is_tagged else number % 2
        lag = 5 if number % 4 < 2 else 30  # of 50 to 70 records in a changelog's partition
        return Stage(name, topics, standbys, number % 3 == 2, lag, is_tagged=is_tagged)


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
    told_standby: int = 0
    """As `told`, and each standby task and warm-up was."""
    again: int = 0
    told_again: int = 0
    """As `told`, but of probing rebalances that were planned from the state before each."""
    told_standby_again: int = 0
    tagged: int = 0
    """Rebalances of applications with client tags."""
    decided: int = 0
    """Those in which the leader would have put standby tasks elsewhere without tags."""
    states: set[str] = field(default_factory=set)
    """The settled states that were seen: group, tasks of each thread, deadline."""
    unlike: dict[str, str] = field(default_factory=dict)
    """Those that the replay does not have as its answer, and what it says then."""
    with_traffic: dict[str, str] = field(default_factory=dict)
    """Each state that was seen while records were written: how its replay ended."""
    ends: int = 0
    right_ends: int = 0
    warmed: int = 0
    """How many of these had warm-ups, so probing rebalances."""
    right_times: int = 0
    """How many of those had settled within the printed time, with 10 s for each rebalance."""
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
            f"times right in {self.on_time} of {self.probings}; with standby tasks, "
            f"{self.told_standby} of {self.compared} as told, and {self.told_standby_again} of "
            f"{self.again} from the state before; warm within the printed time: {self.right_times} "
            f"of {self.warmed}; client tags decided {self.decided} of {self.tagged} rebalances of "
            f"tagged applications; replay equal in {len(self.states) - len(self.unlike)} of "
            f"{len(self.states)} settled states"
        )


class Run:
    def __init__(
        self, server: str, random: Random, directory: Path, record: TextIO | None, found: Found
    ) -> None:
        self.server, self.random, self.directory, self.found = server, random, directory, found
        self.names = count(1)
        self.last: dict[str, str] = {}
        self.record = record
        self.described: dict[str, dict[str, Any]] = {}
        self.bounds: dict[str, str] = {}
        """Which end offsets the last replay of each application stands on."""
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
                one = replay(group.group_id, read, assigned, stage.given)
                found[group.group_id] = group, one
                is_now = one.application.end_offsets == read.end_offsets
                self.bounds[group.group_id] = "the ends of now" if is_now else "reported ends"
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
        done: dict[str, tuple[GroupSpec, Replay]] = {}
        while time.monotonic() < end:
            looks = self.looks(stages)
            done.clear()
            for stage in stages:
                look = looks.get(stage.group_id, "")
                if isinstance(look, str) or not _is_whole(stage, look[1]):
                    calm.pop(stage.group_id, None)
                    continue
                one = look[1]
                ends = one.read.end_offsets  # they grow while records are processed
                state = (one.tasks, one.deadline, ends)
                known, since = calm.get(stage.group_id, (None, 0.0))
                if known != state:
                    calm[stage.group_id] = state, time.monotonic()
                elif time.monotonic() - since > _CALM_S:
                    done[stage.group_id] = look
                    key = str((stage.group_id, *state[:2]))
                    self.found.states.add(key)
                    if one.problem:
                        self.found.unlike[key] = one.problem
            if len(done) == len(stages):
                return done
            time.sleep(0.3)
        left = [one.group_id for one in stages if one.group_id not in done]
        raise TimeoutError(f"not settled: {', '.join(left)}; see the record")


def _is_whole(stage: Stage, one: Replay) -> bool:
    """Returns whether the group has the expected threads, all records have been processed, and no
    follow-up is due.
    """
    threads, (orders, returns, _) = sum(stage.processes.values()), stage.topics.values()
    ends = sum(map(sum, (one.read.end_offsets or {}).values()))
    is_done = ends == _RECORDS * (orders + returns)  # each record changes one value
    return len(one.application.threads) == threads and is_done and not one.rebalances_at_once


def judged(
    server: str,
    stages: list[Stage],
    changes: int,
    random: Random,
    directory: Path,
    record: TextIO | None = None,
    traffic_s: int = 0,
) -> Found:
    """Makes the changes of all applications, one of each at a time; then, for some seconds, looks
    at them while records are written and a process joins each.
    """
    found = Found()
    run = Run(server, random, directory, record, found)
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
        if traffic_s:
            _replay_with_traffic(run, stages, traffic_s)
        return found
    finally:
        run.java.close()


def _replay_with_traffic(run: Run, stages: list[Stage], seconds: int) -> None:
    """Counts how the replays of all states end: equal with an end offset, or declined."""
    found, done = run.found, threading.Event()
    producer = KafkaProducer(bootstrap_servers=run.server)
    topics = {topic: n for stage in stages for topic, n in stage.topics.items()}

    def produce() -> None:
        for n in count(_RECORDS * 10):
            for topic, partitions in topics.items():
                text = b"%d" % n
                producer.send(topic, key=text, value=text, partition=n % partitions)
            if done.wait(0.02):
                return

    writer = threading.Thread(target=produce)
    writer.start()
    try:
        time.sleep(_TRAFFIC_BEFORE_S)  # the offsets of the last rebalances are old by now
        joined, left = _add_with_traffic(run, stages)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for group_id, look in run.looks(stages).items():
                if isinstance(look, str):
                    continue
                one = look[1]
                how = f"equal with {run.bounds[group_id]}" if one.problem is None else "declined"
                state = group_id, sorted(one.assigned), one.tasks, one.deadline
                found.with_traffic.setdefault(str(state), how)
                if group_id in left and _has_joined(left[group_id], one):
                    joined[_joined_with_traffic(run, left.pop(group_id), one)] += 1
            time.sleep(1)
        joined["not settled"] += len(left)
    finally:
        done.set()
        writer.join()
        producer.close()
    found.add(
        f"with traffic, replays of {len(stages)} applications' states: "
        f"{dict(Counter(found.with_traffic.values()))}; a process joined each: {dict(joined)}"
    )


def _add_with_traffic(run: Run, stages: list[Stage]) -> tuple[Counter[str], dict[str, Stage]]:
    """Adds a process to each; returns how many were declined before, and those with a plan."""
    joined, left = Counter[str](), {}
    looks = run.looks(stages)
    for stage in stages:
        look, old = looks[stage.group_id], run.random.choice([*stage.processes])
        if isinstance(look, str) or look[1].problem or look[1].rebalances_at_once:
            joined["declined"] += 1
        else:
            like = _thread_of(old, look[0])
            _plan(stage, *look, f"add-members=1,like={like}")
            left[stage.group_id] = stage
        run.start(stage, 1, stage.zones[old])
    return joined, left


def _has_joined(stage: Stage, one: Replay) -> bool:
    is_whole = len(one.application.threads) == sum(stage.processes.values())
    return is_whole and not one.rebalances_at_once


def _joined_with_traffic(run: Run, stage: Stage, look: Replay) -> str:
    """Returns how the first rebalance after the join, with its follow-up, compares."""
    course, present = _course(stage, look), _owners(look, stage.there)
    if not (differing := _outside(course, 0, present, look.topology.stateful)):
        return "as told"
    tasks = ", ".join(map(str, differing))
    run.found.add(f"  {stage.group_id}, with traffic, lag {stage.lag}: DIFFERS: {tasks}")
    return "different"


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


def _await_final(run: Run, stages: list[Stage]) -> dict[str, tuple[GroupSpec, Replay]]:
    end = time.monotonic() + 4 * PROBING_MS / 1000
    while time.monotonic() < end:
        looks = run.settled(stages)
        if not any(look[1].deadline for look in looks.values()):
            return looks
        time.sleep(2)
    raise TimeoutError("an application still has a deadline")


def _change(run: Run, stage: Stage, look: tuple[GroupSpec, Replay], found: Found) -> bool:
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
    thread = _thread_of(victim, group)
    if kind == "add":  # with the tags of the victim
        texts = [f"add-members={threads},like={thread}"]
    else:
        process_id = uuid_text(one.process_of(thread))
        texts = [f"remove-member={process_id}"]
        if kind == "restart":
            texts = [f"bounce-members={process_id},away=1s"]
    _plan(stage, group, one, texts[0])
    found.add(f"{stage.group_id}: {texts[0]}, {stage.standbys} standbys")
    run.note(group_id=stage.group_id, change=texts[0])
    stage.changed_ms = time.time() * 1000
    if kind == "add":
        run.start(stage, threads, stage.zones[victim])
    elif kind == "remove":
        run.send(abandon=[victim])
        del stage.processes[victim]
    else:
        run.send(abandon=[victim])
        run.restart(victim)
    return kind != "restart"


def _thread_of(process: str, group: GroupSpec) -> str:
    """Returns the member id of one of the process's threads."""
    return next(m.member_id for m in group.members if (m.client_id or "").startswith(f"{process}-"))


def _plan(stage: Stage, group: GroupSpec, one: Replay, change: str) -> None:
    changes = parse_changes([change])
    stage.planned = plan_application(group, one, changes, session_ms=SESSION_MS)
    stage.there = {each.member_id for each in group.members}
    stage.phase, stage.next = 0, None


def _next(stage: Stage, group: GroupSpec, look: Replay) -> None:
    """Plans the probing rebalance that is due."""
    stage.phase += 1
    stage.next = plan_application(group, look).likeliest if look.deadline else None


def judged_again(record: TextIO) -> Found:
    """Judges a recording: all but times."""
    found, stages = Found(), dict[str, Stage]()
    looks: dict[str, tuple[GroupSpec, Replay]] = {}
    for line in map(json.loads, record):
        group_id = line["group_id"]
        stage = stages.setdefault(group_id, Stage(group_id, {}, 0, is_static=False))
        if "change" in line:
            found.changes += 1
            _plan(stage, *looks[group_id], line["change"])
        elif "compared" in line:
            found.add(f"  {group_id}: {_judged(stage, looks[group_id][1], found)}")
            _next(stage, *looks[group_id])
        else:
            read = read_application(line["application"])
            stage.is_tagged = any(one.info.tags() for one in read.threads)
            sent = read_assigned(line["application"])
            with contextlib.suppress(GroupError):  # tasks are withheld: none is settled so
                look = replay(group_id, read, sent, stage.given)
                looks[group_id] = GroupSpec.from_dict(line), look
    return found


def _compare(run: Run, stages: list[Stage], found: Found) -> None:
    """Compares all rebalances after the changes of these applications."""
    left = list(stages)
    looks = run.settled(left) if left else {}
    while left:
        for stage in left:
            group, look = looks[stage.group_id]
            how = _judged(stage, look, found)
            run.note(group_id=stage.group_id, compared=how)
            found.add(f"  {stage.group_id}: {how}; probing {'not ' * (not look.deadline)}due")
            _next(stage, group, look)
        left = [one for one in left if one.next]
        if left:
            due = {one.group_id: (looks[one.group_id][1].deadline or ("", 0))[1] for one in left}
            until = max(due.values()) / 1000 - time.time()
            time.sleep(max(0.0, until) + 3)
            looks = run.settled(left)
            for one in left:
                found.probings += 1
                found.due.append((one.group_id, due[one.group_id]))
                one.probed_ms = due[one.group_id]
                found.on_time += _was_on_time(looks[one.group_id][1], due[one.group_id])


def _judged(stage: Stage, look: Replay, found: Found) -> str:
    """Counts how a rebalance compares with the plan; returns it in words."""
    course, present = _course(stage, look), _owners(look, stage.there)
    quick = course.quick or course
    phase = min(stage.phase, len(course.phases) - 1)
    found.compared += 1
    found.equal += _renamed(stage, course.phases[phase][-1].tasks, look) == look.tasks
    differing = _outside(course, stage.phase, present, look.topology.stateful)
    standby = _standbys(stage, look, look.tasks)
    bounds = [_standbys(stage, look, one) for one in _bounds(course, stage.phase)]
    apart = [one for one, of in standby.items() if of not in [bound[one] for bound in bounds]]
    if stage.is_tagged:
        found.tagged += 1
        found.decided += _decided(look)
    is_planned = not any(present[one] != course.owners(stage.phase).get(one) for one in present)
    found.planned += is_planned
    found.told += not differing
    found.told_standby += not differing and not apart
    if stage.next is not None:
        found.again += 1
        told = [_outside(stage.next, 0, _owners(look), look.topology.stateful)]
        all_ = {one.member_id for one in look.application.threads}
        now = _standbys(replace(stage, there=all_), look, look.tasks)
        next_ = [_standbys(replace(stage, there=all_), look, one) for one in _bounds(stage.next, 0)]
        told += [[one for one, of in now.items() if of not in [bound[one] for bound in next_]]]
        found.told_again += not told[0]
        found.told_standby_again += not any(told)
    if look.deadline is None:
        found.ends += 1
        is_right = standby == _standbys(stage, look, course.tasks)
        found.right_ends += present == course.after and is_right
        if stage.phase and stage.changed_ms:
            took_ms, slack_ms = stage.probed_ms - stage.changed_ms, _ON_TIME_MS * (1 + stage.phase)
            found.warmed += 1
            found.right_times += quick.duration_ms <= took_ms <= course.duration_ms + slack_ms
        found.right_lengths += stage.phase + 1 in range(len(quick.phases), len(course.phases) + 1)
    far = f"; standby DIFFERS: {', '.join(map(str, apart))}" if apart else ""
    if is_planned:
        return "as planned" + far
    if differing:
        return f"DIFFERS: {', '.join(map(str, differing))}" + far
    return "between the bounds" + far


def _bounds(course: Course, phase: int) -> list[dict[str, ThreadTasks]]:
    """Returns the tasks of all threads after a phase, or, if some copies are restored before
    follow-ups, those of a later phase, or of a call in the quick course.
    """
    later = [of[-1].tasks for of in course.phases[min(phase, len(course.phases) - 1) :]]
    if course.quick is None:
        return later[:1]
    quick = course.quick.phases
    return [*later, *(one.tasks for one in quick[min(phase, len(quick) - 1)])]


def _standbys(stage: Stage, look: Replay, tasks: dict[str, ThreadTasks]) -> dict[TaskId, set[str]]:
    """Returns the processes with a standby of each stateful task, as `_owners` names them."""
    names = {
        one: uuid_text(process_id)
        for process_id, of in look.processes().items()
        for one in of
        if one in stage.there
    }
    found: dict[TaskId, set[str]] = {one: set() for one in look.topology.stateful}
    for member_id, of in tasks.items():
        for task in of.standby:
            found[task].add(names.get(member_id, NEW))
    return found


def _decided(look: Replay) -> bool:
    """Returns whether the leader would have answered with other standby tasks without tags."""
    one = look.application
    free = one._replace(settings=one.settings._replace(rack_aware_assignment_tags=()))
    answers = [engines.assign(each, reference=False).members for each in (one, free)]
    return any(
        answers[0][each].standby_tasks != answers[1][each].standby_tasks for each in answers[0]
    )


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
    tasks = look.tasks
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
    present = look.tasks
    new = sorted(one for one in present if one not in stage.there)
    made_up = sorted(one for one in expected if one not in stage.there)
    names = dict(zip(made_up, new, strict=False))
    return {names.get(one, one): tasks for one, tasks in expected.items()}
