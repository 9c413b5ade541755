# SPDX-License-Identifier: Apache-2.0
"""Which tests pytest-xdist runs in one process, in which order, and on which worker.

The tests of one file of tests/live share a broker, Spark's tests a session, and both start slowly:
such tests are one unit, which one worker runs. Every other test is a unit of its own.

Live tests mostly wait. So LIVE_WORKERS workers take them while the others compute; a worker without
units of its sort takes one of the other sort. Long units start first: a long one that starts last
runs alone.

xdist's `--dist loadgroup` cannot do this: it renames tests, and pytest 9.2 ignores the new names.
Then each test is a unit, and each worker starts the brokers and sessions of all files.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from xdist.scheduler import LoadScopeScheduling

from tests.support import tiers

if TYPE_CHECKING:
    import pytest
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

LIVE_WORKERS = 2
LONGEST = (
    "tests/live/test_predictions.py",
    "tests/live/test_modern_live.py",
    "tests/live/test_scale_live.py",
    "tests/live/test_connect_workers.py",
    "tests/spark/test_fleet.py",
    "spark",
    "tests/spark/test_probe.py",
    "tests/spark/test_kills.py",
    "tests/spark/test_drivers_python.py",
)
"""Units of more than a minute. Only the duration of a run depends on this list."""

OWN_SPARK = ("test_drivers_python.py", "test_fleet.py", "test_kills.py", "test_probe.py")
"""The files of tests/spark most of whose tests run programs with sessions of their own."""


def unit(test: str) -> str:
    """Returns the name of a test's unit: its file, "spark", or the test itself."""
    file = test.partition("::")[0]
    path = PurePath(file)
    if path.parent.name == "spark" and path.name not in OWN_SPARK:
        return "spark"
    return file if path.parent.name in ("live", "spark") else test


def urgency(item: pytest.Item) -> tuple[bool, int, bool]:
    """Returns the key that sorts tests: live ones first, then long ones, then slow ones."""
    name = unit(item.nodeid)
    place = LONGEST.index(name) if name in LONGEST else len(LONGEST)
    return not _is_live(name), place, tiers.is_quick(item)


class Scheduler(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Hands out units in the order of the sorted tests; only some workers begin with live ones."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        first = next(iter(self.workqueue))
        if self.nodes.index(node) >= LIVE_WORKERS:
            first = next((one for one in self.workqueue if not _is_live(one)), first)
        self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        """Gives a worker units until it has two tests, or ends it if there are no more units.

        A worker runs a test when it knows the next one, or that there is none.
        """
        super()._reschedule(node)
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)

    def remove_node(self, node: WorkerController) -> str | None:
        """Gives the tests of a worker that died to others; returns the one that it ran.

        xdist's own method would run that test again, and hand out units without a test.
        """
        left = [one for one in self.assigned_work.pop(node).values() if not all(one.values())]
        if not left:
            return None
        crashed: str = next(test for test, is_done in left[0].items() if not is_done)
        left[0][crashed] = True
        self.workqueue |= {unit(next(iter(one))): one for one in left if not all(one.values())}
        for other in self.nodes:
            self._reschedule(other)
        return crashed


def _is_live(unit: str) -> bool:
    return unit.startswith("tests/live/")
