# SPDX-License-Identifier: Apache-2.0
"""The partitions of an assignment as columns: `topic_ids` (indexes into `topics`), `partitions`."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral

import kafka_rebalance._core as _core
from kafka_rebalance.errors import GroupError

from .field_paths import MAX_INT32
from .model import TopicPartition, quoted

# Makes a TopicPartition without its constructor, in about a third of the constructor's time.
_PAIR: Callable[[tuple[str, int]], TopicPartition] = partial(tuple.__new__, TopicPartition)

NO_PAIRS = "not a list of TopicPartition(topic, partition), a str and an int"


def check_pairs(
    member_ids: tuple[str, ...],
    topics: tuple[str, ...],
    offsets: Sequence[int],
    topic_ids: Sequence[int],
    partitions: Sequence[int],
) -> None:
    """Raises GroupError unless all pairs are (str, int), and each int is from 0 to 2^31-1.

    The error's path is `members["ID"]`.
    """
    # The types and the extreme numbers of all pairs are checked first; the loop over the pairs,
    # which is slower, only runs to find a wrong one.
    are_right = all(isinstance(topic, str) for topic in topics)
    are_right = are_right and all(map(_is_integer, set(map(type, partitions))))
    if are_right and 0 <= min(partitions, default=0) <= max(partitions, default=0) <= MAX_INT32:
        return
    for i, partition in enumerate(partitions):
        at = f"members[{quoted(member_ids[bisect_right(offsets, i) - 1])}]"
        if not (_is_integer(type(partition)) and isinstance(topics[topic_ids[i]], str)):
            raise GroupError(at, NO_PAIRS)
        if not 0 <= partition <= MAX_INT32:
            raise GroupError(at, f"{partition} is not a partition from 0 to {MAX_INT32}")


def _is_integer(kind: type) -> bool:
    return issubclass(kind, Integral) and not issubclass(kind, bool)


def named_partitions(
    topics: tuple[str, ...],
    topic_ids: Sequence[int],
    partitions: Sequence[int],
    group: "_core.Interned | None" = None,
) -> tuple[TopicPartition, ...]:
    """Makes partitions from two columns; `topic_ids` holds indexes into `topics`.

    The core makes them from its own columns (memoryviews), ten times faster in CPython 3.11 to
    3.13 (for later versions, see `are_alike` in partitions.rs). From other columns, Python makes
    them: a custom assignor may return numbers that the core cannot read.
    """
    if isinstance(topic_ids, memoryview):
        return _core.topic_partitions(topics, topic_ids, partitions, group)
    return tuple(map(_PAIR, zip(map(topics.__getitem__, topic_ids), partitions, strict=True)))
