# SPDX-License-Identifier: Apache-2.0
"""Single cases of groups whose broker assigns (KIP-848) in the simulator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import Member, Topic
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.member.config import ConsumerConfig
from kafka_rebalance.plans.changes import AddMembers
from kafka_rebalance.simulator import (
    Costs,
    Happening,
    Kind,
    MemberPlan,
    Run,
    Scenario,
    TopicPlan,
    scenario_from_group,
    simulate,
    stops,
    totals,
)
from kafka_rebalance.simulator.journal import Entry, lines
from kafka_rebalance.simulator.scenario_files import read

CONSUMER = ConsumerConfig(group_protocol="consumer")
CLASSIC = ConsumerConfig(partition_assignment_strategy=("cooperative-sticky",))


def plan(
    name: str, start_ms: int = 0, config: ConsumerConfig = CONSUMER, **given: Any
) -> MemberPlan:
    return MemberPlan(name=name, config=config, topics=("t",), start_ms=start_ms, **given)


def scenario(
    *members: MemberPlan, happenings: tuple[Happening, ...] = (), partitions: int = 6, **given: Any
) -> Scenario:
    given.setdefault("until_ms", 300_000)
    return Scenario(
        title="case",
        topics={"t": TopicPlan(partitions=partitions)},
        members=members,
        happenings=happenings,
        **given,
    )


def held_at_the_end(run: Run) -> dict[str, int]:
    """Returns how many partitions each member holds at the end."""
    last = [one.member for one in run.holds if one.to_ms == run.until_ms]
    return {member: last.count(member) for member in sorted(set(last))}


def test_a_joiner_within_a_second_waits_for_somebodys_next_heartbeat() -> None:
    early, late = (simulate(scenario(plan("c0"), plan("c1", at_ms))) for at_ms in (900, 1_100))
    joined = early.rebalances[-1]
    # c0 acknowledged at 0.0 s, so its next heartbeat is the first one after 1 s.
    assert 4_050 < joined.untargeted_ms < 4_200
    assert (joined.rounds, joined.generation_id) == (1, 3)
    assert late.rebalances[-1].untargeted_ms == 0
    assert held_at_the_end(early) == held_at_the_end(late) == {"c0": 3, "c1": 3}


def test_partitions_that_stay_are_read_on_and_those_that_move_wait_for_a_heartbeat() -> None:
    run = simulate(scenario(plan("c0"), plan("c1", 2_000), plan("c2", 60_000)))
    assert stops(run) == []
    moved = {one.partition: one.to_ms - one.from_ms for one in run.gaps if one.from_ms > 60_000}
    assert len(moved) == 2
    assert all(0 < each < 5_050 for each in moved.values())


def test_a_long_callback_does_not_stop_heartbeats() -> None:
    slow = Costs(start_cost_ms=20_000)  # 60 s for three partitions, longer than a session
    run = simulate(scenario(plan("c0"), plan("c1", 2_000, work=slow)))
    assert run.crashed == {}
    assert len(run.rebalances) == 2
    assert held_at_the_end(run) == {"c0": 3, "c1": 3}


def test_a_revocation_that_is_too_slow_ends_the_membership() -> None:
    config = replace(CONSUMER, max_poll_interval_ms=10_000)
    slow = Costs(stop_cost_ms=5_000)  # 15 s for three partitions
    run = simulate(scenario(plan("c0", config=config, work=slow), plan("c1", 60_000)))
    assert "c0 revoked too late" in [cause for one in run.rebalances for cause in one.causes]
    assert held_at_the_end(run) == {"c0": 3, "c1": 3}


def test_a_killed_member_is_removed_when_its_session_ends() -> None:
    kill = Happening(at_ms=62_000, kind=Kind.KILL, member="c0")
    run = simulate(scenario(plan("c0"), plan("c1", 2_000), happenings=(kill,)))
    (last,) = [one for one in run.rebalances if one.from_ms > 62_000]
    assert last.causes == ["c0's session ended"]
    assert 100_000 < last.from_ms <= 107_000  # 45 s after its last heartbeat
    assert held_at_the_end(run) == {"c1": 6}


def test_a_static_member_that_closes_is_back_without_a_rebalance() -> None:
    bounce = (
        Happening(at_ms=60_000, kind=Kind.STOP, member="c0"),
        Happening(at_ms=70_000, kind=Kind.START, member="c0"),
    )
    group = scenario(plan("c0"), plan("c1", 2_000), happenings=bounce).with_static_members()
    run = simulate(group)
    assert [one for one in run.rebalances if one.from_ms >= 60_000] == []
    assert held_at_the_end(run) == {"c0": 3, "c1": 3}


@pytest.mark.parametrize(("config", "dies"), [(CONSUMER, True), (CLASSIC, False)])
def test_a_killed_static_member_that_is_back_at_once_dies(
    config: ConsumerConfig, dies: bool
) -> None:
    again = (
        Happening(at_ms=60_000, kind=Kind.KILL, member="c0"),
        Happening(at_ms=61_000, kind=Kind.START, member="c0"),
    )
    members = (plan("c0", config=config), plan("c1", 2_000, config))
    run = simulate(scenario(*members, happenings=again).with_static_members())
    expected = "UNRELEASED_INSTANCE_ID: a heartbeat was answered UNRELEASED_INSTANCE_ID"
    assert run.crashed == ({"c0": expected} if dies else {})


def test_a_rolling_switch_upgrades_the_group_and_all_partitions_are_read() -> None:
    names = [f"c{n}" for n in range(3)]
    switch = [
        Happening(at_ms=60_000 + 30_000 * n + away, kind=kind, member=name, config=config)
        for n, name in enumerate(names)
        for away, kind, config in ((0, Kind.STOP, None), (5_000, Kind.START, CONSUMER))
    ]
    members = (plan(name, config=CLASSIC) for name in names)
    run = simulate(scenario(*members, happenings=tuple(switch)))
    assert run.crashed == {}
    assert held_at_the_end(run) == {"c0": 2, "c1": 2, "c2": 2}
    assert all(one.to_ms is not None for one in run.rebalances)


def test_a_joiner_in_the_first_join_phase_of_a_classic_group_dies() -> None:
    run = simulate(scenario(plan("c0", config=CLASSIC), plan("c1", 1_000)))
    assert list(run.crashed) == ["c1"]
    assert run.crashed["c1"].startswith("UNKNOWN_SERVER_ERROR")


def test_new_partitions_are_noticed_by_the_next_heartbeat() -> None:
    grow = Happening(at_ms=60_000, kind=Kind.GROW, topic="t", partitions=8)
    run = simulate(scenario(plan("c0"), plan("c1", 2_000), happenings=(grow,)))
    (last,) = [one for one in run.rebalances if one.from_ms >= 60_000]
    assert last.causes == ["the topics changed"]
    assert last.from_ms < 65_000
    assert held_at_the_end(run) == {"c0": 4, "c1": 4}


def test_a_pattern_brings_partitions_with_the_second_heartbeat() -> None:
    member = MemberPlan(name="c0", config=CONSUMER, pattern="t.*")
    run = simulate(scenario(member))
    assert held_at_the_end(run) == {"c0": 6}
    # The first answer contains no assignment; the second heartbeat, which acknowledges this, is
    # sent at once.
    assert [name for name, _ in run.empty_handed] == ["c0"]


def test_a_member_at_rest_costs_no_events() -> None:
    short, long = (
        simulate(scenario(plan("c0"), plan("c1", 2_000), until_ms=until)).events
        for until in (100_000, 1_000_000)
    )
    assert long - short < 20  # only requests for metadata


def test_given_ids_are_used() -> None:
    first, second = "AAAAAAAAAAEAAAAAAAAAAg", "BAAAAAAAAAEAAAAAAAAAAg"
    bounce = (
        Happening(at_ms=60_000, kind=Kind.STOP, member="c0"),
        Happening(at_ms=61_000, kind=Kind.START, member="c0"),
    )
    journal: list[Entry] = []
    member = plan("c0", member_ids=(first, second))
    simulate(scenario(member, happenings=bounce), journal=journal)
    text = "\n".join(map(str, journal))
    assert first in text
    assert second in text


def test_the_trace_has_epochs_and_assignments_by_name() -> None:
    journal: list[Entry] = []
    simulate(scenario(plan("c0"), partitions=2), journal=journal)
    text = list(lines(journal))
    assert any("-> 0: ConsumerGroupHeartbeat epoch=0 topics=(t) owned=()" in one for one in text)
    assert any("group g: Stable epoch=2, target of epoch 2" in one for one in text)
    answer = "coordinator -> c0: ConsumerGroupHeartbeat NONE epoch=2 assignment=(t-0 t-1)"
    assert any(answer in one for one in text)


def test_variants_are_comparable() -> None:
    classic = scenario(plan("c0", config=CLASSIC), plan("c1", config=CLASSIC))
    there = classic.with_consumer_protocol()
    assert there.has_consumer_protocol
    assert not classic.has_consumer_protocol
    back = there.with_protocol(eager=False)
    assert [one.config for one in back.members] == [CLASSIC, CLASSIC]
    assert totals(simulate(there)).settled_ms is not None


def test_a_group_of_the_consumer_protocol_is_played_with_its_ids() -> None:
    topic_id, ids = "AAAAAAAAAAEAAAAAAAAAAg", ("BAAAAAAAAAEAAAAAAAAAAg", "CAAAAAAAAAEAAAAAAAAAAg")
    group = GroupSpec(
        "g",
        (Topic("t", 6, topic_id=topic_id),),
        tuple(Member(one, ("t",)) for one in ids),
        assignor="consumer/range",
    )
    played = scenario_from_group(group, [AddMembers(1)])
    assert played.topics["t"].topic_id == topic_id
    assert [one.member_ids[0] for one in played.members[:2]] == list(ids)
    config = played.members[0].config
    assert isinstance(config, ConsumerConfig)
    assert (config.group_protocol, config.group_remote_assignor) == ("consumer", "range")
    assert sorted(held_at_the_end(simulate(played)).values()) == [2, 2, 2]


def test_scenario_files_refuse_settings_of_the_other_protocol() -> None:
    text = '[topics]\nt = 1\n[[member]]\nname = "c"\ngroup_protocol = "consumer"\n'
    assert read(text).members[0].config == CONSUMER
    with pytest.raises(GroupError) as error:
        read(text + 'session_timeout = "10s"\n')
    assert error.value.path == "member[0].session_timeout"
    with pytest.raises(GroupError) as error:
        read('[topics]\nt = { partitions = 1, topic_id = "x" }\n[[member]]\nname = "c"\n')
    assert error.value.path == "topics.t.topic_id"
