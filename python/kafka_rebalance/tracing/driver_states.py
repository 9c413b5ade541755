# SPDX-License-Identifier: Apache-2.0
"""Shows what a coordinator keeps of a group: `state` of classic groups, `mstate` of all groups."""

from collections.abc import Iterable, Mapping

from kafka_rebalance.coordinator.consumer_group.group import NO_TARGET, ConsumerGroup
from kafka_rebalance.coordinator.consumer_group.member import (
    ConsumerGroupMember,
    PartitionEpochs,
)
from kafka_rebalance.coordinator.share_group.group import ShareGroup
from kafka_rebalance.coordinator.streams_group.group import StreamsGroup
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.protocol.error_codes import ErrorCode

from .driver_commands import Json
from .driver_streams_answers import streams_state
from .virtual_broker import VirtualBroker


def classic_state(broker: VirtualBroker, group_id: str) -> Json:
    """Returns a classic group's state; any other group counts as absent."""
    group = broker.coordinator.classic_group(group_id)
    timers = _timers(broker, group_id)
    if group is None:
        return {"state": f"ABSENT:{ErrorCode.GROUP_ID_NOT_FOUND}", "timers": timers}
    simple = group.protocol_type is None and not group.members and not group.pending
    return {
        "state": str(group.state),
        "gen": group.generation_id,
        "proto": group.protocol_name,
        "ptype": group.protocol_type,
        "leader": group.leader_id,
        "ts": group.state_timestamp_ms,
        "members": sorted(group.members),
        "pending": len(group.pending),
        "awaiting": group.awaiting_join,
        "simple": simple,
        "pending_sync": sorted(group.pending_sync),
        "timers": timers,
    }


def state_of_any_type(broker: VirtualBroker, group_id: str) -> Json:
    """Returns the group's type and state; with epochs and members if its broker assigns."""
    group = broker.coordinator.groups().get(group_id)
    timers = {"timers": _timers(broker, group_id)}
    if group is None:
        return timers | {"type": "absent"}
    if isinstance(group, ShareGroup):
        return timers | _share_group(broker, group)
    if isinstance(group, StreamsGroup):
        return timers | streams_state(group)
    if not isinstance(group, ConsumerGroup):
        return timers | {"type": "classic", "state": str(group.state)}
    return timers | {
        "type": "consumer",
        "state": str(group.state),
        "epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "assigned_at": group.assignment_timestamp_ms,
        "subscription": "HOMOGENEOUS" if group.is_homogeneous else "HETEROGENEOUS",
        "members": {
            one.member_id: _member(broker, one, group.targets.get(one.member_id, NO_TARGET))
            for one in group.members.values()
        },
    }


def _share_group(broker: VirtualBroker, group: ShareGroup) -> Json:
    return {
        "type": "share",
        "state": str(group.state),
        "epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "assigned_at": group.assignment_timestamp_ms,
        "subscription": "HOMOGENEOUS" if group.is_homogeneous else "HETEROGENEOUS",
        "members": {
            one.member_id: {
                "epoch": one.member_epoch,
                "prev": one.previous_member_epoch,
                "state": one.state.name,
                "assigned": _partitions(broker, one.assigned),
                "target": _partitions(broker, group.target_of(one.member_id)),
            }
            for one in group.members.values()
        },
    }


def _member(
    broker: VirtualBroker, member: ConsumerGroupMember, target: Mapping[Uuid, tuple[int, ...]]
) -> Json:
    return {
        "epoch": member.member_epoch,
        "prev": member.previous_member_epoch,
        "state": member.state.name,
        "assigned": _with_epochs(broker, member.assigned),
        "pending": _with_epochs(broker, member.pending_revocation),
        "classic": member.classic is not None,
        "target": _partitions(broker, target),
    }


def _partitions(broker: VirtualBroker, partitions: Mapping[Uuid, Iterable[int]]) -> Json:
    return {broker.topic_name(topic): sorted(numbers) for topic, numbers in partitions.items()}


def _with_epochs(broker: VirtualBroker, partitions: PartitionEpochs) -> Json:
    return {
        broker.topic_name(topic_id): {str(number): epoch for number, epoch in epochs.items()}
        for topic_id, epochs in partitions.items()
    }


def _timers(broker: VirtualBroker, group_id: str) -> dict[str, int]:
    return {
        str(key): due
        for key, due in sorted(broker.coordinator.deadlines().items())
        if key.group_id == group_id
    }
