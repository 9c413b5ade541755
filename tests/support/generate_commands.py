# SPDX-License-Identifier: Apache-2.0
"""Generates random runs of a coordinator, as JSON commands.

Our coordinator and Kafka's play a run. Their member ids differ, so commands contain symbols: `@7`
is the member id from the answer to the JoinGroup of command 7. The requests of a client depend on
our coordinator's earlier answers: each is the next request of a real client, or a stale or wrong
one. A run has a theme, so that rare events occur together: any members; static members of one
group, which may have no time to rejoin; or the offsets and transactions of one or two groups.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from kafka_rebalance.wire.group_records import (
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_value,
)

Command = dict[str, Any]

ERRORS = ("NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT", "NOT_LEADER_OR_FOLLOWER", "MESSAGE_TOO_LARGE")
PROTOCOLS = (["range"], ["range", "sticky"], ["sticky", "range"], ["roundrobin"])
SUBSCRIBED = "hex:00000000000100017400000000"  # ConsumerProtocol version 0, topic t
SESSIONS = (1_000, 2_000, 6_000)
REBALANCES = (0, 1_500, 4_000, 20_000, 20_000)
GROUPS = ("g", "h", "s", "")
LEADER_EPOCHS = (-1, -1, -1, 0, 3, -2)
RETENTIONS = (-1, 0, 1_000, 90_000)
TXN_VERSIONS = (3, 5, 6)  # from 6 on, a missing group has its own error code
METADATA_MAX = 4
STEPS_MS = (0, 1, 499, 500, 1_000, 1_500, 2_000, 4_000, 6_000)


def settings(rng: random.Random) -> Command:
    """Returns the command that makes a new coordinator with small limits."""
    command = {
        "op": "init",
        "init_delay": rng.choice((0, 1_000, 1_000)),
        "min_st": 1_000,
        "max_st": 10_000,
        "meta_max": METADATA_MAX,
        "ret_min": 1,
    }
    if rng.random() < 0.3:
        command["max_size"] = rng.choice((2, 3))
    return command


@dataclass
class Client:
    """A client: the symbols of its ids, its generations, and its next action."""

    group: str
    instance: str | None
    session: int
    rebalance: int
    ids: list[str] = field(default_factory=lambda: [""])
    generations: list[int] = field(default_factory=lambda: [-1, 0])
    next: str = "join"
    busy: bool = False  # a request of this client has no answer yet


class Commands:
    """Makes one random command after another; the caller must pass each answer to `told`."""

    prepared = 0

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        theme = rng.choices(("members", "static", "offsets"), (5, 1, 3))[0]
        if theme == "static":
            self.clients = [
                Client("g", instance, rng.choice(SESSIONS), rng.choice((0, 0, 20_000)))
                for instance in ("i", "j", "k", "k")
            ]
        else:
            self.clients = [
                Client(
                    rng.choices(("g", "h", ""), (40, 10, 1))[0],
                    instance,
                    rng.choice(SESSIONS),
                    rng.choice(REBALANCES),
                )
                for instance in (None, None, None, "i", "i", "j")
            ]
        self.by_join: dict[int, Client] = {}
        self.by_sync: dict[int, Client] = {}
        self.members: dict[str, list[str]] = {group: [] for group in GROUPS}
        self.planned: list[Command] = []
        self.rare = 0.12
        self.groups: tuple[str, ...] = ("g", *GROUPS)
        self.topics: tuple[str, ...] = ("t", "u")
        self.producers = rng.choice(((7,), (7, 8)))
        self.draw_rare = self._rare
        if theme == "offsets":
            self.rare = rng.choice((0.5, 0.95))
            self.groups = rng.choice((("s",), ("g",), ("g", "s")))
            self.topics = rng.choice((("t",), ("t", "u")))
            self.draw_rare = self._about_offsets

    def settings(self) -> Command:
        """Returns the command that makes a new coordinator with small limits."""
        return settings(self.rng)

    def draw(self, number: int) -> Command:
        """Makes the random command with this number."""
        if not self.planned:
            command = self._draw(number)
            self.planned = command["what"] if command["op"] == "then" else [command]
        return self.planned.pop(0)

    def _draw(self, number: int) -> Command:
        """Makes one random command, or several as {"op": "then", "what": [...]}."""
        rng = self.rng
        if rng.random() < self.rare:
            return self.draw_rare()
        if rng.random() < 0.18:
            return {"op": "advance", "ms": rng.choice(STEPS_MS)}
        idle = [one for one in self.clients if not one.busy]
        hasty = not idle or rng.random() < 0.08
        client = rng.choice(self.clients if hasty else idle)
        what = client.next if rng.random() < 0.7 else rng.choice(("join", "sync", "live", "leave"))
        if what == "join":
            return self._join(number, client)
        if what == "sync":
            return self._sync(number, client)
        return self._leave(client) if what == "leave" else self._live(client)

    def _rare(self) -> Command:
        rng = self.rng
        group = rng.choice(self.groups)
        return rng.choice(
            (
                *self._offset_commands(group),
                {"op": "describe", "g": group},
                {"op": "list"},
                {"op": "topic_deleted", "topic": rng.choice(self.topics)},
                {"op": "cleanup"},
                {"op": "advance", "ms": 60_000},
                {"op": "hold"},
                {"op": "release"},
                {"op": "release"},
                {"op": "fail_next", "err": rng.choice(ERRORS)},
                {"op": "reload"},
                {"op": "reload", "max_size": rng.choice((1, 2, 5))},
                {"op": "unload"} if rng.random() < 0.05 else {"op": "reload"},
                {"op": "leave", "g": group, "members": [{"m": "", "inst": rng.choice("ijk")}]},
            )
        )

    def _about_offsets(self) -> Command:
        rng = self.rng
        group = rng.choice(self.groups)
        if rng.random() < 0.65:
            return rng.choice(self._offset_commands(group))
        return rng.choice(
            (
                {"op": "cleanup"},
                {"op": "cleanup"},
                {"op": "cleanup"},
                {"op": "advance", "ms": 60_000},
                {"op": "describe", "g": group},
                {"op": "list"},
                {"op": "topic_deleted", "topic": rng.choice(self.topics)},
                {"op": "hold"} if rng.random() < 0.3 else {"op": "release"},
                {"op": "fail_next", "err": rng.choice(ERRORS)},
                {"op": "reload"},
            )
        )

    def _offset_commands(self, group: str) -> tuple[Command, ...]:
        rng = self.rng
        topic, producer = rng.choice(self.topics), rng.choice(self.producers)
        where: Command = {"g": group, "topic": topic}
        offset: Command = {**where, "off": rng.randrange(100), "le": rng.choice(LEADER_EPOCHS)}
        transaction: Command = {"op": "txncommit", "pid": producer, "v": rng.choice(TXN_VERSIONS)}
        generation = {"gen": 1} if rng.random() < 0.2 else {}
        return (
            {"op": "fetch", **where},
            {"op": "fetch", **where, "stable": True},
            {"op": "commit", **offset},
            {"op": "commit", **offset, "gen": 1}
            if rng.random() < 0.2
            else {"op": "commit", **where},
            {"op": "commit", **offset, "md": rng.choice(("fits", "long!"))},
            {"op": "commit", **offset, "retention": rng.choice(RETENTIONS)},
            {**transaction, **offset},
            {**transaction, **offset, **generation},
            {**transaction, **where},
            {"op": "endtxn", "pid": producer, "commit": rng.random() < 0.7},
            {"op": "delete_offsets", **where},
            {"op": "delete_group", "g": group},
            self._raw(group, topic, producer),
        )

    def _raw(self, group: str, topic: str, producer: int) -> Command:
        """Makes commands that append random records to the log, and then load it again."""
        rng = self.rng
        key = {"op": "raw", "k": encode_key(OffsetCommitKey(group, topic, 0)).hex()}
        epoch, expires = rng.choice(LEADER_EPOCHS), rng.choice((-1, 5_000))
        value = OffsetCommitValue(rng.randrange(100), epoch, "raw", 0, expires, rng.choice((1, 4)))
        kinds: tuple[Command, ...] = (
            {"op": "raw", "k": encode_key(GroupMetadataKey(group)).hex(), "v": None},
            {"op": "raw", "k": encode_key(GroupMetadataKey(group)).hex(), "v": None},
            {**key, "v": None},
            {**key, "v": None, "pid": producer},
            {**key, "v": encode_value(value).hex()},
            {**key, "v": encode_value(value).hex(), "pid": producer},
            {"op": "rawend", "pid": producer, "commit": rng.random() < 0.7},
        )
        return {"op": "then", "what": [*rng.sample(kinds, rng.choice((1, 1, 2))), {"op": "reload"}]}

    def _whose(self, client: Client) -> Command:
        rng = self.rng
        newest = rng.random() < 0.85
        command: Command = {
            "g": client.group,
            "m": client.ids[-1] if newest else rng.choice([*client.ids, "stranger"]),
            "gen": client.generations[-1] if newest else rng.choice(client.generations) + 1,
        }
        instance = client.instance if rng.random() < 0.93 else rng.choice((None, "i", "k"))
        if instance is not None:
            command["inst"] = instance
        return command

    def _join(self, number: int, client: Client) -> Command:
        rng = self.rng
        self.by_join[number] = client
        names = rng.choices(PROTOCOLS, (10, 4, 4, 1))[0]
        command = self._whose(client)
        del command["gen"]
        metadata = rng.choices(("m", SUBSCRIBED, "n"), (2, 6, 1))[0]
        return command | {
            "op": "join",
            "st": client.session if rng.random() < 0.95 else rng.choice((999, 1_000, 10_001)),
            "rt": client.rebalance,
            "pt": "consumer" if rng.random() < 0.97 else rng.choice(("connect", "")),
            "protos": [[name, metadata] for name in names],
            "v": rng.choice((0, 3, 4, 8, 9, 9)),
        }

    def _sync(self, number: int, client: Client) -> Command:
        rng = self.rng
        self.by_sync[number] = client
        command = self._whose(client) | {"op": "sync"}
        if rng.random() < 0.9:
            command["asg"] = {one: f"a:{one}" for one in self.members[client.group]}
        if rng.random() < 0.1:
            command |= {"pt": rng.choice(("consumer", "connect")), "pn": "range"}
        return command

    def _live(self, client: Client) -> Command:
        rng = self.rng
        command = self._whose(client)
        if rng.random() < 0.6:
            return command | {"op": "hb"}
        command |= {"topic": rng.choice(self.topics), "off": rng.randrange(100)}
        if rng.random() < 0.25:
            whose = {"pid": rng.choice(self.producers), "v": rng.choice(TXN_VERSIONS)}
            return command | {"op": "txncommit", **whose}
        return command | {"op": "commit", "v": rng.choice((8, 9))}

    def _leave(self, client: Client) -> Command:
        whose = self._whose(client)
        del whose["gen"]
        group = whose.pop("g")
        members = [whose]
        if self.rng.random() < 0.3:
            other = self._whose(self.rng.choice(self.clients))
            members.append({"m": other["m"]})
        return {"op": "leave", "g": group, "members": members}

    def told(self, number: int, answer: Command) -> None:
        """Receives the answer to the command with this number, with symbols for member ids."""
        for event in answer.get("events", ()):
            if event["ev"] == "join" and event["id"] in self.by_join:
                self._joined(self.by_join[event["id"]], event)
            elif event["ev"] == "sync" and event["id"] in self.by_sync:
                client = self.by_sync[event["id"]]
                client.busy = False
                client.next = "live" if event["err"] == "NONE" else "join"
        seen = {event["id"] for event in answer.get("events", ()) if "id" in event}
        for parked in (self.by_join, self.by_sync):
            if number in parked and number not in seen:
                parked[number].busy = True

    def _joined(self, client: Client, event: Command) -> None:
        client.busy = False
        client.next = "sync" if event["err"] == "NONE" else "join"
        if event["err"] in ("NONE", "MEMBER_ID_REQUIRED"):
            client.ids.append(event["member"])
        elif event["err"] == "UNKNOWN_MEMBER_ID":
            client.ids.append("")
        if event["err"] == "NONE":
            client.generations.append(event["gen"])
            if event["members"]:
                self.members[client.group] = [one["id"] for one in event["members"]]
