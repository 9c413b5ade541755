# SPDX-License-Identifier: Apache-2.0
"""Reports that a group of kafka-python or librdkafka can have more rebalances than a plan counts.

kafka-python: a member's `poll` waits for its rebalance, up to the timeout of the call. If the
rebalance ends between two calls, the next one drops its answer and joins again. When the leader
joins, the group rebalances; when another member joins with the same subscription, it does not.

librdkafka: each member joins again when its own metadata shows that a topic has grown; in Java only
the leader looks. If the group has rebalanced by then, the member's subscription has other owned
partitions under cooperative-sticky, so the group rebalances again.

Source   kafka-python 3.0.12 (BaseCoordinator.join_group_async: a `_join_task` that is done);
         librdkafka (rd_kafka_cgrp_metadata_update_check); Kafka 4.4.0
         (GroupMetadataManager.classicGroupJoinExistingMember).
"""

from collections.abc import Sequence

from kafka_rebalance.assignors.registry import SERVER_SIDE, protocol_name
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.changes import AddPartitions, Change
from kafka_rebalance.plans.clients import AIOKAFKA, KAFKA_PYTHON, LIBRDKAFKA, clients_for

_LOWER_BOUND = (
    "The number of rebalances is a lower bound: if one ends between two polls of a kafka-python "
    "leader, it joins again, and the group rebalances once more; under sticky, partitions may move "
    "again."
)


_ON_GROWTH = (
    "The number of rebalances is a lower bound: each member of librdkafka joins again when it sees "
    "the new partitions itself. If the group has rebalanced by then, it rebalances once more."
)


def extra_rebalances_note(group: GroupSpec, changes: Sequence[Change]) -> str | None:
    """Returns a sentence if a member may join once more than planned.

    Such a member runs kafka-python, or one of the two Python libraries; or it runs librdkafka with
    cooperative-sticky, and a topic grows.
    """
    if group.assignor in SERVER_SIDE:
        return None
    python = {KAFKA_PYTHON, AIOKAFKA}
    runs = [clients_for(member, group.group_id) for member in group.members]
    if any(KAFKA_PYTHON in clients and python.issuperset(clients) for clients in runs):
        return _LOWER_BOUND
    grows = any(isinstance(change, AddPartitions) for change in changes)
    cooperative = protocol_name(group.assignor or "") == "cooperative-sticky"
    return _ON_GROWTH if grows and cooperative and (LIBRDKAFKA,) in runs else None
