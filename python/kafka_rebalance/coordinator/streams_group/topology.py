# SPDX-License-Identifier: Apache-2.0
"""Applies the topology of a streams group to the cluster's topics: tasks, and missing topics.

1. Source topics must exist.
2. Internal topics get their numbers of partitions: (a) repartition topics, (b) the topics of each
   co-partition group, (c) changelogs. For a topic that exists, its own number counts.
3. A subtopology has as many tasks as its largest source topic or repartition source has partitions.
4. Internal topics that are missing are created by the broker.

Order    subtopologies are in the order of a default `HashMap` of their ids. In (a), a subtopology
         whose largest source is not known yet can yield a smaller number, which then remains.
Source   InternalTopicManager, ConfiguredTopology, StreamsTopology, RepartitionTopics,
         CopartitionedTopicsEnforcer, ChangelogTopics (Kafka 4.4.0);
         docs/behaviour/streams-groups.md#1-topology.
"""

from collections.abc import Mapping

from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import Subtopology
from kafka_rebalance.java.order import java_hash_order, name_key
from kafka_rebalance.wire import streams_groups as wire
from kafka_rebalance.wire.broker_records import NO_TOPOLOGY
from kafka_rebalance.wire.error_codes import ErrorCode

from ..broker_assigned.members import RequestRefused
from ..machine.cluster import ClusterTopics


class ConfiguredTopology(Frozen):
    """A topology's tasks; ready if `status` is None. The broker creates `creatable_topics`."""

    epoch: int
    subtopologies: tuple[Subtopology, ...] = ()
    creatable_topics: tuple[wire.InternalTopic, ...] = ()
    status: wire.StreamsStatus | None = None

    @property
    def is_ready(self) -> bool:
        return self.status is None

    @property
    def validated_epoch(self) -> int:
        return self.epoch if self.is_ready else NO_TOPOLOGY


def described(topology: wire.StreamsTopology, counts: Mapping[str, int]) -> wire.DescribedTopology:
    """Returns a topology as descriptions show it, with all lists sorted.

    `counts` is topic -> number of partitions; it is empty unless the topology is ready, because
    only then do all its topics exist.
    """

    def internal(topics: tuple[wire.InternalTopic, ...]) -> tuple[wire.InternalTopic, ...]:
        found = (one._replace(partitions=counts.get(one.name, one.partitions)) for one in topics)
        return tuple(sorted(found, key=lambda one: name_key(one.name)))

    parts = sorted(topology.subtopologies, key=lambda one: name_key(one.subtopology_id))
    each = tuple(
        wire.DescribedSubtopology(
            subtopology_id=one.subtopology_id,
            source_topics=tuple(sorted(one.source_topics, key=name_key)),
            repartition_sink_topics=tuple(sorted(one.repartition_sink_topics, key=name_key)),
            state_changelog_topics=internal(one.state_changelog_topics),
            repartition_source_topics=internal(one.repartition_source_topics),
        )
        for one in parts
    )
    return wire.DescribedTopology(epoch=topology.epoch, subtopologies=each)


def configure(topology: wire.StreamsTopology, cluster: ClusterTopics) -> ConfiguredTopology:
    """Applies the topology to the topics. Errors: RequestRefused if it can never be valid."""
    for one in topology.subtopologies:
        _copartitioned(one)  # Kafka reads the co-partition groups before anything else
    counts = {name: one.partitions for name, one in cluster.topics.items()}
    # 1.
    if any(name not in counts for one in topology.subtopologies for name in one.source_topics):
        return ConfiguredTopology(topology.epoch, status=wire.StreamsStatus.MISSING_SOURCE_TOPICS)
    # 2.
    wrong = ConfiguredTopology(
        topology.epoch, status=wire.StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS
    )
    try:
        decided = all_counts(topology, counts)
    except WronglyPartitioned:
        return wrong
    # 3.
    internal: dict[str, wire.InternalTopic] = {}
    subtopologies = []
    # A topic in several subtopologies gets its partition count from the last of them, by id.
    for one in sorted(topology.subtopologies, key=lambda one: name_key(one.subtopology_id)):
        tasks = max(counts.get(name, decided.get(name, 0)) for name in source_names(one))
        stateful = bool(one.state_changelog_topics)
        subtopologies.append(Subtopology(one.subtopology_id, tasks, stateful))
        for topics in (one.repartition_source_topics, one.state_changelog_topics):
            internal |= _expected(topics, decided)
    # 4.
    missing = [one for name, one in internal.items() if name not in counts]
    if any(counts.get(name, one.partitions) != one.partitions for name, one in internal.items()):
        return wrong
    return ConfiguredTopology(
        topology.epoch,
        tuple(subtopologies),
        tuple(sorted(missing, key=lambda one: name_key(one.name))),
        wire.StreamsStatus.MISSING_INTERNAL_TOPICS if missing else None,
    )


def _expected(
    topics: tuple[wire.InternalTopic, ...], decided: dict[str, int]
) -> dict[str, wire.InternalTopic]:
    """Returns name -> topic with its partition count. Errors: RequestRefused for 0, or a repeat."""
    expected = {
        one.name: one._replace(partitions=one.partitions or decided[one.name]) for one in topics
    }
    if len(expected) < len(topics) or any(one.partitions < 1 for one in expected.values()):
        raise RequestRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    return expected


def source_names(subtopology: wire.StreamsSubtopology) -> list[str]:
    """Returns the topics whose records a subtopology processes."""
    repartition = (one.name for one in subtopology.repartition_source_topics)
    return [*subtopology.source_topics, *repartition]


def required_topics(topology: wire.StreamsTopology) -> dict[str, str]:
    """Returns all topics except sinks: name -> id of a subtopology that uses the topic."""
    return {
        name: one.subtopology_id
        for one in topology.subtopologies
        for name in (*(each.name for each in one.state_changelog_topics), *source_names(one))
    }


def sources_by_name(topology: wire.StreamsTopology) -> dict[str, str]:
    """Returns source topics and repartition sources: name -> last subtopology that reads it."""
    return {
        name: one.subtopology_id for one in in_hash_order(topology) for name in source_names(one)
    }


def is_same(one: wire.StreamsTopology, other: wire.StreamsTopology) -> bool:
    """Returns whether two topologies are equal; the order of subtopologies does not matter."""
    mine = {each.subtopology_id: each for each in one.subtopologies}
    return one.epoch == other.epoch and mine == {
        each.subtopology_id: each for each in other.subtopologies
    }


Counts = Mapping[str, int]


class WronglyPartitioned(ValueError):
    """The topics of a co-partition group cannot all have the same number of partitions."""


def all_counts(topology: wire.StreamsTopology, existing: Counts) -> dict[str, int]:
    """Returns internal topics' partition counts. Errors: WronglyPartitioned, RequestRefused."""
    decided = _repartition(topology, existing)
    for subtopology in in_hash_order(topology):
        for names in _copartitioned(subtopology):
            decided |= _copartition(topology, names, {**decided, **existing})
    changelogs: dict[str, int] = {}
    for subtopology in in_hash_order(topology):
        # c.
        known = {**decided, **existing}
        inputs = source_names(subtopology)
        if not inputs:
            raise RequestRefused(ErrorCode.STREAMS_INVALID_TOPOLOGY)
        largest = max(known[name] for name in inputs)
        changelogs |= {one.name: largest for one in subtopology.state_changelog_topics}
    return decided | changelogs


def in_hash_order(topology: wire.StreamsTopology) -> list[wire.StreamsSubtopology]:
    by_id = {one.subtopology_id: one for one in topology.subtopologies}
    return [by_id[one] for one in java_hash_order(list(by_id))]


def _repartition(topology: wire.StreamsTopology, existing: Counts) -> dict[str, int]:
    # a.
    sources = [one for each in in_hash_order(topology) for one in each.repartition_source_topics]
    decided = {one.name: one.partitions for one in sources if one.partitions}
    is_complete = False
    while not is_complete:
        is_complete, has_progress = True, False
        for subtopology in in_hash_order(topology):
            for sink in subtopology.repartition_sink_topics:
                if sink in decided:
                    continue
                count = _largest_input(subtopology, decided, existing)
                if count is None:
                    is_complete = False
                else:
                    decided[sink] = count
                    has_progress = True
        if not is_complete and not has_progress:
            raise RequestRefused(ErrorCode.STREAMS_INVALID_TOPOLOGY)
    if any(one.name not in decided for one in sources):
        raise RequestRefused(ErrorCode.STREAMS_INVALID_TOPOLOGY)
    return decided


def _largest_input(
    subtopology: wire.StreamsSubtopology, decided: Counts, existing: Counts
) -> int | None:
    repartition = (one.name for one in subtopology.repartition_source_topics)
    known = [decided[name] for name in repartition if name in decided]
    known += [existing[name] for name in subtopology.source_topics if name in existing]
    return max(known, default=None)


def _copartitioned(subtopology: wire.StreamsSubtopology) -> list[frozenset[str]]:
    """Returns each co-partition group's topics. Errors: RequestRefused if an index has no topic."""
    sources = subtopology.source_topics
    repartition = [one.name for one in subtopology.repartition_source_topics]
    found = []
    for group in subtopology.copartition_groups:
        names: set[str] = set()
        places = (group.source_topics, sources), (group.repartition_source_topics, repartition)
        for indexes, topics in places:
            if any(not 0 <= at < len(topics) for at in indexes):
                raise RequestRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
            names |= {topics[at] for at in indexes}
        found.append(frozenset(names))
    return found


def _copartition(
    topology: wire.StreamsTopology, names: frozenset[str], known: Counts
) -> dict[str, int]:
    # b.
    sources = [one for each in topology.subtopologies for one in each.repartition_source_topics]
    internal = names & {one.name for one in sources}
    fixed = {one.name for one in sources if one.partitions}
    if not names:
        return {}
    if internal != names:
        numbers = {known[name] for name in names - internal}
    elif fixed:
        numbers = {known[name] for name in fixed}  # quirk: also of other co-partition groups
    else:
        numbers = {max(known[name] for name in internal)}
    if len(numbers) > 1:
        raise WronglyPartitioned
    number = numbers.pop()
    if any(known[name] != number for name in internal & fixed):
        raise WronglyPartitioned
    return dict.fromkeys(internal, number)
