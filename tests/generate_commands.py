"""Random runs of a coordinator, as commands of the driver protocol.

Ids are symbols: `@7` is the member id that the seventh command's JoinGroup got, whatever it is on
either side, so that one run can be played on two coordinators. What is drawn depends on what our
own coordinator answered: mostly what a real client would say next, often something stale or wrong.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

Command = dict[str, Any]

ERRORS = ("NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT", "NOT_LEADER_OR_FOLLOWER", "MESSAGE_TOO_LARGE")
PROTOCOLS = (["range"], ["range", "sticky"], ["sticky", "range"], ["roundrobin"])
SUBSCRIBED = "hex:00000000000100017400000000"  # ConsumerProtocol version 0, topic t
SESSIONS = (1_000, 2_000, 6_000)
REBALANCES = (1_500, 4_000, 20_000)
METADATA_MAX = 4
STEPS_MS = (0, 1, 499, 500, 1_000, 1_500, 2_000, 4_000, 6_000)


def settings(rng: random.Random) -> Command:
    """A fresh coordinator with small limits."""
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
    """What a client knows of itself: symbols of its ids, generations, and what it does next."""

    group: str
    instance: str | None
    session: int
    rebalance: int
    ids: list[str] = field(default_factory=lambda: [""])
    generations: list[int] = field(default_factory=lambda: [-1, 0])
    next: str = "join"
    busy: bool = False  # a request of it is parked


class Commands:
    """Draws one command after another; `told` is what came of the last one."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.clients = [
            Client(
                rng.choices(("g", "h"), (4, 1))[0],
                instance,
                rng.choice(SESSIONS),
                rng.choice(REBALANCES),
            )
            for instance in (None, None, None, "i", "i", "j")
        ]
        self.by_join: dict[int, Client] = {}
        self.by_sync: dict[int, Client] = {}
        self.members: dict[str, list[str]] = {"g": [], "h": []}

    def draw(self, number: int) -> Command:
        """The command with this number."""
        rng = self.rng
        draw = rng.random()
        if draw < 0.16:
            return {"op": "advance", "ms": rng.choice(STEPS_MS)}
        if draw < 0.28:
            return self._rare()
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
        group, topic = rng.choice(("g", "g", "h", "s")), rng.choice(("t", "u"))
        producer = rng.choice((7, 8))
        where: Command = {"g": group, "topic": topic}
        return rng.choice(
            (
                {"op": "fetch", **where},
                {"op": "fetch", **where, "stable": True},
                {"op": "fetch", **where},
                {"op": "describe", "g": group},
                {"op": "commit", **where, "off": rng.randrange(100)},
                {"op": "commit", **where, "off": 1, "md": rng.choice(("fits", "long!"))},
                {"op": "commit", **where, "off": 2, "retention": rng.choice((1_000, 90_000))},
                {"op": "txncommit", **where, "off": rng.randrange(100), "pid": producer},
                {"op": "endtxn", "pid": producer, "commit": rng.random() < 0.7},
                {"op": "delete_offsets", **where},
                {"op": "delete_group", "g": group},
                {"op": "topic_deleted", "topic": topic},
                {"op": "cleanup"},
                {"op": "advance", "ms": 60_000},
                {"op": "hold"},
                {"op": "release"},
                {"op": "release"},
                {"op": "fail_next", "err": rng.choice(ERRORS)},
                {"op": "reload"},
                {"op": "reload", "max_size": rng.choice((1, 2, 5))},
                {"op": "unload"} if rng.random() < 0.1 else {"op": "reload"},
                {"op": "leave", "g": group, "members": [{"m": "", "inst": rng.choice("ijk")}]},
            )
        )

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
            "v": rng.choice((3, 4, 8, 9, 9)),
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
        command |= {"topic": rng.choice(("t", "u")), "off": rng.randrange(100)}
        if rng.random() < 0.25:
            return command | {"op": "txncommit", "pid": rng.choice((7, 8))}
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
        """What came of the command with this number, with symbols for ids."""
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
