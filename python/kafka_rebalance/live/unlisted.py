# SPDX-License-Identifier: Apache-2.0
"""Finds which groups a list of groups misses because brokers are down.

Each broker lists the groups whose partition of `__consumer_offsets` it leads, so groups are missing

1. if a broker does not answer;
2. if a partition of `__consumer_offsets` has no leader. The broker that led it is then no longer in
   the metadata, and all others answer.

Nobody knows the ids of these groups, so the problems name the brokers and the partitions.

Source   GroupMetadataManager.partitionFor, ListGroups, Metadata (Kafka 4.4.0).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .committed_offsets import NO_LEADER

OFFSETS_TOPIC = "__consumer_offsets"

_PARTITIONS_NAMED = 10


def problems(silent: Mapping[int, str], offsets_topic: Mapping[str, Any]) -> Iterator[str]:
    """Yields a sentence, without its full stop, for each cause that groups are missing.

    `silent` is broker -> error. `offsets_topic` is the topic's metadata; without the permission to
    describe it, it has no partitions.
    """
    # 1.
    for broker, error in silent.items():
        yield f"broker {broker} does not list its groups ({error}), so they are missing"
    # 2.
    partitions = offsets_topic["partitions"]
    numbers = [int(one["partition_index"]) for one in partitions if one["leader_id"] == NO_LEADER]
    if numbers:
        which = without_leader(numbers, len(partitions))
        yield f"{which}, so the groups of these partitions are missing"


def without_leader(numbers: Iterable[int], total: int) -> str:
    """Returns the clause that names partitions of `__consumer_offsets` without a live leader."""
    lost = sorted(numbers)
    more = len(lost) - _PARTITIONS_NAMED
    names = ", ".join(map(str, lost[:_PARTITIONS_NAMED]))
    names += f" and {more} more" if more > 0 else ""
    which = f"{len(lost)} of {total} partitions of {OFFSETS_TOPIC} ({names})"
    return f"{which} {'has' if len(lost) == 1 else 'have'} no live leader"
