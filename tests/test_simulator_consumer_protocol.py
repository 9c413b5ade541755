# SPDX-License-Identifier: Apache-2.0
"""Checks laws of simulated runs of groups whose broker assigns (KIP-848), in random scenarios.

Members crash, pause and freeze; topics are created and grow; the coordinator moves. In some
scenarios, members of a classic group are followed by members of the consumer protocol.
"""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.coordinator.coordinator import Coordinator
from kafka_rebalance.member.config import ConsumerConfig
from kafka_rebalance.member.consumer import Consumer
from kafka_rebalance.member.consumer_group.async_consumer import AsyncConsumer
from kafka_rebalance.member.interface import Assigned, Lost, PendingRevocation, Revoked
from kafka_rebalance.simulator import (
    Costs,
    Happening,
    Kind,
    MemberPlan,
    Network,
    Scenario,
    TopicPlan,
    simulate,
)
from kafka_rebalance.simulator.intervals import grouped
from kafka_rebalance.simulator.journal import CoordinatorEntry, Entry, EpochEntry, MemberEntry
from kafka_rebalance.simulator.simulation import new_id

if TYPE_CHECKING:
    from kafka_rebalance.simulator import Run
    from tests.support.seeds import Seeds

INTERVAL_MS, SESSION_MS = 5_000, 45_000
LAST_CHANGE_MS = 120_000


def drawn(seed: int) -> Scenario:
    """Makes a random scenario with events in the first two minutes only."""
    rng = random.Random(seed)
    max_poll_ms = rng.choice((8_000, 60_000))
    config = ConsumerConfig(
        group_protocol="consumer",
        group_remote_assignor=rng.choice((None, "uniform", "range")),
        max_poll_interval_ms=max_poll_ms,
        metadata_max_age_ms=10_000,
        enable_auto_commit=rng.random() < 0.5,
        client_library=random.Random(f"{seed} library").choice(("java", "librdkafka")),
    )
    work = Costs(
        process_ms=rng.choice((0, 0, 100, 2_000)),
        start_cost_ms=rng.choice((0, 20, 300)),
        stop_cost_ms=rng.choice((0, 20)),
    )
    topics = {name: TopicPlan(partitions=rng.randint(1, 8)) for name in ("t", "u", "late")}
    by_pattern = rng.random() < 0.3

    def plan(name: str, wanted: tuple[str, ...], start_ms: int) -> MemberPlan:
        pattern = "|".join(wanted) if by_pattern else None
        names = () if by_pattern else wanted
        return MemberPlan(
            name=name, config=config, topics=names, pattern=pattern, start_ms=start_ms, work=work
        )

    known = tuple(topics)
    members = tuple(
        plan(f"c{n}", rng.choice((known, known, ("t",))), rng.choice((0, rng.randrange(60_000))))
        for n in range(rng.randint(1, 5))
    )
    # No event stops `keeper`, so at least one member with all topics runs at the end.
    members = (plan("keeper", known, 0), *members)
    if rng.random() < 0.2:
        members = _upgraded(members)
    scenario = Scenario(
        title=str(seed),
        topics=topics,
        members=members,
        happenings=tuple(_happenings(rng, members)),
        seed=seed,
        until_ms=600_000,
        broker=CoordinatorConfig(group_initial_rebalance_delay_ms=0),
        network=Network(delay_ms=rng.choice((1, 20)), spread_ms=rng.choice((0, 30))),
    )
    return scenario.with_static_members() if rng.random() < 0.3 else scenario


def _upgraded(members: tuple[MemberPlan, ...]) -> tuple[MemberPlan, ...]:
    """Makes `keeper` classic; the others join when it has settled, so the group is upgraded."""
    config = members[0].config
    assert isinstance(config, ConsumerConfig)
    classic = replace(members[0], config=config.with_group_protocol("classic"))
    late = (replace(one, start_ms=max(one.start_ms, 10_000)) for one in members[1:])
    return (classic, *late)


def _happenings(rng: random.Random, members: tuple[MemberPlan, ...]) -> list[Happening]:
    found: list[Happening] = []
    kinds = (Kind.STOP, Kind.KILL, Kind.START, Kind.PAUSE, Kind.FREEZE)
    for _ in range(rng.randint(0, 6)):
        at, name = rng.randrange(10_000, LAST_CHANGE_MS), rng.choice(members[1:]).name
        kind = rng.choice((*kinds, Kind.MOVE, Kind.GROW, Kind.CREATE_TOPIC))
        if kind in (Kind.GROW, Kind.CREATE_TOPIC):
            if any(one.kind is kind for one in found):
                continue  # only once in a scenario
            topic, partitions = ("t", 9) if kind is Kind.GROW else ("late", 0)
            found.append(Happening(at_ms=at, kind=kind, topic=topic, partitions=partitions))
        elif kind is Kind.MOVE:
            found.append(Happening(at_ms=at, kind=kind, for_ms=rng.choice((10, 3_000))))
        else:
            for_ms = rng.choice((1_000, 12_000, 60_000))
            found.append(Happening(at_ms=at, kind=kind, member=name, for_ms=for_ms))
    return found


@pytest.mark.seeds(quick=60, whole=240)
def test_laws(seeds: Seeds) -> None:
    for seed in seeds:
        _check_laws(seed)


def test_a_member_that_was_frozen_after_its_last_poll_joins_again() -> None:
    """It polled without end: a poll in the freeze counted, so the poll after it was not late."""
    _check_laws(475610588)


def test_a_downgrade_loses_its_rebalance_with_its_coordinator() -> None:
    """The classic member keeps its six partitions; nobody reads the others until the end."""
    _check_laws(135754111)
    run = simulate(drawn(135754111))
    assert run.rebalances[-1].is_cut_off
    held = [one.member for one in run.holds if one.to_ms == run.until_ms]
    assert held == ["keeper"] * 6


def test_the_scenarios_have_epochs_and_removed_members() -> None:
    epochs, lost = map(sum, zip(*map(_check_laws, range(8)), strict=True))
    assert epochs > 3 * 8
    assert lost > 0


def _check_laws(seed: int) -> tuple[int, int]:
    """Asserts all laws; returns how many rebalances there were, and removed members with work."""
    scenario = drawn(seed)
    journal: list[Entry] = []
    run = simulate(scenario, journal=journal)
    _check_crashes(scenario, run, seed)
    lost = _check_holders(run, journal, seed)
    _check_the_end(scenario, run, seed)
    _check_replay(scenario, journal, seed)
    return len(run.rebalances), lost


def _check_crashes(scenario: Scenario, run: Run, seed: int) -> None:
    """Asserts that only two errors, both Kafka's own, have ended members.

    A static member that was killed is back before its session has ended. The last member of the
    consumer protocol was removed while it was frozen, so the group became a classic group.
    """
    config = scenario.members[0].config
    is_mixed = isinstance(config, ConsumerConfig) and config.is_classic
    for why in run.crashed.values():
        code = why.partition(":")[0]
        expected = ("UNRELEASED_INSTANCE_ID", "GROUP_ID_NOT_FOUND" if is_mixed else "")
        assert code in expected, (seed, why)


def _check_holders(run: Run, journal: list[Entry], seed: int) -> int:
    """Two members hold one partition only if the older holder was removed and did not know it.

    Returns how often this happened.
    """
    removed = {
        (entry.process, str(partition))
        for entry in journal
        if isinstance(entry, MemberEntry)
        for effect in entry.effects
        if isinstance(effect, Lost)
        for partition in effect.partitions
    }
    overlaps = 0
    stops = (Kind.STOP, Kind.KILL)
    gone = {(one.member, one.at_ms) for one in run.happenings if one.kind in stops}
    for partition, holds in grouped(run.holds, lambda one: one.partition).items():
        for before, after in pairwise(sorted(holds, key=lambda one: one.from_ms)):
            if after.from_ms >= before.to_ms or after.member == before.member:
                continue
            # One that did not poll, or was frozen, reads on until it learns that it was removed;
            # one that an error ends, until its next poll.
            old = min(before, after, key=lambda one: one.generation_id)
            is_over = old.is_stuck or (old.member, old.to_ms) in gone or old.member in run.crashed
            assert is_over or (old.member, partition) in removed, (seed, before, after)
            overlaps += 1
    return overlaps


def _check_the_end(scenario: Scenario, run: Run, seed: int) -> None:
    """After the last change, the group settles in time, and each partition has one holder."""
    changed = [one.at_ms + one.for_ms for one in scenario.happenings]
    config = scenario.members[0].config
    assert isinstance(config, ConsumerConfig)
    # A session ends; then every member learns of the target, gives up and gets partitions. New
    # topics reach a pattern within ten minutes, or ten seconds after they were created.
    bound = max([0, *changed, *(one.start_ms for one in scenario.members)])
    bound += SESSION_MS + config.max_poll_interval_ms + 12 * INTERVAL_MS
    assert all(one.to_ms is not None and one.to_ms <= bound for one in run.rebalances), seed
    holders = sorted(hold.partition for hold in run.holds if hold.to_ms == run.until_ms)
    there = {hold.partition for hold in run.holds} | {gap.partition for gap in run.gaps}
    # A downgrade writes the classic group, and only then starts its rebalance in memory. A
    # coordinator that moves before the rebalance ends loses it, and nothing starts another one
    # (GroupMetadataManager.convertToClassicGroup, onLoaded).
    if config.is_classic and run.rebalances[-1].is_cut_off:
        assert set(holders) <= there, seed
    else:
        assert holders == sorted(there), seed


def _check_replay(scenario: Scenario, journal: list[Entry], seed: int) -> None:
    """Asserts that the journal's events, played again, lead to its effects and epochs."""
    coordinator = Coordinator(scenario.broker, new_id(scenario), vouched=True)
    members: dict[tuple[str, int], AsyncConsumer | Consumer] = {}
    for entry in journal:
        if isinstance(entry, EpochEntry):
            continue
        if isinstance(entry, CoordinatorEntry):
            assert tuple(coordinator.handle(entry.event, entry.at_ms)) == entry.effects, seed
            continue
        key = (entry.process, entry.incarnation)
        if key not in members:
            assert isinstance(entry.config, ConsumerConfig)
            rng = random.Random(f"{scenario.seed} {entry.process} {entry.incarnation}")
            kind = Consumer if entry.config.is_classic else AsyncConsumer
            members[key] = kind(entry.config, rng=rng)
        assert tuple(members[key].handle(entry.event, entry.at_ms)) == entry.effects, seed
        assert members[key].generation_id == entry.generation_id, seed


SLOW_MS = 1_500
"""The time in ms between two polls."""


@pytest.mark.parametrize(
    ("library", "polls"),
    [("java", [0, 1, 2]), ("librdkafka", [0, 0])],
)
@pytest.mark.parametrize("cost_ms", [0, 20])
def test_a_member_gives_up_in_three_polls_or_in_one(
    library: str, polls: list[int], cost_ms: int
) -> None:
    """Finds the poll of each step of c0: PendingRevocation (only in Java), Revoked, Assigned.

    Real members, with records in each poll and 1.5 s of work after it, did so; see
    docs/behaviour/consumer-members.md.
    """
    config = ConsumerConfig(group_protocol="consumer", client_library=library)
    work = Costs(process_ms=SLOW_MS, stop_cost_ms=cost_ms)
    scenario = Scenario(
        title="slow polls",
        topics={"t": TopicPlan(partitions=4)},
        members=tuple(
            MemberPlan(name=name, config=config, topics=("t",), start_ms=at_ms, work=work)
            for name, at_ms in (("c0", 0), ("c1", 20_000))
        ),
        happenings=(),
        until_ms=60_000,
    )
    journal: list[Entry] = []
    simulate(scenario, journal=journal)
    steps = [
        (one.at_ms, effect)
        for one in journal
        if isinstance(one, MemberEntry) and one.process == "c0" and one.at_ms > 20_000
        for effect in one.effects
        if isinstance(effect, PendingRevocation | Revoked | Assigned)
    ]
    assert [type(effect) for _, effect in steps] == [PendingRevocation, Revoked, Assigned]
    if library == "librdkafka":
        del steps[0]  # librdkafka's main thread takes the answer, without a poll
    first = steps[0][0]
    assert [(at_ms - first) // SLOW_MS for at_ms, _ in steps] == polls
