# SPDX-License-Identifier: Apache-2.0
"""Paths as Spark reads them: their places, formats and clusters, and their file systems.

A path is a string in Hadoop's form (`s3a://bucket/key`, `hdfs://host/path`): no character is
written as %XX, and a path without a scheme is local. pyarrow opens the file systems; if fsspec is
installed, it opens those that pyarrow does not support.
"""

import os
import posixpath
import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby, takewhile
from pathlib import Path, PurePath, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from kafka_rebalance.errors import GroupError

LINES = "lines"
PARQUET = "parquet"
RECORDS = "records"
FORMATS = (LINES, PARQUET, RECORDS)
"""Contract lines, the contract's columns, and records of `__consumer_offsets`."""

_LINE_SUFFIXES = (".jsonl", ".json", ".ndjson")
_PATTERN = set("*?[{")
"""The characters of a path that Spark reads as a pattern."""

NO_CLUSTER = "__HIVE_DEFAULT_PARTITION__"
"""The VALUE of a null column in Spark's directory names `NAME=VALUE`."""

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")

_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?(/.*|)", re.DOTALL)

_OF_PYARROW = {
    "file": "file",
    "hdfs": "hdfs",
    "viewfs": "viewfs",
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "gcs": "gs",
    "abfs": "abfs",
    "abfss": "abfss",
}
"""Hadoop's scheme -> the scheme by which pyarrow knows this file system."""


def local(path: str, *, plain: bool = True) -> Path | None:
    """Returns the path as a Path if it is in the local file system; else None.

    If `plain` is False, a path without a scheme is in the cluster's own file system. Callers keep
    the string of other paths, because a Path would change it: `Path("s3a://b/x")` is `s3a:/b/x`.
    """
    if not SCHEME.match(path):
        return Path(path) if plain else None
    parts = urlsplit(path)
    if parts.scheme.lower() == "file" and parts.netloc in ("", "localhost"):
        return Path(unquote(parts.path))
    return None


def is_pattern(path: str) -> bool:
    """Returns whether Spark reads the path as a pattern of paths."""
    return not _PATTERN.isdisjoint(path)


def format_of(path: str, *, plain: bool = True) -> str:
    """Returns LINES or PARQUET, by the suffixes of the path or of a local directory's files."""
    here = local(path, plain=plain)
    names = [path.rstrip("/")]
    if here is not None and here.is_dir():
        names = [str(one) for one in sorted(here.rglob("*")) if one.is_file()]
    bare = (name.removesuffix(".gz") for name in names)
    return LINES if any(name.endswith(_LINE_SUFFIXES) for name in bare) else PARQUET


def check_local(source: str, target: str, *, overwrite: bool) -> None:
    """Raises GroupError for a local input that does not exist, or an output that overlaps the
    input.

    An output that exists is refused without `overwrite`, and always if it holds a file that no job
    of `fleet` writes. In other file systems, Spark itself reports the problems of paths.

    Errors: GroupError at INPUT or OUTPUT.
    """
    here, there = local(source), local(target)
    if here is not None and not here.exists() and not is_pattern(source):
        raise GroupError("INPUT", f"there is no {source}")
    if here is not None and there is not None and overlaps(target, [source]):
        raise GroupError("OUTPUT", f"{target} overlaps INPUT, which would be overwritten")
    if there is not None and there.exists() and not overwrite:
        raise GroupError("OUTPUT", f"{target} exists; --overwrite replaces it")
    if there is not None and (other := _foreign_file(there)) is not None:
        problem = f"{other} is not from a fleet job, and --overwrite would delete it"
        raise GroupError("OUTPUT", f"{problem}: move it, or name another directory")


_WRITTEN = re.compile(
    r"report\.html|worst/[0-9]+\.jsonl"
    r"|(?:(?:plans|summary)/)?(?:change=[^/]*/)?"
    r"(?:part-[^/]*\.parquet|_SUCCESS|_temporary/.*|\.[^/]*\.crc)"
)
"""Matches the files that `fleet` writes, and that older versions of it wrote (`change=…`)."""


def _foreign_file(target: Path) -> Path | None:
    files = [target] if target.is_file() else sorted(target.rglob("*"))
    names = ((one, one.relative_to(target).as_posix()) for one in files if not one.is_dir())
    return next((one for one, name in names if not _WRITTEN.fullmatch(name)), None)


def overlaps(target: str, sources: Iterable[str]) -> bool:
    """Returns whether the target is, contains or is in a source; a missing host may be any host."""
    scheme, host, there = _resolved(target)
    for source in sources:
        other, other_host, here = _resolved(source)
        may_meet = scheme == other and (host == other_host or not host or not other_host)
        if may_meet and (here == there or here in there.parents or there in here.parents):
            return True
    return False


def _resolved(path: str) -> tuple[str, str, PurePath]:
    here = local(path)
    if here is not None:
        return "file", "", here.resolve()
    scheme, authority, inner = place(path)
    return scheme, authority, PurePosixPath(inner)


def cluster_pattern(source: str) -> str:
    """Returns a regular expression, valid in Python and in Java, for files below `source` in a
    directory `cluster=NAME`; its group 1 is NAME.
    """
    return rf"{_below(source)}(?:[^/]+/)*?cluster=([^/]+)/"


def clusters_of(files: Iterable[str], *, below: str) -> list[str | None]:
    """Returns each file's cluster: NAME of a directory `cluster=NAME` below the source, or None."""
    pattern = re.compile(cluster_pattern(below))
    names = [found and found[1] for found in map(pattern.match, files)]
    return [None if name in (None, NO_CLUSTER) else unquote(name) for name in names]


def columns_of(files: Iterable[str], *, below: str) -> set[str]:
    """Returns each NAME of directories `NAME=VALUE` below a source, which is a column for Spark."""
    pattern = re.compile(f"{_below(below)}(.*/)")
    folders = {found[1] for found in map(pattern.match, files) if found}
    return {
        name.partition("=")[0] for folder in folders for name in folder.split("/") if "=" in name
    }


def _below(source: str) -> str:
    """Returns a regular expression for the start of paths below a source: its directories before
    the first one with a pattern.
    """
    here = local(source)
    inner = place(source)[2] if here is None else str(here)
    top = "/".join(takewhile(lambda name: not is_pattern(name), inner.split("/")))
    top = posixpath.normpath(top or "/" * inner.startswith("/"))
    if here is not None and Path(top).exists():
        top = os.path.abspath(top)  # noqa: PTH100 Spark follows no links, as resolve() does
    before = "" if top.startswith("/") else ".*"
    top = top.strip("/")
    return rf"^(?:[A-Za-z][^:/]*:)?(?://[^/]*)?{before}/" + (f"{re.escape(top)}/" if top else "")


# File systems -------------------------------------------------------------------------------------


def split_path(path: str) -> tuple[str, str, str]:
    """Returns scheme, authority (host or bucket) and path; a local path has the scheme "file"."""
    found = _PARTS.fullmatch(path)
    if found is None:
        return "file", "", path
    return found[1].lower(), found[2] or "", found[3]


def place(path: str) -> tuple[str, str, str]:
    """Returns the parts of `split_path`, equal for all spellings of a file's path: one scheme for
    each store, the authority in lower case, an absolute path without `.`, `..` and double `/`.
    """
    scheme, authority, inner = split_path(path)
    scheme = _OF_PYARROW.get(scheme, scheme)
    inner = posixpath.normpath(f"/{inner.lstrip('/')}")
    return ("abfs" if scheme == "abfss" else scheme), authority.lower(), inner


def open_file_system(path: str) -> tuple[Any, str]:
    """Returns a file system of pyarrow, and the path inside it.

    Errors: GroupError at the path if neither pyarrow nor fsspec can open its file system.
    """
    scheme, authority, inner = split_path(path)
    try:
        if scheme in _OF_PYARROW:
            system, base = _of_pyarrow(_OF_PYARROW[scheme], authority)
            return system, base.rstrip("/") + inner
        return _of_fsspec(path, scheme)
    except (OSError, ValueError, NotImplementedError) as error:
        # The store refuses, the path is not one of its URIs, or this build of pyarrow lacks the
        # store.
        raise GroupError(path, f"its file system cannot be opened: {error}") from error


def file_sizes(paths: Iterable[str]) -> dict[str, int]:
    """Returns path -> file size in bytes. Errors: GroupError at a path that is not a file."""
    sizes: dict[str, int] = {}
    for _, in_one in groupby(paths, key=lambda path: split_path(path)[:2]):
        names = list(in_one)
        opened = [open_file_system(name) for name in names]
        found = opened[0][0].get_file_info([inner for _, inner in opened])
        for name, info in zip(names, found, strict=True):
            if not info.is_file:
                raise GroupError(name, "there is no such file")
            sizes[name] = info.size
    return sizes


@lru_cache
def _of_pyarrow(scheme: str, authority: str) -> tuple[Any, str]:
    from pyarrow import fs

    if scheme == "file":
        return fs.LocalFileSystem(), ""
    system, base = fs.FileSystem.from_uri(f"{scheme}://{authority}/")
    return system, base


def _of_fsspec(path: str, scheme: str) -> tuple[Any, str]:
    from pyarrow import fs

    try:
        from fsspec.core import url_to_fs
    except ImportError:
        known = ", ".join(f"{name}://" for name in _OF_PYARROW)
        problem = f"pyarrow opens only {known}; {scheme}:// needs fsspec on driver and executors"
        raise GroupError(path, problem) from None
    try:
        system, inner = url_to_fs(path)
    except ImportError as error:  # fsspec needs another package for this scheme
        raise GroupError(path, f"its file system cannot be opened: {error}") from error
    return fs.PyFileSystem(fs.FSSpecHandler(system)), inner
