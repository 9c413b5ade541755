# SPDX-License-Identifier: Apache-2.0
"""The weights of a group in whole numbers, for `weighted`.

A member's *level*, how full it is, is the sum of the weights of its partitions, times its factor.
Factors are in inverse proportion to the capacities: members with equal levels are equally full.
Levels are compared instead of fractions, so no answer depends on the rounding of a machine.

Numbers  weights count in millionths. An unknown weight is the lower median of the known weights of
         its topic, else of all topics, else 1. If the sum of all weights has more than 56 bits,
         each weight loses its last bits. Factors are exact if the capacities have a small common
         multiple, else they are rounded to a thousandth or less. Levels fit in 106 bits.
Mirror   `src/assignors/balance/weights.rs`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd, lcm

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.java.order import name_key

from .classes import Classes, classify

NOBODY = -1
_MILLION, _MOST_BITS, _FACTOR_BITS = 10**6, 56, 10


@dataclass(slots=True)
class Loads:
    """Partitions and members as numbers. The fields from `parts` on hold those still to be decided.

    Partition i is `partitions[i]`: they are sorted by weight, the heaviest first, then by topic and
    number. Member m is `members[m]`, an index in the group: static members come first, by instance
    id, then the others by member id. A *pool* is a subscription class and a factor.

    `scale`     the level of a member whose weights add up to its capacity, if `shift` is 0
    `shift`     by how many bits the weights are shifted right
    `pools_of`  subscription class -> its pools
    `reads`     topic class -> the pools of its subscribers
    `owner`     partition -> its present owner, or NOBODY
    """

    classes: Classes
    partitions: list[TopicPartition]
    weight: list[int]
    topic_class: list[int]
    members: list[int]
    factor: list[int]
    pool_of: list[int]
    pools_of: list[list[int]]
    reads: list[list[int]]
    scale: int
    shift: int
    parts: list[int]
    owner: list[int]
    pools: list[list[int]]

    def level(self, member: int, load: int) -> int:
        return load * self.factor[member]

    def room(self, member: int, level: int) -> int:
        """Returns the largest load at which the member's level is at most `level`."""
        return level // self.factor[member]

    def readers(self, part: int) -> list[int]:
        return self.reads[self.topic_class[part]]

    def fullest(
        self, group: GroupSpec, assignment: Mapping[str, Sequence[TopicPartition]]
    ) -> tuple[str, float]:
        """Returns the id of the fullest member, and its level divided by the mean level.

        The mean is the level of all members if the total weight made them equally full.
        """
        weight = dict(zip(self.partitions, self.weight, strict=True))
        ids = [group.members[m].member_id for m in self.members]
        owned = (sum(weight.get(tp, 0) for tp in assignment[one]) for one in ids)
        most, m = max((self.level(m, load), -m) for m, load in enumerate(owned))
        mean = sum(self.weight) / sum(1 / factor for factor in self.factor)
        return ids[-m], most / mean if mean else 1.0

    def without(self, gone: set[int], where: list[int]) -> "Loads":
        """Returns the loads still to decide if the members in `gone` keep their partitions."""
        owner = [NOBODY if m in gone else m for m in self.owner]
        pools = [[m for m in pool if m not in gone] for pool in self.pools]
        left = [i for i in self.parts if where[i] not in gone]
        return replace(self, parts=left, owner=owner, pools=pools)


def loads_of(group: GroupSpec) -> Loads:
    """Returns the weights and capacities of a group in whole numbers."""
    classes = classify(group)
    weights = _weights(group, classes)
    place = {topic: name_key(topic) for topic in weights}
    found = [(w, TopicPartition(t, p)) for t, of in weights.items() for p, w in enumerate(of)]
    shift = max(0, sum(w for w, _ in found).bit_length() - _MOST_BITS)
    found.sort(key=lambda one: (-(one[0] >> shift), place[one[1].topic], one[1].partition))
    factor, scale = _factors([group.members[m].capacity or 1 for m in classes.order])
    number = {m: n for n, m in enumerate(classes.order)}
    pools: dict[tuple[int, int], list[int]] = {}
    for n, m in enumerate(classes.order):
        pools.setdefault((classes.class_of_member[m], factor[n]), []).append(n)
    pools_of: list[list[int]] = [[] for _ in classes.members]
    for q, (k, _) in enumerate(pools):
        pools_of[k].append(q)
    return Loads(
        classes=classes,
        partitions=[tp for _, tp in found],
        weight=[w >> shift for w, _ in found],
        topic_class=[classes.class_of_topic[tp.topic] for _, tp in found],
        members=classes.order,
        factor=factor,
        pool_of=[q for _, q in sorted((n, q) for q, of in enumerate(pools.values()) for n in of)],
        pools_of=pools_of,
        reads=[sorted(q for k in of for q in pools_of[k]) for of in classes.subscribers],
        scale=scale,
        shift=shift,
        parts=list(range(len(found))),
        owner=[number.get(classes.owner.get(tp, NOBODY), NOBODY) for _, tp in found],
        pools=list(pools.values()),
    )


def _weights(group: GroupSpec, classes: Classes) -> dict[str, list[int]]:
    """Returns the weights, in millionths, of each topic that a member reads."""
    given = {}
    for topic in group.topics:
        weights = topic.weights or (None,) * topic.partitions
        given[topic.name] = [None if w is None else _millionths(w) for w in weights]
    everything = _median([w for of in given.values() for w in of if w is not None], _MILLION)
    found = {}
    for name in given.keys() & classes.class_of_topic.keys():
        usual = _median([w for w in given[name] if w is not None], everything)
        found[name] = [usual if w is None else w for w in given[name]]
    return found


def _millionths(number: float) -> int:
    whole = int(number)
    return whole * _MILLION + int((number - whole) * 1e6 + 0.5)


def _median(numbers: list[int], default: int) -> int:
    return sorted(numbers)[(len(numbers) - 1) // 2] if numbers else default


def _factors(capacities: list[float]) -> tuple[list[int], int]:
    """Returns a whole factor for each member, and the level of a member whose weights add up to its
    capacity. Weights are multiplied by the factor instead of being divided by the capacity.
    """
    given = [_millionths(one) for one in capacities]
    common = gcd(*given)
    given = [one // common for one in given]
    most = min(lcm(*given), max(given) << _FACTOR_BITS)
    return [(2 * most + one) // (2 * one) or 1 for one in given], most * common
