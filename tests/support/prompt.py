# SPDX-License-Identifier: Apache-2.0
"""Runs `kafka-rebalance` as a user at the prompt does, but in this process."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from typing import AnyStr, Generic
from unittest.mock import patch

from kafka_rebalance.cli import main


@dataclass(frozen=True)
class Ran(Generic[AnyStr]):
    """The exit code and the output of a command, as of a process."""

    returncode: int
    stdout: AnyStr
    stderr: AnyStr


def ran(*arguments: object, given: bytes = b"") -> Ran[bytes]:
    """Runs a command in this process, with streams as those of pipes; `given` is its input."""
    streams = [io.TextIOWrapper(io.BytesIO(one), encoding="utf-8") for one in (given, b"", b"")]
    stdin, stdout, stderr = streams
    words = list(map(str, arguments))
    with patch.multiple(
        sys, stdin=stdin, stdout=stdout, stderr=stderr, argv=["kafka-rebalance", *words]
    ):
        try:
            code = main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        stdout.flush()
        stderr.flush()
    said = [one.buffer.getvalue() for one in (stdout, stderr) if isinstance(one.buffer, io.BytesIO)]
    return Ran(code, *said)


def command(*arguments: object, stdin: str = "") -> Ran[str]:
    """Runs a command in this process; its streams are UTF-8."""
    found = ran(*arguments, given=stdin.encode())
    return Ran(found.returncode, found.stdout.decode(), found.stderr.decode())
