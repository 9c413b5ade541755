# SPDX-License-Identifier: Apache-2.0
"""Reads responses that describe streams groups (KIP-1071): topology, members and their tasks.

A request is that of the other groups (`group_descriptions.encode_describe_request`). Version 1 adds
a description of the topology for people, which is not read here.

Errors   WireError with the name of the field.
Source   StreamsGroupDescribe, API key 89, version 0 (Kafka 4.4.0).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from kafka_rebalance.group.model import TaskOffset, TopicPartition

from .primitives import Reader
from .streams_topology import InternalTopic

STREAMS = 89
VERSIONS = (0, 0)
"""The oldest and the newest version that this module reads."""

_T = TypeVar("_T")
_Tasks = tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtopologyDescription:
    """A part of the topology. `source_topics` exist before the application starts."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    changelog_topics: tuple[InternalTopic, ...]
    repartition_source_topics: tuple[InternalTopic, ...]

    @property
    def read_topics(self) -> tuple[str, ...]:
        """Returns the topics that tasks read: source topics, then repartition source topics."""
        return (*self.source_topics, *(topic.name for topic in self.repartition_source_topics))


class TaskLists(NamedTuple):
    """Tasks of a member; the topic of a task is the id of its subtopology."""

    active: _Tasks
    standby: _Tasks
    warmup: _Tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsMemberDescription:
    """A member as its coordinator describes it; `assigned` are the tasks that it has at present.

    `task_offsets` are sums of changelog offsets, `task_end_offsets` those of the ends: what the
    member last reported.
    """

    member_id: str
    epoch: int
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topology_epoch: int
    process_id: str
    user_endpoint: str | None
    client_tags: tuple[tuple[str, str], ...]
    task_offsets: tuple[TaskOffset, ...]
    task_end_offsets: tuple[TaskOffset, ...]
    assigned: TaskLists
    target: TaskLists
    is_classic: bool

    @property
    def is_reconciling(self) -> bool:
        """Returns whether the member has other tasks than its target, in any order."""
        pairs = zip(self.assigned, self.target, strict=True)
        return any(set(assigned) != set(target) for assigned, target in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupDescription:
    """A group as its coordinator describes it; with an error code, all else may be empty.

    `topology_epoch` is None if no topology is known, `subtopologies` is None until the broker has
    validated them.
    """

    error_code: int
    group_id: str
    state: str
    epoch: int
    assignment_epoch: int
    topology_epoch: int | None
    subtopologies: tuple[SubtopologyDescription, ...] | None
    members: tuple[StreamsMemberDescription, ...]


def decode_streams_describe_response(data: bytes) -> tuple[StreamsGroupDescription, ...]:
    """Reads a response of version 0 without its header. Errors: WireError."""
    reader = Reader(data, "response")
    reader.flexible = True
    reader.int32("throttle-time-ms")
    groups = _array(reader, "groups", _read_group)
    reader.tagged()
    reader.end()
    return groups


def _read_group(reader: Reader) -> StreamsGroupDescription:
    code = reader.int16("error-code")
    reader.nullable_string("error-message")
    group_id, state = reader.string("group-id"), reader.string("group-state")
    epoch, assignment_epoch = reader.int32("group-epoch"), reader.int32("assignment-epoch")
    topology_epoch, subtopologies = None, None
    if reader.is_there("topology"):
        topology_epoch = reader.int32("topology-epoch")
        count = reader.nullable_count("subtopologies")
        if count is not None:
            subtopologies = tuple(_read_subtopology(reader) for _ in range(count))
        reader.tagged()
    members = _array(reader, "members", _read_member)
    reader.int32("authorized-operations")
    reader.tagged()
    return StreamsGroupDescription(
        error_code=code,
        group_id=group_id,
        state=state,
        epoch=epoch,
        assignment_epoch=assignment_epoch,
        topology_epoch=topology_epoch,
        subtopologies=subtopologies,
        members=members,
    )


def _read_subtopology(reader: Reader) -> SubtopologyDescription:
    one = SubtopologyDescription(  # arguments are evaluated in the order of the fields
        subtopology_id=reader.string("subtopology-id"),
        source_topics=_names(reader, "source-topics"),
        repartition_sink_topics=_names(reader, "repartition-sink-topics"),
        changelog_topics=_array(reader, "state-changelog-topics", _read_internal_topic),
        repartition_source_topics=_array(reader, "repartition-source-topics", _read_internal_topic),
    )
    reader.tagged()
    return one


def _read_internal_topic(reader: Reader) -> InternalTopic:
    topic = InternalTopic(  # arguments are evaluated in the order of the fields
        name=reader.string("topic.name"),
        partitions=reader.int32("topic.partitions"),
        replication_factor=reader.int16("topic.replication-factor"),
        configs=_array(reader, "topic.topic-configs", _read_pair),
    )
    reader.tagged()
    return topic


def _read_member(reader: Reader) -> StreamsMemberDescription:
    member = StreamsMemberDescription(  # arguments are evaluated in the order of the fields
        member_id=reader.string("member-id"),
        epoch=reader.int32("member-epoch"),
        instance_id=reader.nullable_string("instance-id"),
        rack_id=reader.nullable_string("rack-id"),
        client_id=reader.string("client-id"),
        client_host=reader.string("client-host"),
        topology_epoch=reader.int32("topology-epoch"),
        process_id=reader.string("process-id"),
        user_endpoint=_read_endpoint(reader),
        client_tags=_array(reader, "client-tags", _read_pair),
        task_offsets=_array(reader, "task-offsets", _read_offset),
        task_end_offsets=_array(reader, "task-end-offsets", _read_offset),
        assigned=_read_tasks(reader, "assignment"),
        target=_read_tasks(reader, "target-assignment"),
        is_classic=reader.int8("is-classic") != 0,
    )
    reader.tagged()
    return member


def _read_endpoint(reader: Reader) -> str | None:
    if not reader.is_there("user-endpoint"):
        return None
    host = reader.string("user-endpoint.host")
    port = int.from_bytes(reader.raw(2, "user-endpoint.port"))  # unsigned
    reader.tagged()
    return f"{host}:{port}"


def _read_pair(reader: Reader) -> tuple[str, str]:
    pair = reader.string("key"), reader.string("value")
    reader.tagged()
    return pair


def _read_offset(reader: Reader) -> TaskOffset:
    task = TopicPartition(
        reader.string("task-offset.subtopology-id"), reader.int32("task-offset.partition")
    )
    offset = TaskOffset(task, reader.int64("task-offset.offset"))
    reader.tagged()
    return offset


def _read_tasks(reader: Reader, field: str) -> TaskLists:
    lists = [_read_list(reader, f"{field}.{kind}-tasks") for kind in TaskLists._fields]
    reader.tagged()
    return TaskLists(*lists)


def _read_list(reader: Reader, field: str) -> _Tasks:
    found: list[TopicPartition] = []
    for _ in range(reader.count(field)):
        subtopology_id = reader.string(f"{field}.subtopology-id")
        for _ in range(reader.count(f"{field}.partitions")):
            found.append(TopicPartition(subtopology_id, reader.int32(f"{field}.partitions")))
        reader.tagged()
    return tuple(found)


def _names(reader: Reader, field: str) -> tuple[str, ...]:
    return _array(reader, field, lambda reader: reader.string(field))


def _array(reader: Reader, field: str, read: Callable[[Reader], _T]) -> tuple[_T, ...]:
    return tuple(read(reader) for _ in range(reader.count(field)))
