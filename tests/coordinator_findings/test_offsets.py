# SPDX-License-Identifier: Apache-2.0
"""Findings about offsets and transactions: of groups that are absent or removed, or whose offsets
remain.
"""

from __future__ import annotations

import pytest

from kafka_rebalance.playback.driver_commands import topic_id as id_of
from kafka_rebalance.wire.group_records import (
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_value,
    tagged_topic_id,
)
from tests.support.played_coordinator import Answer, Played, keys

T, U = {"g": "s", "topic": "t"}, {"g": "s", "topic": "u"}
TOMBSTONE_OF_S = {"op": "raw", "k": encode_key(GroupMetadataKey("s")).hex(), "v": None}
A_MINUTE_LATER = {"op": "advance", "ms": 60_000}


# Open transactions without any offset


def test_an_open_transaction_without_offsets_does_not_keep_a_group(played: Played) -> None:
    *_, swept = played(
        {"op": "txncommit", **T, "off": 1, "pid": 1},
        {"op": "delete_offsets", **T},
        {"op": "cleanup"},
    )
    assert keys(swept) == [("s", True)]


def test_a_deleted_groups_transaction_does_not_keep_the_next_group_of_that_name(
    played: Played,
) -> None:
    *_, swept = played(
        {"op": "txncommit", **T, "off": 1, "pid": 1},
        {"op": "delete_group", "g": "s"},
        {"op": "commit", **U, "off": 2},
        A_MINUTE_LATER,
        {"op": "cleanup"},
    )
    assert keys(swept) == [("s/u/0", True), ("s", True)]


def test_an_open_transaction_with_an_offset_keeps_its_group(played: Played) -> None:
    *_, swept, _, swept_after_it = played(
        {"op": "txncommit", **T, "off": 1, "pid": 1},
        A_MINUTE_LATER,
        {"op": "cleanup"},
        {"op": "endtxn", "pid": 1, "commit": False},
        {"op": "cleanup"},
    )
    assert keys(swept) == []
    assert keys(swept_after_it) == [("s", True)]


# Offsets that outlive their group


def test_a_join_whose_first_record_fails_is_answered_although_offsets_are_left(
    played: Played,
) -> None:
    *_, joined, state = played(
        {"op": "commit", **T, "off": 1},
        TOMBSTONE_OF_S,
        {"op": "reload"},
        {"op": "fail_next", "err": "NOT_ENOUGH_REPLICAS"},
        {"op": "join", "g": "s", "v": 3, "protos": [["range", ""]]},
        {"op": "state", "g": "s"},
    )
    (event,) = joined["events"]
    assert (event["ev"], event["err"]) == ("join", "COORDINATOR_NOT_AVAILABLE")
    assert state["state"]["state"] == "ABSENT:GROUP_ID_NOT_FOUND"


def test_offsets_of_a_group_without_a_durable_record_count_as_those_of_no_group(
    played: Played,
) -> None:
    *_, before, _, after = played(
        {"op": "commit", **T, "off": 1},
        TOMBSTONE_OF_S,
        {"op": "reload"},
        {"op": "hold"},
        {"op": "join", "g": "s", "v": 3, "protos": [["range", ""]]},
        {"op": "fetch", **T},
        {"op": "release"},
        {"op": "fetch", **T},
    )
    assert (before["off"], after["off"]) == (-1, 1)


def test_such_offsets_count_as_those_of_no_group_even_if_one_is_deleted(played: Played) -> None:
    *_, fetched = played(
        {"op": "commit", **T, "off": 1},
        {"op": "commit", **U, "off": 2},
        TOMBSTONE_OF_S,
        {"op": "reload"},
        {"op": "hold"},
        {"op": "topic_deleted", "topic": "u"},
        {"op": "commit", **U, "off": 3},
        {"op": "fetch", **T},
    )
    assert fetched["off"] == -1


# Offsets of a topic that was deleted


@pytest.mark.parametrize(("topic_id", "is_deleted"), [("t#1", False), ("t#2", True), (None, True)])
def test_an_offset_of_a_topic_with_the_same_name_and_another_id_remains(
    played: Played, topic_id: str | None, is_deleted: bool
) -> None:
    tagged = tagged_topic_id(None if topic_id is None else id_of(topic_id))
    value = OffsetCommitValue(7, -1, "", 1_000_000, version=4, tagged=tagged)
    *_, changed = played(
        {"op": "topics", "topics": {"t": {"partitions": 1, "id": "t#2"}}},
        {
            "op": "raw",
            "k": encode_key(OffsetCommitKey("s", "t", 0)).hex(),
            "v": encode_value(value).hex(),
        },
        {"op": "reload"},
        {"op": "topics", "topics": {"t": {"partitions": 1, "id": "t#3"}}},
    )
    assert keys(changed) == [("s/t/0", True)] * is_deleted


# Empty group ids


@pytest.mark.parametrize("op", ["delete_offsets", "txncommit"])
def test_an_empty_group_id_is_invalid(played: Played, op: str) -> None:
    (answer,) = played({"op": op, "g": "", "off": 1, "pid": 1})
    assert answer["err"] == "INVALID_GROUP_ID"
    assert keys(answer) == []


def test_simple_consumers_may_commit_to_the_empty_group(played: Played) -> None:
    commit, fetch = played({"op": "commit", "g": "", "off": 1}, {"op": "fetch", "g": ""})
    assert (commit["err"], fetch["off"]) == ("NONE", 1)


# The stored fields of a commit


@pytest.mark.parametrize("op", ["commit", "txncommit"])
def test_a_leader_epoch_is_stored_as_it_was_sent(played: Played, op: str) -> None:
    commit, _, fetch = played(
        {"op": op, **T, "off": 1, "le": -2, "pid": 1},
        {"op": "endtxn", "pid": 1, "commit": True},
        {"op": "fetch", **T},
    )
    assert commit["events"][0]["vb"].startswith("00040000000000000001fffffffe")
    assert fetch["le"] == -2


@pytest.mark.parametrize("nothing", [{}, {"off": 1, "md": "long" * 2_000}])
def test_a_group_without_a_record_is_listed_with_the_next_append(
    played: Played, nothing: Answer
) -> None:
    _, listed, described, known, _, with_a_record = played(
        {"op": "commit", **T, **nothing},
        {"op": "list"},
        {"op": "describe", "g": "s"},
        {"op": "state", "g": "s"},
        {"op": "commit", "g": "another", "off": 1},
        {"op": "list"},
    )
    assert listed["groups"] == []
    assert described["state"] == "Dead"
    assert known["state"]["state"] == "Empty"
    assert [one["g"] for one in with_a_record["groups"]] == ["another", "s"]


def test_a_group_without_a_record_goes_with_an_append_that_fails(played: Played) -> None:
    *_, state = played(
        {"op": "commit", **T},
        {"op": "fail_next", "err": "NOT_ENOUGH_REPLICAS"},
        {"op": "commit", "g": "another", "off": 1},
        {"op": "state", "g": "s"},
    )
    assert state["state"]["state"] == "ABSENT:GROUP_ID_NOT_FOUND"


# Transactions of a removed group


def test_a_stable_fetch_sees_transactions_of_a_group_that_is_gone(played: Played) -> None:
    *_, plain, stable, _, ended = played(
        {"op": "txncommit", **T, "off": 1, "pid": 1},
        TOMBSTONE_OF_S,
        {"op": "reload"},
        {"op": "fetch", **T},
        {"op": "fetch", **T, "stable": True},
        {"op": "endtxn", "pid": 1, "commit": True},
        {"op": "fetch", **T, "stable": True},
    )
    assert (plain["err"], plain["off"]) == ("NONE", -1)
    assert (stable["err"], stable["off"]) == ("UNSTABLE_OFFSET_COMMIT", -1)
    assert (ended["err"], ended["off"]) == ("NONE", -1)


# Refusals and retention


@pytest.mark.parametrize(
    ("version", "code"), [(5, "ILLEGAL_GENERATION"), (6, "GROUP_ID_NOT_FOUND")]
)
def test_a_transaction_of_an_absent_group_is_refused_by_version(
    played: Played, version: int, code: str
) -> None:
    (answer,) = played({"op": "txncommit", **T, "off": 1, "pid": 1, "gen": 1, "v": version})
    assert answer["err"] == code


def test_a_retention_of_minus_1_counts_as_none(played: Played) -> None:
    commit, swept, _, swept_later = played(
        {"op": "commit", **T, "off": 1, "retention": -1},
        {"op": "cleanup"},
        A_MINUTE_LATER,
        {"op": "cleanup"},
    )
    assert commit["events"][0]["ver"] == 4
    assert keys(swept) == []
    assert keys(swept_later) == [("s/t/0", True), ("s", True)]
