# SPDX-License-Identifier: Apache-2.0
"""Defines the requests and responses of streams groups (KIP-1071), with Kafka's field names.

A heartbeat joins (epoch 0, with the application's topology), keeps a membership, or leaves (epoch
-1; -2 for a static member that comes back). Other fields that are None, and a rebalance timeout of
-1, have not changed since the member's last heartbeat. The three lists of tasks are what the member
has; all or none are sent.

Source   the schemas of StreamsGroupHeartbeat and StreamsGroupDescribe of Kafka 4.4.0.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from kafka_rebalance.wire.streams_topology import InternalTopic, StreamsTopology

from .error_codes import ErrorCode
from .modern_messages import JOIN_EPOCH


class SubtopologyTasks(NamedTuple):
    """Tasks of one subtopology: its partitions."""

    subtopology_id: str
    partitions: tuple[int, ...]


class StreamsStatus(IntEnum):
    """What a response tells a member about its group."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6


TaskList = tuple[SubtopologyTasks, ...]


# Requests -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupHeartbeat:
    """A member of a streams group joins, stays or leaves."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupDescribe:
    """An administrator asks for the state and the members of streams groups."""

    group_ids: tuple[str, ...]


# Responses ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupHeartbeatResponse:
    """The member's epoch, and its tasks if they have changed.

    `creatable_topics` are internal topics that the broker creates after this response, with their
    numbers of partitions.
    """

    error_code: ErrorCode = ErrorCode.NONE
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    active_tasks: TaskList | None = None
    standby_tasks: TaskList | None = None
    warmup_tasks: TaskList | None = None
    status: tuple[StreamsStatus, ...] = ()
    creatable_topics: tuple[InternalTopic, ...] = ()


class DescribedTasks(NamedTuple):
    """The tasks of a member by their role."""

    active: TaskList
    standby: TaskList
    warmup: TaskList


class DescribedStreamsMember(NamedTuple):
    """A member of a streams group."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    process_id: str
    assignment: DescribedTasks
    target_assignment: DescribedTasks


class DescribedStreamsGroup(NamedTuple):
    """A streams group, or the error of one that is not there."""

    group_id: str
    error_code: ErrorCode = ErrorCode.NONE
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    members: tuple[DescribedStreamsMember, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupDescribeResponse:
    """Descriptions of streams groups, in the request's order, but empty ids come first."""

    groups: tuple[DescribedStreamsGroup, ...] = ()
