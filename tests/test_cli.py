# SPDX-License-Identifier: Apache-2.0
"""The command, run as a user runs it."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from codecs import BOM_UTF8
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance.cli.parser import COMMANDS
from tests.support.prompt import ran as command

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine

ROOT = Path(__file__).parent.parent
GOOD = {
    "group_id": "good",
    "assignor": "range",
    "topics": [{"name": "t", "partitions": 4}],
    "members": [{"member_id": "a", "topics": ["t"]}, {"member_id": "b", "topics": ["t"]}],
}


def bad_lines() -> list[tuple[bytes, str]]:
    """Returns wrong lines, each with its error's beginning; `#` stands for the line's number."""

    def line(**fields: Any) -> bytes:
        return json.dumps({**GOOD, **fields}).encode()

    topic = {"name": "t", "partitions": 1}
    return [
        (b"{nope", "line #: not JSON: "),
        (line(members=None), "members: missing"),
        (line(topics="t"), "topics: a string is not a list"),
        (line(topics=[{**topic, "partitions": -1}]), "topics[0].partitions: -1 is not a count"),
        (line(topics=[{**topic, "partitions": 2**31}]), "topics[0].partitions: 2147483648 is not"),
        (line(topics=[{**topic, "partitions": 2**31 - 1}]), "topics: 2147483647 partitions in all"),
        (line(topics=[{**topic, "partitions": 0.5}]), "topics[0].partitions: a number that is not"),
        (
            line(topics=[{**topic, "racks": [[], []]}]),
            "topics[0].racks: 2 entries for 1 partitions",
        ),
        (line(topics=[{**topic, "racks": []}]), "topics[0].racks: 0 entries for 1 partitions"),
        (line(topics=[topic, topic]), 'topics[1].name: "t" is already the name of topics[0]'),
        (line(members=[{"member_id": "a", "topics": []}] * 2), 'members[1].member_id: "a" is'),
        (line(members=[]), "members: empty"),
        (line(assignor="nope"), 'assignor: "nope" is not known; known are range, roundrobin'),
        (b'{"group_id": NaN}', "line #: not JSON: "),
        (b'{"group_id": "\xff\xfe"}', "line #: not UTF-8: "),
        (b'{"group_id": "' + b"x" * 50_000_000 + b'"}', "line #: more than 33554432 bytes"),
        (
            b'{"group_id": "moving", "error": "state: PreparingRebalance, ask again"}',
            "state: PreparingRebalance, ask again",
        ),
    ]


def test_a_thousand_good_lines_and_one_of_each_bad_case(tmp_path: Path, engine: Engine) -> None:
    good = [json.dumps({**GOOD, "group_id": f"g{n}"}).encode() for n in range(1000)]
    bad = bad_lines()
    lines = [*good[:700], *(line for line, _ in bad), *good[700:]]
    source = tmp_path / "groups.jsonl"
    source.write_bytes(b"\n".join(lines) + b"\n\n")
    run = command("assign", source, "--engine", engine)
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert run.returncode == 3
    assert (
        run.stderr.decode() == f"kafka-rebalance: {len(bad)} of {len(lines):,} groups had errors\n"
    )
    assert len(answers) == len(lines)
    assert [answer["group_id"] for answer in answers if "assignment" in answer] == [
        f"g{n}" for n in range(1000)
    ]
    for number, (answer, (_, problem)) in enumerate(zip(answers[700:], bad, strict=False), 701):
        assert answer["error"].startswith(problem.replace("#", str(number))), answer


def test_the_first_of_two_rounds_says_so(engine: Engine) -> None:
    """A cooperative answer lacks what moves: the new member is idle for one round only."""
    owns = [{"topic": "t", "partitions": [0, 1, 2]}]
    members = [{"member_id": "a", "topics": ["t"], "owned_partitions": owns, "generation_id": 1}]
    members += [{"member_id": "b", "topics": ["t"]}]
    topics = [{"name": "t", "partitions": 3}]
    line = json.dumps({"group_id": "g", "topics": topics, "members": members}).encode()
    words = ("assign", "-", "--engine", engine, "--assignor")
    told = b"g, round 1 of 2: t-2 goes from a to b in the next (`plan` shows both rounds)"
    said = b"kafka-rebalance: " + told
    assert command(*words, "cooperative-sticky", given=line).stderr.split(b"\n") == [said, b""]
    assert command(*words, "sticky", given=line).stderr == b""
    many = command(*words, "cooperative-sticky", given=line + b"\n" + line).stderr
    assert many.startswith(b"kafka-rebalance: cooperative-sticky: a line is round 1; ")
    assert many.count(b"\n") == 1


def test_standard_input_and_an_assignor_for_all(engine: Engine) -> None:
    lines = json.dumps({**GOOD, "assignor": "somebody's own"}).encode()
    run = command("assign", "-", "--assignor", "roundrobin", "--engine", engine, given=lines)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == {
        "group_id": "good",
        "assignor": "roundrobin",
        "assignment": {"a": [["t", 0], ["t", 2]], "b": [["t", 1], ["t", 3]]},
    }


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["assign", "-", "--assignor", "nope"], 2, 'assignor: "nope" is not known'),
        (["assign", "no/such/file"], 2, "no/such/file"),
        (["assign"], 2, "the following arguments are required: FILE"),
        (["connect"], 2, "give either FILE or --url"),
        (["snapshot", "--bootstrap-server", "127.0.0.1:1", "--timeout", "0"], 2, "--timeout"),
        (["snapshot", "--bootstrap-server", "127.0.0.1:1"], 1, "127.0.0.1:1"),
        (["snapshot", "--bootstrap-server", "127.0.0.1:abc"], 2, '"abc" is not a port from 1'),
        (["snapshot", "--bootstrap-server", "127.0.0.1:65536"], 2, '"65536" is not a port'),
        (["connect", "--url", "localhost:8083"], 2, '"localhost:8083" is not a URL, as http'),
    ],
)
def test_wrong_usage_is_told_in_one_line(arguments: list[str], code: int, said: str) -> None:
    run = command(*arguments)
    assert run.returncode == code
    assert said in run.stderr.decode()
    assert b"Traceback" not in run.stderr
    assert run.stdout == b""


def test_a_trace_with_a_wrong_command_is_played_to_its_end(tmp_path: Path) -> None:
    trace = tmp_path / "trace.txt"
    trace.write_text("join\n\nconfig initial_delay=0\njoin c0 version=3\n")
    run = command("coordinator", trace)
    assert run.returncode == 3
    lines = run.stdout.decode().splitlines()
    assert lines[0].startswith(
        "# Result: 1 rebalance; g is PreparingRebalance (generation 0) since"
    )
    assert lines[0].endswith("; 1 refused.")
    assert lines[4].startswith("error: ")
    trace.write_bytes(run.stdout)
    assert command("coordinator", trace).stdout == run.stdout
    assert b"g Empty -> PreparingRebalance" in run.stdout
    trace.write_text("config initial_delay=0\njoin c0 version=3\n")
    assert command("coordinator", trace).returncode == 0
    driver = command("coordinator", "--json", given=b'{"op": "nothing"}\n{"op": "state"}\n')
    answers = [json.loads(line) for line in driver.stdout.splitlines()]
    assert (driver.returncode, answers[0], answers[1]["id"]) == (0, {"bad": "nothing"}, 1)


def test_help_lists_every_command_and_each_has_its_own_help() -> None:
    listed = command("--help").stdout.decode()
    for name, line in COMMANDS.items():
        assert re.search(rf"^    {name}\s+{re.escape(line)}$", listed, re.MULTILINE), name
        own = command(name, "--help").stdout.decode()
        assert own.startswith(f"usage: kafka-rebalance {name} "), own
        assert "options:" in own


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    lines = (json.dumps(GOOD).encode() + b"\n") * 20_000
    run = subprocess.run(
        f"{sys.executable} -m kafka_rebalance assign - | head -n 1",
        input=lines,
        shell=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert json.loads(run.stdout)["group_id"] == "good"
    assert b"Traceback" not in run.stderr


@pytest.mark.parametrize("word", ["assign", "plan", "describe", "compare", "connect"])
def test_an_empty_input_is_said(word: str, tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n", encoding="utf-8")
    noun = "script" if word == "connect" else "group"
    for source, name in ((empty, str(empty)), ("-", "standard input")):
        run = command(word, source)
        assert (run.returncode, run.stdout) == (0, b"")
        assert run.stderr.decode() == f"kafka-rebalance: {name}: no {noun} in it\n"


def test_a_line_without_an_id_is_named_by_its_number(tmp_path: Path) -> None:
    lines = tmp_path / "groups.jsonl"
    lines.write_text('{bad\n{"topics": []}\n', encoding="utf-8")
    run = command("describe", lines)
    first, second = run.stderr.decode().splitlines()
    assert first.startswith("line 1: not JSON: ")
    assert second == "line 2: group_id: missing"
    assert command("assign", "-", given=b"{}").stderr.endswith(b": 1 of 1 group had errors\n")


def test_a_byte_order_mark_is_no_part_of_a_line(tmp_path: Path) -> None:
    """Notepad and PowerShell write it, and in joined files it can be before any line."""
    one = b'{"group_id": "g", "topics": [], "members": [{"member_id": "m", "topics": []}]}\r\n'
    source = tmp_path / "groups.jsonl"
    source.write_bytes((BOM_UTF8 + one) * 2)
    run = command("assign", source, "--assignor", "range")
    assert (run.returncode, run.stderr) == (0, b"")
    assert run.stdout.count(b'"group_id":"g"') == 2


def test_connect_answers_scripts(tmp_path: Path, engine: Engine) -> None:
    with gzip.open(ROOT / "tests/vectors/connect-incremental.jsonl.gz", "rt") as lines:
        vectors = [json.loads(line) for line in lines][:20]
    source = tmp_path / "scripts.jsonl"
    scripts = [json.dumps(vector["case"]) for vector in vectors]
    source.write_text("\n".join([*scripts, '{"id": "bad"}', "nope"]), encoding="utf-8")
    run = command("connect", source, "--json", "--engine", engine)
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert run.returncode == 3
    assert all(answer.pop("summary").endswith(".") for answer in answers[:20])
    assert answers[:20] == [vector["expected"] for vector in vectors]
    assert answers[20] == {"id": "bad", "error": "assignor: missing"}
    assert answers[21]["error"].startswith("line 22: not JSON: ")

    people = command("connect", source)
    assert people.returncode == 3
    text = people.stdout.decode()
    assert "round 1" in text
    assert max(map(len, text.splitlines())) <= 100
    bad, broken, counts = people.stderr.decode().splitlines()
    assert bad == "bad: assignor: missing"
    assert broken.startswith("line 22: not JSON: ")
    assert counts == "kafka-rebalance: 2 of 22 scripts had errors"


@pytest.mark.parametrize(
    "arguments",
    [
        ("assign", "-", "--max-partitions", "-1"),
        ("assign", "-", "--threads", "99999999999999999999"),
        ("assign", "-", "--max-line-bytes", "0"),
        ("fleet", "assign", "x", "y", "--tasks", "0"),
        ("connect", "-", "--then", "60s"),
    ],
)
def test_numbers_out_of_range_are_wrong_usage(arguments: tuple[str, ...]) -> None:
    run = command(*arguments)
    assert run.returncode == 2
    assert b"Traceback" not in run.stderr


def test_the_output_is_utf8_whatever_the_locale(tmp_path: Path) -> None:
    script = {
        "id": "☃",
        "assignor": "connect/incremental",
        "rounds": [{"time_ms": 0, "config": {}, "workers": [{"id": "w"}]}],
    }
    (tmp_path / "script.jsonl").write_text(json.dumps(script), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "kafka_rebalance", "connect", str(tmp_path / "script.jsonl")],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.decode().startswith("☃: 1 rebalance: everything runs at the end.\n")


def test_names_that_nobody_has_cost_no_memory(tmp_path: Path) -> None:
    """A table of these 20,000 members and 200,000 unknown topics would need gigabytes."""
    members = [{"member_id": f"m{n}", "topics": ["t"]} for n in range(20_000)]
    members[0]["topics"] = [f"x{n}" for n in range(200_000)]
    group = {"group_id": "g", "topics": [{"name": "t", "partitions": 3}], "members": members}
    (tmp_path / "group.jsonl").write_text(json.dumps(group), encoding="utf-8")
    run = command("assign", tmp_path / "group.jsonl", "--assignor", "sticky")
    assert run.returncode == 0
    answer = json.loads(run.stdout)["assignment"]
    assert sum(map(len, answer.values())) == 3
