# SPDX-License-Identifier: Apache-2.0
"""The consumer of the consumer protocol after errors, lost connections and missing polls."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_rebalance.member.interface import CallbackCompleted, Close, Failed, Lost, Poll, Revoked
from kafka_rebalance.wire.broker_groups import ConsumerGroupHeartbeat
from kafka_rebalance.wire.classic_groups import FindCoordinator, FindCoordinatorResponse
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import Tick
from kafka_rebalance.wire.offsets import OffsetCommit
from tests.support.answered_consumer import CONFIG, Client, S, assigned, committed, partitions


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
    client.poll()  # onPartitionsLost waited for this poll
    assert client.callbacks == [Lost(partitions(0))]
    assert client.heartbeat().member_epoch == 0


def test_a_member_that_was_fenced_loses_its_partitions_at_close() -> None:
    client = Client()
    client.stable(0)
    client.next_interval()
    client.refused(ErrorCode.UNKNOWN_MEMBER_ID)
    client.do(Close())
    assert client.callbacks == [Lost(partitions(0))]
    assert not client.has_sent(ConsumerGroupHeartbeat)
