# SPDX-License-Identifier: Apache-2.0
"""Adds up the lag of partitions, of which some may have no committed offset.

Without a committed offset it is unknown where the group begins to read, so the lag is unknown: it
is None, never 0. `lags` contains an entry for each partition with a committed offset.
"""

from collections.abc import Collection, Mapping

from kafka_rebalance.group.model import TopicPartition

Lags = Mapping[TopicPartition, int]


def lag_in(lags: Lags | None, partitions: Collection[TopicPartition]) -> int | None:
    """Returns the records not yet consumed in the partitions whose lag is known.

    Returns None if the offsets were not read, or if no partition's lag is known; 0 without
    partitions.
    """
    if lags is None:
        return None
    known = [lags[tp] for tp in partitions if tp in lags]
    return sum(known) if known or not partitions else None


def without_committed_offset(
    lags: Lags | None, partitions: Collection[TopicPartition]
) -> int | None:
    """Returns how many partitions have no committed offset; None if the offsets were not read."""
    return None if lags is None else sum(tp not in lags for tp in {*partitions})
