# SPDX-License-Identifier: Apache-2.0
"""Runs the assignor for a leading consumer, and finds the topics that the leader watches.

Source   ConsumerCoordinator.onLeaderElected; KIP-881 (a leader with a rack watches racks).
"""

from collections.abc import Iterable, Mapping

from kafka_rebalance.assignors.interface import Assignor
from kafka_rebalance.group.model import Topic
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.wire import (
    AssignmentData,
    Subscription,
    decode_subscription,
    encode_assignment,
    sent_member,
)
from kafka_rebalance.wire.classic_groups import JoinedMember

Snapshot = tuple[Topic, ...]

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
    """Returns the topics of all members; a leader watches them for changes."""
    subscriptions: Iterable[Subscription] = (decode_subscription(one.metadata) for one in members)
    return frozenset(topic for sent in subscriptions for topic in sent.topics)


def snapshot(topics: Mapping[str, Topic], names: Iterable[str], *, racks: bool) -> Snapshot:
    """Returns the data that an assignment depends on: partition counts, and optionally racks."""
    there = (topics[name] for name in sorted(names) if name in topics)
    return tuple(one if racks else Topic(one.name, one.partitions) for one in there)
