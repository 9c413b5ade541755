# SPDX-License-Identifier: Apache-2.0
"""Measures the simulator: events a second, and simulated hours a second for 10,000 groups.

`pytest -q -s benches/test_simulator.py` takes half an hour; with BENCH_GROUPS=500 it takes a
minute. Only the assignors are Rust. Compare figures of one run only. Events are counted in one
group of 1,000 members; each of the 10,000 groups has 50. A group is simulated for one hour: it
starts, one member restarts, one is killed and returns, and partitions are added. Groups do not
affect each other, so each group is a separate simulation with its own seed.
"""

import dataclasses
import os
import time
from typing import Any

import pytest

from kafka_rebalance.member.config import ConsumerConfig
from kafka_rebalance.simulator import Happening, Kind, MemberPlan, Scenario, TopicPlan, simulate

HOUR_MS = 3_600_000
GROUPS = int(os.environ.get("BENCH_GROUPS", "10000"))


def _scenario(members: int, assignor: str, until_ms: int) -> Scenario:
    config = ConsumerConfig(partition_assignment_strategy=(assignor,))
    plans = tuple(
        MemberPlan(name=f"c{n}", config=config, topics=("t",), start_ms=n * 2_000 // members)
        for n in range(members)
    )
    happenings = (
        Happening(at_ms=600_000, kind=Kind.STOP, member="c0"),
        Happening(at_ms=610_000, kind=Kind.START, member="c0"),
        Happening(at_ms=1_200_000, kind=Kind.KILL, member="c1"),
        Happening(at_ms=1_260_000, kind=Kind.START, member="c1"),
        Happening(at_ms=1_800_000, kind=Kind.GROW, topic="t", partitions=4 * members),
    )
    return Scenario(
        title="bench",
        topics={"t": TopicPlan(partitions=2 * members)},
        members=plans,
        happenings=happenings,
        until_ms=until_ms,
    )


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_events_a_second(benchmark: Any, assignor: str) -> None:
    scenario = _scenario(1_000, assignor, HOUR_MS)
    run = benchmark.pedantic(simulate, args=(scenario,), rounds=3, iterations=1)
    rate = run.events / benchmark.stats["median"]
    print(f"\n1,000 members, {assignor}: {run.events:,} events, {rate:,.0f} a second")
    assert run.rebalances[-1].to_ms is not None


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_hours_of_groups_a_second(assignor: str) -> None:
    scenario = _scenario(50, assignor, HOUR_MS)
    events = 0
    start = time.perf_counter()
    for seed in range(GROUPS):
        run = simulate(dataclasses.replace(scenario, seed=seed))
        events += run.events
        assert run.rebalances[-1].to_ms is not None
    took = time.perf_counter() - start
    print(
        f"\n{GROUPS:,} groups of 50, {assignor}, an hour each: {took:,.0f} s, "
        f"{GROUPS / took:,.1f} group-hours a second, {events / took:,.0f} events a second"
    )
