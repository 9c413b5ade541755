# SPDX-License-Identifier: Apache-2.0
"""The records of broker-assigned groups in `__consumer_offsets`.

    3 to 8, 16   consumer groups (KIP-848)      10 to 15   share groups (KIP-932)
    17, 19 to 23 streams groups (KIP-1071)

A key is its type as int16, the group id and, in some types, the id of a member or a pattern. A
value is its version 0 as int16 and the fields of its class below: `layout.py` explains the
notation. The value None is a tombstone.

Errors   WireError with the path of the field.
Source   ConsumerGroup*, ShareGroup*, StreamsGroup*{Key,Value}.json of Kafka's group coordinator
         (4.4.0).
"""

from enum import IntEnum
from typing import Annotated, Any, NamedTuple

from kafka_rebalance.frozen import Frozen
from kafka_rebalance.java.hash_map import Uuid

from .broker_groups import DescribedPartitions, TopicPartitions
from .classic_groups import JoinGroupProtocol
from .layout import (
    VERSION_BYTES,
    Int8,
    Int16,
    Int32,
    Int64,
    Name,
    Rest,
    Tag,
    layout_of,
    read_version,
)
from .streams_groups import KeyValue, StreamsTopology, UserEndpoint

NO_TOPOLOGY = -1


# Consumer groups ----------------------------------------------------------------------------------


class EpochValue(Frozen):
    """The epoch of a consumer group."""

    epoch: Int32
    metadata_hash: Annotated[Int64, Tag(0)] = 0


class OldMetadataValue(Frozen):
    """The topics' metadata as brokers before Kafka 4.1 stored it; 4.4 writes tombstones only."""

    body: Rest


class ClassicMetadata(NamedTuple):
    """The additional fields of a member that uses the classic protocol."""

    session_timeout_ms: Int32
    protocols: Annotated[tuple[JoinGroupProtocol, ...], Name("supportedProtocols")]


class MemberValue(Frozen):
    """A member's identity and subscription. `classic` is None in the consumer protocol."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: Int32
    server_assignor: str | None
    classic: Annotated[
        ClassicMetadata | None, Tag(0, always=True), Name("classicMemberMetadata")
    ] = None


class TargetEpochValue(Frozen):
    """The epoch for which targets were computed, and the time (ms); 0 before the first targets."""

    assignment_epoch: Int32
    assignment_timestamp_ms: Annotated[Int64, Tag(0), Name("assignmentTimestamp")] = 0


class TargetValue(Frozen):
    """A member's target."""

    topics: Annotated[tuple[TopicPartitions, ...], Name("topicPartitions")]


class CurrentTopic(NamedTuple):
    """The partitions of one topic; brokers before Kafka 4.3 wrote no `epochs` (None)."""

    topic_id: Uuid
    partitions: tuple[Int32, ...]
    epochs: Annotated[tuple[Int32, ...] | None, Tag(0), Name("assignmentEpochs")] = None


class CurrentValue(Frozen):
    """A member's current assignment, and the state of its reconciliation."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned: Annotated[tuple[CurrentTopic, ...], Name("assignedPartitions")]
    pending_revocation: Annotated[tuple[CurrentTopic, ...], Name("partitionsPendingRevocation")]


class PatternValue(Frozen):
    """The topics to which a pattern was resolved."""

    topics: tuple[str, ...]
    version: Int64
    timestamp_ms: Annotated[Int64, Name("timestamp")]


# Share groups -------------------------------------------------------------------------------------


class ShareEpochValue(Frozen):
    """The epoch of a share group."""

    epoch: Int32
    metadata_hash: Int64


class ShareMemberValue(Frozen):
    """A member's identity and subscription."""

    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]


class ShareCurrentValue(Frozen):
    """A member's current assignment. `state` is a number as in `CurrentValue`."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned: Annotated[tuple[TopicPartitions, ...], Name("topicPartitions")]


class DeletingTopic(NamedTuple):
    """A topic whose share state is being deleted."""

    topic_id: Uuid
    topic_name: str


class ShareStateValue(Frozen):
    """Partitions whose share state is being initialised or is initialised, and topics to delete."""

    initializing: Annotated[tuple[DescribedPartitions, ...], Name("initializingTopics")] = ()
    initialized: Annotated[tuple[DescribedPartitions, ...], Name("initializedTopics")] = ()
    deleting: Annotated[tuple[DeletingTopic, ...], Name("deletingTopics")] = ()


# Streams groups -----------------------------------------------------------------------------------


class StreamsEpochValue(Frozen):
    """The epoch of a streams group. `assignment_configs` are the settings of its last epoch.

    `validated_topology_epoch` is -1 if no topology is valid. The description epochs belong to the
    brokers' plug-in for topology descriptions.
    """

    epoch: Int32
    metadata_hash: Int64
    validated_topology_epoch: Annotated[Int32, Tag(0)] = NO_TOPOLOGY
    assignment_configs: Annotated[
        tuple[KeyValue, ...] | None, Tag(1), Name("lastAssignmentConfigs")
    ] = None
    stored_description_epoch: Annotated[Int32, Tag(2)] = NO_TOPOLOGY
    failed_description_epoch: Annotated[Int32, Tag(3)] = NO_TOPOLOGY


class StreamsMemberValue(Frozen):
    """The identity, subscription and process of a streams group's member."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: Int32
    topology_epoch: Int32
    process_id: str
    user_endpoint: UserEndpoint | None
    client_tags: tuple[KeyValue, ...]


class TaskIds(NamedTuple):
    """Tasks of one subtopology. `epochs` holds the assignment epochs of active tasks."""

    subtopology_id: str
    partitions: tuple[Int32, ...]
    epochs: Annotated[tuple[Int32, ...] | None, Tag(0), Name("assignmentEpochs")] = None


Role = tuple[TaskIds, ...]


class StreamsTargetValue(Frozen):
    """A member's target."""

    active: Annotated[Role, Name("activeTasks")]
    standby: Annotated[Role, Name("standbyTasks")]
    warmup: Annotated[Role, Name("warmupTasks")]


class StreamsCurrentValue(Frozen):
    """A member's present tasks, and the state of its reconciliation."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    active: Annotated[Role, Name("activeTasks")]
    standby: Annotated[Role, Name("standbyTasks")]
    warmup: Annotated[Role, Name("warmupTasks")]
    active_pending: Annotated[Role, Name("activeTasksPendingRevocation")]
    standby_pending: Annotated[Role, Name("standbyTasksPendingRevocation")]
    warmup_pending: Annotated[Role, Name("warmupTasksPendingRevocation")]


# Types --------------------------------------------------------------------------------------------


class RecordType(IntEnum):
    """The types of records, with Kafka's names. `content` is the class of a type's values."""

    _value_: int
    content: type

    def __new__(cls, number: int, content: type = object) -> "RecordType":
        new = int.__new__(cls, number)
        new._value_, new.content = number, content
        return new

    CONSUMER_GROUP_METADATA = 3, EpochValue
    CONSUMER_GROUP_PARTITION_METADATA = 4, OldMetadataValue
    CONSUMER_GROUP_MEMBER_METADATA = 5, MemberValue
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = 6, TargetEpochValue
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = 7, TargetValue
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = 8, CurrentValue
    SHARE_GROUP_MEMBER_METADATA = 10, ShareMemberValue
    SHARE_GROUP_METADATA = 11, ShareEpochValue
    SHARE_GROUP_TARGET_ASSIGNMENT_METADATA = 12, TargetEpochValue
    SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER = 13, TargetValue
    SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT = 14, ShareCurrentValue
    SHARE_GROUP_STATE_PARTITION_METADATA = 15, ShareStateValue
    CONSUMER_GROUP_REGULAR_EXPRESSION = 16, PatternValue
    STREAMS_GROUP_METADATA = 17, StreamsEpochValue
    STREAMS_GROUP_MEMBER_METADATA = 19, StreamsMemberValue
    STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA = 20, TargetEpochValue
    STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER = 21, StreamsTargetValue
    STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT = 22, StreamsCurrentValue
    STREAMS_GROUP_TOPOLOGY = 23, StreamsTopology

    @property
    def group_type(self) -> str:
        return self.name.partition("_")[0].lower()

    @property
    def role(self) -> str:
        """Returns the name without the group's type, such as "METADATA" for the group's epoch."""
        return self.name.partition("_GROUP_")[2]


class RecordKey(NamedTuple):
    """The key of a record. `name` is the member id or the pattern; None for a group's records."""

    type: RecordType
    group_id: str
    name: str | None = None


# Reading and writing ------------------------------------------------------------------------------

# Types whose keys name a member or a pattern; the keys of other types name only the group.
_NAMED = {one for one in RecordType if "MEMBER" in one.name or one.name.endswith("EXPRESSION")}
_TYPES = {kind.value: kind for kind in RecordType}
_VERSION = 0


class BrokerRecord(NamedTuple):
    """A record; its value is an object of the type's class `content`, None for a tombstone."""

    key: RecordKey
    value: Any = None


class _GroupKey(NamedTuple):
    type: Int16
    group_id: Annotated[str, Name("group")]


class _MemberKey(NamedTuple):
    type: Int16
    group_id: Annotated[str, Name("group")]
    name: str


def decode_record(key: bytes, value: bytes | None) -> BrokerRecord | None:
    """Reads a record; returns None if its type is not a `RecordType`. Errors: WireError."""
    kind = _TYPES.get(int.from_bytes(key[:2], signed=True)) if len(key) > 1 else None
    if kind is None:
        return None
    key_class: Any = _MemberKey if kind in _NAMED else _GroupKey
    read_key = RecordKey(kind, *layout_of(key_class, 0, False).read(key, "key")[1:])
    if value is None:
        return BrokerRecord(read_key)
    read_version(value, "value", range(_VERSION + 1))
    return BrokerRecord(read_key, layout_of(kind.content).read(value, "value", VERSION_BYTES))


def encode_record(record: BrokerRecord) -> tuple[bytes, bytes | None]:
    """Returns the bytes of a record's key and value."""
    key_class: Any = _GroupKey if record.key.name is None else _MemberKey
    key = layout_of(key_class, 0, False).written(record.key)
    if record.value is None:
        return key, None
    return key, layout_of(type(record.value)).written(record.value, b"\0\0")
