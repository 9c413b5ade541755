# SPDX-License-Identifier: Apache-2.0
"""`serve` survives clients that send garbage, too much, too slowly, or nothing."""

from __future__ import annotations

import contextlib
import random
import select
import socket
import struct
import typing
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")

from kio.index import load_entity_schema
from kio.static.constants import EntityType

from kafka_rebalance.serve import cluster, topics
from kafka_rebalance.serve.connections import Limits
from kafka_rebalance.serve.frames import APIS
from kafka_rebalance.testing import RunningBroker
from tests.parity.wire import Connection, encoded, message
from tests.support.served_broker import (
    ALL_TOPICS,
    REQUESTS,
    TOPICS,
    by_hand,
    connection,
    join,
)
from tests.support.waiting import FAR_S, until

_HEADER = 14
"""The bytes of a frame before the client's id: its length, the API, its version, and the id."""


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    with RunningBroker(TOPICS) as running:
        yield running


def ended(one: socket.socket) -> bool:
    """Returns whether the server has ended the connection without an answer."""
    try:
        return one.recv(1) == b""
    except ConnectionResetError:
        return True


def test_garbage_ends_only_its_own_connection(broker: RunningBroker) -> None:
    rng = random.Random(20)
    whole = encoded(message("metadata", 7, **ALL_TOPICS), 1, "c")
    frames = [
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack(">i", -1),
        struct.pack(">ihhi", 8, 999, 0, 1),
        *(whole[:4] + rng.randbytes(len(whole) - 4) for _ in range(50)),
        *(rng.randbytes(4) for _ in range(50)),
    ]
    for api in APIS.values():
        for _ in range(20):
            body = struct.pack(">hhih", api.key, rng.randint(api.least, api.most), 1, -1)
            body += rng.choice([b"", b"\0"]) + rng.randbytes(rng.randint(0, 40))
            frames.append(struct.pack(">i", len(body)) + body)
    with connection(broker) as beside:
        member_id = join(beside).member_id
        for frame in frames:
            with by_hand(broker) as one:
                one.sendall(frame)
        with by_hand(broker) as one:
            one.sendall(whole[:-1])  # the last byte never comes
        alive = beside.ask("heartbeat", 0, group_id="g", generation_id=1, member_id=member_id)
    assert alive.error_code.name == "none"


def changed(rng: random.Random) -> bytes:
    """Returns the frame of a random request; some of its bytes are changed."""
    api = rng.choice(list(APIS))
    version = rng.randint(APIS[api].least, APIS[api].most)
    frame = bytearray(encoded(message(api, version, **REQUESTS[api]), 1, "c"))
    for _ in range(rng.randint(0, 3)):
        at = rng.randrange(_HEADER, len(frame) + 1)
        piece = rng.choice([b"\xff" * 4, b"\xff" * 2, b"\0", b"\0" * 16, rng.randbytes(1)])
        frame[at : at + len(piece)] = piece
    frame[:4] = struct.pack(">i", len(frame) - 4)
    return bytes(frame)


def test_changed_requests_raise_nothing(
    broker: RunningBroker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request is answered, or its connection ends; asyncio logs exceptions of handlers."""
    for module in (cluster, topics):  # the members of a consumer group would share 65,536
        monkeypatch.setattr(module, "MOST_PARTITIONS", 1_000)
    rng = random.Random(31)
    with connection(broker) as beside:
        member_id = join(beside).member_id
        for _ in range(1500):
            with by_hand(broker) as one:
                one.sendall(changed(rng))
                select.select([one], [], [], 0.05)  # a JoinGroup is not answered at once
        alive = beside.ask("heartbeat", 0, group_id="g", generation_id=1, member_id=member_id)
    assert alive.error_code.name in ("none", "rebalance_in_progress")
    assert [one.getMessage() for one in caplog.records if one.name == "asyncio"] == []


@pytest.mark.parametrize("api", APIS)
def test_null_in_place_of_an_array_is_answered_or_ends_the_connection(
    api: str, broker: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    """As in Kafka: null is read only where the schema allows it."""
    for version in range(APIS[api].least, APIS[api].most + 1):
        schema = load_entity_schema(api, version, EntityType.request)
        for name, hint in typing.get_type_hints(schema).items():
            if name not in REQUESTS[api] or "tuple" not in str(hint):
                continue
            request = message(api, version, **{**REQUESTS[api], name: None})
            may_be_null = type(None) in typing.get_args(hint)
            with by_hand(broker) as one:
                one.sendall(encoded(request, 1, "c"))
                assert ended(one) is not may_be_null, (version, name)
    assert [one.getMessage() for one in caplog.records if one.name == "asyncio"] == []


@pytest.mark.parametrize("sent", [b"", b"\0\0", struct.pack(">i", 100) + b"\0\3"])
def test_a_client_that_sends_too_slowly_is_dropped(sent: bytes) -> None:
    with RunningBroker(TOPICS, limits=Limits(request_s=0.2)) as broker, by_hand(broker) as one:
        one.sendall(sent)
        assert ended(one)


def test_a_client_that_sends_nothing_more_is_dropped() -> None:
    limits = Limits(idle_s=0.2)
    with RunningBroker(TOPICS, limits=limits) as broker, connection(broker) as one:
        one.ask("metadata", 7, **ALL_TOPICS)
        assert ended(one._socket)


def test_a_client_that_reads_nothing_is_dropped() -> None:
    """Answers of 3 MB fill the socket's buffers, and then the server waits 0.2 s at most."""
    with (
        RunningBroker(TOPICS, limits=Limits(request_s=0.2)) as broker,
        connection(broker) as leader,
        by_hand(broker) as one,
    ):
        me = {"group_id": "g", "generation_id": 1, "member_id": join(leader).member_id}
        mine = [{"member_id": me["member_id"], "assignment": bytes(3_000_000)}]
        leader.ask("sync_group", 1, **me, assignments=mine)
        again = encoded(message("sync_group", 1, **me, assignments=[]), 1, "c")
        until("the server refuses more", lambda: _is_refused(one, again))
        until("one connection is left", lambda: broker.connections == 1)


def _is_refused(one: socket.socket, data: bytes) -> bool:
    one.settimeout(0.05)
    try:
        one.sendall(data)
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return False


def test_too_many_connections_cost_only_idle_ones() -> None:
    with RunningBroker(TOPICS, limits=Limits(connections=10)) as broker, ExitStack() as stack:
        beside = stack.enter_context(connection(broker))
        member_id = join(beside).member_id
        idle = [stack.enter_context(by_hand(broker)) for _ in range(30)]
        assert broker.connections <= 10
        assert ended(idle[0])
        alive = beside.ask("heartbeat", 0, group_id="g", generation_id=1, member_id=member_id)
        assert alive.error_code.name == "none"
        later = stack.enter_context(connection(broker))
        assert len(later.ask("metadata", 7, **ALL_TOPICS).topics) == 2


def test_large_requests_share_one_bound() -> None:
    """Two large requests exceed the limit together: one is dropped, small ones are answered."""
    half = struct.pack(">i", 1_000_000) + bytes(600_000)
    with (
        RunningBroker(TOPICS, limits=Limits(large_bytes=1_000_000)) as broker,
        by_hand(broker) as first,
        by_hand(broker) as second,
        connection(broker) as beside,
    ):
        first.sendall(half)
        assert len(beside.ask("metadata", 7, **ALL_TOPICS).topics) == 2
        with contextlib.suppress(ConnectionError):
            second.sendall(half)
        (dropped, *_), _, _ = select.select([first, second], [], [], FAR_S)
        assert ended(dropped)
        assert len(beside.ask("metadata", 7, **ALL_TOPICS).topics) == 2


def test_a_request_that_is_too_long_is_not_read(broker: RunningBroker) -> None:
    with by_hand(broker) as one:
        one.sendall(struct.pack(">i", Limits().request_bytes + 1))
        assert ended(one)


def test_a_group_beyond_the_bound_is_refused(
    broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_rebalance.serve.server.MOST_GROUPS", 1)
    with connection(broker) as one:
        assert join(one, "g").error_code.name == "none"
        assert join(one, "h").error_code.name == "coordinator_not_available"


def test_a_member_with_no_time_for_a_rebalance_ends_no_timer(broker: RunningBroker) -> None:
    """The static member i2 has a rebalance timeout of 0, and does not join again.

    The rebalance ends only when the session of i2 ends; until then, the server's timer must run.
    """

    def sent(one: Connection, name: str, rebalance_timeout: int) -> None:
        one.send(
            "join_group",
            5,
            group_id="g",
            session_timeout=6_000,
            rebalance_timeout=rebalance_timeout,
            member_id="",
            group_instance_id=name,
            protocol_type="consumer",
            protocols=[{"name": "range", "metadata": b""}],
        )

    with connection(broker) as one, connection(broker) as two, connection(broker) as admin:
        sent(one, "i1", 300_000)
        sent(two, "i2", 0)
        until("i1 is a member", lambda: one.receive() is not None)
        leaving = [{"member_id": "", "group_instance_id": "i1"}]
        admin.ask("leave_group", 3, group_id="g", members=leaving)
        broker.advance(20_000, heartbeats=False)
        described = admin.ask("describe_groups", 2, groups=["g"])
    assert described.groups[0].group_state == "Empty"
