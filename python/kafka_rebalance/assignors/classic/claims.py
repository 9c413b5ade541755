"""What the members of a sticky group say that they own, and whom to believe.

Walks the members in hash order and settles, partition by partition, who of several claimants is
believed; at the same time it finds out whether all subscriptions are equal, which decides between
the constrained and the general algorithm.

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

from kafka_rebalance.model import GroupSpec, Member, TopicPartition
from kafka_rebalance.order import java_grouping_order, java_hash_order, name_key

from .subscriptions import members_in_order

NO_GENERATION = -1


@dataclass(slots=True)
class Claims:
    """`owned` is in the hash order of the believed owners' table, its lists as they were sent."""

    members: list[Member]
    counts: dict[str, int]  # partitions of each subscribed topic that exists
    sent: dict[str, list[TopicPartition]]  # claims as sent, believed or not
    owned: dict[str, list[TopicPartition]]  # believed claims
    multiply_owned: set[TopicPartition] = field(default_factory=set)
    max_generation: int = NO_GENERATION
    equal_subscriptions: bool = True


def settle(group: GroupSpec, sent: dict[str, list[TopicPartition]]) -> Claims:
    """Settles the claims; `sent` are each member's owned partitions in the order of its bytes."""
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
        claims.max_generation = max(claims.max_generation, user_generation(member))
        # 1.
        for tp in sent[member.member_id]:
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
    # The other's generation is the one in the subscription's field, not in its user data.
    generation, other_generation = user_generation(member), field_generation(other)
    if generation < other_generation:
        return
    if tp in claims.owned[other.member_id]:
        claims.owned[other.member_id].remove(tp)
    if generation == other_generation:
        claims.multiply_owned.add(tp)
    else:
        claims.owned[member.member_id].append(tp)
    claimant[tp] = member


def user_generation(member: Member) -> int:
    """The generation that a claim carries."""
    return NO_GENERATION if member.generation_id is None else member.generation_id


def field_generation(member: Member) -> int:
    """The generation in the subscription's own field, where a negative one is none."""
    return max(NO_GENERATION, user_generation(member))


def sent_by_sticky(member: Member) -> list[TopicPartition]:
    """Owned partitions in the order of StickyAssignor's user data: grouped through a hash map."""
    topics = java_grouping_order([tp.topic for tp in member.owned_partitions])
    places = {topic: place for place, topic in enumerate(topics)}
    return sorted(member.owned_partitions, key=lambda tp: places[tp.topic])


def sent_by_cooperative(member: Member) -> list[TopicPartition]:
    """Owned partitions in the order of the subscription's own field: by topic and partition."""
    return sorted(member.owned_partitions, key=lambda tp: (name_key(tp.topic), tp.partition))
