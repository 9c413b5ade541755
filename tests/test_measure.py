# SPDX-License-Identifier: Apache-2.0
"""Totals of simulated runs equal those of a second, independent count; time axes are in order."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from kafka_rebalance.report.runs.timeline import TimeAxis
from kafka_rebalance.simulator import Kind, Run, simulate, stops, totals
from kafka_rebalance.simulator.measure import chapters, stops_of, unavailability, unheld
from kafka_rebalance.simulator.scenario_files import read
from tests.test_simulator_laws import drawn

if TYPE_CHECKING:
    from tests.support.seeds import Seeds


def _spans(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns the union of the intervals."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(pairs):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def _length(pairs: list[tuple[int, int]]) -> int:
    return sum(end - start for start, end in _spans(pairs))


@pytest.mark.seeds(quick=60, whole=200)
def test_sums_of_random_runs(seeds: Seeds) -> None:
    for seed in seeds:
        scenario = drawn(seed)
        run = simulate(scenario)
        _check(run, seed)
        # A partition exists from 0 on, or from the creation or growth of its topic.
        since = dict.fromkeys(scenario.topics, 0)
        until = dict.fromkeys(scenario.topics, run.until_ms)
        there = 0
        for one in scenario.happenings:
            if one.kind is Kind.CREATE_TOPIC:
                since[one.topic] = one.at_ms
            elif one.kind is Kind.DELETE_TOPIC:
                until[one.topic] = one.at_ms
            elif one.kind is Kind.GROW:
                more = one.partitions - scenario.topics[one.topic].partitions
                there += more * (run.until_ms - one.at_ms)
        for name, topic in scenario.topics.items():
            there += topic.partitions * (until[name] - since[name])
        worked: dict[str, list[tuple[int, int]]] = {}
        for hold in run.holds:
            if not hold.is_stuck:
                to_ms = min(hold.to_ms, until[hold.partition.rpartition("-")[0]])
                worked.setdefault(hold.partition, []).append((min(hold.from_ms, to_ms), to_ms))
        unread = there - sum(map(_length, worked.values()))
        assert unread == sum(gap.to_ms - gap.from_ms for gap in run.gaps), seed


def _check(run: Run, seed: int) -> None:
    assert all(0 <= one.from_ms < one.to_ms <= run.until_ms for one in run.holds), seed
    # Chapters follow each other without gaps or overlaps.
    parts = chapters(run)
    assert all(a.to_ms == b.from_ms for a, b in itertools.pairwise(parts)), seed
    unread = unavailability(run)
    in_parts = sum(unread(one.from_ms, one.to_ms) for one in parts)
    assert in_parts == unread(parts[0].from_ms, run.until_ms), seed
    assert unread(0, run.until_ms) == sum(gap.to_ms - gap.from_ms for gap in run.gaps), seed
    # Each stop belongs to one rebalance, and no absent member counts as stopped.
    assert sum(map(len, stops_of(run).values())) == len(stops(run)), seed
    for one in stops(run):
        away = [gone for gone in run.absences if gone.member == one.member]
        assert not any(gone.from_ms < one.to_ms and gone.to_ms > one.from_ms for gone in away), seed
    # No partition has a holder during a gap of `unheld`; a stuck member is a holder.
    bare: dict[str, list[tuple[int, int]]] = {}
    for gap in unheld(run):
        bare.setdefault(gap.partition, []).append((gap.from_ms, gap.to_ms))
    for hold in run.holds:
        for start, end in bare.get(hold.partition, ()):
            assert hold.to_ms <= start or end <= hold.from_ms, seed
    sums = totals(run)
    assert sums.unavailable_ms == unread(sums.start_up_ms or 0, run.until_ms), seed


GROUP = """
until = "10m"
[topics]
t = 4
[members]
partition_assignment_strategy = ["{assignor}"]
[[member]]
name = "c"
count = {count}
"""


def _run(text: str, assignor: str = "range", count: int = 2) -> Run:
    return simulate(read(GROUP.format(assignor=assignor, count=count) + text))


def test_a_member_that_restarts_is_not_counted_as_stopped_by_a_rebalance() -> None:
    bounce = '[[happening]]\nat = "2m"\ndo = "bounce"\nmembers = "c1"\nfor = "100s"\n'
    run = _run('start_cost = "9s"\n' + bounce)
    assert {one.member for one in stops(run)} == {"c0"}


def test_a_member_that_gets_nothing_is_stopped_until_it_has_its_assignment() -> None:
    run = _run('[[member]]\nname = "a"\nstart = "2m"\n', count=4)
    assert [one.member for one in stops(run)].count("c3") == 0  # c3 never works again
    again = '[[happening]]\nat = "5m"\ndo = "stop"\nmembers = "a"\n'
    run = _run('[[member]]\nname = "a"\nstart = "2m"\n' + again, count=4)
    (spare,) = [one for one in stops(run) if one.member == "c3" and one.from_ms < 200_000]
    assert spare.to_ms - spare.from_ms < 4_000


def test_a_member_that_wakes_up_without_its_partitions_causes_no_moves() -> None:
    freeze = '[[happening]]\nat = "2m"\ndo = "freeze"\nmembers = "c1"\nfor = "60s"\n'
    run = _run(freeze, "cooperative-sticky")
    # Two partitions move to the other member, and two move back.
    assert totals(run).moves == 4


def test_a_topic_without_subscribers_never_counts_as_unread() -> None:
    text = GROUP.format(assignor="range", count=2).replace("t = 4", "t = 4\naudit = 2")
    run = simulate(read(text + 'topics = ["t"]\n'))
    assert totals(run).settled_ms is not None
    assert {gap.partition for gap in run.gaps} == {"t-0", "t-1", "t-2", "t-3"}


@pytest.mark.parametrize("count", [1, 2, 10, 41, 42, 100])
def test_the_axis_keeps_its_bounds_and_its_order(count: int) -> None:
    until = count * 100_000
    axis = TimeAxis.over([(n * 100_000, n * 100_000 + 3_000) for n in range(count)], until)
    assert len(axis.spans) == count
    near = (0, 500, 1_500, 2_999, 3_000, 3_500, 50_000, 99_500)
    instants = [n * 100_000 + after for n in range(count) for after in near]
    places = [round(axis.place(at), 9) for at in [*instants, until]]
    assert places == sorted(places)
    assert places[0] == 0
    assert places[-1] == 1
    assert all(0 <= place <= 1 for place, _ in axis.ticks())


def test_close_ticks_have_different_labels() -> None:
    names = [name for _, name in TimeAxis.over([(61_000, 62_000)], 600_000).ticks()]
    assert len(names) == len(set(names)) > 5
