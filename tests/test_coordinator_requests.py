# SPDX-License-Identifier: Apache-2.0
"""The coordinator as a whole: single requests, commits, its log, and the causes of rebalances.

See docs/behaviour/coordinator.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kafka_rebalance.coordinator.classic_group.group import IllegalTransition
from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.coordinator.coordinator import Coordinator
from kafka_rebalance.coordinator.machine.events import (
    Append,
    Appended,
    AppendFailed,
    Loaded,
    LoadStarted,
    LogEntry,
    Received,
    Respond,
    Unreadable,
)
from kafka_rebalance.errors import GroupError, KafkaRebalanceError
from kafka_rebalance.playback.virtual_broker import VirtualBroker
from kafka_rebalance.wire.classic_groups import (
    DeleteGroups,
    DescribeGroups,
    Heartbeat,
    JoinGroup,
    JoinGroupProtocol,
    JoinGroupResponse,
    SyncGroup,
    SyncGroupResponse,
)
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import GroupState, Request, Tick
from kafka_rebalance.wire.offsets import (
    OffsetCommit,
    OffsetCommitResponse,
    OffsetFetch,
    OffsetToCommit,
    PartitionError,
    TxnOffsetCommit,
)
from tests.support.coordinators import ask

JOIN = JoinGroup(group_id="g", protocols=(JoinGroupProtocol("range", b"m"),))


def test_sync_needs_type_and_name_from_version_5_on() -> None:
    sync = SyncGroup(group_id="g", member_id="m", generation_id=1)
    coordinator = Coordinator()
    codes = [ask(coordinator, sync, version).error_code for version in (4, 5)]
    assert codes == [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.INCONSISTENT_GROUP_PROTOCOL]


def test_requests_while_the_coordinator_loads() -> None:
    coordinator = Coordinator()
    coordinator.handle(LoadStarted(), 0)
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    sync = SyncGroup(
        group_id="g", member_id="m", generation_id=1, protocol_type="c", protocol_name="r"
    )
    heartbeat = Heartbeat(group_id="g", member_id="m", generation_id=1)
    codes = [ask(coordinator, one).error_code for one in (JOIN, sync, heartbeat)]
    assert codes == [loading, loading, ErrorCode.NONE]
    fetch = OffsetFetch(group_id="g", partitions=(("t", 0),))
    assert ask(coordinator, fetch).error_code is loading
    coordinator.handle(Loaded(()), 0)
    assert ask(coordinator, JOIN, 4).error_code is ErrorCode.MEMBER_ID_REQUIRED


def _commit(*offsets: OffsetToCommit, group_id: str = "s") -> OffsetCommit:
    return OffsetCommit(group_id=group_id, offsets=offsets)


def _fetched(coordinator: Coordinator, *partitions: tuple[str, int]) -> list[int]:
    response = ask(coordinator, OffsetFetch(group_id="s", partitions=partitions))
    return [one.offset for one in response.offsets]


def test_only_the_offset_with_too_long_metadata_is_refused() -> None:
    broker = VirtualBroker(CoordinatorConfig(offset_metadata_max_bytes=4))
    long, fits = OffsetToCommit("t", 0, 1, "12345"), OffsetToCommit("t", 1, 2, "1234")
    broker.send(_commit(long, fits))
    answer: Any
    (answer,) = [one.response for _, one in broker.take() if isinstance(one, Respond)]
    codes = [one.error_code for one in answer.partitions]
    assert codes == [ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.NONE]
    assert _fetched(broker.coordinator, ("t", 0), ("t", 1)) == [-1, 2]


def test_retention_is_an_expiry_in_a_record_of_version_1() -> None:
    broker = VirtualBroker()
    broker.advance(500)
    broker.send(replace(_commit(OffsetToCommit("t", 0, 1)), retention_ms=1000))
    (entry,) = broker.log
    assert entry.value is not None
    assert entry.value[:2] == b"\0\1"
    assert entry.value[-8:] == (1500).to_bytes(8, "big")


def test_the_later_place_in_the_log_wins() -> None:
    """The append of the second of two commits completes first; still, its offset counts."""
    coordinator = Coordinator()
    appends = []
    for offset in (1, 2):
        event = Received(offset, _commit(OffsetToCommit("t", 0, offset)))
        appends += [one for one in coordinator.handle(event, 0) if isinstance(one, Append)]
    first, second = appends
    coordinator.handle(Appended(second.append_id, 11), 0)
    assert _fetched(coordinator, ("t", 0)) == [2]
    coordinator.handle(Appended(first.append_id, 10), 0)
    assert _fetched(coordinator, ("t", 0)) == [2]


def test_a_failed_append_leaves_the_newer_one_alone() -> None:
    coordinator = Coordinator()
    ids = []
    for offset in (1, 2):
        event = Received(offset, _commit(OffsetToCommit("t", 0, offset)))
        ids += [e.append_id for e in coordinator.handle(event, 0) if isinstance(e, Append)]
    coordinator.handle(AppendFailed(ids[0], ErrorCode.REQUEST_TIMED_OUT), 0)
    coordinator.handle(Appended(ids[1], 10), 0)
    assert _fetched(coordinator, ("t", 0)) == [2]


@pytest.mark.parametrize("transactional", [False, True])
def test_a_network_exception_of_a_commit_makes_the_client_retry(transactional: bool) -> None:
    coordinator = Coordinator()
    commit = _commit(OffsetToCommit("t", 0, 1))
    request: Request = commit
    if transactional:
        request = TxnOffsetCommit(group_id="g", producer_id=7, offsets=commit.offsets)
    append = next(
        one for one in coordinator.handle(Received(1, request), 0) if isinstance(one, Append)
    )
    effects = coordinator.handle(AppendFailed(append.append_id, ErrorCode.NETWORK_EXCEPTION), 0)
    answer = next(one.response for one in effects if isinstance(one, Respond))
    assert isinstance(answer, OffsetCommitResponse)
    assert answer.partitions == (PartitionError("t", 0, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),)


def test_a_network_exception_of_an_assignment_is_passed_through() -> None:
    broker = VirtualBroker(CoordinatorConfig(group_initial_rebalance_delay_ms=0))
    broker.send(JOIN, api_version=3, client_id="c")
    broker.advance(0)
    (member,) = broker.coordinator.classic_groups()["g"].members
    broker.take()
    broker.fail_next(ErrorCode.NETWORK_EXCEPTION)
    sync = SyncGroup(group_id="g", member_id=member, generation_id=1, assignments=((member, b""),))
    broker.send(sync, api_version=4, client_id="c")
    [answer] = [one.response for _, one in broker.take() if isinstance(one, Respond)]
    assert isinstance(answer, SyncGroupResponse)
    assert answer.error_code is ErrorCode.NETWORK_EXCEPTION


def _described(coordinator: Coordinator) -> object:
    groups = tuple(sorted(coordinator.groups()))
    described = ask(coordinator, DescribeGroups(group_ids=groups))
    offsets = [ask(coordinator, OffsetFetch(group_id=name)) for name in groups]
    return described, offsets


def _busy_log() -> list[LogEntry]:
    broker = VirtualBroker(CoordinatorConfig(group_initial_rebalance_delay_ms=0))
    for number in range(3):
        broker.send(replace(JOIN, group_id=f"g{number}"), api_version=3, client_id="c")
    broker.advance(0)
    for number in range(3):
        group = broker.coordinator.classic_groups()[f"g{number}"]
        leader = group.leader_id or ""
        sync = SyncGroup(
            group_id=f"g{number}",
            member_id=leader,
            generation_id=1,
            assignments=((leader, b"a"),),
        )
        broker.send(sync, api_version=4)
        for offset in range(3):
            commit = _commit(OffsetToCommit("t", offset % 2, offset), group_id=f"s{number}")
            broker.send(commit)
    broker.send(DeleteGroups(group_ids=("s1",)))
    broker.write(b"\0\x63\0\1x", b"anything")  # a type of a newer version
    return broker.log


def test_a_compacted_log_is_as_good_as_the_whole() -> None:
    log = _busy_log()
    last = {entry.key: entry for entry in log}
    compacted = [entry for entry in log if last[entry.key] is entry]
    assert len(compacted) < len(log)
    whole, short = Coordinator(), Coordinator()
    assert whole.handle(Loaded(tuple(log)), 0) == []  # an unknown kind of key is not an error
    short.handle(Loaded(tuple(compacted)), 0)
    assert set(whole.groups()) == {"g0", "g1", "g2", "s0", "s2"}
    assert _described(whole) == _described(short)


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        (b"\0\1\0\1g", b"", "key.topic: needs 2 bytes, 0 are left"),
        (b"\0\2\0\1g", b"\0\7", "value.version: 7 is not known (0 to 4 are)"),
        (b"\0\2\0\1g", b"\0\3\0", "value.protocolType: needs 2 bytes, 1 are left"),
    ],
)
def test_a_log_with_a_record_that_cannot_be_read_is_refused(
    key: bytes, value: bytes, problem: str
) -> None:
    coordinator = Coordinator()
    log = _busy_log()
    told = coordinator.handle(Loaded((*log, LogEntry(900, key, value))), 0)
    assert told == [Unreadable(900, problem)]
    answer = ask(coordinator, JOIN)
    assert isinstance(answer, JoinGroupResponse)
    assert answer.error_code is ErrorCode.NOT_COORDINATOR
    assert coordinator.handle(Loaded(tuple(log)), 0) == []
    assert set(coordinator.groups()) == {"g0", "g1", "g2", "s0", "s2"}


def test_time_does_not_go_back() -> None:
    coordinator = Coordinator()
    coordinator.handle(Tick(), 5)
    with pytest.raises(ValueError, match="4 is before 5"):
        coordinator.handle(Tick(), 4)


def test_settings_out_of_bounds() -> None:
    with pytest.raises(GroupError, match="group_max_size: 0 is less than 1"):
        CoordinatorConfig(group_max_size=0)
    assert issubclass(IllegalTransition, KafkaRebalanceError)


# Worked example G: what starts a rebalance --------------------------------------------------------


def _stable() -> VirtualBroker:
    broker = VirtualBroker(CoordinatorConfig(group_initial_rebalance_delay_ms=0))
    for instance in (None, "i"):
        broker.send(replace(JOIN, group_instance_id=instance), api_version=3, client_id="c")
    broker.advance(0)
    group = broker.coordinator.classic_groups()["g"]
    for member_id in (group.leader_id or "", next(reversed(group.members))):
        sync = SyncGroup(group_id="g", member_id=member_id, generation_id=1)
        broker.send(sync, api_version=4)
    assert group.state is GroupState.STABLE
    return broker


def test_a_static_member_that_returns_starts_no_rebalance() -> None:
    broker = _stable()
    broker.send(replace(JOIN, group_instance_id="i"))
    assert broker.coordinator.classic_groups()["g"].state is GroupState.STABLE


@pytest.mark.parametrize("change", ["joins", "subscription", "session", "leader"])
def test_what_starts_a_rebalance(change: str) -> None:
    broker = _stable()
    group = broker.coordinator.classic_groups()["g"]
    leader, follower = group.members
    if change == "joins":
        broker.send(JOIN, api_version=3)
    elif change == "subscription":
        changed = (JoinGroupProtocol("range", b"other topics"),)
        broker.send(replace(JOIN, member_id=follower, protocols=changed))
    elif change == "session":
        broker.advance(45_000)
    else:  # the topics changed, and the leader notices it
        broker.send(replace(JOIN, member_id=leader))
    assert group.state is not GroupState.STABLE
