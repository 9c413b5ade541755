# SPDX-License-Identifier: Apache-2.0
"""Defines the requests and responses of groups whose brokers assign, with Kafka's field names.

These are consumer groups (KIP-848) and share groups (KIP-932).

A heartbeat joins (epoch 0), keeps a membership, or leaves (epoch -1; -2 for a static member that
comes back). A field that is None, or a rebalance timeout of -1, has not changed since the member's
last heartbeat.

Source   the schemas of ConsumerGroupHeartbeat, ConsumerGroupDescribe, ShareGroupHeartbeat and
         ShareGroupDescribe of Kafka 4.4.0.
"""

from dataclasses import dataclass
from typing import NamedTuple

from kafka_rebalance.java.hash_map import Uuid

from .error_codes import ErrorCode

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2


class TopicPartitions(NamedTuple):
    """Partitions of one topic."""

    topic_id: Uuid
    partitions: tuple[int, ...]


# Requests -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupHeartbeat:
    """A member of a consumer group joins, stays or leaves; `topic_partitions` is what it owns."""

    group_id: str
    member_id: str = ""
    member_epoch: int = JOIN_EPOCH
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: tuple[TopicPartitions, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupDescribe:
    """An administrator asks for the state and the members of consumer groups."""

    group_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupHeartbeat:
    """A member of a share group joins, stays or leaves; it does not report what it owns."""

    group_id: str
    member_id: str = ""
    member_epoch: int = JOIN_EPOCH
    rack_id: str | None = None
    subscribed_topic_names: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupDescribe:
    """An administrator asks for the state and the members of share groups."""

    group_ids: tuple[str, ...]


# Responses ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupHeartbeatResponse:
    """The member's epoch, and what it may use now; `assignment` None means no change."""

    error_code: ErrorCode = ErrorCode.NONE
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: tuple[TopicPartitions, ...] | None = None


class DescribedPartitions(NamedTuple):
    """Partitions of one topic, with the topic's name."""

    topic_id: Uuid
    topic_name: str
    partitions: tuple[int, ...]


class DescribedConsumerMember(NamedTuple):
    """A member of a consumer group; `member_type` is 0 for the classic protocol, else 1."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    assignment: tuple[DescribedPartitions, ...]
    target_assignment: tuple[DescribedPartitions, ...]
    member_type: int


class DescribedConsumerGroup(NamedTuple):
    """A consumer group, or the error of one that is not there."""

    group_id: str
    error_code: ErrorCode = ErrorCode.NONE
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: tuple[DescribedConsumerMember, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupDescribeResponse:
    """Descriptions of consumer groups, in the request's order, but empty ids come first."""

    groups: tuple[DescribedConsumerGroup, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupHeartbeatResponse:
    """The member's epoch, and its partitions; `assignment` None means no change."""

    error_code: ErrorCode = ErrorCode.NONE
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: tuple[TopicPartitions, ...] | None = None


class DescribedShareMember(NamedTuple):
    """A member of a share group."""

    member_id: str
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    assignment: tuple[DescribedPartitions, ...]


class DescribedShareGroup(NamedTuple):
    """A share group, or the error of one that is not there."""

    group_id: str
    error_code: ErrorCode = ErrorCode.NONE
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: tuple[DescribedShareMember, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupDescribeResponse:
    """Descriptions of share groups, in the request's order, but empty ids come first."""

    groups: tuple[DescribedShareGroup, ...] = ()
