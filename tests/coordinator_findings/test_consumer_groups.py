# SPDX-License-Identifier: Apache-2.0
"""Findings about consumer groups, and about fetches and lists that meet them."""

from __future__ import annotations

import pytest

from kafka_rebalance.coordinator.consumer_group.group import ConsumerGroup
from kafka_rebalance.coordinator.coordinator import Coordinator
from kafka_rebalance.coordinator.machine.events import Append, Appended, Received, Silent
from kafka_rebalance.wire.broker_groups import ConsumerGroupHeartbeat
from kafka_rebalance.wire.broker_records import (
    BrokerRecord,
    CurrentValue,
    EpochValue,
    MemberValue,
    RecordKey,
    RecordType,
    TargetEpochValue,
    decode_record,
    encode_record,
)
from kafka_rebalance.wire.classic_groups import JoinGroup, JoinGroupProtocol
from kafka_rebalance.wire.consumer_protocol import Subscription, encode_subscription
from kafka_rebalance.wire.messages import Request, Tick
from tests.support.played_coordinator import Answer, Played
from tools.member_ids import Ids

T = {"g": "s", "topic": "t"}


def member_of_records(
    pattern: str = "", state: int = 0, instance_id: str | None = None
) -> list[Answer]:
    """Returns commands after which the group `c` has the member `A` in epoch 1."""
    member = MemberValue(instance_id, None, "", "/127.0.0.1", (), pattern, 60_000, None)
    records: dict[RecordType, object] = {
        RecordType.CONSUMER_GROUP_METADATA: EpochValue(1),
        RecordType.CONSUMER_GROUP_MEMBER_METADATA: member,
        RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: TargetEpochValue(1),
        RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: CurrentValue(1, 0, state, (), ()),
    }
    commands: list[Answer] = []
    for kind, content in records.items():
        name = "A" if "MEMBER" in kind.name else None
        key, value = encode_record(BrokerRecord(RecordKey(kind, "c", name), content))
        assert value is not None
        commands.append({"op": "raw", "k": key.hex(), "v": value.hex()})
    return [*commands, {"op": "reload"}]


BEAT = {"op": "chb", "g": "c", "m": "A", "epoch": 1}
JOINS = {**BEAT, "epoch": 0, "rt": 60_000, "topics": ["t"], "owned": {}}


def test_a_pattern_of_a_record_that_is_not_valid_matches_no_topic(played: Played) -> None:
    *_, beat = played(
        {"op": "topics", "topics": {"t": 1}},
        *member_of_records(pattern="("),
        BEAT,
    )
    assert (beat["err"], beat["epoch"]) == ("NONE", 1)
    kinds = [RecordType(int(one["kb"][:4], 16)) for one in beat["events"] if "kb" in one]
    assert RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION in kinds


def test_an_unknown_state_of_a_member_is_written_again_as_kafka_writes_it(played: Played) -> None:
    *_, left = played(
        *member_of_records(state=9, instance_id="i"), {**BEAT, "inst": "i", "epoch": -2}
    )
    assert left["err"] == "NONE"
    (written,) = [one for one in left["events"] if one["ev"] == "record"]
    record = decode_record(bytes.fromhex(written["kb"]), bytes.fromhex(written["vb"]))
    assert record is not None
    assert isinstance(record.value, CurrentValue)
    assert record.value.state == 127


def test_a_blank_text_has_only_characters_up_to_u0020(played: Played) -> None:
    blank, wide = played({**JOINS, "m": "\x01 \t"}, {**JOINS, "m": "\u3000"})
    assert (blank["err"], wide["err"]) == ("INVALID_REQUEST", "NONE")


def test_an_empty_id_of_a_described_consumer_group(played: Played) -> None:
    empty, absent = played({"op": "cdescribe", "g": ""}, {"op": "cdescribe", "g": "no"})
    assert (empty["err"], absent["err"]) == ("INVALID_GROUP_ID", "GROUP_ID_NOT_FOUND")


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"states": ["Stable"]}, ["c"]),
        ({"states": ["stable"], "types": ["Consumer"]}, ["c"]),
        ({"states": ["Reconciling"]}, []),
        ({"states": ["Empty"]}, ["s"]),
        ({"types": ["classic"]}, ["s"]),
        ({"types": ["share"]}, []),
    ],
)
def test_groups_of_both_kinds_are_listed_by_the_names_of_states(
    played: Played, filters: Answer, found: list[str]
) -> None:
    *_, listed = played({"op": "commit", **T, "off": 1}, JOINS, {"op": "list", **filters})
    assert [one["g"] for one in listed["groups"]] == found


def test_the_order_of_members_after_two_failed_appends_with_another_in_flight(
    played: Played,
) -> None:
    """A failed departure puts its member last in its slot of the table."""
    fails: Answer = {"op": "fail_next", "err": "NOT_ENOUGH_REPLICAS"}
    joins: list[Answer] = [{**JOINS, "m": name} for name in "GHD"]
    in_flight: list[Answer] = [{"op": "hold"}, {**JOINS, "m": "A"}]
    departures: list[Answer] = [
        command for name in "HD" for command in (fails, {**BEAT, "m": name, "epoch": -1})
    ]
    topics: Answer = {"op": "topics", "topics": {"t": 4}}
    after: list[Answer] = [{"op": "release"}, {"op": "cdescribe", "g": "c"}]
    *_, answer = played(topics, *joins, *in_flight, *departures, *after)
    assert list(answer["members"]) == ["D", "A", "H", "G"]


@pytest.mark.parametrize(
    ("member", "error"),
    [
        ({}, "NONE"),
        ({"m": "A", "epoch": 2}, "NONE"),
        ({"m": "A", "epoch": 1}, "STALE_MEMBER_EPOCH"),
        ({"m": "A", "epoch": 3}, "STALE_MEMBER_EPOCH"),
        ({"m": "A"}, "STALE_MEMBER_EPOCH"),
        ({"m": "B", "epoch": 2}, "UNKNOWN_MEMBER_ID"),
        ({"m": "", "epoch": -1}, "UNKNOWN_MEMBER_ID"),
    ],
)
def test_a_fetch_with_a_members_epoch(played: Played, member: Answer, error: str) -> None:
    *_, fetched = played(JOINS, {"op": "fetch", "g": "c", "topic": "t", **member})
    assert fetched["gerr"] == error


def test_a_silent_member_of_a_consumer_group_times_out() -> None:
    coordinator = Coordinator(vouched=True)
    for number, name in enumerate(("A", "B")):
        join = ConsumerGroupHeartbeat(
            group_id="c",
            member_id=name,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=("t",),
            topic_partitions=(),
        )
        append = coordinator.handle(Received(number, join), 0)[0]
        assert isinstance(append, Append)
        coordinator.handle(Appended(append.append_id, number), 0)
    assert coordinator.deadlines() == {}
    coordinator.handle(Silent("c", "A", 10_000), 12_000)
    assert {str(key): at for key, at in coordinator.deadlines().items()} == {
        "session-timeout-c-A": 10_000 + coordinator.config.group_consumer_session_timeout_ms
    }
    coordinator.handle(Tick(), 55_000)
    assert list(group_of(coordinator, "c").members) == ["B"]


def test_a_classic_member_of_a_consumer_group_that_the_host_vouches_for() -> None:
    coordinator = Coordinator(vouched=True)
    metadata = encode_subscription(Subscription(("t",)))
    heartbeat = ConsumerGroupHeartbeat(
        group_id="c",
        member_id="A",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )
    join = JoinGroup(group_id="c", protocols=(JoinGroupProtocol("range", metadata),))
    requests: list[Request] = [heartbeat, join]
    for number, request in enumerate(requests):
        append = coordinator.handle(Received(number, request, 3), 0)[0]
        assert isinstance(append, Append)
        coordinator.handle(Appended(append.append_id, number), 0)
    (classic,) = [one for one in group_of(coordinator, "c").members if one != "A"]
    assert {key.kind for key in coordinator.deadlines()} == {"sync"}
    coordinator.handle(Silent("c", classic, 0), 50_000)
    assert coordinator.next_deadline_ms() == 50_000  # the session ended in the past


def group_of(coordinator: Coordinator, group_id: str) -> ConsumerGroup:
    group = coordinator.groups()[group_id]
    assert isinstance(group, ConsumerGroup)
    return group


@pytest.mark.parametrize("timer", ["session-timeout-g", "heartbeat-g"])
def test_an_id_that_only_a_timer_names_is_passed_on(timer: str) -> None:
    """After a failed append, the states of the two coordinators differed in the timer's name."""
    ids = Ids()
    state = {"timers": {f"{timer}-AAAAAAAAAAAAAAAAAAAAGA": 1_045_000}, "type": "absent"}
    assert ids.seen(7, [{"events": []}, [state]]) == ["AAAAAAAAAAAAAAAAAAAAGA"]
    assert ids.draw() == "00000000-0000-0000-0000-000000000018"
