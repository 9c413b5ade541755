# SPDX-License-Identifier: Apache-2.0
"""Findings about timers: deadlines that set themselves again, and that follow each other."""

from __future__ import annotations

import pytest

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.coordinator.machine.events import Expired
from kafka_rebalance.errors import GroupError
from kafka_rebalance.member.config import ConsumerConfig
from kafka_rebalance.playback.virtual_broker import VirtualBroker
from kafka_rebalance.wire.classic_groups import (
    JoinGroup,
    JoinGroupProtocol,
    LeaveGroup,
    MemberIdentity,
    SyncGroup,
)
from kafka_rebalance.wire.messages import Tick
from tests.support.played_coordinator import Played

T = {"g": "s", "topic": "t"}


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
