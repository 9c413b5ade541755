# SPDX-License-Identifier: Apache-2.0
"""Recorded rebalances are computed again, and their events are played under other assignors."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.coordinator.machine.events import Append
from kafka_rebalance.history.all_groups import recorded_generations
from kafka_rebalance.history.counterfactual import Counterfactual, counterfactuals
from kafka_rebalance.history.recorded import total_moves
from kafka_rebalance.history.records import OffsetsRecord, read_records
from kafka_rebalance.history.replayed import recorded_group, replay, replay_shares
from kafka_rebalance.member.config import ConsumerConfig
from kafka_rebalance.simulator import Happening, Kind, MemberPlan, TopicPlan
from kafka_rebalance.simulator.journal import CoordinatorEntry, Entry
from kafka_rebalance.simulator.measure import totals
from kafka_rebalance.wire.consumer_protocol import AssignmentData
from tests.test_history import RELEASES, VECTORS, records_of

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_rebalance.assignors.registry import Engine
    from kafka_rebalance.history.all_groups import Recorded
    from kafka_rebalance.history.group_log import RecordedGeneration


def generations_of(release: str) -> list[RecordedGeneration]:
    return [one for _, one in recorded_generations(records_of(release)) if one is not None]


@pytest.mark.parametrize(("release", "rebalances"), [("4.4.0", 97), ("3.6.2", 59), ("2.4.1", 43)])
def test_every_recorded_rebalance_comes_out_equal(
    release: str, rebalances: int, engine: Engine
) -> None:
    """The leader's own assignor (Java's, kafka-python's, librdkafka's) gives its answer again."""
    replayed = replay(generations_of(release), engine=engine)
    print(*replay_shares(replayed), sep="\n")
    assert [one for one in replayed if not one.equal] == []
    assert len(replayed) == rebalances
    assert {one.leader_library for one in replayed} == {"java", "python", "librdkafka"}


@pytest.mark.parametrize(
    ("library", "package", "own"), [("kafka-python", "kafka", 4), ("aiokafka", "aiokafka", 4)]
)
def test_the_own_sticky_of_a_python_library_gives_its_answer_again(
    library: str, package: str, own: int
) -> None:
    """Four real consumers join one after another, with different topics, and two of them leave.

    kafka-python's user data begin with a version that Kafka's sticky does not know.
    """
    pytest.importorskip(package, reason=f"{library} is not installed")
    records = read_records(str(VECTORS / f"{library}-sticky.records.jsonl"))
    replayed = replay([one for _, one in recorded_generations(records) if one is not None])
    assert [one for one in replayed if not one.equal] == []
    by = Counter(one.computed_by for one in replayed)
    assert set(by) == {"sticky", f"{library}/sticky"}
    assert by[f"{library}/sticky"] == own


def test_what_a_record_of_kafka_python_lacks_is_named() -> None:
    pytest.importorskip("kafka", reason="kafka-python is not installed")
    records = read_records(str(VECTORS / "kafka-python-sticky.records.jsonl"))
    generations = [one for _, one in recorded_generations(records) if one is not None]
    one = next(one for one in generations if len(one.members) == 3)
    (found,) = replay([_swapped(one)])
    assert (found.equal, found.computed_by) == (False, "kafka-python/sticky")
    assert found.likely.endswith("or other topics, or ran another version of kafka-python")
    sent = one.members[0].subscription
    assert sent is not None
    assert sent.user_data is not None
    older = replace(sent, user_data=sent.user_data[:-4] + bytes((0, 0, 0, 1)))
    twice = replace(one.members[1], subscription=older)
    (found,) = replay([_swapped(replace(one, members=(one.members[0], twice, *one.members[2:])))])
    assert found.likely == (
        "members claim a partition in two generations; the class then follows the order of a "
        "Python set, which is not in the record"
    )


def test_bytes_that_are_no_consumers_are_not_computed() -> None:
    records = read_records(str(VECTORS / "every_line-4.4.0.records.jsonl.gz"))
    generations = [one for _, one in recorded_generations(records) if one is not None]
    replayed = replay(generations)
    counts = Counter(one.equal for one in replayed)
    assert counts == {True: 23, None: 2}
    assert {one.difference for one in replayed if one.equal is None} == {
        "a member's bytes cannot be read"
    }


def _swapped(one: RecordedGeneration) -> RecordedGeneration:
    """Returns the record with the first partitions of its first two members exchanged."""
    first, second, *others = one.members
    a, b = first.assignment, second.assignment
    assert a is not None
    assert b is not None
    first = replace(first, assignment=replace(a, partitions=(b.partitions[0], *a.partitions[1:])))
    second = replace(second, assignment=replace(b, partitions=(a.partitions[0], *b.partitions[1:])))
    return replace(one, members=(first, second, *others))


def test_a_difference_names_its_member_and_partition() -> None:
    one = next(g for g in generations_of("4.4.0") if g.protocol == "range" and len(g.members) > 2)
    (found,) = replay([_swapped(one)])
    given = one.members[1].assignment
    assert given is not None
    assert found.equal is False
    assert found.difference.startswith(f"{one.members[0].member_id}: was given")
    assert str(given.partitions[0]) in found.difference
    assert found.likely == "the leader knew other partition counts, or other topics"


def test_a_leader_that_ignores_generations_is_recognised() -> None:
    """Two members claim all partitions, in different generations; the leader ignored the
    generations.
    """
    one = next(g for g in generations_of("4.4.0") if g.group_id == "billing" and g.members)
    assert one.protocol == "cooperative-sticky"
    claims = tuple(sorted(one.owners))
    members = []
    for generation_id, member in zip((4, 5), one.members, strict=True):
        sent = member.subscription
        assert sent is not None
        sent = replace(sent, owned_partitions=claims, generation_id=generation_id, user_data=None)
        members.append(replace(member, subscription=sent))
    stale = replace(one, members=tuple(members))
    group = recorded_group(stale, _topics(one))
    without = tuple(
        replace(m, generation_id=None, user_data_generation_id=None) for m in group.members
    )
    answer = kr.assign(group.edited(members=without))
    assert dict(answer) != dict(kr.assign(group))
    given = tuple(replace(m, assignment=AssignmentData(answer[m.member_id])) for m in members)
    (found,) = replay([replace(stale, members=given)])
    assert (found.equal, found.likely) == (False, "equal if the leader ignored generations")


def test_a_difference_for_lack_of_racks_asks_for_them() -> None:
    """Members of librdkafka sent racks: the answer is equal only with the racks of the
    partitions.
    """
    name = "librdkafka/cooperative-sticky"
    one = next(
        g for g in generations_of("4.4.0")
        if g.leader_library == "librdkafka" and len(g.members) == 2 and len(g.topics) == 1
    )  # fmt: skip
    (topic,) = one.topics
    with_racks = tuple(
        replace(m, subscription=replace(m.subscription, rack_id=rack, owned_partitions=()))
        for m, rack in zip(one.members, "ab", strict=True)
        if m.subscription is not None
    )
    one = replace(one, members=with_racks, protocol="cooperative-sticky")
    count = 1 + max(tp.partition for tp in one.owners)
    racks = [kr.Topic(topic, count, tuple(("ab"[p % 2],) for p in range(count)))]
    answer = kr.assign(recorded_group(one, racks, name))
    assert dict(answer) != dict(kr.assign(recorded_group(one, [kr.Topic(topic, count)], name)))
    given = tuple(
        replace(m, assignment=replace(m.assignment, partitions=answer[m.member_id]))
        for m in with_racks
        if m.assignment is not None
    )
    one = replace(one, members=given)
    (found,) = replay([one])
    assert (found.equal, found.leader_library) == (False, "librdkafka")
    assert found.likely == (
        "members sent racks, and records lack those of partitions; give the topics with their "
        "racks (--topics)"
    )
    assert [again.equal for again in replay([one], racks)] == [True]


def test_a_leader_may_lack_the_metadata_of_topics_that_only_others_read() -> None:
    """The group of a real run (kafka-python with our plug-in), after its first leader left.

    The new leader reads only `a`. Generation 6 leaves out `b`, although its reader claims it; the
    next one, with the metadata of `b`, assigns it again.
    """
    records = read_records(str(VECTORS / "late-topic.records.jsonl"))
    generations = [one for _, one in recorded_generations(records) if one is not None]
    late, next_one = replay(generations[-2:])
    assert [(one.equal, one.counts) for one in (late, next_one)] == [
        (True, "assigned topics"),
        (True, "assignments"),
    ]
    one = generations[-2]
    assert {tp.topic for tp in one.owners} == {"kafka-python-a"}
    assert {tp.topic for member in one.members for tp in member.claims} > {"kafka-python-a"}
    # A leader that reads a topic has its metadata: then the answer must be another one.
    leaders = [member for member in one.members if len(member.topics) > 1]
    (found,) = replay([replace(one, leader=leaders[0].member_id)])
    assert found.equal is False


def _topics(one: RecordedGeneration) -> list[kr.Topic]:
    counts: dict[str, int] = {}
    for member in one.members:
        for tp in member.assigned | member.claims:
            counts[tp.topic] = max(counts.get(tp.topic, 0), tp.partition + 1)
    return [kr.Topic(*item) for item in sorted(counts.items())]


def test_the_inventory_counts_where_it_fits() -> None:
    one = next(g for g in generations_of("4.4.0") if g.group_id == "orders" and g.members)
    assert {tp.topic for tp in one.owners} == {"orders-a"}
    right, later = kr.Topic("orders-a", 6), kr.Topic("orders-a", 9)
    assert [(r.equal, r.counts) for r in replay([one], [right])] == [(True, "inventory")]
    # Partitions were added later: with today's count the answer would differ.
    assert [(r.equal, r.counts) for r in replay([one], [later])] == [(True, "assignments")]
    assert [(r.equal, r.counts) for r in replay([one])] == [(True, "assignments")]


# Counterfactuals ----------------------------------------------------------------------------------


def recorded_of(release: str, group_id: str) -> Recorded:
    found = recorded_generations(records_of(release))
    return [one for one in found if one[0].group_id == group_id]


def played(recorded: Recorded, assignor: str, *, static: bool = False) -> Counterfactual:
    (found,) = (
        one
        for one in counterfactuals(recorded)
        if (one.assignor, one.is_static) == (assignor, static)
    )
    return found


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("group_id", "assignor"),
    [
        ("orders", "range"),
        ("ledger", "range"),
        ("mixed", "range"),
        ("billing", "cooperative-sticky"),
    ],
)
def test_the_groups_own_assignor_makes_the_recorded_moves(
    release: str, group_id: str, assignor: str
) -> None:
    """Played under its own assignor, the group makes as many moves as were recorded."""
    recorded = recorded_of(release, group_id)
    assert played(recorded, assignor).moves == total_moves([row for row, _ in recorded])


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_the_play_equals_plan_for_the_same_sequence(assignor: str) -> None:
    """Members of `rdk` leave one after another until one is left."""
    recorded = recorded_of("4.4.0", "rdk")
    rows = [row for row, _ in recorded]
    first = next(i for i, row in enumerate(rows) if row.generation_id == 13)
    last = next(i for i, row in enumerate(rows) if row.generation_id == 18)
    part = recorded[first : last + 1]
    gone = [member for row, _ in part[1:] for member in row.left]
    assert len(gone) == 4
    found = played(part, assignor)

    start = part[0][1]
    assert start is not None
    plain = tuple(
        kr.Member(m.member_id, tuple(sorted(m.topics)), None, m.client_id, m.client_host)
        for m in start.members
    )
    group = kr.GroupSpec("rdk", tuple(_topics(start)), plain, assignor, 0)
    changes = [kr.RemoveMembers(member=member) for member in gone]
    began = kr.plan(group, assignor)
    rest = kr.plan(began.final, assignor, changes)
    assert found.moves == began.moves + rest.moves
    assert found.rebalances == len(began.rounds) + len(rest.rounds)
    assert found.unavailable == sum(began.unavailable.values()) + sum(rest.unavailable.values())


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_the_play_equals_simulate_for_the_same_sequence(assignor: str) -> None:
    """Playing a simulation's records makes as many moves and rounds as the simulation.

    Members join and leave one by one. Simulated members make no periodic commits, so the records do
    not show why a member is missing.
    """
    config = ConsumerConfig(partition_assignment_strategy=(assignor,))
    late = {"c3": 60_000, "c4": 120_000}
    stops = {"c1": 180_000, "c3": 240_000, "c0": 300_000}
    names = ["c0", "c1", "c2", *late]
    scenario = kr.Scenario(
        title="test",
        topics={"t": TopicPlan(partitions=7), "u": TopicPlan(partitions=4)},
        members=tuple(
            MemberPlan(name=name, config=config, topics=("t", "u"), start_ms=late.get(name, 0))
            for name in names
        ),
        happenings=tuple(
            Happening(at_ms=at, kind=Kind.STOP, member=name) for name, at in stops.items()
        ),
        until_ms=360_000,
    )
    journal: list[Entry] = []
    run = kr.simulate(scenario, journal=journal)
    recorded = recorded_generations(_written(journal))
    changes = [(len(row.joined), len(row.left)) for row, _ in recorded if row.joined or row.left]
    assert changes == [(3, 0), (1, 0), (1, 0), (0, 1), (0, 1), (0, 1)]
    found = played(recorded, assignor)
    assert found.moves == 7 + 4 + totals(run).moves
    assert found.rebalances == sum(one.rounds for one in run.rebalances)


def _written(journal: list[Entry]) -> list[OffsetsRecord]:
    """Returns the records that the coordinator appended."""
    appended = [
        (entry.at_ms, record)
        for entry in journal
        if isinstance(entry, CoordinatorEntry)
        for effect in entry.effects
        if isinstance(effect, Append)
        for record in effect.records
    ]
    return [OffsetsRecord(0, at, ms, *record) for at, (ms, record) in enumerate(appended)]


def test_static_members_would_have_spared_the_rolling_restarts() -> None:
    """The script restarted three members twice each; for static members, restarts are no events."""
    recorded = recorded_of("4.4.0", "shop")
    dynamic, static = played(recorded, "range"), played(recorded, "range", static=True)
    assert dynamic.events - static.events == 2 * 6
    assert static.session_ms == 4_000
    assert static.waiting > 0
    assert static.moves < dynamic.moves
    (none,) = {one.is_static for one in counterfactuals(recorded_of("4.4.0", "ledger"))}
    assert none is False  # nobody came back under a new id in that group


def test_the_command_prints_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(VECTORS / "kafka-4.4.0" / "records.jsonl.gz")
    topics = tmp_path / "topics.jsonl"
    topics.write_text('{"name": "orders-a", "partitions": 9}\n', encoding="utf-8")
    words = ["history", path, "--group", "orders", "--topics", str(topics)]
    assert main([*words, "--replay"]) == 0
    assert "range      java     13 of 13" in capsys.readouterr().out
    assert main([*words, "--replay", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {line["counts"] for line in lines} == {"inventory", "assignments"}
    assert main([*words, "--what-if"]) == 0
    assert "Recorded: 13 rebalances, 61 moves" in capsys.readouterr().out
    topics.write_text('\n{"name": "orders-a"}\n', encoding="utf-8")
    assert main([*words, "--replay"]) == 2
    assert "topics.jsonl:1" in capsys.readouterr().err
