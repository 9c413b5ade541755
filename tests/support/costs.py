# SPDX-License-Identifier: Apache-2.0
"""`pytest -p tests.support.costs …` prints the seconds of each file: waited, and of CPU time.

    python -m pytest -p tests.support.costs -q --dist loadgroup -n 4 --whole

CPU time is that of the tests' process and of all processes below it, ended or not. If the sum is
near to the cores' seconds, the CPU bounds a run; else the longest worker does, whose seconds are
printed, too. Only Linux shows the CPU time of running children.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

TICKS = os.sysconf("SC_CLK_TCK")
WAITED, CPU, WORKER = "waited_s", "cpu_s", "worker"
_waited: Counter[str] = Counter()
_cpu: Counter[str] = Counter()
_workers: Counter[str] = Counter()
_at_start: dict[str, float] = {}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    _at_start.update(waited=time.monotonic(), cpu=_cpu_s())
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
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
    measured = {name: value for name, value in report.user_properties if name in (WAITED, CPU)}
    path = report.nodeid.partition("::")[0]
    _waited[path] += measured.get(WAITED, 0)
    _cpu[path] += measured.get(CPU, 0)
    _workers[dict(report.user_properties).get(WORKER, "main")] += measured.get(WAITED, 0)


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
