# SPDX-License-Identifier: Apache-2.0
"""A member of a consumer group, as the broker keeps it; an update makes a new member.

    STABLE                  the member has what its epoch's target contains
    UNREVOKED_PARTITIONS    it must give up the pending partitions first; its epoch stays
    UNRELEASED_PARTITIONS   it waits for partitions that other members still have
    UNKNOWN                 the record has a state that this version does not know

Dicts have the iteration order of Kafka's hash tables, and compare without order.

Source   ConsumerGroupMember.java, ModernGroupMember.java, MemberState.java (Kafka 4.4.0).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.wire.broker_records import ClassicMetadata

from ..broker_assigned.group import Names, ReconciliationState

PartitionEpochs = Mapping[Uuid, Mapping[int, int]]
"""Partitions by topic id, each with the assignment epoch in which the member got it."""

NO_PARTITIONS: PartitionEpochs = {}
"""The partitions of a new member. One step compares by identity with it, as Kafka does."""


@dataclass(frozen=True, slots=True)
class ConsumerGroupMember:
    """A member; `classic` is None if it uses the consumer protocol."""

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: ReconciliationState = ReconciliationState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: Names = field(default_factory=dict)
    subscribed_topic_regex: str | None = ""
    server_assignor: str | None = None
    assigned: PartitionEpochs = field(default_factory=lambda: NO_PARTITIONS)
    pending_revocation: PartitionEpochs = field(default_factory=lambda: NO_PARTITIONS)
    classic: ClassicMetadata | None = None

    @property
    def pattern(self) -> str | None:
        """Returns the pattern; None without one."""
        return self.subscribed_topic_regex or None

    @property
    def is_revoking(self) -> bool:
        return self.state is ReconciliationState.UNREVOKED_PARTITIONS

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is ReconciliationState.STABLE and self.member_epoch == epoch

    def assignment_epoch(self, topic_id: Uuid, partition: int) -> int | None:
        """Returns the epoch of a partition that is assigned or pending revocation."""
        for partitions in (self.assigned, self.pending_revocation):
            if partition in partitions.get(topic_id, ()):
                return partitions[topic_id][partition]
        return None
