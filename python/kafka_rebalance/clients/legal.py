# SPDX-License-Identifier: Apache-2.0
"""Computes a leader's answer: that of Kafka's class, unless it would end or hang consumers.

1. Kafka's assignor computes an answer. It is sent even if it has anomalies, which are logged,
   except in the cases of steps 2 and 3.
2. If a member would receive a topic that it does not subscribe to, aiokafka's consumer would end
   with an AssertionError, and other clients would join again with equal claims for ever. So Kafka's
   assignor computes a second answer, without members that subscribe to nothing, and without the
   claims that no member can keep: claims to topics that the member does not subscribe to, and to
   partitions that do not exist. It also does so if the first call throws or never ends.
3. If the second call has one of these problems too, or would get the input of the first call, range
   computes the answer of this generation: range needs no claims, and always has an answer. In a
   cooperative group, no member gets a partition that another member claims until the next
   generation, as with Kafka's cooperative assignor.

A leader that raised an exception would end its own consumer. After the session timeout, the next
leader would end too.

Errors   none.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from kafka_rebalance.assignors import assign
from kafka_rebalance.errors import KafkaRebalanceError
from kafka_rebalance.group.model import Member, Topic, TopicPartition
from kafka_rebalance.group.ownership import Anomaly
from kafka_rebalance.group.spec import GroupSpec

from .caller import log

LegalAnswer = Mapping[str, Sequence[TopicPartition]]

_COOPERATIVE = "cooperative-sticky"
_NO_LIMIT = 2**31 - 1
_SHOWN = 5


def legal(
    group_id: str, topics: tuple[Topic, ...], members: tuple[Member, ...], assignor: str
) -> LegalAnswer:
    """Returns each member's partitions; `members` are in join order."""
    for attempt in _attempts(topics, members):
        try:
            spec = GroupSpec(group_id, topics, attempt, max_partitions=_NO_LIMIT)
            answer = assign(spec, assignor)
        except KafkaRebalanceError as error:
            log.error("group %s: %s", group_id, error)
            continue
        if answer.anomalies:
            log.warning("group %s: %s", group_id, _told(answer.anomalies))
        if all(anomaly.kind != "unsubscribed" for anomaly in answer.anomalies):
            return {member.member_id: answer.get(member.member_id, ()) for member in members}
        log.error(
            "group %s: Kafka's %s assignor assigns members topics that they do not subscribe to, "
            "which ends some consumers; this answer is not sent",
            group_id,
            assignor,
        )
    log.error("group %s: range assigns this generation in place of %s", group_id, assignor)
    return _by_range(group_id, topics, members, cooperative=assignor == _COOPERATIVE)


def _attempts(
    topics: tuple[Topic, ...], members: tuple[Member, ...]
) -> Iterator[tuple[Member, ...]]:
    """Yields the members for the first answer, then those for the second answer if they differ."""
    yield members
    counts = {topic.name: topic.partitions for topic in topics}
    without = tuple(
        replace(
            member,
            owned_partitions=tuple(
                tp
                for tp in member.owned_partitions
                if tp.topic in member.topics and 0 <= tp.partition < counts.get(tp.topic, 0)
            ),
        )
        for member in members
        if member.topics
    )
    if without and without != members:
        yield without


def _by_range(
    group_id: str, topics: tuple[Topic, ...], members: tuple[Member, ...], *, cooperative: bool
) -> LegalAnswer:
    bare = tuple(
        Member(member.member_id, member.topics, member.group_instance_id, rack_id=member.rack)
        for member in members
    )
    answer = assign(GroupSpec(group_id, topics, bare, max_partitions=_NO_LIMIT), "range")
    if not cooperative:
        return answer
    claims = {member.member_id: set(member.owned_partitions) for member in members}
    claimed = set().union(*claims.values())
    return {
        member_id: [tp for tp in given if tp in claims[member_id] or tp not in claimed]
        for member_id, given in answer.items()
    }


def _told(anomalies: Sequence[Anomaly]) -> str:
    """Returns the number of anomalies and the first few of them."""
    first = ", ".join(
        f"{one.kind} {one.topic}-{one.partition}"
        + (f" to {one.member_id}" if one.member_id else "")
        for one in islice(anomalies, _SHOWN)
    )
    more = ", …" if len(anomalies) > _SHOWN else ""
    return f"Kafka's answer is unsound in {len(anomalies)} places: {first}{more}"
