# SPDX-License-Identifier: Apache-2.0
"""A consumer of the consumer protocol alone: the test makes the coordinator's answers."""

from __future__ import annotations

import random

from kafka_rebalance.group.model import Topic, TopicPartition, uuid_of
from kafka_rebalance.member.config import ConsumerConfig
from kafka_rebalance.member.consumer_group.async_consumer import AsyncConsumer
from kafka_rebalance.member.interface import (
    Answered,
    Assigned,
    CallbackCompleted,
    Fatal,
    Lost,
    MemberEffect,
    MemberEvent,
    MetadataUpdated,
    PendingRevocation,
    Poll,
    Revoked,
    Send,
    Subscribe,
    SubscribePattern,
)
from kafka_rebalance.member.states import ConsumerMemberState
from kafka_rebalance.wire.broker_groups import (
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kafka_rebalance.wire.classic_groups import FindCoordinator, FindCoordinatorResponse
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import Response, Tick
from kafka_rebalance.wire.offsets import OffsetCommitResponse, PartitionError

S = ConsumerMemberState
INTERVAL_MS = 5_000
CONFIG = ConsumerConfig(group_protocol="consumer", enable_auto_commit=False)
TOPIC_ID = "AAAAAAAAAAEAAAAAAAAAAg"
CALLBACKS = (PendingRevocation, Revoked, Assigned, Lost)


def partitions(*numbers: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition("t", number) for number in numbers)


def assigned(*numbers: int, topic_id: str = TOPIC_ID) -> tuple[TopicPartitions, ...]:
    return (TopicPartitions(uuid_of(topic_id), numbers),) if numbers else ()


def committed(error: ErrorCode) -> OffsetCommitResponse:
    return OffsetCommitResponse(partitions=(PartitionError("t", 0, error),))


class Client:
    """A consumer, with methods that send it a coordinator's answers."""

    def __init__(self, config: ConsumerConfig = CONFIG, *, pattern: str | None = None) -> None:
        self.consumer = AsyncConsumer(config, rng=random.Random(1))
        self.now_ms = 0
        self.sent: list[Send] = []
        self.callbacks: list[MemberEffect] = []
        self.fatal: list[Fatal] = []
        self.do(MetadataUpdated((Topic("t", 4, topic_id=TOPIC_ID),)))
        self.do(Subscribe(("t",)) if pattern is None else SubscribePattern(pattern))

    def do(self, event: MemberEvent) -> None:
        effects = self.consumer.handle(event, self.now_ms)
        self.sent += [one for one in effects if isinstance(one, Send)]
        self.callbacks += [one for one in effects if isinstance(one, CALLBACKS)]
        self.fatal += [one for one in effects if isinstance(one, Fatal)]

    def poll(self) -> None:
        """Polls; if that calls back, the callback returns at once."""
        self.do(Poll(tuple((one, 10) for one in self.consumer.owned_partitions)))
        self.do(CallbackCompleted())

    def heartbeat(self) -> ConsumerGroupHeartbeat:
        """Returns the only unanswered heartbeat."""
        (found,) = (one for one in self.sent if isinstance(one.request, ConsumerGroupHeartbeat))
        assert isinstance(found.request, ConsumerGroupHeartbeat)
        return found.request

    def has_sent(self, kind: type) -> bool:
        return any(isinstance(one.request, kind) for one in self.sent)

    def answer(self, kind: type, response: Response) -> None:
        sent = next(one for one in self.sent if isinstance(one.request, kind))
        self.sent.remove(sent)
        self.do(Answered(sent.request_id, response))

    def beaten(self, epoch: int = 1, assignment: tuple[TopicPartitions, ...] | None = None) -> None:
        response = ConsumerGroupHeartbeatResponse(
            member_id=self.consumer.member_id,
            member_epoch=epoch,
            heartbeat_interval_ms=INTERVAL_MS,
            assignment=assignment,
        )
        self.answer(ConsumerGroupHeartbeat, response)

    def refused(self, error: ErrorCode) -> None:
        self.answer(ConsumerGroupHeartbeat, ConsumerGroupHeartbeatResponse(error_code=error))

    def joins(self) -> None:
        self.do(Poll())
        self.answer(FindCoordinator, FindCoordinatorResponse(node_id=3))

    def stable(self, *numbers: int, epoch: int = 2) -> None:
        """Brings the consumer to an epoch, with these partitions of topic t."""
        self.joins()
        self.beaten(epoch, assigned(*numbers))
        while not self.has_sent(ConsumerGroupHeartbeat):
            self.poll()
        self.beaten(epoch)
        self.callbacks.clear()
        assert self.consumer.state is S.STABLE

    def next_interval(self) -> None:
        self.now_ms = self.consumer.next_deadline_ms() or 0
        self.do(Tick())
