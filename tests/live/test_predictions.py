# SPDX-License-Identifier: Apache-2.0
"""Changes of real groups on one broker end as their plans predicted.

`python -m tools prediction` makes 112 changes on three brokers and prints tables.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.broker import missing_tools

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("aiokafka", reason="aiokafka is not installed: pip install -e '.[aiokafka]'")

from tests.prediction import report, run

if TYPE_CHECKING:
    from tests.prediction.result import Result


MINUTES = 12
"""Runs end when enough changes were judged; on a busy machine, that takes longer."""


@pytest.mark.live
def test_real_groups_do_what_was_told() -> None:
    """Every generation follows from the members' subscriptions, and every change ends as planned.

    A change after which the group does not settle proves nothing, so the run goes on.
    """
    missing = missing_tools()
    if missing:
        pytest.skip(missing)
    results = run.run(20, seed=1, brokers=1, minutes=MINUTES, enough=8)
    print(report.show(results))
    assert [report.miss(one) for one in results if one.is_miss] == []
    assert sum(one.told is not None for one in results) >= 8


SWITCHES = ("java", ("switch",), 2), ("librdkafka", ("switch",), 3)
TOPICS = "librdkafka", ("new topic", "deleted topic"), 4


@pytest.fixture(scope="module")
def played() -> dict[Any, list[Result]]:
    """Returns the results of three runs, which mostly wait, and so are made side by side."""
    missing = missing_tools()
    if missing:
        pytest.skip(missing)

    def play(case: tuple[str, tuple[str, ...], int]) -> list[Result]:
        leader, events, seed = case
        return run.run(
            20, seed, leaders=[leader], brokers=1, minutes=MINUTES, events=events, enough=3
        )

    cases = (*SWITCHES, TOPICS)
    with ThreadPoolExecutor(len(cases)) as pool:
        return dict(zip(cases, pool.map(play, cases), strict=True))


@pytest.mark.live
@pytest.mark.parametrize("case", [*SWITCHES, TOPICS])
def test_switches_and_new_topics_end_as_told(
    played: dict[Any, list[Result]], case: tuple[str, tuple[str, ...], int]
) -> None:
    """A switch ends as in the plan or a sample; a new topic's partitions end where some member
    order puts them.
    """
    results = played[case]
    print(report.show(results))
    assert [report.miss(one) for one in results if one.is_miss] == []
    assert sum(one.told is not None for one in results) >= 3
