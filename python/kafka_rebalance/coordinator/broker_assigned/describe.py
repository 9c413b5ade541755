# SPDX-License-Identifier: Apache-2.0
"""Describes groups to administrators, at once, as the log has them.

Groups with an empty id are first in the response, as INVALID_GROUP_ID. An absent group, and one of
another kind, is GROUP_ID_NOT_FOUND.

Source   GroupCoordinatorService.consumerGroupDescribe, shareGroupDescribe, streamsGroupDescribe;
         GroupMetadataManager.consumerGroupDescribe and its twins (Kafka 4.4.0).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.wire.broker_groups import (
    DescribedPartitions,
)
from kafka_rebalance.wire.error_codes import ErrorCode

from ..machine.state import CoordinatorState

_Group = TypeVar("_Group")
_Described = TypeVar("_Described")


def described_groups(
    state: CoordinatorState,
    group_ids: tuple[str, ...],
    kind: type[_Group],
    describe: Callable[[_Group], _Described],
    refuse: Callable[..., _Described],
) -> tuple[_Described, ...]:
    """Returns the descriptions of the groups of this kind; `refuse` describes another group."""
    described = [refuse(error_code=ErrorCode.INVALID_GROUP_ID) for one in group_ids if not one]
    for group_id in filter(None, group_ids):
        group = state.durable_group(group_id)
        if isinstance(group, kind):
            described.append(describe(group))
        else:
            described.append(refuse(error_code=ErrorCode.GROUP_ID_NOT_FOUND, group_id=group_id))
    return tuple(described)


def described_partitions(
    state: CoordinatorState, partitions: Mapping[Uuid, Iterable[int]]
) -> tuple[DescribedPartitions, ...]:
    """Returns the partitions of topics that exist."""
    known = state.cluster.by_id
    return tuple(
        DescribedPartitions(topic, known[topic].name, tuple(numbers))
        for topic, numbers in partitions.items()
        if topic in known
    )
