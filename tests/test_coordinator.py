# SPDX-License-Identifier: Apache-2.0
"""The parts of the coordinator, tested one by one.

See docs/behaviour/coordinator.md#2-group and docs/behaviour/coordinator.md#9-log.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from kafka_rebalance.assignors.selection import select_protocol
from kafka_rebalance.coordinator.classic_group.group import (
    LEGAL_PREDECESSORS,
    STATES,
    ClassicGroupMember,
    Group,
    IllegalTransition,
)
from kafka_rebalance.coordinator.coordinator import Coordinator
from kafka_rebalance.wire.classic_groups import FindCoordinator, JoinGroupProtocol
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.group_records import partition_for
from kafka_rebalance.wire.messages import GroupState
from tests.support.broker_lookup import Node, find_coordinator, least_loaded_node
from tests.support.coordinators import ask

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = STATES


def _member(
    member_id: str, *names: str, instance: str | None = None, ms: int = 10_000
) -> ClassicGroupMember:
    protocols = tuple(JoinGroupProtocol(name, b"m") for name in names or ("range",))
    return ClassicGroupMember(member_id, instance, "c", "/h", ms, 10_000, "consumer", protocols)


def _group(*members: ClassicGroupMember) -> Group:
    group = Group("g", 0)
    for member in members:
        group.add(member)
    return group


# States -------------------------------------------------------------------------------------------

LEGAL = {
    (EMPTY, PREPARING),
    (PREPARING, EMPTY),
    (PREPARING, COMPLETING),
    (COMPLETING, PREPARING),
    (COMPLETING, STABLE),
    (STABLE, PREPARING),
    *((state, DEAD) for state in STATES),
}


@pytest.mark.parametrize(("before", "after"), list(itertools.product(STATES, STATES)))
def test_only_legal_transitions_of_all_25_happen(before: GroupState, after: GroupState) -> None:
    group = Group("g", 5, state=before)
    if (before, after) in LEGAL:
        group.transition_to(after, 9)
        assert (group.state, group.previous_state, group.state_timestamp_ms) == (after, before, 9)
    else:
        with pytest.raises(IllegalTransition, match=f"not after {before}"):
            group.transition_to(after, 9)
        assert (group.state, group.state_timestamp_ms) == (before, 5)


def test_which_states_can_begin_a_rebalance() -> None:
    able = {state for state in STATES if Group("g", 0, state=state).can_rebalance()}
    assert able == {EMPTY, COMPLETING, STABLE} == LEGAL_PREDECESSORS[PREPARING]


def test_the_state_tests_is_and_not() -> None:
    group = Group("g", 0)
    assert group.is_(EMPTY, DEAD)
    assert not group.is_(STABLE, DEAD)


# Protocols: worked example E ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lists", "winner"),
    [
        ([["B", "A"], ["A", "B", "C"], ["D", "B", "A"]], "B"),
        ([["range", "roundrobin"], ["roundrobin", "range"]], "range"),
        ([["sticky", "range"], ["range", "sticky"]], "sticky"),
        ([["cooperative-sticky", "range"], ["range", "cooperative-sticky"]], "range"),
        ([["range", "roundrobin"], ["roundrobin", "foo"]], "roundrobin"),
    ],
)
def test_the_common_protocol_with_most_votes_wins(lists: list[list[str]], winner: str) -> None:
    for order in itertools.permutations(lists):
        assert select_protocol(order) == winner


def test_a_group_without_members_selects_no_protocol() -> None:
    with pytest.raises(ValueError, match="without members"):
        Group("g", 0).select_protocol()
    with pytest.raises(ValueError, match="in common"):
        select_protocol([["a"], ["b"]])


# Members ------------------------------------------------------------------------------------------


def test_leadership_passes_on_when_the_leader_leaves() -> None:
    group = _group(_member("l"), _member("a"), _member("b"))
    group.remove("b")
    assert group.leader_id == "l"
    group.remove("l")
    assert group.leader_id == "a"
    group.remove("a")
    assert group.leader_id is None
    assert not group.members


def test_the_longest_rebalance_timeout_of_all_members_counts() -> None:
    assert _group().rebalance_timeout_ms() == 0
    members = [_member(str(ms), ms=ms) for ms in (10_000, 60_000, 30_000)]
    assert _group(*members).rebalance_timeout_ms() == 60_000


def test_an_instance_id_or_member_id_is_taken_once() -> None:
    group = _group(_member("a", instance="i"))
    with pytest.raises(ValueError, match="'i' is taken by 'a'"):
        group.add(_member("b", instance="i"))
    with pytest.raises(ValueError, match="is a member already"):
        group.add_pending("a")
    group.transition_to(PREPARING, 0)
    with pytest.raises(ValueError, match="does not fit"):
        group.add(_member("c", "other"))
    group.pending_sync["a"] = None
    group.next_generation(1)
    assert not group.pending_sync
    assert (group.generation_id, group.protocol_name, group.state) == (1, "range", COMPLETING)


def test_the_first_member_sets_the_type_and_leads() -> None:
    group = _group(_member("a"), _member("b"))
    assert (group.protocol_type, group.leader_id) == ("consumer", "a")
    assert "b" in group.members
    assert group.members["b"].member_id == "b"
    group.transition_to(PREPARING, 0)
    assert not group.supports("connect", ("range",))


@pytest.mark.parametrize("metadata", [b"", b"\0", b"\xff\xff", b"\0\0\x7f\xff\xff\xff"])
def test_broken_metadata_is_a_subscription_that_is_not_known(metadata: bytes) -> None:
    group = _group(_member("a"))
    group.members["a"].protocols = (JoinGroupProtocol("range", metadata),)
    group.transition_to(PREPARING, 0)
    group.next_generation(0)
    assert group.subscribed_topics is None
    assert group.is_subscribed("t")


# Finding the coordinator --------------------------------------------------------------------------


def test_the_offsets_partition_of_a_group_id() -> None:
    golden = {
        "group": 47,
        "test-group": 12,
        "group-id": 13,
        "my-group": 12,
        "g1": 42,
        "g2": 43,
        "a": 47,
        "orders": 31,
        "": 0,
        "polygenelubricants": 0,
    }
    assert {name: partition_for(name) for name in golden} == golden


def test_find_coordinator() -> None:
    assert find_coordinator("orders", {31: 4}).node_id == 4
    absent = find_coordinator("orders", {30: 4})
    assert (absent.error_code, absent.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
    with pytest.raises(ValueError, match="any broker answers FindCoordinator"):
        ask(Coordinator(), FindCoordinator(group_id="orders"))


READY = Node(node_id=1, ready=True)


@pytest.mark.parametrize(
    ("nodes", "chosen"),
    [
        # The first ready node from the offset on that has no request in flight.
        ([replace(READY, in_flight=1), READY, replace(READY, node_id=2)], 1),
        # If every ready node has requests in flight: the one with the fewest; tie-break: the first.
        ([replace(READY, in_flight=n, node_id=k) for k, n in enumerate((3, 2, 2))], 1),
        # A ready node to which nothing more can be sent is ignored.
        ([replace(READY, can_send_more=False), Node(node_id=7, connecting=True)], 7),
        # A connecting node comes before one without a connection; tie-break: the last one.
        ([Node(node_id=3), *(Node(node_id=n, connecting=True) for n in (4, 5))], 5),
        # Without connections: the node with the oldest connection attempt; tie-break: the first.
        ([Node(node_id=n, last_attempt_ms=ms) for n, ms in ((1, 9), (2, 4), (3, 4))], 2),
        # No node is chosen if all nodes are backing off or full.
        ([Node(node_id=1, may_connect=False), replace(READY, can_send_more=False)], None),
    ],
)
def test_the_least_loaded_node(nodes: list[Node], chosen: int | None) -> None:
    found = least_loaded_node(nodes, 0)
    assert (found and found.node_id) == chosen


def test_the_scan_for_the_least_loaded_node_starts_at_the_offset() -> None:
    nodes = [replace(READY, node_id=n) for n in range(3)]
    found = [least_loaded_node(nodes, offset) for offset in range(4)]
    assert [node and node.node_id for node in found] == [0, 1, 2, 0]
    with pytest.raises(ValueError, match="has no nodes"):
        least_loaded_node([], 0)
