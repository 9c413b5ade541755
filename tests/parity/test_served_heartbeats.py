# SPDX-License-Identifier: Apache-2.0
"""`serve` answers heartbeats of consumer and of share groups over its socket as the driver does.

The runs are random ones of `tools/differential_coordinator.py`, which finds that the driver answers
as Kafka's own coordinator. Classic groups are in `test_served.py`, against a broker's answers.
"""

from __future__ import annotations

import random
from contextlib import closing
from struct import pack
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")

from kafka_rebalance.coordinator.machine.events import (
    ClusterTopic,
    PartitionsDeleted,
    TopicsChanged,
)
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.playback.driver import Driver
from kafka_rebalance.playback.driver_commands import config_of, topic_id
from kafka_rebalance.testing import RunningBroker
from tests.support.generate_heartbeats import HeartbeatCommands, ShareCommands
from tests.support.served_broker import connection

if TYPE_CHECKING:
    from tests.support.random_topics import Command
    from tests.support.seeds import Seeds

APIS = {
    "chb": "consumer_group_heartbeat",
    "shb": "share_group_heartbeat",
    "cdescribe": "consumer_group_describe",
    "sdescribe": "share_group_describe",
}
AT_ONCE = {"op": "advance", "ms": 0}
STEPS = 40


class ServedHeartbeats:
    """Plays the commands of a run over a socket."""

    def __init__(self, broker: RunningBroker) -> None:
        self._broker, self._one = broker, connection(broker)
        self._names: dict[UUID, str] = {}
        self._topics: tuple[ClusterTopic, ...] = ()

    def close(self) -> None:
        self._one.close()

    def tell(self, command: Command) -> Command:
        """Plays a command, and returns the answer without its events."""
        op = command["op"]
        if op == "advance":
            self._broker.advance(command["ms"], heartbeats=False)
        elif op == "topics":
            self._change_topics(command["topics"])
        elif op in ("chb", "shb"):
            return self._heard(command)
        else:
            group_ids = {"group_ids": [command["g"]], "include_authorized_operations": False}
            (group,) = self._one.ask(APIS[op], 1, **group_ids).groups
            error = group.error_code.name.upper()
            return {"err": error} | ({"epoch": group.group_epoch} if error == "NONE" else {})
        return {}

    def _change_topics(self, topics: Command) -> None:
        """Serves topics with the ids of the driver, because assignors can read ids."""
        server = self._broker._server
        now = tuple(
            ClusterTopic(name, topic_id(one["id"]), one["partitions"], racks_of(one))
            for name, one in topics.items()
        )
        ids = [one.topic_id for one in now]
        gone = tuple((one.name, one.topic_id) for one in self._topics if one.topic_id not in ids)
        self._topics = now
        self._names |= {as_uuid(one.topic_id): one.name for one in now}

        def change() -> None:
            server._topics_version += 1
            server.cluster.version = server._topics_version
            server._handle(TopicsChanged(now, server._topics_version))
            if gone:
                server._handle(PartitionsDeleted(topics=gone))

        self._broker._call(change)

    def _heard(self, command: Command) -> Command:
        owned, ids = command.get("owned"), {one.name: one.topic_id for one in self._topics}
        partitions = [
            {"topic_id": as_uuid(ids.get(name) or topic_id(name)), "partitions": numbers}
            for name, numbers in (owned or {}).items()
        ]
        answer = self._one.ask(
            APIS[command["op"]],
            command.get("v", 1),
            group_id=command["g"],
            member_id=command["m"],
            member_epoch=command["epoch"],
            instance_id=command.get("inst"),
            rack_id=command.get("rack"),
            rebalance_timeout=command.get("rt", -1),
            subscribed_topic_names=command.get("topics"),
            subscribed_topic_regex=command.get("regex"),
            server_assignor=command.get("assignor"),
            topic_partitions=None if owned is None else partitions,
        )
        error = answer.error_code.name.upper()
        if error != "NONE":
            return {"err": error}
        given = None
        if answer.assignment is not None:
            listed = answer.assignment.topic_partitions
            given = {self._names[one.topic_id]: sorted(one.partitions) for one in listed}
        return {
            "err": error,
            "member": answer.member_id,
            "epoch": answer.member_epoch,
            "interval": answer.heartbeat_interval.total_seconds() * 1000,
            "asg": given,
        }


def racks_of(topic: Command) -> tuple[tuple[str, ...], ...]:
    return tuple(map(tuple, topic.get("racks", ())))


def as_uuid(topic_id: Uuid) -> UUID:
    return UUID(bytes=pack(">qq", *topic_id))


def played(drawn: HeartbeatCommands) -> int:
    """Plays a run on both, and returns the number of equal answers."""
    driver, settings = Driver(), drawn.settings()
    driver.command(settings)
    answered = 0
    with (
        RunningBroker({}, config=config_of(settings), stopped_clock=True) as broker,
        closing(ServedHeartbeats(broker)) as served,
    ):
        served.tell({"op": "advance", "ms": settings["at"]})
        for number in range(2, STEPS):
            command = drawn.draw(number)
            # A broker draws the id of a member without one; other commands are not of heartbeats.
            if command["op"] not in (*APIS, "advance", "topics") or command.get("v") == 0:
                continue
            answer = driver.command(command)
            shown = served.tell(command)
            told = {key: answer.get(key) for key in shown}
            assert shown == told, (number, command)
            answered += command["op"] in APIS
            drawn.told(number, answer)
            if command["op"] == "shb":  # the driver initialises share state when time passes
                driver.command(AT_ONCE)
    return answered


@pytest.mark.seeds(quick=8, whole=200)
@pytest.mark.parametrize("theme", ["consumers", "static", "patterns", "ties", "share"])
def test_serve_answers_heartbeats_as_the_driver_does(theme: str, seeds: Seeds) -> None:
    answered = 0
    for seed in seeds:
        rng = random.Random(f"{theme}/{seed}")
        drawn = ShareCommands(rng) if theme == "share" else HeartbeatCommands(rng, theme)
        answered += played(drawn)
    assert answered > 5 * len(seeds)
