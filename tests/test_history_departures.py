# SPDX-License-Identifier: Apache-2.0
"""A member's silence shows an expiry or a stuck member only soon after its timeout.

Whether a member left or timed out is judged on real runs: `tests/test_history.py` and `python -m
tests.history_live`, which runs groups on quiet topics. This file tests the limits.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.history.departures import CommitsSeen, CommitTimes, departure
from kafka_rebalance.history.group_log import RecordedGeneration, RecordedMember
from kafka_rebalance.wire.consumer_protocol import AssignmentData

SESSION_MS, POLL_MS, COMMIT_MS = 45_000, 300_000, 5_000
JOINED_MS = 1_000_000
LAST_MS = JOINED_MS + 600_000  # the member's last commit
OWN, OTHERS = TopicPartition("t", 0), TopicPartition("t", 1)


def _member(name: str, tp: TopicPartition, instance: str | None = None) -> RecordedMember:
    given = AssignmentData((tp,))
    return RecordedMember(name, instance, name, "/h", SESSION_MS, POLL_MS, None, given)


def _generation(members: tuple[RecordedMember, ...], number: int, at_ms: int) -> RecordedGeneration:
    return RecordedGeneration(
        "g", 0, number, at_ms, at_ms, "consumer", number, "range", "stays", members
    )


def _went(
    silence_ms: int,
    *,
    instance: str | None = None,
    distance_ms: int = COMMIT_MS,
    others_ms: int | None = 0,
) -> tuple[str, str]:
    """Returns the cause for a member that had committed until `silence_ms` before it was gone.

    `others_ms` is how long before that time a remaining member had committed; None: never.
    """
    went, stays = _member("went", OWN, instance), _member("stays", OTHERS)
    gone_ms = LAST_MS + silence_ms
    commits = CommitsSeen()
    count = 1 + (LAST_MS - JOINED_MS) // distance_ms
    commits.add({OWN: CommitTimes(LAST_MS - (count - 1) * distance_ms, LAST_MS, count)})
    if others_ms is not None:
        commits.add({OTHERS: CommitTimes(JOINED_MS, gone_ms - others_ms, 100)})
    before = _generation((went, stays), 1, JOINED_MS)
    cause = departure(went, before, _generation((stays,), 2, gone_ms), commits, JOINED_MS)
    return cause.kind, cause.certainty


@pytest.mark.parametrize(
    ("silence_ms", "expected"),
    [
        (44_999, ("left", "exact")),
        (45_000, ("timed out", "likely")),
        (65_000, ("timed out", "likely")),  # 45 s + 5 s + a third of 45 s
        (65_001, ("gone", "unknown")),
        (299_999, ("gone", "unknown")),
        (300_000, ("left", "likely")),
        (320_000, ("left", "likely")),
        (320_001, ("gone", "unknown")),
        (1_099_400, ("gone", "unknown")),
    ],
)
def test_a_silence_shows_a_timeout_only_soon_after_it(
    silence_ms: int, expected: tuple[str, str]
) -> None:
    assert _went(silence_ms) == expected


def test_a_static_member_that_is_stuck_does_not_leave() -> None:
    assert _went(310_000, instance="i") == ("gone", "unknown")


@pytest.mark.parametrize(
    ("distance_ms", "others_ms", "expected"),
    [
        (25_000, 0, "timed out"),
        (30_000, 0, "gone"),  # the member is often silent for half of this time
        (600_001, 0, "gone"),  # a single commit shows no distance
        (COMMIT_MS, None, "gone"),
        (COMMIT_MS, 50_000, "gone"),  # all stopped at that time: nothing was left to commit
        (COMMIT_MS, 40_000, "timed out"),
    ],
)
def test_a_silence_shows_nothing_if_the_member_had_perhaps_nothing_to_commit(
    distance_ms: int, others_ms: int | None, expected: str
) -> None:
    assert _went(52_000, distance_ms=distance_ms, others_ms=others_ms)[0] == expected


def test_a_member_that_was_gone_within_its_session_has_left_whatever_it_committed() -> None:
    went = _member("went", OWN)
    before = _generation((went,), 1, JOINED_MS)
    after = _generation((), 2, JOINED_MS + SESSION_MS - 1)
    cause = departure(went, before, after, CommitsSeen(), JOINED_MS)
    assert (cause.kind, cause.certainty) == ("left", "exact")
    idle = replace(went, assignment=None)
    later = _generation((), 2, JOINED_MS + SESSION_MS)
    for member in (went, idle):
        cause = departure(member, before, later, CommitsSeen(), JOINED_MS)
        assert (cause.kind, cause.certainty) == ("gone", "unknown")


def test_a_task_with_two_source_topics_commits_each_of_them_at_its_own_distance() -> None:
    task, commits = TopicPartition("0", 0), CommitsSeen()
    for topic in ("clicks", "views"):
        commits.add({TopicPartition(topic, 0): CommitTimes(0, 60_000, 13)}, task)
    assert commits.usual_ms(_member("went", task)) == COMMIT_MS
