# SPDX-License-Identifier: Apache-2.0
"""What the members of a group have to read: records a second, and records not yet read.

A partition that several members share counts for each of them with an equal part.
"""

import math
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.field_paths import a_type
from kafka_rebalance.group.model import TopicPartition, quoted
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec, partition_or_task_counts
from kafka_rebalance.plans.explanation import partition_from_text

Given = Mapping[TopicPartition, float] | Mapping[str, float] | Mapping[TopicPartition | str, float]
"""Partition or topic -> a number; that of a topic is spread evenly over its partitions."""


class MemberLoad(NamedTuple):
    """The records that arrive for a member each second, and those that wait for it."""

    rate: float
    lag: float


class Load(NamedTuple):
    """Each partition's records a second and its lag, or None if not known; others have 0.

    `capacity` is how many records a second one member can read.
    """

    rate: Mapping[TopicPartition, float] | None
    lag: Mapping[TopicPartition, float] | None
    capacity: float | None

    @property
    def is_known(self) -> bool:
        """Returns whether `choose` can compare counts by it."""
        return self.capacity is not None and (self.rate is not None or self.lag is not None)

    def of_members(self, assignment: Assignment) -> tuple[MemberLoad, ...]:
        """Returns the load of each member, in the order of the assignment."""
        readers = Counter(tp for owned in assignment.values() for tp in owned)
        rate, lag = (
            {tp: (given or {}).get(tp, 0.0) / count for tp, count in readers.items()}
            for given in (self.rate, self.lag)
        )
        return tuple(
            MemberLoad(math.fsum(rate[tp] for tp in owned), math.fsum(lag[tp] for tp in owned))
            for owned in assignment.values()
        )

    def catch_up_s(self, members: tuple[MemberLoad, ...]) -> float | None:
        """Returns the seconds until no record waits; infinite if a member never catches up.

        None if the lag or the capacity is not known.
        """
        if self.lag is None or self.capacity is None:
            return None
        free = [(lag, self.capacity - rate) for rate, lag in members]
        waits = (lag / rest if rest > 0 else math.inf for lag, rest in free if lag or rest < 0)
        return max(waits, default=0.0)


def load_of(
    group: GroupSpec, rate: Given | None, lag: Given | None, capacity: float | None
) -> Load:
    """Returns the load of a group. Errors: GroupError at `rate`, `lag` or `capacity`; TypeError."""
    if capacity is not None and not _number("capacity", capacity):
        raise GroupError("capacity", "0 is not a number of records a second above 0")
    return Load(_spread(group, "rate", rate), _spread(group, "lag", lag), capacity)


def _spread(
    group: GroupSpec, path: str, given: Given | None
) -> Mapping[TopicPartition, float] | None:
    """Returns partition -> number. The number of a partition replaces that of its topic."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise TypeError(f"{path}: {a_type(given)} is not a mapping; give {{topic: number}}")
    counts = partition_or_task_counts(group)
    spread: dict[TopicPartition, float] = {}
    own: dict[TopicPartition, float] = {}
    for name, number in given.items():
        value = _number(path, number)
        if isinstance(name, str) and name in counts:
            each = [TopicPartition(name, p) for p in range(counts[name])]
            spread |= {tp: value / len(each) for tp in each}
            continue
        try:
            tp = partition_from_text(name) if isinstance(name, str) else TopicPartition(*name)
        except GroupError:
            tp = TopicPartition(str(name), 0)
        if tp.partition >= counts.get(tp.topic, 0):
            raise GroupError(path, f"the group has no topic or partition {quoted(str(name))}")
        own[tp] = value
    return spread | own


def _number(path: str, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{path}: {value!r} is not a number")
    if not 0 <= value < math.inf:
        raise GroupError(path, f"{value} is not a number from 0 on")
    return float(value)
