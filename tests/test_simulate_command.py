"""Scenarios as files, and the command that plays them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from kafka_rebalance.cli import main
from kafka_rebalance.errors import GroupError
from kafka_rebalance.simulator import Kind, simulate, totals
from kafka_rebalance.simulator.files import load, read, ready

if TYPE_CHECKING:
    from pathlib import Path

SMALL = """
title = "small"
until = "1m"
[topics]
t = 4
u = { partitions = 2, records_per_second = 10 }
[broker]
group_initial_rebalance_delay = "1s"
[members]
partition_assignment_strategy = ["range"]
start_cost = "10ms"
[[member]]
name = "c"
count = 2
every = "5s"
[[member]]
name = "other"
topics = ["u"]
static = true
[[happening]]
at = "30s"
do = "bounce"
members = "c*"
every = "1s"
for = "2s"
"""


@pytest.mark.parametrize("name", ready())
def test_ready_scenarios_settle(name: str) -> None:
    run = simulate(load(name))
    assert run.crashed == {}
    assert totals(run).settled_ms is not None
    assert len(run.rebalances) > 1 or "static" in name


def test_a_file_says_what_it_says() -> None:
    scenario = read(SMALL)
    assert [(one.name, one.start_ms, one.topics) for one in scenario.members] == [
        ("c0", 0, ("t", "u")),
        ("c1", 5_000, ("t", "u")),
        ("other", 0, ("u",)),
    ]
    assert scenario.members[2].config.group_instance_id == "other"
    assert scenario.members[0].work.start_ms == 10
    assert scenario.broker.group_initial_rebalance_delay_ms == 1_000
    assert [(one.at_ms, one.kind, one.member) for one in scenario.happenings] == [
        (30_000, Kind.STOP, "c0"),
        (32_000, Kind.START, "c0"),
        (31_000, Kind.STOP, "c1"),
        (33_000, Kind.START, "c1"),
    ]


@pytest.mark.parametrize(
    ("there", "instead", "problem"),
    [
        ('until = "1m"\n', 'until = "soon"\n', r"until: 'soon' is no duration"),
        ("t = 4\n", 't = "four"\n', r"topics\.t: a number of partitions"),
        ("count = 2\n", "cuont = 2\n", r"member\[0\]\.cuont: not known; known: .*session_timeout"),
        ('do = "bounce"\n', 'do = "jump"\n', r"happening\[0\]\.do: 'jump' is none of stop, kill"),
        ('members = "c*"\n', 'members = "x"\n', r"happening\[0\]\.members: 'x' is no member"),
        ('name = "c"\n', "\n", r"member\[0\]\.name: is missing"),
        ("[topics]\n", "[topics\n", r"scenario: not TOML"),
    ],
)
def test_what_is_wrong_is_named(there: str, instead: str, problem: str) -> None:
    assert there in SMALL
    with pytest.raises(GroupError, match=problem):
        read(SMALL.replace(there, instead, 1))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    assert main(["simulate", str(path)]) == 0
    said = capsys.readouterr().out
    assert "c0 leaves" in said
    assert main(["simulate", str(path), "--compare", "eager,cooperative,static"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in ("eager", "cooperative", "static"))
    assert main(["simulate", str(path), "--json"]) == 0
    run = json.loads(capsys.readouterr().out)
    assert run["totals"]["rebalances"] == len(run["rebalances"])
    assert main(["simulate", "--list"]) == 0
    assert "scale-out" in capsys.readouterr().out


def test_the_command_used_wrongly(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "nothing"]) == 2
    assert "ready ones: connect-90-connectors, " in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["simulate", "scale-out", "--compare", "lazy"])
    assert "'lazy' is none of eager, cooperative, static" in capsys.readouterr().err
