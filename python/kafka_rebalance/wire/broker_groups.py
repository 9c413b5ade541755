# SPDX-License-Identifier: Apache-2.0
"""Defines the requests and responses of broker-assigned groups, with Kafka's field names.

A heartbeat joins (epoch 0), stays, or leaves (epoch -1; -2 for a static member that will come
back). A field that is None, or a rebalance timeout of -1, has not changed since the last heartbeat.

Source   the schemas of ConsumerGroupHeartbeat, ConsumerGroupDescribe, ShareGroupHeartbeat and
         ShareGroupDescribe of Kafka 4.4.0; KIP-848, KIP-932.
"""

from typing import Annotated, Any, ClassVar, NamedTuple

from kafka_rebalance.frozen import Message
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.java.hash_map import Uuid

from .error_codes import ErrorCode, ErrorField
from .layout import Boxed, Int8, Int32, Since
from .messages import Request, Response

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2
NO_OPERATIONS = -(2**31)
"""The value of `authorized_operations` if the request did not ask for them."""


class TopicPartitions(NamedTuple):
    topic_id: Uuid
    partitions: tuple[Int32, ...]


# Heartbeats ---------------------------------------------------------------------------------------


class _HeartbeatResponse(Response):
    """The member's epoch, and its partitions from now on. `assignment` None means no change."""

    throttle_time_ms: Int32 = 0
    error_code: ErrorField = ErrorCode.NONE
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Annotated[tuple[TopicPartitions, ...] | None, Boxed()] = None


class ConsumerGroupHeartbeatResponse(_HeartbeatResponse):
    """The response to a member of a consumer group."""


class ShareGroupHeartbeatResponse(_HeartbeatResponse):
    """The response to a member of a share group."""


class ConsumerGroupHeartbeat(Request):
    """A member of a consumer group joins, stays or leaves. `topic_partitions` are those it owns."""

    response = ConsumerGroupHeartbeatResponse
    handler = ("consumer", "heartbeat")

    group_id: str
    member_id: str = ""
    member_epoch: Int32 = JOIN_EPOCH
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: Annotated[str | None, Since(1)] = None
    server_assignor: str | None = None
    topic_partitions: tuple[TopicPartitions, ...] | None = None


class ShareGroupHeartbeat(Request):
    """A member of a share group joins, stays or leaves; it does not report its partitions."""

    response = ShareGroupHeartbeatResponse
    handler = ("share", "heartbeat")

    group_id: str
    member_id: str = ""
    member_epoch: Int32 = JOIN_EPOCH
    rack_id: str | None = None
    subscribed_topic_names: tuple[str, ...] | None = None


# Descriptions -------------------------------------------------------------------------------------


class DescribedPartitions(NamedTuple):
    topic_id: Uuid
    topic_name: str
    partitions: tuple[Int32, ...]


Described = Annotated[tuple[DescribedPartitions, ...], Boxed()]


def pairs_of(topics: tuple[DescribedPartitions, ...]) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(one.topic_name, number) for one in topics for number in one.partitions
    )


def topics_of(topics: tuple[DescribedPartitions, ...]) -> tuple[str, ...]:
    """Returns all topics' names if a topic has no partitions; else (): partitions name them all."""
    is_whole = all(one.partitions for one in topics)
    return () if is_whole else tuple(one.topic_name for one in topics)


class DescribedConsumerMember(Message):
    """A described member. `member_type` is 0 (classic), 1 (consumer protocol) or -1 (not shown)."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: Int32
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    assignment: Described
    target_assignment: Described
    member_type: Annotated[Int8, Since(1)] = -1

    @property
    def assigned(self) -> tuple[TopicPartition, ...]:
        return pairs_of(self.assignment)

    @property
    def target(self) -> tuple[TopicPartition, ...] | None:
        return pairs_of(self.target_assignment)

    @property
    def owned_topics(self) -> tuple[str, ...]:
        return topics_of(self.target_assignment)

    @property
    def topic_regex(self) -> str | None:
        """Returns the subscribed pattern; None if there is none (Kafka shows None or "")."""
        return self.subscribed_topic_regex or None

    @property
    def is_classic(self) -> bool | None:
        """Returns whether the member uses the classic protocol; None if that is not known."""
        return None if self.member_type < 0 else self.member_type == 0


class DescribedShareMember(Message):
    """A member of a share group. Kafka does not show its target, which the member owns at once."""

    member_id: str
    rack_id: str | None
    member_epoch: Int32
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    assignment: Described

    # Members of share groups have none of these fields.
    instance_id: ClassVar[None] = None
    topic_regex: ClassVar[None] = None
    target: ClassVar[None] = None
    is_classic: ClassVar[None] = None

    @property
    def assigned(self) -> tuple[TopicPartition, ...]:
        return pairs_of(self.assignment)

    @property
    def owned_topics(self) -> tuple[str, ...]:
        return topics_of(self.assignment)


class BrokerGroup(Message):
    """The description of a broker-assigned group, or the error if it is absent."""

    group_type: ClassVar[str]

    error_code: ErrorField = ErrorCode.NONE
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: str = ""
    members: tuple[Any, ...] = ()
    authorized_operations: Int32 = NO_OPERATIONS


class DescribedConsumerGroup(BrokerGroup):
    """A consumer group, as its coordinator describes it."""

    group_type = "consumer"

    members: tuple[DescribedConsumerMember, ...] = ()


class DescribedShareGroup(BrokerGroup):
    """A share group, as its coordinator describes it."""

    group_type = "share"

    members: tuple[DescribedShareMember, ...] = ()


class DescribeResponse(Response):
    """Descriptions of groups, in the request's order; the errors of empty ids come first."""

    described: ClassVar[type[Any]]

    throttle_time_ms: Int32 = 0
    groups: tuple[Any, ...] = ()


class ConsumerGroupDescribeResponse(DescribeResponse):
    """Descriptions of consumer groups."""

    described = DescribedConsumerGroup

    groups: tuple[DescribedConsumerGroup, ...] = ()


class ShareGroupDescribeResponse(DescribeResponse):
    """Descriptions of share groups."""

    described = DescribedShareGroup

    groups: tuple[DescribedShareGroup, ...] = ()


class DescribeRequest(Request):
    """An administrator asks for the state and the members of groups."""

    response = DescribeResponse

    group_ids: tuple[str, ...]
    include_authorized_operations: bool = False

    def refused(self, error: ErrorCode) -> DescribeResponse:
        described = self.response.described
        groups = tuple(described(error_code=error, group_id=one) for one in self.group_ids)
        return self.response(groups=groups)


class ConsumerGroupDescribe(DescribeRequest):
    """An administrator asks for descriptions of consumer groups."""

    response = ConsumerGroupDescribeResponse
    handler = ("consumer", "describe")


class ShareGroupDescribe(DescribeRequest):
    """An administrator asks for descriptions of share groups."""

    response = ShareGroupDescribeResponse
    handler = ("share", "describe")


BrokerMember = DescribedConsumerMember | DescribedShareMember
