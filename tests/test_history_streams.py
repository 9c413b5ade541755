# SPDX-License-Identifier: Apache-2.0
"""The history of classic Kafka Streams groups: probing rebalances, follow-ups, warm-ups.

The records are made from the bytes of a real application (kafka-streams 4.3.1) as it was described.
"""

import base64
import copy
import dataclasses
import gzip
import json
from pathlib import Path
from typing import Any

from kafka_rebalance.follow.metrics import GroupMetrics
from kafka_rebalance.follow.rebalances import FollowedRebalance
from kafka_rebalance.history.group_history import GroupHistory
from kafka_rebalance.history.group_log import read_generation
from kafka_rebalance.history.patterns import find_patterns
from kafka_rebalance.history.recorded import RecordedRebalance
from kafka_rebalance.wire.consumer_protocol import (
    AssignmentData,
    decode_assignment,
    encode_assignment,
)
from kafka_rebalance.wire.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetsRecord,
    encode_key,
    encode_value,
)
from kafka_rebalance.wire.streams_protocol import decode_assignment_info, encode_assignment_info

LIVE = Path(__file__).parent / "data" / "streams_classic_live.jsonl.gz"
KEY = GroupMetadataKey("shop")


def _captures(first: str) -> list[dict[str, Any]]:
    """Returns the first description of each generation, of the captures from `first` to `6`."""
    with gzip.open(LIVE, "rt", encoding="utf-8") as lines:
        captures = [json.loads(line) for line in lines]
    found: list[dict[str, Any]] = []
    for one in captures:
        is_new = not found or one["group"]["members"] != found[-1]["group"]["members"]
        if first <= one["label"] < "6" and one["group"]["state"] == "Stable" and is_new:
            found.append(one)
    return found


def _record(capture: dict[str, Any], generation: int) -> OffsetsRecord:
    members = tuple(
        MemberMetadata(
            one["member_id"],
            one["group_instance_id"],
            one["client_id"],
            one["client_host"],
            300_000,
            45_000,
            base64.b64decode(one["member_metadata"]),
            base64.b64decode(one["member_assignment"]),
        )
        for one in capture["group"]["members"]
    )
    at_ms = capture["at_ms"]
    value = GroupMetadataValue(
        "consumer", generation, "stream", members[0].member_id, at_ms, members
    )
    return OffsetsRecord(0, generation, at_ms, encode_key(KEY), encode_value(value))


def _rows(captures: list[dict[str, Any]]) -> list[RecordedRebalance]:
    history = GroupHistory(whole_from=0)
    records = [_record(one, n) for n, one in enumerate(captures, 1)]
    return [history.record(read_generation(KEY, one)) for one in records]


def _rejoining_at_once(capture: dict[str, Any]) -> dict[str, Any]:
    """Returns a generation whose first thread is told to join again at once."""
    changed = copy.deepcopy(capture)
    member = changed["group"]["members"][0]
    sent = decode_assignment(base64.b64decode(member["member_assignment"]))
    info = decode_assignment_info(sent.user_data or b"")._replace(next_rebalance_ms=0)
    told = dataclasses.replace(sent, user_data=encode_assignment_info(info))
    member["member_assignment"] = base64.b64encode(encode_assignment(told)).decode()
    return changed


def test_probing_rebalances_of_a_real_application() -> None:
    """It had a probing interval of 60 s; joins, departures and restarts came between."""
    captures = _captures("1")
    rows = zip(captures, _rows(captures), strict=True)
    assert [(one["label"][0], row.cause) for one, row in rows] == [
        ("1", "started"),
        ("2", "joined"),
        ("2", "probing"),
        ("2", "probing"),
        ("3", "left"),
        ("4", "rejoined"),
        ("5", "rejoined"),
        ("5", "probing"),
    ]


def test_a_thread_that_is_told_to_join_again_at_once() -> None:
    capture = _captures("1")[0]
    first = _rejoining_at_once(capture)
    later = capture | {"at_ms": capture["at_ms"] + 3_000}
    (cause,) = _rows([first, later])[1].causes
    member_id = capture["group"]["members"][0]["member_id"]
    assert (cause.kind, cause.certainty, cause.members) == ("follow-up", "exact", (member_id,))


def test_warm_ups_that_do_not_finish() -> None:
    joined = _captures("2")[0]
    again = [joined | {"at_ms": joined["at_ms"] + 60_000 * n} for n in range(5)]
    (found,) = find_patterns(_rows(again))
    assert (found.kind, found.generations) == ("never warm", (2, 3, 4, 5))
    assert "4 probing rebalances in a row moved no task" in found.told
    assert not find_patterns(_rows(again[:3]))


def test_warm_ups_that_do_not_finish_are_shown_until_the_next_probing() -> None:
    """An exporter's page of any moment shows them, also just before a probing rebalance."""
    joined = _captures("2")[0]
    again = [joined | {"at_ms": joined["at_ms"] + 600_000 * n} for n in range(5)]
    metrics = GroupMetrics("shop")
    for row in _rows(again):
        metrics.rebalanced(FollowedRebalance(row), row.written_ms)
    shown = [
        "findings" in metrics.text(metrics.recent[-1].time_ms + later_ms)
        for later_ms in (0, 599_999, 605_000, 1_300_000)
    ]
    assert shown == [True, True, True, False]
    last = metrics.recent[-1]
    moved = dataclasses.replace(last, time_ms=last.time_ms + 600_000, moved=1)
    metrics.rebalanced(FollowedRebalance(moved), moved.time_ms)
    assert "findings" not in metrics.text(moved.time_ms)


def test_bytes_that_cannot_be_read_have_no_time() -> None:
    capture = _captures("1")[0]
    nothing = base64.b64encode(encode_assignment(AssignmentData(()))).decode()
    for member in capture["group"]["members"]:
        member["member_assignment"] = nothing
    later = capture | {"at_ms": capture["at_ms"] + 60_000}
    assert _rows([capture, later])[1].cause == "requested"
