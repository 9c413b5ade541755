# SPDX-License-Identifier: Apache-2.0
"""Targets of partitions in broker-assigned groups: in memory, and as an assignor reads them.

Targets are computed if the group's epoch is larger than theirs, but not within the assignment
interval after the last targets. Until then, members are reconciled with the old targets. A record
is written for each member whose target has changed, then one for their epoch.

Source   GroupMetadataManager.maybeUpdateTargetAssignment, TargetAssignmentBuilder (Kafka 4.4.0).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from kafka_rebalance.assignors.consumer import targets
from kafka_rebalance.errors import AssignorThrows
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import Member
from kafka_rebalance.java.hash_map import HashMap, HashSet, Uuid, integer_hash
from kafka_rebalance.wire.broker_groups import DescribedPartitions
from kafka_rebalance.wire.error_codes import ErrorCode

from ..machine.state import Shard
from . import log
from .group import Names
from .members import RequestRefused
from .table_order import topic_table

Target = Mapping[Uuid, tuple[int, ...]]
"""Partitions by topic id, in the order of Kafka's hash maps."""

NO_TARGET: Target = {}


class EpochChange(Frozen):
    """A request's change to a group: `member` replaces `old`, which can have another id.

    `topics` holds the names of all subscribed topics; `is_new` is True if the change starts a new
    epoch. The steps of the request add their records to `records`.
    """

    group: Any
    old: Any
    member: Any
    records: log.Records
    epoch: int
    is_homogeneous: bool
    topics: Iterable[str] = ()
    is_new: bool = False


def group_view(
    state: Shard,
    change: EpochChange,
    present: Mapping[str, Target | None],
    members: Mapping[str, Any],
    names_of: Callable[[Any], Names],
) -> targets.View:
    """Returns a group as an assignor reads it, with all topics of the cluster.

    `present` holds the present targets of all members, in the order in which the assignor sees
    them.
    """
    cluster = state.cluster
    views = []
    for member_id, target in present.items():
        one, names = members[member_id], names_of(members[member_id])
        member = Member(member_id, (), group_instance_id=one.instance_id)
        has = (target or NO_TARGET).items()
        table = topic_table({topic: HashSet.copied(integer_hash, each) for topic, each in has})
        ids = tuple(cluster.ids(names))
        views.append(targets.MemberView(member, len(names), ids, table))
    return targets.View(
        tuple(views),
        {topic: one.partitions for topic, one in cluster.by_id.items()},
        {topic: one.name for topic, one in cluster.by_id.items()},
        change.is_homogeneous,
    )


def with_epoch(
    state: Shard, change: EpochChange, topics: Iterable[str], *, is_new: bool
) -> EpochChange:
    """Returns the change, with the next epoch if `is_new` or if the topics' metadata changed."""
    group, epoch = change.group, change.group.epoch
    metadata_hash = state.cluster.hash_of(topics)
    is_new |= metadata_hash != group.metadata_hash
    if is_new:
        epoch += 1
        change.records.append(group.epoch_record(epoch, metadata_hash))
    group.refreshed(state.now_ms, epoch)
    return replace(change, epoch=epoch, is_new=is_new)


Answer = Mapping[str, HashMap[Uuid, Any]]
"""An assignor's answer: member id -> topic id -> partitions."""


def target_for(
    state: Shard,
    change: EpochChange,
    compute: Callable[[], tuple[Answer, Mapping[str, Target | None]]],
) -> tuple[int, Target]:
    """Returns the epoch and the target with which the member is reconciled.

    `compute` returns an assignor's answer and the present targets; the latter have the order in
    which records are written.
    Errors: RequestRefused if the assignor throws.
    """
    group, member = change.group, change.member
    interval = getattr(
        state.config_of(group.group_id), f"group_{group.group_type}_assignment_interval_ms"
    )
    if group.assignment_epoch >= change.epoch or group.has_recent_targets(interval, state.now_ms):
        return group.assignment_epoch, group.target_of(member) or NO_TARGET
    try:
        answer, present = compute()
    except AssignorThrows as error:
        raise RequestRefused(ErrorCode.UNKNOWN_SERVER_ERROR) from error
    for member_id, before in present.items():
        new = _target_in(answer, member_id)
        if before is None or _content(before) != _content(new):
            change.records.append(group.target_record(member_id, new))
    change.records.append(group.target_epoch_record(change.epoch, state.now_ms))
    return change.epoch, _target_in(answer, member.member_id)


def _target_in(answer: Answer, member_id: str) -> Target:
    """Returns the target that an assignor computed for a member."""
    found = answer.get(member_id)
    return {} if found is None else {topic: tuple(numbers) for topic, numbers in found.items()}


def _content(target: Target) -> dict[Uuid, frozenset[int]]:
    return {topic: frozenset(numbers) for topic, numbers in target.items()}


def described_partitions(
    state: Shard, partitions: Mapping[Uuid, Iterable[int]]
) -> tuple[DescribedPartitions, ...]:
    """Returns the partitions with their topics' names, without topics that do not exist."""
    known = state.cluster.by_id
    return tuple(
        DescribedPartitions(topic, known[topic].name, tuple(numbers))
        for topic, numbers in partitions.items()
        if topic in known
    )
