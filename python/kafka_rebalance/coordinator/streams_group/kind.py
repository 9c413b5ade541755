# SPDX-License-Identifier: Apache-2.0
"""The parts that only streams groups have: topology, tasks, initial rebalance delay (KIP-1071).

Quirk    the first heartbeat stores the configured topology in a group object, which the heartbeat's
         own records then replace. If no other heartbeat arrives before the initial delay ends, no
         topology is known and no targets are computed; the next heartbeat computes them.
Source   GroupMetadataManager (replay, computeDelayedTargetAssignment), StreamsGroup
         (asDescribedGroup, validateOffsetCommit), StreamsGroupMember (Builder,
         asStreamsGroupDescribeMember) (Kafka 4.4.0); docs/behaviour/streams-groups.md.
"""

from collections.abc import Collection
from typing import Any

from kafka_rebalance.wire import broker_records as wire
from kafka_rebalance.wire import streams_groups as streams
from kafka_rebalance.wire.broker_records import BrokerRecord, Role
from kafka_rebalance.wire.offsets import OffsetToCommit

from ..broker_assigned import log
from ..broker_assigned.kind import BrokerAssigned
from ..machine.cluster import ClusterTopics
from ..machine.deadlines import INITIAL_REBALANCE, DeadlineKey
from ..machine.state import Shard
from .group import (
    NOTHING,
    GroupTasks,
    MemberTasks,
    StreamsGroup,
    StreamsGroupMember,
    Task,
    task_list,
    task_set,
)
from .heartbeat import ask_shutdown, beat, refuse_fields
from .target import StreamsChange, targets_for
from .topology import described, sources_by_name


class StreamsGroups(BrokerAssigned):
    group_class = StreamsGroup
    member_class = StreamsGroupMember
    described_member = streams.DescribedStreamsMember
    no_target = NOTHING
    refuse_fields = staticmethod(refuse_fields)
    beat = beat
    leaves = staticmethod(ask_shutdown)

    def without_epochs(self, assigned: MemberTasks) -> MemberTasks:
        return assigned._replace(active=dict.fromkeys(assigned.active, 0))

    def epoch_without(
        self, state: Shard, group: StreamsGroup, members: list[StreamsGroupMember]
    ) -> list[BrokerRecord]:
        validated, configs = group.validated_topology_epoch, group.assignment_configs
        return [group.next_epoch_record(group.epoch + 1, group.metadata_hash, validated, configs)]

    def deadline(self, state: Shard, group: StreamsGroup, key: DeadlineKey) -> None:
        if key.kind == INITIAL_REBALANCE:
            _first_targets(state, group)
        else:
            super().deadline(state, group, key)

    def owns_only_assigned(
        self, member: StreamsGroupMember, request: streams.StreamsGroupHeartbeat
    ) -> bool:
        return all(map(_contains, member.assigned, request.roles))

    def held_since(
        self,
        group: StreamsGroup,
        member: StreamsGroupMember,
        offset: OffsetToCommit,
        cluster: ClusterTopics,
    ) -> int | None:
        sources = {} if group.topology is None else sources_by_name(group.topology)
        task = sources.get(offset.topic, ""), offset.partition
        for tasks in (member.assigned, member.pending_revocation):
            if offset.topic in sources and task in tasks.active:
                return tasks.active[task]
        return None

    def assignment_of_record(self, value: wire.StreamsCurrentValue) -> dict[str, Any]:
        def tasks(active: Role, *others: Role) -> MemberTasks:
            return MemberTasks(_epochs(active, value.member_epoch), *map(task_set, others))

        pending = value.active_pending, value.standby_pending, value.warmup_pending
        assigned = tasks(value.active, value.standby, value.warmup)
        return {"assigned": assigned, "pending_revocation": tasks(*pending)}

    def target_of_record(self, value: wire.StreamsTargetValue) -> GroupTasks:
        return GroupTasks(*map(task_set, (value.active, value.standby, value.warmup)))

    def replay_other(self, group: StreamsGroup, name: str | None, value: Any, now_ms: int) -> None:
        match value:
            case wire.StreamsEpochValue():
                group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
                group.validated_topology_epoch = value.validated_topology_epoch
                group.assignment_configs = dict(value.assignment_configs or ())
                descriptions = value.stored_description_epoch, value.failed_description_epoch
                group.description_epochs = descriptions
            case streams.StreamsTopology():
                group.topology = value

    def is_removable(self, group: StreamsGroup) -> bool:
        return group.is_empty

    def bury_other(self, group: StreamsGroup, role: str, name: str) -> None:
        group.topology = None

    def more_described(self, state: Shard, group: StreamsGroup) -> dict[str, Any]:
        if group.topology is None:
            return {}
        configured = group.unlogged.configured
        is_ready = configured is not None and configured.is_ready
        there = state.cluster.topics if is_ready else {}
        counts = {name: one.partitions for name, one in there.items()}
        return {"topology": described(group.topology, counts)}

    def assignment_of(
        self, state: Shard, group: StreamsGroup, member: StreamsGroupMember
    ) -> dict[str, Any]:
        return {
            "assignment": _shown(member.assigned.without_epochs()),
            "target_assignment": _shown(group.targets.get(member.member_id, NOTHING)),
        }


def _shown(tasks: GroupTasks) -> streams.DescribedTasks:
    return streams.DescribedTasks(*map(task_list, tasks))


def _epochs(role: Role, without: int) -> dict[Task, int]:
    """Returns active tasks with epochs: `without` where a subtopology has too few or too many."""
    found: dict[Task, int] = {}
    for name, numbers, epochs in role:
        if epochs is None or len(epochs) != len(numbers):
            epochs = (without,) * len(numbers)
        found |= {(name, number): epoch for number, epoch in zip(numbers, epochs, strict=True)}
    return found


def _contains(assigned: Collection[Task], owned: streams.TaskList | None) -> bool:
    """Returns whether all owned tasks are assigned, and each listed subtopology has an assigned
    task.
    """
    if owned is None:
        return False
    names = {name for name, _ in assigned}
    return all(
        name in names and all((name, number) in assigned for number in numbers)
        for name, numbers in owned
    )


def _first_targets(state: Shard, group: StreamsGroup) -> None:
    topology = group.unlogged.configured
    if group.is_empty or group.epoch <= group.assignment_epoch or topology is None:
        return
    change = StreamsChange(group, group.epoch, topology, group.assignment_configs)
    log.write(state, group.group_id, targets_for(state, change).records, None)
