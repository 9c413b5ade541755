# SPDX-License-Identifier: Apache-2.0
"""ShareGroupDescribe: shows share groups to administrators, as the log has them.

Source   ShareGroup.asDescribedGroup, ShareGroupMember.asShareGroupDescribeMember (Kafka 4.4.0).
"""

from functools import partial

from kafka_rebalance.wire.broker_groups import (
    DescribedShareGroup,
    DescribedShareMember,
    ShareGroupDescribe,
    ShareGroupDescribeResponse,
)

from ..broker_assigned.describe import described_groups, described_partitions
from ..machine.events import Received
from ..machine.state import CoordinatorState
from .group import ShareGroup, ShareGroupMember

_ASSIGNOR = "simple"


def share_group_describe(
    state: CoordinatorState, event: Received, request: ShareGroupDescribe
) -> None:
    """Describes groups, at once."""
    groups = described_groups(
        state, request.group_ids, ShareGroup, partial(_group, state), DescribedShareGroup
    )
    state.respond(event.request_id, ShareGroupDescribeResponse(groups=groups))


def _group(state: CoordinatorState, group: ShareGroup) -> DescribedShareGroup:
    return DescribedShareGroup(
        group_id=group.group_id,
        group_state=str(group.state),
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=_ASSIGNOR,
        members=tuple(_member(state, member) for member in group.members.values()),
    )


def _member(state: CoordinatorState, member: ShareGroupMember) -> DescribedShareMember:
    return DescribedShareMember(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(member.subscribed_topic_names),
        assignment=described_partitions(state, member.assigned),
    )
