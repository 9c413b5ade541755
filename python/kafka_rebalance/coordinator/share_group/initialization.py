# SPDX-License-Identifier: Apache-2.0
"""Asks the host to initialise the share state of new partitions, and forgets it for deleted topics.

1. A heartbeat that finds subscribed partitions without share state writes a record that they are
   being initialised. After 30 s, a heartbeat asks again.
2. The host initialises the partitions of ShareStateDue, and passes this effect back. The next
   record lists them as initialised. If its append fails, they are forgotten, so that a later
   heartbeat asks again.
3. Partitions of deleted topics are forgotten. Before a group with a share state record is deleted,
   a new record marks its share state as deleting, even if no partition has any left.

Source   GroupMetadataManager (maybeCreateInitializeShareGroupStateRequest,
         subscribedTopicsChangeMap, initializeShareGroupState, maybeCleanupShareGroupState,
         shareGroupBuildPartitionDeleteRequest) (Kafka 4.4.0);
         docs/behaviour/share-groups.md#3-share-state.
"""

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial

from kafka_rebalance.java.hash_map import HashMap, Uuid, uuid_hash
from kafka_rebalance.java.timeline_hash_map import TimelineHashMap
from kafka_rebalance.wire.broker_records import BrokerRecord
from kafka_rebalance.wire.classic_groups import DeleteGroups
from kafka_rebalance.wire.error_codes import ErrorCode

from ..broker_assigned import log
from ..broker_assigned.members import RequestRefused
from ..broker_assigned.table_order import by_topic_id, copied_map_slots, in_new_map
from ..machine.events import Continuation, ShareStateDue
from ..machine.state import Shard, of_kind
from ..offsets.requests import ContinueDeletion
from .group import (
    NamedPartitions,
    ShareGroup,
    ShareState,
    StateTopics,
    combined,
    without_partitions,
)


def mark_share_state(
    state: Shard, request_id: int, request: DeleteGroups, group_ids: tuple[str, ...]
) -> bool:
    """Marks share state of the first empty group with any as deleting; returns whether it did."""
    for at, group_id in enumerate(group_ids):
        group = of_kind(state.groups.get(group_id), ShareGroup)
        if group is not None and group.share_state is not None and group.is_empty:
            then = ContinueDeletion(request_id, request, group_ids[at + 1 :])
            record = group.share_state_record({}, {}, _topics(state, group))
            log.write(state, group_id, [record], then)
            return True
    return False


def _topics(state: Shard, group: ShareGroup) -> dict[Uuid, str]:
    known = group.share_state
    if known is None:
        return {}
    topics = combined(known.initialized, known.initializing)
    by_id = state.cluster.by_id
    again = {
        topic: NamedPartitions(by_id[topic].name, ()) for topic in known.deleting if topic in by_id
    }
    if again:
        topics = combined(topics, by_topic_id(again))
    return by_topic_id({topic: named.name for topic, named in topics.items()})


_UNKNOWN_NAME = "<UNKNOWN>"


def ask_for_share_state(
    state: Shard, group: ShareGroup, names: Iterable[str], records: log.Records
) -> ShareStateDue | None:
    """Returns the partitions that the host must initialise, and adds their record, if any."""
    # 1.
    asked = _uninitialized(state, group.share_state, names)
    if not asked:
        return None
    known = group.share_state or ShareState({}, {}, (), state.now_ms)
    initializing = asked if group.share_state is None else combined(known.initializing, asked)
    deleting = tuple(topic for topic in known.deleting if topic not in initializing)
    new = replace(known, initializing=initializing, deleting=deleting)
    records.append(_record(state, group, new))
    partitions = tuple((topic, one.partitions) for topic, one in asked.items())
    return ShareStateDue(group.group_id, partitions)


def _uninitialized(state: Shard, known: ShareState | None, names: Iterable[str]) -> StateTopics:
    there: StateTopics = {}
    if known is not None:
        retry_ms = state.config.group_share_initialize_retry_interval_ms
        is_recent = state.now_ms - known.since_ms < retry_ms
        there = combined(known.initialized, known.initializing if is_recent else {})
    table = HashMap[Uuid, NamedPartitions](uuid_hash)
    for name in names:
        topic = state.cluster.topics.get(name)
        if topic is None:
            continue
        has = there[topic.topic_id].partitions if topic.topic_id in there else ()
        if len(has) < topic.partitions:
            left = tuple(p for p in range(topic.partitions) if p not in has)
            table.compute_if_absent(topic.topic_id, partial(NamedPartitions, name, left))
    return dict(table.items())


def share_state_initialized(state: Shard, due: ShareStateDue) -> None:
    """Writes the record that the share coordinator has initialised the partitions."""
    # 2.
    group = of_kind(state.groups.get(due.group_id), ShareGroup)
    if group is None:
        return
    done = _done(state, due)
    known = group.share_state or ShareState({}, {}, (), state.now_ms)
    initialized = done if group.share_state is None else combined(known.initialized, done)
    left = without_partitions(known.initializing, dict(due.partitions))
    new = replace(known, initializing=left, initialized=initialized)
    _write(state, group, new, ForgetInitializing(due))


def _done(state: Shard, due: ShareStateDue) -> StateTopics:
    """Returns the partitions of `due` with their topics' names, in the order of Java's maps."""
    sets = by_topic_id({topic: in_new_map(partitions) for topic, partitions in due.partitions})
    return by_topic_id(
        {topic: NamedPartitions(_name(state, topic), tuple(one)) for topic, one in sets.items()}
    )


class ForgetInitializing(Continuation):
    """If the append fails, the share state of `due` counts as not initialised."""

    due: ShareStateDue

    def failed(self, state: Shard, error: ErrorCode) -> None:
        group = of_kind(state.groups.get(self.due.group_id), ShareGroup)
        if error is ErrorCode.NOT_COORDINATOR or group is None or group.share_state is None:
            return
        if known := group.share_state.initializing:
            left = without_partitions(known, dict(self.due.partitions))
            _write(state, group, replace(group.share_state, initializing=left))


def forget_topics(state: Shard, topic_ids: Collection[Uuid]) -> None:
    """Forgets the share state of deleted topics, in all groups."""
    # 3.
    order = TimelineHashMap[str, ShareGroup]()
    for group in (of_kind(one, ShareGroup) for one in state.groups.values()):
        if group is not None and group.share_state is not None:
            order.put(group.group_id, group)
    for group in order.values():
        known = group.share_state
        if known is None:
            continue
        every = {*known.initializing, *known.initialized, *known.deleting}
        if every.isdisjoint(topic_ids):
            continue
        new = replace(
            known,
            initializing=_without_topics(known.initializing, topic_ids),
            initialized=_without_topics(known.initialized, topic_ids),
            deleting=tuple(one for one in known.deleting if one not in topic_ids),
        )
        _write(state, group, new)


def _without_topics(topics: StateTopics, gone: Collection[Uuid]) -> StateTopics:
    copied = by_topic_id(topics, copied_map_slots(len(topics)))
    return {topic: named for topic, named in copied.items() if topic not in gone}


def _record(state: Shard, group: ShareGroup, new: ShareState) -> BrokerRecord:
    """Returns the record of a share state; topics in deletion have their present names."""
    deleting = by_topic_id({topic: _name(state, topic) for topic in new.deleting})
    return group.share_state_record(new.initializing, new.initialized, deleting)


def _name(state: Shard, topic: Uuid) -> str:
    known = state.cluster.by_id.get(topic)
    return _UNKNOWN_NAME if known is None else known.name


def _write(
    state: Shard, group: ShareGroup, new: ShareState, then: Continuation | None = None
) -> None:
    with suppress(RequestRefused):
        log.write(state, group.group_id, [_record(state, group, new)], then)
