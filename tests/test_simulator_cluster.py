# SPDX-License-Identifier: Apache-2.0
"""Scenarios about the cluster: subscription patterns, new topics, lost brokers, old metadata."""

from __future__ import annotations

import pytest

from kafka_rebalance.errors import GroupError
from kafka_rebalance.simulator import Run, simulate, stops
from kafka_rebalance.simulator.scenario_files import read

GROUP = """
until = "10m"
[topics]
{topics}
[broker]
group_initial_rebalance_delay = "0s"
[members]
partition_assignment_strategy = ["range"]
{members}
[[member]]
name = "c"
count = 3
"""
NAMED = "t = 6\nlate = 3"


def _run(happening: str, *, topics: str = NAMED, members: str = "", seed: int = 1) -> Run:
    head = f"seed = {seed}\n" + GROUP.format(topics=topics, members=members)
    return simulate(read(f"{head}[[happening]]\n{happening}"))


def _held(run: Run) -> set[str]:
    return {one.partition for one in run.holds if one.to_ms == run.until_ms}


ALL = {*(f"t-{n}" for n in range(6)), *(f"late-{n}" for n in range(3))}
DELETE = 'at = "1m"\ndo = "delete-topic"\ntopic = "late"\n'
CREATE = 'at = "1m"\ndo = "create-topic"\ntopic = "late"\n'


def test_a_subscriber_by_name_sees_a_new_topic_within_the_longest_back_off() -> None:
    run = _run(CREATE)
    assert _held(run) == ALL
    (rebalance,) = [one for one in run.rebalances if one.from_ms > 10_000]
    assert 60_000 < rebalance.from_ms <= 61_100


def test_a_subscriber_by_pattern_sees_a_new_topic_when_its_metadata_are_too_old() -> None:
    later = [
        [one for one in run.rebalances if one.from_ms > 10_000]
        for run in (_run(CREATE, members='pattern = "t|l.*"', seed=seed) for seed in range(1, 9))
    ]
    # When the first member rejoins, the others refresh their metadata before they join, so there is
    # one rebalance, not three.
    assert {len(each) for each in later} == {1}
    waits = [each[0].from_ms - 60_000 for each in later]
    assert all(0 < wait <= 300_000 for wait in waits)
    assert max(waits) > 10_000
    assert _held(_run(CREATE, members='pattern = "t|l.*"')) == ALL


def test_a_pattern_matches_whole_names() -> None:
    assert _held(_run(CREATE, members='pattern = "t"')) == {f"t-{n}" for n in range(6)}


AWAY = 'at = "2m"\ndo = "away"\nfor = "20s"\n'


def test_a_broker_that_is_away_disturbs_nobody_but_readers() -> None:
    run = _run(AWAY, topics="t = 6")
    assert len(run.rebalances) == len([one for one in run.rebalances if one.from_ms < 10_000])
    unread = [(one.partition, one.from_ms, one.to_ms) for one in run.gaps if one.from_ms > 10_000]
    assert unread == [(f"t-{n}", 120_000, 140_000) for n in range(6)]
    assert [one for one in stops(run) if one.from_ms > 10_000] == []


def test_a_broker_leads_new_partitions_only_if_they_are_older_than_its_absence() -> None:
    grow = '\n[[happening]]\nat = "{}s"\ndo = "grow"\ntopic = "t"\npartitions = {}\n'
    changes = AWAY + grow.format(30, 8) + grow.format(130, 9)
    run = _run(changes, topics="t = 6", members='metadata_max_age = "5s"')
    away = {one.partition for one in run.gaps if one.from_ms >= 120_000 and one.to_ms == 140_000}
    assert away == {f"t-{n}" for n in range(8)}


def test_a_broker_leads_some_topics_only() -> None:
    run = _run(AWAY + 'topics = "u"\ncoordinates = false\n', topics="t = 6\nu = 2")
    unread = {one.partition for one in run.gaps if one.from_ms > 10_000}
    assert unread == {"u-0", "u-1"}


def test_a_leader_that_sees_no_topic_while_a_broker_starts_rebalances_once_more() -> None:
    """The topics disappear from the metadata and return; each change starts a rebalance."""
    seen = {
        len([one for one in run.rebalances if one.from_ms > 10_000])
        for run in (_run(AWAY + 'unseen = "4s"\n', topics="t = 6", seed=s) for s in range(1, 9))
    }
    assert seen == {2}
    run = _run(AWAY + 'unseen = "4s"\n', topics="t = 6")
    gone, back = [one for one in run.rebalances if one.from_ms > 10_000]
    assert 140_000 < gone.from_ms < 141_200
    assert 144_000 < back.from_ms < 148_500
    # Between the two rebalances, no member has a partition.
    assert gone.to_ms is not None
    assert [one for one in run.holds if one.from_ms < gone.to_ms < one.to_ms] == []
    assert _held(run) == {f"t-{n}" for n in range(6)}


RACKS = 't = { partitions = 6, racks = [["a", "b"], ["b", "b"]] }'


def test_a_leader_with_a_rack_rebalances_when_replicas_lose_theirs_and_have_it_again() -> None:
    away = AWAY + 'rack = "b"\ncoordinates = false\n'
    run = _run(away, topics=RACKS, members='client_rack = "a"')
    later = [one.from_ms for one in run.rebalances if one.from_ms > 10_000]
    assert len(later) == 2
    assert 120_000 < later[0] <= 121_100
    assert 140_000 < later[1] <= 141_100
    # Only partitions without a replica in another rack are unavailable.
    dark = {one.partition for one in run.holds if one.is_stuck}
    assert dark == {"t-1", "t-3", "t-5"}
    without = _run(away, topics=RACKS)
    assert [one for one in without.rebalances if one.from_ms > 10_000] == []


def test_absences_that_overlap_end_with_the_last() -> None:
    more = '[[happening]]\nat = "130s"\ndo = "move"\nfor = "1s"\n'
    run = _run(AWAY + more, topics="t = 6")
    assert [one for one in run.rebalances if one.from_ms > 10_000] == []
    assert run.crashed == {}


@pytest.mark.parametrize(
    ("happening", "problem"),
    [
        ('at = "1m"\ndo = "create-topic"\ntopic = "x"\n', r"happenings\[0\]\.topic: no topic 'x'"),
        (CREATE + "[[happening]]\n" + CREATE, r"happenings\[1\]\.topic: 'late' is created twice"),
        (
            'at = "1s"\ndo = "grow"\ntopic = "late"\npartitions = 9\n[[happening]]\n' + CREATE,
            r"happenings\[0\]\.topic: 'late' is not created yet",
        ),
        (DELETE + "[[happening]]\n" + DELETE, r"happenings\[1\]\.topic: 'late' is deleted already"),
        (AWAY + 'rack = "z"\n', r"happenings\[0\]\.rack: no replica is in rack 'z'"),
        (AWAY + 'rack = "z"\ntopics = "t"\n', "rack: cannot be combined with topics"),
        (AWAY + 'topics = "z"\n', r"happening\[0\]\.topics: 'z' is not a topic's name"),
        (AWAY + "unseen = 2\n", r'happening\[0\]\.unseen: 2 has no unit; write "2ms", "2s", "2m"'),
    ],
)
def test_errors_name_an_event_that_cannot_happen(happening: str, problem: str) -> None:
    with pytest.raises(GroupError, match=problem):
        _run(happening)
