# SPDX-License-Identifier: Apache-2.0
"""Plays scenarios on a coordinator in virtual time: in this process, or in one of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, Self

from kafka_rebalance.playback.driver import Driver
from tests.support.processes import end_by_closing_stdin

from .scenarios import CONFIG

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .cast import Command

OURS = (sys.executable, "-m", "kafka_rebalance", "coordinator", "--json")
ANSWER_TIMEOUT_S = 30.0


class DriverError(RuntimeError):
    """The subprocess ended, answered too late or not in JSON, or did not know the command."""


class OwnPlayer:
    """Plays scenarios one after another, each with a new coordinator, in this process."""

    live = False  # each answer contains all events up to its time, so the caller need not wait

    def __init__(self) -> None:
        self._driver = Driver()

    def begin(self) -> None:
        self.tell({"op": "init", **CONFIG})

    def tell(self, command: Command) -> dict[str, Any]:
        """Sends a command; returns the answer, which contains "id" and "events"."""
        # The subprocess needs two commands for a sweep: to wait, and to remove expired offsets.
        if command["op"] == "sweep":
            waited = self.tell({"op": "advance", "ms": command["ms"]})
            swept = self.tell({"op": "cleanup"})
            return {**swept, "events": waited["events"] + swept["events"]}
        answer = self._answer(command)
        if "bad" in answer:
            raise DriverError(f"the driver does not know {answer['bad']!r}")
        return answer

    def more(self, timeout_s: float) -> list[dict[str, Any]]:
        """Returns nothing, because the answers contained all events."""
        return []

    def _answer(self, command: Command) -> dict[str, Any]:
        return self._driver.command(command)


class DriverPlayer(OwnPlayer):
    """An `OwnPlayer` whose coordinator is in a process of its own."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def _answer(self, command: Command) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        timer = threading.Timer(ANSWER_TIMEOUT_S, self._process.kill)
        timer.start()
        try:
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        if not line:
            raise DriverError(f"no answer to {json.dumps(command)}")
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError:
            raise DriverError(f"{json.dumps(command)} was answered by {line!r}") from None
        return answer

    def close(self) -> None:
        end_by_closing_stdin(self._process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
