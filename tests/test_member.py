# SPDX-License-Identifier: Apache-2.0
"""The consumer alone (docs/behaviour/member.md): the tests make the coordinator's answers."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TypeVar

import pytest

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import Topic, TopicPartition
from kafka_rebalance.member.config import ConsumerConfig
from kafka_rebalance.member.consumer import Consumer
from kafka_rebalance.member.interface import (
    Answered,
    Assigned,
    Close,
    Failed,
    Fatal,
    Lost,
    MemberEffect,
    MemberEvent,
    MetadataUpdated,
    Poll,
    Revoked,
    Send,
    Subscribe,
    SubscribePattern,
)
from kafka_rebalance.member.states import MemberState
from kafka_rebalance.wire.classic_groups import (
    FindCoordinator,
    FindCoordinatorResponse,
    Heartbeat,
    HeartbeatResponse,
    JoinedMember,
    JoinGroup,
    JoinGroupResponse,
    LeaveGroup,
    SyncGroup,
    SyncGroupResponse,
)
from kafka_rebalance.wire.consumer_protocol import (
    AssignmentData,
    decode_subscription,
    encode_assignment,
)
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import Request, Response, Tick
from kafka_rebalance.wire.offsets import OffsetCommit, OffsetCommitResponse, PartitionError

Kind = TypeVar("Kind", bound=Request)

COOPERATIVE = ConsumerConfig(
    partition_assignment_strategy=("cooperative-sticky",), enable_auto_commit=False
)
EAGER = replace(COOPERATIVE, partition_assignment_strategy=("range",))
CALLBACKS = (Revoked, Assigned, Lost)


def _partitions(*numbers: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition("t", number) for number in numbers)


class Client:
    """A consumer, with methods that send it a coordinator's answers."""

    def __init__(self, config: ConsumerConfig, *, pattern: str | None = None) -> None:
        self.consumer = Consumer(config, rng=random.Random(1))
        self.now_ms = 0
        self.sent: list[Send] = []
        self.callbacks: list[object] = []
        self.fatal: list[Fatal] = []
        self.topics = (Topic("t", 4),)
        self.do(MetadataUpdated(self.topics))
        self.do(Subscribe(("t",)) if pattern is None else SubscribePattern(pattern))

    def do(self, event: MemberEvent) -> list[MemberEffect]:
        effects = self.consumer.handle(event, self.now_ms)
        self.sent += [one for one in effects if isinstance(one, Send)]
        self.callbacks += [one for one in effects if isinstance(one, CALLBACKS)]
        self.fatal += [one for one in effects if isinstance(one, Fatal)]
        return effects

    def take(self, kind: type) -> Send:
        """Removes and returns the oldest sent request of this kind."""
        found = next(one for one in self.sent if isinstance(one.request, kind))
        self.sent.remove(found)
        return found

    def requested(self, kind: type[Kind]) -> Kind:
        """Removes the oldest sent request of this kind and returns its message."""
        request = self.take(kind).request
        assert isinstance(request, kind)
        return request

    def has_sent(self, kind: type) -> bool:
        return any(isinstance(one.request, kind) for one in self.sent)

    def answer(self, kind: type, response: Response) -> None:
        self.do(Answered(self.take(kind).request_id, response))

    def find(self) -> None:
        self.do(Poll())
        self.answer(FindCoordinator, FindCoordinatorResponse(node_id=3))

    def joined(self, generation: int, member_id: str = "m", leader: str = "other") -> None:
        join = self.take(JoinGroup)
        assert isinstance(join.request, JoinGroup)
        metadata = join.request.protocols[0].metadata
        members = (JoinedMember(member_id, None, metadata),) if leader == member_id else ()
        response = JoinGroupResponse(
            generation_id=generation,
            protocol_type="consumer",
            protocol_name=join.request.protocols[0].name,
            leader=leader,
            member_id=member_id,
            members=members,
        )
        self.do(Answered(join.request_id, response))

    def synced(self, *numbers: int) -> None:
        assignment = encode_assignment(AssignmentData(_partitions(*numbers)))
        self.answer(SyncGroup, SyncGroupResponse(assignment=assignment))
        self.do(Poll())

    def stable(self, *numbers: int) -> None:
        """Brings the consumer to generation 1, with these partitions of topic t."""
        self.find()
        self.do(Poll())
        self.joined(1)
        self.synced(*numbers)
        self.callbacks.clear()

    def pass_the_next_deadline(self) -> None:
        deadline = self.consumer.next_deadline_ms()
        assert deadline is not None
        self.now_ms = deadline

    def beat(self, error: ErrorCode) -> None:
        self.pass_the_next_deadline()
        self.do(Tick())
        self.answer(Heartbeat, HeartbeatResponse(error_code=error))


def test_the_first_join() -> None:
    client = Client(COOPERATIVE)
    client.find()
    client.do(Poll())
    client.answer(
        JoinGroup,
        JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m"),
    )
    client.do(Poll())
    assert [one.request.member_id for one in client.sent if isinstance(one.request, JoinGroup)] == [
        "m"
    ]
    client.joined(1)
    client.synced(0, 1)
    assert client.callbacks == [Assigned(_partitions(0, 1))]
    assert client.consumer.state is MemberState.STABLE


def test_an_eager_member_revokes_everything_before_it_joins() -> None:
    for owned in ((0, 1), ()):
        client = Client(EAGER)
        client.stable(*owned)
        client.beat(ErrorCode.REBALANCE_IN_PROGRESS)
        assert client.callbacks == []
        effects = client.do(Poll())
        kinds = [type(one) for one in effects]
        assert kinds.index(Revoked) < kinds.index(Send)
        client.joined(2)
        client.synced(*owned)
        assert client.callbacks == [Revoked(_partitions(*owned)), Assigned(_partitions(*owned))]


def test_a_cooperative_member_gives_up_what_moves_and_joins_again_at_once() -> None:
    client = Client(COOPERATIVE)
    client.stable(0, 1)
    client.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    client.do(Poll())
    assert client.callbacks == []
    client.joined(2)
    client.synced(0)
    assert client.callbacks == [Revoked(_partitions(1)), Assigned(())]
    again = client.requested(JoinGroup).protocols[0].metadata
    assert decode_subscription(again).owned_partitions == _partitions(0)
    assert decode_subscription(again).generation_id == 2


def test_a_cooperative_member_is_called_back_only_for_added_partitions() -> None:
    client = Client(COOPERATIVE)
    client.stable(0)
    client.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    client.do(Poll())
    client.joined(2)
    client.synced(0, 2)
    assert client.callbacks == [Assigned(_partitions(2))]
    assert not client.has_sent(JoinGroup)


def test_a_sync_that_is_too_late_joins_again_without_callbacks() -> None:
    client = Client(EAGER)
    client.stable(0)
    client.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    client.do(Poll())
    client.joined(2)
    client.answer(
        SyncGroup,
        SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS),
    )
    client.do(Poll())
    assert client.callbacks == [Revoked(_partitions(0))]
    assert client.has_sent(JoinGroup)


@pytest.mark.parametrize(
    ("error", "member_id"),
    [(ErrorCode.ILLEGAL_GENERATION, "m"), (ErrorCode.UNKNOWN_MEMBER_ID, "")],
)
def test_a_lost_generation_loses_what_is_owned(error: ErrorCode, member_id: str) -> None:
    client = Client(COOPERATIVE)
    client.stable(0, 1)
    client.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    client.do(Poll())
    client.joined(2)
    client.answer(SyncGroup, SyncGroupResponse(error_code=error))
    client.do(Poll())
    assert client.callbacks == [Lost(_partitions(0, 1))]
    request = client.requested(JoinGroup)
    assert request.member_id == member_id
    assert decode_subscription(request.protocols[0].metadata).owned_partitions == ()


@pytest.mark.parametrize("config", [EAGER, COOPERATIVE])
def test_a_member_that_is_not_known_any_more(config: ConsumerConfig) -> None:
    client = Client(config)
    client.stable(0)
    client.beat(ErrorCode.UNKNOWN_MEMBER_ID)
    client.do(Poll())
    assert client.callbacks == [Lost(_partitions(0))]
    assert client.requested(JoinGroup).member_id == ""


@pytest.mark.parametrize("instance", [None, "i"])
def test_a_poll_that_comes_too_late(instance: str | None) -> None:
    config = replace(COOPERATIVE, group_instance_id=instance, max_poll_interval_ms=10_000)
    client = Client(config)
    client.stable(0)
    client.now_ms += 10_000
    client.do(Tick())
    while client.consumer.state is not MemberState.UNJOINED:
        client.do(Tick())
    assert client.has_sent(LeaveGroup) == (instance is None)
    assert client.callbacks == []
    client.do(Poll())
    assert client.callbacks == [Lost(_partitions(0))]
    assert client.requested(JoinGroup).member_id == ""


@pytest.mark.parametrize("instance", [None, "i"])
def test_closing_leaves_the_group(instance: str | None) -> None:
    client = Client(replace(COOPERATIVE, group_instance_id=instance))
    client.stable(0)
    client.do(Close())
    assert client.callbacks == [Revoked(_partitions(0))]
    assert client.has_sent(LeaveGroup) == (instance is None)


def test_the_leader_watches_partition_counts() -> None:
    client = Client(EAGER)
    client.find()
    client.do(Poll())
    client.joined(1, leader="m")
    client.synced(0, 1, 2, 3)
    assert client.consumer.is_leader
    client.do(MetadataUpdated((Topic("t", 4),)))
    assert client.consumer.next_poll_ms() is None
    client.do(MetadataUpdated((Topic("t", 5),)))
    client.do(Poll())
    assert client.has_sent(JoinGroup)
    follower = Client(EAGER)
    follower.stable(0)
    follower.do(MetadataUpdated((Topic("t", 5),)))
    assert follower.consumer.next_poll_ms() is None


def test_a_topic_that_matches_a_pattern_starts_a_rebalance() -> None:
    client = Client(COOPERATIVE, pattern="t.*")
    client.stable(0)
    client.do(MetadataUpdated((*client.topics, Topic("other", 1))))
    assert client.consumer.next_poll_ms() is None
    client.do(MetadataUpdated((*client.topics, Topic("t2", 1))))
    client.do(Poll())
    request = client.requested(JoinGroup)
    assert decode_subscription(request.protocols[0].metadata).topics == ("t", "t2")


def test_an_assignment_of_a_topic_that_is_not_wanted_any_more() -> None:
    client = Client(COOPERATIVE)
    client.find()
    client.do(Poll())
    client.joined(1)
    client.do(Subscribe(("u",)))
    client.synced(0)
    assert client.callbacks == []
    assert client.has_sent(JoinGroup)


def test_an_id_survives_a_disconnect() -> None:
    client = Client(COOPERATIVE)
    client.stable(0)
    client.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    client.do(Poll())
    client.do(Failed(client.take(JoinGroup).request_id))
    assert client.consumer.coordinator_node is None
    client.now_ms += 1_000
    client.find()
    client.do(Poll())
    assert client.requested(JoinGroup).member_id == "m"


def test_heartbeats_of_the_past_change_nothing() -> None:
    client = Client(COOPERATIVE)
    client.stable(0)
    client.pass_the_next_deadline()
    client.do(Tick())
    late = client.take(Heartbeat)
    client.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    client.do(Poll())
    client.joined(2)
    old = HeartbeatResponse(error_code=ErrorCode.ILLEGAL_GENERATION)
    client.do(Answered(late.request_id, old))
    client.synced(0)
    assert client.consumer.state is MemberState.STABLE
    assert client.consumer.generation_id == 2


def test_failed_heartbeats_back_off_longer_with_each_failure_in_a_row() -> None:
    client = Client(COOPERATIVE)
    client.stable(0)

    def wait_ms(error: ErrorCode) -> int:
        due = client.consumer.next_heartbeat_ms()
        assert due is not None
        client.now_ms = due
        client.beat(error)
        following = client.consumer.next_heartbeat_ms()
        assert following is not None
        return following - due

    failed = [wait_ms(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) for _ in range(7)]
    for place, waited in enumerate(failed):
        expected = min(100 * 2**place, 1_000)
        assert 0.8 * expected <= waited <= min(1.2 * expected, 1_000)
    # A response without an error resets the back-off.
    assert wait_ms(ErrorCode.NONE) == client.consumer.config.heartbeat_interval_ms
    assert wait_ms(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) <= 120


def test_without_answers_the_coordinator_is_looked_for_and_nothing_given_up() -> None:
    client = Client(COOPERATIVE)
    client.stable(0, 1)
    while client.consumer.coordinator_node is not None:
        client.pass_the_next_deadline()
        client.do(Tick())
    assert client.has_sent(FindCoordinator)
    assert client.callbacks == []
    assert client.consumer.owned_partitions == _partitions(0, 1)


def test_two_heartbeats_whose_time_runs_out_in_one_tick_look_for_one_coordinator() -> None:
    client = Client(COOPERATIVE)
    client.stable(0)
    for _ in range(2):
        client.pass_the_next_deadline()
        client.do(Tick())
    assert [type(one.request) for one in client.sent] == [Heartbeat] * 2
    client.sent.clear()
    client.now_ms += COOPERATIVE.request_timeout_ms
    client.do(Tick())
    assert [type(one.request) for one in client.sent] == [FindCoordinator]
    assert client.callbacks == []


def test_a_commit_comes_before_the_join() -> None:
    client = Client(replace(EAGER, enable_auto_commit=True, max_poll_interval_ms=60_000))
    client.stable(0)
    client.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    poll = Poll(((TopicPartition("t", 0), 7),))
    client.do(poll)
    assert not client.has_sent(JoinGroup)
    retry = OffsetCommitResponse(
        partitions=(PartitionError("t", 0, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),)
    )
    client.answer(OffsetCommit, retry)
    client.now_ms += 1_000
    client.do(poll)
    assert client.requested(OffsetCommit).offsets[0].offset == 7
    # Without an answer to the commit, the member joins after the rebalance timeout.
    client.now_ms += 60_000
    client.do(poll)
    assert client.callbacks == [Revoked(_partitions(0))]
    assert client.has_sent(JoinGroup)


def test_a_static_leader_that_is_back_need_not_assign_but_watches() -> None:
    client = Client(replace(EAGER, group_instance_id="i"))
    client.find()
    client.do(Poll())
    join = client.take(JoinGroup)
    assert isinstance(join.request, JoinGroup)
    members = (JoinedMember("m", "i", join.request.protocols[0].metadata),)
    response = JoinGroupResponse(
        generation_id=4,
        protocol_type="consumer",
        protocol_name="range",
        leader="m",
        member_id="m",
        members=members,
        skip_assignment=True,
    )
    client.do(Answered(join.request_id, response))
    (sync,) = [one.request for one in client.sent if isinstance(one.request, SyncGroup)]
    assert sync.assignments == ()
    client.synced(0, 1)
    client.do(MetadataUpdated((Topic("t", 9),)))
    client.do(Poll())
    assert client.has_sent(JoinGroup)


@pytest.mark.parametrize(
    ("names", "cooperative"),
    [(("range", "cooperative-sticky"), False), (("cooperative-sticky",), True)],
)
def test_the_highest_protocol_that_all_assignors_have(
    names: tuple[str, ...], cooperative: bool
) -> None:
    config = ConsumerConfig(partition_assignment_strategy=names)
    assert (config.rebalance_protocol().name == "COOPERATIVE") == cooperative


def test_settings_that_kafka_refuses() -> None:
    with pytest.raises(GroupError, match="is empty; name an assignor"):
        ConsumerConfig(partition_assignment_strategy=())
    with pytest.raises(GroupError, match="nobody"):
        ConsumerConfig(partition_assignment_strategy=("nobody",)).assignors()


def test_a_fatal_answer_is_thrown_by_the_next_poll() -> None:
    client = Client(COOPERATIVE)
    client.find()
    client.do(Poll())
    client.answer(
        JoinGroup,
        JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED),
    )
    client.do(Poll())
    assert client.fatal == [
        Fatal(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            "JoinGroup was answered GROUP_MAX_SIZE_REACHED",
        )
    ]
