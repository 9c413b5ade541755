# SPDX-License-Identifier: Apache-2.0
"""Runs Kafka's own group coordinator in a process, in virtual time, for comparison."""

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
    """Kafka's coordinator with the interface of our `Driver`."""

    def __init__(self, jar: Path = JAR) -> None:
        super().__init__(jar)

    def command(self, command: dict[str, Any]) -> dict[str, Any]:
        """Sends one command and returns the answer of Kafka's coordinator."""
        return self.ask(command)

    def commands(self, commands: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Sends short commands together, which is faster, and returns their answers."""
        return self.ask_together(commands)
