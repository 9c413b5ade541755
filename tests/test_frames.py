# SPDX-License-Identifier: Apache-2.0
"""Groups from polars, DuckDB and pandas, and the answers back in them; readers stay readers.

Only `make frames` runs this file, with the newest versions of these libraries. Spark's environment
has pandas 2, because Spark does not support pandas 3.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import kafka_rebalance as kr
from kafka_rebalance.bulk import assign_batch, compare_batch, plan_batch
from kafka_rebalance.data import captured_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLE = [json.loads(line) for line in captured_lines() if '"error"' not in line]


def as_captured(group: dict[str, Any], **fields: object) -> str:
    """Returns a line with fields that real snapshots often have without a value."""
    members = [{**member, "user_data": None} for member in group["members"]]
    return json.dumps({**group, "leader_library": None, "members": members, **fields})


# The first 114 groups have no generation; libraries that look at few rows infer the null type.
LINES = [
    as_captured(one, group_id=f"{one['group_id']}-{n}", generation_id=None)
    for n in range(6)
    for one in SAMPLE
] + [as_captured(one) for one in SAMPLE]
OWN = {one["group_id"]: kr.assign(kr.GroupSpec.from_dict(one)) for one in map(json.loads, LINES)}
"""Group id -> the answer of `assign`, which reads no Arrow."""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "groups.jsonl"
    path.write_text("\n".join(LINES), encoding="utf-8")
    return str(path)


def owners(rows: list[dict[str, Any]]) -> dict[str, dict[str, list[tuple[str, int]]]]:
    """Returns group id -> member -> its partitions in order."""
    return {
        row["group_id"]: {
            member["member_id"]: [
                (run["topic"], int(p)) for run in member["partitions"] for p in run["partitions"]
            ]
            for member in row["assignment"]
        }
        for row in rows
    }


EXPECTED = {
    group_id: {member: [tuple(tp) for tp in held] for member, held in own.items()}
    for group_id, own in OWN.items()
}


def test_polars(file: str) -> None:
    groups = pl.read_ndjson(file, infer_schema_length=None)
    answers = pl.DataFrame(assign_batch(groups))
    assert owners(answers.to_dicts()) == EXPECTED
    plans = pl.DataFrame(plan_batch(groups, None, ["add-members=1"]))
    assert plans["group_id"].to_list() == groups["group_id"].to_list()
    assert plans.filter(pl.col("error").is_null())["moves"].dtype == pl.Int64
    assert len(pl.DataFrame(compare_batch(groups))["recommended"].drop_nulls()) == len(groups)


def test_duckdb(file: str) -> None:
    database = duckdb.connect()
    relation = database.read_json(file, format="newline_delimited")
    answers = assign_batch(relation)
    good = "select * from answers where error is null"
    found = database.from_arrow(answers).query("answers", good)
    names = found.columns
    assert owners([dict(zip(names, row, strict=True)) for row in found.fetchall()]) == EXPECTED
    counted = "select count(*), sum(moves) from plans"
    plans = plan_batch(database.sql("select * from read_json(?)", params=[file]), None, [])
    assert database.from_arrow(plans).query("plans", counted).fetchall()[0][0] == len(LINES)


def test_pandas(file: str) -> None:
    groups = pd.read_json(file, lines=True)
    answers = assign_batch(groups)
    is_newer = hasattr(pd.DataFrame, "from_arrow")  # pandas 3
    frame = pd.DataFrame.from_arrow(answers) if is_newer else answers.to_pandas()
    assert owners(frame.to_dict("records")) == EXPECTED


def test_the_page(tmp_path: Path) -> None:
    """The script of docs/dataframes.md prints what the page shows."""
    page = (Path(__file__).parent.parent / "docs" / "dataframes.md").read_text(encoding="utf-8")
    code, printed = re.findall(
        r"<!-- example: dataframes.*?-->\n```\w+\n(.*?)```\n", page, re.DOTALL
    )
    (tmp_path / "sample.jsonl").write_text("\n".join(captured_lines()), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(Path(kr.__file__).parent.parent)},
        capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert (ran.stdout, ran.stderr) == (printed, "")


class Source:
    """Batches of groups, which counts those that were read."""

    def __init__(self, batches: int) -> None:
        rows = [kr.GroupSpec.from_json(line).to_dict() for line in LINES]
        self.batch = pa.RecordBatch.from_pylist(rows)
        self.left = batches
        self.read = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for _ in range(self.left):
            self.read += 1
            yield self.batch

    def reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.batch.schema, self)


def test_groups_that_the_broker_assigns(tmp_path: Path) -> None:
    """Python answers them, from the string views of polars too."""
    file = tmp_path / "groups.jsonl"
    broker = {**SAMPLE[0], "group_id": "by-broker", "assignor": "consumer/uniform"}
    file.write_text("\n".join([*LINES[-2:], json.dumps(broker)]), encoding="utf-8")
    frames = [
        pl.read_ndjson(file, infer_schema_length=None),
        duckdb.read_json(str(file), format="newline_delimited"),
        pd.read_json(file, lines=True),
    ]
    for groups in frames:
        for answer in (plan_batch(groups, None, ["add-members=1"]), compare_batch(groups)):
            assert pl.DataFrame(answer)["error"].null_count() == 3


def test_a_reader_is_answered_batch_by_batch() -> None:
    source = Source(1000)
    answers = assign_batch(source.reader())
    assert isinstance(answers, pa.RecordBatchReader)
    assert source.read == 0
    assert owners(answers.read_next_batch().to_pylist()) == EXPECTED
    assert source.read == 1
    used = pa.total_allocated_bytes()
    rows = sum(len(batch) for batch in answers)
    assert rows == 999 * len(LINES)
    assert source.read == 1000
    assert pa.total_allocated_bytes() <= used


@pytest.mark.parametrize("call", [assign_batch, plan_batch, compare_batch])
def test_answers_have_the_form_of_the_groups(call: Any) -> None:
    batch = Source(1).batch
    more = (None, ["add-members=1"]) if call is plan_batch else ()
    whole = call(batch, *more)
    assert isinstance(whole, pa.RecordBatch)
    table = call(pa.Table.from_batches([batch, batch]), *more)
    assert isinstance(table, pa.Table)
    assert table.slice(len(batch)).to_pylist() == table.slice(0, len(batch)).to_pylist()
    assert table.slice(0, len(batch)).to_pylist() == whole.to_pylist()
    reader = call(pa.Table.from_batches([batch]).to_reader(), *more)
    assert reader.read_all() == pa.Table.from_batches([whole])


def test_a_wrong_column_is_named_before_a_reader_is_read() -> None:
    source = Source(3)
    source.batch = source.batch.drop_columns(["topics"])
    with pytest.raises(TypeError, match="topics: the column is missing"):
        assign_batch(source.reader())
    assert source.read == 0
