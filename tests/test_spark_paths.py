# SPDX-License-Identifier: Apache-2.0
"""The meaning of paths of Spark's files: overlaps of input and output, clusters, other columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.bulk.paths import clusters_of, columns_of, overlaps
from kafka_rebalance.spark import jobs
from kafka_rebalance.spark.files import assign_files


@pytest.mark.parametrize(
    ("target", "source", "expected"),
    [
        ("s3a://lake/a", "s3a://lake/a", True),
        ("s3://Lake/a/", "s3a://lake/b/../a", True),
        ("s3a://lake", "s3a://lake/a/b.parquet", True),
        ("s3a://lake/a/b", "s3a://lake//a", True),
        ("abfs://box@a.net/x", "abfss://box@a.net/x/y", True),
        ("hdfs:///a", "hdfs://name:8020/a/b", True),
        ("s3a://lake/ab", "s3a://lake/a", False),
        ("s3a://lake/a", "s3a://other/a", False),
        ("hdfs://lake/a", "s3a://lake/a", False),
        ("/a", "hdfs:///a", False),
        ("file:///nowhere/a", "/nowhere/x/../a/b", True),
    ],
)
def test_which_paths_overlap(target: str, source: str, expected: bool) -> None:
    assert overlaps(target, ["s3a://elsewhere/x", source]) is expected
    assert overlaps(source, [target]) is expected


@pytest.mark.parametrize(
    ("source", "file", "cluster"),
    [
        ("s3a://lake/in", "s3a://lake/in/cluster=a b/x", "a b"),
        ("s3a://lake/in/", "s3a://lake/in/day=1/cluster=a%2Fb/x", "a/b"),
        ("s3a://lake", "s3a://lake/cluster=a/x", "a"),
        ("s3a://lake/cluster=*", "s3a://lake/cluster=a/x", "a"),
        ("hdfs:///in", "hdfs://name:8020/in/cluster=a/x", "a"),
        ("/in", "hdfs://name:8020/in/cluster=a/x", "a"),
        ("no-such/in", "hdfs://name:8020/user/me/no-such/in/cluster=a/x", "a"),
        ("s3a://lake/in", "s3a://lake/in/cluster=__HIVE_DEFAULT_PARTITION__/x", None),
        ("s3a://lake/cluster=a/in", "s3a://lake/cluster=a/in/x", None),
        ("s3a://lake/cluster=a", "s3a://lake/cluster=a/x", None),
        ("s3a://lake/cluster=a/x", "s3a://lake/cluster=a/x", None),
        ("s3a://lake/in", "s3a://lake/in/my-cluster=a/x", None),
        ("s3a://lake/in", "s3a://lake/in/cluster=a", None),
    ],
)
def test_a_cluster_is_a_directory_below_the_source(
    source: str, file: str, cluster: str | None
) -> None:
    assert clusters_of([file], below=source) == [cluster]


def test_relative_sources_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "in" / "cluster=above"
    (here / "in").mkdir(parents=True)
    monkeypatch.chdir(here)
    for source in ("in", "./in", "in/*", f"{here}/in", f"file:{here}/in"):
        files = [f"file://{here}/in/x", f"file://{here}/in/cluster=a/x"]
        assert clusters_of(files, below=source) == [None, "a"]


def test_columns_of_directories() -> None:
    files = ["s3a://lake/no=1/in/a=1/b=2/c=x.parquet", "s3a://lake/no=1/in/a=2/d/e=/x"]
    assert columns_of(files, below="s3a://lake/no=1/in") == {"a", "b", "e"}


def test_on_connect_the_input_decides_where_plain_paths_are(tmp_path: Path) -> None:
    class Connected:
        """A session of Spark Connect, which shows the files and no configuration."""

        def __getattr__(self, name: str) -> Any:
            return self

        def option(self, *_: str) -> Connected:
            return self

        def text(self, _: str) -> Connected:
            return self

        def inputFiles(self) -> list[str]:  # noqa: N802 Spark's name
            return ["hdfs://name/in/a.jsonl"]

    session: Any = Connected()
    with pytest.raises(kr.GroupError, match="out needs a scheme, for example hdfs://"):
        assign_files(session, "/in/a.jsonl", str(tmp_path / "out"))


def test_a_row_becomes_a_contract_line_with_the_names_of_topics() -> None:
    """Columns may contain a topic's place in `topics`; a place without a topic stays."""
    row = {
        "cluster": "eu",
        "group_id": "g",
        "assignor": None,
        "topics": [{"name": "a", "partitions": 1}, {"name": "b", "partitions": 2}],
        "members": [
            {"member_id": "m", "topics": [1, 2], "owned_partitions": [{"topic": 1}]},
            {"member_id": "n", "topics": ["a"], "owned_partitions": None},
        ],
    }
    line = json.loads(jobs._line(row))
    assert line.keys() == {"group_id", "topics", "members"}
    first, second = line["members"]
    assert first == {"member_id": "m", "topics": ["b", 2], "owned_partitions": [{"topic": "b"}]}
    assert second == {"member_id": "n", "topics": ["a"]}
