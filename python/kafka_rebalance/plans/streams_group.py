# SPDX-License-Identifier: Apache-2.0
"""The present state of a streams group (KIP-1071): which member runs which tasks, where, and why.

A task reads the partition of its own number of each source topic of its subtopology.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.ownership import Balance
from kafka_rebalance.wire.streams_group_descriptions import (
    StreamsGroupDescription,
    StreamsMemberDescription,
    TaskLists,
)

from .lag import Lags, lag_in, without_committed_offset

_Tasks = Mapping[TopicPartition, Sequence[TopicPartition]]


def task_text(task: TopicPartition) -> str:
    """Returns the name that Kafka Streams gives a task, such as `0_1`."""
    return f"{task.topic}_{task.partition}"


def tasks_of(group: StreamsGroupDescription) -> _Tasks:
    """Returns each active task of the members or of their targets, with what it reads."""
    sources = {one.subtopology_id: one.read_topics for one in group.subtopologies or ()}
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
    committed offset.
    """

    described: StreamsGroupDescription
    lags: Lags

    @property
    def balance(self) -> Balance:
        """Returns how evenly the members share the active tasks."""
        return Balance.of([len(one.assigned.active) for one in self.described.members])

    @property
    def processes(self) -> Mapping[str, Sequence[StreamsMemberDescription]]:
        """Returns each process id with its members, in the order of the description."""
        found: dict[str, list[StreamsMemberDescription]] = {}
        for member in self.described.members:
            found.setdefault(member.process_id, []).append(member)
        return found

    @property
    def notes(self) -> tuple[str, ...]:
        """Returns a sentence for each thing that may be wrong."""
        return tuple(_notes(self.described))

    def lag_of(self, member: StreamsMemberDescription) -> int | None:
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

        They are those that the members' active tasks read, and the active tasks of their targets.
        """
        return without_committed_offset(self.lags, self._read) or 0

    @property
    def _read(self) -> list[TopicPartition]:
        return [tp for tps in tasks_of(self.described).values() for tp in tps]

    def to_dict(self) -> dict[str, Any]:
        group = self.described
        return {
            "group_id": group.group_id,
            "group_type": "streams",
            "state": group.state,
            "group_epoch": group.epoch,
            "assignment_epoch": group.assignment_epoch,
            "topology_epoch": group.topology_epoch,
            "subtopologies": [
                {
                    "subtopology_id": one.subtopology_id,
                    "source_topics": list(one.source_topics),
                    "repartition_source_topics": [t.name for t in one.repartition_source_topics],
                    "repartition_sink_topics": list(one.repartition_sink_topics),
                    "changelog_topics": [topic.name for topic in one.changelog_topics],
                }
                for one in group.subtopologies or ()
            ],
            "members": [self._member(member) for member in group.members],
            "balance": self.balance.to_dict(),
            "lag": self.lag,
            "without_committed_offset": self.without_committed_offset,
            "notes": list(self.notes),
        }

    def _member(self, member: StreamsMemberDescription) -> dict[str, Any]:
        return {
            "member_id": member.member_id,
            "group_instance_id": member.instance_id,
            "client_id": member.client_id,
            "client_host": member.client_host,
            "rack_id": member.rack_id,
            "member_epoch": member.epoch,
            "topology_epoch": member.topology_epoch,
            "process_id": member.process_id,
            "client_tags": dict(member.client_tags),
            "tasks": _texts(member.assigned),
            "target_tasks": _texts(member.target),
            "lag": self.lag_of(member),
        }


def _texts(tasks: TaskLists) -> dict[str, list[str]]:
    return {kind: list(map(task_text, some)) for kind, some in tasks._asdict().items()}


def _notes(group: StreamsGroupDescription) -> Iterator[str]:
    if group.state == "NotReady":
        yield (
            "not ready: the broker has not validated the topology, for example because a source "
            "topic is missing or topics that are joined differ in partitions: nobody has a task"
        )
    elif group.members and group.assignment_epoch < group.epoch:
        yield "assigning: the group has changed, and the broker has not computed a new target yet"
    moving = [one.client_id for one in group.members if one.is_reconciling]
    if moving:
        yield f"reconciling: {', '.join(moving)}: they do not have their target yet"
    old = [one.client_id for one in group.members if one.topology_epoch < _newest(group)]
    if old:
        yield f"old topology: {', '.join(old)}: they run an older version of the application"
    idle = [one.client_id for one in group.members if not any(one.assigned + one.target)]
    if idle and len(idle) < len(group.members):
        yield f"idle: {', '.join(idle)}: they have no task"
    yield from _without_standby(group)
    yield from _behind(group)


def _newest(group: StreamsGroupDescription) -> int:
    return -1 if group.topology_epoch is None else group.topology_epoch


def _without_standby(group: StreamsGroupDescription) -> Iterator[str]:
    """Yields a note if some stateful tasks have a standby task, and others have none."""
    stateful = {one.subtopology_id for one in group.subtopologies or () if one.changelog_topics}
    standby = {task for one in group.members for task in one.assigned.standby}
    active = {task for one in group.members for task in one.assigned.active}
    bare = sorted(task for task in active - standby if task.topic in stateful)
    if standby and bare:
        names = ", ".join(map(task_text, bare[:10]))
        yield f"no standby: {names}: if their member leaves, their state has to be restored"


def _behind(group: StreamsGroupDescription) -> Iterator[str]:
    """Yields a note on standby and warm-up tasks whose state is behind the changelog."""
    for one in group.members:
        ends = dict(one.task_end_offsets)
        offsets = dict(one.task_offsets)
        copies = (*one.assigned.standby, *one.assigned.warmup)
        behind = {
            task: ends[task] - offsets.get(task, 0)
            for task in copies
            if ends.get(task, 0) > offsets.get(task, 0)
        }
        if behind:
            texts = (f"{task_text(task)} {records:,}" for task, records in behind.items())
            yield f"behind: {one.client_id}: records missing in its copies: {', '.join(texts)}"
