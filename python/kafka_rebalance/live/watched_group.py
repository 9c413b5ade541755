# SPDX-License-Identifier: Apache-2.0
"""Follows a live group by its descriptions, and yields each state in which it has settled.

1. The group is described again and again; a group that is rebalancing, empty or unknown is waited
   for.
2. It has settled if several descriptions in a row are equal: more if a partition has no owner,
   because a cooperative group may then be between two rounds.
3. A settled state is yielded if it differs from the one yielded before.

Reading changes nothing. Rebalances between two settled states are seen as one.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any

from kafka_rebalance.group.spec import GroupSpec

from .consumer_groups import snapshot

EVERY_S = 0.5
_EQUAL, _EQUAL_WITH_HOLES = 3, 12
"""How many equal descriptions in a row mean that the group has settled; holes are partitions that
have no owner."""


def settled_states(
    bootstrap_server: str,
    group_id: str,
    *,
    configs: Mapping[str, Any] | None = None,
    every_s: float = EVERY_S,
    for_s: float | None = None,
) -> Iterator[GroupSpec]:
    """Yields the group each time it has settled in another state; ends after `for_s` seconds.

    Errors: ClusterError, and GroupError for a description that is no valid group.
    """
    ends_s = None if for_s is None else time.monotonic() + for_s
    last: dict[str, Any] = {}
    yielded: dict[str, Any] | None = None
    equal = 0
    while ends_s is None or time.monotonic() < ends_s:
        (line,) = snapshot(bootstrap_server, [group_id], configs=configs)
        equal = equal + 1 if line == last else 1
        last = line
        if "error" not in line and line != yielded:
            group = GroupSpec.from_dict(line)
            if equal >= (_EQUAL_WITH_HOLES if _has_holes(group) else _EQUAL):
                yielded = line
                yield group
        time.sleep(every_s)


def _has_holes(group: GroupSpec) -> bool:
    subscribed = {topic for member in group.members for topic in member.topics}
    counts = group.partition_counts()
    owned = {tp for member in group.members for tp in member.owned_partitions}
    return len(owned) < sum(counts.get(topic, 0) for topic in subscribed)
