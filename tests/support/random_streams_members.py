# SPDX-License-Identifier: Apache-2.0
"""Draws requests of members of streams groups, and the topologies of their application."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .random_copartitions import MORE, alike, copartition
from .random_heartbeat_members import REBALANCES, HeartbeatMember
from .random_topics import NAMES, NEVER, Command, RandomTopics

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

PROCESSES = ("p1", "p1", "p2", "p3")
TAGS: tuple[Command, ...] = ({}, {"zone": "a"}, {"zone": "b", "cloud": "c"}, {"cloud": "c"})
RACKS = ("r0", "r1")
ROLES = ("active", "standby", "warmup")
NO_TASKS: Command = {role: {} for role in ROLES}


@dataclass
class RandomTopology:
    """An application's topology; `changed` returns one that differs from it."""

    rng: random.Random
    topics: RandomTopics
    epoch: int = 0

    def __post_init__(self) -> None:
        rng, known = self.rng, list(self.topics.topics)
        copartitions = rng.random() < 0.5
        if copartitions and rng.random() < 0.8:
            alike(rng, self.topics)
        self.epoch = rng.choice((0, 1, 1, 2))
        self.subtopologies: Command = {}
        stateful = rng.random() < 0.75
        for name in rng.choice((("0",), ("0",), ("0", "1"), ("0", "1"), ("0", "1", "10"))):
            names = known if rng.random() < 0.95 else [*NAMES, NEVER]
            most = rng.choice((1, 2, 2, 3) if copartitions else (1, 1, 1, 2))
            sources = rng.sample(names, min(len(names), most))
            self.subtopologies[name] = {"sources": sources}
            if stateful and rng.random() < 0.8:
                self.subtopologies[name]["changelogs"] = [f"c{name}"]
        if "1" in self.subtopologies and rng.random() < 0.6:
            self._repartition()
        if copartitions:
            copartition(rng, self.topics, self.subtopologies)
        if rng.random() < 0.5:
            self.subtopologies = dict(reversed(self.subtopologies.items()))

    def _repartition(self) -> None:
        """Lets the second subtopology read the topics that the first one writes; some results are
        invalid.
        """
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
            change: Command = rng.choice(({"changelogs": ["d"]}, {"copartition_groups": []}))
            other["0"] = {**other["0"], **change}
        return {"epoch": self.epoch + rng.choice((-1, -1, 0, 1)), "subtopologies": other}

    def partitions_of(self, internal: str) -> int:
        """Returns the partitions that an internal topic should have, as far as its sources show."""
        found = [1]
        for one in self.subtopologies.values():
            if internal in one.get("changelogs", ()) or internal in ("r", "s", MORE):
                known = (self.topics.topics.get(name) for name in one["sources"])
                found += [topic["partitions"] for topic in known if topic is not None]
        return max(found)


@dataclass
class StreamsMember(HeartbeatMember):
    """A member of a streams group."""

    OP = "sthb"
    OTHERS = ("A0", "B0")
    RENAMED = 0.6

    topology: RandomTopology
    fixed: Command = field(default_factory=dict, init=False)
    tasks: Command = field(default_factory=lambda: NO_TASKS, init=False)
    before: Command = field(default_factory=lambda: NO_TASKS, init=False)

    def __post_init__(self) -> None:
        rng = self.rng
        self.fixed = {
            "rt": rng.choice(REBALANCES),
            "process": rng.choice(PROCESSES),
            "rack": rng.choice((None, None, *RACKS)),
            "tags": rng.choice((None, *TAGS)),
        }

    def _weights(self) -> dict[Callable[[], Command], int]:
        return {
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

    def _request(self, **fields: Any) -> Command:
        return super()._request(counts=True, **fields)

    def _take(self, answer: Command) -> None:
        if answer["active"] is not None:
            self.before, self.tasks = self.tasks, {role: answer[role] for role in ROLES}

    def _lose(self) -> None:
        super()._lose()
        self.before, self.tasks = self.tasks, NO_TASKS

    def _first(self) -> Command:
        changed = self.rng.random() < 0.04
        return self._joins(self.topology.changed() if changed else self.topology.command())

    def _joins(self, topology: Command) -> Command:
        return {**self.fixed, **NO_TASKS, "epoch": 0, "topology": topology}

    def _owned(self) -> Command:
        return self.tasks

    def _late(self) -> Command:
        """Reports older tasks, a part of the present tasks, other roles, or random tasks."""
        tasks = self.tasks
        part = {role: {name: p[1:] for name, p in tasks[role].items()} for role in ROLES}
        turned = {
            role: tasks[other] for role, other in zip(ROLES, ROLES[1:] + ROLES[:1], strict=True)
        }
        some = {"0": sorted(self.rng.sample(range(5), 2))}
        reports = (self.before, part, turned, NO_TASKS, NO_TASKS | {"active": some})
        return self._request(**self.rng.choice(reports))

    def _repeat(self) -> Command:
        """Repeats a request as if its answer was lost: the epoch is the previous one."""
        owned = self.rng.choice((self.tasks, self.tasks, self.before, NO_TASKS, {}))
        return self._request(**owned, epoch=self.epochs[-2:][0])

    def _wrong_instances(self) -> tuple[Command, ...]:
        taken = self._joins(self.topology.command())
        return (
            *super()._wrong_instances(),
            self._request(m="late", inst=self.rng.choice(("i", "j")), **taken),
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
        epoch = self._leaving_epoch()
        shutdown = {"shutdown": True} if self.rng.random() < 0.05 else {}
        return self._request(epoch=epoch, **shutdown)

    def _shut_down(self) -> Command:
        return self._request(shutdown=True)

    def _invalid(self) -> Command:
        topology = self.topology.command()
        joins = self._joins(topology)
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
