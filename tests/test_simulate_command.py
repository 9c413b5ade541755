# SPDX-License-Identifier: Apache-2.0
"""Scenario files, and the command `simulate`."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import parquet

from kafka_rebalance.cli import main
from kafka_rebalance.errors import GroupError
from kafka_rebalance.report.runs.files import runs_page
from kafka_rebalance.simulator import Kind, simulate, totals
from kafka_rebalance.simulator.scenario_files import from_dict, load, read, ready

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def test_a_scenario_file_becomes_the_scenario_that_it_describes() -> None:
    scenario = read(SMALL)
    assert [(one.name, one.start_ms, one.topics) for one in scenario.members] == [
        ("c0", 0, ("t", "u")),
        ("c1", 5_000, ("t", "u")),
        ("other", 0, ("u",)),
    ]
    assert scenario.members[2].config.group_instance_id == "other"
    assert scenario.members[0].work.start_cost_ms == 10
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
        ('until = "1m"\n', 'until = "soon"\n', r"until: 'soon' is not a duration"),
        ('until = "1m"\n', "until_ms = 5\n", r"until_ms: is written until, with a unit: until ="),
        (
            'start_cost = "10ms"\n',
            "start_cost_ms = 10\n",
            r"start_cost_ms: is written start_cost, ",
        ),
        (
            "count = 2\n",
            'session_timeout_ms = "9s"\n',
            r"\[0\]\.session_timeout_ms: is written ses",
        ),
        ("count = 2\n", "bogus_ms = 9\n", r"\[0\]\.bogus_ms: not known; known: .*start_cost, "),
        ("t = 4\n", 't = "four"\n', r"topics\.t: 'four' is not a whole number"),
        ("t = 4\n", "t = 0\n", r"topics\.t\.partitions: 0 is not within 1 to 1000000"),
        ("count = 2\n", "count = true\n", r"member\[0\]\.count: True is not a whole number"),
        (
            "static = true\n",
            "static = true\nparallel = 0\n",
            r"member\[1\]\.parallel: 0 is not with",
        ),
        (
            'topics = ["u"]\n',
            'topics = ["v"]\n',
            r"member\[1\]\.topics: no topic 'v' in \[topics\]",
        ),
        (
            'start_cost = "10ms"',
            "start_cost = -5",
            r"member\[0\]\.start_cost: -5 has no unit; write",
        ),
        (
            'every = "1s"\n',
            "every = 30\n",
            r'happening\[0\]\.every: 30 has no unit; write "30ms", "30s"',
        ),
        ('until = "1m"\n', 'until = "60"\n', r"until: '60' has no unit; write"),
        ('for = "2s"\n', "for = 2.5\n", r"happening\[0\]\.for: 2.5 has no unit"),
        ('topics = ["u"]\n', 'pattern = "u("\n', r"member\[1\]\.pattern: 'u\(' is not a pattern: "),
        (
            'topics = ["u"]\n',
            'topics = ["u"]\npattern = "u"\n',
            r"member\[1\]\.pattern: cannot be combined with topics",
        ),
        ('"range"]', '"nearest"]', r"member\[0\]\.partition_assignment_strategy: "),
        ('at = "30s"\n', 'at = "2m"\n', r"happening\[0\]\.at: reaches to 123000 ms, beyond the"),
        ('for = "2s"\n', "", r"happening\[0\]\.for: is missing; bounce needs it"),
        ('do = "bounce"\n', 'do = "stop"\n', r"happening\[0\]\.for: not known; known: at, do, mem"),
        ("static = true\n", 'static = "no"\n', r"member\[1\]\.static: 'no' is neither true nor fa"),
        ("count = 2\n", 'count = 2\nheartbeat_interval = "0s"\n', r"heartbeat_interval: 0 is less"),
        ("[[happening]]", "[happening]", r"happening: is one table; write \[\[happening\]\]"),
        ("count = 2\n", "cuont = 2\n", r"member\[0\]\.cuont: not known; did you mean count[?]"),
        ("[broker]\n", "[broker]\n__dataclass_fields__ = 1\n", r"__: not known; known: [a-z]"),
        ('do = "bounce"\n', 'do = "jump"\n', r"happening\[0\]\.do: 'jump' is none of stop, kill"),
        ('members = "c*"\n', 'members = "x"\n', r"happening\[0\]\.members: 'x' is not a member"),
        ('name = "c"\n', "\n", r"member\[0\]\.name: is missing"),
        ("[topics]\n", "[topics\n", r"scenario: not TOML"),
    ],
)
def test_errors_in_scenario_files_name_the_field(there: str, instead: str, problem: str) -> None:
    assert there in SMALL
    with pytest.raises(GroupError, match=problem):
        read(SMALL.replace(there, instead, 1))


def test_an_end_at_the_start_is_named_as_in_the_file() -> None:
    without_happenings = SMALL.partition("[[happening]]")[0].replace('"1m"', '"0s"')
    with pytest.raises(GroupError, match="until: is 0; nothing can happen"):
        read(without_happenings)


WRONG: tuple[object, ...] = (-1, 0, 10**12, 1.5, "x", "", True, [], [1], {}, {"x": 1}, float("nan"))


def _places(said: Any) -> Iterator[tuple[Any, Any]]:
    """Yields (container, key) for every value inside tables and arrays."""
    for key, value in said.items() if isinstance(said, dict) else enumerate(said):
        yield said, key
        if isinstance(value, dict | list):
            yield from _places(value)


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_any_value_in_a_scenario_file_is_read_or_refused(wrong: object) -> None:
    for place in range(len(list(_places(tomllib.loads(SMALL))))):
        said = tomllib.loads(SMALL)
        within, key = list(_places(said))[place]
        within[key] = wrong
        with contextlib.suppress(GroupError):
            from_dict(said)


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
    later = [x for x in run["rebalances"] if x["from_ms"] >= run["totals"]["start_up_ms"]]
    assert run["totals"]["rebalances"] == len(later) > 0
    assert main(["simulate", str(path), "--trace"]) == 0
    assert "c0: onPartitionsAssigned (" in capsys.readouterr().out
    assert main(["simulate", str(path), "--costs", "0ms/0ms,1s/100ms"]) == 0
    assert "1s/100ms" in capsys.readouterr().out
    assert main(["simulate", "--list"]) == 0
    assert "scale-out" in capsys.readouterr().out


def test_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    for options in ([], ["--compare", "eager,cooperative"]):
        for name in ("run.html", "run.parquet"):
            written = tmp_path / name
            written.unlink(missing_ok=True)
            assert main(["simulate", str(path), *options, "--output", str(written)]) == 0
            assert written.stat().st_size > 1_000
    capsys.readouterr()
    rows = parquet.read_table(tmp_path / "run.parquet").to_pylist()
    assert {row["run"] for row in rows} == {"eager", "cooperative"}
    # The rows of one partition cover the whole run without overlaps.
    for run in ("eager", "cooperative"):
        of_one = [row for row in rows if row["run"] == run and row["partition"] == "t-0"]
        assert of_one[0]["from_ms"] == 0
        assert of_one[-1]["to_ms"] == 60_000
        assert all(a["to_ms"] == b["from_ms"] for a, b in itertools.pairwise(of_one))


def test_the_scenarios_in_the_docs_are_read() -> None:
    docs = Path(__file__).resolve().parent.parent / "docs" / "simulator.md"
    found = re.findall(r"```toml\n(.*?)```", docs.read_text(encoding="utf-8"), re.DOTALL)
    assert [len(read(text).members) for text in found] == [6, 3, 3]


STUCK = """
until = "4m"
[topics]
t = 4
[members]
partition_assignment_strategy = ["cooperative-sticky"]
max_poll_interval = "20s"
[[member]]
name = "c"
count = 3
[[happening]]
at = "1m"
do = "freeze"
members = "c0"
for = "70s"
[[happening]]
at = "70s"
do = "kill"
members = "c0"
[[happening]]
at = "2m"
do = "pause"
members = "c1"
for = "30s"
"""


def test_parquet_tells_of_every_moment_also_where_members_are_stuck(tmp_path: Path) -> None:
    path = tmp_path / "stuck.toml"
    path.write_text(STUCK, encoding="utf-8")
    assert main(["simulate", str(path), "--output", str(tmp_path / "run.parquet")]) == 0
    rows = parquet.read_table(tmp_path / "run.parquet").to_pylist()
    assert any(row["is_stuck"] for row in rows)
    for partition in ("t-0", "t-1", "t-2", "t-3"):
        spans = sorted((r["from_ms"], r["to_ms"]) for r in rows if r["partition"] == partition)
        seen = 0
        for start, end in spans:
            assert start <= seen, partition  # rows may overlap, but there is no gap between them
            seen = max(seen, end)
        assert seen == 240_000


@pytest.mark.parametrize("name", ready())
def test_every_ready_scenario_has_its_picture(name: str) -> None:
    docs = Path(__file__).resolve().parent.parent / "docs"
    assert f"simulator/{name}.svg" in (docs / "simulator.md").read_text(encoding="utf-8")
    assert (docs / "simulator" / f"{name}.svg").is_file()


def test_the_axis_is_red_while_one_partition_in_84_has_no_reader() -> None:
    page = runs_page({"": simulate(load("seven-topics").with_protocol(eager=False))})
    (drawn,) = re.findall(
        r'<path class="stops" d="([^"]*)" stroke="#b00020" stroke-width="2"', page
    )
    stops = re.findall(r"M ([\d.]+) [\d.]+ H ([\d.]+)", drawn)
    assert len(stops) == 4  # the start in two steps, and one partition twice
    assert all(float(end) - float(start) >= 2 for start, end in stops)


def test_the_command_used_wrongly(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "nothing"]) == 2
    assert "ready are broker-restart, connect-90-connectors, " in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["simulate", "scale-out", "--compare", "lazy"])
    assert "'lazy' is not one of eager, cooperative, static" in capsys.readouterr().err
    for wrong in ("", "eager,"):
        with pytest.raises(SystemExit):
            main(["simulate", "scale-out", "--compare", wrong])
        assert "'' is not one of eager" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["simulate", "scale-out", "--trace", "--json"])
    assert "--trace: not with --json" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["simulate", "scale-out", "--output", "/no/such/place/run.html"])
    assert "/no/such/place/run.html cannot be written" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["simulate", "scale-out", "--costs", "50ms"])
    assert "--costs: '50ms' is not two durations" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["simulate", "scale-out", "--output", "run.png"])
    assert "--output: name a file that ends in .html, .parquet" in capsys.readouterr().err
    assert main(["simulate", "connect-90-connectors", "--compare", "static"]) == 2
    assert "members.w0: Connect has no static membership" in capsys.readouterr().err
