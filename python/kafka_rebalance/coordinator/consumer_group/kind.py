# SPDX-License-Identifier: Apache-2.0
"""What is special to consumer groups: classic members, patterns, owners of partitions (KIP-848).

The deadlines of members: a classic member chooses the length of its session, and has two more, to
join when it was told to (`join`) and to send SyncGroup after it has joined (`sync`). If only
classic members remain, the group can become a classic group (`migration.py`). A member's described
assignment contains its pending partitions, which it may still read.

A commit by a known member with

    a request before version 9 of a member   UNSUPPORTED_VERSION; not in a transaction
    of the consumer protocol
    the member's epoch                       accepted
    a larger epoch                           STALE_MEMBER_EPOCH
    a smaller epoch                          accepted if each partition is assigned to the member,
                                             or pending, and was so in that epoch already; else
                                             STALE_MEMBER_EPOCH

A fetch with another epoch than the member's is refused with STALE_MEMBER_EPOCH, too. For classic
members, and for old versions of TxnOffsetCommit, the error is ILLEGAL_GENERATION.

A record replaces the hash tables of a member, so their order depends on the record only.

Source   ConsumerGroup (asDescribedGroup, validateOffsetCommit, validateOffsetFetch),
         GroupMetadataManager (replay, consumerGroupFenceMembers), ConsumerGroupMember (Builder,
         asConsumerGroupDescribeMember), Assignment.fromRecord (Kafka 4.4.0); KIP-848, KIP-1251.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar

from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.wire import broker_records as wire
from kafka_rebalance.wire.broker_groups import (
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatResponse,
    DescribedConsumerGroup,
    DescribedConsumerMember,
)
from kafka_rebalance.wire.broker_records import BrokerRecord, RecordType
from kafka_rebalance.wire.classic_groups import Heartbeat, LeaveGroup, SyncGroup
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.offsets import (
    CommitRequest,
    OffsetCommit,
    OffsetFetch,
    OffsetToCommit,
    TxnOffsetCommit,
)

from ..broker_assigned import log
from ..broker_assigned.group import ReconciliationState
from ..broker_assigned.kind import BrokerAssigned
from ..broker_assigned.offsets import committing_member, stale_member
from ..broker_assigned.table_order import in_copied_set, in_new_map, name_set, topic_map
from ..broker_assigned.target import NO_TARGET, Target, described_partitions
from ..machine.cluster import ClusterTopics
from ..machine.continuations import Continuation
from ..machine.deadlines import MEMBER_KINDS, DeadlineKey
from ..machine.events import Received
from ..machine.state import CoordinatorState
from . import classic_members
from .group import ConsumerGroup, ResolvedPattern
from .heartbeat import beat
from .member import NO_PARTITIONS, ConsumerGroupMember, PartitionEpochs
from .migration import can_downgrade, downgrade, upgrade
from .records import (
    TYPES,
    current_record,
    epoch_record,
    group_tombstones,
    pattern_tombstone,
)
from .subscription_counts import count_names

_CLASSIC, _CONSUMER = 0, 1
_KNOWS_EPOCHS: dict[type[CommitRequest], int] = {OffsetCommit: 9, TxnOffsetCommit: 6}
_T = RecordType


class ConsumerGroups(BrokerAssigned):
    """Consumer groups."""

    group_class = ConsumerGroup
    member_class = ConsumerGroupMember
    records = TYPES
    response = ConsumerGroupHeartbeatResponse
    described = DescribedConsumerGroup
    describe_response = ConsumerGroupDescribeResponse
    deadline_kinds = MEMBER_KINDS
    nothing: ClassVar[dict[str, object]] = {
        "assigned": NO_PARTITIONS,
        "pending_revocation": NO_PARTITIONS,
    }
    beat = beat
    upgrade = staticmethod(upgrade)
    join_classic = staticmethod(classic_members.join_group)
    current_record = staticmethod(current_record)
    group_tombstones = staticmethod(group_tombstones)

    def __init__(self) -> None:
        super().__init__()
        self.handlers |= {
            SyncGroup: classic_members.sync_group,
            Heartbeat: classic_members.heartbeat,
            LeaveGroup: self._leave_group,
        }

    def _leave_group(
        self, state: CoordinatorState, event: Received, request: LeaveGroup, group: ConsumerGroup
    ) -> None:
        members, then = classic_members.members_that_leave(event, request, group)
        self.remove(state, group, members, then)

    # Leaving and deadlines ------------------------------------------------------------------------

    def without_epochs(self, assigned: PartitionEpochs) -> PartitionEpochs:
        return {topic: dict.fromkeys(epochs, 0) for topic, epochs in assigned.items()} or assigned

    def remove(
        self,
        state: CoordinatorState,
        group: ConsumerGroup,
        members: list[ConsumerGroupMember],
        then: Continuation,
    ) -> None:
        """Removes members, and makes the group's next epoch; or turns it into a classic group."""
        if not members:
            log.write(state, group.group_id, [], then)
        elif can_downgrade(state, group, members):
            downgrade(state, group, members, then)
        else:
            super().remove(state, group, members, then)

    def epoch_without(
        self, state: CoordinatorState, group: ConsumerGroup, members: list[ConsumerGroupMember]
    ) -> list[BrokerRecord]:
        records, counts = [], dict(group.counts)
        for member in members:
            count_names(counts, member, None)
        for pattern, users in Counter(one.pattern for one in members).items():
            if pattern is not None and group.patterns.get(pattern) == users:
                records.append(pattern_tombstone(group.group_id, pattern))
                group.uncount_pattern(counts, pattern)
        metadata_hash = state.cluster.hash_of(counts)
        return [*records, epoch_record(group.group_id, group.epoch + 1, metadata_hash)]

    def session_timeout_ms(self, state: CoordinatorState, member: ConsumerGroupMember) -> int:
        if member.classic is not None:
            return member.classic.session_timeout_ms
        return super().session_timeout_ms(state, member)

    def deadline(self, state: CoordinatorState, group: ConsumerGroup, key: DeadlineKey) -> None:
        if key.member_id:  # a deadline without one is of the classic group that the group was
            super().deadline(state, group, key)

    # Offsets --------------------------------------------------------------------------------------

    def refuse_commit(
        self,
        state: CoordinatorState,
        event: Received,
        group: ConsumerGroup,
        request: CommitRequest,
        offsets: Iterable[OffsetToCommit],
    ) -> ErrorCode:
        epoch, is_transaction = request.generation_id, isinstance(request, TxnOffsetCommit)
        member = committing_member(group, request)
        if isinstance(member, ErrorCode):
            return member
        version = event.api_version
        is_old = version is not None and version < _KNOWS_EPOCHS[type(request)]
        if is_old and not is_transaction and member.classic is None:
            return ErrorCode.UNSUPPORTED_VERSION
        if epoch == member.member_epoch:
            return ErrorCode.NONE
        cluster = state.cluster
        if is_transaction:
            # The request has no ids of topics, so Kafka finds none of its partitions.
            cluster = ClusterTopics()
        if epoch < member.member_epoch and all(
            _had(member, epoch, one, cluster) for one in offsets
        ):
            return ErrorCode.NONE
        is_classic = member.classic is not None or (is_transaction and is_old)
        return ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH

    def refuse_fetch(self, group: ConsumerGroup, request: OffsetFetch) -> ErrorCode:
        member = stale_member(group, request)
        if isinstance(member, ErrorCode):
            return member
        is_classic = member.classic is not None
        return ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH

    # Records --------------------------------------------------------------------------------------

    def with_fields(
        self, member: ConsumerGroupMember, value: wire.MemberValue
    ) -> ConsumerGroupMember:
        return replace(
            member,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=name_set(value.subscribed_topic_names),
            subscribed_topic_regex=value.subscribed_topic_regex,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=value.classic,
        )

    def with_current(
        self, member: ConsumerGroupMember, value: wire.CurrentValue
    ) -> ConsumerGroupMember:
        epoch = value.member_epoch
        return replace(
            member,
            member_epoch=epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=ReconciliationState(value.state),
            assigned=_partition_epochs(value.assigned, max(epoch, 0)),
            pending_revocation=_partition_epochs(value.pending_revocation, max(epoch, 0)),
        )

    def target_of_record(self, value: wire.TargetValue) -> Target:
        read = {topic: in_copied_set(partitions) for topic, partitions in value.topics}
        return {topic: tuple(read[topic]) for topic in topic_map(read)}

    def replay_other(self, group: ConsumerGroup, name: str | None, value: Any, now_ms: int) -> None:
        match value:
            case wire.EpochValue(epoch, metadata_hash):
                group.epoch, group.metadata_hash = epoch, metadata_hash
            case wire.OldMetadataValue():
                group.has_old_metadata = True
            case wire.PatternValue(topics, version, timestamp):
                resolved = ResolvedPattern(name_set(topics), version, timestamp)
                group.resolve(name or "", resolved)

    def bury_other(self, group: ConsumerGroup, kind: RecordType, name: str) -> None:
        if kind is _T.CONSUMER_GROUP_PARTITION_METADATA:
            group.has_old_metadata = False
        else:
            group.resolve(name, None)

    # Administrators -------------------------------------------------------------------------------

    def describe_one(self, state: CoordinatorState, group: ConsumerGroup) -> DescribedConsumerGroup:
        return DescribedConsumerGroup(
            group_id=group.group_id,
            group_state=str(group.state),
            group_epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=group.preferred_assignor() or state.config.group_consumer_assignors[0],
            members=tuple(_described(state, group, member) for member in group.members.values()),
        )


def _described(
    state: CoordinatorState, group: ConsumerGroup, member: ConsumerGroupMember
) -> DescribedConsumerMember:
    assigned: dict[Uuid, list[int]] = {}
    for partitions in (member.assigned, member.pending_revocation):
        for topic, epochs in partitions.items():
            assigned.setdefault(topic, []).extend(epochs)
    target = group.targets.get(member.member_id, NO_TARGET)
    return DescribedConsumerMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=described_partitions(state, assigned),
        target_assignment=described_partitions(state, target),
        member_type=_CONSUMER if member.classic is None else _CLASSIC,
    )


def _partition_epochs(topics: tuple[wire.CurrentTopic, ...], without: int) -> PartitionEpochs:
    """Returns the partitions with their epochs; `without` is for a record that has no epochs."""
    read: dict[Uuid, dict[int, int]] = {}
    for topic, partitions, epochs in topics:
        fits = epochs is not None and len(epochs) == len(partitions)
        listed = zip(partitions, epochs or (), strict=True) if fits else None
        found = dict.fromkeys(partitions, without) if listed is None else dict(listed)
        read[topic] = {partition: found[partition] for partition in in_new_map(found)}
    return {topic: read[topic] for topic in topic_map(read)}


def _had(
    member: ConsumerGroupMember, epoch: int, offset: OffsetToCommit, cluster: ClusterTopics
) -> bool:
    """Returns whether the member had the partition in this epoch, and has it still."""
    topic = cluster.topics.get(offset.topic)
    since = None if topic is None else member.assignment_epoch(topic.topic_id, offset.partition)
    return since is not None and since <= epoch
