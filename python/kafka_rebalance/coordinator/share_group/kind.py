# SPDX-License-Identifier: Apache-2.0
"""What is special to share groups: they are never classic groups, and have no offsets (KIP-932).

A member has a session only: it never has to give up partitions before others get them.

Source   ShareGroup.asDescribedGroup, GroupMetadataManager (replay, shareGroupLeave,
         shareGroupFenceMember), ShareGroupMember (Builder, asShareGroupDescribeMember) (Kafka
         4.4.0).
"""

from dataclasses import replace
from typing import Any, ClassVar

from kafka_rebalance.java.hash_map import HashMap, HashSet, Uuid, uuid_hash
from kafka_rebalance.wire import broker_records as wire
from kafka_rebalance.wire.broker_groups import (
    DescribedShareGroup,
    DescribedShareMember,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatResponse,
)
from kafka_rebalance.wire.broker_records import (
    BrokerRecord,
    RecordType,
    TargetTopic,
    TargetValue,
)

from ..broker_assigned.group import ReconciliationState
from ..broker_assigned.kind import BrokerAssigned
from ..broker_assigned.table_order import in_copied_set, name_set, topic_map
from ..broker_assigned.target import Target, described_partitions
from ..machine.deadlines import SESSION
from ..machine.state import CoordinatorState
from .group import ShareGroup, ShareGroupMember
from .heartbeat import beat
from .initialization import forget_initializing, forget_topics, mark_share_state
from .records import (
    TYPES,
    current_record,
    epoch_record,
    group_tombstones,
)
from .share_state import NamedPartitions, ShareState, StateTopics

_ASSIGNOR = "simple"


class ShareGroups(BrokerAssigned):
    """Share groups."""

    group_class = ShareGroup
    member_class = ShareGroupMember
    records = TYPES
    response = ShareGroupHeartbeatResponse
    described = DescribedShareGroup
    describe_response = ShareGroupDescribeResponse
    deadline_kinds = (SESSION,)
    becomes_classic = False
    nothing: ClassVar[dict[str, object]] = {"assigned": {}}
    beat = beat
    starts_deletion = staticmethod(mark_share_state)
    topics_deleted = staticmethod(forget_topics)
    forget_initializing = staticmethod(forget_initializing)
    current_record = staticmethod(current_record)
    group_tombstones = staticmethod(group_tombstones)

    def epoch_without(
        self, state: CoordinatorState, group: ShareGroup, members: list[ShareGroupMember]
    ) -> list[BrokerRecord]:
        (member,) = members
        metadata_hash = state.cluster.hash_of(group.counts_with(member, None))
        return [epoch_record(group.group_id, group.epoch + 1, metadata_hash)]

    # Records --------------------------------------------------------------------------------------

    def member_of(self, group: ShareGroup, member_id: str) -> ShareGroupMember:
        return group.member(member_id)

    def with_fields(
        self, member: ShareGroupMember, value: wire.ShareMemberValue
    ) -> ShareGroupMember:
        return replace(
            member,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=name_set(value.subscribed_topic_names),
        )

    def with_current(
        self, member: ShareGroupMember, value: wire.ShareCurrentValue
    ) -> ShareGroupMember:
        return replace(
            member,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=ReconciliationState(value.state),
            assigned={t: dict.fromkeys(each) for t, each in _partitions(value.assigned).items()},
        )

    def target_of_record(self, value: TargetValue) -> Target:
        return {topic: tuple(each) for topic, each in _partitions(value.topics).items()}

    def replay_other(self, group: ShareGroup, name: str | None, value: Any, now_ms: int) -> None:
        match value:
            case wire.ShareEpochValue(epoch, metadata_hash):
                group.epoch, group.metadata_hash = epoch, metadata_hash
            case wire.ShareStateValue():
                group.share_state = _share_state(value, now_ms)

    def bury_other(self, group: ShareGroup, kind: RecordType, name: str) -> None:
        group.share_state = None

    # Administrators -------------------------------------------------------------------------------

    def describe_one(self, state: CoordinatorState, group: ShareGroup) -> DescribedShareGroup:
        return DescribedShareGroup(
            group_id=group.group_id,
            group_state=str(group.state),
            group_epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=_ASSIGNOR,
            members=tuple(_described(state, member) for member in group.members.values()),
        )


def _described(state: CoordinatorState, member: ShareGroupMember) -> DescribedShareMember:
    return DescribedShareMember(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(member.subscribed_topic_names),
        assignment=described_partitions(state, member.assigned),
    )


def _partitions(topics: tuple[TargetTopic, ...]) -> dict[Uuid, list[int]]:
    read = {topic: in_copied_set(partitions) for topic, partitions in topics}
    return {topic: read[topic] for topic in topic_map(read)}


def _share_state(value: wire.ShareStateValue, now_ms: int) -> ShareState:
    deleting = HashSet[Uuid](uuid_hash)
    for topic, _ in value.deleting:
        deleting.add(topic)
    initializing, initialized = _state_topics(value.initializing), _state_topics(value.initialized)
    return ShareState(initializing, initialized, tuple(deleting), now_ms)


def _state_topics(topics: tuple[wire.ShareStateTopic, ...]) -> StateTopics:
    table = HashMap[Uuid, NamedPartitions](uuid_hash)
    for topic, name, partitions in topics:
        table.put(topic, NamedPartitions(name, tuple(in_copied_set(partitions))))
    return dict(table.items())
