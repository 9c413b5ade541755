# SPDX-License-Identifier: Apache-2.0
"""The commit of parts in a file system that is not local, simulated by a directory of this
machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import fs

import kafka_rebalance as kr
from kafka_rebalance.bulk import paths
from kafka_rebalance.bulk.output_directory import output_directory

if TYPE_CHECKING:
    from pathlib import Path

OLD = {"_SUCCESS": "", "part-old": "old", "more/part-old": "old"}


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a directory with an older output, and a part that an earlier job left."""
    monkeypatch.setattr(paths, "local", lambda _: None)
    target = tmp_path / "out"
    for name, text in {**OLD, "_temporary/part-x": "stale"}.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text)
    return target


def files(target: Path) -> dict[str, str]:
    every = [path for path in target.rglob("*") if path.is_file()]
    return {path.relative_to(target).as_posix(): path.read_text() for path in every}


def write(target: Path, *names: str) -> list[str]:
    """Writes parts as tasks do; the first part is not reported, as if its task had run again."""
    for name in ("part-lost", *names):
        (target / "_temporary" / name).write_text(name)
    return list(names)


def test_an_output_that_exists_is_refused(target: Path) -> None:
    before = files(target)
    with pytest.raises(kr.GroupError, match=r"target: .*out exists"), output_directory(str(target)):
        pass
    assert files(target) == before


def test_a_commit_replaces_the_older_output(target: Path) -> None:
    with output_directory(f"{target}/", overwrite=True) as output:
        assert output.parts == f"{target}/_temporary"
        output.commit(write(target, "part-a", "part-b"))
    assert files(target) == {"_SUCCESS": "", "part-a": "part-a", "part-b": "part-b"}
    assert {path.name for path in target.iterdir()} == {"_SUCCESS", "part-a", "part-b"}


def test_a_job_that_fails_leaves_the_older_output(target: Path) -> None:
    def job() -> None:
        with output_directory(str(target), overwrite=True):
            write(target, "part-a")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        job()
    assert files(target) == OLD
    assert not (target / "_temporary").exists()


class Failing:
    """The local file system, whose second move fails."""

    def __init__(self) -> None:
        self.moves = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(fs.LocalFileSystem(), name)

    def move(self, source: str, target: str) -> None:
        self.moves += 1
        if self.moves == 2:
            raise OSError("the store is away")
        fs.LocalFileSystem().move(source, target)


def test_a_commit_that_fails_loses_nothing(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = Failing()

    def job() -> None:
        with output_directory(str(target), overwrite=True) as output:
            output.commit(write(target, "part-a", "part-b", "part-c"))

    monkeypatch.setattr(paths, "open_file_system", lambda path: (system, path))
    with pytest.raises(OSError, match="the store is away"):
        job()
    found = files(target)
    assert "_SUCCESS" not in found
    assert (found["part-old"], found["more/part-old"], found["part-a"]) == ("old", "old", "part-a")
    assert (found["_temporary/part-b"], found["_temporary/part-c"]) == ("part-b", "part-c")
    with output_directory(str(target), overwrite=True) as output:
        output.commit(write(target, "part-d"))
    assert files(target) == {"_SUCCESS": "", "part-d": "part-d"}
