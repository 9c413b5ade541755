# SPDX-License-Identifier: Apache-2.0
"""Findings about other requests to classic groups, and about the client hosts in them."""

from __future__ import annotations

from kafka_rebalance.coordinator.machine.events import Respond
from kafka_rebalance.playback.virtual_broker import VirtualBroker
from kafka_rebalance.wire.classic_groups import DeleteGroups, DeleteGroupsResponse
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.offsets import OffsetCommit, OffsetToCommit
from tests.support.played_coordinator import Played

T = {"g": "s", "topic": "t"}


def test_a_broker_that_has_lost_the_groups_lists_none(played: Played) -> None:
    *_, listed = played({"op": "commit", **T, "off": 1}, {"op": "unload"}, {"op": "list"})
    assert (listed["err"], listed["groups"]) == ("NONE", [])


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
