# SPDX-License-Identifier: Apache-2.0
"""A consumer's work as the leader of a classic group: members' subscriptions, and assignments."""

from collections.abc import Iterable, Mapping

from kafka_rebalance.assignors.interface import Assignor
from kafka_rebalance.group.model import Topic
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.wire.classic_groups import JoinedMember
from kafka_rebalance.wire.consumer_protocol import (
    AssignmentData,
    Subscription,
    decode_subscription,
    encode_assignment,
)
from kafka_rebalance.wire.sent_members import sent_member

_NO_LIMIT = 2**31 - 1


def assignments(
    assignor: Assignor, members: Iterable[JoinedMember], topics: Mapping[str, Topic]
) -> tuple[tuple[str, bytes], ...]:
    """Returns pairs (member id, encoded assignment). Errors: WireError, AssignorThrows."""
    known = tuple(
        sent_member(
            one.member_id,
            decode_subscription(one.metadata),
            assignor.name,
            group_instance_id=one.group_instance_id,
        )
        for one in members
    )
    wanted = dict.fromkeys(topic for member in known for topic in member.topics)
    there = tuple(topics[topic] for topic in wanted if topic in topics)
    given = assignor.assign(GroupSpec("", there, known, max_partitions=_NO_LIMIT))
    return tuple(
        (one.member_id, encode_assignment(AssignmentData(tuple(given.get(one.member_id, ())))))
        for one in known
    )


def subscribed_topics(members: Iterable[JoinedMember]) -> frozenset[str]:
    subscriptions: Iterable[Subscription] = (decode_subscription(one.metadata) for one in members)
    return frozenset(topic for sent in subscriptions for topic in sent.topics)
