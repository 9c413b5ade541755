# SPDX-License-Identifier: Apache-2.0
"""The parts that the plug-ins of both client libraries share: the leader's answer, the consumer's
memory, and the reading of variables that a client's coordinator does not pass to assignors.

Neither client passes its consumer; aiokafka passes neither the generation nor the members' bytes.
The coordinator calls each method of an assignor directly, so these values are variables of the
caller. If another function calls the assignor (in a newer client, or a test), the assignor has only
its arguments.
"""

import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from kafka_rebalance.assignors.assigning import assign
from kafka_rebalance.assignors.registry import BUILT_IN
from kafka_rebalance.errors import KafkaRebalanceError, shown
from kafka_rebalance.group.model import Member, Topic, TopicPartition
from kafka_rebalance.group.ownership import Anomaly
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.wire.consumer_protocol import by_topic

if TYPE_CHECKING:
    from .balance import Leading

NO_GENERATION = -1

log = logging.getLogger("kafka_rebalance.clients")


def _with_shown_names(record: logging.LogRecord) -> bool:
    """Escapes a record's arguments: otherwise names from other members could forge log lines."""
    record.args = tuple(shown(str(one)) for one in record.args or ())
    return True


log.addFilter(_with_shown_names)


class ClientNames(NamedTuple):
    """One client library's names for a module and two attributes that both libraries have."""

    module: str
    """The module of the coordinator's class."""
    node: str
    """The attribute with a broker's id."""
    replicas: str
    """The attribute with the broker ids of a partition's replicas."""


@dataclass(slots=True)
class ConsumerMemory:
    """The last assignment of one consumer's assignor, and the generation of that assignment.

    `leading` is set if the consumer has led under one of this project's own assignors.
    """

    owned: tuple[TopicPartition, ...] | None = None
    generation_id: int = NO_GENERATION
    leading: "Leading | None" = None

    def still(self, topics: frozenset[str]) -> tuple[TopicPartition, ...]:
        """Returns the owned partitions of `topics`, the consumer's present subscription."""
        return tuple(tp for tp in self.owned or () if tp.topic in topics)

    def learn(self, partitions: Iterable[tuple[str, int]], generation_id: int) -> None:
        self.owned = tuple(TopicPartition(*tp) for tp in partitions)
        self.generation_id = generation_id
        if self.leading is not None:
            self.leading.end_round()

    def user_data(self, assignor: str, topics: frozenset[str]) -> bytes | None:
        owned = None if self.owned is None else self.still(topics)
        return BUILT_IN[assignor].user_data(owned, self.generation_id)


_MEMORIES: WeakKeyDictionary[Any, dict[str, ConsumerMemory]] = WeakKeyDictionary()


def memory(consumer: object, assignor: str) -> ConsumerMemory:
    """Returns the memory of one assignor in one consumer; it lasts as long as the consumer.

    Consumers that share an assignor's class or instance must not claim one another's partitions.
    """
    return _MEMORIES.setdefault(consumer, {}).setdefault(assignor, ConsumerMemory())


def calling(client: ClientNames) -> Mapping[str, Any]:
    """Returns the variables of the nearest caller in the client's module, or an empty mapping."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == client.module:
            return frame.f_locals
        frame = frame.f_back
    log.warning(
        "not called by %s: the consumer's generation is unknown, and consumers that share this "
        "assignor share its memory",
        client.module,
    )
    return {}


# The leader's answer ------------------------------------------------------------------------------

LegalAnswer = Mapping[str, Sequence[TopicPartition]]
Decide = Callable[[str, tuple[Topic, ...], tuple[Member, ...], str], LegalAnswer]


def answer(
    client: ClientNames,
    group_id: str,
    cluster: Any,
    members: Sequence[Member],
    assignor: str,
    decide: Decide | None = None,
) -> dict[str, list[tuple[str, list[int]]]]:
    """Returns each member's partitions, as a list of topics with partition numbers.

    `decide`, if given, computes the answer in place of `legal`. A topic without metadata, as at the
    consumer's first join, is treated as missing. The client joins again when it has received the
    topic's metadata.
    """
    subscribed = dict.fromkeys(topic for member in members for topic in member.topics)
    counts = {
        topic: len(partitions)
        for topic in subscribed
        if (partitions := cluster.partitions_for_topic(topic))
    }
    # If no member has a rack, the racks of replicas have no effect, and reading them is slow.
    known = cluster.brokers() if any(member.rack for member in members) else ()
    brokers = {getattr(broker, client.node): broker.rack for broker in known}
    topics = tuple(
        Topic(topic, count, _racks(client, cluster, topic, count, brokers))
        for topic, count in counts.items()
    )
    assignment = (decide or legal)(group_id, topics, tuple(members), assignor)
    return {member_id: list(by_topic(owned).items()) for member_id, owned in assignment.items()}


def _racks(
    client: ClientNames, cluster: Any, topic: str, count: int, brokers: Mapping[Any, str | None]
) -> tuple[tuple[str | None, ...], ...] | None:
    """Returns the racks of each partition's replicas; None if `brokers` contains no rack."""
    if not any(brokers.values()):
        return None
    # Neither client has a public method for the replicas of all partitions.
    partitions = cluster._partitions[topic]
    return tuple(
        tuple(brokers.get(node) for node in getattr(partitions[p], client.replicas))
        if p in partitions
        else ()
        for p in range(count)
    )


_COOPERATIVE = "cooperative-sticky"
_NO_LIMIT = 2**31 - 1
_SHOWN = 5


def legal(
    group_id: str, topics: tuple[Topic, ...], members: tuple[Member, ...], assignor: str
) -> LegalAnswer:
    """Returns each member's partitions: Kafka's answer, unless it would crash or hang a consumer.

    `members` are in join order. An exception would crash the leader's own consumer and, after each
    session timeout, that of the next leader; so this function raises none.

    1. Kafka's assignor computes an answer. Anomalies are logged.
    2. A second answer is computed if the first one throws, never ends, or assigns a member a topic
       to which the member does not subscribe. (That would crash aiokafka's consumer, and make other
       clients join again forever.) The input of the second answer lacks members that subscribe to
       nothing, and claims that cannot be kept: to other topics, or to partitions that do not exist.
    3. If the second answer has such a problem too, or its input would be the same, range computes
       the answer of this generation: it needs no claims, and always has an answer. In a cooperative
       group, a partition that another member claims is not assigned until the next generation.
    """
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
    return without_claimed(answer, members) if cooperative else answer


def without_claimed(target: LegalAnswer, members: Sequence[Member]) -> LegalAnswer:
    """Returns the target without partitions that another member claims, but the new owner does not
    claim.
    """
    claims = {member.member_id: set(member.owned_partitions) for member in members}
    claimed = set().union(*claims.values())
    return {
        who: [tp for tp in owned if tp in claims[who] or tp not in claimed]
        for who, owned in target.items()
    }


def _told(anomalies: Sequence[Anomaly]) -> str:
    """Returns a string with the number of anomalies, and the first few of them."""
    first = ", ".join(
        f"{one.kind} {one.topic}-{one.partition}"
        + (f" to {one.member_id}" if one.member_id else "")
        for one in islice(anomalies, _SHOWN)
    )
    more = ", …" if len(anomalies) > _SHOWN else ""
    return f"Kafka's answer is unsound in {len(anomalies)} places: {first}{more}"
