# SPDX-License-Identifier: Apache-2.0
"""Differences from Kafka's coordinator that random runs have found.

Most tests play commands of the driver on our coordinator and on Kafka's own. The random runs are
those of `tools/differential_coordinator.py`, with raw records, timeouts of 0 and open transactions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance.coordinator import CoordinatorConfig, Expired, Respond
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
from kafka_rebalance.tracing.driver import Driver
from kafka_rebalance.tracing.virtual_broker import VirtualBroker
from kafka_rebalance.wire.group_records import GroupMetadataKey, encode_key
from tests.support.coordinator_oracle import JAR, CoordinatorOracle

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
    for member_id in list(broker.coordinator.groups()["g"].members):
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
