# SPDX-License-Identifier: Apache-2.0
"""The checks of streams groups (KIP-1071): unique subtopology ids, and the number of tasks.

The mirror is `src/group/streams.rs`.
"""

from collections.abc import Sequence

from kafka_rebalance.errors import GroupError

from .contract import check_new
from .field_paths import MAX_INT32
from .model import Subtopology


def all_tasks(subtopologies: Sequence[Subtopology], standby_replicas: int) -> int:
    """Returns the number of active tasks and of standby tasks together."""
    return sum(one.tasks * (1 + standby_replicas * one.stateful) for one in subtopologies)


def check_topology(
    subtopologies: Sequence[Subtopology], standby_replicas: int | None, max_tasks: int
) -> None:
    """Checks ids and counts. Errors: GroupError with the field's path."""
    ids: dict[str, str] = {}
    for i, one in enumerate(subtopologies):
        check_new(ids, one.subtopology_id, f"subtopologies[{i}]", "subtopology_id")
    total, limit = all_tasks(subtopologies, standby_replicas or 0), min(max_tasks, MAX_INT32)
    if total > limit:
        raise GroupError(
            "subtopologies",
            f"{total} active and standby tasks in all, more than the limit of {limit}; "
            "raise max_partitions if that is meant",
        )
