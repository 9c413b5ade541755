# SPDX-License-Identifier: Apache-2.0
"""Examines the local paths among those that a command passes to Spark."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kafka_rebalance.errors import GroupError

LINES = "lines"
PARQUET = "parquet"
RECORDS = "records"
FORMATS = (LINES, PARQUET, RECORDS)
"""Contract lines, the contract's columns, and records of `__consumer_offsets`."""

_LINE_SUFFIXES = (".jsonl", ".json", ".ndjson")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def local(path: str, *, plain: bool = True) -> Path | None:
    """Returns a path in the local file system, or None for a path in another one.

    If `plain` is False, a path without a scheme is in the cluster's own file system. Callers keep
    the text of other paths, because a Path would change it: `Path("s3a://b/x")` is `s3a:/b/x`.
    """
    if not _SCHEME.match(path):
        return Path(path) if plain else None
    parts = urlsplit(path)
    if parts.scheme.lower() == "file" and parts.netloc in ("", "localhost"):
        return Path(unquote(parts.path))
    return None


def format_of(path: str, *, plain: bool = True) -> str:
    """Returns LINES or PARQUET, by the suffixes of the path or of a local directory's files."""
    here = local(path, plain=plain)
    names = [path.rstrip("/")]
    if here is not None and here.is_dir():
        names = [str(one) for one in sorted(here.rglob("*")) if one.is_file()]
    bare = (name.removesuffix(".gz") for name in names)
    return LINES if any(name.endswith(_LINE_SUFFIXES) for name in bare) else PARQUET


def check_local(source: str, target: str, *, overwrite: bool) -> None:
    """Refuses an input that does not exist, and an output that overlaps the input.

    An output that exists is refused without `overwrite`.

    Paths in other file systems are not checked: Spark itself reports their problems.

    Errors: GroupError at INPUT or OUTPUT.
    """
    here, there = local(source), local(target)
    if here is not None and not here.exists() and not set(source) & set("*?[{"):
        raise GroupError("INPUT", f"there is no {source}")
    if here is not None and there is not None:
        a, b = here.resolve(), there.resolve()
        if a == b or a in b.parents or b in a.parents:
            raise GroupError("OUTPUT", f"{target} overlaps INPUT, which would be overwritten")
    if there is not None and there.exists() and not overwrite:
        raise GroupError("OUTPUT", f"{target} exists; --overwrite replaces it")
