# SPDX-License-Identifier: Apache-2.0
"""The first step of the deletion of a share group: its share state is marked as being deleted.

Then the share coordinator deletes the share state, and the group's tombstones follow, as for any
other group. The mark is written even if no partition has share state.

Differs  the host is not asked to delete the share state: the share coordinator's part always works.
Source   GroupCoordinatorShard.sharePartitionDeleteRequests,
         GroupMetadataManager.shareGroupBuildPartitionDeleteRequest (Kafka 4.4.0).
"""

from kafka_rebalance.java.hash_map import HashMap, Uuid, uuid_hash
from kafka_rebalance.wire.classic_groups import DeleteGroups

from ..assigning_group import log
from ..continuations import ContinueDeletion
from ..coordinator_state import CoordinatorState
from .group import ShareGroup
from .records import share_state_record
from .share_state import NamedPartitions, combined


def mark_share_state(
    state: CoordinatorState, request_id: int, request: DeleteGroups, group_ids: tuple[str, ...]
) -> bool:
    """Writes that the share state of one group is deleted; returns whether a group has any.

    It is the first of the groups with share state. The deletion goes on with the groups behind it
    when the record is durable.
    """
    for at, group_id in enumerate(group_ids):
        group = state.groups.get(group_id)
        if isinstance(group, ShareGroup) and group.share_state is not None and group.is_empty:
            then = ContinueDeletion(request_id, request, group_ids[at + 1 :])
            record = share_state_record(group_id, {}, {}, _topics(state, group))
            log.write(state, group_id, [record], then)
            return True
    return False


def _topics(state: CoordinatorState, group: ShareGroup) -> dict[Uuid, str]:
    known = group.share_state
    if known is None:
        return {}
    topics = combined(known.initialized, known.initializing)
    again = HashMap[Uuid, NamedPartitions](uuid_hash)
    for topic in known.deleting:
        if topic in state.cluster.by_id:
            again.put(topic, NamedPartitions(state.cluster.by_id[topic].name, ()))
    if len(again):
        topics = combined(topics, dict(again.items()))
    table = HashMap[Uuid, str](uuid_hash)
    for topic, named in topics.items():
        table.put(topic, named.name)
    return dict(table.items())
