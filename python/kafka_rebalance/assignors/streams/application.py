# SPDX-License-Identifier: Apache-2.0
"""The input and the answer of the leader of a classic Kafka Streams group.

A *process* is one KafkaStreams instance, a *thread* one of its StreamThreads, which is a member of
the group. A task is *stateful* if its subtopology has a changelog topic.

Source   StreamsPartitionAssignor, InternalTopologyBuilder (kafka-streams 4.3.1).
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.java.hash_map import HashMap, HashSet, Uuid
from kafka_rebalance.wire.streams_protocol import SubscriptionInfo, TaskId

Partition = tuple[str, int]
LONG_MAX = 2**63 - 1


class TopicsInfo(NamedTuple):
    """The topics of a subtopology in the leader's topology.

    `source_topics` contain repartition topics. `source_changelog_topics` are source topics that are
    changelogs too (`topology.optimization`).
    """

    subtopology_id: int
    source_topics: tuple[str, ...]
    changelog_topics: tuple[str, ...] = ()
    source_changelog_topics: tuple[str, ...] = ()
    unlogged_stores: int = 0


class Settings(NamedTuple):
    """The leader's settings; a cost of None is the assignor's default."""

    acceptable_recovery_lag: int = 10000
    max_warmup_replicas: int = 2
    num_standby_replicas: int = 0
    probing_rebalance_interval_ms: int = 600_000
    rack_aware_assignment_tags: tuple[str, ...] = ()
    rack_aware_assignment_strategy: str = "none"
    rack_aware_assignment_traffic_cost: int | None = None
    rack_aware_assignment_non_overlap_cost: int | None = None


class StreamThread(NamedTuple):
    """A member of the group, with the user data that it sent when it joined."""

    member_id: str
    rack_id: str | None
    owned_partitions: tuple[TopicPartition, ...]
    info: SubscriptionInfo


class Application(NamedTuple):
    """All that a leader reads. `end_offsets` is None if the leader could not fetch them.

    `racks[topic][p]` lists the racks of the replicas of partition p, None for a broker without one.
    `committed_offsets` are the group's committed offsets in the source changelog topics. Changelogs
    in `new_changelog_topics` were created in this call and count as empty.
    """

    assignor: str
    now_ms: int
    leader_process_id: Uuid
    future_process_id: Uuid
    settings: Settings
    racks: dict[str, Sequence[Sequence[str | None]]]
    subtopologies: tuple[TopicsInfo, ...]
    end_offsets: dict[str, Sequence[int]] | None
    committed_offsets: dict[str, Sequence[int | None]]
    new_changelog_topics: tuple[str, ...]
    threads: tuple[StreamThread, ...]


class ThreadAssignment(NamedTuple):
    """A thread's tasks: `active_tasks[i]` belongs to `partitions[i]`.

    `next_rebalance_ms` is None, 0 (rebalance at once), or the time of a probing rebalance.
    """

    partitions: tuple[Partition, ...] = ()
    active_tasks: tuple[TaskId, ...] = ()
    standby_tasks: tuple[TaskId, ...] = ()
    next_rebalance_ms: int | None = None
    error_code: int = 0
    version: int = 11
    commonly_supported_version: int = 11


class ProcessTasks(NamedTuple):
    """The sorted tasks of a process before any is withheld, and the lag of each stateful task."""

    active: tuple[TaskId, ...]
    standby: tuple[TaskId, ...]
    lags: dict[TaskId, int]


class LeaderAnswer(NamedTuple):
    """The leader's answer.

    `stable` is None in case of an error. `probing_rebalance_needed` and `processes` are None where
    Kafka's class does not call a task assignor, or calls its fallback.
    """

    members: dict[str, ThreadAssignment]
    stable: bool | None = None
    probing_rebalance_needed: bool | None = None
    processes: dict[Uuid, ProcessTasks] | None = None
    partitions_by_host: Mapping[str, tuple[Partition, ...]] = MappingProxyType({})
    standby_partitions_by_host: Mapping[str, tuple[Partition, ...]] = MappingProxyType({})


def task_hash(task: TaskId) -> int:
    """Returns `TaskId.hashCode` as an unsigned 32-bit number."""
    return (31 * (31 * (31 + task.subtopology_id) + task.partition)) & 0xFFFFFFFF


def in_set(tasks: Iterable[TaskId]) -> list[TaskId]:
    """Returns tasks in the order of a `HashSet` to which they are added."""
    order: HashSet[TaskId] = HashSet(task_hash)
    for task in tasks:
        order.add(task)
    return list(order)


class Topology:
    """The tasks of an application, sorted, with the partitions of each."""

    def __init__(self, application: Application) -> None:
        self.racks = application.racks
        self.subtopologies = {one.subtopology_id: one for one in application.subtopologies}
        self.inputs: dict[TaskId, tuple[Partition, ...]] = {}
        self.changelogs: dict[TaskId, tuple[Partition, ...]] = {}
        for number, one in sorted(self.subtopologies.items()):
            counts = {topic: len(self.racks.get(topic, ())) for topic in one.source_topics}
            for p in range(max(counts.values(), default=0)):
                task = TaskId(number, p)
                sources = tuple((topic, p) for topic, count in counts.items() if p < count)
                copies = set(one.source_changelog_topics)
                self.inputs[task] = sources
                self.changelogs[task] = (
                    *((topic, p) for topic in one.changelog_topics),
                    *(tp for tp in sources if tp[0] in copies),
                )
        self.tasks = list(self.inputs)
        self.stateful = [task for task in self.tasks if self._has_changelog(task)]
        logged = set(self.stateful)
        self.stateless = [task for task in self.tasks if task not in logged]
        self.task_of = {tp: task for task, sources in self.inputs.items() for tp in sources}

    def _has_changelog(self, task: TaskId) -> bool:
        one = self.subtopologies[task.subtopology_id]
        return bool(one.changelog_topics or one.source_changelog_topics)

    def in_java_order(self, tasks: Sequence[TaskId]) -> list[TaskId]:
        """Returns tasks in the order in which Java adds them to a set: subtopologies in the order
        of a `HashMap` (31 * (31 + id) is the hash), then by partition.
        """
        order: HashMap[int, list[TaskId]] = HashMap(lambda number: 31 * (31 + number))
        for task in tasks:
            order.compute_if_absent(task.subtopology_id, list).append(task)
        return [task for _, of_one in order.items() for task in of_one]


def missing_sources(application: Application) -> bool:
    """Returns whether a source topic does not exist, so that no thread can work."""
    sources = (topic for one in application.subtopologies for topic in one.source_topics)
    return any(topic not in application.racks for topic in sources)


def end_offset_sums(application: Application, topology: Topology) -> dict[TaskId, int] | None:
    """Returns the sum of the end offsets of each stateful task; None if they are not known."""
    new = set(application.new_changelog_topics)
    sums = {}
    for task in topology.stateful:
        copies = topology.subtopologies[task.subtopology_id].source_changelog_topics
        total = 0
        for topic, p in topology.changelogs[task]:
            if topic in copies:
                total += _offset(application.committed_offsets, topic, p)
            elif topic not in new:
                if application.end_offsets is None:
                    return None
                total += _offset(application.end_offsets, topic, p)
        sums[task] = min(total, LONG_MAX)
    return sums


def _offset(offsets: Mapping[str, Sequence[int | None]], topic: str, p: int) -> int:
    """Returns the offset of a partition; 0 if it is not known."""
    of_topic = offsets.get(topic, ())
    return (of_topic[p] or 0) if p < len(of_topic) else 0
