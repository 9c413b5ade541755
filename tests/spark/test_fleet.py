# SPDX-License-Identifier: Apache-2.0
"""`kafka-rebalance fleet` and `demo` from their arguments to their output and files."""

from __future__ import annotations

import contextlib
import html
import io
import json
import multiprocessing
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_rebalance.cli import main
from kafka_rebalance.data import captured_lines
from tests.support.groups_of_kinds import lines_of_kinds
from tests.support.hostile_names import dangerous
from tests.test_records import TOPICS, captured

GOOD = {
    "group_id": "good",
    "assignor": "range",
    "topics": [{"name": "t", "partitions": 4}],
    "members": [{"member_id": "a", "topics": ["t"]}, {"member_id": "b", "topics": ["t"]}],
}


Run = Callable[..., subprocess.CompletedProcess[str]]


def _run(words: list[str]) -> subprocess.CompletedProcess[str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def command() -> Iterator[Run]:
    """Runs commands in one other process: Java starts once, and each has a session of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield lambda *words: pool.submit(_run, [*map(str, words)]).result(300)


def as_a_user(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs a command in a process of its own, and catches what Java writes, too."""
    return subprocess.run(
        [sys.executable, "-m", "kafka_rebalance", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def bad_lines() -> list[bytes]:
    def line(**fields: Any) -> bytes:
        return json.dumps({**GOOD, **fields}).encode()

    topic = {"name": "t", "partitions": 1}
    return [
        b"{nope",
        line(members=None),
        line(topics="t"),
        line(topics=[{**topic, "partitions": -1}]),
        line(topics=[{**topic, "partitions": 2**31}]),
        line(topics=[{**topic, "partitions": 2**31 - 1}]),
        line(topics=[{**topic, "partitions": 1.5}]),
        line(topics=[{**topic, "racks": [["a"], ["b"]]}]),
        line(topics=[{**topic, "racks": []}]),
        line(topics=[topic, topic]),
        line(members=[GOOD["members"][0]] * 2),
        line(members=[]),
        line(assignor="nope"),
        b'{"group_id": NaN}',
        b'{"group_id": "\xff\xfe"}',
    ]


def test_lines_with_every_bad_case(command: Run, tmp_path: Path) -> None:
    good = [json.dumps({**GOOD, "group_id": f"g{n}"}).encode() for n in range(1000)]
    source, target = tmp_path / "groups.jsonl", tmp_path / "out"
    source.write_bytes(b"\n".join([*good[:500], *bad_lines(), *good[500:], b""]))
    run = command("fleet", "assign", source, target, "--json")
    assert run.returncode == 3, run.stderr
    summary = json.loads(run.stdout)
    assert summary["groups"] == 1000 + len(bad_lines())
    assert summary["errors"] == len(bad_lines())
    rows = pq.read_table(target).to_pylist()
    assert sum(row["assignment"] is not None for row in rows) == 1000
    errors = [row["error"] for row in rows if row["error"] is not None]
    assert len(errors) == len(bad_lines())
    assert all(": " in error for error in errors)

    again = command("fleet", "assign", source, target)
    assert again.returncode == 2
    assert "--overwrite" in again.stderr


def test_groups_that_never_end_are_counted(command: Run, tmp_path: Path) -> None:
    vectors = Path(__file__).resolve().parent.parent / "vectors"
    source = tmp_path / "groups.jsonl"
    good = json.dumps(GOOD).encode()
    hanging = (vectors / "never_ends_smallest.jsonl").read_bytes()
    source.write_bytes(b"\n".join([good, b"{nope", hanging]))
    run = command("fleet", "assign", source, tmp_path / "out", "--json")
    assert run.returncode == 3, run.stderr
    summary = json.loads(run.stdout)
    assert (summary["errors"], summary["never_end"]) == (3, 2)
    told = command("fleet", "assign", source, tmp_path / "out", "--overwrite").stdout
    assert "2 of the errors: the assignor never ends, so the leader hangs" in told
    words = shlex.split(re.search("a way out: kafka-rebalance (.*)", told)[1])  # type: ignore[index]
    explained = command(*words)
    assert "never ends" in explained.stdout + explained.stderr
    assert "switch-assignor" in explained.stdout + explained.stderr


def answers(directory: Path) -> tuple[list[tuple[str, str]], list[str]]:
    """Returns the names and types of the columns, and the rows in an order of their own."""
    tables = [pq.ParquetFile(path).read() for path in sorted(directory.glob("*.parquet"))]
    rows = [json.dumps(row, sort_keys=True) for table in tables for row in table.to_pylist()]
    return [(one.name, str(one.type)) for one in tables[0].schema], sorted(rows)


@pytest.mark.parametrize(
    "word", ["assign", "plan", "plan --switch-protocol consumer", "compare", "summary"]
)
def test_this_process_answers_as_spark(command: Run, tmp_path: Path, word: str) -> None:
    """Small local files of lines need no Spark: files, report, page and exit code are equal."""
    (tmp_path / "in/cluster=a b").mkdir(parents=True)
    (tmp_path / "in/_other").mkdir()
    lines = [line.encode() for line in captured_lines()]
    lines += [json.dumps(one).encode() for one in lines_of_kinds(7, seed=1)]
    hanging = Path(__file__).parents[1] / "vectors" / "never_ends_smallest.jsonl"
    (tmp_path / "in/cluster=a b/1.jsonl").write_bytes(b"\n".join([*lines, *bad_lines()]))
    (tmp_path / "in/2.jsonl").write_bytes(b"\n\n".join([*lines[:9], hanging.read_bytes()]))
    (tmp_path / "in/_other/3.jsonl").write_bytes(lines[0])  # Spark does not read it
    word, *options = word.split()
    given = ("fleet", word, tmp_path / "in", tmp_path / "out", *options)
    runs = []
    for more in ((), ("--master", "local[2]")):
        run = command(*given, *more)
        told = re.sub(r"in [\d.]+ s.*|/\S+/never-end", "", run.stdout)
        # Only this process counts what waits for a second round.
        told = re.sub(r", \d+ of them [^;]*", "", " ".join(told.split()))
        inner = ("plans", "summary") if word == "summary" else ("",)
        found = [answers(tmp_path / "out" / name) for name in inner]
        texts = {
            path.name: path.read_text(encoding="utf-8")
            for path in (tmp_path / "out").rglob("*")
            if path.suffix in (".html", ".jsonl")
        }
        runs.append((run.returncode, told, found, texts))
        shutil.rmtree(tmp_path / "out")
    assert runs[0] == runs[1]
    assert runs[0][0] == 3
    if options:
        assert " groups can switch, " in runs[0][1]


def test_its_own_output_of_parquet_and_wrong_usage(command: Run, tmp_path: Path) -> None:
    table_source = tmp_path / "groups.parquet"
    cases = [case for case in map(json.loads, captured_lines()) if "error" not in case]
    pq.write_table(pa.Table.from_pylist(cases), table_source)
    run = command("fleet", "assign", table_source, tmp_path / "out", "--assignor", "sticky")
    assert run.returncode == 0, run.stderr
    assert f"{len(cases)} groups" in run.stdout
    assert command("fleet", "assign", tmp_path / "nothing", tmp_path / "x").returncode == 2
    unknown = command("fleet", "assign", table_source, tmp_path / "x", "--assignor", "nope")
    assert unknown.returncode == 2
    assert 'assignor: "nope" is not known' in unknown.stderr


def test_a_summary_of_clusters(command: Run, tmp_path: Path) -> None:
    """Each cluster has a directory; the first command on the report's page works."""
    for cluster in ("eu", "1"):
        place = tmp_path / "lake" / f"cluster={cluster}"
        place.mkdir(parents=True)
        (place / "groups.jsonl").write_text("\n".join(captured_lines()), encoding="utf-8")
    source, target = (tmp_path / "lake").as_uri(), tmp_path / "out"
    run = command("fleet", "summary", source, target, "--change", "add-members=1", "--json")
    assert run.returncode == 3, run.stderr  # one captured line is an error
    summary = json.loads(run.stdout)
    zones = [f"remove-rack={rack}" for rack in "abc"]
    assert summary["changes"] == ["", "add-members=1", *zones]
    assert (summary["groups"], summary["errors"]) == (40, 2)
    plans = pq.read_table(target / "plans").to_pylist()
    assert len(plans) == 40 * 5
    totals = pq.read_table(target / "summary").to_pylist()
    assert {(row["cluster"], row["change"]) for row in totals} == {
        (cluster, change) for cluster in ("eu", "1") for change in summary["changes"]
    }
    assert all(row["groups"] == 20 for row in totals)
    page = (target / "report.html").read_text(encoding="utf-8")
    assert summary["report"] == str(target / "report.html")
    commands = [
        html.unescape(one) for one in re.findall("<code>kafka-rebalance (.*?)</code>", page)
    ]
    assert len(commands) == 6  # of each cluster, three groups end less even than possible
    shown = command(*shlex.split(commands[0]))
    assert shown.returncode == 0, shown.stderr
    assert "rebalance" in shown.stdout


def test_names_of_strangers_are_data_and_no_directories(command: Run, tmp_path: Path) -> None:
    """A rack of 300 letters, or with a NUL, cannot be the name of a file."""
    racks = ["r" * 300, "nul\0", "new\nline", "two words", "a,b", "../..", "\x1b[2J", "=", "$(x)"]
    groups = []
    for number, rack in enumerate(racks):
        topics = [{"name": "t", "partitions": 2, "racks": [[rack], ["b"]]}]
        members = [{"member_id": "a", "topics": ["t"], "rack_id": rack}, GOOD["members"][1]]
        group = {**GOOD, "group_id": f"{rack}{number}", "topics": topics, "members": members}
        groups.append(json.dumps(group))
    source, target = tmp_path / "groups.jsonl", tmp_path / "out"
    source.write_text("\n".join(groups), encoding="utf-8")
    run = command("fleet", "summary", source, target, "--json")
    assert run.returncode == 0, run.stderr
    summary = json.loads(run.stdout)
    assert (summary["groups"], summary["errors"]) == (len(racks), 0)
    plans = pq.read_table(target / "plans").to_pylist()
    assert len(plans) == len(racks) * len(summary["changes"])
    for rack in racks:
        lost = [
            one for one in plans if one["change"] == f"remove-rack={rack}" and one["error"] is None
        ]
        assert [one["group_id"] for one in lost if not one["not_affected"]], rack
    assert dangerous((target / "report.html").read_text(encoding="utf-8")) == []


def test_overwrite_deletes_only_what_a_job_wrote(command: Run, tmp_path: Path) -> None:
    source, target = tmp_path / "groups.jsonl", tmp_path / "out"
    source.write_text(f"{json.dumps(GOOD)}\n", encoding="utf-8")
    for word in ("assign", "summary", "assign"):  # each replaces the other's output
        run = command("fleet", word, source, target, "--overwrite")
        assert run.returncode == 0, run.stderr
    precious = target / "precious" / "thesis.txt"
    precious.parent.mkdir()
    precious.write_text("years", encoding="utf-8")
    run = command("fleet", "assign", source, target, "--overwrite")
    assert run.returncode == 2
    assert (
        f"OUTPUT: {precious} is not from a fleet job, and --overwrite would delete it" in run.stderr
    )
    assert len(run.stderr.splitlines()) == 1
    assert precious.read_text(encoding="utf-8") == "years"
    shutil.rmtree(target)
    target.write_text("a file", encoding="utf-8")
    assert command("fleet", "assign", source, target, "--overwrite").returncode == 2
    assert target.read_text(encoding="utf-8") == "a file"


def test_a_summary_names_the_most_frequent_error(command: Run, tmp_path: Path) -> None:
    """Groups without an assignor are the usual case: the output and the page name the option."""
    without = {name: value for name, value in GOOD.items() if name != "assignor"}
    groups = [{**without, "group_id": f"g{n}"} for n in range(3)]
    groups.append({**GOOD, "group_id": "other", "topics": [{"name": "t", "partitions": -1}]})
    source, target = tmp_path / "groups.jsonl", tmp_path / "out"
    source.write_text("\n".join(map(json.dumps, groups)), encoding="utf-8")
    run = command("fleet", "summary", source, target)
    assert run.returncode == 3, run.stderr
    cause = "assignor: missing; --assignor NAME plays every group with this assignor"
    line = f"most frequent error (3 groups): {cause}"
    assert line in run.stdout.splitlines()
    assert line[1:] in html.unescape((target / "report.html").read_text(encoding="utf-8"))


def test_records_as_kafka_keeps_them(command: Run, tmp_path: Path) -> None:
    log = [(key, value, 0, offset) for offset, (key, value) in enumerate(captured())]
    names = ("key", "value", "partition", "offset")
    rows = [dict(zip(names, row, strict=True)) for row in log]
    kinds = [pa.binary(), pa.binary(), pa.int32(), pa.int64()]
    schema = pa.schema(list(zip(names, kinds, strict=True)))
    pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / "log.parquet")
    topics = [{"name": name, "partitions": count} for name, count in TOPICS.items()]
    inventory = tmp_path / "topics.jsonl"
    inventory.write_text("\n".join(map(json.dumps, topics)), encoding="utf-8")
    words = ["fleet", "compare", tmp_path / "log.parquet", tmp_path / "out"]
    missing = command(*words, "--format", "records")
    assert missing.returncode == 2
    assert "--topics: missing" in missing.stderr
    run = command(*words, "--topics", inventory, "--add-members", "1", "--json")
    summary = json.loads(run.stdout)
    rows = pq.read_table(tmp_path / "out").to_pylist()
    assert len(rows) == summary["groups"] > 5
    assert sum(summary["left_out"].values()) > 0
    assert summary["errors"] == sum(row["error"] is not None for row in rows)
    good = [row for row in rows if row["recommended"] is not None]
    assert good
    assert all(len(row["candidates"]) == 4 for row in good)


def test_groups_of_other_leaders_have_a_command(command: Run, tmp_path: Path) -> None:
    members = [
        {
            "member_id": name,
            "topics": ["t"],
            "owned_partitions": [{"topic": "t", "partitions": [n]}],
            "client_library": "librdkafka",
        }
        for n, name in enumerate("ab")
    ]
    other = {**GOOD, "leader_library": "librdkafka", "members": members}
    source = tmp_path / "groups.jsonl"
    source.write_text(json.dumps(other), encoding="utf-8")
    run = command("fleet", "compare", source, tmp_path / "out")
    assert run.returncode == 0, run.stderr
    assert "played with Java's assignor" in run.stdout
    assert "\nkafka-rebalance compare FILE --group ID\n" in run.stdout
    alone = command("compare", source, "--group", "good")
    assert "which runs librdkafka/range" in alone.stdout
    (row,) = pq.read_table(tmp_path / "out").to_pylist()
    assert row["assignor"] == "range"


def test_paths_of_other_file_systems_are_left_to_spark(command: Run, tmp_path: Path) -> None:
    run = command("fleet", "plan", "s3a://bucket/groups", tmp_path / "out")
    assert run.returncode == 1
    assert "S3AFileSystem" in run.stderr
    assert "Traceback" not in run.stderr
    here = command("fleet", "assign", "file:///nothing", tmp_path / "out")
    assert (here.returncode, "there is no file:///nothing" in here.stderr) == (2, True)
    far = command("fleet", "assign", "/x", "/y", "--master", "spark://127.0.0.1:1")
    assert far.returncode == 2
    assert "/x is a local path; a cluster needs one that all its machines see" in far.stderr


def test_demo(tmp_path: Path) -> None:
    run = as_a_user("demo", "--groups", "100", "--output", tmp_path / "out")
    assert run.returncode == 0, run.stderr
    assert pq.read_table(tmp_path / "out" / "assigned").num_rows == 100
    assert "100 after copying" in run.stdout
    last = run.stdout.splitlines()[-1]
    assert last == f"The report, for a browser: {tmp_path / 'out' / 'summary' / 'report.html'}"
    lines = [line for line in run.stdout.splitlines() if str(tmp_path) not in line]
    assert max(map(len, lines)) <= 100
    page = Path(last.rpartition(": ")[2]).read_text(encoding="utf-8")
    assert "remove-rack=a" in page
    assert "unless a name begins with another library" in page


def test_input_is_never_overwritten(command: Run, tmp_path: Path) -> None:
    source = tmp_path / "in"
    (source / "nested").mkdir(parents=True)
    (source / "nested" / "group.jsonl").write_text("\n".join(captured_lines()), encoding="utf-8")
    for target in (source, source / "out", tmp_path):
        run = command("fleet", "assign", source, target, "--assignor", "range", "--overwrite")
        assert run.returncode == 2
        assert "overlaps INPUT, which would be overwritten" in run.stderr
    assert (source / "nested" / "group.jsonl").exists()
    run = command("fleet", "assign", source, tmp_path / "out", "--assignor", "range")
    assert "20 groups" in run.stdout  # this includes groups in subdirectories


def test_sparks_own_errors_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    run = as_a_user("fleet", "assign", tmp_path / "empty", tmp_path / "out", "--assignor", "range")
    assert run.returncode == 1
    assert "Traceback" not in run.stderr
    assert "kafka-rebalance: Spark: " in run.stderr


def test_without_spark_the_command_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "group.jsonl").write_text("{}", encoding="utf-8")
    given = ["fleet", "summary", str(tmp_path), f"{tmp_path}-out"]
    code = (
        "import sys; sys.modules['pyspark'] = None; from kafka_rebalance.cli import main; "
        "sys.exit(main(sys.argv[1:]))"
    )
    own = [sys.executable, "-c", code, *given]
    small = subprocess.run(own, capture_output=True, text=True, check=False)
    assert (small.returncode, small.stderr) == (3, "")  # a group with an error
    far = [*own, "--overwrite", "--master", "local"]
    run = subprocess.run(far, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "[spark]" in run.stderr
    assert "Traceback" not in run.stderr
