# SPDX-License-Identifier: Apache-2.0
"""`fleet` lets tasks read and write the files for local paths, and with `--direct`."""

from __future__ import annotations

import argparse
from types import SimpleNamespace
from typing import Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli.fleet_spark import reads_files

NO_SESSION: Any = None  # a session is needed only to look up Parquet's columns


def arguments(source: str, target: str, **given: Any) -> argparse.Namespace:
    usual = {"word": "assign", "direct": None, "format": None, "topics": None}
    return argparse.Namespace(input=source, output=target, **usual | given)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (arguments("in.jsonl", "out"), True),
        (arguments("file:///in.jsonl", "file:/out"), True),
        (arguments("in.jsonl", "out", direct=False), False),
        (arguments("in.jsonl", "out", word="summary", direct=True), False),
        (arguments("in.jsonl", "out", topics="topics.jsonl"), False),
        (arguments("in.jsonl", "out", format="records"), False),
        (arguments("s3a://lake/in.jsonl", "s3a://lake/out"), False),
        (arguments("s3a://lake/in.jsonl", "out"), False),
        (arguments("s3a://lake/in.jsonl", "s3a://lake/out", direct=True), True),
    ],
)
def test_which_jobs_read_files(given: argparse.Namespace, expected: bool) -> None:
    assert reads_files(given, NO_SESSION, plain=True) is expected


def test_direct_is_refused_where_it_cannot_be() -> None:
    records = arguments("in.parquet", "out", direct=True, topics="topics.jsonl")
    with pytest.raises(kr.GroupError, match="--direct: records are compacted by Spark"):
        reads_files(records, NO_SESSION, plain=True)
    bare = arguments("/in.jsonl", "hdfs://name/out", direct=True)
    with pytest.raises(kr.GroupError, match="--direct: INPUT and OUTPUT need a scheme"):
        reads_files(bare, NO_SESSION, plain=False)


@pytest.mark.parametrize(
    ("directory", "expected"),
    [("cluster=a", True), ("day=1", True), ("assignor=range", False), ("changes=x", False)],
)
def test_columns_of_directories_are_read_by_spark(directory: str, expected: bool) -> None:
    files = [f"file:///in.parquet/{directory}/a.parquet"]
    frame = SimpleNamespace(columns=["group_id"], inputFiles=lambda: files)
    session: Any = SimpleNamespace(read=SimpleNamespace(parquet=lambda _: frame))
    given = arguments("/in.parquet", "out")
    assert reads_files(given, session, plain=True) is expected
    given.direct = True
    if not expected:
        with pytest.raises(kr.GroupError, match="--direct: the names of directories have the col"):
            reads_files(given, session, plain=True)
