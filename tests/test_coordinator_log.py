# SPDX-License-Identifier: Apache-2.0
"""Lines that brokers of four releases logged about groups are read, in several layouts."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance.cli import main
from kafka_rebalance.history.all_groups import rebalance_history
from kafka_rebalance.history.coordinator_log import (
    CoordinatorLog,
    read_coordinator_log,
    read_message,
)
from kafka_rebalance.history.log_causes import with_log, zone_ms
from tests.test_history import RELEASES, VECTORS, judged, known_causes, records_of

if TYPE_CHECKING:
    from pathlib import Path

LINES: list[dict[str, Any]] = json.loads((VECTORS / "log_lines.json").read_text("utf-8"))["lines"]
SEEN = [
    (one["event"], release, line) for one in LINES for release, line in one.get("seen", {}).items()
]


def lines_of(name: str) -> list[str]:
    with gzip.open(VECTORS / name, "rt", encoding="utf-8") as lines:
        return list(lines)


def log_of(release: str) -> CoordinatorLog:
    return read_coordinator_log(lines_of(f"kafka-{release}/broker.log.gz"))


@pytest.mark.parametrize(("event", "release", "line"), SEEN)
def test_an_example_of_each_kind_of_line(event: str, release: str, line: str) -> None:
    log = read_coordinator_log([line])
    assert [one.event for one in log.events] == [event], release
    assert log.events[0].time_ms is not None
    assert (log.unknown, log.other) == (0, 0)


@pytest.mark.parametrize(
    ("name", "events"),
    [
        ("kafka-4.4.0/broker.log.gz", 477),
        ("kafka-3.6.2/broker.log.gz", 283),
        ("kafka-2.4.1/broker.log.gz", 192),
        ("every_line-4.4.0.log.gz", 327),
        ("every_line-3.6.2.log.gz", 90),
        ("moved-4.4.0.log.gz", 110),
    ],
)
def test_every_line_of_the_recorded_runs_is_read(name: str, events: int) -> None:
    log = read_coordinator_log(lines_of(name))
    assert (len(log.events), log.unknown) == (events, 0)


@pytest.mark.parametrize("release", RELEASES)
def test_all_causes_are_right_with_the_log(release: str) -> None:
    rows = rebalance_history(records_of(release))
    counts = judged(with_log(rows, log_of(release)), release)
    print(release, dict(counts))
    assert counts == {"right": len(known_causes(release))}


@pytest.mark.parametrize("hours", [-11, 0, 5.75])
def test_the_zone_of_the_log_is_found(hours: float) -> None:
    rows, log = rebalance_history(records_of("3.6.2")), log_of("3.6.2")
    shift = int(hours * 3_600_000)
    assert zone_ms(rows, log.shifted(shift)) == -shift
    assert with_log(rows, log.shifted(shift)) == with_log(rows, log)


def _json_layout(line: str) -> str:
    found = re.match(r"\[(.*?)\] (\w+) (.*) \((\S+)\)$", line.rstrip())
    assert found is not None
    time, level, message, logger = found.groups()
    instant = {"epochSecond": 1795290000, "nanoOfSecond": 69_000_000}
    fields = {"instant": instant, "level": level, "loggerName": logger, "message": message}
    return json.dumps({**fields, "at": time})


LAYOUTS = {
    "threads": lambda line: f"{line} [data-plane-3]",
    "container": lambda line: f"2026-11-22T01:02:03.123456789Z stdout F {line}",
    "pod": lambda line: f"[pod/kafka-0/kafka] {line}",
    "docker": lambda line: json.dumps({"log": f"{line}\n", "stream": "stdout", "time": "2026"}),
    "json": _json_layout,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_hold_equal_events(layout: str) -> None:
    plain = [line.rstrip() for line in lines_of("kafka-4.4.0/broker.log.gz") if "[Group" in line]
    expected = read_coordinator_log(plain).events
    found = read_coordinator_log(map(LAYOUTS[layout], plain)).events
    if layout == "json":
        assert {one.time_ms for one in found} == {1795290000069}
        assert [(one.event, one.fields) for one in found] == [
            (one.event, one.fields) for one in expected
        ]
    else:
        assert found == expected


def test_unknown_lines_are_counted_and_not_guessed() -> None:
    new = "[2026-11-21 19:32:34,536] INFO [GroupCoordinator id=0] Group g is blue. (kafka.x.Y)"
    log = read_coordinator_log([new, new, "at java.lang.Thread.run", "", "{not json"])
    assert (log.events, log.unknown, log.other) == ((), 2, 3)
    assert log.examples[0].startswith("Group g is blue")


@pytest.mark.parametrize(
    ("reason", "cause", "member", "said"),
    [
        ("removing member m on heartbeat expiration", "session_timeout", "m", "not_said"),
        (
            "Member m is joining group during Stable; client reason: cached metadata has changed",
            "member_rejoined", "m", "metadata",
        ),
        (
            "Leader m re-joining group during Stable; client reason: by (hand)",
            "leader_rejoined", "m", "by (hand)",
        ),
        ("Removing Set(m) on pending sync request expiration", "sync_timeout", "m", "not_said"),
    ],
)  # fmt: skip
def test_reasons_of_a_rebalance(reason: str, cause: str, member: str, said: str) -> None:
    front = "Preparing to rebalance group a group in state PreparingRebalance with old generation 7"
    event = read_message(f"{front} (__consumer_offsets-3) (reason: {reason})")
    assert event is not None
    assert (event.group_id, event.generation_id) == ("a group", 7)
    assert (event.cause, event.member_id, event.said) == (cause, member, said)


def test_clients_reasons_of_a_real_run() -> None:
    """The counts equal those of plain string searches, without our regular expressions."""
    lines = lines_of("kafka-4.4.0/broker.log.gz")
    said = Counter(one.said for one in log_of("4.4.0").events if one.event == "prepare")
    text = [line for line in lines if "Preparing to rebalance" in line]
    assert said["metadata"] == sum("cached metadata has changed" in line for line in text) > 0
    assert said["revoked"] == sum("need to revoke partitions" in line for line in text) > 0
    assert said["asked by hand"] == sum("asked by hand" in line for line in text) > 0


def test_late_writes_of_the_coordinator_name_their_group() -> None:
    """A broker whose replica was down lost a group's members; the broker's log lines show the
    reason.
    """
    log = read_coordinator_log(lines_of("moved-4.4.0.log.gz"))
    stuck = [one for one in log.events if one.event == "write_stuck"]
    assert len(stuck) >= 2
    ended = next(
        one for one in log.events
        if one.event == "assigned" and (one.time_ms or 0) > (stuck[0].time_ms or 0)
        and one.group_id == "c"
    )  # fmt: skip
    base = rebalance_history(records_of("4.4.0"))[20]
    row = replace(
        base, group_id="c", generation_id=ended.generation_id or 0, written_ms=ended.time_ms or 0
    )
    assert "coordinator" in {cause.kind for cause in with_log([row], log)[0].causes}


def test_the_command_reads_the_brokers_logs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = VECTORS / "kafka-4.4.0"
    plain = tmp_path / "server.log"
    plain.write_text("".join(lines_of("kafka-4.4.0/broker.log.gz")), encoding="utf-8")
    told = []
    for path in (plain, folder / "broker.log.gz"):
        words = ["history", str(folder / "records.jsonl.gz"), "--broker-log", str(path)]
        assert main([*words, "--group", "shop"]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    assert not re.search(r"left or timed out\s+\(", told[0])
    assert main(["history", str(folder / "records.jsonl.gz"), "--group", "shop"]) == 0
    assert re.search(r"left or timed out\s+\(", capsys.readouterr().out)
    assert main(["history", str(folder / "records.jsonl.gz"), "--broker-log", "no such"]) == 2
