# SPDX-License-Identifier: Apache-2.0
"""Share groups at the broker: recorded runs of Kafka 4.4.0's own coordinator, and records."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.coordinator.coordinator import Coordinator
from kafka_rebalance.coordinator.machine.events import (
    Append,
    Appended,
    ClusterTopic,
    CoordinatorEvent,
    Effect,
    PartitionsDeleted,
    Received,
    Respond,
    ShareStateDue,
    Silent,
    TopicsChanged,
)
from kafka_rebalance.errors import GroupError, WireError
from kafka_rebalance.playback.driver import Driver
from kafka_rebalance.wire.broker_groups import ShareGroupHeartbeat, ShareGroupHeartbeatResponse
from kafka_rebalance.wire.broker_records import (
    BrokerRecord,
    RecordKey,
    RecordType,
    decode_record,
    encode_record,
)
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import Tick
from tests.support.recorded_runs import assert_played_alike, recorded, types_written_again

RUNS = recorded("share_groups.jsonl.gz")


@pytest.mark.parametrize("run", RUNS, ids=lambda run: str(run["name"]))
def test_recorded_run(run: dict[str, Any]) -> None:
    assert_played_alike(run)


def test_kafkas_records_are_read_and_written_again_with_their_bytes() -> None:
    every = {one for one in RecordType if one.group_type == "share"}
    written, buried = types_written_again(RUNS, decode_record, encode_record)
    assert every <= written
    assert every <= buried


def test_a_value_of_an_unknown_version_is_named() -> None:
    key, value = encode_record(BrokerRecord(RecordKey(RecordType.SHARE_GROUP_METADATA, "g")))
    assert value is None
    with pytest.raises(WireError, match=r"value\.version: 1 is not known"):
        decode_record(key, b"\0\1\0")


def test_a_record_shows_its_type_and_its_fields() -> None:
    driver = Driver()
    driver.command({"op": "init", "at": 1_000_000})
    driver.command({"op": "topics", "topics": {"t": 2}})
    joined = driver.command({"op": "shb", "m": "A", "epoch": 0, "topics": ["t"]})["events"]
    assert [(one["key_version"], one["type"], one["k"]) for one in joined] == [
        (10, "SHARE_GROUP_MEMBER_METADATA", {"group_id": "g", "member_id": "A"}),
        (11, "SHARE_GROUP_METADATA", {"group_id": "g"}),
        (13, "SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER", {"group_id": "g", "member_id": "A"}),
        (12, "SHARE_GROUP_TARGET_ASSIGNMENT_METADATA", {"group_id": "g"}),
        (14, "SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT", {"group_id": "g", "member_id": "A"}),
        (15, "SHARE_GROUP_STATE_PARTITION_METADATA", {"group_id": "g"}),
    ]
    asked = {"topic_id": "dAAAAAAAAAAAAAAAAAAAAA", "topic_name": "t", "partitions": [0, 1]}
    assert joined[5]["value"] == {"initializing": [asked], "initialized": [], "deleting": []}


# The coordinator without a driver -----------------------------------------------------------------

TOPIC = ClusterTopic("t", (7, 7), 2)


class Host:
    """Carries out appends at once, and stores the other effects."""

    def __init__(self, coordinator: Coordinator) -> None:
        self.coordinator = coordinator

    def handle(self, event: CoordinatorEvent, now_ms: int) -> list[Effect]:
        found: list[Effect] = []
        for effect in self.coordinator.handle(event, now_ms):
            if isinstance(effect, Append):
                found += self.handle(Appended(effect.append_id, 0), now_ms)
            else:
                found.append(effect)
        return found

    def beat(self, now_ms: int, **fields: Any) -> list[Effect]:
        request = ShareGroupHeartbeat(group_id="g", member_id="A", **fields)
        return self.handle(Received(1, request), now_ms)


def started(*, vouched: bool = False) -> Host:
    """Returns a host whose only member A has joined; share state is due."""
    host = Host(Coordinator(vouched=vouched))
    host.handle(TopicsChanged((TOPIC,), 1), 1_000)
    joined = host.beat(1_000, member_epoch=0, subscribed_topic_names=("t",))
    assert [type(one) for one in joined] == [Respond, ShareStateDue]
    assert joined[1] == ShareStateDue("g", ((TOPIC.topic_id, (0, 1)),))
    return host


def answer(effects: list[Effect]) -> ShareGroupHeartbeatResponse:
    (found,) = effects
    assert isinstance(found, Respond)
    assert isinstance(found.response, ShareGroupHeartbeatResponse)
    return found.response


def test_partitions_are_assigned_when_their_share_state_is_initialised() -> None:
    host = started()
    due = ShareStateDue("g", ((TOPIC.topic_id, (0, 1)),))
    assert answer(host.beat(5_000, member_epoch=2)).assignment is None
    assert host.handle(due, 6_000) == []
    assigned = answer(host.beat(6_000, member_epoch=2))
    assert (assigned.member_epoch, assigned.assignment) == (3, ((TOPIC.topic_id, (0, 1)),))


def test_share_state_is_asked_for_again_after_the_retry_interval() -> None:
    host = started()
    assert [type(one) for one in host.beat(30_999, member_epoch=2)] == [Respond]
    assert [type(one) for one in host.beat(31_000, member_epoch=2)] == [Respond, ShareStateDue]


def test_the_share_state_of_a_deleted_topic_is_forgotten() -> None:
    host = started()
    host.handle(ShareStateDue("g", ((TOPIC.topic_id, (0, 1)),)), 1_000)
    host.handle(TopicsChanged((), 2), 2_000)
    host.handle(PartitionsDeleted(topics=((TOPIC.name, TOPIC.topic_id),)), 2_000)
    host.handle(TopicsChanged((TOPIC,), 3), 3_000)
    asked = host.beat(3_000, member_epoch=2)
    assert [type(one) for one in asked] == [Respond, ShareStateDue]


def test_a_vouched_member_is_removed_only_if_it_is_silent() -> None:
    host = started(vouched=True)
    assert host.coordinator.next_deadline_ms() is None
    host.handle(Silent("g", "A", since_ms=2_000), 3_000)
    assert host.coordinator.next_deadline_ms() == 47_000
    host.handle(Tick(), 47_000)
    gone = answer(host.beat(47_000, member_epoch=2))
    assert gone.error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_settings_below_kafkas_bounds_are_refused() -> None:
    with pytest.raises(GroupError, match="group_share_max_size: 0 is less than 1"):
        CoordinatorConfig(group_share_max_size=0)
