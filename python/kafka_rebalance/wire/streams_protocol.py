# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the user data of classic Kafka Streams groups (protocol `stream`).

A thread sends `SubscriptionInfo` in its consumer subscription; the leader sends `AssignmentInfo` in
the consumer assignment. Each begins with its version. Both are read up to version 11; of a newer
subscription, a leader reads only the version, and the newest version that the thread knows.

Errors   WireError with the path of the field.
Source   SubscriptionInfoData.json, AssignmentInfo (kafka-streams 4.3.1).
"""

from typing import Annotated, NamedTuple, TypeVar

from kafka_rebalance.java.hash_map import Uuid

from .layout import Int8, Int32, Int64, JavaChars, JavaString, Name, Since, layout_of, read_version

LATEST_VERSION = 11
LATEST_OFFSET = -2
"""The offset sum that stands for a running active task."""
UNKNOWN_OFFSET_SUM = -3
SHUTDOWN_REQUESTED = 4
NO_REBALANCE = 2**63 - 1

_VERSION_BYTES = 4
_Message = TypeVar("_Message", "SubscriptionInfo", "AssignmentInfo")


class TaskId(NamedTuple):
    """A task: a partition number of a subtopology; as a string, `SUBTOPOLOGY_PARTITION`."""

    subtopology_id: Int32
    partition: Int32

    def __str__(self) -> str:
        return f"{self.subtopology_id}_{self.partition}"


class TaskOffsetSum(NamedTuple):
    """The sum of a task's positions in its changelogs, or LATEST_OFFSET or UNKNOWN_OFFSET_SUM."""

    subtopology_id: Int32
    partition: Int32
    offset_sum: Int64
    named_topology: str | None = None


class _PartitionOffsetSum(NamedTuple):
    partition: Int32
    offset_sum: Int64


class _SubtopologyOffsetSums(NamedTuple):
    subtopology_id: Int32
    offset_sums: tuple[_PartitionOffsetSum, ...]


class _ClientTag(NamedTuple):
    key: bytes
    value: bytes


class SubscriptionInfo(NamedTuple):
    """The user data of a thread's subscription. `process_id` is two signed 64-bit numbers.

    `prev_tasks` and `standby_tasks` exist in versions 1 to 6, `offset_sums_by_subtopology` in
    versions 7 to 9; the method `offset_sums` reads all of them.
    """

    version: Int32 = LATEST_VERSION
    latest_supported_version: Annotated[Int32, Since(3, absent=-1)] = LATEST_VERSION
    process_id: Uuid = (0, 0)
    prev_tasks: Annotated[tuple[TaskId, ...], Since(1, 6)] = ()
    standby_tasks: Annotated[tuple[TaskId, ...], Since(1, 6)] = ()
    user_end_point: Annotated[bytes, Since(2)] = b""
    offset_sums_by_subtopology: Annotated[
        tuple[_SubtopologyOffsetSums, ...], Since(7, 9), Name("taskOffsetSums")
    ] = ()
    task_offset_sums: Annotated[tuple[TaskOffsetSum, ...], Since(10)] = ()
    unique_field: Annotated[Int8, Since(8)] = 0
    error_code: Annotated[Int32, Since(9)] = 0
    client_tags: Annotated[tuple[_ClientTag, ...], Since(11)] = ()

    def offset_sums(self) -> dict[TaskId, int]:
        """Returns the offset sum of each task, as a leader reads it from any version."""
        sums = dict.fromkeys(self.prev_tasks, LATEST_OFFSET)
        sums |= dict.fromkeys(self.standby_tasks, UNKNOWN_OFFSET_SUM)
        for group in self.offset_sums_by_subtopology:
            for partition, offset_sum in group.offset_sums:
                sums[TaskId(group.subtopology_id, partition)] = offset_sum
        for one in self.task_offset_sums:
            sums[TaskId(one.subtopology_id, one.partition)] = one.offset_sum
        return sums

    def tags(self) -> dict[str, str]:
        """Returns the `client.tag.*` settings; bytes that are not UTF-8 become U+FFFD."""
        return {
            tag.key.decode(errors="replace"): tag.value.decode(errors="replace")
            for tag in self.client_tags
        }


class AssignedTask(NamedTuple):
    """A task in the leader's answer; versions 10 and 11 name its topology ("" for none)."""

    subtopology_id: Int32
    partition: Int32
    named_topology: Annotated[JavaChars, Since(10)] = ""

    @property
    def task_id(self) -> TaskId:
        return TaskId(self.subtopology_id, self.partition)


class NamedPartition(NamedTuple):
    topic: JavaString
    partition: Int32


class StandbyTask(NamedTuple):
    """A standby task with the partitions of its source topics."""

    task: AssignedTask
    partitions: tuple[NamedPartition, ...]


class NumberedTopic(NamedTuple):
    number: Int32
    topic: JavaString


class NumberedPartition(NamedTuple):
    topic_number: Int32
    partition: Int32


class HostPartitions(NamedTuple):
    """The partitions of a host; from version 5 on, with numbers in place of topic names."""

    host: JavaString
    port: Int32
    named: Annotated[tuple[NamedPartition, ...], Since(2, 4), Name("partitions")] = ()
    numbered: Annotated[tuple[NumberedPartition, ...], Since(5), Name("partitions")] = ()


class AssignmentInfo(NamedTuple):
    """The user data of a thread's assignment.

    The i-th of `active_tasks` belongs to the i-th assigned partition, sorted by topic and number.
    `next_rebalance_ms` is NO_REBALANCE, 0 (at once), or the time of a probing rebalance.
    """

    version: Int32 = LATEST_VERSION
    commonly_supported_version: Annotated[Int32, Since(3, absent=-1)] = LATEST_VERSION
    active_tasks: tuple[AssignedTask, ...] = ()
    standby_tasks: tuple[StandbyTask, ...] = ()
    topics: Annotated[tuple[NumberedTopic, ...], Since(5)] = ()
    partitions_by_host: Annotated[tuple[HostPartitions, ...], Since(2)] = ()
    standby_partitions_by_host: Annotated[tuple[HostPartitions, ...], Since(6)] = ()
    error_code: Annotated[Int32, Since(4)] = 0
    next_rebalance_ms: Annotated[Int64, Since(7)] = NO_REBALANCE


class _Versions(NamedTuple):
    version: Int32
    latest_supported_version: Int32


def decode_subscription_info(data: bytes) -> SubscriptionInfo:
    """Reads a thread's user data. Errors: WireError."""
    if read_version(data, "subscription", size=_VERSION_BYTES) <= LATEST_VERSION:
        return _read(SubscriptionInfo, data, "subscription")
    layout = layout_of(_Versions, flexible=False)
    return SubscriptionInfo(*layout.read(data, "subscription", may_go_on=True))


def encode_subscription_info(info: SubscriptionInfo) -> bytes:
    if info.version > LATEST_VERSION:
        return layout_of(_Versions, flexible=False).written(_Versions(*info[:2]))
    return layout_of(SubscriptionInfo, info.version, flexible=False).written(info)


def decode_assignment_info(data: bytes) -> AssignmentInfo:
    """Reads the leader's user data for a thread. Errors: WireError."""
    return _read(AssignmentInfo, data, "assignment")


def encode_assignment_info(info: AssignmentInfo) -> bytes:
    return layout_of(AssignmentInfo, info.version, flexible=False).written(info)


def _read(kind: type[_Message], data: bytes, what: str) -> _Message:
    version = read_version(data, what, range(1, LATEST_VERSION + 1), _VERSION_BYTES)
    return layout_of(kind, version, flexible=False).read(data, what)
