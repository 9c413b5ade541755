# SPDX-License-Identifier: Apache-2.0
"""The consumer of the consumer protocol: joins, heartbeats, reconciliations, leaves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import Topic, TopicPartition
from kafka_rebalance.member.config import ConsumerConfig
from kafka_rebalance.member.interface import (
    Assigned,
    CallbackCompleted,
    Close,
    MetadataUpdated,
    PendingRevocation,
    Poll,
    Polled,
    Revoked,
    Subscribe,
    Unsubscribe,
)
from kafka_rebalance.wire.broker_groups import ConsumerGroupHeartbeat
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.offsets import OffsetCommit
from tests.support.answered_consumer import (
    CONFIG,
    INTERVAL_MS,
    TOPIC_ID,
    Client,
    S,
    assigned,
    committed,
    partitions,
)

LIBRDKAFKA = replace(
    CONFIG,
    enable_auto_commit=True,
    auto_commit_interval_ms=60_000,
    client_library="librdkafka",
)


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
    assert Revoked(partitions(0)) not in client.callbacks  # the commit has no answer yet
    client.answer(OffsetCommit, committed(ErrorCode.NONE))
    client.poll()
    assert client.callbacks[-1] == Revoked(partitions(0))


def test_librdkafka_revokes_commits_and_assigns_within_one_poll() -> None:
    client = Client(LIBRDKAFKA)
    client.stable(0, 1)
    client.answer(OffsetCommit, committed(ErrorCode.NONE))  # answers the automatic commit
    client.next_interval()
    client.beaten(2, assigned(0))
    assert client.callbacks == [PendingRevocation(partitions(1))]  # no wait for a poll
    assert not client.has_sent(OffsetCommit)
    client.poll()
    assert client.callbacks[1:] == [Revoked(partitions(1))]
    (commit,) = (one.request for one in client.sent if isinstance(one.request, OffsetCommit))
    assert [one.partition for one in commit.offsets] == [1]
    assert client.consumer.is_in_poll  # the poll returns no records before the next callback
    assert not client.has_sent(ConsumerGroupHeartbeat)
    client.answer(OffsetCommit, committed(ErrorCode.NONE))
    client.poll()
    assert client.callbacks[2:] == [Assigned(())]
    assert not client.consumer.is_in_poll
    assert client.heartbeat().topic_partitions == assigned(0)


def test_librdkafka_without_a_revocation_calls_back_in_the_next_poll_without_a_commit() -> None:
    client = Client(LIBRDKAFKA)
    client.stable(0)
    client.answer(OffsetCommit, committed(ErrorCode.NONE))  # answers the automatic commit
    client.next_interval()
    client.beaten(3, assigned(0, 2))
    client.poll()
    assert client.callbacks == [Assigned(partitions(2))]
    assert not client.has_sent(OffsetCommit)
    assert client.heartbeat().topic_partitions == assigned(0, 2)


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
    request = client.heartbeat()  # it acknowledges the applied target, not the newer one
    assert (request.member_epoch, request.topic_partitions) == (4, assigned(0, 1))
    assert client.consumer.state is S.RECONCILING
    client.poll()
    assert client.callbacks[-1] == Assigned(partitions(2))


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
    from kafka_rebalance.member.interface import ConfigurationUpdated

    with pytest.raises(TypeError, match="takes no ConfigurationUpdated"):
        Client().do(ConfigurationUpdated(1, ()))
