# SPDX-License-Identifier: Apache-2.0
"""Computes the answer of the leader of a classic Kafka Streams group (protocol `stream`).

1. Read each member's user data; members with one process id are the threads of a process. Members
   of a version above 11 form one more process, of which only owned partitions are known.
2. If a member asks all to shut down, or if a source topic is missing, all get an error code.
3. Find the tasks and their partitions, the end offsets of their changelogs, and the lags of each
   process.
4. The task assignor gives tasks to processes. Without end offsets, the fallback replaces the
   default one. If a probing rebalance is needed, the process of the leader has to start it.
5. The tasks of each process go to its threads.
6. An active task with a partition that another thread owns is withheld. If its process had the task
   as standby, the thread gets it as standby for now.
7. A thread with a withheld task rebalances at once. If a process has to start a probing rebalance,
   its first thread gets the time of the probe, unless this thread rebalances at once.

Errors   AssignorThrows if no owned partition of a process belongs to a task.
Source   StreamsPartitionAssignor (kafka-streams 4.3.1).
"""

from collections.abc import Iterable, Sequence

from kafka_rebalance.errors import AssignorThrows
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.java.hash_map import HashMap, Uuid, uuid_hash
from kafka_rebalance.java.order import by_name, java_hash_order, name_key
from kafka_rebalance.wire.streams_protocol import LATEST_VERSION, SHUTDOWN_REQUESTED, TaskId

from . import high_availability, legacy_sticky, threads
from .application import (
    Application,
    LeaderAnswer,
    Partition,
    ProcessTasks,
    StreamThread,
    ThreadAssignment,
    Topology,
    end_offset_sums,
    in_set,
    missing_sources,
)
from .processes import StreamsProcess

NAME = "stream"
HIGH_AVAILABILITY, LEGACY_STICKY, STICKY = "high_availability", "legacy_sticky", "sticky"
ASSIGNORS = (HIGH_AVAILABILITY, LEGACY_STICKY, STICKY)

_MISSING_SOURCE, _ASSIGNMENT_ERROR = 1, 3


def assign(application: Application) -> LeaderAnswer:
    """Returns the leader's answer for an application."""
    # 1.
    by_id = {one.member_id: one for one in application.threads}
    members = [by_id[member_id] for member_id in java_hash_order(list(by_id))]
    processes = _processes(application, members)
    known = [one for one in members if one.info.version <= LATEST_VERSION]
    # 2.
    if any(one.info.error_code == SHUTDOWN_REQUESTED for one in known):
        return _refused(members, SHUTDOWN_REQUESTED)
    if missing_sources(application):
        return _refused(members, _MISSING_SOURCE)
    # 3.
    topology = Topology(application)
    ends = end_offset_sums(application, topology)
    for one in processes:
        one.had(_owned_tasks(one, topology), topology, ends)
    # 4.
    probing, is_fallback = _to_processes(application, processes, topology, ends is None)
    deadline = application.now_ms + application.settings.probing_rebalance_interval_ms
    # 5. to 7.
    owners = {tp: one.member_id for one in members for tp in one.owned_partitions}
    version = min((one.info.version for one in known), default=LATEST_VERSION)
    supported = [one.info.latest_supported_version for one in members]
    answers: dict[str, ThreadAssignment] = {}
    stable = len(known) == len(members)
    for one in processes:
        is_leader = one.process_id == application.leader_process_id
        work = _Threads(one, topology, owners, public=application.assignor == STICKY)
        if not work.give():
            return _refused(members, _ASSIGNMENT_ERROR)
        own = work.answers(deadline if probing and is_leader else None)
        stable &= all(each.next_rebalance_ms is None for each in own.values())
        for member_id, each in own.items():
            answers[member_id] = each._replace(
                version=version, commonly_supported_version=min(LATEST_VERSION, *supported)
            )
    return LeaderAnswer(
        answers,
        stable,
        None if is_fallback else probing,
        None if is_fallback else {one.process_id: _tasks(one) for one in processes},
        _by_host(processes, topology, active=True),
        _by_host(processes, topology, active=False),
    )


def _processes(application: Application, members: Iterable[StreamThread]) -> list[StreamsProcess]:
    """Returns the processes in the order of the leader's `HashMap`."""
    processes: HashMap[Uuid, StreamsProcess] = HashMap(uuid_hash)
    for one in members:
        is_future = one.info.version > LATEST_VERSION
        process_id = application.future_process_id if is_future else one.info.process_id
        if process_id not in processes:
            processes.put(process_id, StreamsProcess(process_id))
        processes[process_id].join(one, is_future=is_future)
    return [one for _, one in processes.items()]


def _owned_tasks(process: StreamsProcess, topology: Topology) -> set[TaskId]:
    owned = [tp for one in process.threads for tp in one.owned_partitions]
    tasks = {topology.task_of[tp] for tp in owned if tp in topology.task_of}
    if owned and not tasks:
        problem = "no partition that a process owns belongs to a task"
        raise AssignorThrows.of(NAME, "IllegalStateException", problem)
    return tasks


def _to_processes(
    application: Application,
    processes: Sequence[StreamsProcess],
    topology: Topology,
    lags_unknown: bool,
) -> tuple[bool, bool]:
    """Runs the task assignor; returns (whether to probe, whether the fallback ran)."""
    settings = application.settings
    if application.assignor == STICKY:
        legacy_sticky.assign(processes, topology, settings, public=True)
    elif application.assignor == LEGACY_STICKY:
        legacy_sticky.assign(processes, topology, settings)
    elif lags_unknown:
        legacy_sticky.assign(processes, topology, settings, keep=True)
        return True, True
    else:
        return high_availability.assign(processes, topology, settings), False
    return False, False


class _Threads:
    """The tasks of the threads of a process."""

    def __init__(
        self,
        process: StreamsProcess,
        topology: Topology,
        owners: dict[TopicPartition, str],
        *,
        public: bool,
    ) -> None:
        self._process, self._topology, self._owners = process, topology, owners
        self._public = public
        self._member_ids = by_name(one.member_id for one in process.threads)
        self._active: dict[str, list[TaskId]] = {one: [] for one in self._member_ids}
        self._standby = self._active

    def give(self) -> bool:
        """Does step 5; returns False if a thread should get a task and there is none left."""
        load = dict.fromkeys(self._member_ids, 0)
        stateful = set(self._topology.stateful)
        active, standby = self._in_order(active=True), self._in_order(active=False)
        calls = (
            (in_set(task for task in active if task in stateful), True),
            (in_set(standby) if self._public else standby, True),
            (in_set(task for task in active if task not in stateful), False),
        )
        given = []
        for tasks, by_lag in calls:
            lists = threads.assign(self._process, tasks, self._member_ids, load, by_lag=by_lag)
            if lists is None:
                return False
            given.append(lists)
        first, self._standby, last = given
        self._active = {one: first[one] + last[one] for one in self._member_ids}
        return True

    def _in_order(self, *, active: bool) -> list[TaskId]:
        """Returns active or standby tasks: sorted or, in KIP-924's form, in a HashMap's order."""
        if self._public:
            return in_set(
                task for task, is_active in self._process.placed.items() if is_active == active
            )
        return sorted(self._process.active if active else self._process.standby)

    def answers(self, deadline: int | None) -> dict[str, ThreadAssignment]:
        """Returns member id -> its tasks and next rebalance (steps 6 and 7)."""
        answers = {}
        for member_id in self._member_ids:
            # 6.
            withheld = [one for one in self._active[member_id] if self._is_owned(one, member_id)]
            stateful = self._process.lags.keys()
            kept_open = [t for t in withheld if t in self._process.previous_standby & stateful]
            pairs = sorted(
                (
                    (name_key(tp[0]), tp, task)
                    for task in self._active[member_id]
                    if task not in withheld
                    for tp in self._topology.inputs[task]
                ),
                key=lambda pair: (pair[0], pair[1][1]),
            )
            # 7.
            next_rebalance_ms, deadline = 0 if withheld else deadline, None
            answers[member_id] = ThreadAssignment(
                tuple(tp for _, tp, _ in pairs),
                tuple(task for *_, task in pairs),
                tuple(sorted({*self._standby[member_id], *kept_open})),
                next_rebalance_ms,
            )
        return answers

    def _is_owned(self, task: TaskId, member_id: str) -> bool:
        """Returns whether another thread owns a partition of the task."""
        owners = (self._owners.get(TopicPartition(*tp)) for tp in self._topology.inputs[task])
        return any(owner not in (None, member_id) for owner in owners)


def _refused(members: Iterable[StreamThread], error_code: int) -> LeaderAnswer:
    return LeaderAnswer({one.member_id: ThreadAssignment(error_code=error_code) for one in members})


def _tasks(process: StreamsProcess) -> ProcessTasks:
    return ProcessTasks(tuple(sorted(process.active)), tuple(sorted(process.standby)), process.lags)


def _by_host(
    processes: Iterable[StreamsProcess], topology: Topology, *, active: bool
) -> dict[str, tuple[Partition, ...]]:
    """Returns end point -> the partitions of its active (or standby) tasks, sorted."""
    hosts: dict[str, list[Partition]] = {}
    for one in processes:
        if one.end_point:
            tasks = one.active if active else one.standby
            partitions = (tp for task in tasks for tp in topology.inputs[task])
            hosts.setdefault(one.end_point, []).extend(partitions)
    return {
        host: tuple(sorted(tps, key=lambda tp: (name_key(tp[0]), tp[1])))
        for host, tps in hosts.items()
    }
