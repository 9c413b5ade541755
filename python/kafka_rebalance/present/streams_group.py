# SPDX-License-Identifier: Apache-2.0
"""The present state of a streams group (KIP-1071): which member runs which tasks, where, and why.

A task reads the partition of its own number of each source topic of its subtopology.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.ownership import Balance
from kafka_rebalance.notes.note import Note, leaderless_finding
from kafka_rebalance.wire.streams_groups import (
    DescribedStreamsGroup,
    DescribedStreamsMember,
    DescribedTaskOffset,
    TaskLists,
)

from .lag import Lags, lag_in, without_committed_offset

_Tasks = Mapping[TopicPartition, Sequence[TopicPartition]]


def task_text(task: TopicPartition) -> str:
    """Returns the name that Kafka Streams gives a task, such as `0_1`."""
    return f"{task.topic}_{task.partition}"


def tasks_of(group: DescribedStreamsGroup) -> _Tasks:
    """Returns each active task of the members or of their targets, with the partitions that it
    reads.
    """
    sources = {one.subtopology_id: one.read_topics for one in group.subtopologies}
    lists = [tasks for one in group.members for tasks in (one.assigned, one.target)]
    every = sorted({task for tasks in lists for task in tasks.active})
    return {
        task: [TopicPartition(name, task.partition) for name in sources.get(task.topic, ())]
        for task in every
    }


@dataclass(frozen=True, slots=True)
class StreamsGroupWithLag:
    """A group as its coordinator describes it, with its lag.

    `lags` counts the records not yet consumed, for each partition of a source topic with a
    committed offset. `leaderless` lists the partitions for which no leader answers.
    """

    described: DescribedStreamsGroup
    lags: Lags
    leaderless: Collection[TopicPartition] = ()

    @property
    def balance(self) -> Balance:
        """Returns how evenly the members share the active tasks."""
        return Balance.of([len(one.assigned.active) for one in self.described.members])

    @property
    def processes(self) -> Mapping[str, Sequence[DescribedStreamsMember]]:
        """Returns each process id with its members, in the order of the description."""
        found: dict[str, list[DescribedStreamsMember]] = {}
        for member in self.described.members:
            found.setdefault(member.process_id, []).append(member)
        return found

    @property
    def findings(self) -> tuple[Note, ...]:
        leaderless = sorted({*self._read} & {*self.leaderless})
        return (*leaderless_finding(leaderless), *_findings(self.described))

    def lag_of(self, member: DescribedStreamsMember) -> int | None:
        """Returns the sum of the known lags of a member's active tasks; None if none is known."""
        reads = tasks_of(self.described)
        return lag_in(self.lags, [tp for task in member.assigned.active for tp in reads[task]])

    @property
    def lag(self) -> int | None:
        """Returns the sum of all known lags; None if none is known."""
        return lag_in(self.lags, {*self.lags, *self._read})

    @property
    def without_committed_offset(self) -> int:
        """Returns how many partitions have no committed offset.

        The partitions are those that the active tasks of members and of their targets read.
        """
        return without_committed_offset(self.lags, {*self._read} - {*self.leaderless}) or 0

    @property
    def _read(self) -> list[TopicPartition]:
        return [tp for tps in tasks_of(self.described).values() for tp in tps]

    def to_dict(self) -> dict[str, Any]:
        group = self.described
        return {
            "group_id": group.group_id,
            "group_type": "streams",
            "state": group.group_state,
            "group_epoch": group.group_epoch,
            "assignment_epoch": group.assignment_epoch,
            "topology_epoch": None if group.topology is None else group.topology.epoch,
            "subtopologies": [
                {
                    "subtopology_id": one.subtopology_id,
                    "source_topics": list(one.source_topics),
                    "repartition_source_topics": [t.name for t in one.repartition_source_topics],
                    "repartition_sink_topics": list(one.repartition_sink_topics),
                    "changelog_topics": [topic.name for topic in one.state_changelog_topics],
                }
                for one in group.subtopologies
            ],
            "members": [self._member(member) for member in group.members],
            "balance": self.balance.to_dict(),
            "lag": self.lag,
            "without_committed_offset": self.without_committed_offset,
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def _member(self, member: DescribedStreamsMember) -> dict[str, Any]:
        return {
            "member_id": member.member_id,
            "group_instance_id": member.instance_id,
            "client_id": member.client_id,
            "client_host": member.client_host,
            "rack_id": member.rack_id,
            "member_epoch": member.member_epoch,
            "topology_epoch": member.topology_epoch,
            "process_id": member.process_id,
            "client_tags": dict(member.client_tags),
            "tasks": _texts(member.assigned),
            "target_tasks": _texts(member.target),
            "lag": self.lag_of(member),
        }


def _texts(tasks: TaskLists) -> dict[str, list[str]]:
    return {kind: list(map(task_text, some)) for kind, some in tasks._asdict().items()}


def _findings(group: DescribedStreamsGroup) -> Iterator[Note]:
    if group.group_state == "NotReady":
        text = "the broker has not validated the topology, for example because a source topic is "
        text += "missing or topics that are joined differ in partitions: nobody has a task"
        yield Note("not ready", text)
    elif group.members and group.assignment_epoch < group.group_epoch:
        text = "the group has changed, and the broker has not computed a new target yet"
        yield Note("assigning", text)
    moving = tuple(one.member_id for one in group.members if one.is_reconciling)
    if moving:
        yield Note("reconciling", "they do not have their target yet", moving)
    old = tuple(one.member_id for one in group.members if one.topology_epoch < _newest(group))
    if old:
        yield Note("old topology", "they run an older version of the application", old)
    idle = tuple(one.member_id for one in group.members if not any(one.assigned + one.target))
    if idle and len(idle) < len(group.members):
        yield Note("idle", "they have no task", idle)
    yield from _without_standby(group)
    yield from _behind(group)


def _newest(group: DescribedStreamsGroup) -> int:
    return -1 if group.topology is None else group.topology.epoch


def _offsets(reported: Iterable[DescribedTaskOffset]) -> dict[TopicPartition, int]:
    return {TopicPartition(task, number): offset for task, number, offset in reported}


def _without_standby(group: DescribedStreamsGroup) -> Iterator[Note]:
    """Yields a finding if some stateful tasks have a standby task, and others have none."""
    stateful = {one.subtopology_id for one in group.subtopologies if one.state_changelog_topics}
    standby = {task for one in group.members for task in one.assigned.standby}
    active = {task for one in group.members for task in one.assigned.active}
    bare = tuple(sorted(task for task in active - standby if task.topic in stateful))
    if standby and bare:
        text = "if the member of these tasks leaves, their state has to be restored"
        yield Note("no standby", text, partitions=bare)


def _behind(group: DescribedStreamsGroup) -> Iterator[Note]:
    """Yields a finding on standby and warm-up tasks whose state is behind the changelog."""
    for one in group.members:
        ends = _offsets(one.task_end_offsets)
        offsets = _offsets(one.task_offsets)
        copies = (*one.assigned.standby, *one.assigned.warmup)
        behind = {
            task: ends[task] - offsets.get(task, 0)
            for task in copies
            if ends.get(task, 0) > offsets.get(task, 0)
        }
        if behind:
            texts = ", ".join(f"{tp.topic}[{tp.partition}] {left:,}" for tp, left in behind.items())
            text = f"records missing in its copies: {texts}"
            yield Note("behind", text, (one.member_id,), tuple(behind))
