# SPDX-License-Identifier: Apache-2.0
"""Reports that a group of kafka-python can have more rebalances than a plan counts.

A member's `poll` waits for its rebalance, up to the timeout of the call. If the rebalance ends
between two calls, the next one drops its answer and joins again. When the leader joins, the group
rebalances; when another member joins with the same subscription, it does not.

Source   kafka-python 3.0.12 (BaseCoordinator.join_group_async: a `_join_task` that is done); Kafka
         4.4.0 (GroupMetadataManager.classicGroupJoinExistingMember).
"""

from kafka_rebalance.assignors.registry import SERVER_SIDE
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.clients import AIOKAFKA, KAFKA_PYTHON, clients_for

_LOWER_BOUND = (
    "The number of rebalances is a lower bound: if one ends between two polls of a kafka-python "
    "leader, it joins again, and the group rebalances once more; under sticky, partitions may move "
    "again."
)


def extra_rebalances_note(group: GroupSpec) -> str | None:
    """Returns a sentence if a member runs kafka-python, or one of the two Python libraries."""
    if group.assignor in SERVER_SIDE:
        return None
    python = {KAFKA_PYTHON, AIOKAFKA}
    for member in group.members:
        clients = clients_for(member, group.group_id)
        if KAFKA_PYTHON in clients and python.issuperset(clients):
            return _LOWER_BOUND
    return None
