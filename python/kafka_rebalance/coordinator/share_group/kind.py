# SPDX-License-Identifier: Apache-2.0
"""The functions of share groups, which are never classic groups and have no offsets (KIP-932).

Source   ShareGroup.asDescribedGroup, GroupMetadataManager (replay, shareGroupLeave),
         ShareGroupMember (Builder, asShareGroupDescribeMember) (Kafka 4.4.0).
"""

from typing import Any, ClassVar

from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.wire import broker_records as wire
from kafka_rebalance.wire.broker_groups import (
    DescribedPartitions,
    DescribedShareMember,
    TopicPartitions,
)
from kafka_rebalance.wire.broker_records import BrokerRecord, RecordType

from ..broker_assigned.kind import BrokerAssigned
from ..broker_assigned.table_order import by_topic_id, in_copied_set
from ..broker_assigned.target import Target, described_partitions
from ..machine.deadlines import SESSION
from ..machine.state import Shard
from .group import RECORDS, NamedPartitions, ShareGroup, ShareGroupMember, ShareState, StateTopics
from .heartbeat import beat, refuse_fields
from .initialization import forget_topics, mark_share_state

_ASSIGNOR = "simple"


class ShareGroups(BrokerAssigned):
    """The functions of share groups, under the names in `GroupKind`."""

    group_class = ShareGroup
    member_class = ShareGroupMember
    records = RECORDS
    described_member = DescribedShareMember
    deadline_kinds = (SESSION,)
    becomes_classic = False
    nothing: ClassVar[dict[str, object]] = {"assigned": {}}
    refuse_fields = staticmethod(refuse_fields)
    beat = beat
    starts_deletion = staticmethod(mark_share_state)
    topics_deleted = staticmethod(forget_topics)

    def epoch_without(
        self, state: Shard, group: ShareGroup, members: list[ShareGroupMember]
    ) -> list[BrokerRecord]:
        (member,) = members
        metadata_hash = state.cluster.hash_of(group.counts_with(member, None))
        return [RECORDS.epoch_record(group.group_id, group.epoch + 1, metadata_hash)]

    def member_of(self, group: ShareGroup, member_id: str) -> ShareGroupMember:
        return group.member(member_id)

    def assignment_of_record(self, value: wire.ShareCurrentValue) -> dict[str, Any]:
        assigned = _partitions(value.assigned).items()
        return {"assigned": {topic: dict.fromkeys(each) for topic, each in assigned}}

    def target_of_record(self, value: wire.TargetValue) -> Target:
        return {topic: tuple(each) for topic, each in _partitions(value.topics).items()}

    def replay_other(self, group: ShareGroup, name: str | None, value: Any, now_ms: int) -> None:
        match value:
            case wire.ShareEpochValue(epoch, metadata_hash):
                group.epoch, group.metadata_hash = epoch, metadata_hash
            case wire.ShareStateValue():
                initializing = _state_topics(value.initializing)
                initialized = _state_topics(value.initialized)
                deleting = tuple(by_topic_id(dict(value.deleting)))
                group.share_state = ShareState(initializing, initialized, deleting, now_ms)

    def bury_other(self, group: ShareGroup, kind: RecordType, name: str) -> None:
        group.share_state = None

    def more_described(self, state: Shard, group: ShareGroup) -> dict[str, str]:
        return {"assignor_name": _ASSIGNOR}

    def assignment_of(
        self, state: Shard, group: ShareGroup, member: ShareGroupMember
    ) -> dict[str, Any]:
        return {"assignment": described_partitions(state, member.assigned)}


def _partitions(topics: tuple[TopicPartitions, ...]) -> dict[Uuid, list[int]]:
    return by_topic_id({topic: in_copied_set(partitions) for topic, partitions in topics})


def _state_topics(topics: tuple[DescribedPartitions, ...]) -> StateTopics:
    return by_topic_id(
        {topic: NamedPartitions(name, tuple(in_copied_set(each))) for topic, name, each in topics}
    )
