# SPDX-License-Identifier: Apache-2.0
"""Tests that share a broker or a session run in one process, also with many workers."""

from __future__ import annotations

from collections import defaultdict
from typing import Any
from unittest.mock import Mock

from tests.support import scheduler

LIVE = [f"tests/live/test_{file}.py::test_{n}" for file in "abcd" for n in range(3)]
SPARK = [f"tests/spark/test_{file}.py::test_{n}" for file in "abc" for n in range(2)]
FLEET = [f"tests/spark/test_fleet.py::test_x[{n}]" for n in range(4)]
OTHERS = [f"tests/test_x.py::test_y[{n}]" for n in range(9)]


def run(tests: list[str], workers: int) -> dict[int, list[str]]:
    """Returns the tests of each worker in their order; each worker runs one test in its turn."""
    config: Any = Mock()
    config.getvalue.return_value = ["popen"] * workers
    nodes = [Mock(shutting_down=False) for _ in range(workers)]
    sent: dict[int, list[int]] = defaultdict(list)
    schedule: Any = scheduler.Scheduler(config, Mock())
    for n, node in enumerate(nodes):
        node.send_runtest_some.side_effect = sent[n].extend
        schedule.add_node(node)
        schedule.add_node_collection(node, tests)
    schedule.schedule()
    done = dict.fromkeys(range(workers), 0)
    while any(done[n] < len(sent[n]) for n in done):
        for n, node in enumerate(nodes):
            if done[n] < len(sent[n]):
                schedule.mark_test_complete(node, sent[n][done[n]])
                done[n] += 1
    return {n: [tests[index] for index in found] for n, found in sent.items()}


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
