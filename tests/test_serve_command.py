# SPDX-License-Identifier: Apache-2.0
"""`kafka-rebalance serve` as a command: how it starts, what it refuses, how it ends."""

from __future__ import annotations

import argparse
import re
import signal
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")

from kafka_rebalance.cli.serve import served_topics
from tests.parity.wire import Connection
from tests.support.served_broker import (
    ALL_TOPICS,
    REQUESTS,
    running,
)
from tests.support.waiting import FAR_S


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_the_command_ends_without_a_word(number: signal.Signals, code: int) -> None:
    with (
        running("--topic", "orders=6") as (process, host, port),
        Connection(host, port, "c") as one,
    ):
        answer = one.ask("metadata", 7, **ALL_TOPICS)
        one.send("join_group", 3, **{**REQUESTS["join_group"], "session_timeout": 10_000})
        process.send_signal(number)
        _, errors = process.communicate(timeout=FAR_S)
    assert host == "127.0.0.1"
    assert (process.returncode, errors) == (code, "")
    assert {topic.name: len(topic.partitions) for topic in answer.topics} == {"orders": 6}


def test_few_open_files_cost_only_idle_connections() -> None:
    """There are 200 idle connections, and the process may open 64 files: others are answered at
    once.
    """
    with running("--topic", "orders=6", files=64) as (process, host, port), ExitStack() as stack:
        beside = stack.enter_context(Connection(host, port, "beside"))
        beside.ask("metadata", 7, **ALL_TOPICS)
        for n in range(200):
            stack.enter_context(socket.create_connection((host, port), FAR_S))
            if n % 20 == 0:
                with Connection(host, port, "c") as one:
                    assert len(one.ask("metadata", 7, **ALL_TOPICS).topics) == 1
        assert len(beside.ask("metadata", 7, **ALL_TOPICS).topics) == 1
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=FAR_S)
    told = "at most [0-9]+ connections: ulimit -n bounds the open files\n"
    assert re.fullmatch(told, errors)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["orders"], '"orders" is not NAME=N, as orders=6'),
        (["orders=0"], '"orders" cannot have 0 partitions; give a whole number from 1'),
        (["bad name/x=3"], '"bad name/x" is not a name of a topic; give 1 to 249 of'),
        (["..=3"], '".." is not a name of a topic'),
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
        (illegal, '"a b" is not a name of a topic'),
    ):
        file.write_bytes(good + b"\n\n" + bad + b"\n")
        assert main(["serve", "--topics-of", str(file)]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"kafka-rebalance: --topics-of {file}:3: ")
        assert problem in error


def test_a_topic_that_is_gone_is_not_served(tmp_path: Path) -> None:
    """A snapshot lists a deleted topic, with 0 partitions, if a member still owns partitions
    of it.
    """
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
    expected = (
        f'kafka-rebalance: --host: "{host}" is not an address of this machine, as 127.0.0.1: '
    )
    assert capsys.readouterr().err.startswith(expected)
