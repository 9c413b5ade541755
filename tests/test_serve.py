# SPDX-License-Identifier: Apache-2.0
"""`serve` answers every version of its requests, survives bad clients, and runs as a command."""

from __future__ import annotations

import argparse
import contextlib
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")

from kafka_rebalance.cli.serving import served_topics
from kafka_rebalance.serve.apis import APIS
from kafka_rebalance.serve.connections import Limits
from kafka_rebalance.testing import RunningBroker
from tests.parity.wire import Connection, encoded, message

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_S = 20.0
TOPICS = {"orders": 6, "pay": 4}

ALL_TOPICS = {"topics": None, "allow_auto_topic_creation": False}


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    with RunningBroker(TOPICS) as running:
        yield running


def address(broker: RunningBroker) -> tuple[str, int]:
    host, _, port = broker.address.partition(":")
    return host, int(port)


def connection(broker: RunningBroker, client_id: str = "c") -> Connection:
    return Connection(*address(broker), client_id=client_id)


def by_hand(broker: RunningBroker) -> socket.socket:
    return socket.create_connection(address(broker), PATIENCE_S)


def join(one: Connection, group_id: str = "g", version: int = 3) -> Any:
    return one.ask(
        "join_group",
        version,
        group_id=group_id,
        session_timeout=10_000,
        rebalance_timeout=10_000,
        member_id="",
        group_instance_id=None,
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b""}],
    )


def test_the_tests_run_with_a_kio_that_the_extra_allows() -> None:
    """With another version of kio, the bytes could differ, or a module be missing."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extra = project["project"]["optional-dependencies"]["serve"]
    assert set(extra) <= set(project["dependency-groups"]["dev"])


# Versions -----------------------------------------------------------------------------------------

_TRANSACTION = {"transactional_id": "p", "producer_id": 1, "producer_epoch": 0, "group_id": "g"}
_MEMBER = {"group_id": "g", "member_id": "m", "generation_id": 1, "group_instance_id": None}
_OFFSET = {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1}
_OFFSETS = [{"name": "orders", "partitions": [{**_OFFSET, "committed_metadata": ""}]}]
_FETCH = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}
_NEW_TOPIC = {"name": "new", "num_partitions": 2, "replication_factor": 1}

REQUESTS: dict[str, dict[str, Any]] = {
    "fetch": {
        "max_wait": 1,
        "min_bytes": 1,
        "topics": [{"topic": "orders", "topic_id": None, "partitions": [_FETCH]}],
        "forgotten_topics_data": [],
    },
    "list_offsets": {
        "timeout": 1,
        "replica_id": -1,
        "isolation_level": 0,
        "topics": [
            {
                "name": "orders",
                "partitions": [{"partition_index": 0, "timestamp": -1, "current_leader_epoch": -1}],
            }
        ],
    },
    "metadata": {
        "topics": [{"name": "orders", "topic_id": None}, {"name": "no", "topic_id": None}],
        "allow_auto_topic_creation": False,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
    },
    "offset_commit": {
        **_MEMBER,
        "generation_id_or_member_epoch": 1,
        "retention_time": -1,
        "topics": _OFFSETS,
    },
    "offset_fetch": {
        "group_id": "g",
        "topics": [{"name": "orders", "partition_indexes": [0]}],
        "groups": [{"group_id": "g", "topics": None}, {"group_id": "h", "topics": None}],
    },
    "find_coordinator": {"key": "g", "key_type": 0, "coordinator_keys": ["g"]},
    "join_group": {
        "group_id": "g",
        "session_timeout": 1,  # refused at once
        "rebalance_timeout": 1,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    },
    "heartbeat": _MEMBER,
    "leave_group": {**_MEMBER, "members": [{"member_id": "m", "group_instance_id": None}]},
    "sync_group": {**_MEMBER, "assignments": [], "protocol_type": "c", "protocol_name": "r"},
    "describe_groups": {"groups": ["g"], "include_authorized_operations": False},
    "list_groups": {"states_filter": ["Stable"], "types_filter": ["classic"]},
    "api_versions": {"client_software_name": "test", "client_software_version": "1"},
    "create_topics": {
        "topics": [{**_NEW_TOPIC, "assignments": [], "configs": []}],
        "timeout": 1,
        "validate_only": True,
    },
    "delete_topics": {
        "topic_names": ["no"],
        "topics": [{"name": "no", "topic_id": None}],
        "timeout": 1,
    },
    "init_producer_id": {
        "transactional_id": "p",
        "transaction_timeout": 1000,
        "producer_id": -1,
        "producer_epoch": -1,
    },
    "add_offsets_to_txn": _TRANSACTION,
    "end_txn": {**_TRANSACTION, "committed": True},
    "txn_offset_commit": {**_MEMBER, **_TRANSACTION, "topics": _OFFSETS},
    "create_partitions": {
        "topics": [{"name": "orders", "count": 9, "assignments": None}],
        "timeout": 1,
        "validate_only": True,
    },
    "delete_groups": {"groups_names": ["g", "g"]},
    "offset_delete": {
        "group_id": "g",
        "topics": [{"name": "orders", "partitions": [{"partition_index": 0}]}],
    },
    "describe_cluster": {
        "include_cluster_authorized_operations": False,
        "endpoint_type": 1,
        "include_fenced_brokers": False,
    },
    "describe_transactions": {"transactional_ids": ["p"]},
}


@pytest.mark.parametrize("api", APIS)
def test_every_version_is_answered(api: str, broker: RunningBroker) -> None:
    """kio decodes each answer in the version of its request, to the last byte."""
    with connection(broker) as one:
        for version in range(APIS[api].least, APIS[api].most + 1):
            assert one.ask(api, version, **REQUESTS[api]) is not None


@pytest.mark.parametrize("api", APIS)
def test_every_version_with_empty_lists_is_answered(api: str, broker: RunningBroker) -> None:
    """A LeaveGroup of version 3 without members once ended its connection with a traceback."""
    fields = {k: [] if isinstance(value, list) else value for k, value in REQUESTS[api].items()}
    with connection(broker) as one:
        for version in range(APIS[api].least, APIS[api].most + 1):
            assert one.ask(api, version, **fields) is not None


def test_a_leave_without_members_is_answered_with_none(broker: RunningBroker) -> None:
    with connection(broker) as one:
        join(one)
        answer = one.ask("leave_group", 3, group_id="g", members=[])
    assert (answer.error_code.name, answer.members) == ("none", ())


def test_a_newer_version_of_api_versions_is_answered_in_version_0(broker: RunningBroker) -> None:
    """Java 4.4.0 first sends version 5, and then a version that the answer lists."""
    with by_hand(broker) as one:
        one.sendall(struct.pack(">ihhih", 10, 18, 5, 7, -1))
        length, correlation_id, error, count = struct.unpack(">iihi", one.recv(14))
    assert (correlation_id, error, count) == (7, 35, len(APIS))
    assert length == 10 + 6 * count


@pytest.mark.parametrize(("api", "version"), [("offset_fetch", 10), ("offset_commit", 10)])
def test_a_request_of_the_new_protocol_ends_the_connection(
    api: str, version: int, broker: RunningBroker
) -> None:
    fields = {"groups": [], "group_id": "g", "member_id": "", "topics": []}
    fields["generation_id_or_member_epoch"] = -1  # type: ignore[assignment]
    with by_hand(broker) as one:
        one.sendall(encoded(message(api, version, **fields), 1, "c"))
        assert one.recv(1) == b""


# Topics and groups --------------------------------------------------------------------------------


def names(answer: Any) -> list[tuple[str, str]]:
    return [(one.name, one.error_code.name) for one in answer]


def test_topics_are_made_grown_and_deleted(broker: RunningBroker) -> None:
    def new(name: str, partitions: int, replicas: int = 1) -> dict[str, Any]:
        fields = {"num_partitions": partitions, "replication_factor": replicas}
        return {"name": name, **fields, "assignments": [], "configs": []}

    wanted = [new("a", 3), new("orders", 1), new("b", 0), new("c/", 1), new("d", 1, 2)]
    wanted += [new("e", -1), new("f", 100_001)]
    with connection(broker) as one:
        made = one.ask("create_topics", 7, topics=wanted, timeout=1, validate_only=False)
        counts = [("a", 2), ("e", 4), ("no", 2)]
        more = [{"name": name, "count": count, "assignments": None} for name, count in counts]
        grew = one.ask("create_partitions", 3, topics=more, timeout=1, validate_only=False)
        gone = one.ask("delete_topics", 5, topic_names=["a", "no"], timeout=1)
        left = one.ask("metadata", 7, **ALL_TOPICS)
    assert names(made.topics) == [
        ("a", "none"),
        ("orders", "topic_already_exists"),
        ("b", "invalid_partitions"),
        ("c/", "invalid_topic_exception"),
        ("d", "invalid_replication_factor"),
        ("e", "none"),
        ("f", "policy_violation"),
    ]
    assert names(grew.results) == [
        ("a", "invalid_partitions"),
        ("e", "none"),
        ("no", "unknown_topic_or_partition"),
    ]
    assert names(gone.responses) == [("a", "none"), ("no", "unknown_topic_or_partition")]
    assert {one.name: len(one.partitions) for one in left.topics} == {**TOPICS, "e": 4}


def test_a_new_topic_of_an_old_name_has_another_id(broker: RunningBroker) -> None:
    with connection(broker) as one:

        def topic_id() -> Any:
            topics = [{"name": "orders", "topic_id": None}]
            fields = {**REQUESTS["metadata"], "topics": topics}
            return one.ask("metadata", 12, **fields).topics[0].topic_id

        before = topic_id()
        broker.grow("orders", 8)
        assert topic_id() == before
        one.ask("delete_topics", 5, topic_names=["orders"], timeout=1)
        broker.add_topic("orders", 2)
        assert topic_id() != before


def test_commits_to_partitions_that_do_not_exist_are_refused(broker: RunningBroker) -> None:
    """As in Kafka, such a commit makes no group."""
    entry = {"committed_offset": 5, "committed_leader_epoch": -1, "committed_metadata": ""}

    def commit(one: Connection, topic: str, *partitions: int) -> list[str]:
        entries = [{**entry, "partition_index": partition} for partition in partitions]
        answer = one.ask(
            "offset_commit",
            8,
            group_id="g",
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            topics=[{"name": topic, "partitions": entries}],
        )
        return [p.error_code.name for p in answer.topics[0].partitions]

    unknown = "unknown_topic_or_partition"
    with connection(broker) as one:
        assert commit(one, "no", 0) == [unknown]
        assert one.ask("list_groups", 0).groups == ()
        assert commit(one, "orders", 6, 5) == [unknown, "none"]
        found = one.ask("offset_fetch", 5, group_id="g", topics=None)
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in found.topics] == [
        ("orders", [5])
    ]


def test_groups_are_listed_by_state_and_type(broker: RunningBroker) -> None:
    with connection(broker) as one:
        join(one)

        def listed(states: list[str], types: list[str]) -> list[str]:
            answer = one.ask("list_groups", 5, states_filter=states, types_filter=types)
            return [group.group_id for group in answer.groups]

        assert listed([], []) == ["g"]
        assert listed(["completingrebalance"], ["Classic"]) == ["g"]
        assert listed(["Stable"], []) == []
        assert listed(["Nonsense"], []) == []
        assert listed([], ["consumer"]) == []


def test_racks_of_a_snapshot_are_those_of_the_brokers(tmp_path: Path) -> None:
    racks = (("a", "b"), ("b", "b"), (None, "a"))
    group = kr.GroupSpec("g", (kr.Topic("t", 3, racks),), (kr.Member("m", ("t",)),))
    file = tmp_path / "groups.jsonl"
    file.write_text(group.to_json() + "\n", encoding="utf-8")
    with running("--topics-of", str(file)) as (_, host, port), Connection(host, port, "c") as one:
        answer = one.ask("metadata", 9, **{**REQUESTS["metadata"], "topics": None})
    rack_of = {broker.node_id: broker.rack for broker in answer.brokers}
    (topic,) = answer.topics
    seen = [tuple(rack_of[node] for node in p.replica_nodes) for p in topic.partitions]
    assert tuple(seen) == racks
    assert all(len(set(p.replica_nodes)) == 2 for p in topic.partitions)


# Bad clients --------------------------------------------------------------------------------------


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
            one.sendall(whole[:-1])  # the rest never comes
        alive = beside.ask("heartbeat", 0, group_id="g", generation_id=1, member_id=member_id)
    assert alive.error_code.name == "none"


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
        until(lambda: _is_refused(one, again))
        until(lambda: broker.connections == 1)


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
    """The received bytes of two large requests exceed the limit; small ones are still answered."""
    half = struct.pack(">i", 1_000_000) + bytes(600_000)
    with (
        RunningBroker(TOPICS, limits=Limits(large_bytes=1_000_000)) as broker,
        by_hand(broker) as first,
        by_hand(broker) as second,
        connection(broker) as beside,
    ):
        first.sendall(half)
        until(lambda: len(beside.ask("metadata", 7, **ALL_TOPICS).topics) == 2)
        with contextlib.suppress(ConnectionError):
            second.sendall(half)
        (dropped, *_), _, _ = select.select([first, second], [], [], PATIENCE_S)
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
        until(lambda: one.receive() is not None)
        leaving = [{"member_id": "", "group_instance_id": "i1"}]
        admin.ask("leave_group", 3, group_id="g", members=leaving)
        broker.advance(20_000, heartbeats=False)
        described = admin.ask("describe_groups", 2, groups=["g"])
    assert described.groups[0].group_state == "Empty"


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# The command --------------------------------------------------------------------------------------


class running:  # noqa: N801
    """`kafka-rebalance serve` as a process, on a free port."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kafka_rebalance", "serve", "--port", "0", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> tuple[subprocess.Popen[str], str, int]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        host, _, port = line.split()[2].rstrip(";").partition(":")
        return self.process, host, int(port)

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_the_command_ends_without_a_word(number: signal.Signals, code: int) -> None:
    with (
        running("--topic", "orders=6") as (process, host, port),
        Connection(host, port, "c") as one,
    ):
        answer = one.ask("metadata", 7, **ALL_TOPICS)
        one.send("join_group", 3, **{**REQUESTS["join_group"], "session_timeout": 10_000})
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert host == "127.0.0.1"
    assert (process.returncode, errors) == (code, "")
    assert {topic.name: len(topic.partitions) for topic in answer.topics} == {"orders": 6}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["orders"], '"orders" is not NAME=N, as orders=6'),
        (["orders=0"], '"orders" cannot have 0 partitions; give a whole number from 1'),
        (["bad name/x=3"], '"bad name/x" is no name of a topic; give 1 to 249 of'),
        (["..=3"], '".." is no name of a topic'),
        (["orders=1000000000"], '"orders" would have 1000000000, other topics have 0; all topics'),
        (["a=60000", "b=60000"], '"b" would have 60000, other topics have 60000; all topics'),
        ([f"orders={'9' * 5000}"], "is not NAME=N, as orders=6"),
    ],
)
def test_the_command_refuses_topics_out_of_bounds(
    given: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *(word for one in given for word in ("--topic", one))]) == 2
    error = capsys.readouterr().err
    assert error.startswith("kafka-rebalance: --topic: ")
    assert problem in error


def test_a_bad_line_of_a_snapshot_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    member = kr.Member("m", ("t",))
    good = kr.GroupSpec("g", (kr.Topic("t", 3),), (member,)).to_json().encode()
    illegal = kr.GroupSpec("h", (kr.Topic("a b", 3),), (member,)).to_json().encode()
    file = tmp_path / "groups.jsonl"
    for bad, problem in (
        (b"{", "line: not JSON"),
        (b'{"group_id": "h"}', "topics: missing"),
        (b"\xff", "line: not UTF-8"),
        (illegal, '"a b" is no name of a topic'),
    ):
        file.write_bytes(good + b"\n\n" + bad + b"\n")
        assert main(["serve", "--topics-of", str(file)]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"kafka-rebalance: --topics-of {file}:3: ")
        assert problem in error


def test_a_topic_that_is_gone_is_not_served(tmp_path: Path) -> None:
    """A snapshot lists a deleted topic, with 0 partitions, if a member still owns some of it."""
    member = kr.Member("m", ("t",), owned_partitions=(kr.TopicPartition("gone", 0),))
    topics = (kr.Topic("t", 3), kr.Topic("gone", 0))
    file = tmp_path / "groups.jsonl"
    file.write_text(kr.GroupSpec("g", topics, (member,)).to_json() + "\n", encoding="utf-8")
    args = argparse.Namespace(topics_of=file, topic=["u=1", "t=4"])
    assert [one[:2] for one in served_topics(args)] == [("u", 1), ("t", 4)]


@pytest.mark.parametrize("port", ["70000", "-1", "x", "9" * 5000])
def test_the_command_refuses_a_port_that_is_none(
    port: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--topic", "t=1", f"--port={port}"])
    assert f"argument --port: {port} is not a port from 0 to 65535" in capsys.readouterr().err


@pytest.mark.parametrize("host", ["no such host", "a..b"])
def test_the_command_names_a_host_that_is_none(
    host: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", "--topic", "t=1", "--port", "0", "--host", host]) == 2
    expected = f'kafka-rebalance: --host: "{host}" is no address of this machine, as 127.0.0.1: '
    assert capsys.readouterr().err.startswith(expected)
