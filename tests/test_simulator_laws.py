# SPDX-License-Identifier: Apache-2.0
"""Checks laws of simulated runs in random scenarios of consumer groups.

Members subscribe by name or by pattern. They crash and pause; topics are created and grow; brokers
leave, and may return before clients see their topics again.

Each scenario is played once. Then the events in its journal are played again, on a new coordinator
and new members, which must behave equally.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.coordinator.coordinator import Coordinator
from kafka_rebalance.coordinator.machine.events import Loaded, Received, Respond, Unloaded
from kafka_rebalance.member.config import ConsumerConfig
from kafka_rebalance.member.consumer import Consumer
from kafka_rebalance.member.interface import Answered
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
from kafka_rebalance.simulator.journal import CoordinatorEntry, Entry, MemberEntry
from kafka_rebalance.simulator.simulation import new_id
from kafka_rebalance.wire.classic_groups import (
    HeartbeatResponse,
    JoinGroup,
    JoinGroupResponse,
    SyncGroupResponse,
)
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.offsets import OffsetCommit, OffsetCommitResponse

if TYPE_CHECKING:
    from kafka_rebalance.wire.messages import Request, Response
    from tests.support.seeds import Seeds


def drawn(seed: int, assignors: tuple[str, ...] | None = None) -> Scenario:
    """Makes a random scenario with events in the first two minutes only."""
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
    work = Costs(
        process_ms=rng.choice((0, 0, 100, 2_000)),
        start_cost_ms=rng.choice((0, 20, 300)),
        stop_cost_ms=rng.choice((0, 20)),
        parallel=rng.choice((1, 4)),
    )
    racks = (("a", "b"), ("b",)) if rng.random() < 0.3 else None
    config = replace(config, client_rack="a" if racks else "")
    known = ("t", "u", "late")
    topics = {name: TopicPlan(partitions=rng.randint(1, 8), racks=racks) for name in known}
    by_pattern = rng.random() < 0.3
    members = tuple(
        MemberPlan(
            name=f"c{n}",
            config=config,
            **_wants(rng.choice((known, known, ("t",), ("late", "u"))), by_pattern=by_pattern),
            start_ms=rng.choice((0, rng.randrange(60_000))),
            work=work,
        )
        for n in range(rng.randint(1, 5))
    )
    # No event stops `keeper`, so at least one member with all topics runs at the end.
    wants = _wants(known, by_pattern=by_pattern)
    members = (MemberPlan(name="keeper", config=config, **wants, work=work), *members)
    happenings = _happenings(rng, [one.name for one in members[1:]], has_racks=racks is not None)
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


def _wants(names: tuple[str, ...], *, by_pattern: bool) -> dict[str, Any]:
    return {"pattern": "|".join(names)} if by_pattern else {"topics": names}


def _happenings(rng: random.Random, names: list[str], *, has_racks: bool) -> list[Happening]:
    happenings: list[Happening] = []
    for _ in range(rng.randint(0, 6)):
        at = rng.randrange(120_000)
        name = rng.choice(names)
        kind = rng.choice([kind for kind in Kind if kind not in (Kind.CREATE, Kind.DELETE)])
        once = (Kind.GROW, Kind.CREATE_TOPIC, Kind.DELETE_TOPIC)
        if kind in once and any(one.kind is kind for one in happenings):
            continue  # only once in a scenario
        if kind is Kind.GROW:
            happenings.append(Happening(at_ms=at, kind=kind, topic="t", partitions=9))
        elif kind in (Kind.CREATE_TOPIC, Kind.DELETE_TOPIC):
            topic = "late" if kind is Kind.CREATE_TOPIC else "u"
            happenings.append(Happening(at_ms=at, kind=kind, topic=topic))
        elif kind is Kind.AWAY:
            happenings.append(_away(rng, at, has_racks=has_racks))
        elif kind is Kind.MOVE:
            happenings.append(Happening(at_ms=at, kind=kind, for_ms=rng.choice((10, 3_000))))
        else:
            for_ms = rng.choice((1_000, 12_000, 30_000))
            happenings.append(Happening(at_ms=at, kind=kind, member=name, for_ms=for_ms))
    return happenings


def _away(rng: random.Random, at: int, *, has_racks: bool) -> Happening:
    """Makes an absence: of a broker that leads all partitions or those of a topic, or of a rack."""
    of: dict[str, Any] = rng.choice(({}, {"topics": ("t",)}, {"rack": "b"} if has_racks else {}))
    return Happening(
        at_ms=at,
        kind=Kind.AWAY,
        for_ms=rng.choice((0, 500, 10_000)),
        coordinates=rng.random() < 0.5,
        unseen_ms=rng.choice((0, 800, 4_000)),
        **of,
    )


@pytest.mark.parametrize("assignors", [("range",), ("cooperative-sticky",)])
def test_the_same_seed_gives_the_same_run(assignors: tuple[str, ...]) -> None:
    scenario = drawn(7, assignors)
    assert simulate(scenario) == simulate(scenario)


@pytest.mark.seeds(quick=100, whole=260)
def test_laws(seeds: Seeds) -> None:
    for seed in seeds:
        _check_laws(seed)


def test_the_scenarios_refuse_removed_members() -> None:
    assert sum(map(_check_laws, range(12))) > 0


def _check_laws(seed: int) -> int:
    """Asserts all laws; returns how many requests of removed members were refused.

    Kafka's sticky assignors throw for some groups with unequal subscriptions, which ends the leader
    and every member that leads after it.
    """
    scenario = drawn(seed)
    journal: list[Entry] = []
    run = simulate(scenario, journal=journal)
    if run.crashed:
        assert all("assignor throws" in why for why in run.crashed.values()), (seed, run.crashed)
        return 0
    check_generations(run, seed)
    _check_the_end(scenario, run, journal, seed)
    _check_replay(scenario, journal, seed)
    return _check_the_fenced(scenario, journal, seed)


def check_generations(run: Run, seed: int) -> None:
    """In one generation, no partition has two holders; generation numbers never decrease."""
    ids = [one.generation_id for one in run.rebalances if not one.is_cut_off]
    assert ids == sorted(ids), seed
    by_place: dict[tuple[str, int], set[str]] = {}
    for hold in run.holds:
        by_place.setdefault((hold.partition, hold.generation_id), set()).add(hold.member)
    assert all(len(members) == 1 for members in by_place.values()), seed


def _check_the_end(scenario: Scenario, run: Run, journal: list[Entry], seed: int) -> None:
    """After the last change, the group settles in time, and each partition has one holder.

    As in Kafka, there is one exception. A static leader that returns keeps its old assignment, and
    compares later metadata with those at its return. So partitions that were created while it was
    away can stay unassigned.
    """
    changed = [one.at_ms + one.for_ms + one.unseen_ms for one in scenario.happenings]
    config = scenario.members[0].config
    assert isinstance(config, ConsumerConfig)
    deleted = {one.topic for one in scenario.happenings if one.kind is Kind.DELETE_TOPIC}
    # A member that synced too late costs one more rebalance.
    late = sum(one.causes == ["somebody synced too late"] for one in run.rebalances)
    bound = (
        max([0, *changed, *(one.start_ms for one in scenario.members)])
        # The group notices the last change after a session timeout, or when old metadata expire.
        + config.session_timeout_ms
        + config.metadata_max_age_ms
        # With a deleted topic, first the leader may commit in vain, then another member.
        + config.rebalance_timeout_ms * (1 + len(deleted) + late)
        + scenario.broker.group_initial_rebalance_delay_ms
        + 2 * config.heartbeat_interval_ms
    )
    for one in run.rebalances:
        assert one.to_ms is not None, seed
        # Every further generation of a rebalance can wait for a busy member again.
        assert one.to_ms <= bound + config.rebalance_timeout_ms * (one.rounds - 1), seed
    holders = [hold.partition for hold in run.holds if hold.to_ms == run.until_ms]
    there = {hold.partition for hold in run.holds} | {gap.partition for gap in run.gaps}
    came = {gap.partition: gap.from_ms for gap in run.gaps if gap.partition not in set(holders)}
    skipped = [one.at_ms for one in journal if _skips(one)]
    overlooked = {name for name, at in came.items() if 0 < at <= max(skipped, default=0)}
    there = {name for name in there if name.rpartition("-")[0] not in deleted}
    held = [name for name in holders if name.rpartition("-")[0] not in deleted]
    assert sorted([*held, *(overlooked & there)]) == sorted(there), seed


def _skips(entry: Entry) -> bool:
    """Returns whether an entry is a response that lets a static leader keep its assignment."""
    if not isinstance(entry, MemberEntry) or not isinstance(entry.event, Answered):
        return False
    response = entry.event.response
    return isinstance(response, JoinGroupResponse) and response.skip_assignment


def _check_replay(scenario: Scenario, journal: list[Entry], seed: int) -> None:
    """Asserts that the journal's events, played again, lead to its effects and generations."""
    coordinator = Coordinator(scenario.broker, new_id(scenario), vouched=True)
    members: dict[tuple[str, int], Consumer] = {}
    for entry in journal:
        if isinstance(entry, CoordinatorEntry):
            assert tuple(coordinator.handle(entry.event, entry.at_ms)) == entry.effects, seed
            continue
        assert isinstance(entry, MemberEntry)
        key = (entry.process, entry.incarnation)
        if key not in members:
            assert isinstance(entry.config, ConsumerConfig)
            rng = random.Random(f"{scenario.seed} {entry.process} {entry.incarnation}")
            members[key] = Consumer(entry.config, rng=rng)
        assert tuple(members[key].handle(entry.event, entry.at_ms)) == entry.effects, seed
        assert members[key].generation_id == entry.generation_id, seed


def _check_the_fenced(scenario: Scenario, journal: list[Entry], seed: int) -> int:
    """Asserts that a removed member gets no assignment and commits no offset under its old id.

    Returns how many requests with old ids were refused.
    """
    coordinator = Coordinator(scenario.broker, new_id(scenario), vouched=True)
    known: set[str] = set()
    gone: set[str] = set()
    refused = 0
    # Whether a member was removed is noted at its request, because the answer can come later.
    asked: dict[int, tuple[Request, bool, int]] = {}
    for entry in journal:
        if not isinstance(entry, CoordinatorEntry):
            continue
        group = coordinator.classic_group(scenario.group_id)
        if isinstance(entry.event, Received):
            request = entry.event.request
            was_gone = getattr(request, "member_id", "") in gone
            generation_id = group.generation_id if group else -1
            asked[entry.event.request_id] = (request, was_gone, generation_id)
        if isinstance(entry.event, Unloaded | Loaded):
            known, gone = set(), set()  # from now on, the members are those of the loaded log
        for effect in coordinator.handle(entry.event, entry.at_ms):
            if isinstance(effect, Respond):
                refused += _check_answer(effect, *asked[effect.request_id], seed)
        group = coordinator.classic_group(scenario.group_id)
        now = set(group.members) if group else set()
        gone |= known - now
        known = now
    return refused


def _check_answer(
    effect: Respond, request: Request, was_gone: bool, generation_id: int, seed: int
) -> bool:
    if isinstance(request, OffsetCommit) and not _error(effect.response):
        assert request.generation_id == generation_id, (seed, request)
    if was_gone and not isinstance(request, JoinGroup):
        assert _error(effect.response) is not ErrorCode.NONE, (seed, request)
        return True
    return False


def _error(response: Response) -> ErrorCode:
    match response:
        case HeartbeatResponse(error_code=error) | SyncGroupResponse(error_code=error):
            return error
        case OffsetCommitResponse(partitions=partitions):
            return next((one.error_code for one in partitions if one.error_code), ErrorCode.NONE)
    raise AssertionError(response)
