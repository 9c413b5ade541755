# SPDX-License-Identifier: Apache-2.0
"""Which offsets the next micro-batch reads: a limit shared over partitions, and errors.

Offsets of a stream are the JSON that Spark keeps in its checkpoint: {"0": 183, "1": 278}, the next
offset of each partition by the partition's number as text.
"""

from collections.abc import Mapping
from itertools import pairwise

from kafka_rebalance.live import ClusterError
from kafka_rebalance.live.log_records import Bounds

Offsets = dict[str, int]


def beginning(bounds: Mapping[int, Bounds]) -> Offsets:
    """Returns the offsets of a stream that has read nothing."""
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
    2. A partition can be read up to its last stable offset, and not beyond `target`.
    3. If more than `limit` offsets can be read, each partition gets its part of the limit, in
       proportion to what can be read there, and at least one offset.

    No end is below its start: after a change of leaders the last stable offset can lag.
    Errors: ClusterError if a high watermark is below its start, for then the topic was made anew.
    """
    starts = {**beginning(bounds), **start}
    can_be_read = {}
    for partition, one in bounds.items():
        key = str(partition)
        if one.high_watermark < starts[key]:
            raise ClusterError(
                f"partition {partition}: its log ends at {one.high_watermark}, and the stream is "
                f"at {starts[key]}: the topic was made anew; read it into another table, with "
                "another checkpoint"
            )
        end = one.last_stable if target is None else min(one.last_stable, target.get(key, 0))
        can_be_read[key] = max(0, end - starts[key])
    total = sum(can_be_read.values())
    if limit is None or total <= limit:
        return {key: at + can_be_read.get(key, 0) for key, at in starts.items()}
    return {key: at + _part(can_be_read.get(key, 0), limit, total) for key, at in starts.items()}


def _part(left: int, limit: int, total: int) -> int:
    return min(left, max(1, left * limit // total))


def ranges(start: int, end: int, longest: int) -> list[tuple[int, int]]:
    """Splits [start, end) into ranges of at most `longest` offsets, equal but for one offset."""
    count = -(-max(0, end - start) // longest)
    cuts = [start + (end - start) * n // count for n in range(count)] + [end]
    return list(pairwise(cuts)) if count else []
