# SPDX-License-Identifier: Apache-2.0
"""`kafka-rebalance fleet` and `demo` as a user runs them."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from kafka_rebalance.data import captured_lines

GOOD = {
    "group_id": "good",
    "assignor": "range",
    "topics": [{"name": "t", "partitions": 4}],
    "members": [{"member_id": "a", "topics": ["t"]}, {"member_id": "b", "topics": ["t"]}],
}


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
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


def test_lines_with_every_bad_case(tmp_path: Path) -> None:
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


def test_groups_that_never_end_are_counted(tmp_path: Path) -> None:
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


def test_its_own_output_of_parquet_and_wrong_usage(tmp_path: Path) -> None:
    table_source = tmp_path / "groups.parquet"
    import pyarrow as pa

    cases = [case for case in map(json.loads, captured_lines()) if "error" not in case]
    pq.write_table(pa.Table.from_pylist(cases), table_source)
    run = command("fleet", "assign", table_source, tmp_path / "out", "--assignor", "sticky")
    assert run.returncode == 0, run.stderr
    assert f"{len(cases)} groups" in run.stdout
    assert command("fleet", "assign", tmp_path / "nothing", tmp_path / "x").returncode == 2
    unknown = command("fleet", "assign", table_source, tmp_path / "x", "--assignor", "nope")
    assert unknown.returncode == 2
    assert 'assignor: "nope" is not known' in unknown.stderr


def test_demo(tmp_path: Path) -> None:
    run = command("demo", "--groups", "100", "--output", tmp_path / "out")
    assert run.returncode == 0, run.stderr
    assert pq.read_table(tmp_path / "out" / "assigned").num_rows == 100
    assert "100 after copying" in run.stdout
    last = run.stdout.splitlines()[-1]
    assert last == f"The report, for a browser: {tmp_path / 'out' / 'summary' / 'report.html'}"
    assert max(map(len, run.stdout.splitlines()[:-1])) <= 110
    page = Path(last.rpartition(": ")[2]).read_text(encoding="utf-8")
    assert "remove-rack=a" in page


def test_input_is_never_overwritten(tmp_path: Path) -> None:
    source = tmp_path / "in"
    (source / "nested").mkdir(parents=True)
    (source / "nested" / "group.jsonl").write_text("\n".join(captured_lines()), encoding="utf-8")
    for target in (source, source / "out", tmp_path):
        run = command("fleet", "assign", source, target, "--assignor", "range", "--overwrite")
        assert run.returncode == 2
        assert "overlaps INPUT, which would be overwritten" in run.stderr
    assert (source / "nested" / "group.jsonl").exists()
    run = command("fleet", "assign", source, tmp_path / "out", "--assignor", "range")
    assert "20 groups" in run.stdout  # also in directories below


def test_sparks_own_errors_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    run = command("fleet", "assign", tmp_path / "empty", tmp_path / "out", "--assignor", "range")
    assert run.returncode == 1
    assert "Traceback" not in run.stderr
    assert "kafka-rebalance: Spark: " in run.stderr


def test_without_spark_the_command_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "group.jsonl").write_text("{}", encoding="utf-8")
    code = (
        "import sys; sys.modules['pyspark'] = None; from kafka_rebalance.cli import main; "
        f"sys.exit(main(['fleet', 'assign', {str(tmp_path)!r}, {str(tmp_path) + '-out'!r}]))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "[spark]" in run.stderr
    assert "Traceback" not in run.stderr
