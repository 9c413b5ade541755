# SPDX-License-Identifier: Apache-2.0
"""Every live command ends in one line, whatever listens at the given address."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import sys
import time

import pytest

from kafka_rebalance.cli import main

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")

from tests.support.dying_broker import WAYS, runs, served_group
from tests.support.hostile_listeners import LISTENERS, broker_commands

PATIENCE_S = 120.0
"""The commands of one listener end in about 10 s; one that hangs never does."""


@pytest.mark.parametrize("name", LISTENERS)
def test_a_hostile_listener_ends_each_command_in_one_line(name: str) -> None:
    if LISTENERS[name].has_tls and not shutil.which("openssl"):
        pytest.skip("no `openssl` on PATH")
    ran = subprocess.run(
        [sys.executable, "-m", "tests.support.hostile_listeners", name],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    results = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(results) == (1 if name.startswith("connect") else 10)
    for one in results:
        assert one["code"] == 1, one
        assert one["out"] == "", one
        assert one["err"].startswith("kafka-rebalance: "), one
        assert one["err"].count("\n") == 1, one


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("command", ["snapshot", "plan", "history", "describe --group"])
@pytest.mark.soak
def test_a_broker_that_dies_in_the_middle_ends_a_command_in_one_line(
    command: str, way: str
) -> None:
    """`python -m tests.support.dying_broker` tests all commands and all answers.

    tests/test_watch_outage.py tests `watch`, which waits for the broker.
    """
    *died, last = runs(broker_commands()[command], way, every=3)
    assert len(died) >= 2
    assert last["is_over"]
    for one in died:
        assert one["code"] == 1, one
        assert one["out"] == "", one
        assert one["err"].startswith("kafka-rebalance: 127.0.0.1:"), one
        assert one["err"].count("\n") == 1, one


@pytest.mark.parametrize("hour", [3600, -3600])
@pytest.mark.soak
def test_a_clock_that_jumps_ends_nothing(
    hour: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At each look, the machine's clock has jumped by an hour more."""
    jumps = itertools.count(step=hour)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + next(jumps))
    with served_group() as broker:
        for words in (["snapshot"], ["watch", "--group", "g", "--for", "6"], ["snapshot"]):
            assert main([*words, "--bootstrap-server", broker.address]) == 0
            out, err = capsys.readouterr()
            assert '"group_id":"g"' in out or "watching g" in err
    assert next(jumps) != 0, "nobody has looked at the clock"
