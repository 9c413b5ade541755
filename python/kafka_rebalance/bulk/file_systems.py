# SPDX-License-Identifier: Apache-2.0
"""Opens the file systems of Hadoop's paths (`s3a://bucket/key`, `hdfs://host/path`) with pyarrow.

A path is a string in Hadoop's form: no character is written as %XX, and a path without a scheme is
local. If fsspec is installed, it opens the file systems that pyarrow does not support.
"""

import posixpath
import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby
from typing import Any

from kafka_rebalance.errors import GroupError

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

    Errors: GroupError at the path if neither pyarrow nor fsspec supports such a file system.
    """
    scheme, authority, inner = split_path(path)
    try:
        if scheme in _OF_PYARROW:
            system, base = _of_pyarrow(_OF_PYARROW[scheme], authority)
            return system, base.rstrip("/") + inner
        return _of_fsspec(path, scheme)
    except (OSError, ValueError, NotImplementedError) as error:
        # The store refuses, the path is not a URI of the store, or this pyarrow lacks the store.
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
