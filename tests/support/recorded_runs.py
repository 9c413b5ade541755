# SPDX-License-Identifier: Apache-2.0
"""Plays recorded runs of groups whose brokers assign, with the answers of Kafka's own coordinator.

A file in `tests/data` has a run in each line: its name, and its steps. A step is a command of the
driver, Kafka's answer to it with the bytes of the records, and the random member ids that Kafka
chose. In the commands, symbols such as `@7` stand for these ids. `tools.record_consumer_groups`
writes the file of consumer groups.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_rebalance.playback.driver import Driver
from tools.accepted_differences import refused
from tools.differential_coordinator import with_members_sorted
from tools.member_ids import Ids

if TYPE_CHECKING:
    from collections.abc import Callable

Answer = dict[str, Any]

CLASSIC_GROUP = "0002"
"""The first bytes of the key of a classic group's record, whose members are in hash order."""

DATA = Path(__file__).resolve().parent.parent / "data"


def recorded(name: str) -> list[Answer]:
    """Returns the runs of a file in `tests/data`."""
    with gzip.open(DATA / name, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def assert_played_alike(run: Answer) -> None:
    """Plays a run on our coordinator, and compares each answer with Kafka's."""
    ids = Ids()
    driver = Driver(ids.draw)
    for number, (command, answer, drawn) in enumerate(run["steps"], 1):
        concrete = ids.concrete(command)
        ids.seen(number, drawn)
        assert _shown(driver.command(concrete)) == _shown(answer), command


def records_of(runs: list[Answer]) -> list[tuple[bytes, bytes | None]]:
    """Returns the bytes of all records in the runs."""
    events = [one for run in runs for _, answer, _ in run["steps"] for one in answer["events"]]
    return [
        (bytes.fromhex(one["kb"]), None if one["vb"] is None else bytes.fromhex(one["vb"]))
        for one in events
        if one["ev"] == "record"
    ]


def types_written_again(
    runs: list[Answer],
    decode: Callable[[bytes, bytes | None], Any],
    encode: Callable[[Any], tuple[bytes, bytes | None]],
) -> tuple[set[Any], set[Any]]:
    """Checks that every record, decoded and encoded again, has its original bytes.

    Returns the types of all records that `decode` knows, and the types of the tombstones.
    """
    types, buried = set(), set()
    for key, value in records_of(runs):
        record = decode(key, value)
        if record is not None:
            assert encode(record) == (key, value)
            types.add(record.key.type)
            if value is None:
                buried.add(record.key.type)
    return types, buried


def _shown(answer: Answer) -> Answer:
    """Returns the answer without its message, and with only the time and bytes of each record."""
    kept = {name: value for name, value in refused(answer).items() if name != "msg"}
    shown = ("ev", "t", "kb", "vb")
    events = kept.pop("events")
    for one in events:
        if one["ev"] == "record" and one["kb"].startswith(CLASSIC_GROUP) and one["vb"]:
            one["vb"] = with_members_sorted(one)
    kept["records"] = [
        {name: one[name] for name in shown} for one in events if one["ev"] == "record"
    ]
    # Answers to several joins, and lists of members, have the order of a hash map of random ids.
    rest = [one for one in events if one["ev"] != "record"]
    for one in rest:
        one["members"] = sorted(one.get("members", ()), key=json.dumps)
    kept["events"] = sorted(json.dumps(one, sort_keys=True) for one in rest)
    return kept
