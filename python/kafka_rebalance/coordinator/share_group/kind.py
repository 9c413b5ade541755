# SPDX-License-Identifier: Apache-2.0
"""The functions of share groups, which are never classic groups and have no offsets (KIP-932).

ShareGroupHeartbeat: a member joins or stays, and learns its partitions.

1. The request's fields.
2. The group, room for the member, its epoch.
3. The member's fields, the group's epoch and the targets (`broker_assigned/target.py`).
4. This member's step to its target. Other members do not matter: partitions are shared.
5. Partitions whose share state is not initialised (`initialization.py`).

The response contains an assignment if the member joins or sends topic names, or if its partitions
have changed.

Source   GroupCoordinatorService.shareGroupHeartbeat, GroupMetadataManager (shareGroupHeartbeat,
         shareGroupLeave, initializedAssignmentPending, replay), ShareGroupAssignmentBuilder,
         ShareGroup.asDescribedGroup, ShareGroupMember (Builder, asShareGroupDescribeMember)
         (Kafka 4.4.0); docs/behaviour/share-groups.md#2-heartbeats.
"""

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any

from kafka_rebalance.assignors.share import simple
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.java.order import java_hash_order
from kafka_rebalance.wire import broker_records as wire
from kafka_rebalance.wire.broker_groups import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    DescribedPartitions,
    DescribedShareMember,
    ShareGroupHeartbeat,
    TopicPartitions,
)
from kafka_rebalance.wire.broker_records import BrokerRecord
from kafka_rebalance.wire.error_codes import ErrorCode

from ..broker_assigned import log
from ..broker_assigned.group import ReconciliationState
from ..broker_assigned.kind import BrokerAssigned
from ..broker_assigned.members import RequestRefused, check_epoch, is_blank, known_member, updated
from ..broker_assigned.records import target_topics
from ..broker_assigned.table_order import by_topic_id, copied_map_slots, in_copied_set
from ..broker_assigned.target import (
    Answer,
    EpochChange,
    Target,
    described_partitions,
    group_view,
    target_for,
    with_epoch,
)
from ..machine.deadlines import SESSION
from ..machine.events import Received
from ..machine.state import Shard
from .group import (
    NamedPartitions,
    Partitions,
    ShareGroup,
    ShareGroupMember,
    ShareState,
    StateTopics,
    is_homogeneous,
)
from .initialization import ask_for_share_state, forget_topics, mark_share_state


def share_step(
    member: ShareGroupMember,
    epoch: int,
    target: Target,
    topics: Collection[Uuid],
    *,
    is_new_epoch: bool,
) -> ShareGroupMember:
    """Returns the member after a step; `topics` holds the ids of its subscribed topics."""
    if epoch != member.member_epoch:
        return replace(
            member,
            state=ReconciliationState.STABLE,
            assigned=_selected(target, topics),
            member_epoch=epoch,
            previous_member_epoch=member.member_epoch,
        )
    if is_new_epoch:
        return replace(member, assigned=_selected(target, topics))
    return member


def _selected(target: Target, topics: Collection[Uuid]) -> Partitions:
    """Returns the target's partitions in `topics`, reordered if the target has more topics."""
    partitions = {topic: dict.fromkeys(numbers) for topic, numbers in target.items()}
    if all(topic in topics for topic in partitions):
        return partitions
    copied = by_topic_id(partitions, copied_map_slots(len(partitions)))
    return {topic: each for topic, each in copied.items() if topic in topics}


def refuse_fields(_state: Shard, request: ShareGroupHeartbeat, _version: int | None) -> ErrorCode:
    """Returns the error if the request's fields are missing or contradictory, else NONE."""
    # 1.
    texts = (request.member_id, request.group_id, request.rack_id)
    joins_without = request.member_epoch == JOIN_EPOCH and not request.subscribed_topic_names
    if any(map(is_blank, texts)) or joins_without or request.member_epoch < LEAVE_EPOCH:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def beat(kind: BrokerAssigned, state: Shard, event: Received, request: ShareGroupHeartbeat) -> None:
    """Answers the heartbeat of a member that joins or stays. Errors: RequestRefused."""
    # 2.
    group, _ = kind.group_for(state, request, [])
    member_id = request.member_id
    kind.check_room(state, group, member_id)
    if request.member_epoch != JOIN_EPOCH:
        check_epoch(known_member(group, member_id), request.member_epoch)
    if member_id in group.members:
        _answer(kind, state, event, request, group, group)
        return
    joined = group.copy()
    joined.member(member_id)
    try:
        _answer(kind, state, event, request, group, joined)
    except RequestRefused:
        # Quirk: if the assignor throws, the new member is in the group, but not in the log.
        group.member(member_id)
        raise


def _answer(
    kind: BrokerAssigned,
    state: Shard,
    event: Received,
    request: ShareGroupHeartbeat,
    group: ShareGroup,
    joined: ShareGroup,
) -> None:
    """Answers the heartbeat of a member; `joined` is the group with this member."""
    records: log.Records = []
    # 3.
    old = joined.members[request.member_id]
    new = updated(old, event, request, ("rack_id", "subscribed_topic_names"))
    if new != old:
        records.append(group.member_record(new))
    every = joined.is_homogeneous
    change = EpochChange(joined, old, new, records, joined.epoch, every, joined.counts)
    change = next_epoch(state, change)
    group.refresh_at = joined.refresh_at
    epoch, target = target_for(state, change, partial(targets_of, state, change))
    # 4.
    topics = frozenset(state.cluster.ids(new.subscribed_topic_names))
    stepped = share_step(new, epoch, target, topics, is_new_epoch=change.is_new)
    if stepped != new:
        records.append(group.current_record(stepped))
    # 5.
    due = ask_for_share_state(state, joined, change.topics, records)
    has_names = request.subscribed_topic_names is not None
    shows = request.member_epoch == JOIN_EPOCH or has_names or old.assigned != stepped.assigned
    shown = target_topics(stepped.assigned) if shows else None
    kind.answer(state, event, group, stepped, records, due=due, assignment=shown)


# Epochs and targets -------------------------------------------------------------------------------


def next_epoch(state: Shard, change: EpochChange) -> EpochChange:
    """Returns the change, with the next epoch if topic names, partitions or metadata changed."""
    # 3.
    group, old, new = change.group, change.old, change.member
    is_new = new.subscribed_topic_names != old.subscribed_topic_names
    if group.assignment_epoch >= group.epoch:
        is_new |= group.misses_initialized_partitions()
    if not is_new and not group.must_refresh(state.now_ms):
        return change
    counts = group.counts_with(old, new)
    every = is_homogeneous((count for _, count in counts.items()), len(group.members))
    change = replace(change, is_homogeneous=every, topics=counts)
    return with_epoch(state, change, counts, is_new=is_new)


def targets_of(state: Shard, change: EpochChange) -> tuple[Answer, dict[str, Target | None]]:
    """Returns the new targets, and the present ones in Kafka's order. Errors: AssignorThrows."""
    group, cluster = change.group, state.cluster
    members = {**dict(group.members.items()), change.member.member_id: change.member}
    present = {one: group.targets.get(one) for one in java_hash_order(list(group.members))}
    view = group_view(state, change, present, members, attrgetter("subscribed_topic_names"))
    initialized = {} if group.share_state is None else group.share_state.initialized
    assignable = {
        topic: [p for p in range(one.partitions) if p in initialized[topic].partitions]
        for topic, one in cluster.by_id.items()
        if topic in initialized
    }
    return simple.targets_of(view, assignable), present


# The kind ----------------------------------------------------------------------------------------

_ASSIGNOR = "simple"


class ShareGroups(BrokerAssigned):
    group_class = ShareGroup
    member_class = ShareGroupMember
    described_member = DescribedShareMember
    deadline_kinds = (SESSION,)
    becomes_classic = False
    refuse_fields = staticmethod(refuse_fields)
    beat = beat
    starts_deletion = staticmethod(mark_share_state)
    topics_deleted = staticmethod(forget_topics)

    def epoch_without(
        self, state: Shard, group: ShareGroup, members: list[ShareGroupMember]
    ) -> list[BrokerRecord]:
        (member,) = members
        metadata_hash = state.cluster.hash_of(group.counts_with(member, None))
        return [group.epoch_record(group.epoch + 1, metadata_hash)]

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

    def bury_other(self, group: ShareGroup, role: str, name: str) -> None:
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
