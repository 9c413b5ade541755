"""A run's journal, played again on new state machines; and what nobody who was fenced may do."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from kafka_rebalance.coordinator import (
    Coordinator,
    ErrorCode,
    HeartbeatResponse,
    JoinGroup,
    Loaded,
    OffsetCommit,
    OffsetCommitResponse,
    Received,
    Respond,
    SyncGroupResponse,
    Unloaded,
)
from kafka_rebalance.member import Consumer, ConsumerConfig, Fatal
from kafka_rebalance.simulator import MemberPlan, Scenario, TopicPlan, simulate
from kafka_rebalance.simulator.engine import new_id
from kafka_rebalance.simulator.journal import CoordinatorEntry, Entry, MemberEntry
from test_simulator import drawn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_rebalance.coordinator import Request, Response

PARTS = 5
SCENARIOS = 1_000


def _journals(part: int) -> Iterator[tuple[int, Scenario, list[Entry]]]:
    share = SCENARIOS // PARTS
    for seed in range(part * share, (part + 1) * share):
        scenario, journal = drawn(seed), []
        simulate(scenario, journal=journal)
        yield seed, scenario, journal


@pytest.mark.parametrize("part", range(PARTS))
def test_the_same_events_give_the_same_effects_and_states(part: int) -> None:
    for seed, scenario, journal in _journals(part):
        coordinator = Coordinator(scenario.broker, new_id(scenario), vouched=True)
        members: dict[tuple[str, int], Consumer] = {}
        for entry in journal:
            if isinstance(entry, CoordinatorEntry):
                assert tuple(coordinator.handle(entry.event, entry.at_ms)) == entry.effects, seed
                continue
            key = (entry.process, entry.incarnation)
            if key not in members:
                assert isinstance(entry.config, ConsumerConfig)
                rng = random.Random(f"{scenario.seed} {entry.process} {entry.incarnation}")
                members[key] = Consumer(entry.config, rng=rng)
            assert tuple(members[key].handle(entry.event, entry.at_ms)) == entry.effects, seed
            assert members[key].generation_id == entry.generation_id, seed


@pytest.mark.parametrize("part", range(PARTS))
def test_a_fenced_member_never_acts_again(part: int) -> None:
    """E03: who is out of the group gets nothing and commits nothing under the old id."""
    refused = 0
    for seed, scenario, journal in _journals(part):
        coordinator = Coordinator(scenario.broker, new_id(scenario), vouched=True)
        known: set[str] = set()
        gone: set[str] = set()
        # Answers may take a while: what counts is who was in when the request came.
        asked: dict[int, tuple[Request, bool, int]] = {}
        for entry in journal:
            if not isinstance(entry, CoordinatorEntry):
                continue
            group = coordinator.groups().get(scenario.group_id)
            if isinstance(entry.event, Received):
                request = entry.event.request
                was_gone = getattr(request, "member_id", "") in gone
                generation_id = group.generation_id if group else -1
                asked[entry.event.request_id] = (request, was_gone, generation_id)
            if isinstance(entry.event, Unloaded | Loaded):
                known, gone = set(), set()  # the log knows who is in
            for effect in coordinator.handle(entry.event, entry.at_ms):
                if isinstance(effect, Respond):
                    request, was_gone, generation_id = asked[effect.request_id]
                    if was_gone and not isinstance(request, JoinGroup):
                        assert _error(effect.response) is not ErrorCode.NONE, (seed, request)
                        refused += 1
                    if isinstance(request, OffsetCommit) and not _error(effect.response):
                        assert request.generation_id == generation_id, (seed, request)
            group = coordinator.groups().get(scenario.group_id)
            now = set(group.members) if group else set()
            gone |= known - now
            known = now
    assert refused > 10


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
    assert [any(isinstance(done, Fatal) for done in one.effects) for one in entries].index(
        True
    ) == len(entries) - 1
    at_the_end = {hold.partition: hold.member for hold in run.holds if hold.to_ms == run.until_ms}
    assert sorted(at_the_end.values()) == ["other", "other", "twin", "twin"]


def _error(response: Response) -> ErrorCode:
    match response:
        case HeartbeatResponse(error_code=error) | SyncGroupResponse(error_code=error):
            return error
        case OffsetCommitResponse(partitions=partitions):
            return next((one.error_code for one in partitions if one.error_code), ErrorCode.NONE)
    raise AssertionError(response)
