# SPDX-License-Identifier: Apache-2.0
"""Sends cases to peers, and returns the times of their runs.

A peer is a program that reads contract lines (groups as JSON), and answers each with the times of
its runs, `{"ms": [...]}`. If a peer does not answer in time, it is killed, and cases of that kind
that are not smaller are skipped. If it ends without an answer, its exit code and its last line are
the result.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, TypeVar

from benches.grid import Case

Answer = dict[str, Any]
_T = TypeVar("_T")


class _Crashed(Exception):
    """A peer ended without an answer."""


@dataclass
class Peer:
    """A peer as a running program. `knows` lists the assignors that it can run.

    Cases with more than `most_partitions` are skipped: the sticky assignors of the Python clients
    need minutes for each.
    """

    name: str
    command: Sequence[str]
    knows: Sequence[str]
    timeout: float
    most_partitions: int = 10**9
    _process: subprocess.Popen[bytes] | None = None
    # A file, because a peer that writes many warnings to a pipe would have to wait for its reader.
    _errors: IO[bytes] = field(default_factory=tempfile.TemporaryFile)
    # Kind of case -> the size, in partitions, of the smallest case not answered in time.
    _stuck: dict[tuple[str, ...], int] = field(default_factory=dict)

    def ask(self, case: Case, line: bytes) -> Answer:
        """Returns `ms` (the median) and `best_ms`, or `skipped` with the reason.

        A peer that can cache data from one call to the next also reports `again_ms`; Java reports
        `make_ms`, the time in which it makes its objects from parsed JSON.
        """
        if case.assignor not in self.knows:
            return {"skipped": "it has no such assignor"}
        # Sticky and cooperative-sticky have one algorithm, so they are skipped together.
        family = case.assignor.removeprefix("cooperative-")
        kind = (family, case.subscriptions, case.kind, case.racks, case.title)
        stuck = self._stuck.get(kind, 10**9)
        if case.partitions >= stuck:
            return {"skipped": f"no answer in {self.timeout:g} s on {stuck} partitions already"}
        if case.partitions > self.most_partitions:
            return {"skipped": f"not asked beyond {self.most_partitions} partitions"}
        try:
            answer = self._ask(line)
        except _Crashed as crash:
            return {"skipped": str(crash)}
        if answer is None:
            self._stuck[kind] = case.partitions
            return {"skipped": f"no answer in {self.timeout:g} s"}
        if "ms" not in answer:
            return {"skipped": answer.get("error", "no answer")}
        for name in ("again_ms", "make_ms"):
            if name in answer:
                answer[name] = statistics.median(answer[name])
        return {**answer, **_times(answer["ms"])}

    def _ask(self, line: bytes) -> Answer | None:
        """Returns the peer's answer, or None if it does not come in time."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(line + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise self._crash(process, b"") from None
        ends = time.monotonic() + self.timeout
        written = b""
        descriptor = process.stdout.fileno()
        while not written.endswith(b"\n"):
            ready, _, _ = select.select([descriptor], [], [], max(0.0, ends - time.monotonic()))
            if not ready:
                self.stop()
                return None
            piece = os.read(descriptor, 1 << 20)
            if not piece:  # the peer closed its output
                raise self._crash(process, written)
            written += piece
        answer: Answer = json.loads(written)
        return answer

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._errors.seek(0)
            self._errors.truncate()
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
            )
        return self._process

    def _crash(self, process: subprocess.Popen[bytes], written: bytes) -> _Crashed:
        """Returns the error to raise; its text contains the last line that the peer wrote."""
        self.stop(ends_within_s=10)
        self._errors.seek(0)
        lines = (written + self._errors.read()).decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "it wrote nothing")
        return _Crashed(f"crashed, exit code {process.returncode}: {last}")

    def stop(self, *, ends_within_s: float = 0) -> None:
        """Kills the peer if it does not end by itself within the given time."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(ends_within_s)
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):  # the peer did not read all of a line
                pipe.close()


def timed(ask: Callable[[], object], seconds: float) -> Answer:
    """Calls `ask` in this process for about `seconds`, 3 to 10,000 times; returns the times."""
    return timed_anew(lambda: None, lambda _: ask(), seconds)


def timed_anew(make: Callable[[], _T], ask: Callable[[_T], object], seconds: float) -> Answer:
    """Measures as `timed` does; each call gets a new object from `make`.

    The time includes freeing the object and the answer, but not making the object.
    """
    times: list[float] = []
    start = time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - start < seconds and len(times) < 10_000):
        made = [make()]
        once = time.perf_counter()
        ask(made.pop())
        times.append((time.perf_counter() - once) * 1000)
    return _times(times)


def _times(times: Sequence[float]) -> Answer:
    return {"ms": statistics.median(times), "best_ms": min(times), "calls": len(times)}
