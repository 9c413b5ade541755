# SPDX-License-Identifier: Apache-2.0
"""Runs the command without any optional package, on a terminal of 80 columns."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_rebalance.cli.parser import COMMANDS, EXAMPLES
from kafka_rebalance.report.text.tables import table_lines
from tests.support.terminal import open_terminal, read_terminal
from tests.test_shape import OPTIONAL

SAMPLE = str(Path(__file__).parent.parent / "python/kafka_rebalance/data/captured_groups.jsonl")
ONE = (SAMPLE, "--group", "chat-moderation", "--add-members", "2")
_OF_TERMINALS = ("COLUMNS", "NO_COLOR")
BARE = (
    f"import sys\nfor name in {OPTIONAL!r}: sys.modules[name] = None\n"
    "from kafka_rebalance.cli import main; sys.exit(main())"
)
SCRIPT = (
    '{"id": "s", "assignor": "connect/incremental", "rounds": [{"time_ms": 0, '
    '"workers": [{"id": "w", "connectors": [], "tasks": []}], "config": {"files": 2}}]}'
)


def bare(*arguments: str, **environment: str) -> tuple[int, str, str]:
    """Runs a command without optional packages; returns exit code, terminal output and errors."""
    terminal, end = open_terminal(80)
    settings = {key: value for key, value in os.environ.items() if key not in _OF_TERMINALS}
    with subprocess.Popen(
        [sys.executable, "-c", BARE, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=end,
        stderr=subprocess.PIPE,
        env={**settings, "TERM": "xterm", **environment},
    ) as process:
        os.close(end)
        assert process.stderr
        printed, problems = read_terminal(terminal), process.stderr.read()
    return process.returncode, printed, problems.decode()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("plan", *ONE), "partitions per member"),
        (("plan", SAMPLE, "--add-members", "1"), "cooperative-sticky"),
        (("compare", *ONE), " cooperative-sticky <"),
        (("compare", SAMPLE, "--add-members", "1"), "cooperative-sticky"),
        (("scale", *ONE[:3]), "4 members help"),
        (("scale", SAMPLE), "chat-moderation"),
        (("describe", *ONE[:3]), "chat-moderation"),
        (("describe", SAMPLE, "--all"), "recommendations"),
        (("simulate", "rolling-bounce", "--compare", "eager,cooperative"), " cooperative"),
        (("simulate", "rolling-bounce", "--seeds", "2"), "stable after"),
        (("simulate", "--list"), "seven-topics"),
        (("connect", "SCRIPT"), "round 1"),
    ],
)
def test_the_command_needs_nothing_and_fits(
    arguments: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(SCRIPT)
    code, printed, problems = bare(*(str(script) if a == "SCRIPT" else a for a in arguments))
    is_rebalancing = arguments[1:2] == (SAMPLE,) and "--group" not in arguments
    # One group of the sample is rebalancing: an error, but for `describe` a row.
    assert code == (3 if is_rebalancing and arguments[0] != "describe" else 0), problems
    assert said in printed
    lines = re.sub("\x1b\\[[0-9]*m", "", printed).splitlines()
    # Lines that a reader copies are never wrapped.
    copied = ("partition.assignment.strategy=", "kafka-consumer-groups.sh", "kafka-rebalance ")
    wide = [line for line in lines if len(line) > 80]
    assert [line for line in wide if not line.strip().startswith(copied)] == []


@pytest.mark.parametrize(
    "command", [*COMMANDS, "fleet assign", "fleet plan", "fleet compare", "fleet summary"]
)
def test_every_command_shows_its_help(command: str) -> None:
    code, printed, problems = bare(*command.split(), "--help")
    assert (code, problems) == (0, "")
    assert printed.startswith("usage: ")
    # Lines that a reader copies are never wrapped.
    examples = {f"  kafka-rebalance {one}" for one in EXAMPLES.get(command, ())}
    wide = {line for line in printed.splitlines() if len(line) > 80}
    assert wide - examples == set()


def test_a_missing_part_is_named_with_what_installs_it(tmp_path: Path) -> None:
    code, _, problems = bare("simulate", "scale-out", "--output", str(tmp_path / "run.parquet"))
    assert code == 1
    assert "needs an optional part: pip install 'pyarrow" in problems
    assert "(in a checkout: pip install '.[arrow]')" in problems
    for word in ("snapshot", "describe", "plan", "history", "check", "watch", "exporter"):
        code, _, problems = bare(word, "--bootstrap-server", "127.0.0.1:1")
        assert "pip install 'kafka-python" in problems, word
        assert len(problems.splitlines()) == 1
    for command in (("serve", "--port", "0"), ("probe", SAMPLE, "--client", "aiokafka")):
        code, _, problems = bare(*command)
        assert code == 1
        assert "kafka_rebalance.serve needs an optional part: pip install" in problems
        assert "'.[serve]'" in problems
        assert len(problems.splitlines()) == 1


def test_colour_only_where_it_is_wanted() -> None:
    assert "\x1b[1m" in bare("describe", *ONE[:3])[1]
    assert "\x1b" not in bare("describe", *ONE[:3], NO_COLOR="1")[1]
    assert "\x1b" not in bare("describe", *ONE[:3], TERM="dumb")[1]
    piped = subprocess.run(
        [sys.executable, "-c", BARE, "describe", *ONE[:3]], capture_output=True, check=True
    )
    assert b"\x1b" not in piped.stdout


def test_no_table_loses_a_letter_or_is_too_wide() -> None:
    rng = random.Random(4)
    for _ in range(300):
        columns = rng.randint(1, 9)
        rows = [
            ["".join(rng.choices("ab -_[,1", k=rng.randint(0, 60))) for _ in range(columns)]
            for _ in range(rng.randint(1, 5))
        ]
        head = ["h" * rng.randint(1, 12) for _ in range(columns)]
        most = rng.choice((80, 100))
        lines = list(table_lines(head, rows, most, whole=rng.random() < 0.5))
        assert max(map(len, lines)) <= most
        letters = sorted("".join(lines).replace("─", "").replace(" ", ""))
        assert letters == sorted("".join("".join(row) for row in [head, *rows]).replace(" ", ""))
