# SPDX-License-Identifier: Apache-2.0
"""Writes requests that describe groups assigned by the broker, and reads the responses.

    API key   group                   versions
    69        consumer (KIP-848)      0-1
    77        share (KIP-932)         1

Errors   WireError with the name of the field.
Source   ConsumerGroupDescribe and ShareGroupDescribe, requests and responses (Kafka 4.4.0).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from kafka_rebalance.group.model import TopicPartition

from .primitives import Reader, Writer

CONSUMER, SHARE = 69, 77
VERSIONS = {CONSUMER: (0, 1), SHARE: (1, 1)}
"""API key -> the oldest and the newest version that this module reads."""

_GROUP_TYPES = {CONSUMER: "consumer", SHARE: "share"}
_CLASSIC_MEMBER = 0
_UUID_BYTES = 16

_T = TypeVar("_T")
_Partitions = tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberDescription:
    """A member as its coordinator describes it.

    `target` is the assignment that the member moves to; None in a share group, which has none.
    `owned_topics` are the topics of `target` (of `assigned` in a share group), if one of them has
    no partitions; else it is empty.
    `is_classic` is True for a member of a consumer group that uses the classic protocol; None if
    that is not known.
    """

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str
    client_host: str
    topics: tuple[str, ...] = ()
    topic_regex: str | None = None
    assigned: _Partitions
    target: _Partitions | None = None
    owned_topics: tuple[str, ...] = ()
    is_classic: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """A group as its coordinator describes it; with an error code, all else may be empty."""

    error_code: int
    group_id: str
    group_type: str
    state: str
    epoch: int
    assignment_epoch: int
    assignor: str | None
    members: tuple[MemberDescription, ...]


def encode_describe_request(*group_ids: str) -> bytes:
    """Writes a request, without its header, that describes these groups."""
    writer = Writer(flexible=True)
    writer.count(len(group_ids))
    for group_id in group_ids:
        writer.string(group_id)
    writer.raw(b"\0")  # without the authorized operations
    writer.tagged(())
    return writer.written()


def decode_describe_response(
    api_key: int, version: int, data: bytes
) -> tuple[GroupDescription, ...]:
    """Reads a response without its header. Errors: WireError."""
    reader = Reader(data, "response")
    reader.flexible = True
    reader.int32("throttle-time-ms")
    groups = _array(reader, "groups", lambda: _read_group(reader, api_key, version))
    reader.tagged()
    reader.end()
    return groups


def _read_group(reader: Reader, api_key: int, version: int) -> GroupDescription:
    code = reader.int16("error-code")
    reader.nullable_string("error-message")
    group = GroupDescription(  # arguments are evaluated in the order of the fields
        error_code=code,
        group_id=reader.string("group-id"),
        group_type=_GROUP_TYPES[api_key],
        state=reader.string("group-state"),
        epoch=reader.int32("group-epoch"),
        assignment_epoch=reader.int32("assignment-epoch"),
        assignor=reader.string("assignor-name") or None,
        members=_array(reader, "members", lambda: _read_member(reader, api_key, version)),
    )
    reader.int32("authorized-operations")
    reader.tagged()
    return group


def _read_member(reader: Reader, api_key: int, version: int) -> MemberDescription:
    consumer = api_key == CONSUMER
    member_id = reader.string("member-id")
    instance_id = reader.nullable_string("instance-id") if consumer else None
    rack_id, epoch = reader.nullable_string("rack-id"), reader.int32("member-epoch")
    client_id, client_host = reader.string("client-id"), reader.string("client-host")
    topics = _array(reader, "topics", lambda: reader.string("topics"))
    topic_regex = reader.nullable_string("topic-regex") if consumer else None
    assigned, topics_held = _read_partitions(reader, "assignment")
    target = None
    if consumer:
        target, topics_held = _read_partitions(reader, "target-assignment")
    kind = reader.raw(1, "member-type")[0] if consumer and version > 0 else None
    reader.tagged()
    return MemberDescription(
        member_id=member_id,
        epoch=epoch,
        instance_id=instance_id,
        rack_id=rack_id,
        client_id=client_id,
        client_host=client_host,
        topics=topics,
        topic_regex=topic_regex or None,
        assigned=assigned,
        target=target,
        owned_topics=topics_held,
        is_classic=None if kind is None else kind == _CLASSIC_MEMBER,
    )


def _read_partitions(reader: Reader, field: str) -> tuple[_Partitions, tuple[str, ...]]:
    """Returns the partitions, and all topics if one of them has no partitions."""
    found, topics, is_whole = [], [], True
    for _ in range(reader.count(field)):
        reader.raw(_UUID_BYTES, f"{field}.topic-id")
        topic = reader.string(f"{field}.topic-name")
        numbers = _array(reader, f"{field}.partitions", lambda: reader.int32(f"{field}.partitions"))
        found += [TopicPartition(topic, number) for number in numbers]
        topics.append(topic)
        is_whole &= bool(numbers)
        reader.tagged()
    reader.tagged()
    return tuple(found), () if is_whole else tuple(topics)


def _array(reader: Reader, field: str, read: Callable[[], _T]) -> tuple[_T, ...]:
    return tuple(read() for _ in range(reader.count(field)))
