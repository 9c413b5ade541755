# SPDX-License-Identifier: Apache-2.0
"""Runs Connect's own assignor classes (`tools/connect-oracle`) as a process, for comparison."""

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
    """A process that plays scripts of rounds. Only one thread may use it.

    `ask(script)` returns `{"id"?, "rounds": …}`, or `{"id"?, "error": …}` if Connect throws. In a
    script with `"own_order": true`, workers report their work in their own order, as real workers
    do. In other scripts, the order is that in which the leader decoded their reports.

    >>> with ConnectOracle() as oracle:  # doctest: +SKIP
    ...     oracle.ask({"assignor": "connect/eager", "rounds": []})
    {'rounds': []}
    """

    def __init__(self, jar: Path = JAR) -> None:
        super().__init__(jar)
