# SPDX-License-Identifier: Apache-2.0
"""Decides which offsets the next micro-batch reads, within one limit for all partitions.

Offsets are the JSON that Spark keeps, such as {"0": 183}: partition number -> next offset.
"""

from collections.abc import Mapping
from itertools import pairwise

from kafka_rebalance.errors import ClusterError
from kafka_rebalance.live.log_records import Bounds

Offsets = dict[str, int]


def beginning(bounds: Mapping[int, Bounds]) -> Offsets:
    """Returns the beginning of a new stream: partition -> its earliest offset."""
    return {str(partition): one.earliest for partition, one in bounds.items()}


def next_end(
    start: Mapping[str, int],
    bounds: Mapping[int, Bounds],
    *,
    limit: int | None = None,
    target: Mapping[str, int] | None = None,
) -> Offsets:
    """Returns the end of the micro-batch that begins at `start`.

    1. A partition that `start` lacks begins at its earliest offset.
    2. A partition can be read up to its last stable offset, but not beyond `target`.
    3. If more than `limit` offsets can be read, each partition gets a share of the limit in
       proportion to its number of readable offsets, but at least one if it has any.

    No end is below its start, although a new leader's last stable offset can be too low at first.
    Errors: ClusterError if a log ends below a partition's start: the topic was created again.
    """
    starts = {**beginning(bounds), **start}
    can_be_read = {}
    for partition, one in bounds.items():
        key = str(partition)
        if one.high_watermark < starts[key]:
            raise ClusterError(
                f"partition {partition}: its log ends at {one.high_watermark}, and the stream is "
                f"at {starts[key]}: the topic was made again; read it into another table, with "
                "another checkpoint"
            )
        end = one.last_stable if target is None else min(one.last_stable, target.get(key, 0))
        can_be_read[key] = max(0, end - starts[key])
    total = sum(can_be_read.values())
    if limit is None or total <= limit:
        return {key: at + can_be_read.get(key, 0) for key, at in starts.items()}
    parts = {key: min(n, max(1, n * limit // total)) for key, n in can_be_read.items()}
    return {key: at + parts.get(key, 0) for key, at in starts.items()}


def ranges(start: int, end: int, longest: int) -> list[tuple[int, int]]:
    """Splits [start, end) into ranges of about equal size, at most `longest` offsets each."""
    count = -(-max(0, end - start) // longest)
    cuts = [start + (end - start) * n // count for n in range(count)] + [end]
    return list(pairwise(cuts)) if count else []
