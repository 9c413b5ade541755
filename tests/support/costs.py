# SPDX-License-Identifier: Apache-2.0
"""`pytest -p tests.support.costs …` prints the seconds of each file: waited, and of CPU time.

    python -m pytest -p tests.support.costs -q -n 4 --whole

CPU time is that of the tests' process and of all processes below it, ended or not. If the sum is
near to the cores' seconds, the CPU bounds a run; else the longest worker does, whose seconds are
printed, too. Only Linux shows the CPU time of running children.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

TICKS = os.sysconf("SC_CLK_TCK")
WAITED, CPU, WORKER = "waited_s", "cpu_s", "worker"
_waited: Counter[str] = Counter()
_cpu: Counter[str] = Counter()
_workers: Counter[str] = Counter()
_at_start: dict[str, float] = {}
_BECOME_PARENT_OF_ORPHANS = 36


def pytest_sessionstart() -> None:
    """Keeps the ended children of ended processes, such as Spark's JVM, and so their CPU time."""
    ctypes.CDLL(None).prctl(_BECOME_PARENT_OF_ORPHANS, 1)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    _at_start.update(waited=time.monotonic(), cpu=_cpu_s())
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds to a report what its phase took; xdist carries properties to the main process."""
    report = yield
    waited, cpu = time.monotonic(), _cpu_s()
    report.user_properties += [
        (WAITED, waited - _at_start["waited"]),
        (CPU, cpu - _at_start["cpu"]),
        (WORKER, os.environ.get("PYTEST_XDIST_WORKER", "main")),
    ]
    _at_start.update(waited=waited, cpu=cpu)
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    measured: dict[str, Any] = dict(report.user_properties)
    path = report.nodeid.partition("::")[0]
    _waited[path] += measured[WAITED]
    _cpu[path] += measured[CPU]
    _workers[measured[WORKER]] += measured[WAITED]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    write = terminalreporter.write_line
    write(f"{'waited s':>9} {'CPU s':>8}  file")
    for path, cpu in _cpu.most_common():
        write(f"{_waited[path]:9.1f} {cpu:8.1f}  {path}")
    write(f"{sum(_waited.values()):9.1f} {sum(_cpu.values()):8.1f}  all files")
    for worker, waited in sorted(_workers.items()):
        write(f"{waited:9.1f} {'':8}  worker {worker}")


def _cpu_s() -> float:
    """Returns the CPU time of this process and of all below it, in seconds."""
    below: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for process, parent, used in _processes():
        below.setdefault(parent, []).append(process)
        ticks[process] = used
    own = os.times()
    total = own.user + own.system + own.children_user + own.children_system
    waiting = list(below.get(os.getpid(), []))
    while waiting:
        process = waiting.pop()
        total += ticks[process] / TICKS
        waiting += below.get(process, [])
    return total


def _processes() -> Iterator[tuple[int, int, int]]:
    """Yields the id, the parent's id and the ticks (with those of ended children) of processes."""
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name, in parentheses, may contain spaces.
            fields = entry.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        yield int(entry.parent.name), int(fields[1]), sum(map(int, fields[11:15]))
