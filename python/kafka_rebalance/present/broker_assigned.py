# SPDX-License-Identifier: Apache-2.0
"""The present state of a group that the broker assigns: a consumer group (KIP-848), a share group.

In a share group several members own a partition: they share its records.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from kafka_rebalance.group.model import Topic, TopicPartition
from kafka_rebalance.group.ownership import Balance
from kafka_rebalance.notes.note import Note, far_finding, leaderless_finding
from kafka_rebalance.plans.figures import Reader, share_in_racks
from kafka_rebalance.wire.broker_groups import BrokerGroup, BrokerMember

from .lag import Lags, lag_in, without_committed_offset


@dataclass(frozen=True, slots=True)
class AssignedByBroker:
    """A group as its coordinator describes it, with its lag.

    `lags` counts the records not yet consumed, for each partition with a committed offset; None if
    the offsets were not read, as for a share group. `leaderless` lists the partitions for which no
    leader answers. `topics` are those of the cluster, with the racks of their replicas; empty if
    unknown.
    """

    described: BrokerGroup
    lags: Lags | None = None
    leaderless: Collection[TopicPartition] = ()
    topics: tuple[Topic, ...] = ()

    @property
    def balance(self) -> Balance:
        return Balance.of([len(one.assigned) for one in self.described.members])

    @property
    def findings(self) -> tuple[Note, ...]:
        leaderless = sorted({*self._owned} & {*self.leaderless})
        return (
            *leaderless_finding(leaderless),
            *_findings(self.described),
            *far_finding(self.topics, self._readers),
        )

    @property
    def rack_share(self) -> float | None:
        """Returns the share of partitions that are read in the rack of a replica."""
        return share_in_racks(self.topics, self._readers)

    @property
    def _readers(self) -> list[Reader]:
        return [
            (one.member_id, one.rack_id or None, one.assigned) for one in self.described.members
        ]

    def lag_of(self, member: BrokerMember) -> int | None:
        """Returns the sum of the known lags of a member's partitions; None if none is known."""
        return lag_in(self.lags, member.assigned)

    @property
    def without_committed_offset(self) -> int | None:
        """Returns how many owned partitions have no committed offset; None if none was read."""
        return without_committed_offset(self.lags, {*self._owned} - {*self.leaderless})

    @property
    def _owned(self) -> list[TopicPartition]:
        return [tp for member in self.described.members for tp in member.assigned]

    def to_dict(self) -> dict[str, Any]:
        group = self.described
        return {
            "group_id": group.group_id,
            "group_type": group.group_type,
            "state": group.group_state,
            "group_epoch": group.group_epoch,
            "assignment_epoch": group.assignment_epoch,
            "assignor": group.assignor_name or None,
            "members": [self._member(member) for member in group.members],
            "balance": self.balance.to_dict(),
            "rack_share": self.rack_share,
            "lag": lag_in(self.lags, {*(self.lags or ()), *self._owned}),
            "without_committed_offset": self.without_committed_offset,
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def _member(self, member: BrokerMember) -> dict[str, Any]:
        target = member.target
        return {
            "member_id": member.member_id,
            "group_instance_id": member.instance_id,
            "client_id": member.client_id,
            "client_host": member.client_host,
            "rack_id": member.rack_id,
            "member_epoch": member.member_epoch,
            "is_classic": member.is_classic,
            "topics": list(member.subscribed_topic_names),
            "topic_regex": member.topic_regex,
            "owned_partitions": [str(tp) for tp in member.assigned],
            "target_partitions": None if target is None else [str(tp) for tp in target],
            "lag": self.lag_of(member),
        }


def is_reconciling(member: BrokerMember) -> bool:
    """Returns whether the member does not yet own exactly its target."""
    return member.target is not None and set(member.target) != set(member.assigned)


def _findings(group: BrokerGroup) -> Iterator[Note]:
    moving = tuple(one.member_id for one in group.members if is_reconciling(one))
    if moving:
        yield Note("reconciling", "they do not own their target yet", moving)
    if group.members and group.assignment_epoch < group.group_epoch:
        text = "the group has changed, and the broker has not computed a new target yet"
        yield Note("assigning", text)
    idle = tuple(one.member_id for one in group.members if not one.assigned and not one.target)
    if idle and len(idle) < len(group.members):
        yield Note("idle", "they own nothing", idle)
    classic = tuple(one.member_id for one in group.members if one.is_classic)
    if classic and len(classic) < len(group.members):
        yield Note("mixed", "they joined with the classic protocol", classic)
