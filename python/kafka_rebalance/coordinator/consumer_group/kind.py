# SPDX-License-Identifier: Apache-2.0
"""The parts that only consumer groups have: classic members, patterns, owners (KIP-848).

Source   ConsumerGroup (asDescribedGroup, validateOffsetCommit, validateOffsetFetch),
         GroupMetadataManager (replay, consumerGroupFenceMembers), ConsumerGroupMember (Builder,
         asConsumerGroupDescribeMember), Assignment.fromRecord (Kafka 4.4.0); KIP-1251;
         docs/behaviour/consumer-groups.md.
"""

from collections import Counter
from typing import Any

from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.wire import broker_records as wire
from kafka_rebalance.wire.broker_groups import ConsumerGroupHeartbeat, DescribedConsumerMember
from kafka_rebalance.wire.broker_records import BrokerRecord
from kafka_rebalance.wire.classic_groups import Heartbeat, LeaveGroup, SyncGroup
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.offsets import OffsetToCommit

from ..broker_assigned import log
from ..broker_assigned.kind import BrokerAssigned
from ..broker_assigned.table_order import by_topic_id, in_copied_set, in_new_map, name_set
from ..broker_assigned.target import NO_TARGET, Target, described_partitions
from ..machine.cluster import ClusterTopics
from ..machine.deadlines import MEMBER_KINDS, DeadlineKey
from ..machine.events import Continuation
from ..machine.state import Shard
from . import classic_members
from .group import (
    OLD_METADATA,
    ConsumerGroup,
    ConsumerGroupMember,
    PartitionEpochs,
    ResolvedPattern,
    count_names,
)
from .heartbeat import beat, refuse_fields
from .migration import can_downgrade, downgrade, upgrade

_CLASSIC, _CONSUMER = 0, 1


class ConsumerGroups(BrokerAssigned):
    group_class = ConsumerGroup
    member_class = ConsumerGroupMember
    described_member = DescribedConsumerMember
    deadline_kinds = MEMBER_KINDS
    refuse_fields = staticmethod(refuse_fields)
    beat = beat
    upgrade = staticmethod(upgrade)
    join_classic = classic_members.join_group
    leave_group = classic_members.leave_group

    def __init__(self) -> None:
        super().__init__()
        self.handlers |= {
            SyncGroup: classic_members.sync_group,
            Heartbeat: classic_members.heartbeat,
            LeaveGroup: self.leave_group,
        }

    def without_epochs(self, assigned: PartitionEpochs) -> PartitionEpochs:
        return {topic: dict.fromkeys(epochs, 0) for topic, epochs in assigned.items()} or assigned

    def remove(
        self,
        state: Shard,
        group: ConsumerGroup,
        members: list[ConsumerGroupMember],
        then: Continuation | None,
    ) -> None:
        """Removes members, and starts the next epoch, or turns the group into a classic one."""
        if not members:
            log.write(state, group.group_id, [], then)
        elif can_downgrade(state, group, members):
            downgrade(state, group, members, then)
        else:
            super().remove(state, group, members, then)

    def epoch_without(
        self, state: Shard, group: ConsumerGroup, members: list[ConsumerGroupMember]
    ) -> list[BrokerRecord]:
        records, counts = [], dict(group.counts)
        for member in members:
            count_names(counts, member, None)
        for pattern, users in Counter(one.pattern for one in members).items():
            if pattern is not None and group.patterns.get(pattern) == users:
                records.append(group.pattern_record(pattern, None))
                group.uncount_pattern(counts, pattern)
        return [*records, group.epoch_record(group.epoch + 1, state.cluster.hash_of(counts))]

    def session_timeout_ms(
        self, state: Shard, group: ConsumerGroup, member: ConsumerGroupMember
    ) -> int:
        if member.classic is not None:
            return member.classic.session_timeout_ms
        return super().session_timeout_ms(state, group, member)

    def deadline(self, state: Shard, group: ConsumerGroup, key: DeadlineKey) -> None:
        if key.member_id:  # a deadline without a member id belongs to the former classic group
            super().deadline(state, group, key)

    def is_classic(self, member: ConsumerGroupMember) -> bool:
        return member.classic is not None

    def owns_only_assigned(
        self, member: ConsumerGroupMember, request: ConsumerGroupHeartbeat
    ) -> bool:
        return request.topic_partitions is not None and all(
            topic in member.assigned and member.assigned[topic].keys() >= set(partitions)
            for topic, partitions in request.topic_partitions
        )

    def held_since(
        self,
        group: ConsumerGroup,
        member: ConsumerGroupMember,
        offset: OffsetToCommit,
        cluster: ClusterTopics,
    ) -> int | None:
        topic = cluster.topics.get(offset.topic)
        return None if topic is None else member.assignment_epoch(topic.topic_id, offset.partition)

    def stale(self, member: ConsumerGroupMember, *, is_old: bool) -> ErrorCode:
        is_classic = member.classic is not None or is_old
        return ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH

    def assignment_of_record(self, value: wire.CurrentValue) -> dict[str, Any]:
        without = max(value.member_epoch, 0)
        return {
            "assigned": _partition_epochs(value.assigned, without),
            "pending_revocation": _partition_epochs(value.pending_revocation, without),
        }

    def target_of_record(self, value: wire.TargetValue) -> Target:
        return by_topic_id({topic: tuple(in_copied_set(each)) for topic, each in value.topics})

    def replay_other(self, group: ConsumerGroup, name: str | None, value: Any, now_ms: int) -> None:
        match value:
            case wire.EpochValue(epoch, metadata_hash):
                group.epoch, group.metadata_hash = epoch, metadata_hash
            case wire.OldMetadataValue():
                group.has_old_metadata = True
            case wire.PatternValue(topics, version, timestamp):
                resolved = ResolvedPattern(name_set(topics), version, timestamp)
                group.resolve(name or "", resolved)

    def bury_other(self, group: ConsumerGroup, role: str, name: str) -> None:
        if role == OLD_METADATA:
            group.has_old_metadata = False
        else:
            group.resolve(name, None)

    def more_described(self, state: Shard, group: ConsumerGroup) -> dict[str, str]:
        default = state.config.group_consumer_assignors[0]
        return {"assignor_name": group.preferred_assignor() or default}

    def assignment_of(
        self, state: Shard, group: ConsumerGroup, member: ConsumerGroupMember
    ) -> dict[str, Any]:
        assigned, pending = member.assigned, member.pending_revocation
        has = {
            one: (*assigned.get(one, ()), *pending.get(one, ())) for one in {**assigned, **pending}
        }
        target = group.targets.get(member.member_id, NO_TARGET)
        return {
            "assignment": described_partitions(state, has),
            "target_assignment": described_partitions(state, target),
            "member_type": _CONSUMER if member.classic is None else _CLASSIC,
        }


def _partition_epochs(topics: tuple[wire.CurrentTopic, ...], without: int) -> PartitionEpochs:
    """Returns the partitions with their epochs: `without` where a topic has too few or too many."""
    read: dict[Uuid, dict[int, int]] = {}
    for topic, partitions, epochs in topics:
        fits = epochs is not None and len(epochs) == len(partitions)
        listed = zip(partitions, epochs or (), strict=True) if fits else None
        found = dict.fromkeys(partitions, without) if listed is None else dict(listed)
        read[topic] = {partition: found[partition] for partition in in_new_map(found)}
    return by_topic_id(read)
