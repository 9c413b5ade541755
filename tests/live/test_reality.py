# SPDX-License-Identifier: Apache-2.0
"""The simulator and real consumers on a real broker play one scenario with equal results.

`python -m tests.reality` prints the comparison.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.reality import report, run, simulated
from tests.reality.compare import compare
from tests.reality.scenario import ASSIGNORS, BOUNCE_MS, KILL_MS, scenario
from tests.support.broker import missing_tools


@pytest.mark.live
def test_the_simulator_does_what_real_consumers_do() -> None:
    pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
    missing = missing_tools()
    if missing:
        pytest.skip(missing)
    found = run.comparisons(ASSIGNORS)
    for one in found:
        print(report.summary(one))
    assert not [report.show(one) for one in found if not one.agrees]


def test_a_difference_is_found() -> None:
    """The comparison finds a session timeout that is 3 s late, and a missing partition."""
    ours = simulated.play(scenario("range"))
    assert compare("range", ours, ours).agrees
    late = tuple(
        replace(one, at_ms=one.at_ms + 3_000, joined_ms=one.joined_ms and one.joined_ms + 3_000)
        if KILL_MS < one.at_ms < BOUNCE_MS[0]
        else one
        for one in ours.events
    )
    found = compare("range", replace(ours, events=late), ours)
    assert [one.what for one in found.durations if not one.agrees] == ["kill to first JoinGroup"]
    *others, last = ours.events
    less = replace(last, partitions=last.partitions[1:])
    found = compare("range", replace(ours, events=(*others, less)), ours)
    assert [one.agrees for one in found.phases] == [True, True, True, True, False]
    assert report.summary(found).startswith("range: 1 of 5 assignments DIFFER; ")


def test_another_assignor_is_a_difference() -> None:
    one, other = (simulated.play(scenario(assignor)) for assignor in ASSIGNORS)
    assert not compare("range", one, other).agrees
