# SPDX-License-Identifier: Apache-2.0
"""What the members of a group have to read: records a second, and records not yet read.

All values are of partitions. A partition that several members share counts for each of them with
an equal part.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.field_paths import a_type
from kafka_rebalance.group.model import TopicPartition, quoted
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec, partition_or_task_counts
from kafka_rebalance.plans.explanation import partition_from_text

Given = Mapping[TopicPartition | str, float]
"""Partition or topic -> a number; that of a topic is spread evenly over its partitions."""


class MemberLoad(NamedTuple):
    """The records that arrive for a member each second, and those that wait for it."""

    rate: float
    lag: float


class Load(NamedTuple):
    """Each partition's records a second and its lag; a partition that is not listed has 0.

    None if they are not known. `capacity` is how many records a second one member can read.
    """

    rate: Mapping[TopicPartition, float] | None
    lag: Mapping[TopicPartition, float] | None
    capacity: float | None

    def of_members(self, assignment: Assignment) -> tuple[MemberLoad, ...]:
        """Returns the load of each member, in the order of the assignment."""
        readers = Counter(tp for owned in assignment.values() for tp in owned)
        rate, lag = self.rate or {}, self.lag or {}
        return tuple(
            MemberLoad(
                math.fsum(rate.get(tp, 0.0) / readers[tp] for tp in owned),
                math.fsum(lag.get(tp, 0.0) / readers[tp] for tp in owned),
            )
            for owned in assignment.values()
        )

    def rate_of(self, partitions: Iterable[TopicPartition]) -> float:
        return math.fsum((self.rate or {}).get(tp, 0.0) for tp in partitions)

    def catch_up_s(self, members: Iterable[MemberLoad]) -> float | None:
        """Returns the seconds until no record waits; infinite if a member never catches up.

        None if the lag or the capacity is not known.
        """
        if self.lag is None or self.capacity is None:
            return None
        free = ((one, self.capacity - one.rate) for one in members)
        return max(
            (one.lag / rest if rest > 0 else math.inf for one, rest in free if one.lag or rest < 0),
            default=0.0,
        )


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
    of_topics: dict[TopicPartition, float] = {}
    of_partitions: dict[TopicPartition, float] = {}
    for name, number in given.items():
        value = _number(path, number)
        if isinstance(name, str) and name in counts:
            each = range(counts[name])
            of_topics |= {TopicPartition(name, p): value / len(each) for p in each}
            continue
        try:
            tp = partition_from_text(name) if isinstance(name, str) else TopicPartition(*name)
        except GroupError:
            raise GroupError(path, f"the group has no topic {quoted(str(name))}") from None
        if tp.partition >= counts.get(tp.topic, 0):
            raise GroupError(path, f"the group has no topic or partition {quoted(str(tp))}")
        of_partitions[tp] = value
    return of_topics | of_partitions


def _number(path: str, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{path}: {value!r} is not a number")
    if not 0 <= value < math.inf:
        raise GroupError(path, f"{value} is not a number from 0 on")
    return float(value)
