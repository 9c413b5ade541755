# SPDX-License-Identifier: Apache-2.0
"""The promises of SECURITY.md name tests that exist; this file tests those that no other file
tests.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_rebalance.cli import main
from kafka_rebalance.data import captured_lines
from kafka_rebalance.live.broker_groups import DESCRIBE_APIS
from kafka_rebalance.serve.connections import Connections

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "kafka_rebalance"
PROMISES = [
    line.strip("| ").split(" | ")
    for line in (ROOT / "SECURITY.md").read_text("utf-8").splitlines()
    if line.startswith("| ") and "`tests/" in line
]
WRITES = re.compile(
    "(create|delete|alter|incremental|elect|produce|send|commit|remove|reset|subscribe)_?"
    "(topics?|partitions?|groups?|offsets?|records?|acls?|configs?|sync|async)?"
)
WORDS = [["assign"], ["describe"], ["plan", "--add-members", "1"]]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def test_every_promise_names_tests_that_exist() -> None:
    assert len(PROMISES) >= 8
    for promise, tests in PROMISES:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", tests)
        assert named, promise
        for path, name in named:
            assert f"\ndef {name}(" in (ROOT / path).read_text("utf-8"), f"{path}::{name}"


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_hash(workflow: Path) -> None:
    used = re.findall(r"uses: *(.*)", workflow.read_text("utf-8"))
    assert used
    for action in used:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_live_commands_call_nothing_that_writes() -> None:
    """Of the clients' admin and consumer objects, only methods that read are called.

    `raw_requests` sends descriptions of groups that the broker assigns.
    """
    called = {
        node.func.attr
        for path in (PACKAGE / "live").glob("*.py")
        if path.name != "raw_requests.py"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    assert {"list_groups", "describe_topics", "poll"} <= called
    assert [name for name in sorted(called) if WRITES.fullmatch(name)] == []
    keys = {kind: api.api_key for kind, api in DESCRIBE_APIS.items()}
    assert keys == {"consumer": 69, "share": 77, "streams": 89}


def test_commands_without_a_cluster_open_no_socket(tmp_path: Path) -> None:
    groups = tmp_path / "groups.jsonl"
    groups.write_text("\n".join(captured_lines()), encoding="utf-8")
    program = f"""
import sys
opened = []
sys.addaudithook(lambda event, values: event.startswith("socket.") and opened.append(event))
from kafka_rebalance.cli import main
groups = {str(groups)!r}
codes = [main([*words, groups]) for words in {WORDS!r}]
print(codes, opened, file=sys.stderr)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    codes, opened = ran.stderr.splitlines()[-1].split("] [")
    assert set(codes.strip("[]").split(", ")) <= {"0", "3"}  # 3: some of the groups are bad
    assert opened == "]"


def test_all_listeners_are_on_loopback(capsys: pytest.CaptureFixture[str]) -> None:
    listeners = [
        (path.name, node.func.attr)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("start_server", "create_server", "listen", "bind", "HTTPServer")
    ]
    # `Connections.listen` opens them all: `__aenter__` and the server's second broker call it.
    of_connections = [("connections.py", name) for name in ("listen", "listen", "start_server")]
    assert sorted(listeners) == [*of_connections, ("server.py", "listen")]
    assert inspect.signature(Connections).parameters["host"].default == "127.0.0.1"
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    assert "address (default: 127.0.0.1)" in " ".join(capsys.readouterr().out.split())
