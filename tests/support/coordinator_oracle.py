# SPDX-License-Identifier: Apache-2.0
"""The judge of the coordinator: Kafka's own, in virtual time, behind a pipe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.oracle import Oracle

JAR = (
    Path(__file__).resolve().parent.parent.parent
    / "tools"
    / "coordinator-oracle"
    / "target"
    / "coordinator-oracle.jar"
)


class CoordinatorOracle(Oracle):
    """A running one; `command` is what `Driver.command` is, for Kafka's coordinator."""

    def __init__(self, jar: Path = JAR) -> None:
        super().__init__(jar)

    def command(self, command: dict[str, Any]) -> dict[str, Any]:
        """Sends one command and returns what Kafka's coordinator did."""
        return self.ask(command)
