# SPDX-License-Identifier: Apache-2.0
"""The commands and the Python code of docs/history.md run on docs/incident, as the page shows."""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_rebalance.history.records import read_records
from kafka_rebalance.history.replayed import replay
from tests.test_history import VECTORS
from tests.test_history_replay import generations_of

DOCS = Path(__file__).resolve().parent.parent / "docs"
INCIDENT = DOCS / "incident"
TEXT = (DOCS / "history.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"<!-- example: (.+?) -->\n```console\n(.*?)```\n", TEXT, re.DOTALL))
PYTHON = re.findall(r"```python\n(import kafka_rebalance.*?)```", TEXT, re.DOTALL)


def test_the_page_has_its_examples() -> None:
    assert list(EXAMPLES) == [
        "groups command",
        "group command",
        "log command",
        "replay command",
        "what-if command",
    ]
    assert len(PYTHON) == 1


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_command_of_the_page(name: str) -> None:
    command, _, printed = EXAMPLES[name].partition("\n")
    words = shlex.split(command.removeprefix("$ kafka-rebalance "))
    ran = subprocess.run(
        [sys.executable, "-m", "kafka_rebalance", *words],
        cwd=INCIDENT, capture_output=True, encoding="utf-8", check=True,
    )  # fmt: skip
    assert [line.rstrip() for line in ran.stdout.splitlines()] == printed.splitlines()
    assert ran.stderr == ""


def test_the_python_of_the_page(tmp_path: Path) -> None:
    for name in ("records.jsonl", "server.log"):
        with gzip.open(INCIDENT / f"{name}.gz") as packed, (tmp_path / name).open("wb") as plain:
            shutil.copyfileobj(packed, plain)
    ran = subprocess.run(
        [sys.executable, "-c", PYTHON[0]],
        cwd=tmp_path, capture_output=True, encoding="utf-8", check=True,
    )  # fmt: skip
    assert "shop rolling 3 members restarted one after another, in 6 rebalances" in ran.stdout
    assert "ReplayShare(protocol='roundrobin', leader_library='java', equal=8" in ran.stdout


def test_the_incident_is_a_piece_of_the_recorded_run() -> None:
    """The page's records are the first ones of a recorded run; its log lines are from that run."""
    run = list(read_records(str(VECTORS / "kafka-4.4.0" / "records.jsonl.gz")))
    records = list(read_records(str(INCIDENT / "records.jsonl.gz")))
    end = max(one.timestamp_ms for one in records)
    assert set(records) == {one for one in run if one.timestamp_ms <= end}
    with gzip.open(VECTORS / "kafka-4.4.0" / "broker.log.gz", "rt", encoding="utf-8") as lines:
        written = set(lines)
    with gzip.open(INCIDENT / "server.log.gz", "rt", encoding="utf-8") as lines:
        assert set(lines) <= written


def test_the_figures_of_the_page_about_replay() -> None:
    """The page states the right numbers of rebalances that replay finds equal."""
    replayed = [one for release in ("4.4.0", "3.6.2", "2.4.1") for one in _replayed(release)]
    libraries = [library for library, equal in replayed if equal]
    shown = re.search(r"(\d+) of (\d+) rebalances come out equal: (\d+) led by Java", TEXT)
    assert shown is not None
    assert [int(one) for one in shown.groups()] == [
        len(libraries),
        len(replayed),
        libraries.count("java"),
    ]


def _replayed(release: str) -> list[tuple[str | None, bool | None]]:
    return [(one.leader_library, one.equal) for one in replay(generations_of(release))]
