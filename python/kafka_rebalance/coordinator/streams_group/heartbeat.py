# SPDX-License-Identifier: Apache-2.0
"""StreamsGroupHeartbeat: a member joins or stays, and learns which tasks it may run.

1. The request's fields.      5. The topology, and the tasks that the member reports.
2. The group.                 6. The group's epoch, and the targets (`target.py`).
3. Room for a member.         7. This member's reconciliation (`target.py`).
4. The member and its epoch.

The response always lists the statuses. It lists the member's tasks only if the member joins, or if
its tasks have changed.

Source   GroupCoordinatorService.streamsGroupHeartbeat, GroupMetadataManager.streamsGroupHeartbeat
         (Kafka 4.4.0); docs/behaviour/streams-groups.md#2-heartbeats, with the quirk of
         docs/behaviour/streams-groups.md#5-the-remembered-targets.
"""

from typing import Any

from kafka_rebalance.wire import streams_groups as wire
from kafka_rebalance.wire.broker_groups import JOIN_EPOCH, LEAVE_STATIC_EPOCH
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import GroupState

from ..broker_assigned import log
from ..broker_assigned.kind import BrokerAssigned
from ..broker_assigned.members import (
    UNCHANGED_MS,
    RequestRefused,
    arm_or_cancel_rebalance,
    is_blank,
    updated,
)
from ..machine.events import Received
from ..machine.state import Shard
from .group import (
    NOTHING,
    GroupTasks,
    RefinedTargets,
    StreamsGroup,
    StreamsGroupMember,
    task_list,
    task_set,
)
from .target import (
    NUM_STANDBY_REPLICAS,
    StreamsChange,
    TaskReconciliation,
    initial_key,
    targets_for,
)
from .topology import ConfiguredTopology, configure, is_same, required_topics

TAGS = "rack.aware.assignment.tags"
_KNOWS_TAGS = 1


def group_status(
    event: Received, group: StreamsGroup, change: StreamsChange, member: StreamsGroupMember
) -> list[wire.StreamsStatus]:
    """Returns the response's statuses, except those about delays and a stale topology."""
    status = [] if change.topology.status is None else [change.topology.status]
    if group.shutdown_member_id is not None:
        status.append(wire.StreamsStatus.SHUTDOWN_APPLICATION)
    tags = [one for one in change.configs.get(TAGS, "").split(",") if one]
    knows = event.api_version is None or event.api_version >= _KNOWS_TAGS
    if knows and any(tag not in member.client_tags for tag in tags):
        status.append(wire.StreamsStatus.MISSING_CLIENT_TAGS)
    return status


_FIELDS = ("instance_id", "rack_id", "rebalance_timeout_ms", "process_id", "client_tags")


def refuse_fields(
    _state: Shard, request: wire.StreamsGroupHeartbeat, _version: int | None
) -> ErrorCode:
    """Returns the error if the request's fields are missing or contradictory, else NONE."""
    # 1.
    epoch, joins = request.member_epoch, request.member_epoch == JOIN_EPOCH
    texts = (request.member_id, request.group_id, request.instance_id, request.rack_id)
    roles = request.roles
    is_right = not any(map(is_blank, texts))
    is_right &= epoch >= LEAVE_STATIC_EPOCH
    is_right &= joins == (request.topology is not None)
    is_right &= all(role is None for role in roles) or None not in roles
    if joins:
        is_right &= request.rebalance_timeout_ms != UNCHANGED_MS and roles == ((), (), ())
    elif epoch == LEAVE_STATIC_EPOCH:
        is_right &= request.instance_id is not None
    subtopologies = () if request.topology is None else request.topology.subtopologies
    if not is_right or any(one.source_topic_regex for one in subtopologies):
        return ErrorCode.INVALID_REQUEST
    if any(one.partitions for each in subtopologies for one in each.state_changelog_topics):
        return ErrorCode.STREAMS_INVALID_TOPOLOGY
    return ErrorCode.NONE


def beat(
    kind: BrokerAssigned, state: Shard, event: Received, request: wire.StreamsGroupHeartbeat
) -> None:
    """Answers the heartbeat of a member that joins or stays. Errors: RequestRefused."""
    records: log.Records = []
    # 2. and 3.
    group, converted = kind.group_for(state, request, records)
    joins = request.member_epoch == JOIN_EPOCH
    if joins:
        kind.check_room(state, group, request.member_id, request.instance_id)
    # 4.
    holder = group.static_member(request.instance_id)
    if holder is not None and holder.member_id != request.member_id:
        _relabel(state, group, holder.member_id, request.member_id)
    old = kind.find_member(group, request, records)
    epoch = old.topology_epoch if request.topology is None else request.topology.epoch
    new = updated(old, event, request, _FIELDS, topology_epoch=epoch)
    is_new = False
    if new != old:
        records.append(group.member_record(new))
        is_new = request.instance_id is None or not new.is_assigned_alike(old)
    # 5.
    topology = _topology(group, request, records)
    status: list[wire.StreamsStatus] = []
    if group.topology is not None and new.topology_epoch < group.topology.epoch:
        status.append(wire.StreamsStatus.STALE_TOPOLOGY)
    metadata_hash, configured = _configured(state, group, topology)
    if configured.is_ready:
        for role in request.roles:
            _check_tasks(configured, role)
    # 6.
    is_new |= metadata_hash != group.metadata_hash
    change = _change(state, group, new, configured, is_new=is_new)
    if change.epoch > group.epoch:
        validated = configured.validated_epoch
        of_epoch = (change.epoch, metadata_hash, validated, change.configs)
        records.append(group.next_epoch_record(*of_epoch))
        group.refreshed(state.now_ms, change.epoch)
    _arm_initial(state, group)
    # 7.
    new = _reconciled(state, change, new, request, records, status)
    ask_shutdown(group, request)
    status += group_status(event, group, change, new)
    fields: dict[str, Any] = {"status": tuple(status)}
    if joins or old.assigned != new.assigned:
        roles = ("active_tasks", "standby_tasks", "warmup_tasks")
        fields |= zip(roles, map(task_list, new.assigned), strict=True)
    fields["creatable_topics"] = configured.creatable_topics
    kind.answer(state, event, group, new, records, converted=converted, **fields)


def _relabel(state: Shard, group: StreamsGroup, old_id: str, new_id: str) -> None:
    """Moves the remembered target of a static member from its old id to its new id."""
    refined = group.unlogged.refined
    targets = dict(refined.targets)
    target = targets.pop(old_id, None)
    if target is not None:
        moved = refined._replace(targets={**targets, new_id: target})
        group.set_unlogged(group.unlogged._replace(refined=moved), state.num_appends)


def _arm_initial(state: Shard, group: StreamsGroup) -> None:
    """Starts the initial rebalance delay of an empty group."""
    key = initial_key(group.group_id)
    delay_ms = state.config_of(group.group_id).group_streams_initial_rebalance_delay_ms
    if group.is_empty and delay_ms > 0 and not state.deadlines.is_armed(key):
        state.deadlines.arm(key, state.now_ms + delay_ms)


def ask_shutdown(group: StreamsGroup, request: wire.StreamsGroupHeartbeat) -> None:
    """Stores the first member that asks to shut the application down."""
    if request.shutdown_application and group.shutdown_member_id is None:
        group.shutdown_member_id = request.member_id


def _topology(
    group: StreamsGroup, request: wire.StreamsGroupHeartbeat, records: log.Records
) -> wire.StreamsTopology:
    """Returns the group's topology; if it has none, the request's. Errors: RequestRefused."""
    sent, known = request.topology, group.topology
    if sent is not None and sent.epoch < 0:
        raise RequestRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    if known is None:
        if sent is None:
            raise RequestRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
        records.append(group.topology_record(sent))
        return sent
    if sent is not None and sent.epoch >= known.epoch and not is_same(sent, known):
        raise RequestRefused(ErrorCode.INVALID_REQUEST)
    return known


def _configured(
    state: Shard, group: StreamsGroup, topology: wire.StreamsTopology
) -> tuple[int, ConfiguredTopology]:
    """Returns the metadata's hash, and the topology with the partition counts of the topics."""
    metadata_hash, configured = group.metadata_hash, group.unlogged.configured
    is_first = group.topology is None or configured is None
    if is_first or group.must_refresh(state.now_ms):
        metadata_hash = state.cluster.hash_of(required_topics(topology))
    if configured is None or is_first or metadata_hash != group.metadata_hash:
        configured = configure(topology, state.cluster)
        unlogged = group.unlogged._replace(configured=configured)
        group.set_unlogged(unlogged, state.num_appends)
    return metadata_hash, configured


def _check_tasks(topology: ConfiguredTopology, tasks: wire.TaskList | None) -> None:
    """Raises RequestRefused if the request lists a task that the topology does not contain."""
    counts = {one.subtopology_id: one.tasks for one in topology.subtopologies}
    for name, numbers in tasks or ():
        if name not in counts or any(not 0 <= number < counts[name] for number in numbers):
            raise RequestRefused(ErrorCode.INVALID_REQUEST)


def _change(
    state: Shard,
    group: StreamsGroup,
    new: StreamsGroupMember,
    topology: ConfiguredTopology,
    *,
    is_new: bool,
) -> StreamsChange:
    """Returns the change, in a new epoch if `is_new`, or if topology, settings or target differ."""
    config = state.config_of(group.group_id)
    configs = {NUM_STANDBY_REPLICAS: str(config.group_streams_num_standby_replicas)}
    if config.group_streams_rack_aware_assignment_tags:
        configs[TAGS] = ",".join(config.group_streams_rack_aware_assignment_tags)
    is_new |= topology.validated_epoch != group.validated_topology_epoch
    is_new |= configs != group.assignment_configs
    if is_new or group.state is not GroupState.STABLE:
        return StreamsChange(group, group.epoch + is_new, topology, configs, new)
    # Kafka 4.4 remembers the targets of a Stable group as they are: it does not refine them.
    own = group.targets.get(new.member_id, NOTHING)
    is_refined = own != new.assigned.without_epochs()
    refined = dict(group.targets)
    return StreamsChange(group, group.epoch + is_refined, topology, configs, new, refined)


def _reconciled(
    state: Shard,
    change: StreamsChange,
    member: StreamsGroupMember,
    request: wire.StreamsGroupHeartbeat,
    records: log.Records,
    status: list[wire.StreamsStatus],
) -> StreamsGroupMember:
    group = change.group
    found = targets_for(state, change)
    records += found.records
    status += found.status
    refined = found.targets if change.refined is None else change.refined
    remembered = group.unlogged.refined
    if change.refined is None and remembered.epoch == found.epoch:
        refined = remembered.targets
    elif state.config_of(group.group_id).group_streams_num_warmup_replicas > 0:
        now = group.unlogged._replace(refined=RefinedTargets(found.epoch, refined))
        group.set_unlogged(now, state.num_appends)
    target = refined.get(member.member_id, NOTHING)
    new = TaskReconciliation(group, found.epoch, target, _owned(request)).next(member)
    if new != member:
        records.append(group.current_record(new))
        arm_or_cancel_rebalance(state, group.group_id, new)
    return new


def _owned(request: wire.StreamsGroupHeartbeat) -> GroupTasks | None:
    sent = [role for role in request.roles if role is not None]
    return GroupTasks(*map(task_set, sent)) if len(sent) == len(request.roles) else None
