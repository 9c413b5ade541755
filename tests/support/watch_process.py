# SPDX-License-Identifier: Apache-2.0
"""Runs `kafka-rebalance watch` as a process, and waits for its lines."""

from __future__ import annotations

import contextlib
import queue
import subprocess
import sys
import threading
from typing import Self

from tests.support.waiting import FAR_S


class Watch:
    """A process that writes errors to standard output; `line` returns the lines up to one with
    these words.
    """

    def __init__(self, server: str, group_id: str, *more: str) -> None:
        command = [sys.executable, "-m", "kafka_rebalance", "watch", "--bootstrap-server", server]
        self.process = subprocess.Popen(
            [*command, "--group", group_id, "--for", str(FAR_S), *more],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def line(self, words: str) -> str:
        """Returns the lines since the last call. Errors: AssertionError if none has the words."""
        seen: list[str] = []
        with contextlib.suppress(queue.Empty):
            while (line := self._lines.get(timeout=FAR_S)) is not None:
                seen.append(line)
                if words in line:
                    return "".join(seen)
        raise AssertionError(f"no line has {words!r}: {seen}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._thread.join()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)
