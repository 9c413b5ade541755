# SPDX-License-Identifier: Apache-2.0
"""Decides which member owns each partition, as librdkafka's cooperative-sticky does.

1. The *holder* of a partition is the last member that claims it, whatever its generation.
2. The claims to a partition are sorted by generation. If two neighbours in this order have equal
   generations, the partition has no owner and no holder.
3. Else the newest claim decides the *owner*, and the second newest the previous owner. If the last
   claim is not the newest, the holder is not the owner; both are recorded.

Order    librdkafka's hash map lists the newest key first and the oldest last, so this file reads
         dicts in reverse.
Source   librdkafka 2.16 (prepopulateCurrentAssignments).
Differs  from Kafka's general algorithm: there, a partition has no owner only if its two newest
         claims have equal generations.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from kafka_rebalance.assignors.classic.claims import NO_GENERATION, Sent
from kafka_rebalance.group.model import Member, TopicPartition

from .movements import dies
from .subscriptions import merge_sort


class _Claim(NamedTuple):
    member_id: str
    generation: int


@dataclass(slots=True)
class Settled:
    """The claims after `settle`. `owned` holds a list for each member, in the group's order."""

    owned: dict[str, list[TopicPartition]]
    holder: dict[TopicPartition, str] = field(default_factory=dict)
    previous: dict[TopicPartition, str] = field(default_factory=dict)


def settle(members: Sequence[Member]) -> Settled:
    if any(member.version == 0 for member in members):
        raise dies("a subscription has no owned partitions, because its version is 0")
    settled = Settled({member.member_id: [] for member in members})
    claims: dict[TopicPartition, list[_Claim]] = {}
    # 1.
    for member in members:
        partitions, generation, _ = sent(member)
        for tp in partitions:
            claims.setdefault(tp, []).append(_Claim(member.member_id, generation))
            settled.holder[tp] = member.member_id
    for tp, of_partition in reversed(claims.items()):
        oldest_first = merge_sort(of_partition, _compare)
        generations = [claim.generation for claim in oldest_first]
        # 2.
        if any(a == b for a, b in pairwise(generations)):
            del settled.holder[tp]
            continue
        # 3.
        settled.owned[oldest_first[-1].member_id].append(tp)
        if len(oldest_first) > 1:
            settled.previous[tp] = oldest_first[-2].member_id
    return settled


def sent(member: Member) -> Sent:
    """Returns the claims in the fields of a member's subscription, in the order of its bytes."""
    generation = NO_GENERATION
    if member.version >= 2 and member.generation_id is not None:
        generation = member.generation_id
    return Sent(list(member.owned_partitions), generation, generation)


def _compare(a: _Claim, b: _Claim) -> int:
    """Compares generations by their difference in 32 bits, which can overflow."""
    return (a.generation - b.generation + 2**31) % 2**32 - 2**31
