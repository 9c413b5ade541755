# SPDX-License-Identifier: Apache-2.0
"""Findings about logs that another coordinator wrote: refused logs, clocks, the order of bytes."""

from __future__ import annotations

import pytest

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.wire.broker_records import CurrentValue, decode_record
from kafka_rebalance.wire.consumer_protocol import (
    AssignmentData,
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from tests.support.played_coordinator import Answer, Played

START = {"op": "init", "at": 1_000_000, "cai": 0, "sai": 0, "tai": 0, "init_delay": 0}
TOPICS = {"op": "topics", "topics": {"t": 4}}
JOINS: Answer = {"op": "chb", "g": "g", "epoch": 0, "rt": 60_000, "topics": ["t"], "owned": {}}
SHARES: Answer = {"op": "shb", "g": "g", "m": "S", "epoch": 0, "topics": ["t"]}
STREAMS: Answer = {
    "op": "sthb",
    "g": "g",
    "m": "X",
    "epoch": 0,
    "rt": 60_000,
    "process": "p",
    "topology": {"epoch": 0, "subtopologies": {"0": {"sources": ["t"]}}},
    "active": {},
    "standby": {},
    "warmup": {},
}
LATE: Answer = {"op": "join", "g": "g", "m": "late", "protos": [["range", ""]]}


def raw(answers: list[Answer]) -> list[Answer]:
    """Returns commands that write the records of the answers to a log."""
    events = [one for answer in answers for one in answer["events"] if one["ev"] == "record"]
    return [{"op": "raw", "k": one["kb"], "v": one["vb"]} for one in events]


@pytest.mark.parametrize(
    ("first", "then"),
    [(JOINS, SHARES), (JOINS, STREAMS), (STREAMS, JOINS), (STREAMS, SHARES)],
    ids=["consumer-share", "consumer-streams", "streams-consumer", "streams-share"],
)
def test_a_group_that_a_late_join_has_removed_ends_the_partition(
    played: Played, first: Answer, then: Answer
) -> None:
    """The late JoinGroup removes the empty group without tombstones.

    So the records of the next group of that name do not fit when the log is loaded again:
    docs/reports/kafka-coordinator-refuses-its-log.md.
    """
    first = first | {"m": "A"}
    *_, late, joins, _, other, commit, listed = played(
        START,
        TOPICS,
        first,
        {"op": first["op"], "g": "g", "m": "A", "epoch": -1},
        LATE,
        then | {"m": "S"},
        {"op": "reload"},
        then | {"g": "h", "m": "S"},
        {"op": "commit", "g": "other", "topic": "t", "off": 1},
        {"op": "list"},
    )
    assert late["events"][-1]["err"] == "UNKNOWN_MEMBER_ID"
    assert joins["err"] == "NONE"
    assert [one["err"] for one in (other, commit)] == ["NOT_COORDINATOR"] * 2
    assert listed["groups"] == []


@pytest.mark.parametrize("value", ["0063", "00", "0000"])
def test_a_value_that_cannot_be_read_ends_the_partition(played: Played, value: str) -> None:
    hurt = {"op": "raw", "k": "0003000167", "v": value}
    *_, beat = played(START, TOPICS, hurt, {"op": "reload"}, JOINS | {"m": "A"})
    assert beat["err"] == "NOT_COORDINATOR"


def test_a_tombstone_without_those_before_it_ends_the_partition(played: Played) -> None:
    """The tombstone of a deleted group's target epoch is lost; the group's other tombstones are
    there.
    """
    written = played(START, TOPICS, JOINS | {"m": "A"})
    left = played(JOINS | {"m": "A", "epoch": -1}, {"op": "delete_group", "g": "g"})
    records = raw([*written, *left])
    torn = [one for one in records if one["v"] is not None or one["k"][:4] != "0006"]
    assert len(torn) == len(records) - 1
    answers = played(START, TOPICS, *torn, {"op": "reload"}, JOINS | {"m": "B"})
    assert answers[-1]["err"] == "NOT_COORDINATOR"
    answers = played(START, TOPICS, *records, {"op": "reload"}, JOINS | {"m": "B"})
    assert answers[-1]["err"] == "NONE"


@pytest.mark.parametrize("joins", [JOINS, SHARES])
def test_without_an_interval_the_age_of_targets_has_no_effect(
    played: Played, joins: Answer
) -> None:
    """The targets are younger than the clock of the broker that loads them."""
    records = raw(played(START | {"at": 1_000_500}, TOPICS, joins | {"m": "A"}))
    *_, beat, group = played(
        START, TOPICS, *records, {"op": "reload"}, joins | {"m": "B"}, {"op": "mstate", "g": "g"}
    )
    assert beat["epoch"] == 3
    assert group["state"]["assignment_epoch"] == 3


def joins_as_classic(topic: str) -> Answer:
    metadata = f"hex:{encode_subscription(Subscription((topic,), version=1)).hex()}"
    return {"op": "join", "g": "g", "pt": "consumer", "protos": [["range", metadata]], "v": 3}


def joined(answers: list[Answer]) -> Answer:
    """Returns the fields of the last answered JoinGroup that its SyncGroup repeats."""
    events = [one for answer in answers for one in answer["events"]]
    last = [one for one in events if one["ev"] == "join" and one["err"] == "NONE"][-1]
    return {"g": "g", "m": last["member"], "gen": last["gen"]}


def test_the_order_of_a_converted_members_partitions(played: Played) -> None:
    """12 partitions fill a default hash map of 16 slots; a copied hash set of them has 32."""
    owned = AssignmentData(tuple(TopicPartition("t", one) for one in range(8, 20)), None, 1)
    topics = {"op": "topics", "topics": {"t": 24}}
    member = joined(
        played(START, topics, joins_as_classic("t") | {"m": ""}, {"op": "advance", "ms": 0})
    )
    sync = {"op": "sync", **member, "pt": "consumer", "pn": "range"}
    _, converted = played(
        sync | {"asg": {member["m"]: f"hex:{encode_assignment(owned).hex()}"}},
        JOINS | {"m": "A", "topics": ["u"]},
    )
    records = [
        decode_record(bytes.fromhex(one["k"]), one["v"] and bytes.fromhex(one["v"]))
        for one in raw([converted])
    ]
    found = [one.value for one in records if one and isinstance(one.value, CurrentValue)]
    assigned = [partitions for value in found for _, partitions, _ in value.assigned]
    assert assigned == [(16, 17, 18, 19, *range(8, 16))]


def test_the_order_of_a_classic_members_partitions_in_a_consumer_group(played: Played) -> None:
    """The answer to SyncGroup has the order of a copied hash set, unlike the member's record."""
    topics = {"op": "topics", "topics": {"t": 24}}
    played(START, topics, JOINS | {"m": "A"})
    classic = joins_as_classic("t")
    member = joined(played(classic | {"m": ""}))
    beat = {"op": "chb", "g": "g", "m": "A", "epoch": 2}
    owned = played({"op": "sync", **member, "pt": "consumer", "pn": "range"}, beat)[1]["asg"]
    *_, synced = played(beat | {"owned": owned}, classic | {"m": member["m"]})
    member = joined([synced])
    (synced,) = played({"op": "sync", **member, "pt": "consumer", "pn": "range"})
    read = decode_assignment(bytes.fromhex(synced["events"][-1]["asg"][4:])).partitions
    assert [one.partition for one in read] == sorted({*range(24)} - {*owned["t"]})
