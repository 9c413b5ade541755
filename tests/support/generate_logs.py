# SPDX-License-Identifier: Apache-2.0
"""Generates random runs that begin with a log of another coordinator, as JSON commands.

Our coordinator first plays a run of groups of any type. Its log, as a broker finds it some time
later, is then the log of a new coordinator, and the run continues there. The new broker's clock can
be ahead or behind. The log is

    whole      as it was written
    compacted  without records that newer ones of their key replace
    cleaned    compacted, without tombstones
    tail       cleaned, except for its end, which is whole
    torn       compacted, without one to three of its tombstones
    damaged    whole, but one record's value is cut, or has another version

In most of these runs, the type of the group changes: the members of one type leave, and those of
another type come. Kafka refuses some of these logs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_rebalance.playback.driver import Driver
from tools.member_ids import Ids

from .generate_heartbeats import AnyMember, HeartbeatCommands, ShareCommands
from .generate_streams_heartbeats import StreamsCommands
from .random_consumer_members import ConsumerMember
from .random_share_members import ShareMember
from .random_streams_members import StreamsMember
from .random_topics import Command

if TYPE_CHECKING:
    import random

    from kafka_rebalance.coordinator.machine.events import LogEntry

FIRST = 1_000_000
"""The commands of the older coordinator are counted from here, so that their symbols differ."""
CLOCKS_MS = (0, 0, 0, 1, 700, 60_000, -1, -500, -30_000)
LOGS = {"whole": 3, "compacted": 3, "cleaned": 2, "tail": 2, "torn": 1, "damaged": 1}


class ChangingTypes(StreamsCommands):
    """Makes the commands of a run whose group changes its type again and again."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        names = self.topics.names()
        self.of_types: list[list[ConsumerMember] | list[ShareMember] | list[StreamsMember]] = [
            [ConsumerMember(rng, self.topics, name, "g", None) for name in "CD"],
            [ShareMember(rng, self.topics, name, "g", None, names) for name in "PQ"],
            [StreamsMember(rng, self.topics, name, "g", None, self.topology) for name in "AB"],
        ]
        self.classics = [self._classic()]
        self.classics[0].group = "g"
        self.present = rng.choice(self.of_types)

    def settings(self) -> Command:
        rng = self.rng
        assigned = {name: rng.choice((0, 0, 1_000)) for name in ("cai", "sai")}
        return super().settings() | assigned | {"init_delay": 1_000}

    def _draw(self, number: int) -> Command:
        rng = self.rng
        chance = rng.random()
        if chance < 0.15:
            return self._change_type()
        if chance < 0.5:
            return super()._draw(number)
        members: list[AnyMember] = [*self.present]
        return self._draw_of(number, rng.choice(members))

    def _change_type(self) -> Command:
        """Lets all members leave; then members of another type come, or first a classic request."""
        rng = self.rng
        gone = {"epoch": -1}
        self.planned += [
            {"op": one.OP, "g": "g", "m": one.member_id, **gone} for one in self.present
        ]
        if rng.random() < 0.5:
            stranger = {"op": "join", "g": "g", "m": "stranger", "protos": [["range", "x"]]}
            self.planned.append(rng.choice((stranger, {"op": "delete_group", "g": "g"})))
        self.present = rng.choice(self.of_types)
        return {"op": "advance", "ms": 0}


class LoadedLogs:
    """Makes a run that begins with a log; the caller must pass each answer to `told`."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        kinds = (ChangingTypes, HeartbeatCommands, ShareCommands, StreamsCommands)
        self.drawn: HeartbeatCommands = rng.choices(kinds, (5, 3, 1, 1))[0](rng)
        self.ids = Ids()
        self.settings_of_both = self.drawn.settings()
        log, now_ms = self._older_coordinator()
        raw = [_raw(one) for one in self._left_of(log)]
        self.now_ms = max(1, now_ms + rng.choice(CLOCKS_MS))
        self.planned = [self.drawn.topics.command(), *raw, {"op": "reload"}]
        self.prepared = len(self.planned)

    def _older_coordinator(self) -> tuple[list[LogEntry], int]:
        """Plays a run on our coordinator; returns its log, and the time at its end."""
        driver = Driver()
        command = self.settings_of_both
        for number in range(FIRST, FIRST + self.rng.randint(5, 60)):
            answer = driver.command(self.ids.concrete(command))
            for event in answer["events"]:
                if "id" in event:
                    event["id"] += FIRST - 1
            self.ids.seen(number, answer)
            self.drawn.told(number, self.ids.shown(answer))
            command = self.drawn.draw(number + 1)
        answer = driver.command({"op": "unload"})
        return driver.log, answer["now"]

    def _left_of(self, log: list[LogEntry]) -> list[LogEntry]:
        rng = self.rng
        kind = rng.choices(list(LOGS), list(LOGS.values()))[0]
        whole = rng.randint(0, len(log)) if kind == "tail" else len(log)
        if kind != "whole" and (kind != "damaged" or rng.random() < 0.3):
            keeps = kind not in ("cleaned", "tail")
            log = [*_compacted(log[:whole], tombstones=keeps), *log[whole:]]
        if kind == "torn":
            tombstones = [one for one in log if one.value is None and one.committed is None]
            lost = rng.choices(tombstones, k=rng.randint(1, 3)) if tombstones else []
            log = [one for one in log if one not in lost]
        if kind == "damaged":
            some = rng.choice([one for one in log if one.value] or [None])
            if some is not None:
                value = some.value or b""
                cut = value[: -rng.randint(1, 4)]
                hurt = some._replace(value=rng.choice((cut, b"\0\x63" + value[2:])))
                log = [hurt if one is some else one for one in log]
        return log

    def settings(self) -> Command:
        """Returns the command that makes the new coordinator."""
        return self.settings_of_both | {"at": self.now_ms}

    def draw(self, number: int) -> Command:
        """Makes the command with this number."""
        if self.planned:
            return self.planned.pop(0)
        return self.ids.concrete(self.drawn.draw(number), others=True)

    def told(self, number: int, answer: Command) -> None:
        """Receives the answer to the command with this number."""
        self.drawn.told(number, self.ids.shown(answer))


def _compacted(log: list[LogEntry], *, tombstones: bool) -> list[LogEntry]:
    """Returns the newest record of each key; records written in transactions stay."""
    newest = {one.key: one for one in log if one.producer_id is None}
    return [
        one for one in log
        if one.producer_id is not None
        or (newest[one.key] is one and (tombstones or one.value is not None))
    ]  # fmt: skip


def _raw(entry: LogEntry) -> Command:
    if entry.committed is not None:
        return {"op": "rawend", "pid": entry.producer_id, "commit": entry.committed}
    value = None if entry.value is None else entry.value.hex()
    command = {"op": "raw", "k": entry.key.hex(), "v": value}
    return command if entry.producer_id is None else command | {"pid": entry.producer_id}
