# SPDX-License-Identifier: Apache-2.0
"""A directory of Parquet into which files are moved only when all of them are written."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafka_rebalance.errors import GroupError

from . import paths

_TEMPORARY = "_temporary"
_SUCCESS = "_SUCCESS"
_NOT_FOUND = "NotFound"  # of pyarrow's FileType


@dataclass
class OutputDirectory:
    """A directory of output. Until `commit`, its files are in `_temporary`, which readers skip."""

    path: str
    overwrite: bool = False
    has_begun: bool = False
    """Whether the commit has begun."""

    @property
    def parts(self) -> str:
        return f"{self.path}/{_TEMPORARY}"

    def prepare(self) -> None:
        """Makes the directory. Errors: GroupError at `target` if it exists, unless `overwrite`."""
        system, inner = paths.open_file_system(self.path)
        (found,) = system.get_file_info([inner])
        if found.type.name != _NOT_FOUND and not self.overwrite:
            raise GroupError("target", f"{self.path} exists")
        system.create_dir(f"{inner}/{_TEMPORARY}", recursive=True)

    def commit(self, names: Sequence[str]) -> None:
        """Moves the parts with these names into the directory, removes all other files, and writes
        `_SUCCESS`.

        Nothing is removed before all parts are moved, except the `_SUCCESS` of an older output.
        """
        from pyarrow.fs import FileSelector

        system, inner = paths.open_file_system(self.path)
        older = {one.base_name: one for one in system.get_file_info(FileSelector(inner))}
        older.pop(_TEMPORARY, None)
        self.has_begun = True
        if _SUCCESS in older:
            system.delete_file(older.pop(_SUCCESS).path)
        for name in names:
            system.move(f"{inner}/{_TEMPORARY}/{name}", f"{inner}/{name}")
        for one in older.values():
            remove = system.delete_file if one.is_file else system.delete_dir
            remove(one.path)
        self.clean()
        system.open_output_stream(f"{inner}/{_SUCCESS}").close()

    def clean(self) -> None:
        """Removes the parts that were not committed."""
        system, inner = paths.open_file_system(f"{self.path}/{_TEMPORARY}")
        (found,) = system.get_file_info([inner])
        if found.type.name != _NOT_FOUND:
            system.delete_dir(inner)


@contextmanager
def output_directory(target: str, *, overwrite: bool = False) -> Iterator[OutputDirectory]:
    """Yields a directory for a job's parts; a local one gets its final name only at the end.

    If the job fails, an older output stays, and the parts are removed. If a commit fails in a file
    system that is not local, older files may remain next to new parts, without `_SUCCESS`.
    """
    here = paths.local(target)
    if here is None:
        directory = OutputDirectory(target.rstrip("/"), overwrite)
        directory.prepare()
        try:
            yield directory
        finally:
            if not directory.has_begun:
                directory.clean()
        return
    if here.exists() and not overwrite:
        raise GroupError("target", f"{target} exists")
    with whole_directory(here, overwrite=overwrite) as written:
        directory = OutputDirectory(str(written))
        directory.prepare()
        yield directory


@contextmanager
def whole_directory(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Yields a temporary path next to `path`; at the end, the directory made there is renamed to
    `path`.
    """
    path = path.absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    written, old = (path.with_name(f".{path.name}.{os.getpid()}.{end}") for end in ("new", "old"))
    try:
        yield written
        if overwrite and path.exists():
            path.rename(old)
        written.rename(path)
    finally:
        for left in (written, old):
            shutil.rmtree(left, ignore_errors=True)
