# SPDX-License-Identifier: Apache-2.0
"""Groups that the broker assigns, read from records that Kafka's own coordinator wrote."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.live.recorded_groups import RecordedGroups

DATA = Path(__file__).parent / "data"
KINDS = ("consumer", "share", "streams")
Log = dict[bytes, bytes | None]


def runs(kind: str) -> Iterator[dict[str, Any]]:
    """Yields runs of Kafka's coordinator, which `tools.record_consumer_groups` recorded."""
    with gzip.open(DATA / f"{kind}_groups.jsonl.gz", "rt") as lines:
        yield from map(json.loads, lines)


def inventory(topics: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the topics; the driver's ids are the names' bytes, or text that is given."""
    found = []
    for name, given in topics.items():
        fields = given if isinstance(given, dict) else {"partitions": given}
        bits = fields.get("id", name).encode()[:16].ljust(16, b"\0")
        topic_id = base64.urlsafe_b64encode(bits).decode().rstrip("=")
        found.append({"name": name, "partitions": fields["partitions"], "topic_id": topic_id})
    return found


def states(kind: str) -> Iterator[tuple[dict[str, Any], str, Log, dict[str, Any]]]:
    """Yields Kafka's own state of a group, its id, the log so far, and the cluster's topics."""
    for run in runs(kind):
        log: Log = {}
        topics: dict[str, Any] = {}
        for step, answer, *_ in run["steps"]:
            topics = step["topics"] if step["op"] == "topics" else topics
            for event in answer.get("events", ()):
                if event["ev"] == "record":
                    key, value = bytes.fromhex(event["kb"]), event.get("vb")
                    log.pop(key, None)  # the last record of a key has its place in the log
                    log[key] = None if value is None else bytes.fromhex(value)
            if step["op"] == "mstate" and answer["state"]["type"] == kind:
                yield answer["state"], step["g"], dict(log), topics


def line_of(group_id: str, log: Log, topics: dict[str, Any]) -> dict[str, Any] | None:
    prefix = len(group_id).to_bytes(2) + group_id.encode()
    records = [(k, v) for k, v in log.items() if v is not None and k[2:].startswith(prefix)]
    return RecordedGroups(inventory(topics)).line(group_id, records)


def held(runs: list[dict[str, Any]], key: str = "topic") -> dict[str, list[int]]:
    return {one[key]: sorted(one["partitions"]) for one in runs if one["partitions"]}


@pytest.mark.parametrize("kind", KINDS)
def test_a_line_is_the_state_that_kafkas_coordinator_has(kind: str) -> None:
    checked = 0
    for state, group_id, log, topics in states(kind):
        # Some runs recorded no topology, the record type 23: such a group is not ready, either.
        has_topology = kind != "streams" or any(key[:2] == b"\0\x17" for key in log)
        if state["state"] == "NotReady" or not has_topology:
            with pytest.raises(kr.GroupError, match="has not validated the topology"):
                line_of(group_id, log, topics)
            continue
        line = line_of(group_id, log, topics)
        assert line is not None
        assert (line["kind"], line["generation_id"]) == (kind, state["epoch"])
        assert line.get("assignment_epoch", state["assignment_epoch"]) == state["assignment_epoch"]
        assert {one["member_id"] for one in line.get("members", ())} == {*state["members"]}
        for one in line.get("members", ()):
            checked += 1
            kafkas = state["members"][one["member_id"]]
            assert one["generation_id"] == kafkas["epoch"]
            if kind == "streams":
                assert held(one["active_tasks"], "subtopology_id") == active(kafkas["assigned"])
            elif kind == "consumer":
                there = {name: of for name, of in kafkas["target"].items() if name in topics}
                target = {name: sorted(of) for name, of in there.items() if of}
                assert held(one["owned_partitions"]) == target
    assert checked > 50


def active(assigned: dict[str, Any]) -> dict[str, list[int]]:
    tasks = assigned.get("active", {})
    return {name: sorted(map(int, numbers)) for name, numbers in tasks.items()}


@pytest.mark.parametrize("wrong", [{"topic_id": "no id"}, {"partitions": None}])
def test_a_wrong_topic_is_an_error_of_its_groups_alone(wrong: dict[str, Any]) -> None:
    _, group_id, log, topics = next(
        one for one in states("consumer") if one[0]["state"] == "Stable"
    )
    prefix = len(group_id).to_bytes(2) + group_id.encode()
    records = [(k, v) for k, v in log.items() if v is not None and k[2:].startswith(prefix)]
    known = inventory(topics)
    expected = RecordedGroups(known).line(group_id, records)
    other = inventory({"another": 3})[0] | wrong
    assert RecordedGroups([other, *known]).line(group_id, records) == expected
    name = next(iter(expected["topics"]))["name"] if expected else ""
    mine = [one | wrong if one["name"] == name else one for one in known]
    with pytest.raises(kr.GroupError, match=f'topics.{next(iter(wrong))}: "{name}"'):
        RecordedGroups(mine).line(group_id, records)
