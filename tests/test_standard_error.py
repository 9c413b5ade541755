# SPDX-License-Identifier: Apache-2.0
"""Sentences on standard error: wrapped on a terminal, one line each for everything else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import kafka_rebalance
import kafka_rebalance as kr
from tests.support.terminal import open_terminal, read_terminal
from tests.support.waiting import FAR_S

PACKAGE = Path(kafka_rebalance.__file__).parent
GROUP = kr.GroupSpec(
    "payments-settlement-eu-west",
    (kr.Topic("payments.settlement.accepted", 4),),
    (kr.Member("m0", ("payments.settlement.accepted",), client_library="a-library-of-tomorrow"),),
    "range",
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "groups.jsonl"
    path.write_text(f"{GROUP.to_json()}\n", encoding="utf-8")
    return path


def on_terminal(
    *arguments: object, columns: int, environment: dict[str, str] | None = None
) -> list[str]:
    """Returns the lines on standard error, which is a terminal; standard output is a pipe."""
    reader, terminal = open_terminal(columns)
    ran = subprocess.run(
        [sys.executable, "-m", "kafka_rebalance", *map(str, arguments)],
        env={**os.environ, "NO_COLOR": "1", **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=terminal,
        timeout=FAR_S,
        check=False,
    )
    os.close(terminal)
    assert ran.returncode in (0, 2, 3)
    return read_terminal(reader).splitlines()


def in_a_pipe(*arguments: object, environment: dict[str, str] | None = None) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-m", "kafka_rebalance", *map(str, arguments)],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=FAR_S,
        check=False,
    )
    return ran.stderr.splitlines()


@pytest.mark.parametrize("columns", [40, 80])
def test_a_warning_is_wrapped_after_a_word(file: Path, columns: int) -> None:
    """The width is that of the terminal on standard error: standard output is a pipe here."""
    lines = on_terminal("plan", file, columns=columns)
    assert len(lines) > 1
    assert max(map(len, lines)) <= columns
    assert lines[0].startswith("kafka-rebalance: 1 group has members or")
    assert all(re.match(r"  \S", line) for line in lines[1:])
    assert [" ".join(" ".join(lines).split())] == in_a_pipe("plan", file)


def test_an_error_and_a_wrong_option_are_wrapped(tmp_path: Path, file: Path) -> None:
    name = "of-a-rather-long-name-" * 5
    for arguments in (
        ("plan", file, "--group", name),
        ("plan", tmp_path / name),
        ("plan", file, "--samples", "many"),
        ("plan", file, "--change", "remove-every-second-member"),
    ):
        whole = max(in_a_pipe(*arguments), key=len)
        lines = on_terminal(*arguments, columns=60)
        assert whole in " ".join(" ".join(lines).split())
        assert len(whole) > 60
        assert all(len(line) <= 60 or " " not in line.strip() for line in lines)


def test_a_wrong_option_is_not_below_a_screen_of_options(file: Path) -> None:
    """`plan` has 26 options: their list had 20 lines, and the error was the last one."""
    error, more = in_a_pipe("plan", file, "--samples", "many")
    assert error.startswith("kafka-rebalance plan: error: argument --samples: many is not")
    assert more == "kafka-rebalance plan --help shows all options."
    usage, error = in_a_pipe("completion", "of-no-shell")
    assert usage.startswith("usage: kafka-rebalance completion ")
    assert "of-no-shell" in error


def test_columns_count_before_the_terminal(file: Path) -> None:
    lines = on_terminal("plan", file, columns=200, environment={"COLUMNS": "50"})
    assert max(map(len, lines)) <= 50
    wide = on_terminal("plan", file, columns=200)
    assert 80 < max(map(len, wide)) <= 100


def test_a_script_sees_one_line_even_with_columns(file: Path) -> None:
    """Scripts that set COLUMNS for tables still grep whole sentences."""
    (line,) = in_a_pipe("plan", file, environment={"COLUMNS": "40"})
    assert line.endswith("planned here")
    assert len(line) > 100


def test_a_group_without_an_answer_has_a_line_for_each_sentence(tmp_path: Path) -> None:
    """The sentences below the error of a group whose leader hangs are wrapped by this rule."""
    from tests.test_never_ends import GROUP as ENDLESS

    file = tmp_path / "groups.jsonl"
    file.write_text(f"{ENDLESS.to_json()}\n", encoding="utf-8")
    lines = in_a_pipe("plan", file)
    assert lines[-2].endswith("had errors") or lines[-1].endswith("had errors")
    assert any(line.startswith("NEVER ENDS") for line in lines)
    assert any(len(line) > 100 for line in lines)
    shown = on_terminal("plan", file, columns=80)
    assert max(map(len, shown)) <= 80
    assert " ".join(" ".join(shown).split()) == " ".join(" ".join(lines).split())


def test_every_sentence_goes_this_way() -> None:
    """Only progress bars bypass it, because their control characters are the command's own."""
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "file=sys.stderr" in path.read_text(encoding="utf-8")
    }
    assert found == {"report/text/sentences.py"}
