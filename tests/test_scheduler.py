# SPDX-License-Identifier: Apache-2.0
"""Tests that share a broker or a session run in one process, also with many workers."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from tests.support import scheduler

LIVE = [f"tests/live/test_{file}.py::test_{n}" for file in "abcd" for n in range(3)]
SPARK = [f"tests/spark/test_{file}.py::test_{n}" for file in "abc" for n in range(2)]
FLEET = [f"tests/spark/test_fleet.py::test_x[{n}]" for n in range(4)]
OTHERS = [f"tests/test_x.py::test_y[{n}]" for n in range(9)]


class Worker:
    """Runs a test when it knows the next one, or that there is none."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.done = 0
        self.shutting_down = False
        self.gateway = Mock()

    def send_runtest_some(self, indices: list[int]) -> None:
        self.sent += indices

    def shutdown(self) -> None:
        self.shutting_down = True

    def is_ready(self) -> bool:
        return self.done + (not self.shutting_down) < len(self.sent)


def run(tests: list[str], count: int, crash: str = "") -> dict[int, list[str]]:
    """Returns the tests of each worker in their order; each worker runs one test in its turn.

    The test `crash` ends its worker; another worker takes its place.
    """
    config: Any = Mock()
    config.getvalue.return_value = ["popen"] * count
    schedule: Any = scheduler.Scheduler(config, Mock())
    workers = [Worker() for _ in range(count)]
    living = list(workers)
    for one in workers:
        schedule.add_node(one)
        schedule.add_node_collection(one, tests)
    schedule.schedule()
    while ready := [one for one in living if one.is_ready()]:
        for one in ready:
            index = one.sent[one.done]
            one.done += 1
            if tests[index] != crash:
                schedule.mark_test_complete(one, index)
                continue
            assert schedule.remove_node(one) == crash
            living[living.index(one)] = new = Worker()
            workers.append(new)
            schedule.add_node(new)
            schedule.add_node_collection(new, tests)
            schedule.schedule()
        if schedule.tests_finished:
            for one in living:
                one.shutdown()
    return {n: [tests[index] for index in one.sent[: one.done]] for n, one in enumerate(workers)}


def test_each_test_runs_once_and_units_stay_together() -> None:
    tests = [*LIVE, *FLEET, *SPARK, *OTHERS]
    ran = run(tests, 4)
    assert sorted(test for found in ran.values() for test in found) == sorted(tests)
    workers = {test: n for n, found in ran.items() for test in found}
    for together in (FLEET, SPARK, *(LIVE[n : n + 3] for n in range(0, len(LIVE), 3))):
        assert len({workers[test] for test in together}) == 1


def test_two_workers_take_the_live_tests_while_others_compute() -> None:
    ran = run([*LIVE, *FLEET, *SPARK, *OTHERS], 4)
    assert [test for n in (0, 1) for test in ran[n] if test in LIVE] == [
        test for n in (0, 1) for test in ran[n][:6]
    ]
    assert not {*ran[2], *ran[3]} & {*LIVE}


def test_a_worker_without_units_of_its_sort_takes_others() -> None:
    assert len(run(LIVE, 4)[3]) == 3
    assert all(run(OTHERS, 4).values())
    assert sum(map(len, run([*LIVE, *OTHERS], 1).values())) == len(LIVE) + len(OTHERS)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("tests", [[*LIVE, *FLEET, *SPARK, *OTHERS], OTHERS, LIVE[:3], OTHERS[:1]])
def test_a_worker_that_dies_loses_only_the_test_that_it_ran(tests: list[str], count: int) -> None:
    for crash in tests:
        ran = run(tests, count, crash)
        assert sorted(test for found in ran.values() for test in found) == sorted(tests)
