# SPDX-License-Identifier: Apache-2.0
"""Defines the requests and responses of streams groups (KIP-1071), with Kafka's field names.

A heartbeat that joins contains the application's topology. The three lists of tasks are the
member's present tasks; all or none are sent. `broker_groups.py` explains the other fields.

Source   the schemas of StreamsGroupHeartbeat and StreamsGroupDescribe of Kafka 4.4.0.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Annotated, NamedTuple

from kafka_rebalance.frozen import Message
from kafka_rebalance.group.model import TopicPartition

from .broker_groups import JOIN_EPOCH, NO_OPERATIONS, DescribeRequest, DescribeResponse
from .error_codes import ErrorCode, ErrorField
from .layout import Int16, Int32, Int64, Name, Uint16
from .messages import Request, Response, common_fields


class KeyValue(NamedTuple):
    key: str
    value: str


class UserEndpoint(NamedTuple):
    """The address at which other processes reach an application's process."""

    host: str
    port: Uint16


class InternalTopic(NamedTuple):
    """An internal topic; 0 means that the broker chooses the partitions or replicas."""

    name: str
    partitions: Int32 = 0
    replication_factor: Int16 = 0
    configs: Annotated[tuple[KeyValue, ...], Name("topicConfigs")] = ()


class CopartitionGroup(NamedTuple):
    """Topics with the same number of partitions, as indexes in the lists of their subtopology."""

    source_topics: tuple[Int16, ...] = ()
    source_topic_regex: tuple[Int16, ...] = ()
    repartition_source_topics: tuple[Int16, ...] = ()


class StreamsSubtopology(NamedTuple):
    subtopology_id: str
    source_topics: tuple[str, ...] = ()
    source_topic_regex: tuple[str, ...] = ()
    state_changelog_topics: tuple[InternalTopic, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    repartition_source_topics: tuple[InternalTopic, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()


class StreamsTopology(NamedTuple):
    """The topology that a member sends. `epoch` is the application's version of it."""

    epoch: Int32 = 0
    subtopologies: tuple[StreamsSubtopology, ...] = ()


class SubtopologyTasks(NamedTuple):
    """Tasks of one subtopology, one for each of the partitions."""

    subtopology_id: str
    partitions: tuple[Int32, ...]


class StreamsStatus(IntEnum):
    """A status of the group that a response reports to a member."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6


TaskList = tuple[SubtopologyTasks, ...]


class StreamsGroupHeartbeatResponse(Response):
    """The member's epoch, its tasks if they changed, and the topics that the broker must create."""

    error_code: ErrorCode = ErrorCode.NONE
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    active_tasks: TaskList | None = None
    standby_tasks: TaskList | None = None
    warmup_tasks: TaskList | None = None
    status: tuple[StreamsStatus, ...] = ()
    creatable_topics: tuple[InternalTopic, ...] = ()


class StreamsGroupHeartbeat(Request):
    """A member of a streams group joins, stays or leaves."""

    response = StreamsGroupHeartbeatResponse
    handler = ("streams", "heartbeat")

    group_id: str
    member_id: str = ""
    member_epoch: int = JOIN_EPOCH
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    process_id: str | None = None
    client_tags: Mapping[str, str] | None = None
    topology: StreamsTopology | None = None
    active_tasks: TaskList | None = None
    standby_tasks: TaskList | None = None
    warmup_tasks: TaskList | None = None
    shutdown_application: bool = False

    @property
    def roles(self) -> tuple[TaskList | None, TaskList | None, TaskList | None]:
        return self.active_tasks, self.standby_tasks, self.warmup_tasks


class DescribedTaskOffset(NamedTuple):
    """The sum of a task's changelog offsets, as its member last reported it."""

    subtopology_id: str
    partition: Int32
    offset: Int64


class SentStreamsHeartbeat(Message):
    """A heartbeat with all fields of its bytes; `heartbeat` holds those the coordinator needs."""

    group_id: str
    member_id: str
    member_epoch: Int32
    endpoint_information_epoch: Int32
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: Int32
    topology: StreamsTopology | None
    active_tasks: TaskList | None
    standby_tasks: TaskList | None
    warmup_tasks: TaskList | None
    process_id: str | None
    user_endpoint: UserEndpoint | None
    client_tags: tuple[KeyValue, ...] | None
    task_offsets: tuple[DescribedTaskOffset, ...] | None
    task_end_offsets: tuple[DescribedTaskOffset, ...] | None
    shutdown_application: bool

    @property
    def heartbeat(self) -> StreamsGroupHeartbeat:
        fields = common_fields(self, StreamsGroupHeartbeat)
        tags = None if self.client_tags is None else dict(self.client_tags)
        return StreamsGroupHeartbeat(**fields | {"client_tags": tags})


# Descriptions -------------------------------------------------------------------------------------


class DescribedTasks(NamedTuple):
    """The tasks of a member by their role."""

    active: Annotated[TaskList, Name("activeTasks")]
    standby: Annotated[TaskList, Name("standbyTasks")]
    warmup: Annotated[TaskList, Name("warmupTasks")]


class TaskLists(NamedTuple):
    """Tasks of a member; the topic of a task is the id of its subtopology."""

    active: tuple[TopicPartition, ...]
    standby: tuple[TopicPartition, ...]
    warmup: tuple[TopicPartition, ...]


class DescribedStreamsMember(Message):
    """A member of a streams group, as its coordinator describes it."""

    member_id: str
    member_epoch: Int32
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topology_epoch: Int32
    process_id: str
    user_endpoint: UserEndpoint | None
    client_tags: tuple[KeyValue, ...]
    task_offsets: tuple[DescribedTaskOffset, ...] = ()
    task_end_offsets: tuple[DescribedTaskOffset, ...] = ()
    assignment: DescribedTasks
    target_assignment: DescribedTasks
    is_classic: bool = False

    @property
    def assigned(self) -> TaskLists:
        return _lists(self.assignment)

    @property
    def target(self) -> TaskLists:
        return _lists(self.target_assignment)

    @property
    def is_reconciling(self) -> bool:
        """Returns whether the member's tasks differ from its target; the order is ignored."""
        pairs = zip(self.assigned, self.target, strict=True)
        return any(set(assigned) != set(target) for assigned, target in pairs)


def _lists(tasks: DescribedTasks) -> TaskLists:
    return TaskLists(
        *(
            tuple(TopicPartition(one.subtopology_id, n) for one in role for n in one.partitions)
            for role in tasks
        )
    )


class DescribedSubtopology(Message):
    """A part of the topology. `source_topics` must exist before the application starts."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    state_changelog_topics: tuple[InternalTopic, ...]
    repartition_source_topics: tuple[InternalTopic, ...]

    @property
    def read_topics(self) -> tuple[str, ...]:
        """Returns the topics that tasks read: source topics, then repartition source topics."""
        return (*self.source_topics, *(topic.name for topic in self.repartition_source_topics))


class DescribedTopology(Message):
    """The topology in a description. `subtopologies` is None until the broker has validated it."""

    epoch: Int32
    subtopologies: tuple[DescribedSubtopology, ...] | None


class DescribedStreamsGroup(Message):
    """The description of a streams group, or the error if there is no such group."""

    error_code: ErrorField = ErrorCode.NONE
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    topology: DescribedTopology | None = None
    members: tuple[DescribedStreamsMember, ...] = ()
    authorized_operations: Int32 = NO_OPERATIONS

    @property
    def subtopologies(self) -> tuple[DescribedSubtopology, ...]:
        """Returns the topology's parts; () if the broker has not validated the topology."""
        return (self.topology and self.topology.subtopologies) or ()


class StreamsGroupDescribeResponse(DescribeResponse):
    """Descriptions of streams groups."""

    described = DescribedStreamsGroup

    groups: tuple[DescribedStreamsGroup, ...] = ()


class StreamsGroupDescribe(DescribeRequest):
    """An administrator asks for descriptions of streams groups."""

    response = StreamsGroupDescribeResponse
    handler = ("streams", "describe")
