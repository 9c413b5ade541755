# SPDX-License-Identifier: Apache-2.0
"""Worked scenarios of simulated consumer groups."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.errors import GroupError
from kafka_rebalance.member.config import ConsumerConfig
from kafka_rebalance.member.interface import Fatal
from kafka_rebalance.simulator import (
    Costs,
    Happening,
    Kind,
    MemberPlan,
    Network,
    Run,
    Scenario,
    TopicPlan,
    simulate,
)
from kafka_rebalance.simulator.agenda import Agenda, Timer, Wire
from kafka_rebalance.simulator.journal import Entry, MemberEntry

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


def test_eager_end_to_end() -> None:
    run = simulate(_scenario((0, 10_000), topics={"t1": 3, "t2": 3}))
    assert _held_at_the_end(run) == {
        "c0": {"t1-0", "t1-1", "t2-0", "t2-1"},
        "c1": {"t1-2", "t2-2"},
    }
    assert [one.generation_id for one in run.rebalances] == [1, 2]
    # In an eager rebalance, all six partitions are unavailable.
    assert sum(gap.from_ms > 5_000 for gap in run.gaps) == 6


def test_cooperative_end_to_end() -> None:
    starts = (0, 5_000, 60_000)
    run = simulate(_scenario(starts, assignors=("cooperative-sticky",), topics={"t": 3}))
    assert {name: len(held) for name, held in _held_at_the_end(run).items()} == {
        "c0": 1,
        "c1": 1,
        "c2": 1,
    }
    late = [hold for hold in run.holds if hold.from_ms > 60_000]
    assert len(late) == 1  # only one partition moves and is unavailable
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
    # The session ends 10 s after the last heartbeat, which was at most 3 s before the kill.
    assert 57_000 <= rebalance.from_ms <= 60_100


def test_a_pause_longer_than_the_poll_interval_loses_everything() -> None:
    config = ConsumerConfig(partition_assignment_strategy=("range",), max_poll_interval_ms=20_000)
    pause = Happening(at_ms=50_000, kind=Kind.PAUSE, member="c1", for_ms=40_000)
    scenario = _scenario((0, 100), pause)
    run = simulate(scenario.with_members(lambda *_: config))
    causes = [one.causes for one in run.rebalances if one.from_ms > 40_000]
    assert causes == [["c1 leaves"], ["c1 joins"]]


def test_partitions_that_are_added_are_seen_by_the_leader() -> None:
    grow = Happening(at_ms=50_000, kind=Kind.GROW, topic="t", partitions=9)
    run = simulate(_scenario((0, 100), grow))
    held = _held_at_the_end(run)
    assert sum(map(len, held.values())) == 9
    (rebalance,) = [one for one in run.rebalances if one.from_ms > 40_000]
    assert rebalance.from_ms <= 55_100  # the leader's metadata is at most 5 s old


def test_a_coordinator_that_moves_disturbs_no_reading_member() -> None:
    move = Happening(at_ms=50_000, kind=Kind.MOVE, for_ms=2_000)
    run = simulate(_scenario((0, 100), move))
    assert [gap for gap in run.gaps if gap.from_ms > 40_000] == []


WORKS = ConsumerConfig(
    partition_assignment_strategy=("range",), heartbeat_interval_ms=1_000, session_timeout_ms=10_000
)


def _busy(assignor: str, process_ms: int, seed: int = 1) -> Run:
    """Plays two members that work for `process_ms` between polls, and one that joins after 60 s."""
    config = replace(WORKS, partition_assignment_strategy=(assignor,))
    members = tuple(
        MemberPlan(
            name=f"c{n}",
            config=config,
            topics=("t",),
            start_ms=at,
            work=Costs(process_ms=process_ms),
        )
        for n, at in enumerate((0, 100, 60_000))
    )
    topics = {"t": TopicPlan(partitions=6)}
    return simulate(
        Scenario(title="busy", topics=topics, members=members, until_ms=240_000, seed=seed)
    )


def test_an_eager_member_that_commits_automatically_takes_no_further_cycle() -> None:
    """A rebalance of such members takes less than the time between two polls.

    With 3 s between polls, rebalances of real groups took 265 to 2,629 ms.
    """
    runs = [_busy("range", 3_000, seed) for seed in range(1, 21)]
    took = [run.rebalances[-1].duration_ms or 0 for run in runs]
    assert min(took) < 1_500
    assert max(took) < 3_000


def test_a_cooperative_member_waits_for_its_next_poll_at_every_step() -> None:
    """As in Kafka, the member needs a poll for each of: commit, join, read the answer, assign."""
    (rebalance,) = [one for one in _busy("cooperative-sticky", 3_000).rebalances if one.number > 1]
    assert rebalance.rounds == 2
    assert rebalance.duration_ms is not None
    assert 15_000 < rebalance.duration_ms < 18_500


def test_a_joining_member_that_works_longer_than_its_session_is_removed() -> None:
    """A cooperative member that joins sends no heartbeats until a poll has read the answer."""
    causes = [
        cause for one in _busy("cooperative-sticky", 14_000).rebalances for cause in one.causes
    ]
    assert "c0's session ended" in causes
    causes = [cause for one in _busy("range", 14_000).rebalances for cause in one.causes]
    assert causes == ["c0 joins", "c2 joins"]


def test_scenarios_that_are_refused() -> None:
    with pytest.raises(GroupError, match=r"happenings\[0\]\.member: no member 'x'"):
        _scenario((0,), Happening(at_ms=0, kind=Kind.KILL, member="x"))
    with pytest.raises(GroupError, match=r"heartbeat_interval_ms: 10000 is not less"):
        ConsumerConfig(heartbeat_interval_ms=10_000, session_timeout_ms=10_000)


def test_of_two_with_one_instance_id_the_first_is_fenced_and_heard_of_no_more() -> None:
    config = ConsumerConfig(group_instance_id="i", enable_auto_commit=False)
    other = ConsumerConfig(enable_auto_commit=False)
    scenario = Scenario(
        title="twins",
        topics={"t": TopicPlan(partitions=4)},
        members=(
            MemberPlan(name="first", config=config, topics=("t",)),
            MemberPlan(name="other", config=other, topics=("t",)),
            MemberPlan(name="twin", config=config, topics=("t",), start_ms=60_000),
        ),
        until_ms=180_000,
    )
    journal: list[Entry] = []
    run = simulate(scenario, journal=journal)
    assert run.crashed == {"first": "FENCED_INSTANCE_ID: Heartbeat was answered FENCED_INSTANCE_ID"}
    entries = [one for one in journal if isinstance(one, MemberEntry) and one.process == "first"]
    throws = [any(isinstance(done, Fatal) for done in one.effects) for one in entries]
    assert throws.index(True) == len(entries) - 1
    at_the_end = {hold.partition: hold.member for hold in run.holds if hold.to_ms == run.until_ms}
    assert sorted(at_the_end.values()) == ["other", "other", "twin", "twin"]


def test_a_negative_spread_is_refused() -> None:
    with pytest.raises(GroupError, match="spread_ms: -1 is less than 0"):
        Network(spread_ms=-1)


@pytest.mark.parametrize("spread_ms", [0, 1, 2, 7, 30])
def test_delays_are_drawn_as_randint_draws_them(spread_ms: int) -> None:
    network = Network(delay_ms=10, spread_ms=spread_ms)
    wire, rng = Wire(network, random.Random(7)), random.Random(7)
    for number in range(100):
        at = wire.arrival_ms("c0", f"other {number}", 1_000)
        assert at == 1_010 + rng.randint(0, spread_ms)


def test_a_timer_rings_for_the_incarnation_that_set_it_last() -> None:
    # The process restarts, and its first wake is due in the millisecond of the old one's.
    agenda, rung = Agenda(), list[int]()
    timer = Timer(rung.append)
    for incarnation in (1, 2, 2):
        agenda.arm(5, timer, incarnation)
    while action := agenda.pop(10):
        action()
    assert rung == [2]


@pytest.mark.parametrize("kind", [Kind.CREATE, Kind.DELETE])
def test_a_client_creates_and_deletes_named_connectors(kind: Kind) -> None:
    with pytest.raises(GroupError, match=f"connectors: is empty; name those to {kind.value}"):
        Happening(at_ms=1, kind=kind)
