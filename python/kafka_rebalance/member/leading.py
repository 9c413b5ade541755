# SPDX-License-Identifier: Apache-2.0
"""What a leader does with its members' metadata: the assignor's work, and what it watches.

Source   ConsumerCoordinator.onLeaderElected; KIP-881 (racks are watched where the client has one).
"""

from collections.abc import Iterable, Mapping

from kafka_rebalance.assignors.interface import Assignor
from kafka_rebalance.group.model import Topic
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.protocol import JoinedMember
from kafka_rebalance.wire import (
    AssignmentData,
    Subscription,
    decode_subscription,
    encode_assignment,
    sent_member,
)

Snapshot = tuple[Topic, ...]

_NO_LIMIT = 2**31 - 1


def assignments(
    assignor: Assignor, members: Iterable[JoinedMember], topics: Mapping[str, Topic]
) -> tuple[tuple[str, bytes], ...]:
    """(member id, assignment in bytes) of every member.

    Topics without metadata are left out. Errors: WireError for metadata that cannot be read,
    AssignorThrows where Kafka's class throws.
    """
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
    """Topics of all members: what a leader watches."""
    subscriptions: Iterable[Subscription] = (decode_subscription(one.metadata) for one in members)
    return frozenset(topic for sent in subscriptions for topic in sent.topics)


def snapshot(topics: Mapping[str, Topic], names: Iterable[str], *, racks: bool) -> Snapshot:
    """What would make an assignment outdated: counts, and racks where the client has one."""
    there = (topics[name] for name in sorted(names) if name in topics)
    return tuple(one if racks else Topic(one.name, one.partitions) for one in there)
