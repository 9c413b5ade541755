# SPDX-License-Identifier: Apache-2.0
"""Simulated Connect clusters: worked scenarios, and laws that hold in every random scenario."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.member.config import WorkerConfig
from kafka_rebalance.simulator import (
    Costs,
    Happening,
    Kind,
    MemberPlan,
    Network,
    Run,
    Scenario,
    simulate,
)
from kafka_rebalance.simulator.scenario_files import load
from tests.test_simulator_laws import check_generations

if TYPE_CHECKING:
    from tests.support.seeds import Seeds

UNTIL_MS = 2_000_000
NO_DELAY = CoordinatorConfig(group_initial_rebalance_delay_ms=0)


def _scenario(
    *happenings: Happening,
    connectors: dict[str, int],
    workers: int = 3,
    until_ms: int = 900_000,
    config: WorkerConfig | None = None,
) -> Scenario:
    config = config or WorkerConfig()
    return Scenario(
        title="test",
        connectors=connectors,
        members=tuple(MemberPlan(name=f"w{n}", config=config) for n in range(workers)),
        happenings=happenings,
        until_ms=until_ms,
        broker=NO_DELAY,
    )


def _held_at_the_end(run: Run) -> dict[str, list[str]]:
    """Returns worker -> its connectors and tasks at the end of the run."""
    held: dict[str, list[str]] = {}
    for hold in run.holds:
        if hold.to_ms == run.until_ms:
            held.setdefault(hold.member, []).append(hold.partition)
    return {member: sorted(names) for member, names in sorted(held.items())}


def _all_held(run: Run) -> list[str]:
    return sorted(name for held in _held_at_the_end(run).values() for name in held)


def _names(connectors: dict[str, int]) -> list[str]:
    """Returns the names of connectors and tasks in a run."""
    tasks = [f"{name}-{n}" for name, count in connectors.items() for n in range(count)]
    return sorted([*connectors, *tasks])


def test_a_worker_that_is_killed_gets_its_work_back_within_the_delay() -> None:
    connectors = {"files": 5, "orders": 6}
    kill = Happening(at_ms=100_000, kind=Kind.KILL, member="w1")
    back = Happening(at_ms=130_000, kind=Kind.START, member="w1")
    run = simulate(_scenario(kill, back, connectors=connectors))
    before = {one.partition for one in run.holds if one.member == "w1" and one.to_ms == 100_000}
    after = [one for one in run.holds if one.from_ms >= 100_000]
    assert {one.partition for one in after} == before  # nothing else moves
    assert {one.member for one in after} == {"w1"}
    # The work waits for five minutes after the rebalance that the end of w1's session causes.
    (missed,) = [one for one in run.rebalances if one.causes == ["w1's session ended"]]
    assert missed.to_ms is not None
    assert all(300_000 <= one.from_ms - missed.to_ms < 300_100 for one in after)


def test_work_that_is_lost_for_longer_than_the_delay_goes_to_the_others() -> None:
    connectors = {"files": 5, "orders": 6}
    kill = Happening(at_ms=100_000, kind=Kind.KILL, member="w1")
    run = simulate(_scenario(kill, connectors=connectors))
    held = _held_at_the_end(run)
    assert list(held) == ["w0", "w2"]
    assert _all_held(run) == _names(connectors)
    assert all(hold.from_ms < 100_000 or hold.from_ms > 400_000 for hold in run.holds)


def test_without_a_delay_lost_work_goes_to_other_workers_at_once() -> None:
    config = WorkerConfig(scheduled_rebalance_max_delay_ms=0)
    stop = Happening(at_ms=100_000, kind=Kind.STOP, member="w1")
    run = simulate(_scenario(stop, connectors={"files": 5}, config=config))
    assert any(gap.from_ms >= 100_000 for gap in run.gaps)
    # The other workers learn of the rebalance at their next heartbeats.
    assert all(gap.to_ms < 103_100 for gap in run.gaps if gap.from_ms >= 100_000)


def test_a_coordinator_that_is_away_stops_everything_after_a_heartbeats_interval() -> None:
    """If the coordinator is away for less than a heartbeat's interval, nothing stops."""
    connectors = {"files": 5, "orders": 6}
    long, short = (
        simulate(
            _scenario(
                Happening(at_ms=100_000, kind=Kind.MOVE, for_ms=for_ms), connectors=connectors
            )
        )
        for for_ms in (20_000, 1_000)
    )
    stopped = {one.partition for one in long.holds if 103_000 <= one.to_ms <= 106_200}
    assert sorted(stopped) == _names(connectors)
    assert _all_held(long) == _names(connectors)
    assert all(one.to_ms == short.until_ms for one in short.holds)


def test_a_frozen_worker_reads_what_it_has_missed() -> None:
    freeze = Happening(at_ms=59_000, kind=Kind.FREEZE, member="w1", for_ms=5_000)
    create = Happening(at_ms=60_000, kind=Kind.CREATE, connectors=("late",))
    connectors = {"files": 2, "late": 3}
    run = simulate(_scenario(freeze, create, connectors=connectors))
    assert _all_held(run) == _names(connectors)


def _bounce(eager: bool) -> tuple[Happening, ...]:
    """Returns events: every worker stops in turn, and comes back with the other protocol."""
    config = WorkerConfig(
        connect_protocol="eager" if eager else "sessioned", scheduled_rebalance_max_delay_ms=10_000
    )
    return tuple(
        one
        for n in range(3)
        for one in (
            Happening(at_ms=100_000 + n * 60_000, kind=Kind.STOP, member=f"w{n}"),
            Happening(at_ms=105_000 + n * 60_000, kind=Kind.START, member=f"w{n}", config=config),
        )
    )


def test_an_upgrade_in_one_bounce() -> None:
    """One restart of each worker is enough: the restarted workers offer the eager protocol, too."""
    connectors = {"files": 5, "orders": 6}
    config = WorkerConfig(connect_protocol="eager", scheduled_rebalance_max_delay_ms=10_000)
    run = simulate(_scenario(*_bounce(eager=False), connectors=connectors, config=config))
    check_generations(run, 0)
    assert _all_held(run) == _names(connectors)


def test_a_downgrade_leaves_work_running_twice_until_its_worker_is_restarted() -> None:
    connectors = {"files": 5, "orders": 6}
    config = WorkerConfig(scheduled_rebalance_max_delay_ms=10_000)
    run = simulate(_scenario(*_bounce(eager=True), connectors=connectors, config=config))
    twice = [
        (one, other)
        for one in run.holds
        for other in run.holds
        if one.partition == other.partition
        and one.generation_id < other.generation_id
        and one.to_ms > other.from_ms
    ]
    assert twice
    restarted = {f"w{n}": 100_000 + n * 60_000 for n in range(3)}
    assert all(one.to_ms <= restarted[one.member] for one, _ in twice)
    assert _all_held(run) == _names(connectors)


def test_after_the_coordinator_has_moved_no_older_worker_can_join() -> None:
    """The log contains only the protocol in use: members' other protocols are unknown after a move.

    Until all members have joined again, a worker without this protocol cannot join.
    """
    older = WorkerConfig(connect_protocol="compatible")
    move = Happening(at_ms=99_000, kind=Kind.MOVE, for_ms=10)
    scenario = _scenario(connectors={"files": 5})
    late = MemberPlan(name="late", config=older, start_ms=105_000)
    scenario = replace(scenario, members=(*scenario.members, late))
    assert simulate(scenario).crashed == {}
    run = simulate(replace(scenario, happenings=(move,)))
    assert run.crashed.keys() == {"late"}
    assert run.crashed["late"].startswith("INCONSISTENT_GROUP_PROTOCOL")


def test_work_that_was_deleted_while_its_worker_was_away_runs_until_the_next_rebalance() -> None:
    """The returning worker reports the deleted work; the leader revokes it one rebalance later."""
    freeze = Happening(at_ms=60_000, kind=Kind.FREEZE, member="w1", for_ms=30_000)
    delete = Happening(at_ms=80_000, kind=Kind.DELETE, connectors=("files",))
    stop = Happening(at_ms=700_000, kind=Kind.STOP, member="w2")
    run = simulate(_scenario(freeze, delete, stop, connectors={"files": 5}))
    left = [one for one in run.holds if one.to_ms > 90_000]
    assert left
    assert all(one.member == "w1" and 700_000 < one.to_ms < 703_100 for one in left)
    assert _all_held(run) == []


# 90 connectors ------------------------------------------------------------------------------------

CREATED_MS, DELETED_MS = 60_000, 3_600_000


def _settled_ms(run: Run, from_ms: int, to_ms: int) -> int:
    """Returns the time from `from_ms` until work started or stopped for the last time."""
    starts = [one.from_ms for one in run.holds if from_ms <= one.from_ms < to_ms]
    stops = [one.to_ms for one in run.holds if from_ms <= one.to_ms < to_ms]
    return max(starts + stops) - from_ms


def _rounds(run: Run, from_ms: int, to_ms: int) -> int:
    return sum(one.rounds for one in run.rebalances if from_ms <= one.from_ms < to_ms)


def _idle_hours(run: Run, to_ms: int) -> float:
    """Returns the sum of hours in which existing connectors and tasks ran on no worker."""
    return sum(gap.to_ms - gap.from_ms for gap in run.gaps if gap.to_ms <= to_ms) / 3_600_000


def test_ninety_connectors() -> None:
    """Eager stops all work in every rebalance, so with more work its rebalances take longer."""
    scenario = load("connect-90-connectors")
    eager, incremental = (simulate(scenario.with_protocol(one)) for one in (True, False))
    for run in (eager, incremental):
        there = [one.partition for one in run.holds if one.from_ms < DELETED_MS <= one.to_ms]
        assert len(set(there)) == len(there) == 90 + 900
        assert _held_at_the_end(run) == {}
        # There is at most one rebalance for each connector and one for its tasks; many coincide.
        assert 60 <= _rounds(run, CREATED_MS, DELETED_MS) <= 2 * 90
    # Eager needs about ten minutes to settle, incremental less than one.
    assert 400_000 < _settled_ms(eager, CREATED_MS, DELETED_MS) < 900_000
    assert _settled_ms(incremental, CREATED_MS, DELETED_MS) < 60_000
    assert 200_000 < _settled_ms(eager, DELETED_MS, eager.until_ms) < 900_000
    assert _settled_ms(incremental, DELETED_MS, incremental.until_ms) < 60_000
    # Incremental stops almost no work before its deletion; eager stops all work many times.
    assert sum(one.to_ms < DELETED_MS for one in incremental.holds) < 300
    assert sum(one.to_ms < DELETED_MS for one in eager.holds) > 30 * (90 + 900)
    assert _idle_hours(eager, DELETED_MS) > 50
    assert _idle_hours(incremental, DELETED_MS) < 0.3
    # An eager rebalance takes longer when more work runs, so the last third takes the longest.
    first, _, last = _thirds(eager)
    assert last > 3 * first
    first, _, last = _thirds(incremental)
    assert last < 2 * first


def _thirds(run: Run) -> tuple[int, int, int]:
    """Returns how long the first, second and last third of the rebalances took.

    Only rebalances before connectors are deleted count.
    """
    starts = [one.from_ms for one in run.rebalances if CREATED_MS <= one.from_ms < DELETED_MS]
    third = len(starts) // 3
    a, b = starts[third], starts[2 * third]
    return a - starts[0], b - a, starts[-1] - b


# Laws ---------------------------------------------------------------------------------------------


def _drawn(seed: int, protocol: str | None = None) -> Scenario:
    """Makes a random scenario with events in the first two minutes only."""
    rng = random.Random(seed)
    protocols = rng.choice(
        (("eager",), ("compatible",), ("sessioned",), ("compatible", "sessioned"))
    )
    config = WorkerConfig(
        session_timeout_ms=rng.choice((6_000, 10_000)),
        heartbeat_interval_ms=rng.choice((1_000, 3_000)),
        rebalance_timeout_ms=rng.choice((30_000, 60_000)),
        scheduled_rebalance_max_delay_ms=rng.choice((0, 5_000, 60_000, 300_000)),
    )
    work = Costs(
        start_cost_ms=rng.choice((0, 20, 300)),
        stop_cost_ms=rng.choice((0, 20, 100)),
        parallel=rng.choice((1, 8)),
        cold_ms=rng.choice((0, 0, 200)),
    )
    members = tuple(
        MemberPlan(
            name=f"w{n}",
            config=replace(config, connect_protocol=protocol or rng.choice(protocols)),
            start_ms=rng.choice((0, rng.randrange(60_000))),
            work=work,
        )
        for n in range(rng.randint(1, 5))
    )
    # No event stops or freezes the worker `keeper`, so at least one worker runs at the end.
    keeper = replace(members[0], name="keeper", start_ms=0)
    connectors = {f"c{n}": rng.randint(0, 5) for n in range(rng.randint(1, 6))}
    # If workers have two protocols, the coordinator does not move, because workers of the older one
    # could not join after a move (see the test above).
    of_topics = (Kind.GROW, Kind.CREATE_TOPIC, Kind.DELETE_TOPIC, Kind.AWAY)
    kinds = [one for one in Kind if one not in (*of_topics, *(Kind.MOVE for _ in protocols[1:]))]
    happenings = [
        _happening(rng, kinds, [one.name for one in members], list(connectors))
        for _ in range(rng.randint(0, 8))
    ]
    return Scenario(
        title=str(seed),
        connectors=connectors,
        members=(keeper, *members),
        happenings=tuple(happenings),
        seed=seed,
        until_ms=UNTIL_MS,
        broker=CoordinatorConfig(group_initial_rebalance_delay_ms=rng.choice((0, 3_000))),
        network=Network(delay_ms=rng.choice((1, 20)), spread_ms=rng.choice((0, 30))),
    )


def _happening(
    rng: random.Random, kinds: list[Kind], workers: list[str], connectors: list[str]
) -> Happening:
    at = rng.randrange(120_000)
    kind = rng.choice(kinds)
    if kind is Kind.MOVE:
        return Happening(at_ms=at, kind=kind, for_ms=rng.choice((10, 2_000, 9_000)))
    if kind in (Kind.CREATE, Kind.DELETE):
        # With one connector in a request, the last request decides whether it exists.
        return Happening(at_ms=at, kind=kind, connectors=(rng.choice(connectors),))
    name, for_ms = rng.choice(workers), rng.choice((1_000, 12_000, 30_000))
    return Happening(at_ms=at, kind=kind, member=name, for_ms=for_ms)


def _configured_at_the_end(scenario: Scenario) -> list[str]:
    """Returns the sorted names of the work that exists after all creations and deletions."""
    changes = [one for one in scenario.happenings if one.kind in (Kind.CREATE, Kind.DELETE)]
    later = {name for one in changes if one.kind is Kind.CREATE for name in one.connectors}
    there = {name for name in scenario.connectors if name not in later}
    for one in sorted(changes, key=lambda one: one.at_ms):
        if one.kind is Kind.CREATE:
            there.update(one.connectors)
        else:
            there.difference_update(one.connectors)
    return _names({name: tasks for name, tasks in scenario.connectors.items() if name in there})


@pytest.mark.seeds(quick=80, whole=500)
def test_laws(seeds: Seeds) -> None:
    for seed in seeds:
        scenario = _drawn(seed)
        run = simulate(scenario)
        assert run.crashed == {}, seed
        check_generations(run, seed)
        _check_the_end(run, scenario, seed)


def test_a_connector_that_is_created_again_at_once_gets_its_tasks_again() -> None:
    """Its worker reads deletion and creation together, restarts it, and it configures its tasks."""
    seed = 731556560
    scenario = _drawn(seed)
    run = simulate(scenario)
    assert [one.member for one in run.holds if one.partition == "c2"] == ["w1", "w1"]
    assert not _created_again_unnoticed(run, scenario)
    _check_the_end(run, scenario, seed)


def _created_again_unnoticed(run: Run, scenario: Scenario) -> list[str]:
    """Returns the connectors that ran on while they were deleted and created again.

    Their workers applied the deletion, and read the creation before the leader revoked anything.
    In Kafka, too, such a connector is not restarted, so that nobody configures its tasks
    (DistributedHerder.ConfigUpdateListener, Connect 4.3.1).
    """
    deleted_ms = {
        name: one.at_ms
        for one in sorted(scenario.happenings, key=lambda one: one.at_ms)
        if one.kind is Kind.DELETE
        for name in one.connectors
    }
    there = _configured_at_the_end(scenario)
    return [
        hold.partition
        for hold in run.holds
        if hold.to_ms == run.until_ms
        and hold.from_ms < deleted_ms.get(hold.partition, 0)
        and hold.partition in there
    ]


def test_a_connector_that_is_created_again_unnoticed_keeps_running_without_tasks() -> None:
    """Its worker has applied the deletion before the leader has read it and creates it again."""
    delete = Happening(at_ms=100_000, kind=Kind.DELETE, connectors=("files",))
    create = Happening(at_ms=100_005, kind=Kind.CREATE, connectors=("files",))
    first = Happening(at_ms=10_000, kind=Kind.CREATE, connectors=("files",))
    scenario = _scenario(first, delete, create, connectors={"files": 2})
    scenario = replace(scenario, network=Network(delay_ms=1, spread_ms=30), seed=0)
    run = simulate(scenario)
    assert _created_again_unnoticed(run, scenario) == ["files"]
    assert _all_held(run) == ["files"]


def _check_the_end(run: Run, scenario: Scenario, seed: int) -> None:
    """At the end, the cluster has settled, and each configured connector and task runs once."""
    assert all(one.to_ms is not None for one in run.rebalances), seed
    last = max(one.to_ms or 0 for one in run.rebalances)
    assert last < UNTIL_MS - 300_000, (seed, last)
    left = [
        f"{name}-{n}"
        for name in _created_again_unnoticed(run, scenario)
        for n in range(scenario.connectors[name])
    ]
    configured = [one for one in _configured_at_the_end(scenario) if one not in left]
    frozen = {one.member for one in scenario.happenings if one.kind is Kind.FREEZE}
    running = [
        hold.partition
        for hold in run.holds
        if hold.to_ms == run.until_ms
        # Deleted work may still run if its worker was away then (see the test above).
        and (hold.partition in configured or hold.member not in frozen)
    ]
    assert sorted(running) == configured, seed


@pytest.mark.parametrize("protocol", ["eager", "compatible", "sessioned"])
def test_the_same_seed_gives_the_same_run(protocol: str) -> None:
    for seed in range(20):
        scenario = _drawn(seed, protocol)
        assert simulate(scenario) == simulate(scenario), seed
