# SPDX-License-Identifier: Apache-2.0
"""A topology of Kafka Streams, and the value of the record in which a broker stores it (KIP-1071).

A subtopology reads source topics, which users create, and repartition source topics, into which
another subtopology writes (there, they are sinks). Its state is in changelog topics. Repartition
source topics and changelogs are internal topics: brokers create them.

Errors   WireError, which names the field.
Source   StreamsGroupTopologyValue.json of Kafka's group coordinator (4.4.0).
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from .primitives import Reader, Writer

_INT16 = ">h"
T = TypeVar("T")


class InternalTopic(NamedTuple):
    """An internal topic; 0 partitions or replicas are chosen by the broker."""

    name: str
    partitions: int = 0
    replication_factor: int = 0
    configs: tuple[tuple[str, str], ...] = ()


class CopartitionGroup(NamedTuple):
    """Topics with equally many partitions, as places in the lists of their subtopology."""

    source_topics: tuple[int, ...] = ()
    source_topic_regex: tuple[int, ...] = ()
    repartition_source_topics: tuple[int, ...] = ()


class StreamsSubtopology(NamedTuple):
    """A subtopology and its topics."""

    subtopology_id: str
    source_topics: tuple[str, ...] = ()
    source_topic_regex: tuple[str, ...] = ()
    state_changelog_topics: tuple[InternalTopic, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    repartition_source_topics: tuple[InternalTopic, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()


class StreamsTopology(NamedTuple):
    """A topology; `epoch` is the application's version of it."""

    epoch: int
    subtopologies: tuple[StreamsSubtopology, ...] = ()


def read_topology(reader: Reader) -> StreamsTopology:
    epoch = reader.int32("epoch")
    subtopologies = _each(reader, "subtopologies", _read_subtopology)
    reader.tagged()
    return StreamsTopology(epoch, subtopologies)


def _read_subtopology(reader: Reader, path: str) -> StreamsSubtopology:
    read = StreamsSubtopology(  # the fields are read in this order
        reader.string(f"{path}.subtopologyId"),
        reader.strings(f"{path}.sourceTopics"),
        reader.strings(f"{path}.sourceTopicRegex"),
        _each(reader, f"{path}.stateChangelogTopics", _read_topic),
        reader.strings(f"{path}.repartitionSinkTopics"),
        _each(reader, f"{path}.repartitionSourceTopics", _read_topic),
        _each(reader, f"{path}.copartitionGroups", _read_copartition_group),
    )
    reader.tagged()
    return read


def _read_topic(reader: Reader, path: str) -> InternalTopic:
    read = InternalTopic(
        reader.string(f"{path}.name"),
        reader.int32(f"{path}.partitions"),
        reader.int16(f"{path}.replicationFactor"),
        _each(reader, f"{path}.topicConfigs", read_pair),
    )
    reader.tagged()
    return read


def read_pair(reader: Reader, path: str) -> tuple[str, str]:
    """Reads a key and its value."""
    pair = reader.string(f"{path}.key"), reader.string(f"{path}.value")
    reader.tagged()
    return pair


def _read_copartition_group(reader: Reader, path: str) -> CopartitionGroup:
    read = CopartitionGroup(
        reader.numbers(f"{path}.sourceTopics", _INT16),
        reader.numbers(f"{path}.sourceTopicRegex", _INT16),
        reader.numbers(f"{path}.repartitionSourceTopics", _INT16),
    )
    reader.tagged()
    return read


def _each(reader: Reader, field: str, read: Callable[[Reader, str], T]) -> tuple[T, ...]:
    return tuple(read(reader, f"{field}[{at}]") for at in range(reader.count(field)))


def write_topology(writer: Writer, topology: StreamsTopology) -> None:
    writer.int32(topology.epoch)
    writer.count(len(topology.subtopologies))
    for one in topology.subtopologies:
        writer.string(one.subtopology_id)
        writer.strings(one.source_topics)
        writer.strings(one.source_topic_regex)
        _write_topics(writer, one.state_changelog_topics)
        writer.strings(one.repartition_sink_topics)
        _write_topics(writer, one.repartition_source_topics)
        writer.count(len(one.copartition_groups))
        for group in one.copartition_groups:
            for places in group:
                writer.numbers(places, _INT16)
            writer.tagged(())
        writer.tagged(())
    writer.tagged(())


def _write_topics(writer: Writer, topics: tuple[InternalTopic, ...]) -> None:
    writer.count(len(topics))
    for topic in topics:
        writer.string(topic.name)
        writer.int32(topic.partitions)
        writer.int16(topic.replication_factor)
        write_pairs(writer, topic.configs)
        writer.tagged(())


def write_pairs(writer: Writer, pairs: tuple[tuple[str, str], ...]) -> None:
    writer.count(len(pairs))
    for key, value in pairs:
        writer.string(key)
        writer.string(value)
        writer.tagged(())
