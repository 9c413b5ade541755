# SPDX-License-Identifier: Apache-2.0
"""Reads the groups' records from `__consumer_offsets` while the broker writes them."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from kafka_rebalance.wire import consumer_protocol as wire
from kafka_rebalance.wire import group_records

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_rebalance.wire.group_records import GroupMetadataValue, MemberMetadata

TOPIC = "__consumer_offsets"
GROUP_KEY = (2).to_bytes(2)
READY_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Written:
    """The bytes of a group's record, with the broker's timestamp."""

    timestamp_ms: int
    data: bytes

    @cached_property
    def value(self) -> GroupMetadataValue:
        value = group_records.decode_value(group_records.GroupMetadataKey(""), self.data)
        assert isinstance(value, group_records.GroupMetadataValue)
        return value

    @property
    def generation_id(self) -> int:
        return self.value.generation_id

    def assigned(self) -> dict[str, tuple[tuple[str, int], ...]]:
        """Returns partitions by member. For a member without partitions, Kafka stores no bytes."""
        return {
            member.member_id: tuple(
                (tp.topic, tp.partition)
                for tp in wire.decode_assignment(member.assignment).partitions
            )
            if member.assignment
            else ()
            for member in self.value.members
        }

    def subscribed(self) -> dict[str, frozenset[str]]:
        return {
            member.member_id: frozenset(subscription_of(member).topics)
            for member in self.value.members
        }


def subscription_of(member: MemberMetadata) -> wire.Subscription:
    return wire.decode_subscription(member.subscription)


def generations(records: Sequence[Written]) -> list[Written]:
    """Returns the first record of each generation that has members.

    A generation has a second record if a static member returns under another id.
    """
    found: dict[int, Written] = {}
    for record in records:
        if record.value.members:
            found.setdefault(record.generation_id, record)
    return list(found.values())


class OffsetsLog:
    """Reads the offsets topic from its beginning in a thread, until the `with` block ends."""

    def __init__(self, bootstrap_server: str) -> None:
        self._server = bootstrap_server
        self._records: dict[str, list[Written]] = defaultdict(list)
        self._arrived_s: dict[str, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._failure: Exception | None = None

    def of(self, group_id: str) -> tuple[Written, ...]:
        """Returns the group's records so far, in the order of the log."""
        if self._failure:
            raise self._failure
        return tuple(self._records.get(group_id, ()))

    def quiet_s(self, group_id: str) -> float:
        """Returns the seconds since the group's last record arrived."""
        return time.monotonic() - self._arrived_s.get(group_id, 0.0)

    def __enter__(self) -> Self:
        _await_topic(self._server)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(10)

    def _read(self) -> None:
        from kafka import KafkaConsumer, TopicPartition

        try:
            consumer = KafkaConsumer(
                bootstrap_servers=self._server,
                group_id=None,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                fetch_max_wait_ms=100,
            )
            # While the broker does not know the new topic, it lists no partitions.
            deadline = time.monotonic() + READY_TIMEOUT_S
            while not (partitions := consumer.partitions_for_topic(TOPIC)):
                if time.monotonic() > deadline or self._ended.wait(0.2):
                    raise TimeoutError(f"{TOPIC} has no partitions")
            consumer.assign([TopicPartition(TOPIC, n) for n in partitions])
            while not self._ended.is_set():
                for records in consumer.poll(timeout_ms=100).values():
                    for record in records:
                        self._keep(record)
            consumer.close()
        except Exception as error:
            self._failure = error

    def _keep(self, record: Any) -> None:
        if record.key is None or record.key[:2] != GROUP_KEY or record.value is None:
            return
        key = group_records.decode_key(record.key)
        assert isinstance(key, group_records.GroupMetadataKey)
        self._arrived_s[key.group_id] = time.monotonic()
        self._records[key.group_id].append(Written(record.timestamp, record.value))


def to_json(records: Sequence[Written]) -> list[dict[str, Any]]:
    return [{"timestamp_ms": one.timestamp_ms, "data": one.data.hex()} for one in records]


def from_json(records: Sequence[Mapping[str, Any]]) -> tuple[Written, ...]:
    return tuple(Written(one["timestamp_ms"], bytes.fromhex(one["data"])) for one in records)


def _await_topic(bootstrap_server: str) -> None:
    """Asks for a group's coordinator, so that Kafka creates the offsets topic; waits for it."""
    from kafka import KafkaAdminClient
    from kafka.errors import KafkaError

    deadline = time.monotonic() + READY_TIMEOUT_S
    with KafkaAdminClient(bootstrap_servers=bootstrap_server) as admin:
        while True:
            try:
                admin.describe_groups(["nobody"])
                return
            except KafkaError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
