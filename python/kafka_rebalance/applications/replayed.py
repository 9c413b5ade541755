# SPDX-License-Identifier: Apache-2.0
"""Plays the leader's last call again, to check everything that is inferred.

A broker describes what each thread sent in its last JoinGroup, which is the leader's input, and
what it was assigned, which is the leader's answer. If the input, an inferred topology and assumed
settings produce this answer, plans can rely on them.

At most 200 candidates are tried, in order, until one produces the answer. For each assignor, the
default first, they combine the topologies, the end offsets, the tags (none, or all that threads
have), and `acceptable.recovery.lag` (the default, or 0). End offsets are the present ones, or the
largest that a thread reported: the leader certainly saw these. If no candidate produces the answer,
a process of static members may have restarted since, and the broker has lost what it sent before:
then the candidates are tried again as if that process had sent the tasks that it has, before
another assignor is tried. If none fits, the candidate with the fewest differing threads is
returned, and names them.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any, NamedTuple

from kafka_rebalance.assignors.registry import Engine
from kafka_rebalance.assignors.streams import engines
from kafka_rebalance.assignors.streams.application import (
    LONG_MAX,
    Application,
    LeaderAnswer,
    Settings,
    StreamThread,
    TopicsInfo,
    Topology,
)
from kafka_rebalance.assignors.streams.leader import ASSIGNORS
from kafka_rebalance.errors import AssignorThrows, GroupError
from kafka_rebalance.group.field_paths import integer, kind
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import counted
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.wire.streams_protocol import (
    LATEST_OFFSET,
    LATEST_VERSION,
    NO_REBALANCE,
    TaskId,
    TaskOffsetSum,
)

from .lines import (
    FIELD,
    SentAssignment,
    checked_assignor,
    checked_settings,
    read_application,
    read_assigned,
    settings,
    uuid_text,
)
from .topology import ThreadTasks, answered_tasks, present_tasks, topologies

Place = tuple[Uuid, TaskId]
"""A process and one of its tasks."""
_MOST_CANDIDATES = 200
_DIGITS = 8
_SENDS_POSITIONS = 7
"""The first version of a subscription with positions; older ones hold only the tasks."""
OF_REPLAY = ASSIGNOR, STATEFUL = "assignor", "stateful"
"""Keys among the given settings: the assignor, and the numbers of the stateful subtopologies."""


class Replay(NamedTuple):
    """The leader's last call, replayed: its input, the present assignment, and the differences.

    `application` holds the assumed topology and settings, `read` what was read from the cluster.
    `given` are the settings that the caller has named. `differing` are the members whose replayed
    answer differs from the present assignment. `topologies` is the number of topologies that
    produce the present assignment; only one of them is the real one. `restarted` is the process
    that must have restarted since the call, if there is one.
    """

    application: Application
    read: Application
    assigned: dict[str, SentAssignment]
    differing: tuple[str, ...]
    given: Mapping[str, Any]
    topologies: int = 1
    restarted: Uuid | None = None

    @property
    def topology(self) -> Topology:
        return Topology(self.application)

    @property
    def now(self) -> Application:
        """Returns the application with the present offsets, which the next call reads: those of the
        last call may be older.
        """
        read = self.read
        return self.application._replace(
            end_offsets=read.end_offsets, committed_offsets=read.committed_offsets
        )

    @property
    def tasks(self) -> dict[str, ThreadTasks]:
        return present_tasks(self.assigned)

    @property
    def unread(self) -> list[TaskId]:
        """Returns the tasks that no thread has as active: nobody reads their partitions."""
        there = places(self.application, self.tasks, active=True)
        return sorted({*self.topology.tasks} - {task for _, task in there})

    @property
    def deadline(self) -> tuple[str, int] | None:
        """Returns the member that triggers the next probing rebalance, and its time in epoch ms."""
        found = ((one, each.info.next_rebalance_ms) for one, each in self.assigned.items())
        return next((one for one in found if one[1] not in (0, NO_REBALANCE)), None)

    @property
    def rebalances_at_once(self) -> bool:
        return any(one.info.next_rebalance_ms == 0 for one in self.assigned.values())

    def process_of(self, member_id: str) -> Uuid:
        return next(one for one, members in self.processes().items() if member_id in members)

    def processes(self) -> dict[Uuid, list[str]]:
        """Returns the member ids of each process's threads, in the order of process ids."""
        found: dict[Uuid, list[str]] = {}
        for one in sorted(self.application.threads, key=lambda one: one.info.process_id):
            found.setdefault(one.info.process_id, []).append(one.member_id)
        return found

    @property
    def names(self) -> dict[str, str]:
        """Returns a short name for each process id: its first digits, if these are unique."""
        ids = [*map(uuid_text, self.processes())]
        is_short = len({one[:_DIGITS] for one in ids}) == len(ids)
        return {one: one[:_DIGITS] if is_short else one for one in ids}

    def tags_of(self, process_id: Uuid) -> dict[str, str]:
        threads = self.application.threads
        return next(one.info.tags() for one in threads if one.info.process_id == process_id)

    def to_dict(self) -> dict[str, Any]:
        """Returns the present state as a dict for JSON; a task is [subtopology, partition]."""
        deadline, warming = self.deadline, self.warming()
        return {
            "processes": [
                {
                    "process_id": uuid_text(process_id),
                    "threads": of,
                    "client_tags": self.tags_of(process_id),
                    "warming_up": sorted(task for one, task in warming if one == process_id),
                }
                for process_id, of in self.processes().items()
            ],
            "subtopologies": [one._asdict() for one in self.application.subtopologies],
            "tasks": {one: of._asdict() for one, of in self.tasks.items()},
            "waiting": [
                {"task": task, "belongs_to": uuid_text(ideal), "records_behind": late}
                for task, _, ideal, late in self.waiting()
            ],
            "unread": self.unread,
            "next_rebalance_ms": 0 if self.rebalances_at_once else deadline and deadline[1],
            "leader_process_id": deadline and uuid_text(self.process_of(deadline[0])),
            "assumed": self.assumed(),
            "problem": self.problem,
        }

    @property
    def problem(self) -> str | None:
        """Returns why no plan can rely on this replay, and what to do; None if plans can."""
        if not self.differing:
            return None
        text = f"the last rebalance, played again, differs for {self.differing[0]}"
        more = len(self.differing) - 1
        text += f" and {counted(more, 'other thread')}" if more else ""
        of = self.application.settings
        text += (
            ": something assumed is wrong. Name the settings of the application: --standbys "
            f"(assumed: {of.num_standby_replicas}), --acceptable-lag "
            f"({of.acceptable_recovery_lag}), --max-warmups ({of.max_warmup_replicas}), or its "
            "properties, --streams-config FILE"
        )
        fresh = [one.member_id for one in self.application.threads if not one.owned_partitions]
        if fresh:
            text += f". If {fresh[0]} is static and has restarted since, ask again after the next "
            text += "rebalance"
        return text

    def assumed(self) -> dict[str, str]:
        """Returns each setting that plans read, with its value and the value's source, as text."""
        of = self.application.settings
        given = {name.replace(".", "_") for name in self.given}
        found = {ASSIGNOR: f"{self.application.assignor} (chosen by the replay)"}
        if self.restarted is not None:
            found["restarted"] = f"{uuid_text(self.restarted)} since, and has the same tasks"
        if self.topologies > 1:
            text = f"as above: one of {self.topologies} ways that fit"
            found["changelogs"] = f"{text}; --stateful names the stateful subtopologies"
        for name, default in Settings._field_defaults.items():
            value = getattr(of, name)
            if name in given:
                found[name.replace("_", ".")] = f"{value} (given)"
            elif name == "num_standby_replicas":
                found[name.replace("_", ".")] = f"{value} (the standbys of each stateful task)"
            elif value != default:
                found[name.replace("_", ".")] = f"{value} (chosen by the replay)"
            elif value is not None and not name.startswith("rack"):
                found[name.replace("_", ".")] = f"{value} (the default)"
        return found

    def waiting(self) -> list[tuple[TaskId, Uuid | None, Uuid, int]]:
        """Returns the stateful tasks that are not where they belong: the task, its process now, the
        process where it belongs, and how many records this was behind in the last rebalance.
        """
        if self.differing:
            return []
        active = places(self.application, self.tasks, active=True)
        now = {task: process_id for process_id, task in active}
        played = engines.assign(self.application).processes or {}
        stateful = {*self.topology.stateful}
        return [
            (task, now.get(task), ideal, played[ideal].lags[task])
            for ideal, task in sorted(ideal_owners(self.application))
            if task in stateful and now.get(task) != ideal
        ]

    def warming(self, *, engine: Engine = "rust") -> set[Place]:
        """Returns the process and the task of each warm-up: a standby task at its ideal owner."""
        if self.differing:
            return set()
        return ideal_owners(self.application, engine=engine) & self.standby()

    def standby(self) -> set[Place]:
        """Returns the process and the task of each standby task, including warm-ups."""
        return places(self.application, self.tasks, active=False)

    def sums(self) -> dict[Place, int]:
        """Returns the offset sum of each process's task, as its threads last sent it."""
        return {
            (one.info.process_id, task): total
            for one in self.application.threads
            for task, total in one.info.offset_sums().items()
        }


def places(
    application: Application, tasks: Mapping[str, ThreadTasks], *, active: bool | None = None
) -> set[Place]:
    """Returns the places of all threads' tasks; with `active`, only of active or standby ones."""
    kinds = slice(None) if active is None else slice(not active, 2 - active)
    return {
        (one.info.process_id, task)
        for one in application.threads
        for of_kind in tuple(tasks[one.member_id])[kinds]
        for task in of_kind
    }


def ideal_owners(application: Application, *, engine: Engine = "rust") -> set[Place]:
    """Returns where all active tasks would be if all processes were caught up."""
    caught_up = application.settings._replace(acceptable_recovery_lag=LONG_MAX)
    ideal = application._replace(settings=caught_up)
    answer = engines.assign(ideal, reference=engine == "reference")
    return {(one, task) for one, of in (answer.processes or {}).items() for task in of.active}


def checked_given(given: Mapping[str, Any]) -> None:
    """Checks the given settings, and the keys in OF_REPLAY. Errors: GroupError at `given`."""
    checked_settings({name: one for name, one in given.items() if name not in OF_REPLAY}, "given")
    if ASSIGNOR in given:
        checked_assignor(given[ASSIGNOR], f"given.{ASSIGNOR}")
    numbers = given.get(STATEFUL, ())
    if not isinstance(numbers, Collection):
        raise GroupError(f"given.{STATEFUL}", f"{kind(numbers)} is not a list of subtopologies")
    for number in numbers:
        integer(number, f"given.{STATEFUL}", "subtopology")


def read_replay(
    group_id: str, line: Any, settings: Mapping[str, Any], *, engine: Engine = "rust"
) -> Replay:
    """Replays the leader's last assignment, which a line's field `application` describes.

    `settings` override those of the line.

    Errors   GroupError for a bad field or setting, or if the topology cannot be inferred.
    """
    application, assigned = read_application(line), read_assigned(line)
    if not application.threads or {one.member_id for one in application.threads} != {*assigned}:
        raise GroupError(f"{FIELD}.assigned", "needs one entry for each of its members")
    given = {**(line.get("configs") or {}), **settings}
    if line.get(ASSIGNOR) is not None:
        given[ASSIGNOR] = application.assignor
    return replay(group_id, application, assigned, given, engine=engine)


def replay(
    group_id: str,
    application: Application,
    assigned: dict[str, SentAssignment],
    given: Mapping[str, Any],
    *,
    engine: Engine = "rust",
) -> Replay:
    """Replays the last call. `given` maps Kafka's settings, and the keys in OF_REPLAY, to values.

    Errors   GroupError for an unknown setting, or if the topology cannot be inferred.
    """
    if application.subtopologies:
        infos = [application.subtopologies]
    else:
        infos = topologies(group_id, application, assigned, given.get(STATEFUL, ()))
    best: Replay | None = None
    assignors = (given[ASSIGNOR],) if ASSIGNOR in given else ASSIGNORS
    tried: Iterator[tuple[Application, Uuid | None]] = (
        (one if process_id is None else _before_restart(one, process_id, assigned), process_id)
        for assignor in assignors
        for process_id in (None, *_fresh(application))
        for one in _candidates(application._replace(assignor=assignor), infos, assigned, given)
        if process_id is None or _had_its_tasks(one, process_id, assigned)
    )
    for one, restarted in islice(tried, _MOST_CANDIDATES):
        differing = _differing(_answer(one, engine), assigned)
        played = Replay(one, application, assigned, differing, given, restarted=restarted)
        if best is None or len(played.differing) < len(best.differing):
            best = played
        if not best.differing:
            others = (one._replace(subtopologies=info) for info in infos)
            fit = [not _differing(_answer(other, engine), assigned) for other in others]
            return best._replace(topologies=sum(fit))
    return best or Replay(application, application, assigned, tuple(assigned), given)


def _answer(application: Application, engine: Engine) -> LeaderAnswer | None:
    try:
        return engines.assign(application, reference=engine == "reference")
    except AssignorThrows:
        return None


def _candidates(
    application: Application,
    infos: Sequence[tuple[TopicsInfo, ...]],
    assigned: Mapping[str, SentAssignment],
    given: Mapping[str, Any],
) -> Iterator[Application]:
    configs = {name: value for name, value in given.items() if name not in OF_REPLAY}
    keys = tuple(sorted({key for one in application.threads for key in one.info.tags()}))
    lags: list[dict[str, Any]] = [{}]
    if not {"acceptable.recovery.lag", "acceptable_recovery_lag"} & configs.keys():
        lags.append({"acceptable.recovery.lag": 0})
    for lag, subtopologies in product(lags, infos):
        standbys = {"num.standby.replicas": _standbys(application, subtopologies, assigned)}
        own = settings(standbys | configs | lag, "settings")
        now = application._replace(subtopologies=subtopologies, settings=own)
        now = _at_last_call(now, assigned)
        tagged = own._replace(rack_aware_assignment_tags=keys)
        is_open = own.num_standby_replicas and not own.rack_aware_assignment_tags and keys
        for ends in (now, _reported_ends(now)):
            yield ends
            if is_open:
                yield ends._replace(settings=tagged)


def _at_last_call(application: Application, assigned: Mapping[str, SentAssignment]) -> Application:
    """Returns the application with the time and the leader of the call, if the deadline of a
    probing rebalance shows them; otherwise the first thread's process counts as the leader.
    """
    for one in application.threads:
        later = assigned[one.member_id].info.next_rebalance_ms
        if later not in (0, NO_REBALANCE):
            interval = application.settings.probing_rebalance_interval_ms
            return application._replace(
                leader_process_id=one.info.process_id, now_ms=later - interval
            )
    return application._replace(leader_process_id=application.threads[0].info.process_id)


def _fresh(application: Application) -> list[Uuid]:
    """Returns the processes whose threads reported that they own nothing."""
    owns = {one.info.process_id for one in application.threads if one.owned_partitions}
    every = dict.fromkeys(one.info.process_id for one in application.threads)
    return [process_id for process_id in every if process_id not in owns]


def _had_its_tasks(
    application: Application, process_id: Uuid, assigned: Mapping[str, SentAssignment]
) -> bool:
    """Returns whether the process has active stateful tasks, and reported an offset for each."""
    tasks, stateful = present_tasks(assigned), {*Topology(application).stateful}
    mine = [one for one in application.threads if one.info.process_id == process_id]
    active = {task for one in mine for task in tasks[one.member_id].active} & stateful
    return bool(active) and active <= {task for one in mine for task in one.info.offset_sums()}


def _before_restart(
    application: Application, process_id: Uuid, assigned: Mapping[str, SentAssignment]
) -> Application:
    """Returns the application as if the process had reported that it runs the tasks that it has.

    A static member that restarts gets its assignment back without a rebalance. The broker then
    holds what the member sent after the restart, and no longer what the leader read.
    """
    tasks, stateful = present_tasks(assigned), {*Topology(application).stateful}

    def before(one: StreamThread) -> StreamThread:
        running = [task for task in tasks[one.member_id].active if task in stateful]
        sums = dict.fromkeys(running, LATEST_OFFSET)
        return sending(one, sums, assigned[one.member_id].partitions)

    threads = application.threads
    mine = (before(one) if one.info.process_id == process_id else one for one in threads)
    return application._replace(threads=tuple(mine))


def sending(
    thread: StreamThread, sums: Mapping[TaskId, int], owned: tuple[TopicPartition, ...]
) -> StreamThread:
    """Returns the thread with a JoinGroup that contains these offset sums and owned partitions."""
    info = thread.info._replace(
        prev_tasks=(),
        standby_tasks=(),
        offset_sums_by_subtopology=(),
        task_offset_sums=tuple(TaskOffsetSum(*task, total) for task, total in sums.items()),
    )
    if info.version < _SENDS_POSITIONS:
        prev = tuple(task for task, total in sums.items() if total == LATEST_OFFSET)
        standby = tuple(task for task in sums if task not in prev)
        info = info._replace(prev_tasks=prev, standby_tasks=standby, task_offset_sums=())
    else:
        info = info._replace(version=LATEST_VERSION)
    return thread._replace(owned_partitions=owned, info=info)


def _standbys(
    application: Application,
    subtopologies: tuple[TopicsInfo, ...],
    assigned: Mapping[str, SentAssignment],
) -> int:
    """Infers the number of replicas: that of the stateful task with the fewest standby tasks.

    Other tasks can have warm-ups, which are standby tasks, too.
    """
    stateful = Topology(application._replace(subtopologies=subtopologies)).stateful
    counts = Counter(task for of in present_tasks(assigned).values() for task in of.standby)
    return min((counts[task] for task in stateful), default=0)


def _reported_ends(application: Application) -> Application:
    """Returns the application with the smallest end offsets that the leader can have seen."""
    topology = Topology(application)
    most: dict[TaskId, int] = {}
    for one in application.threads:
        for task, total in one.info.offset_sums().items():
            if total >= 0:
                most[task] = max(total, most.get(task, 0))
    ends: dict[str, Any] = {topic: [*of] for topic, of in (application.end_offsets or {}).items()}
    committed: dict[str, Any] = {
        topic: [*of] for topic, of in application.committed_offsets.items()
    }
    for task, total in most.items():
        left = total
        for topic, p in topology.changelogs.get(task, ()):
            place = ends if topic in ends else committed
            if p < len(place.get(topic, ())):
                now = place[topic][p] or 0
                place[topic][p] = min(now, left)
                left -= min(now, left)
    return application._replace(
        end_offsets=None if application.end_offsets is None else ends, committed_offsets=committed
    )


def _differing(
    answer: LeaderAnswer | None, assigned: Mapping[str, SentAssignment]
) -> tuple[str, ...]:
    if answer is None:
        return tuple(assigned)
    tasks = present_tasks(assigned)
    found = []
    for member_id, one in assigned.items():
        ours = answer.members[member_id]
        later = one.info.next_rebalance_ms
        due = None if later == NO_REBALANCE else later
        present = ({*one.partitions}, tasks[member_id], due)
        if present != ({*ours.partitions}, answered_tasks(ours), ours.next_rebalance_ms):
            found.append(member_id)
    return tuple(found)
