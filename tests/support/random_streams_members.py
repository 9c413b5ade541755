# SPDX-License-Identifier: Apache-2.0
"""Draws requests of members of streams groups, and the topologies of their application.

A member knows what a client knows: its id, its epochs, and its tasks. Most of its requests are the
next ones of a real client; the others are late, repeated or wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .random_topics import NAMES, NEVER, Command, RandomTopics

if TYPE_CHECKING:
    import random

REBALANCES = (1_500, 20_000, 20_000, 60_000)
PROCESSES = ("p1", "p1", "p2", "p3")
TAGS: tuple[Command, ...] = ({}, {"zone": "a"}, {"zone": "b", "cloud": "c"}, {"cloud": "c"})
RACKS = ("r0", "r1")
ROLES = ("active", "standby", "warmup")
NO_TASKS: Command = {role: {} for role in ROLES}


@dataclass
class RandomTopology:
    """An application's topology; `changed` is one that differs from it."""

    rng: random.Random
    topics: RandomTopics
    epoch: int = 0

    def __post_init__(self) -> None:
        rng, known = self.rng, list(self.topics.topics)
        self.epoch = rng.choice((0, 1, 1, 2))
        self.subtopologies: Command = {}
        stateful = rng.random() < 0.75
        for name in rng.choice((("0",), ("0",), ("0", "1"), ("0", "1"), ("0", "1", "10"))):
            names = known if rng.random() < 0.95 else [*NAMES, NEVER]
            sources = rng.sample(names, min(len(names), rng.choice((1, 1, 1, 2))))
            self.subtopologies[name] = {"sources": sources}
            if stateful and rng.random() < 0.8:
                self.subtopologies[name]["changelogs"] = [f"c{name}"]
        if "1" in self.subtopologies and rng.random() < 0.6:
            self._repartition()
        if rng.random() < 0.5:
            self.subtopologies = dict(reversed(self.subtopologies.items()))

    def _repartition(self) -> None:
        """Lets the second subtopology read what the first one writes; some cannot be right."""
        rng, first, second = self.rng, self.subtopologies["0"], self.subtopologies["1"]
        first["repartition_sinks"] = ["r"]
        second["repartition_sources"] = ["r"]
        if "10" in self.subtopologies and rng.random() < 0.5:
            second["repartition_sinks"] = ["s"]
            self.subtopologies["10"]["repartition_sources"] = ["s"]
        if rng.random() < 0.5:
            second["sources"] = []
        what = rng.random()
        if what < 0.03:
            first["repartition_sinks"] = []
        elif what < 0.06:
            first |= {"sources": [], "repartition_sources": ["s"]}
            second["repartition_sinks"] = ["s"]
            second["sources"] = []
        elif what < 0.08:
            first["sources"] = []

    def command(self) -> Command:
        """Returns the topology as a field of a command."""
        return {"epoch": self.epoch, "subtopologies": self.subtopologies}

    def changed(self) -> Command:
        """Returns an older or newer epoch of the topology, or other subtopologies."""
        rng = self.rng
        other = dict(self.subtopologies)
        if rng.random() < 0.5:
            other["0"] = {**other["0"], "changelogs": ["d"]}
        return {"epoch": self.epoch + rng.choice((-1, -1, 0, 1)), "subtopologies": other}

    def partitions_of(self, internal: str) -> int:
        """Returns the partitions that an internal topic should have, as far as sources tell."""
        found = [1]
        for one in self.subtopologies.values():
            if internal in one.get("changelogs", ()) or internal in ("r", "s"):
                known = (self.topics.topics.get(name) for name in one["sources"])
                found += [topic["partitions"] for topic in known if topic is not None]
        return max(found)


@dataclass
class StreamsMember:
    """A member of a streams group, which names itself."""

    rng: random.Random
    topics: RandomTopics
    topology: RandomTopology
    name: str
    group: str
    instance: str | None
    fixed: Command = field(default_factory=dict)
    ids: int = 0
    epochs: list[int] = field(default_factory=lambda: [0])
    joined: bool = False
    tasks: Command = field(default_factory=lambda: NO_TASKS)
    before: Command = field(default_factory=lambda: NO_TASKS)

    def __post_init__(self) -> None:
        rng = self.rng
        self.fixed = {
            "rt": rng.choice(REBALANCES),
            "process": rng.choice(PROCESSES),
            "rack": rng.choice((None, None, *RACKS)),
            "tags": rng.choice((None, *TAGS)),
        }

    @property
    def member_id(self) -> str:
        return f"{self.name}{self.ids}"

    def draw(self) -> Command:
        """Draws the next request."""
        rng = self.rng
        if not self.joined and rng.random() < 0.9:
            return self._join()
        kinds = {
            self._beat: 24,
            self._acknowledge: 36,
            self._late: 6,
            self._repeat: 8,
            self._wrong: 6,
            self._change: 6,
            self._join: 3,
            self._leave: 6,
            self._invalid: 2,
            self._commit: 6,
            self._shut_down: 1,
        }
        return rng.choices(list(kinds), list(kinds.values()))[0]()

    def told(self, command: Command, answer: Command) -> None:
        """Receives the answer to a request of this member."""
        error = answer.get("err")
        if error is None or command["op"] != "sthb":
            return
        if error in ("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH", "GROUP_ID_NOT_FOUND"):
            self._lose()
        if error != "NONE" or command["m"] != self.member_id:
            return
        if answer["epoch"] < 0:
            self._lose()
            if self.rng.random() < 0.6:
                self.ids += 1
            return
        self.joined = True
        if answer["epoch"] != self.epochs[-1]:
            self.epochs.append(answer["epoch"])
        if answer["active"] is not None:
            self.before, self.tasks = self.tasks, {role: answer[role] for role in ROLES}

    def _lose(self) -> None:
        self.joined = False
        self.before, self.tasks = self.tasks, NO_TASKS

    def _request(self, **fields: Any) -> Command:
        command = {"op": "sthb", "g": self.group, "m": self.member_id, "epoch": self.epochs[-1]}
        if self.instance is not None:
            command["inst"] = self.instance
        return command | fields

    def _join(self) -> Command:
        if not self.joined and self.rng.random() < 0.1:
            self.ids += 1
        topology = self.topology.command()
        if self.rng.random() < 0.04:
            topology = self.topology.changed()
        return self._request(**self.fixed, **NO_TASKS, epoch=0, topology=topology)

    def _beat(self) -> Command:
        return self._request()

    def _acknowledge(self) -> Command:
        return self._request(**self.tasks)

    def _late(self) -> Command:
        """Reports older tasks, a part of the present ones, other roles, or anything."""
        tasks = self.tasks
        part = {role: {name: p[1:] for name, p in tasks[role].items()} for role in ROLES}
        turned = {
            role: tasks[other] for role, other in zip(ROLES, ROLES[1:] + ROLES[:1], strict=True)
        }
        some = {"0": sorted(self.rng.sample(range(5), 2))}
        reports = (self.before, part, turned, NO_TASKS, NO_TASKS | {"active": some})
        return self._request(**self.rng.choice(reports))

    def _repeat(self) -> Command:
        """Sends the request again whose answer was lost: its epoch is the previous one."""
        owned = self.rng.choice((self.tasks, self.tasks, self.before, NO_TASKS, {}))
        return self._request(**owned, epoch=self.epochs[-2:][0])

    def _wrong(self) -> Command:
        """Sends an epoch, an id or an instance id that is not this member's."""
        rng = self.rng
        joins = {**self.fixed, **NO_TASKS, "epoch": 0, "topology": self.topology.command()}
        return rng.choice(
            (
                self._request(epoch=self.epochs[-1] + rng.choice((1, 5))),
                self._request(epoch=rng.choice(self.epochs)),
                self._request(epoch=max(1, self.epochs[-1] - 1), **self.tasks),
                self._request(m=rng.choice(("stranger", "A0", "B0", f"{self.name}0"))),
                self._request(inst=rng.choice(("i", "j", "nobody"))),
                self._request(m="late", inst=rng.choice(("i", "j")), **joins),
                self._request(g="none"),
            )
        )

    def _change(self) -> Command:
        """Changes a field; the later requests of a join repeat the new value."""
        rng = self.rng
        changed: Command = rng.choice(
            (
                {"process": rng.choice(PROCESSES)},
                {"rack": rng.choice(RACKS)},
                {"tags": rng.choice(TAGS)},
                {"rt": rng.choice(REBALANCES)},
                {"client": "other"},
            )
        )
        if "client" not in changed:
            self.fixed |= changed
        return self._request(**changed)

    def _leave(self) -> Command:
        static = self.instance is not None and self.rng.random() < 0.7
        shutdown = {"shutdown": True} if self.rng.random() < 0.05 else {}
        return self._request(epoch=-2 if static else -1, **shutdown)

    def _shut_down(self) -> Command:
        return self._request(shutdown=True)

    def _invalid(self) -> Command:
        topology = self.topology.command()
        joins = {**self.fixed, **NO_TASKS, "epoch": 0, "topology": topology}
        return self.rng.choice(
            (
                self._request(m=""),
                self._request(g=self.rng.choice(("", " "))),
                self._request(inst=" "),
                self._request(rack=""),
                self._request(**joins | {"rt": -1}),
                self._request(**joins | {"topology": None}),
                self._request(**joins | {"active": None}),
                self._request(**joins | {"standby": {"0": [0]}}),
                self._request(**joins | {"active": {"0": []}}),
                self._request(topology=topology),
                self._request(**{**self.tasks, "warmup": None}),
                self._request(**NO_TASKS | {"active": {"nothing": []}}),
                self._request(epoch=-2) | {"inst": None},
                self._request(epoch=-3),
                self._request(**joins | {"v": 0}),
            )
        )

    def _commit(self) -> Command:
        rng = self.rng
        topic = rng.choice((*NAMES, "r"))
        return {
            "op": rng.choice(("commit", "commit", "txncommit")),
            "g": self.group,
            "m": self.member_id,
            "gen": rng.choice((*self.epochs[-3:], self.epochs[-1] + 1, -1)),
            "topic": topic,
            "p": self.topics.existing(topic, rng.randrange(4)),
            "off": rng.randrange(100),
            "v": rng.choice((9, 9, 9, 8)),
            "pid": 7,
        }
