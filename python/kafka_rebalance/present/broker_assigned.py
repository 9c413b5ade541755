# SPDX-License-Identifier: Apache-2.0
"""The present state of a broker-assigned group: owners, lag and findings.

Members of consumer groups (KIP-848) and share groups own partitions; in a share group, several
members share a partition's records. Members of a streams group (KIP-1071) run tasks: a task reads,
from each source topic of its subtopology, the partition with the task's own number.

A partition without a committed offset has an unknown lag (None, never 0): it is unknown where the
group will begin to read.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import Topic, TopicPartition
from kafka_rebalance.group.ownership import Balance
from kafka_rebalance.notes.findings import Note
from kafka_rebalance.plans.figures import Reader, share_in_racks

from .readers import far_finding, leaderless_finding

if TYPE_CHECKING:
    from kafka_rebalance.wire.broker_groups import BrokerGroup, BrokerMember
    from kafka_rebalance.wire.streams_groups import (
        DescribedStreamsGroup,
        DescribedStreamsMember,
        DescribedTaskOffset,
        TaskLists,
    )

Lags = Mapping[TopicPartition, int]
"""For each partition with a committed offset: the number of records not yet consumed."""


def lag_in(lags: Lags | None, partitions: Collection[TopicPartition]) -> int | None:
    """Returns the sum of the known lags; None if none is known; 0 without partitions."""
    if lags is None:
        return None
    known = [lags[tp] for tp in partitions if tp in lags]
    return sum(known) if known or not partitions else None


class WithLag(Frozen):
    """Adds the lag to a class of groups, which must have `lags`, `leaderless` and `_read`."""

    @property
    def lag(self: Any) -> int | None:
        """Returns the sum of all known lags; None if none is known."""
        return lag_in(self.lags, {*(self.lags or ()), *self._read})

    @property
    def without_committed_offset(self: Any) -> int | None:
        """Returns how many partitions with a leader have no committed offset; None if unknown."""
        if self.lags is None:
            return None
        return sum(tp not in self.lags for tp in {*self._read} - {*self.leaderless})


class _AssignedByBroker(WithLag):
    """A group as its coordinator describes it. `lags` is None if the committed offsets were not
    read.
    """

    described: Any
    lags: Lags | None = None
    leaderless: Collection[TopicPartition] = ()

    def _leaderless(self: Any) -> Iterator[Note]:
        return leaderless_finding(sorted({*self._read} & {*self.leaderless}))

    def _dict(self: Any, group_type: str, more: Mapping[str, Any], **racks: Any) -> dict[str, Any]:
        group = self.described
        return {
            "group_id": group.group_id,
            "group_type": group_type,
            "state": group.group_state,
            "group_epoch": group.group_epoch,
            "assignment_epoch": group.assignment_epoch,
            **more,
            "members": [
                {
                    "member_id": member.member_id,
                    "group_instance_id": member.instance_id,
                    "client_id": member.client_id,
                    "client_host": member.client_host,
                    "rack_id": member.rack_id,
                    "member_epoch": member.member_epoch,
                    **self.of_member(member),
                    "lag": self.lag_of(member),
                }
                for member in group.members
            ],
            "balance": self.balance.to_dict(),
            **racks,
            "lag": self.lag,
            "without_committed_offset": self.without_committed_offset,
            "findings": [finding.to_dict() for finding in self.findings],
        }


class AssignedByBroker(_AssignedByBroker):
    """A consumer group or a share group as its coordinator describes it, with its lag.

    `topics` are the cluster's topics, with the racks of their replicas; empty if unknown.
    """

    topics: tuple[Topic, ...] = ()

    @property
    def balance(self) -> Balance:
        return Balance.of([len(one.assigned) for one in self.described.members])

    @property
    def findings(self) -> tuple[Note, ...]:
        far = far_finding(self.topics, self._readers)
        return (*self._leaderless(), *_findings(self.described), *far)

    @property
    def rack_share(self) -> float | None:
        """Returns the share (0 to 1) of partitions that are read in the rack of a replica."""
        return share_in_racks(self.topics, self._readers)

    @property
    def _readers(self) -> list[Reader]:
        return [
            (one.member_id, one.rack_id or None, one.assigned) for one in self.described.members
        ]

    def lag_of(self, member: "BrokerMember") -> int | None:
        """Returns the sum of the known lags of a member's partitions; None if none is known."""
        return lag_in(self.lags, member.assigned)

    @property
    def _read(self) -> list[TopicPartition]:
        return [tp for member in self.described.members for tp in member.assigned]

    def to_dict(self) -> dict[str, Any]:
        group = self.described
        more = {"assignor": group.assignor_name or None}
        return self._dict(group.group_type, more, rack_share=self.rack_share)

    def of_member(self, member: "BrokerMember") -> dict[str, Any]:
        target = member.target
        return {
            "is_classic": member.is_classic,
            "topics": list(member.subscribed_topic_names),
            "topic_regex": member.topic_regex,
            "owned_partitions": [str(tp) for tp in member.assigned],
            "target_partitions": None if target is None else [str(tp) for tp in target],
        }


class StreamsGroupWithLag(_AssignedByBroker):
    """A streams group as its coordinator describes it. `lags` are the lags of its source topics."""

    @property
    def balance(self) -> Balance:
        """Returns how evenly the members share the active tasks."""
        return Balance.of([len(one.assigned.active) for one in self.described.members])

    @property
    def processes(self) -> Mapping[str, Sequence["DescribedStreamsMember"]]:
        """Returns process id -> its members, in the order of the description."""
        found: dict[str, list[DescribedStreamsMember]] = {}
        for member in self.described.members:
            found.setdefault(member.process_id, []).append(member)
        return found

    @property
    def findings(self) -> tuple[Note, ...]:
        return (*self._leaderless(), *_streams_findings(self.described))

    def lag_of(self, member: "DescribedStreamsMember") -> int | None:
        """Returns the sum of the known lags of a member's active tasks; None if none is known."""
        reads = tasks_of(self.described)
        return lag_in(self.lags, [tp for task in member.assigned.active for tp in reads[task]])

    @property
    def _read(self) -> list[TopicPartition]:
        return [tp for tps in tasks_of(self.described).values() for tp in tps]

    def to_dict(self) -> dict[str, Any]:
        group = self.described
        more = {
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
        }
        return self._dict("streams", more)

    def of_member(self, member: "DescribedStreamsMember") -> dict[str, Any]:
        return {
            "topology_epoch": member.topology_epoch,
            "process_id": member.process_id,
            "client_tags": dict(member.client_tags),
            "tasks": _texts(member.assigned),
            "target_tasks": _texts(member.target),
        }


def tasks_of(group: "DescribedStreamsGroup") -> dict[TopicPartition, list[TopicPartition]]:
    """Returns each active task of members or targets, with the partitions that it reads."""
    sources = {one.subtopology_id: one.read_topics for one in group.subtopologies}
    lists = [tasks for one in group.members for tasks in (one.assigned, one.target)]
    every = sorted({task for tasks in lists for task in tasks.active})
    return {
        task: [TopicPartition(name, task.partition) for name in sources.get(task.topic, ())]
        for task in every
    }


def _texts(tasks: "TaskLists") -> dict[str, list[str]]:
    """Returns the tasks by kind, named as Kafka Streams names them, such as `0_1`."""
    return {
        kind: [f"{task.topic}_{task.partition}" for task in some]
        for kind, some in tasks._asdict().items()
    }


# Findings -----------------------------------------------------------------------------------------


def is_reconciling(member: "BrokerMember") -> bool:
    """Returns whether the member does not yet own exactly its target."""
    return member.target is not None and set(member.target) != set(member.assigned)


def _ids(
    group: "BrokerGroup | DescribedStreamsGroup", which: Callable[[Any], object]
) -> tuple[str, ...]:
    return tuple(one.member_id for one in group.members if which(one))


def _assigning(group: "BrokerGroup | DescribedStreamsGroup") -> Iterator[Note]:
    if group.members and group.assignment_epoch < group.group_epoch:
        text = "the group has changed, and the broker has not computed a new target yet"
        yield Note("assigning", text)


def _findings(group: "BrokerGroup") -> Iterator[Note]:
    if moving := _ids(group, is_reconciling):
        yield Note("reconciling", "they do not own their target yet", moving)
    yield from _assigning(group)
    idle = _ids(group, lambda one: not one.assigned and not one.target)
    if idle and len(idle) < len(group.members):
        yield Note("idle", "they own nothing", idle)
    classic = _ids(group, lambda one: one.is_classic)
    if classic and len(classic) < len(group.members):
        yield Note("mixed", "they joined with the classic protocol", classic)


def _streams_findings(group: "DescribedStreamsGroup") -> Iterator[Note]:
    if group.group_state == "NotReady":
        text = "the broker has not validated the topology, for example because a source topic is "
        text += "missing or topics that are joined differ in partitions: nobody has a task"
        yield Note("not ready", text)
    else:
        yield from _assigning(group)
    if moving := _ids(group, lambda one: one.is_reconciling):
        yield Note("reconciling", "they do not have their target yet", moving)
    newest = -1 if group.topology is None else group.topology.epoch
    if old := _ids(group, lambda one: one.topology_epoch < newest):
        yield Note("old topology", "they run an older version of the application", old)
    idle = _ids(group, lambda one: not any(one.assigned + one.target))
    if idle and len(idle) < len(group.members):
        yield Note("idle", "they have no task", idle)
    yield from _without_standby(group)
    yield from _behind(group)


def _offsets(reported: Iterable["DescribedTaskOffset"]) -> dict[TopicPartition, int]:
    return {TopicPartition(task, number): offset for task, number, offset in reported}


def _without_standby(group: "DescribedStreamsGroup") -> Iterator[Note]:
    """Yields a finding if stateful tasks have no standby task although others have one."""
    stateful = {one.subtopology_id for one in group.subtopologies if one.state_changelog_topics}
    standby = {task for one in group.members for task in one.assigned.standby}
    active = {task for one in group.members for task in one.assigned.active}
    bare = tuple(sorted(task for task in active - standby if task.topic in stateful))
    if standby and bare:
        text = "if the member of these tasks leaves, their state has to be restored"
        yield Note("no standby", text, partitions=bare)


def _behind(group: "DescribedStreamsGroup") -> Iterator[Note]:
    """Yields a finding for each member with standby or warm-up tasks behind their changelogs."""
    for one in group.members:
        ends = _offsets(one.task_end_offsets)
        offsets = _offsets(one.task_offsets)
        copies = (*one.assigned.standby, *one.assigned.warmup)
        left = {task: ends.get(task, 0) - offsets.get(task, 0) for task in copies}
        if behind := {task: records for task, records in left.items() if records > 0}:
            texts = ", ".join(f"{tp.topic}_{tp.partition} {n:,}" for tp, n in behind.items())
            text = f"records missing in its copies: {texts}"
            yield Note("behind", text, (one.member_id,), tuple(behind))
