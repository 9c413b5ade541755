# SPDX-License-Identifier: Apache-2.0
"""Streams groups at the broker: recorded runs, with the answers of Kafka's own coordinator."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.coordinator.coordinator import KINDS, Coordinator
from kafka_rebalance.coordinator.machine import deadlines
from kafka_rebalance.coordinator.machine.events import Append, Received, Respond
from kafka_rebalance.coordinator.machine.state import Shard
from kafka_rebalance.coordinator.streams_group.group import StreamsGroup, StreamsGroupMember
from kafka_rebalance.errors import WireError
from kafka_rebalance.playback.driver import Driver
from kafka_rebalance.wire.broker_records import (
    BrokerRecord,
    RecordKey,
    RecordType,
    StreamsEpochValue,
    StreamsMemberValue,
    decode_record,
    encode_record,
)
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.streams_groups import (
    CopartitionGroup,
    InternalTopic,
    KeyValue,
    StreamsGroupHeartbeat,
    StreamsGroupHeartbeatResponse,
    StreamsSubtopology,
    StreamsTopology,
    UserEndpoint,
)
from tests.support.recorded_runs import assert_played_alike, recorded, types_written_again

RUNS = recorded("streams_groups.jsonl.gz")
TOPOLOGY = {"epoch": 0, "subtopologies": {"0": {"sources": ["t"], "changelogs": ["c"]}}}
JOIN = {"op": "sthb", "m": "A", "epoch": 0, "rt": 1000, "process": "p", "topology": TOPOLOGY}


@pytest.mark.parametrize("run", RUNS, ids=lambda run: str(run["name"]))
def test_recorded_run(run: dict[str, Any]) -> None:
    assert_played_alike(run)


def test_kafkas_records_are_read_and_written_again_with_their_bytes() -> None:
    every = {one for one in RecordType if one.group_type == "streams"}
    written, buried = types_written_again(RUNS, decode_record, encode_record)
    assert every <= written
    assert every <= buried


def test_a_record_shows_its_type_and_its_fields() -> None:
    driver = Driver()
    driver.command({"op": "init", "at": 1_000_000, "tird": 0})
    driver.command({"op": "topics", "topics": {"t": 2, "c": 2}})
    joined = driver.command({**JOIN, "active": {}, "standby": {}, "warmup": {}})["events"]
    assert [(one["key_version"], one["type"]) for one in joined] == [
        (19, "STREAMS_GROUP_MEMBER_METADATA"),
        (23, "STREAMS_GROUP_TOPOLOGY"),
        (17, "STREAMS_GROUP_METADATA"),
        (21, "STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER"),
        (20, "STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA"),
        (22, "STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT"),
    ]
    assert joined[0]["k"] == {"group_id": "g", "member_id": "A"}
    active = [{"subtopology_id": "0", "partitions": [0, 1], "epochs": None}]
    assert joined[3]["value"] == {"active": active, "standby": [], "warmup": []}


def _key(kind: RecordType, member_id: str | None = None) -> RecordKey:
    return RecordKey(kind, "g", member_id)


@pytest.mark.parametrize(
    "record",
    [
        BrokerRecord(
            _key(RecordType.STREAMS_GROUP_METADATA),
            StreamsEpochValue(7, -5, 2, (KeyValue("num.standby.replicas", "1"),), 2, 3),
        ),
        BrokerRecord(_key(RecordType.STREAMS_GROUP_METADATA), StreamsEpochValue(7, -5, -1, None)),
        BrokerRecord(
            _key(RecordType.STREAMS_GROUP_MEMBER_METADATA, "A"),
            StreamsMemberValue(
                "i", None, "c", "/h", 5, 1, "p", UserEndpoint("host", 50_000), (KeyValue("k", "v"),)
            ),
        ),
        BrokerRecord(
            _key(RecordType.STREAMS_GROUP_TOPOLOGY),
            StreamsTopology(
                1,
                (
                    StreamsSubtopology(
                        "0",
                        ("t",),
                        ("u.*",),
                        (InternalTopic("c", 0, 3, (KeyValue("cleanup.policy", "compact"),)),),
                        ("s",),
                        (InternalTopic("r", 4),),
                        (CopartitionGroup((0,), (), (0,)),),
                    ),
                ),
            ),
        ),
    ],
    ids=lambda record: record.key.type.name,
)
def test_fields_that_the_recorded_runs_do_not_have(record: BrokerRecord) -> None:
    assert decode_record(*encode_record(record)) == record


def test_a_value_of_an_unknown_version_is_named() -> None:
    key, value = encode_record(BrokerRecord(_key(RecordType.STREAMS_GROUP_METADATA)))
    assert value is None
    with pytest.raises(WireError, match=r"value\.version: 1 is not known"):
        decode_record(key, b"\0\1\0")


def test_a_filter_names_the_state_not_ready_as_kafka_does() -> None:
    driver = Driver()
    driver.command({"op": "init", "at": 1_000_000, "tird": 0})
    driver.command({"op": "topics", "topics": {"t": 2}})
    driver.command({**JOIN, "active": {}, "standby": {}, "warmup": {}})
    assert driver.command({"op": "list", "states": ["NotReady"]})["groups"] == []
    (group,) = driver.command({"op": "list", "states": ["Not_Ready"]})["groups"]
    assert group["state"] == "NotReady"


@pytest.mark.parametrize(
    "wrong",
    [
        CopartitionGroup(source_topics=(0, 1)),
        CopartitionGroup(source_topics=(-1,)),
        CopartitionGroup(source_topics=(0,), repartition_source_topics=(0,)),
    ],
    ids=str,
)
def test_a_place_outside_of_the_list_of_topics_refuses_the_join(wrong: CopartitionGroup) -> None:
    coordinator = Coordinator()
    part = StreamsSubtopology("0", ("t",), copartition_groups=(wrong,))
    join = StreamsGroupHeartbeat(
        group_id="g",
        member_id="A",
        rebalance_timeout_ms=1_000,
        process_id="p",
        topology=StreamsTopology(0, (part,)),
        active_tasks=(),
        standby_tasks=(),
        warmup_tasks=(),
    )
    # The topic is missing, but the co-partition groups are read before that is seen.
    (answer,) = coordinator.handle(Received(1, join), 1_000)
    refused = StreamsGroupHeartbeatResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    assert answer == Respond(1, refused)
    assert coordinator.groups() == {}


@pytest.mark.parametrize(
    ("kind", "removes"),
    [(deadlines.JOIN, False), (deadlines.SYNC, False), (deadlines.SESSION, True)],
)
def test_a_join_or_sync_deadline_of_an_older_group_removes_no_member(
    kind: str, removes: bool
) -> None:
    state = Shard(CoordinatorConfig(), lambda: "", KINDS)
    group = state.groups["g"] = StreamsGroup("g")
    group.members.put("A", StreamsGroupMember("A"))
    state.kind(group).deadline(state, group, deadlines.DeadlineKey(kind, "g", "A"))
    assert [type(one) for one in state.effects] == ([Append] if removes else [])


def test_a_struct_is_there_if_its_byte_is_not_negative() -> None:
    record = BrokerRecord(
        _key(RecordType.STREAMS_GROUP_MEMBER_METADATA, "A"),
        StreamsMemberValue(None, None, "c", "/h", 5, 1, "p", UserEndpoint("host", 9), ()),
    )
    key, value = encode_record(record)
    assert value is not None
    assert value.count(b"\1\5host") == 1
    assert decode_record(key, value.replace(b"\1\5host", b"\0\5host")) == record


def test_bytes_after_the_settings_of_an_epoch_are_an_error() -> None:
    configs = (KeyValue("num.standby.replicas", "1"),)
    record = BrokerRecord(
        _key(RecordType.STREAMS_GROUP_METADATA),
        StreamsEpochValue(7, -5, assignment_configs=configs),
    )
    key, value = encode_record(record)
    assert value is not None
    head, settings = value[:15], value[15:]
    tags, tag, length = head[-1], settings[0], settings[1]
    assert (tags, tag, length) == (1, 1, len(settings) - 2)
    longer = head + bytes((tag, length + 1)) + settings[2:] + b"\0"
    with pytest.raises(WireError, match=r"lastAssignmentConfigs"):
        decode_record(key, longer)
