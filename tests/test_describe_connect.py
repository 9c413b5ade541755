# SPDX-License-Identifier: Apache-2.0
"""`describe` reads a Connect group from bytes that real workers (Connect 4.3.1) sent."""

from __future__ import annotations

import argparse
import json
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_rebalance import GroupError
from kafka_rebalance.live.other_groups import connect_group
from kafka_rebalance.report.groups.other_groups import print_connect_group
from kafka_rebalance.wire.connect_protocol import (
    ConnectAssignment,
    ConnectMetadata,
    encode_connect_assignment,
    encode_connect_metadata,
)

HOST = "127.0.0.1:"
# client id -> metadata and assignment of a worker, from a live DescribeGroups response.
RECORDED = {
    "connect-127.0.0.1:32815": (
        (
            "00020017687474703a2f2f3132372e302e302e313a33323831352f000000000000000a0000008600"
            "020000003c636f6e6e6563742d3132372e302e302e313a33323831352d38393961383130372d6264"
            "32342d343632392d623337302d6461643162616466306563390017687474703a2f2f3132372e302e"
            "302e313a33323831352f000000000000000a00000001000566696c657300000003ffffffff000000"
            "00000000020000000000000000"
        ),
        (
            "00020000003c636f6e6e6563742d3132372e302e302e313a33323831352d38393961383130372d62"
            "6432342d343632392d623337302d6461643162616466306563390017687474703a2f2f3132372e30"
            "2e302e313a33323831352f000000000000000a000000000000000000000000"
        ),
    ),
    "connect-127.0.0.1:33673": (
        (
            "00020017687474703a2f2f3132372e302e302e313a33333637332f000000000000000a0000009600"
            "020000003c636f6e6e6563742d3132372e302e302e313a33323831352d38393961383130372d6264"
            "32342d343632392d623337302d6461643162616466306563390017687474703a2f2f3132372e302e"
            "302e313a33323831352f000000000000000a0000000200066f726465727300000003ffffffff0000"
            "000000000001000566696c657300000001000000010000000000000000"
        ),
        (
            "00020000003c636f6e6e6563742d3132372e302e302e313a33323831352d38393961383130372d62"
            "6432342d343632392d623337302d6461643162616466306563390017687474703a2f2f3132372e30"
            "2e302e313a33323831352f000000000000000a000000000000000000000000"
        ),
    ),
}
LEADER = "connect-127.0.0.1:32815-899a8107-bd24-4629-b370-dad1badf0ec9"


def _described(*members: Any, state: str = "Stable", error_code: int = 0) -> Any:
    return SimpleNamespace(
        error_code=error_code,
        group_id="connect",
        group_state=state,
        protocol_data="sessioned",
        members=members,
    )


def _sent(name: str, metadata: bytes, assignment: bytes) -> Any:
    return SimpleNamespace(
        member_id=name,
        client_id=name,
        client_host="/127.0.0.1",
        member_metadata=metadata,
        member_assignment=assignment,
    )


def _recorded() -> Any:
    members = [
        _sent(client_id, bytes.fromhex(metadata), bytes.fromhex(assignment))
        for client_id, (metadata, assignment) in RECORDED.items()
    ]
    members[0].member_id = LEADER
    return _described(*members)


def _worker(n: int, ran: ConnectAssignment | None, version: int = 2, **new: Any) -> Any:
    url = f"http://w{n}:8083/"
    sent = ConnectMetadata(url=url, config_offset=1, assignment=ran, version=version)
    answer = ConnectAssignment(leader="w0", leader_url="http://w0:8083/", version=version, **new)
    return _sent(f"w{n}", encode_connect_metadata(sent), encode_connect_assignment(answer))


def test_recorded_workers() -> None:
    one = connect_group(_recorded()).to_dict()
    assert (one["group_type"], one["state"], one["leader"]) == ("connect", "Stable", LEADER)
    assert one["leader_url"] == "http://127.0.0.1:32815/"
    assert [(worker["connectors"], worker["tasks"]) for worker in one["members"]] == [
        (["files"], [["files", 0], ["files", 2]]),
        (["orders"], [["orders", 0], ["orders", 1], ["files", 1]]),
    ]
    assert {worker["config_offset"] for worker in one["members"]} == {10}
    assert (one["balance_tasks"]["min"], one["balance_tasks"]["max"]) == (2, 3)
    assert one["findings"] == []


def test_recorded_workers_in_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_connect_group(connect_group(_recorded()), everything=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "connect, Kafka Connect, sessioned, Stable: 2 workers, 2 connectors, 5 tasks"
    )
    rows = [line.split(maxsplit=2) for line in lines if line.startswith(f" {HOST}")]
    assert [row[0] for row in rows] == [f"{HOST}32815", f"{HOST}33673"]
    assert "leader" in rows[0][2]
    assert "leader" not in rows[1][2]
    assert rows[1][2].endswith("orders; files-1 orders[0-1]")
    assert "Connectors a worker: 1, as even as possible." in lines
    assert "Tasks a worker: 2-3, as even as possible." in lines
    assert lines[-1] == (
        "  kafka-rebalance connect --url http://127.0.0.1:32815/ "
        f"--then 'worker {HOST}33673 leaves'"
    )


def test_the_next_command_says_that_the_leader_leaves(capsys: pytest.CaptureFixture[str]) -> None:
    """The next leader remembers nothing, so a leaving leader differs from another leaving
    worker.
    """
    described = _described(_worker(1, None), _worker(0, None))
    print_connect_group(connect_group(described), everything=False)
    assert capsys.readouterr().out.splitlines()[-1] == (
        "  kafka-rebalance connect --url http://w0:8083/ --then 'leader w0:8083 leaves'"
    )


def test_a_worker_runs_what_it_ran_less_the_revoked_and_the_new_work() -> None:
    ran = ConnectAssignment(connectors=("a", "b"), tasks=(("a", 0), ("b", 0)))
    revoked: dict[str, Any] = {"revoked_connectors": ("b",), "revoked_tasks": (("a", 0),)}
    (worker,) = connect_group(
        _described(_worker(0, ran, connectors=("c",), tasks=(("c", 1),), **revoked))
    ).workers
    assert worker.to_dict()["connectors"] == ["a", "c"]
    assert worker.to_dict()["tasks"] == [["b", 0], ["c", 1]]


def test_an_eager_assignment_is_all_work() -> None:
    (worker,) = connect_group(_described(_worker(0, None, 0, connectors=("a",)))).workers
    assert worker.to_dict()["connectors"] == ["a"]


@pytest.mark.parametrize(
    ("workers", "words"),
    [
        ([_worker(0, None, connectors=("a",)), _worker(1, None)], ["idle"]),
        ([_worker(n, None, tasks=(("a", 0),)) for n in range(2)], ["doubled"]),
        ([_worker(0, None, delay_ms=300_000)], ["waits"]),
        ([_worker(0, None, error=1)], ["mismatch"]),
        ([_worker(n, None, n + 1) for n in range(2)], ["mixed"]),
        ([_worker(n, None) for n in range(2)], []),
    ],
)
def test_findings(workers: list[Any], words: list[str]) -> None:
    findings = connect_group(_described(*workers)).findings
    assert [one.kind for one in findings] == words


@pytest.mark.parametrize(
    ("described", "problem"),
    [
        (_described(_worker(0, None), state="PreparingRebalance"), "state: PreparingRebalance"),
        (_described(error_code=30), "group_id: no permission: this user needs Describe on Group c"),
        (_described(error_code=16), "group_id: Group connect is not described: NotCoordinator"),
        (_described(_sent("w", b"", b"")), r"members\[0\]: metadata.version: needs 2 bytes"),
    ],
)
def test_a_group_that_cannot_be_read(described: Any, problem: str) -> None:
    pytest.importorskip("kafka", reason="no kafka-python: pip install -e '.[kafka]'")
    with pytest.raises(GroupError, match=problem):
        connect_group(described)


def test_a_group_without_members(capsys: pytest.CaptureFixture[str]) -> None:
    print_connect_group(connect_group(_described(state="Empty")), everything=False)
    printed = capsys.readouterr().out
    assert printed == (
        "connect, Kafka Connect, sessioned, Empty: 0 workers, 0 connectors, 0 tasks\n"
    )


def test_the_command_begins_with_the_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from kafka_rebalance import live
    from kafka_rebalance.cli import describe
    from kafka_rebalance.cli.groups import BadGroup

    none: dict[str, Any] = {
        "file": None,
        "command_config": None,
        "topic": [],
        "assume": [],
        "all": False,
    }
    where = {"bootstrap_server": "b:9092", "group": "connect", "timeout": 5.0}
    asked = argparse.Namespace(**none, **where)
    answers = (_recorded(), "nothing is wrong."), (_described(state="Empty"), "it has no members.")
    for found, words in answers:
        monkeypatch.setattr(live, "other_group", lambda *_, found=found, **__: connect_group(found))
        for asked.json in (False, True):
            describe._show_other(asked, BadGroup("connect", "unknown"))
            first = capsys.readouterr().out.splitlines()[0]
            assert (json.loads(first)["summary"] if asked.json else first) == f"connect: {words}"
