"""Traces: whole runs as text. REWRITE_TRACES=1 writes what comes out in place of what is there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka_rebalance.coordinator.trace import Tracer
from kafka_rebalance.errors import GroupError
from kafka_rebalance.traces import parse, play

TRACES = Path(__file__).parent / "traces"
COORDINATOR = sorted((TRACES / "coordinator").glob("*.txt"))


@pytest.mark.parametrize("path", COORDINATOR, ids=lambda path: path.stem)
def test_coordinator(path: Path) -> None:
    there = path.read_text(encoding="utf-8")
    played = play(there, Tracer().step)
    if os.environ.get("REWRITE_TRACES"):
        path.write_text(played, encoding="utf-8")
    else:
        assert played == there


def test_there_are_traces() -> None:
    assert len(COORDINATOR) > 10


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("foo", "no command 'foo'; known: config, join"),
        ("advance soon", "'soon' is no duration"),
        ("advance", "advance DURATION"),
        ("config speed=3", "no option 'speed' here; known: initial_delay"),
        ("config max_size=0", "0 is less than 1"),
        ("fetch t", "'t' is no partition; t-0 is"),
        ("commit c0 t-0=x", "'x' is no whole number"),
        ("sync leader", "the group has no leader"),
        ("fail-next NOBODY", "no error code 'NOBODY'"),
        ("join", "join NAME [new]"),
    ],
)
def test_wrong_commands_say_what_is_wrong_and_the_next_is_played(line: str, problem: str) -> None:
    played = play(f"{line}\ngroups\n", Tracer().step)
    said = parse(played)[0].expected
    assert said[0].startswith(f"error: {problem}")
    assert said[1:] == ("0.0s -> admin: ListGroups NONE",)


def test_a_line_that_cannot_be_read_is_named() -> None:
    with pytest.raises(GroupError, match="line 2: No closing quotation"):
        parse("join c0\njoin 'c1\n")
