# SPDX-License-Identifier: Apache-2.0
"""StreamsGroupDescribe: shows streams groups to administrators, as the log has them.

A member's assignment has no pending tasks. The topology is not shown here.

Source   StreamsGroup.asDescribedGroup, StreamsGroupMember.asStreamsGroupDescribeMember
         (Kafka 4.4.0).
"""

from kafka_rebalance.wire.streams_groups import (
    DescribedStreamsGroup,
    DescribedStreamsMember,
    DescribedTasks,
    StreamsGroupDescribe,
    StreamsGroupDescribeResponse,
)
from kafka_rebalance.wire.streams_topology import KeyValue

from ..broker_assigned.describe import described_groups
from ..machine.events import Received
from ..machine.state import CoordinatorState
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
                assignment=_tasks(one.assigned.without_epochs()),
                target_assignment=_tasks(group.targets.get(one.member_id, NOTHING)),
            )
            for one in group.members.values()
        ),
    )


def _tasks(tasks: GroupTasks) -> DescribedTasks:
    return DescribedTasks(*map(task_list, tasks))
