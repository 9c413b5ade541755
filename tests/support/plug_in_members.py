# SPDX-License-Identifier: Apache-2.0
"""Runs consumers of kafka-python and aiokafka with our plug-ins on a real broker.

Each consumer polls until it is closed or fails; `failure` is the error that ended it. A consumer of
kafka-python has its own thread; consumers of aiokafka are tasks on one loop. `generations` reads
the groups' records from the broker.
"""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING, Any, Self

from kafka_rebalance import GroupSpec, Topic, TopicPartition
from kafka_rebalance.wire import consumer_protocol as wire
from kafka_rebalance.wire import group_records
from kafka_rebalance.wire.sent_members import sent_member
from tests.support.loop_thread import LoopThread
from tests.support.waiting import FAR_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kafka_rebalance.wire.group_records import GroupMetadataValue

CLOSE_TIMEOUT_S = 20.0


class _Member:
    """One consumer: its next subscriptions, its partitions, and the error that ended it."""

    def __init__(self, client: str, topics: Sequence[str], settings: dict[str, Any]) -> None:
        self.client = client
        self.settings = settings
        self.subscriptions: queue.Queue[list[str] | None] = queue.Queue()
        self.subscriptions.put(list(topics))
        self.held: frozenset[TopicPartition] = frozenset()
        self.failure: BaseException | None = None
        self.ended = threading.Event()

    def run_kafka_python(self) -> None:
        from kafka import KafkaConsumer

        consumer = KafkaConsumer(**self.settings)
        try:
            while (topics := self._next()) is not None:
                if topics:
                    consumer.subscribe(topics)
                consumer.poll(timeout_ms=100)
                self.held = frozenset(TopicPartition(*tp) for tp in consumer.assignment())
        except BaseException as failure:
            self.failure = failure
        finally:
            consumer.close()
            self.ended.set()

    async def run_aiokafka(self) -> None:
        from aiokafka import AIOKafkaConsumer

        consumer = AIOKafkaConsumer(**self.settings)
        try:
            await consumer.start()
            while (topics := self._next()) is not None:
                if topics:
                    consumer.subscribe(topics)
                await consumer.getmany(timeout_ms=100)
                self.held = frozenset(TopicPartition(*tp) for tp in consumer.assignment())
        except Exception as failure:
            self.failure = failure
        finally:
            try:
                await consumer.stop()
            finally:
                self.ended.set()

    def _next(self) -> list[str] | None:
        """Returns the topics of a new subscription, an empty list without one, or None to end."""
        try:
            return self.subscriptions.get_nowait()
        except queue.Empty:
            return []


class PlugInMembers:
    """All consumers; they run in this process."""

    def __init__(self, bootstrap_server: str) -> None:
        self._server = bootstrap_server
        self._members: dict[str, _Member] = {}
        self._loop = LoopThread(CLOSE_TIMEOUT_S)

    def add(
        self, client: str, group_id: str, client_id: str, strategy: Any, topics: Sequence[str],
        *, group_instance_id: str | None = None,
    ) -> None:  # fmt: skip
        """Starts a consumer of `client`, which is "kafka-python" or "aiokafka".

        `strategy` is a class, instance or function; a list of these is passed on unchanged.
        """
        settings = {
            "bootstrap_servers": self._server,
            "group_id": group_id,
            "client_id": client_id,
            "group_instance_id": group_instance_id,
            "partition_assignment_strategy": strategy if isinstance(strategy, list) else [strategy],
            "heartbeat_interval_ms": 300,
            "enable_auto_commit": False,
        }
        member = self._members[client_id] = _Member(client, topics, settings)
        if client == "aiokafka":
            self._loop.spawn(member.run_aiokafka())
        else:
            threading.Thread(target=member.run_kafka_python, daemon=True).start()

    def subscribe(self, client_id: str, topics: Sequence[str]) -> None:
        self._members[client_id].subscriptions.put(list(topics))

    def stop(self, client_id: str) -> None:
        """Closes one consumer, which then leaves its group."""
        member = self._members.pop(client_id)
        member.subscriptions.put(None)
        assert member.ended.wait(CLOSE_TIMEOUT_S), f"{client_id} does not end"

    def held(self, client_id: str) -> frozenset[TopicPartition]:
        return self._members[client_id].held

    def failures(self) -> dict[str, BaseException]:
        return {name: one.failure for name, one in self._members.items() if one.failure}

    def close(self) -> None:
        for member in self._members.values():
            member.subscriptions.put(None)
        self._loop.close()
        for member in self._members.values():
            member.ended.wait(CLOSE_TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def generations(bootstrap_server: str) -> Iterator[tuple[str, GroupMetadataValue]]:
    """Yields (group id, record) for each stored group record that has members."""
    from kafka import KafkaConsumer
    from kafka import TopicPartition as Partition

    reader = KafkaConsumer(
        bootstrap_servers=bootstrap_server, auto_offset_reset="earliest", enable_auto_commit=False
    )
    partitions = [
        Partition("__consumer_offsets", p)
        for p in reader.partitions_for_topic("__consumer_offsets") or ()
    ]
    assert partitions
    reader.assign(partitions)
    ends = reader.end_offsets(partitions)
    deadline = time.monotonic() + FAR_S
    while any(reader.position(one) < ends[one] for one in partitions):
        assert time.monotonic() < deadline, "the groups' records cannot be read to their end"
        for records in reader.poll(timeout_ms=500).values():
            for record in records:
                key = group_records.decode_key(record.key)
                value = group_records.decode_value(key, record.value)
                if isinstance(value, group_records.GroupMetadataValue) and value.members:
                    assert isinstance(key, group_records.GroupMetadataKey)
                    yield key.group_id, value
    reader.close()


def asked(topics: tuple[Topic, ...], value: GroupMetadataValue) -> GroupSpec:
    """Returns the group in a record as the leader of this generation received it."""
    assert value.protocol is not None
    members = tuple(
        sent_member(
            one.member_id,
            wire.decode_subscription(one.subscription),
            value.protocol,
            group_instance_id=one.group_instance_id,
        )
        for one in value.members
    )
    return GroupSpec("", topics, members, value.protocol)


def question(topics: tuple[Topic, ...], value: GroupMetadataValue) -> dict[str, Any]:
    """Returns the group of a record as a line for the oracle, with the bytes that each member sent.

    Decoded fields are not enough: a member that missed an assignment sends one generation in its
    subscription, and an older one in its user data.
    """
    return {
        "assignor": value.protocol,
        "topics": asked(topics, value).to_dict()["topics"],
        "members": [
            {
                "member_id": one.member_id,
                "group_instance_id": one.group_instance_id,
                "subscription": one.subscription.hex(),
            }
            for one in value.members
        ],
    }
