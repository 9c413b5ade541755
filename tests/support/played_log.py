# SPDX-License-Identifier: Apache-2.0
"""The records that commands of the driver write in virtual time, and those of recorded runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_rebalance.group.model import Topic, id_text
from kafka_rebalance.history.records import OffsetsRecord
from kafka_rebalance.playback.driver import Driver

if TYPE_CHECKING:
    from collections.abc import Iterable

Json = dict[str, Any]
START_MS = 1_000_000


def records_in(answers: Iterable[Json]) -> list[OffsetsRecord]:
    """Returns the records in the answers of one coordinator, as one partition of the log."""
    events = [
        one for answer in answers for one in answer.get("events", ()) if one["ev"] == "record"
    ]
    return [
        OffsetsRecord(
            0,
            offset,
            one["t"],
            bytes.fromhex(one["kb"]),
            None if one["vb"] is None else bytes.fromhex(one["vb"]),
        )
        for offset, one in enumerate(events)
    ]


def topics_in(commands: Iterable[Json]) -> list[Topic]:
    """Returns the topics of all commands; one that was made again has two ids."""
    found: dict[str, Topic] = {}
    for command in commands:
        for name, one in command["topics"].items() if command["op"] == "topics" else ():
            given = one if isinstance(one, dict) else {"partitions": one}
            topic_id = id_text(str(given.get("id", name)).encode().ljust(16, b"\0")[:16])
            found[topic_id] = Topic(name, given["partitions"], None, topic_id)
    return list(found.values())


class PlayedLog:
    """Our coordinator; `records` are those that it has written."""

    def __init__(self, **settings: Any) -> None:
        self._driver = Driver()
        self._answers: list[Json] = []
        self({"op": "init", "at": START_MS, **settings})

    @property
    def records(self) -> list[OffsetsRecord]:
        return records_in(self._answers)

    def __call__(self, command: Json) -> Json:
        self._answers.append(self._driver.command(command))
        return self._answers[-1]

    def wait(self, ms: int) -> None:
        self({"op": "advance", "ms": ms})

    def beat(self, member: str, epoch: int, op: str = "chb", **fields: Any) -> Json:
        """Sends a heartbeat to the consumer or share group g; a new member reads the topic t."""
        if epoch == 0:
            joins: Json = {} if op == "shb" else {"rt": 60_000, "owned": {}}
            fields = {"topics": ["t"], **joins, **fields}
        return self({"op": op, "g": "g", "m": member, "epoch": epoch, **fields})

    def commit(self, member: str, epoch: int, partition: int, offset: int) -> None:
        """Commits an offset of the topic t."""
        sent = {"g": "g", "m": member, "gen": epoch, "topic": "t", "p": partition, "off": offset}
        assert self({"op": "commit", **sent})["events"]
