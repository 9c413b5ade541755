# SPDX-License-Identifier: Apache-2.0
"""A topology of Kafka Streams, as a broker stores it and members send it (KIP-1071).

A subtopology reads source topics, which users create, and repartition source topics, into which
another subtopology writes (there, they are sinks). Its state is in changelog topics. Repartition
source topics and changelogs are internal topics: brokers create them.

Source   StreamsGroupTopologyValue.json of Kafka's group coordinator (4.4.0).
"""

from typing import Annotated, NamedTuple

from .layout import Int16, Int32, Name, Uint16


class KeyValue(NamedTuple):
    """A setting or a tag."""

    key: str
    value: str


class UserEndpoint(NamedTuple):
    """Where another process reaches an application."""

    host: str
    port: Uint16


class InternalTopic(NamedTuple):
    """An internal topic; 0 partitions or replicas are chosen by the broker."""

    name: str
    partitions: Int32 = 0
    replication_factor: Int16 = 0
    configs: Annotated[tuple[KeyValue, ...], Name("topicConfigs")] = ()


class CopartitionGroup(NamedTuple):
    """Topics with equally many partitions, as places in the lists of their subtopology."""

    source_topics: tuple[Int16, ...] = ()
    source_topic_regex: tuple[Int16, ...] = ()
    repartition_source_topics: tuple[Int16, ...] = ()


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

    epoch: Int32
    subtopologies: tuple[StreamsSubtopology, ...] = ()
