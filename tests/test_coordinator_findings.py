# SPDX-License-Identifier: Apache-2.0
"""Differences from Kafka's coordinator that random runs have found.

Most tests play commands of the driver on our coordinator and on Kafka's own. The random runs are
those of `tools/differential_coordinator.py`, with raw records, timeouts of 0 and open transactions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance.coordinator import (
    Append,
    Appended,
    Coordinator,
    CoordinatorConfig,
    Expired,
    Received,
    Respond,
    Silent,
)
from kafka_rebalance.coordinator.consumer_group.group import ConsumerGroup
from kafka_rebalance.errors import GroupError
from kafka_rebalance.member import ConsumerConfig
from kafka_rebalance.protocol import (
    DeleteGroups,
    DeleteGroupsResponse,
    ErrorCode,
    JoinGroup,
    JoinGroupProtocol,
    LeaveGroup,
    MemberIdentity,
    OffsetCommit,
    OffsetToCommit,
    SyncGroup,
    Tick,
)
from kafka_rebalance.protocol.messages import Request
from kafka_rebalance.protocol.modern_messages import ConsumerGroupHeartbeat
from kafka_rebalance.tracing.driver import Driver
from kafka_rebalance.tracing.virtual_broker import VirtualBroker
from kafka_rebalance.wire import Subscription, encode_subscription
from kafka_rebalance.wire.consumer_group_records import (
    ConsumerGroupKey,
    ConsumerGroupRecord,
    ConsumerGroupValue,
    CurrentValue,
    EpochValue,
    MemberValue,
    RecordType,
    TargetEpochValue,
    decode_record,
    encode_record,
)
from kafka_rebalance.wire.group_records import GroupMetadataKey, encode_key
from tests.support.coordinator_oracle import JAR, CoordinatorOracle
from tools.member_ids import Ids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Answer = dict[str, Any]

T, U = {"g": "s", "topic": "t"}, {"g": "s", "topic": "u"}
TOMBSTONE_OF_S = {"op": "raw", "k": encode_key(GroupMetadataKey("s")).hex(), "v": None}
A_MINUTE_LATER = {"op": "advance", "ms": 60_000}
KAFKA = pytest.param(
    "Kafka's",
    marks=[
        pytest.mark.oracle,
        pytest.mark.skipif(not JAR.is_file(), reason="run `make coordinator-oracle`"),
    ],
)


class Played:
    """A coordinator that has no initial delay and keeps offsets for a minute."""

    def __init__(self, command: Callable[[Answer], Answer]) -> None:
        self._command = command
        command({"op": "init", "ret_min": 1, "init_delay": 0})

    def __call__(self, *commands: Answer) -> list[Answer]:
        """Plays the commands and returns their answers."""
        return [self._command(command) for command in commands]


@pytest.fixture(scope="module", params=["ours", KAFKA])
def command(request: pytest.FixtureRequest) -> Iterator[Callable[[Answer], Answer]]:
    """Yields the function that plays a command: on our coordinator, or on Kafka's."""
    if request.param == "ours":
        yield Driver().command
        return
    with CoordinatorOracle() as oracle:
        yield oracle.command


@pytest.fixture
def played(command: Callable[[Answer], Answer]) -> Played:
    """Returns a coordinator on which a test plays commands."""
    return Played(command)


def keys(answer: Answer) -> list[tuple[str, bool]]:
    """Returns (key, whether the value is null) for each record in the answer's events."""
    return [(one["key"], one["vb"] is None) for one in answer["events"] if one["ev"] == "record"]


# Timers that set themselves again


def test_a_tick_ends_although_it_arms_a_deadline_for_its_own_moment() -> None:
    broker = VirtualBroker(CoordinatorConfig(group_initial_rebalance_delay_ms=0))
    for instance, rebalance_ms in (("i1", 300_000), ("i2", 0)):
        join = JoinGroup(
            group_id="g",
            group_instance_id=instance,
            rebalance_timeout_ms=rebalance_ms,
            protocols=(JoinGroupProtocol("range", b""),),
        )
        broker.send(join)
    broker.advance(0)
    for member_id in list(broker.coordinator.classic_groups()["g"].members):
        broker.send(SyncGroup(group_id="g", member_id=member_id, generation_id=1), api_version=4)
    broker.send(LeaveGroup(group_id="g", members=(MemberIdentity("", "i1"),)))
    for _ in range(3):
        assert broker.coordinator.next_deadline_ms() == 0
        (expired,) = broker.coordinator.handle(Tick(), 0)
        assert isinstance(expired, Expired)
        assert str(expired.key) == "join-g"


def member_without_time(played: Played) -> str:
    """Leaves i2 alone in the group, with a rebalance timeout of 0; returns i2's member id."""
    protocols = [["range", ""]]
    *_, joined = played(
        {"op": "join", "inst": "i1", "rt": 300_000, "protos": protocols},
        {"op": "join", "inst": "i2", "rt": 0, "protos": protocols},
        {"op": "advance", "ms": 0},
    )
    ids = {
        one["member"].partition("-")[0]: one["member"] for one in joined["events"] if "id" in one
    }
    leader = next(one["leader"] for one in joined["events"] if "id" in one)
    for member_id in sorted(ids.values(), key=leader.__ne__):
        played({"op": "sync", "m": member_id, "gen": 1, "asg": {}})
    played({"op": "leave", "members": [{"m": "", "inst": "i1"}]})
    return str(ids["i2"])


def test_other_requests_are_answered_between_the_ticks(played: Played) -> None:
    member_id = member_without_time(played)
    ticked, beat = played(
        {"op": "advance", "ms": 5_000}, {"op": "hb", "m": member_id, "inst": "i2", "gen": 1}
    )
    assert {one["key"] for one in ticked["events"]} == {"join-g"}
    assert ticked["now"] == 5_000
    assert beat["err"] == "REBALANCE_IN_PROGRESS"


def test_the_group_ends_with_the_session_of_its_last_member(played: Played) -> None:
    member_id = member_without_time(played)
    _, before, _, after = played(
        {"op": "advance", "ms": 9_999},
        {"op": "state"},
        {"op": "advance", "ms": 1},
        {"op": "state"},
    )
    assert before["state"]["members"] == [member_id]
    assert (after["state"]["state"], after["state"]["gen"]) == ("Empty", 2)
    assert after["state"]["timers"] == {}


def test_a_deadline_sees_the_result_of_the_append_of_the_deadline_before_it(played: Played) -> None:
    """Two sessions end at once. The append for the first fails, which removes the other group."""
    asks = {"op": "join", "v": 3, "st": 6_000, "protos": [["range", ""]]}
    *_, ended, state = played(
        {**asks, "g": "h"},
        {"op": "commit", **T, "md": "long" * 2_000, "off": 1},
        {**asks, "g": "s"},
        {"op": "advance", "ms": 0},
        {"op": "fail_next", "err": "NOT_ENOUGH_REPLICAS"},
        {"op": "advance", "ms": 6_000},
        {"op": "state", "g": "s"},
    )
    assert {one["ev"] for one in ended["events"]} == {"timer"}
    assert len(ended["events"]) == 2
    assert state["state"]["state"] == "ABSENT:GROUP_ID_NOT_FOUND"


def test_simulated_members_never_have_a_timeout_of_0() -> None:
    """With a timeout of 0, a simulation's clock would never advance."""
    with pytest.raises(GroupError, match="max_poll_interval_ms: 0 is less than 1 ms"):
        ConsumerConfig(group_id="g", max_poll_interval_ms=0)


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


# Further findings


@pytest.mark.parametrize(
    ("version", "code"), [(5, "ILLEGAL_GENERATION"), (6, "GROUP_ID_NOT_FOUND")]
)
def test_a_transaction_of_an_absent_group_is_refused_by_version(
    played: Played, version: int, code: str
) -> None:
    (answer,) = played({"op": "txncommit", **T, "off": 1, "pid": 1, "gen": 1, "v": version})
    assert answer["err"] == code


def test_a_broker_that_has_lost_the_groups_lists_none(played: Played) -> None:
    *_, listed = played({"op": "commit", **T, "off": 1}, {"op": "unload"}, {"op": "list"})
    assert (listed["err"], listed["groups"]) == ("NONE", [])


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


def test_a_host_uses_the_one_timeout_of_join_group_version_0_twice(played: Played) -> None:
    *_, state = played(
        {"op": "join", "g": "s", "v": 0, "st": 7_000, "rt": 1, "protos": [["range", ""]]},
        {"op": "advance", "ms": 0},
        {"op": "state", "g": "s"},
    )
    assert state["state"]["timers"]["sync-s"] == 7_000


def test_a_host_deletes_a_group_once_that_is_named_twice() -> None:
    broker = VirtualBroker()
    broker.send(OffsetCommit(group_id="s", offsets=(OffsetToCommit("t", 0, 1),)))
    broker.take()
    broker.send(DeleteGroups(group_ids=("x", "s", "s", "x")))
    (answer,) = [one.response for _, one in broker.take() if isinstance(one, Respond)]
    assert isinstance(answer, DeleteGroupsResponse)
    assert answer.groups == (("x", ErrorCode.GROUP_ID_NOT_FOUND), ("s", ErrorCode.NONE))


# Consumer groups


def member_of_records(
    pattern: str = "", state: int = 0, instance_id: str | None = None
) -> list[Answer]:
    """Returns commands after which the group `c` has the member `A` in epoch 1."""
    member = MemberValue(instance_id, None, "", "/127.0.0.1", (), pattern, 60_000, None)
    records: dict[RecordType, ConsumerGroupValue] = {
        RecordType.CONSUMER_GROUP_METADATA: EpochValue(1),
        RecordType.CONSUMER_GROUP_MEMBER_METADATA: member,
        RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: TargetEpochValue(1),
        RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: CurrentValue(1, 0, state, (), ()),
    }
    commands: list[Answer] = []
    for kind, content in records.items():
        name = "A" if "MEMBER" in kind.name else None
        key, value = encode_record(ConsumerGroupRecord(ConsumerGroupKey(kind, "c", name), content))
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


@pytest.mark.parametrize("timer", ["session-timeout-g", "heartbeat-g"])
def test_an_id_that_only_a_timer_names_is_passed_on(timer: str) -> None:
    """After a failed append, the states of the two coordinators differed in the timer's name."""
    ids = Ids()
    state = {"timers": {f"{timer}-AAAAAAAAAAAAAAAAAAAAGA": 1_045_000}, "type": "absent"}
    assert ids.seen(7, [{"events": []}, [state]]) == ["AAAAAAAAAAAAAAAAAAAAGA"]
    assert ids.draw() == "00000000-0000-0000-0000-000000000018"


def group_of(coordinator: Coordinator, group_id: str) -> ConsumerGroup:
    group = coordinator.groups()[group_id]
    assert isinstance(group, ConsumerGroup)
    return group
