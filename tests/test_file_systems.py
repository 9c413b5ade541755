# SPDX-License-Identifier: Apache-2.0
"""pyarrow or fsspec opens paths in Hadoop's form; lines of a file are read by ranges."""

from __future__ import annotations

import io
import itertools
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

import kafka_rebalance as kr
from kafka_rebalance.bulk import paths
from kafka_rebalance.bulk.paths import file_sizes, open_file_system, split_path
from kafka_rebalance.bulk.splits import Split, cut, line_batches, row_batches
from kafka_rebalance.group.line_files import read_lines, read_range

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("/a/b c%2F", ("file", "", "/a/b c%2F")),
        ("a:b", ("file", "", "a:b")),  # a name with a colon, but no scheme
        ("file:/a/b", ("file", "", "/a/b")),
        ("file:///a/b", ("file", "", "/a/b")),
        ("hdfs://host:8020/a/b", ("hdfs", "host:8020", "/a/b")),
        ("hdfs:///a", ("hdfs", "", "/a")),
        ("S3A://bucket/a=b/c", ("s3a", "bucket", "/a=b/c")),
        ("s3a://bucket", ("s3a", "bucket", "")),
        (
            "abfss://box@account.dfs.core.windows.net/a",
            ("abfss", "box@account.dfs.core.windows.net", "/a"),
        ),
    ],
)
def test_a_path_has_three_parts(path: str, parts: tuple[str, str, str]) -> None:
    assert split_path(path) == parts


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Yields the URIs for which pyarrow was asked; its answer contains the bucket as the path."""
    uris: list[str] = []

    def from_uri(uri: str) -> tuple[str, str]:
        uris.append(uri)
        scheme, _, rest = uri.partition("://")
        return scheme, "/" if scheme == "hdfs" else rest

    monkeypatch.setattr(fs, "FileSystem", SimpleNamespace(from_uri=from_uri))
    paths._of_pyarrow.cache_clear()
    yield uris
    paths._of_pyarrow.cache_clear()


@pytest.mark.parametrize(
    ("path", "uri", "inner"),
    [
        ("s3a://lake/groups/x y", "s3://lake/", "lake/groups/x y"),
        ("s3n://lake/groups", "s3://lake/", "lake/groups"),
        ("s3://lake/groups", "s3://lake/", "lake/groups"),
        ("gs://lake/groups", "gs://lake/", "lake/groups"),
        ("hdfs://name:8020/groups", "hdfs://name:8020/", "/groups"),
        ("hdfs:///groups", "hdfs:///", "/groups"),
        ("abfss://box@a.net/g", "abfss://box@a.net/", "box@a.net/g"),
    ],
)
def test_schemes_of_hadoop_are_schemes_of_pyarrow(
    asked: list[str], path: str, uri: str, inner: str
) -> None:
    system, found = open_file_system(path)
    assert asked == [uri]
    assert found == inner
    assert system == uri.partition("://")[0]


def test_local_paths_are_opened_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "a b%2F"
    file.write_bytes(b"12345")
    for path in (str(file), f"file:{file}", f"file://{file}"):
        system, inner = open_file_system(path)
        assert isinstance(system, fs.LocalFileSystem)
        assert inner == str(file)
        assert file_sizes([path]) == {path: 5}
    with pytest.raises(kr.GroupError, match="there is no such file"):
        file_sizes([str(tmp_path / "nothing")])


def test_other_schemes_need_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(kr.GroupError, match="dbfs:// needs fsspec on driver and executors"):
        open_file_system("dbfs:/groups")
    core: Any = ModuleType("fsspec.core")
    monkeypatch.setitem(sys.modules, "fsspec", ModuleType("fsspec"))
    monkeypatch.setitem(sys.modules, "fsspec.core", core)

    def lacks_a_package(_: str) -> None:
        raise ImportError("Install adlfs to access Azure")

    core.url_to_fs = lacks_a_package
    with pytest.raises(kr.GroupError, match="adl://x/y: its file system cannot be opened: Install"):
        open_file_system("adl://x/y")
    core.url_to_fs = lambda path: (f"system of {path}", "/inner")
    monkeypatch.setattr(fs, "FSSpecHandler", lambda system: ("handler", system))
    monkeypatch.setattr(fs, "PyFileSystem", lambda handler: handler)
    assert open_file_system("dbfs:/groups") == (("handler", "system of dbfs:/groups"), "/inner")


TEXT = b"one\n\ntwo\r\n" + b"x" * 50 + b"\nlast"


@pytest.mark.parametrize("step", range(1, len(TEXT) + 2))
@pytest.mark.parametrize("text", [TEXT, TEXT + b"\n", b"", b"\n"])
def test_each_line_is_in_one_range(step: int, text: bytes) -> None:
    whole = list(read_lines(io.BytesIO(text), 20))
    assert [None if len(line) > 20 else line for line in text.splitlines()] == whole
    ranges = [(start, min(start + step, len(text))) for start in range(0, len(text), step)]
    assert [
        line for start, end in ranges for line in read_range(io.BytesIO(text), start, end, 20)
    ] == whole


@pytest.mark.parametrize("bytes_each", [1, 7, 100, 10_000])
def test_splits_cover_each_byte_once(bytes_each: int) -> None:
    files = [Split("a", 0, 250), Split("empty", 0, 0), Split("b.gz", 0, 33), Split("c", 0, 4)]
    for is_lines in (True, False):
        splits = [split for task in cut(files, bytes_each, lines=is_lines) for split in task]
        for file in files:
            mine = [(one.start, one.end) for one in splits if one.path == file.path]
            assert [p for start, end in mine for p in range(start, end)] == list(range(file.end))
            assert not (is_lines and file.is_compressed) or len(mine) == 1


def test_a_range_of_a_file_that_becomes_shorter_ends() -> None:
    assert list(read_range(io.BytesIO(b"a\n"), 0, 100, 20)) == [b"a"]


def test_only_wanted_columns_are_read(tmp_path: Path) -> None:
    """Lists have several names inside Parquet, by the library that wrote the file."""
    members = [{"member_id": "a", "rack_id": "r", "topics": ["t", "u"]}, {"member_id": "b"}]
    rows = [{"x.y": 1, "members": members, "note": {"a": [1]}}] * 9
    for compliant in (True, False):
        path = tmp_path / f"{compliant}.parquet"
        table = pa.Table.from_pylist(rows)
        pq.write_table(table, path, row_group_size=4, use_compliant_nested_type=compliant)
        wanted = {"members.member_id", "members.topics", "note", "x.y"}
        split = Split(str(path), 0, path.stat().st_size)
        found = pa.Table.from_batches(row_batches(split, wanted))
        assert found.schema.names == ["x.y", "members", "note"]
        assert [field.name for field in found.schema.field("members").type.value_type] == [
            "member_id",
            "topics",
        ]
        assert found.num_rows == 9
        assert found["members"][8].as_py()[0] == {"member_id": "a", "topics": ["t", "u"]}


def test_a_row_group_is_in_the_split_of_its_first_byte(tmp_path: Path) -> None:
    """The first byte is that of the dictionary, if the first column has one."""
    for has_dictionary in (True, False):
        path = tmp_path / "rows.parquet"
        table = pa.table({"group_id": [f"g{n}" for n in range(12)]})
        pq.write_table(table, path, row_group_size=4, use_dictionary=has_dictionary)
        groups = pq.read_metadata(path)
        column = groups.row_group(1).column(0)
        first = column.dictionary_page_offset if has_dictionary else column.data_page_offset
        ends = (0, first, first + 1, path.stat().st_size)
        splits = [Split(str(path), *each) for each in itertools.pairwise(ends)]
        found = [pa.Table.from_batches(row_batches(one, {"group_id"})) for one in splits]
        assert [one["group_id"].to_pylist()[:1] for one in found] == [["g0"], ["g4"], ["g8"]]
        assert [one.num_rows for one in found] == [4, 4, 4]


def test_batches_of_giant_rows_are_small(tmp_path: Path) -> None:
    """The rows in a batch depend on the number of their values, not on their bytes on disk."""
    names = [f"topic-{n}" for n in range(5_000)]
    table = pa.Table.from_pylist([{"group_id": f"g{n}", "topics": names} for n in range(400)])
    path = tmp_path / "giants.parquet"
    pq.write_table(table, path)
    assert path.stat().st_size * 10 < table.nbytes
    split = Split(str(path), 0, path.stat().st_size)
    batches = list(row_batches(split, {"group_id", "topics"}))
    assert sum(len(batch) for batch in batches) == 400
    assert max(batch.nbytes for batch in batches) < 8 * 1024 * 1024


def test_lines_come_in_bounded_batches(tmp_path: Path) -> None:
    path = tmp_path / "groups.jsonl"
    path.write_bytes((b"y" * 1024 * 1024 + b"\n") * 20)
    batches = list(line_batches(Split(str(path), 0, path.stat().st_size)))
    assert sum(len(batch) for batch in batches) == 20
    assert max(len(batch) for batch in batches) == 4
