# SPDX-License-Identifier: Apache-2.0
"""StreamsGroupDescribe: shows streams groups to administrators, as the log has them.

A member's assignment has no pending tasks. The topology is not shown here.

Source   StreamsGroup.asDescribedGroup, StreamsGroupMember.asStreamsGroupDescribeMember
         (Kafka 4.4.0).
"""

from kafka_rebalance.protocol.streams_messages import (
    DescribedStreamsGroup,
    DescribedStreamsMember,
    DescribedTasks,
    StreamsGroupDescribe,
    StreamsGroupDescribeResponse,
)

from ..assigning_group.describe import described_groups
from ..coordinator_state import CoordinatorState
from ..interface import Received
from .group import StreamsGroup
from .tasks import NOTHING, GroupTasks, task_list


def streams_group_describe(
    state: CoordinatorState, event: Received, request: StreamsGroupDescribe
) -> None:
    """Describes groups, at once."""
    groups = described_groups(state, request.group_ids, StreamsGroup, _group, DescribedStreamsGroup)
    state.respond(event.request_id, StreamsGroupDescribeResponse(groups=groups))


def _group(group: StreamsGroup) -> DescribedStreamsGroup:
    return DescribedStreamsGroup(
        group.group_id,
        group_state=str(group.state),
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        members=tuple(
            DescribedStreamsMember(
                one.member_id,
                one.instance_id,
                one.rack_id,
                one.member_epoch,
                one.client_id,
                one.client_host,
                one.process_id,
                _tasks(one.assigned.without_epochs()),
                _tasks(group.targets.get(one.member_id, NOTHING)),
            )
            for one in group.members.values()
        ),
    )


def _tasks(tasks: GroupTasks) -> DescribedTasks:
    return DescribedTasks(*map(task_list, tasks))
