# SPDX-License-Identifier: Apache-2.0
"""What the members of a sticky group claim to own, and whom to believe.

What a member sent becomes its claims in one place, `Sent`, by the assignor that reads it:

    assignor             claims of                     generation of the claims
    sticky               the user data                 the user data's, else none
    cooperative-sticky   the subscription's field      the field's, else the user data's, else none

The field of the partitions exists from subscription version 1 on, that of the generation from 2.

Then a walk over the members in hash order settles, partition by partition, who of several
claimants is believed. The walk also finds out whether all subscriptions are equal, which decides
between the constrained and the general algorithm.

1. A claim counts when its topic exists; neither the partition number nor the member's own
   subscription is checked.
2. A first claim is believed. A second one of a newer generation replaces it, an older one is lost;
   of the same generation, nobody is believed, and the partition is *multiply owned* for good.
3. All subscriptions are equal when each has as many entries as the first non-empty one has topics,
   and no other topics. Members before the first non-empty subscription are not looked at: an
   empty one hashed before the others goes unnoticed, and is then given partitions.

Source   AbstractStickyAssignor.allSubscriptionsEqual, memberData of both assignors (Kafka 4.4.0).
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_rebalance.group.model import Member, TopicPartition
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.java.order import java_grouping_order, java_hash_order, name_key

from .subscriptions import members_in_order

NO_GENERATION = -1


class Sent(NamedTuple):
    """What one member claims.

    `generation` is that of its claims. `field_generation` is that of the subscription's own field:
    a later claimant's generation is held against this one.
    """

    partitions: list[TopicPartition]
    generation: int
    field_generation: int


@dataclass(slots=True)
class Claims:
    """`owned` is in the hash order of the believed owners' table, its lists as they were sent."""

    members: list[Member]
    counts: dict[str, int]  # partitions of each subscribed topic that exists
    sent: dict[str, Sent]  # claims as sent, believed or not
    owned: dict[str, list[TopicPartition]]  # believed claims
    multiply_owned: set[TopicPartition] = field(default_factory=set)
    max_generation: int = NO_GENERATION
    equal_subscriptions: bool = True


def settle(group: GroupSpec, sent: dict[str, Sent]) -> Claims:
    """Settles the claims that each member sent."""
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
    # Last: a member that claims twice may be the other itself, and then loses the entry just added.
    if tp in claims.owned[other.member_id]:
        claims.owned[other.member_id].remove(tp)
    claimant[tp] = member


def sent_by_sticky(member: Member) -> Sent:
    """What StickyAssignor reads: only the user data, of which the generation is a part."""
    generation = user_data_generation(member)
    return Sent(_in_user_data(member), generation, field_generation(member))


def sent_by_cooperative(member: Member) -> Sent:
    """What CooperativeStickyAssignor reads: the fields, and the user data without a generation."""
    generation = field_generation(member)
    if generation == NO_GENERATION:
        generation = user_data_generation(member)
    return Sent(_in_field(member), generation, field_generation(member))


def user_data_generation(member: Member) -> int:
    """The generation in a member's user data."""
    if member.user_data is not None:
        return NO_GENERATION
    generation = member.user_data_generation_id
    if generation is None:
        generation = member.generation_id
    return NO_GENERATION if generation is None else generation


def field_generation(member: Member) -> int:
    """The generation in the subscription's own field, where a negative one is none."""
    if member.version < 2 or member.generation_id is None:
        return NO_GENERATION
    return max(NO_GENERATION, member.generation_id)


def _in_user_data(member: Member) -> list[TopicPartition]:
    """Owned partitions as they stand in sticky's user data: grouped through a hash map."""
    owned = member.owned_partitions
    if member.user_data == "none":
        return []
    if member.subscription_version is not None:
        return list(owned)
    topics = java_grouping_order([tp.topic for tp in owned])
    places = {topic: place for place, topic in enumerate(topics)}
    return sorted(owned, key=lambda tp: places[tp.topic])


def _in_field(member: Member) -> list[TopicPartition]:
    """Owned partitions as they stand in the subscription's field: by topic and partition."""
    if member.version < 1:
        return []
    if member.subscription_version is not None:
        return list(member.owned_partitions)
    return sorted(member.owned_partitions, key=lambda tp: (name_key(tp.topic), tp.partition))
