# SPDX-License-Identifier: Apache-2.0
"""Decides which member of a sticky group owns each partition, from the members' claims.

A member sends claims in up to two places. The assignor decides which place it reads (`Sent`):

    assignor             reads the claims in           and their generation in
    sticky               the user data                 the user data
    cooperative-sticky   the subscription's field      the field; if it has none, the user data

The subscription has a field for partitions from version 1 on, for the generation from version 2 on.

`settle` visits the members in hash order (the order of the leader's `HashMap`), and each member's
claims in the order sent. It also tests whether all subscriptions are equal: if they are, the
constrained algorithm assigns next, else the general one.

1. A claim counts if its topic exists and some member subscribes to the topic. The claiming member
   itself need not subscribe to it, and the partition number may be too large.
2. The first claim to a partition is believed. A later claim of a newer generation replaces it; a
   later claim of an older generation is ignored. If the generations are equal, neither claim is
   believed, and the partition is *multiply owned* from then on.
3. The first non-empty subscription is the reference. The subscriptions are equal if each later one
   has as many entries as the reference has topics, and no other topics. Empty subscriptions before
   the reference count as equal, and their members get partitions, too.

Source   AbstractStickyAssignor.allSubscriptionsEqual, memberData of both assignors (Kafka 4.4.0).
"""

from collections.abc import Sequence
from dataclasses import field
from typing import NamedTuple

from kafka_rebalance.frozen import Mutable
from kafka_rebalance.group.model import Member, TopicPartition
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.java.order import java_grouping_order, java_hash_order, name_key
from kafka_rebalance.wire.consumer_protocol import (
    encode_cooperative_user_data,
    encode_sticky_user_data,
)

from .subscriptions import members_in_order

NO_GENERATION = -1


class Sent(NamedTuple):
    """The claims of one member to partitions, with their `generation`.

    `field_generation` is the generation in the field of the member's subscription. If two members
    claim a partition, Kafka compares the `generation` of the later member with the
    `field_generation` of the earlier one.
    """

    partitions: list[TopicPartition]
    generation: int
    field_generation: int


class Claims(Mutable):
    """The claims after `settle`. The members in `owned` are in the order of Kafka's hash map."""

    members: list[Member]
    counts: dict[str, int]  # numbers of partitions of the subscribed topics that exist
    sent: dict[str, Sent]  # all claims, even those that do not count
    owned: dict[str, list[TopicPartition]]  # the claims that count, in the order sent
    multiply_owned: set[TopicPartition] = field(default_factory=set)
    max_generation: int = NO_GENERATION
    equal_subscriptions: bool = True


def settle(group: GroupSpec, sent: dict[str, Sent]) -> Claims:
    """Returns the claims that count; `sent` holds the claims of each member."""
    members = members_in_order(group)
    subscribed = {topic for member in members for topic in member.topics}
    counts = {t: n for t, n in group.partition_counts().items() if t in subscribed}
    order = java_hash_order([member.member_id for member in members])
    claims = Claims(members, counts, sent, {member_id: [] for member_id in order})
    reference: set[str] = set()
    claimant: dict[TopicPartition, Member] = {}
    for member in members:
        # 3.
        if not reference:
            reference = set(member.topics)
        elif len(member.topics) != len(reference) or not reference.issuperset(member.topics):
            claims.equal_subscriptions = False
        own = sent[member.member_id]
        claims.max_generation = max(claims.max_generation, own.generation)
        # 1.
        for tp in own.partitions:
            if tp.topic in counts:
                _claim(claims, claimant, member, tp)
    return claims


def _claim(
    claims: Claims, claimant: dict[TopicPartition, Member], member: Member, tp: TopicPartition
) -> None:
    # 2.
    other = claimant.get(tp)
    if other is None:
        claims.owned[member.member_id].append(tp)
        claimant[tp] = member
        return
    generation = claims.sent[member.member_id].generation
    other_generation = claims.sent[other.member_id].field_generation
    if generation < other_generation:
        return
    if generation == other_generation:
        claims.multiply_owned.add(tp)
    else:
        claims.owned[member.member_id].append(tp)
    # As in Kafka, the removal comes last: if `other` is `member` itself, the member loses an entry
    # of its own.
    if tp in claims.owned[other.member_id]:
        claims.owned[other.member_id].remove(tp)
    claimant[tp] = member


def sent_by_sticky(member: Member) -> Sent:
    """Returns the claims that StickyAssignor reads, which are in the user data."""
    generation = user_data_generation(member)
    return Sent(_in_user_data(member), generation, field_generation(member))


def sent_by_cooperative(member: Member) -> Sent:
    """Returns the claims in the subscription's fields.

    If the fields have no generation, the generation in the user data counts.
    """
    generation = field_generation(member)
    if generation == NO_GENERATION:
        generation = user_data_generation(member)
    return Sent(_in_field(member), generation, field_generation(member))


def sticky_user_data(owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
    """Returns the user data of StickyAssignor; None before the member's first assignment."""
    return None if owned is None else encode_sticky_user_data(owned, generation)


def cooperative_user_data(_: Sequence[TopicPartition] | None, generation: int) -> bytes:
    return encode_cooperative_user_data(generation)


def user_data_generation(member: Member) -> int:
    if member.user_data is not None:
        return NO_GENERATION
    generation = member.user_data_generation_id
    if generation is None:
        generation = member.generation_id
    return NO_GENERATION if generation is None else generation


def field_generation(member: Member) -> int:
    """Returns the generation in the field of a member's subscription; -1 if there is none."""
    if member.version < 2 or member.generation_id is None:
        return NO_GENERATION
    return max(NO_GENERATION, member.generation_id)


def _in_user_data(member: Member) -> list[TopicPartition]:
    """Returns owned partitions in the user data's order: topics in hash order, or as sent."""
    owned = member.owned_partitions
    if member.user_data == "none":
        return []
    if member.subscription_version is not None:
        return list(owned)
    topics = java_grouping_order([tp.topic for tp in owned])
    places = {topic: place for place, topic in enumerate(topics)}
    return sorted(owned, key=lambda tp: places[tp.topic])


def _in_field(member: Member) -> list[TopicPartition]:
    """Returns owned partitions in the order of the subscription's field: topic, then partition."""
    if member.version < 1:
        return []
    if member.subscription_version is not None:
        return list(member.owned_partitions)
    return sorted(member.owned_partitions, key=lambda tp: (name_key(tp.topic), tp.partition))
