# SPDX-License-Identifier: Apache-2.0
"""The consumer of the consumer protocol alone: the tests make the coordinator's answers."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from kafka_rebalance import protocol
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import Topic, TopicPartition, uuid_of
from kafka_rebalance.member import (
    Answered,
    Assigned,
    AsyncConsumer,
    CallbackCompleted,
    Close,
    ConsumerConfig,
    ConsumerMemberState,
    Failed,
    Fatal,
    Lost,
    MemberEffect,
    MemberEvent,
    MetadataUpdated,
    PendingRevocation,
    Poll,
    Polled,
    Revoked,
    Send,
    Subscribe,
    SubscribePattern,
    Unsubscribe,
)
from kafka_rebalance.protocol import (
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatResponse,
    ErrorCode,
    FindCoordinator,
    FindCoordinatorResponse,
    OffsetCommit,
    OffsetCommitResponse,
    PartitionError,
    Tick,
    TopicPartitions,
)

S = ConsumerMemberState
INTERVAL_MS = 5_000
CONFIG = ConsumerConfig(group_protocol="consumer", enable_auto_commit=False)
LIBRDKAFKA = replace(
    CONFIG,
    enable_auto_commit=True,
    auto_commit_interval_ms=60_000,
    client_library="librdkafka",
)
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

    def answer(self, kind: type, response: protocol.Response) -> None:
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


def test_the_first_heartbeat_joins_with_all_fields() -> None:
    client = Client(replace(CONFIG, client_rack="a", group_remote_assignor="range"))
    assert client.consumer.state is S.UNSUBSCRIBED  # until the first poll
    client.joins()
    request = client.heartbeat()
    assert request == ConsumerGroupHeartbeat(
        group_id="g",
        member_id=client.consumer.member_id,
        member_epoch=0,
        rack_id="a",
        rebalance_timeout_ms=300_000,
        subscribed_topic_names=("t",),
        server_assignor="range",
        topic_partitions=(),
    )
    assert len(request.member_id) == 22


def test_an_assignment_is_taken_over_in_a_poll_and_acknowledged_at_once() -> None:
    client = Client()
    client.joins()
    client.beaten(2, assigned(0, 1))
    # Nothing is revoked and nothing committed, so the callback already waits for the poll.
    assert (client.consumer.state, client.callbacks) == (S.RECONCILING, [])
    assert client.consumer.next_poll_ms() == client.now_ms
    client.do(Poll())
    assert client.callbacks == [Assigned(partitions(0, 1))]
    assert not client.has_sent(ConsumerGroupHeartbeat)
    client.do(CallbackCompleted())
    assert client.consumer.state is S.STABLE
    request = client.heartbeat()
    assert request.topic_partitions == assigned(0, 1)
    assert (request.rebalance_timeout_ms, request.subscribed_topic_names) == (-1, None)


def test_an_empty_assignment_is_taken_over_too() -> None:
    client = Client()
    client.joins()
    client.beaten(2, ())
    client.poll()
    assert client.callbacks == [Assigned(())]
    assert client.heartbeat().topic_partitions == ()


def test_a_heartbeat_without_news_has_only_ids_and_epoch() -> None:
    client = Client()
    client.stable(0)
    at = client.now_ms
    client.next_interval()
    assert client.now_ms == at + INTERVAL_MS
    expected = ConsumerGroupHeartbeat(
        group_id="g", member_id=client.consumer.member_id, member_epoch=2
    )
    assert client.heartbeat() == expected


def test_the_interval_counts_from_sending() -> None:
    client = Client()
    client.stable(0)
    client.next_interval()
    sent_ms, client.now_ms = client.now_ms, client.now_ms + 300
    client.beaten(2)
    assert client.consumer.next_deadline_ms() == sent_ms + INTERVAL_MS


def test_a_revocation_waits_for_the_poll_and_comes_before_the_gain() -> None:
    client = Client()
    client.stable(0, 1)
    client.next_interval()
    client.beaten(2, assigned(1, 2))
    assert client.callbacks == []  # a revocation starts in a poll only
    for expected in (
        [PendingRevocation(partitions(0))],
        [Revoked(partitions(0))],
        [Assigned(partitions(2))],
    ):
        client.poll()
        assert client.callbacks == expected
        client.callbacks.clear()
    assert client.heartbeat().topic_partitions == assigned(1, 2)
    assert client.consumer.owned_partitions == partitions(1, 2)


def test_positions_are_committed_before_the_revocation() -> None:
    client = Client(replace(CONFIG, enable_auto_commit=True))
    client.stable(0)
    client.next_interval()
    client.beaten(2, ())
    client.poll()
    (commit,) = (one.request for one in client.sent if isinstance(one.request, OffsetCommit))
    assert (commit.generation_id, commit.offsets[0].offset) == (2, 10)
    client.poll()
    assert Revoked(partitions(0)) not in client.callbacks  # the commit is not answered
    client.answer(OffsetCommit, committed(ErrorCode.NONE))
    client.poll()
    assert client.callbacks[-1] == Revoked(partitions(0))


def test_librdkafka_revokes_commits_and_assigns_within_one_poll() -> None:
    client = Client(LIBRDKAFKA)
    client.stable(0, 1)
    client.answer(OffsetCommit, committed(ErrorCode.NONE))  # of the interval
    client.next_interval()
    client.beaten(2, assigned(0))
    assert client.callbacks == [PendingRevocation(partitions(1))]  # its main thread does not wait
    assert not client.has_sent(OffsetCommit)
    client.poll()
    assert client.callbacks[1:] == [Revoked(partitions(1))]
    (commit,) = (one.request for one in client.sent if isinstance(one.request, OffsetCommit))
    assert [one.partition for one in commit.offsets] == [1]
    assert client.consumer.is_in_poll  # it returns no records before the next callback
    assert not client.has_sent(ConsumerGroupHeartbeat)
    client.answer(OffsetCommit, committed(ErrorCode.NONE))
    client.poll()
    assert client.callbacks[2:] == [Assigned(())]
    assert not client.consumer.is_in_poll
    assert client.heartbeat().topic_partitions == assigned(0)


def test_librdkafka_without_a_revocation_calls_back_in_the_next_poll_without_a_commit() -> None:
    client = Client(LIBRDKAFKA)
    client.stable(0)
    client.answer(OffsetCommit, committed(ErrorCode.NONE))  # of the interval
    client.next_interval()
    client.beaten(3, assigned(0, 2))
    client.poll()
    assert client.callbacks == [Assigned(partitions(2))]
    assert not client.has_sent(OffsetCommit)
    assert client.heartbeat().topic_partitions == assigned(0, 2)


@pytest.mark.parametrize(
    ("error", "tries_again"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, True),
        (ErrorCode.STALE_MEMBER_EPOCH, True),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
        (ErrorCode.UNKNOWN_MEMBER_ID, False),
    ],
)
def test_a_failed_commit_is_tried_again_or_given_up(error: ErrorCode, tries_again: bool) -> None:
    client = Client(replace(CONFIG, enable_auto_commit=True))
    client.stable(0)
    client.next_interval()
    client.beaten(2, ())
    client.poll()
    client.answer(OffsetCommit, committed(error))
    if tries_again:
        assert client.consumer.next_poll_ms() is None
        client.next_interval()
        assert client.has_sent(OffsetCommit)
    else:
        client.poll()
        assert client.callbacks[-1] == Revoked(partitions(0))


def test_heartbeats_go_on_during_a_callback_and_a_newer_target_waits() -> None:
    client = Client()
    client.stable(0)
    client.next_interval()
    client.beaten(3, assigned(0, 1))
    client.do(Poll())
    assert client.consumer.next_poll_ms() is None  # the application is in the callback
    client.next_interval()
    assert client.heartbeat().topic_partitions is None
    client.beaten(4, assigned(0, 1, 2))
    client.do(CallbackCompleted())
    request = client.heartbeat()  # it acknowledges what was taken over, not the newer target
    assert (request.member_epoch, request.topic_partitions) == (4, assigned(0, 1))
    assert client.consumer.state is S.RECONCILING
    client.poll()
    assert client.callbacks[-1] == Assigned(partitions(2))


@pytest.mark.parametrize("error", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_loses_everything_and_joins_with_its_id(error: ErrorCode) -> None:
    client = Client()
    client.stable(0)
    member_id = client.consumer.member_id
    client.next_interval()
    client.refused(error)
    assert client.consumer.state is S.FENCED
    client.poll()
    assert client.callbacks == [Lost(partitions(0))]
    request = client.heartbeat()
    assert (request.member_id, request.member_epoch) == (member_id, 0)
    assert request.topic_partitions == ()
    assert client.consumer.owned_partitions == ()


def test_a_reconciliation_is_void_after_the_member_has_joined_again() -> None:
    client = Client()
    client.stable(0)
    client.next_interval()
    client.beaten(3, assigned(0, 1))
    client.do(Poll())  # onPartitionsAssigned runs
    client.next_interval()
    client.refused(ErrorCode.UNKNOWN_MEMBER_ID)
    client.do(CallbackCompleted())
    assert not client.has_sent(ConsumerGroupHeartbeat)  # no acknowledgement
    client.poll()
    assert client.callbacks[-1] == Lost(partitions(0, 1))
    client.beaten(5, assigned(3))
    client.poll()
    client.poll()
    assert client.consumer.owned_partitions == partitions(3)
    assert client.heartbeat().topic_partitions == assigned(3)


def test_after_an_error_all_fields_are_sent_again_after_a_backoff() -> None:
    client = Client()
    client.stable(0)
    client.next_interval()
    at = client.now_ms
    client.refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert not client.has_sent(ConsumerGroupHeartbeat)
    client.next_interval()
    assert 80 <= client.now_ms - at <= 120
    request = client.heartbeat()
    assert request.subscribed_topic_names == ("t",)
    assert request.topic_partitions == assigned(0)
    assert (request.member_epoch, request.rebalance_timeout_ms) == (2, 300_000)


@pytest.mark.parametrize("error", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_a_moved_coordinator_is_looked_for_and_the_member_goes_on(error: ErrorCode) -> None:
    client = Client()
    client.stable(0)
    client.next_interval()
    client.refused(error)
    client.answer(FindCoordinator, FindCoordinatorResponse(node_id=4))
    assert client.heartbeat().member_epoch == 2
    assert (client.sent[-1].node_id, client.callbacks) == (4, [])


def test_a_heartbeat_whose_connection_was_lost_is_repeated_with_all_fields() -> None:
    client = Client()
    client.stable(0)
    client.next_interval()
    number = client.sent.pop().request_id
    client.do(Failed(number))
    client.answer(FindCoordinator, FindCoordinatorResponse(node_id=3))
    client.next_interval()
    assert client.heartbeat().topic_partitions == assigned(0)


def test_two_requests_whose_time_runs_out_in_one_tick_fail_once() -> None:
    client = Client(replace(CONFIG, enable_auto_commit=True))
    client.stable(0)
    client.next_interval()
    client.beaten(2, ())
    client.poll()
    client.next_interval()
    assert client.has_sent(OffsetCommit)
    assert client.has_sent(ConsumerGroupHeartbeat)
    client.sent.clear()
    client.now_ms += CONFIG.request_timeout_ms
    client.do(Tick())
    assert [type(one.request) for one in client.sent] == [FindCoordinator]
    client.answer(FindCoordinator, FindCoordinatorResponse(node_id=4))
    client.next_interval()
    assert {type(one.request) for one in client.sent} == {OffsetCommit, ConsumerGroupHeartbeat}
    assert {one.node_id for one in client.sent} == {4}


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.UNSUPPORTED_ASSIGNOR,
        ErrorCode.UNRELEASED_INSTANCE_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_other_errors_end_the_membership(error: ErrorCode) -> None:
    client = Client()
    client.stable(0)
    client.next_interval()
    client.refused(error)
    client.poll()
    assert [one.error_code for one in client.fatal] == [error]
    assert client.callbacks == [Lost(partitions(0))]
    assert client.consumer.state is S.FATAL
    assert client.consumer.next_deadline_ms() is None


def test_a_missing_right_on_a_topic_is_thrown_and_the_member_goes_on() -> None:
    client = Client()
    client.stable(0)
    client.next_interval()
    client.refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    client.poll()
    assert [one.error_code for one in client.fatal] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    client.next_interval()
    assert client.heartbeat().member_epoch == 2


def test_without_polls_the_member_leaves_and_joins_at_the_next_poll() -> None:
    client = Client(replace(CONFIG, max_poll_interval_ms=12_000))
    client.stable(0)
    while not client.has_sent(ConsumerGroupHeartbeat) or client.heartbeat().member_epoch > 0:
        client.next_interval()
        if client.heartbeat().member_epoch > 0:
            client.beaten(2)
    assert client.now_ms == 12_000
    assert client.heartbeat().member_epoch == -1
    assert (client.consumer.state, client.callbacks) == (S.STALE, [])
    client.sent.clear()
    client.poll()  # onPartitionsLost waited for it
    assert client.callbacks == [Lost(partitions(0))]
    assert client.heartbeat().member_epoch == 0


def test_reported_polls_keep_a_waiting_member() -> None:
    client = Client(replace(CONFIG, max_poll_interval_ms=4_000))
    client.stable(0)
    client.now_ms = 3_999
    client.do(Polled(3_000))
    assert client.consumer.poll_until_ms == 7_000


@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("i", -2)])
def test_close_revokes_and_leaves(instance_id: str | None, epoch: int) -> None:
    client = Client(replace(CONFIG, group_instance_id=instance_id))
    client.stable(0)
    client.do(Close())
    assert client.callbacks == [Revoked(partitions(0))]
    request = client.heartbeat()
    assert (request.member_epoch, request.instance_id) == (epoch, instance_id)
    assert client.consumer.state is S.UNSUBSCRIBED


def test_a_member_that_was_fenced_loses_its_partitions_at_close() -> None:
    client = Client()
    client.stable(0)
    client.next_interval()
    client.refused(ErrorCode.UNKNOWN_MEMBER_ID)
    client.do(Close())
    assert client.callbacks == [Lost(partitions(0))]
    assert not client.has_sent(ConsumerGroupHeartbeat)


def test_subscribing_again_joins_with_the_same_id() -> None:
    client = Client()
    client.stable(0)
    member_id = client.consumer.member_id
    client.do(Unsubscribe())
    client.beaten(-1)
    client.do(Subscribe(("t",)))
    client.poll()
    request = client.heartbeat()
    assert (request.member_id, request.member_epoch) == (member_id, 0)


def test_a_new_subscription_goes_with_the_next_heartbeat() -> None:
    client = Client()
    client.stable(0)
    client.do(Subscribe(("t", "u")))
    assert not client.has_sent(ConsumerGroupHeartbeat)
    client.next_interval()
    assert client.heartbeat().subscribed_topic_names == ("t", "u")


def test_the_coordinator_resolves_a_pattern() -> None:
    client = Client(pattern="t.*")
    client.joins()
    request = client.heartbeat()
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == ((), "t.*")


def test_an_unknown_topic_id_is_left_out_and_the_rest_acknowledged() -> None:
    client = Client()
    client.joins()
    new = "AAAAAAAAAAEAAAAAAAAAAw"
    client.beaten(2, (*assigned(0), *assigned(0, topic_id=new)))
    assert client.consumer.misses_names
    client.poll()
    assert client.callbacks == [Assigned(partitions(0))]
    assert client.heartbeat().topic_partitions == assigned(0)
    known = (Topic("t", 4, topic_id=TOPIC_ID), Topic("u", 1, topic_id=new))
    client.do(MetadataUpdated(known))
    client.poll()
    assert client.callbacks[-1] == Assigned((TopicPartition("u", 0),))


def test_the_settings_of_the_classic_protocol_are_refused() -> None:
    with pytest.raises(GroupError, match="is refused with group_protocol = 'consumer'"):
        ConsumerConfig(group_protocol="consumer", session_timeout_ms=10_000)
    with pytest.raises(GroupError, match="neither 'classic' nor 'consumer'"):
        ConsumerConfig(group_protocol="modern")
    with pytest.raises(GroupError, match="needs group_protocol = 'consumer'"):
        ConsumerConfig(group_remote_assignor="range")
    with pytest.raises(GroupError, match="needs group_protocol = 'consumer'"):
        ConsumerConfig(client_library="librdkafka")
    with pytest.raises(GroupError, match="neither 'java' nor 'librdkafka'"):
        ConsumerConfig(group_protocol="consumer", client_library="franz")
    classic = ConsumerConfig(session_timeout_ms=10_000, group_instance_id="i")
    assert classic.with_group_protocol("consumer") == ConsumerConfig(
        group_protocol="consumer", group_instance_id="i"
    )


def test_an_event_of_workers_is_refused() -> None:
    from kafka_rebalance.member import ConfigurationUpdated

    with pytest.raises(TypeError, match="takes no ConfigurationUpdated"):
        Client().do(ConfigurationUpdated(1, ()))
