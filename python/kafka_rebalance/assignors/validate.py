# SPDX-License-Identifier: Apache-2.0
"""Checks a cooperative answer of a custom assignor, as Kafka's leader does.

Source   ConsumerCoordinator.validateCooperativeAssignment (Kafka 4.4.0), which does not check
         Kafka's own cooperative-sticky; KIP-429.
"""

from collections.abc import Mapping, Sequence

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.ownership import Assignment, Delta
from kafka_rebalance.group.spec import GroupSpec


def validate_cooperative(
    group: GroupSpec, assignment: Mapping[str, Sequence[TopicPartition]]
) -> None:
    """Raises a GroupError if a partition is assigned that another member must first revoke."""
    transferring = Delta.between(Assignment.owned(group), Assignment.of(assignment)).transferring
    for member_id, partitions in transferring.items():
        if partitions:
            raise GroupError(
                "assignment",
                f"{partitions[0]} is given to {member_id} while another member still owns it; "
                "a cooperative assignor first lets it be revoked, and assigns it a round later",
            )
