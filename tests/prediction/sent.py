"""What the assignor sees of a member, from what the member sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_rebalance import Member, wire

from .log import subscription_of

if TYPE_CHECKING:
    from kafka_rebalance.wire.group_records import MemberMetadata


def sent(member: MemberMetadata, assignor: str) -> Member:
    """A member of the contract from a member of a record."""
    subscription = subscription_of(member)
    owned, generation_id = (), None
    if assignor == "sticky" and subscription.user_data:
        history = wire.decode_sticky_user_data(subscription.user_data)
        owned, generation_id = history.owned_partitions, history.generation_id
    elif assignor == "cooperative-sticky":
        owned, generation_id = subscription.owned_partitions, subscription.generation_id
        if subscription.version < 2 and subscription.user_data:
            generation_id = wire.decode_cooperative_user_data(subscription.user_data)
    return Member(
        member.member_id,
        subscription.topics,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        owned_partitions=owned,
        generation_id=generation_id,
        rack_id=subscription.rack_id,
    )
