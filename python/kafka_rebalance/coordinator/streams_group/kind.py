# SPDX-License-Identifier: Apache-2.0
"""What is special to streams groups: the topology, tasks, the initial rebalance delay (KIP-1071).

A join to an empty group starts the initial delay, which is not prolonged; then the first targets
are computed. Commits follow the rules of consumer groups, but a commit of a smaller epoch is looked
up by the name of the topic: its task must be active, or pending, and the member must have had it in
that epoch. A description has neither pending tasks nor the topology.

Quirk    the first targets are not computed if the group's topology was never configured: the first
         heartbeat configures it for a group that its own records replace. Then the next heartbeat
         computes them.
Source   GroupMetadataManager (replay, computeDelayedTargetAssignment, streamsGroupLeave,
         streamsGroupFenceMember), StreamsGroup (asDescribedGroup, validateOffsetCommit,
         validateOffsetFetch), StreamsGroupMember (Builder, asStreamsGroupDescribeMember) (Kafka
         4.4.0).
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar

from kafka_rebalance.wire import broker_records as wire
from kafka_rebalance.wire.broker_records import (
    BrokerRecord,
    RecordType,
    Role,
)
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.offsets import (
    CommitRequest,
    OffsetFetch,
    OffsetToCommit,
    TxnOffsetCommit,
)
from kafka_rebalance.wire.streams_groups import (
    DescribedStreamsGroup,
    DescribedStreamsMember,
    DescribedTasks,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatResponse,
)
from kafka_rebalance.wire.streams_topology import KeyValue, StreamsTopology

from ..broker_assigned import log
from ..broker_assigned.kind import BrokerAssigned
from ..broker_assigned.offsets import committing_member, stale_member
from ..machine.deadlines import INITIAL_REBALANCE, DeadlineKey
from ..machine.events import Received
from ..machine.state import CoordinatorState
from .group import StreamsGroup
from .heartbeat import ask_shutdown, beat
from .member import StreamsGroupMember, TasksState
from .records import (
    TYPES,
    current_record,
    epoch_record,
    group_tombstones,
)
from .target import StreamsChange, targets_for
from .tasks import NOTHING, NOTHING_ASSIGNED, GroupTasks, MemberTasks, Task, task_list
from .topology import sources_by_name

_KNOWS_EPOCHS = 9


class StreamsGroups(BrokerAssigned):
    """Streams groups."""

    group_class = StreamsGroup
    member_class = StreamsGroupMember
    records = TYPES
    response = StreamsGroupHeartbeatResponse
    described = DescribedStreamsGroup
    describe_response = StreamsGroupDescribeResponse
    nothing: ClassVar[dict[str, object]] = {
        "assigned": NOTHING_ASSIGNED,
        "pending_revocation": NOTHING_ASSIGNED,
    }
    beat = beat
    leaves = staticmethod(ask_shutdown)
    current_record = staticmethod(current_record)
    group_tombstones = staticmethod(group_tombstones)

    # Leaving and deadlines ------------------------------------------------------------------------

    def without_epochs(self, assigned: MemberTasks) -> MemberTasks:
        return assigned._replace(active=dict.fromkeys(assigned.active, 0))

    def epoch_without(
        self, state: CoordinatorState, group: StreamsGroup, members: list[StreamsGroupMember]
    ) -> list[BrokerRecord]:
        validated, configs = group.validated_topology_epoch, group.assignment_configs
        return [epoch_record(group, group.epoch + 1, group.metadata_hash, validated, configs)]

    def deadline(self, state: CoordinatorState, group: StreamsGroup, key: DeadlineKey) -> None:
        if key.kind == INITIAL_REBALANCE:
            _first_targets(state, group)
        else:
            super().deadline(state, group, key)

    # Offsets --------------------------------------------------------------------------------------

    def refuse_commit(
        self,
        state: CoordinatorState,
        event: Received,
        group: StreamsGroup,
        request: CommitRequest,
        offsets: Iterable[OffsetToCommit],
    ) -> ErrorCode:
        epoch, is_transaction = request.generation_id, isinstance(request, TxnOffsetCommit)
        member = committing_member(group, request)
        if isinstance(member, ErrorCode):
            return member
        version = event.api_version
        if not is_transaction and version is not None and version < _KNOWS_EPOCHS:
            return ErrorCode.UNSUPPORTED_VERSION
        if epoch == member.member_epoch:
            return ErrorCode.NONE
        sources = {} if group.topology is None else sources_by_name(group.topology)
        if epoch < member.member_epoch and all(
            _had(member, epoch, one, sources) for one in offsets
        ):
            return ErrorCode.NONE
        return ErrorCode.STALE_MEMBER_EPOCH

    def refuse_fetch(self, group: StreamsGroup, request: OffsetFetch) -> ErrorCode:
        found = stale_member(group, request)
        return found if isinstance(found, ErrorCode) else ErrorCode.STALE_MEMBER_EPOCH

    # Records --------------------------------------------------------------------------------------

    def with_fields(
        self, member: StreamsGroupMember, value: wire.StreamsMemberValue
    ) -> StreamsGroupMember:
        return replace(
            member,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            user_endpoint=value.user_endpoint,
            client_tags=dict(value.client_tags),
        )

    def with_current(
        self, member: StreamsGroupMember, value: wire.StreamsCurrentValue
    ) -> StreamsGroupMember:
        epoch = value.member_epoch
        return replace(
            member,
            member_epoch=epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=TasksState(value.state),
            assigned=MemberTasks(
                _epochs(value.active, epoch), _tasks(value.standby), _tasks(value.warmup)
            ),
            pending_revocation=MemberTasks(
                _epochs(value.active_pending, epoch),
                _tasks(value.standby_pending),
                _tasks(value.warmup_pending),
            ),
        )

    def target_of_record(self, value: wire.StreamsTargetValue) -> GroupTasks:
        return GroupTasks(_tasks(value.active), _tasks(value.standby), _tasks(value.warmup))

    def replay_other(self, group: StreamsGroup, name: str | None, value: Any, now_ms: int) -> None:
        match value:
            case wire.StreamsEpochValue():
                group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
                group.validated_topology_epoch = value.validated_topology_epoch
                group.assignment_configs = dict(value.assignment_configs or ())
                descriptions = value.stored_description_epoch, value.failed_description_epoch
                group.description_epochs = descriptions
            case StreamsTopology():
                group.topology = value

    def is_removable(self, group: StreamsGroup) -> bool:
        return group.is_empty

    def bury_other(self, group: StreamsGroup, kind: RecordType, name: str) -> None:
        group.topology = None

    # Administrators -------------------------------------------------------------------------------

    def describe_one(self, state: CoordinatorState, group: StreamsGroup) -> DescribedStreamsGroup:
        return DescribedStreamsGroup(
            group_id=group.group_id,
            group_state=str(group.state),
            group_epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            members=tuple(
                DescribedStreamsMember(
                    member_id=one.member_id,
                    member_epoch=one.member_epoch,
                    instance_id=one.instance_id,
                    rack_id=one.rack_id,
                    client_id=one.client_id,
                    client_host=one.client_host,
                    topology_epoch=one.topology_epoch,
                    process_id=one.process_id,
                    user_endpoint=one.user_endpoint,
                    client_tags=tuple(KeyValue(*pair) for pair in one.client_tags.items()),
                    task_offsets=(),
                    task_end_offsets=(),
                    assignment=_shown(one.assigned.without_epochs()),
                    target_assignment=_shown(group.targets.get(one.member_id, NOTHING)),
                )
                for one in group.members.values()
            ),
        )


def _shown(tasks: GroupTasks) -> DescribedTasks:
    return DescribedTasks(*map(task_list, tasks))


def _tasks(role: Role) -> frozenset[Task]:
    return frozenset((one.subtopology_id, number) for one in role for number in one.partitions)


def _epochs(role: Role, without: int) -> dict[Task, int]:
    """Returns active tasks with their epochs; `without` is for a record that has no epochs."""
    found: dict[Task, int] = {}
    for name, numbers, epochs in role:
        if epochs is None or len(epochs) != len(numbers):
            epochs = (without,) * len(numbers)
        found |= {(name, number): epoch for number, epoch in zip(numbers, epochs, strict=True)}
    return found


def _had(
    member: StreamsGroupMember, epoch: int, offset: OffsetToCommit, sources: dict[str, str]
) -> bool:
    """Returns whether the member had the task in this epoch, and has it still."""
    task = sources.get(offset.topic, ""), offset.partition
    for tasks in (member.assigned, member.pending_revocation):
        if offset.topic in sources and task in tasks.active:
            return tasks.active[task] <= epoch
    return False


def _first_targets(state: CoordinatorState, group: StreamsGroup) -> None:
    topology = group.unlogged.configured
    if group.is_empty or group.epoch <= group.assignment_epoch or topology is None:
        return
    change = StreamsChange(group, group.epoch, topology, group.assignment_configs)
    log.write(state, group.group_id, targets_for(state, change).records, None)
