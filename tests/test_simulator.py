"""Simulated runs: worked scenarios, and laws that hold in every drawn one."""

from __future__ import annotations

import random

import pytest

from kafka_rebalance.coordinator import CoordinatorConfig
from kafka_rebalance.errors import GroupError
from kafka_rebalance.member import ConsumerConfig
from kafka_rebalance.simulator import (
    Happening,
    Kind,
    MemberPlan,
    Network,
    Run,
    Scenario,
    TopicPlan,
    Work,
    simulate,
)

PARTS = 20
SCENARIOS = 10_000
NO_DELAY = CoordinatorConfig(group_initial_rebalance_delay_ms=0)


def _scenario(
    starts: tuple[int, ...],
    *happenings: Happening,
    assignors: tuple[str, ...] = ("range",),
    topics: dict[str, int] | None = None,
    until_ms: int = 120_000,
    static: bool = False,
) -> Scenario:
    config = ConsumerConfig(
        partition_assignment_strategy=assignors,
        session_timeout_ms=10_000,
        metadata_max_age_ms=5_000,
    )
    topics = topics or {"t": 6}
    members = tuple(
        MemberPlan(name=f"c{n}", config=config, topics=tuple(topics), start_ms=at)
        for n, at in enumerate(starts)
    )
    scenario = Scenario(
        title="test",
        topics={name: TopicPlan(partitions=count) for name, count in topics.items()},
        members=members,
        happenings=happenings,
        until_ms=until_ms,
        broker=NO_DELAY,
    )
    return scenario.with_static_members() if static else scenario


def _held_at_the_end(run: Run) -> dict[str, set[str]]:
    held: dict[str, set[str]] = {}
    for hold in run.holds:
        if hold.to_ms == run.until_ms:
            held.setdefault(hold.member, set()).add(hold.partition)
    return held


def test_e01_eager_end_to_end() -> None:
    run = simulate(_scenario((0, 10_000), topics={"t1": 3, "t2": 3}))
    assert _held_at_the_end(run) == {
        "c0": {"t1-0", "t1-1", "t2-0", "t2-1"},
        "c1": {"t1-2", "t2-2"},
    }
    assert [one.generation_id for one in run.rebalances] == [1, 2]
    # Everything stops in between: six partitions, six gaps.
    assert sum(gap.from_ms > 5_000 for gap in run.gaps) == 6


def test_e02_cooperative_end_to_end() -> None:
    starts = (0, 5_000, 60_000)
    run = simulate(_scenario(starts, assignors=("cooperative-sticky",), topics={"t": 3}))
    assert {name: len(held) for name, held in _held_at_the_end(run).items()} == {
        "c0": 1,
        "c1": 1,
        "c2": 1,
    }
    late = [hold for hold in run.holds if hold.from_ms > 60_000]
    assert len(late) == 1  # one partition moves, and only it is without a holder
    assert {gap.partition for gap in run.gaps if gap.from_ms > 60_000} == {late[0].partition}
    (last,) = [one for one in run.rebalances if one.from_ms >= 60_000]
    assert (last.causes, last.rounds, last.generation_id) == (["c2 joins"], 2, 5)


def test_a_static_member_that_is_back_in_time_starts_nothing() -> None:
    bounce = (
        Happening(at_ms=50_000, kind=Kind.STOP, member="c1"),
        Happening(at_ms=55_000, kind=Kind.START, member="c1"),
    )
    static = simulate(_scenario((0, 100), *bounce, static=True))
    dynamic = simulate(_scenario((0, 100), *bounce))
    assert [one.from_ms > 40_000 for one in static.rebalances].count(True) == 0
    assert [one.causes for one in dynamic.rebalances if one.from_ms > 40_000] == [
        ["c1 leaves"],
        ["c1 joins"],
    ]
    assert _held_at_the_end(static)["c1"]


def test_a_killed_member_is_missed_when_its_session_ends() -> None:
    kill = Happening(at_ms=50_000, kind=Kind.KILL, member="c1")
    run = simulate(_scenario((0, 100), kill))
    (rebalance,) = [one for one in run.rebalances if one.from_ms > 40_000]
    assert rebalance.causes == ["c1's session ended"]
    # 10 s after its last heartbeat, which was at most 3 s before.
    assert 57_000 <= rebalance.from_ms <= 60_100


def test_a_pause_longer_than_the_poll_interval_loses_everything() -> None:
    config = ConsumerConfig(partition_assignment_strategy=("range",), max_poll_interval_ms=20_000)
    pause = Happening(at_ms=50_000, kind=Kind.PAUSE, member="c1", for_ms=40_000)
    scenario = _scenario((0, 100), pause)
    run = simulate(scenario._with_members(lambda _: config))
    causes = [one.causes for one in run.rebalances if one.from_ms > 40_000]
    assert causes == [["c1 leaves"], ["c1 joins"]]


def test_partitions_that_are_added_are_seen_by_the_leader() -> None:
    grow = Happening(at_ms=50_000, kind=Kind.GROW, topic="t", partitions=9)
    run = simulate(_scenario((0, 100), grow))
    held = _held_at_the_end(run)
    assert sum(map(len, held.values())) == 9
    (rebalance,) = [one for one in run.rebalances if one.from_ms > 40_000]
    assert rebalance.from_ms <= 55_100  # its metadata is 5 s old at most


def test_a_coordinator_that_moves_disturbs_nobody_who_reads() -> None:
    move = Happening(at_ms=50_000, kind=Kind.MOVE, for_ms=2_000)
    run = simulate(_scenario((0, 100), move))
    assert [gap for gap in run.gaps if gap.from_ms > 40_000] == []


@pytest.mark.parametrize("assignors", [("range",), ("cooperative-sticky",)])
def test_the_same_seed_gives_the_same_run(assignors: tuple[str, ...]) -> None:
    scenario = drawn(7, assignors)
    assert simulate(scenario) == simulate(scenario)


def drawn(seed: int, assignors: tuple[str, ...] | None = None) -> Scenario:
    """Anything may happen in the first two minutes; then there is peace."""
    rng = random.Random(seed)
    names = assignors or rng.choice(
        (("range",), ("roundrobin",), ("sticky",), ("cooperative-sticky",))
    )
    config = ConsumerConfig(
        partition_assignment_strategy=names,
        session_timeout_ms=rng.choice((6_000, 10_000)),
        heartbeat_interval_ms=rng.choice((1_000, 3_000)),
        max_poll_interval_ms=rng.choice((8_000, 60_000)),
        metadata_max_age_ms=10_000,
        enable_auto_commit=rng.random() < 0.5,
    )
    work = Work(
        process_ms=rng.choice((0, 0, 100, 2_000)),
        start_ms=rng.choice((0, 20, 300)),
        stop_ms=rng.choice((0, 20)),
        parallel=rng.choice((1, 4)),
    )
    topics = {name: TopicPlan(partitions=rng.randint(1, 8)) for name in ("t", "u")}
    members = tuple(
        MemberPlan(
            name=f"c{n}",
            config=config,
            topics=("t", "u") if rng.random() < 0.8 else ("t",),
            start_ms=rng.choice((0, rng.randrange(60_000))),
            work=work,
        )
        for n in range(rng.randint(1, 5))
    )
    # Somebody subscribes to everything, and is up at the end.
    members = (MemberPlan(name="keeper", config=config, topics=("t", "u"), work=work), *members)
    happenings = []
    for _ in range(rng.randint(0, 6)):
        at = rng.randrange(120_000)
        name = rng.choice(members[1:]).name
        kind = rng.choice([kind for kind in Kind if kind not in (Kind.CREATE, Kind.DELETE)])
        if kind is Kind.GROW:
            happenings.append(Happening(at_ms=at, kind=kind, topic="t", partitions=9))
        elif kind is Kind.MOVE:
            happenings.append(Happening(at_ms=at, kind=kind, for_ms=rng.choice((10, 3_000))))
        else:
            for_ms = rng.choice((1_000, 12_000, 30_000))
            happenings.append(Happening(at_ms=at, kind=kind, member=name, for_ms=for_ms))
    scenario = Scenario(
        title=str(seed),
        topics=topics,
        members=members,
        happenings=tuple(happenings),
        seed=seed,
        until_ms=600_000,
        broker=CoordinatorConfig(group_initial_rebalance_delay_ms=rng.choice((0, 3_000))),
        network=Network(delay_ms=rng.choice((1, 20)), spread_ms=rng.choice((0, 30))),
    )
    return scenario.with_static_members() if rng.random() < 0.3 else scenario


@pytest.mark.parametrize("part", range(PARTS))
def test_laws(part: int) -> None:
    share = SCENARIOS // PARTS
    for seed in range(part * share, (part + 1) * share):
        scenario = drawn(seed)
        run = simulate(scenario)
        assert run.crashed == {}, seed
        _check_generations(run, seed)
        _check_the_end(scenario, run, seed)


def _check_generations(run: Run, seed: int) -> None:
    """No partition is held by two in one generation; generations only grow."""
    ids = [one.generation_id for one in run.rebalances if not one.is_cut_off]
    assert ids == sorted(ids), seed
    by_place: dict[tuple[str, int], set[str]] = {}
    for hold in run.holds:
        by_place.setdefault((hold.partition, hold.generation_id), set()).add(hold.member)
    assert all(len(members) == 1 for members in by_place.values()), seed


def _check_the_end(scenario: Scenario, run: Run, seed: int) -> None:
    """E04: when changes stop the group settles in time; and everything is held, by one."""
    changed = [one.at_ms + one.for_ms for one in scenario.happenings]
    config = scenario.members[0].config
    assert isinstance(config, ConsumerConfig)
    bound = (
        max([0, *changed, *(one.start_ms for one in scenario.members)])
        # until the last change is known: a silent member's session, old metadata
        + config.session_timeout_ms
        + config.metadata_max_age_ms
        + config.rebalance_timeout_ms
        + scenario.broker.group_initial_rebalance_delay_ms
        + 2 * config.heartbeat_interval_ms
    )
    assert all(one.to_ms is not None and one.to_ms <= bound for one in run.rebalances), seed
    holders = [hold.partition for hold in run.holds if hold.to_ms == run.until_ms]
    there = {hold.partition for hold in run.holds} | {gap.partition for gap in run.gaps}
    assert sorted(holders) == sorted(there), seed


def test_what_no_scenario_can_be() -> None:
    with pytest.raises(GroupError, match=r"happenings\[0\]\.member: no member 'x'"):
        _scenario((0,), Happening(at_ms=0, kind=Kind.KILL, member="x"))
    with pytest.raises(GroupError, match=r"heartbeat_interval_ms: 10000 is not less"):
        ConsumerConfig(heartbeat_interval_ms=10_000, session_timeout_ms=10_000)
