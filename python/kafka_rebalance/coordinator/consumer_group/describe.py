# SPDX-License-Identifier: Apache-2.0
"""ConsumerGroupDescribe: shows consumer groups to administrators, as the log has them.

A member's assignment contains its pending partitions, which it may still read.

Source   ConsumerGroup.asDescribedGroup, ConsumerGroupMember.asConsumerGroupDescribeMember
         (Kafka 4.4.0).
"""

from functools import partial

from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.wire.broker_groups import (
    ConsumerGroupDescribe,
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
    DescribedConsumerMember,
)

from ..broker_assigned.describe import described_groups, described_partitions
from ..broker_assigned.target import NO_TARGET
from ..machine.events import Received
from ..machine.state import CoordinatorState
from .group import ConsumerGroup
from .member import ConsumerGroupMember

_CLASSIC, _CONSUMER = 0, 1


def consumer_group_describe(
    state: CoordinatorState, event: Received, request: ConsumerGroupDescribe
) -> None:
    """Describes groups, at once."""
    groups = described_groups(
        state, request.group_ids, ConsumerGroup, partial(_group, state), DescribedConsumerGroup
    )
    state.respond(event.request_id, ConsumerGroupDescribeResponse(groups=groups))


def _group(state: CoordinatorState, group: ConsumerGroup) -> DescribedConsumerGroup:
    return DescribedConsumerGroup(
        group_id=group.group_id,
        group_state=str(group.state),
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor() or state.config.group_consumer_assignors[0],
        members=tuple(_member(state, group, member) for member in group.members.values()),
    )


def _member(
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
