# SPDX-License-Identifier: Apache-2.0
"""Asks every peer the same cases, in one run, and keeps what it says.

A peer is a filter: contract lines in, `{"ms": [...]}` out. One that does not answer in time is
stopped, and is not asked larger cases of the same kind any more: that is told, not hidden.
"""

from __future__ import annotations

import json
import os
import select
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benches.grid import Case

Answer = dict[str, Any]


@dataclass
class Peer:
    """`knows` says which assignors it has; `most_partitions` is where it would take minutes."""

    name: str
    command: Sequence[str]
    knows: Sequence[str]
    timeout: float
    most_partitions: int = 10**9
    _process: subprocess.Popen[bytes] | None = None
    _stuck: dict[tuple[str, ...], int] = field(default_factory=dict)

    def ask(self, case: Case, line: bytes) -> Answer:
        """`ms` (the median), `best_ms`, or `skipped` with the reason."""
        if case.assignor not in self.knows:
            return {"skipped": "it has no such assignor"}
        # Both sticky assignors are one algorithm: what one does not finish, the other does not.
        family = case.assignor.removeprefix("cooperative-")
        kind = (family, case.subscriptions, case.kind, case.racks, case.title)
        stuck = self._stuck.get(kind, 10**9)
        if case.partitions >= stuck:
            return {"skipped": f"no answer in {self.timeout:g} s on {stuck} partitions already"}
        if case.partitions > self.most_partitions:
            return {"skipped": f"minutes beyond {self.most_partitions} partitions"}
        answer = self._ask(line)
        if answer is None:
            self._stuck[kind] = case.partitions
            return {"skipped": f"no answer in {self.timeout:g} s"}
        if "ms" not in answer:
            return {"skipped": answer.get("error", "no answer")}
        times = answer.pop("ms")
        return {**answer, **_times(times)}

    def _ask(self, line: bytes) -> Answer | None:
        if self._process is None:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()
        ends = time.monotonic() + self.timeout
        said = b""
        descriptor = self._process.stdout.fileno()
        while not said.endswith(b"\n"):
            ready, _, _ = select.select([descriptor], [], [], max(0.0, ends - time.monotonic()))
            piece = os.read(descriptor, 1 << 20) if ready else b""
            if not piece:
                self.stop()
                return None
            said += piece
        answer: Answer = json.loads(said)
        return answer

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def timed(ask: Callable[[], object], seconds: float) -> Answer:
    """The same for something in this process."""
    times: list[float] = []
    start = time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - start < seconds and len(times) < 10_000):
        once = time.perf_counter()
        ask()
        times.append((time.perf_counter() - once) * 1000)
    return _times(times)


def _times(times: Sequence[float]) -> Answer:
    return {"ms": statistics.median(times), "best_ms": min(times), "calls": len(times)}
