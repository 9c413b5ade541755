# SPDX-License-Identifier: Apache-2.0
"""The judge of Connect's assignors: its own classes behind a pipe (`tools/connect-oracle`)."""

from __future__ import annotations

from pathlib import Path

from tests.support.oracle import Oracle

JAR = (
    Path(__file__).resolve().parent.parent.parent
    / "tools"
    / "connect-oracle"
    / "target"
    / "connect-oracle.jar"
)


class ConnectOracle(Oracle):
    """A running oracle for scripts of rounds, for one thread.

    `ask(script)` is `{"id"?, "rounds": …}`, or `{"id"?, "error": …}` where Connect throws. A script
    with `"own_order": true` has workers that keep the order of what they run, as real ones do; the
    shared vectors have workers that take the order in which their report was read.

    >>> with ConnectOracle() as oracle:  # doctest: +SKIP
    ...     oracle.ask({"assignor": "connect/eager", "rounds": []})
    {'rounds': []}
    """

    def __init__(self, jar: Path = JAR) -> None:
        super().__init__(jar)
