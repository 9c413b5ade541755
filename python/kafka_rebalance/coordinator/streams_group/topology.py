# SPDX-License-Identifier: Apache-2.0
"""The topology of a streams group over the cluster's topics: its tasks, and what is missing.

1. Source topics must exist: MISSING_SOURCE_TOPICS.
2. Internal topics get their numbers of partitions: see `partition_counts.py`. If they cannot have
   them, or have others already, the status is INCORRECTLY_PARTITIONED_TOPICS.
3. A subtopology has as many tasks as its largest source topic or repartition source has partitions.
   It is stateful if it has changelogs.
4. Internal topics that are missing are created by the broker: MISSING_INTERNAL_TOPICS.

A topology without a status is ready; until then, all targets are empty.

Source   InternalTopicManager, ConfiguredTopology, StreamsTopology (Kafka 4.4.0).
"""

from dataclasses import dataclass

from kafka_rebalance.group.model import Subtopology
from kafka_rebalance.java.order import name_key
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.streams_groups import StreamsStatus
from kafka_rebalance.wire.streams_topology import (
    InternalTopic,
    StreamsSubtopology,
    StreamsTopology,
)

from ..broker_assigned.members import RequestRefused
from ..machine.cluster import ClusterTopics
from .member import NO_TOPOLOGY_EPOCH
from .partition_counts import WronglyPartitioned, all_counts, in_hash_order, refuse_wrong_places


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    """A topology's tasks; `status` None: it is ready. `creatable_topics` are to be created."""

    epoch: int
    subtopologies: tuple[Subtopology, ...] = ()
    creatable_topics: tuple[InternalTopic, ...] = ()
    status: StreamsStatus | None = None

    @property
    def is_ready(self) -> bool:
        return self.status is None

    @property
    def validated_epoch(self) -> int:
        return self.epoch if self.is_ready else NO_TOPOLOGY_EPOCH


def configure(topology: StreamsTopology, cluster: ClusterTopics) -> ConfiguredTopology:
    """Returns the topology over these topics. Errors: RequestRefused if it can never be right."""
    refuse_wrong_places(topology)  # Kafka reads the co-partition groups before anything else
    counts = {name: one.partitions for name, one in cluster.topics.items()}
    # 1.
    if any(name not in counts for one in topology.subtopologies for name in one.source_topics):
        return ConfiguredTopology(topology.epoch, status=StreamsStatus.MISSING_SOURCE_TOPICS)
    # 2.
    wrong = ConfiguredTopology(topology.epoch, status=StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS)
    try:
        decided = all_counts(topology, counts)
    except WronglyPartitioned:
        return wrong
    # 3.
    internal: dict[str, InternalTopic] = {}
    subtopologies = []
    # A topic of several subtopologies has the number that the last of them, by id, gives it.
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
        StreamsStatus.MISSING_INTERNAL_TOPICS if missing else None,
    )


def _expected(
    topics: tuple[InternalTopic, ...], decided: dict[str, int]
) -> dict[str, InternalTopic]:
    """Returns the topics with their numbers of partitions, which are never 0."""
    expected = {
        one.name: one._replace(partitions=one.partitions or decided[one.name]) for one in topics
    }
    if len(expected) < len(topics) or any(one.partitions < 1 for one in expected.values()):
        raise RequestRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    return expected


def source_names(subtopology: StreamsSubtopology) -> list[str]:
    """Returns the topics whose records a subtopology processes."""
    repartition = (one.name for one in subtopology.repartition_source_topics)
    return [*subtopology.source_topics, *repartition]


def required_topics(topology: StreamsTopology) -> dict[str, str]:
    """Returns all topics of a topology but sinks, each with a subtopology that has it."""
    return {
        name: one.subtopology_id
        for one in topology.subtopologies
        for name in (*(each.name for each in one.state_changelog_topics), *source_names(one))
    }


def sources_by_name(topology: StreamsTopology) -> dict[str, str]:
    """Returns source topics and repartition sources, each with the last subtopology that has it."""
    return {
        name: one.subtopology_id for one in in_hash_order(topology) for name in source_names(one)
    }


def is_same(one: StreamsTopology, other: StreamsTopology) -> bool:
    """Returns whether two topologies are equal; the order of subtopologies does not matter."""
    mine = {each.subtopology_id: each for each in one.subtopologies}
    return one.epoch == other.epoch and mine == {
        each.subtopology_id: each for each in other.subtopologies
    }
