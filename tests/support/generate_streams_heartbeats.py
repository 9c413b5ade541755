# SPDX-License-Identifier: Apache-2.0
"""Generates random runs of streams groups, as JSON commands.

Some runs have members of the other protocols too, which a group with members refuses. Topics that
the broker is asked to create are created at times, now and then with a wrong number of partitions.
The symbols of member ids are explained in `generate_commands`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .generate_heartbeats import GROUPS, START_MS, AnyMember, HeartbeatCommands
from .random_copartitions import alike
from .random_streams_members import RandomTopology, StreamsMember
from .random_topics import NAMES, Command, RandomTopics

if TYPE_CHECKING:
    import random

STATES = ("Stable", "notready", "Not_Ready", "EMPTY", "assigning", "Reconciling", "other")


class StreamsTopics(RandomTopics):
    """The users' topics, and internal topics with their numbers of partitions."""

    def __post_init__(self) -> None:
        self.internal: dict[str, Command] = {}
        super().__post_init__()

    def make(self, name: str, partitions: int) -> None:
        """Makes an internal topic (again)."""
        self.made += 1
        self.internal[name] = {"partitions": partitions, "id": f"{name}#{self.made}"}

    def command(self) -> Command:
        """Returns the command that makes these the cluster's topics."""
        command = super().command()
        command["topics"] |= self.internal
        return command


class StreamsCommands(HeartbeatCommands):
    """Makes one random command after another; the caller must pass each answer to `told`."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        others = rng.random() < 0.15
        self.consumers = self.consumers[:1] if others else []
        self.classics = self.classics[:1] if others else []
        self.topics: StreamsTopics = StreamsTopics(rng)
        self.topology = RandomTopology(rng, self.topics)
        self.statics = rng.choice((0.1, 0.1, 0.9))
        self.streams = [self._streams(name) for name in "ABCDE"[: rng.choice((2, 3, 4, 5))]]
        self.planned = [self.topics.command()]

    def settings(self) -> Command:
        """Returns the command that makes a new coordinator."""
        rng = self.rng
        command: Command = {
            "op": "init",
            "at": START_MS,
            "init_delay": rng.choice((0, 1_000)),
            "min_st": 1_000,
            "tird": rng.choice((0, 0, 0, 1_000, 3_000)),
            "tai": rng.choice((0, 0, 1_000, 1_000, 5_000)),
            "tst": rng.choice((45_000, 45_000, 8_000)),
            "tsr": rng.choice((0, 0, 1, 1, 2)),
        }
        return command | self._rare_settings(
            ("tmax", (1, 2, 3), 0.1),
            ("twu", (0,), 0.2),
            ("tags", (["zone"], ["zone", "cloud"]), 0.15),
            ("thi", (3_000,), 0.05),
        )

    def _streams(self, name: str) -> StreamsMember:
        rng = self.rng
        instance = rng.choice("ijk") if rng.random() < self.statics else None
        group = rng.choices(GROUPS, (15, 1))[0]
        return StreamsMember(rng, self.topics, name, group, instance, self.topology)

    def _draw(self, number: int) -> Command:
        rng = self.rng
        chance = rng.random()
        if chance < 0.06:
            return self._rare()
        if chance < 0.1:
            return self._change_topics()
        if chance < 0.24:
            return self._advance()
        others: list[AnyMember] = [*self.consumers]
        others += [one for one in self.classics if not one.busy]
        is_other = others and rng.random() < 0.15
        member = rng.choice(others) if is_other else rng.choice(self.streams)
        return self._draw_of(number, member)

    def _change_topics(self) -> Command:
        internal = self.topics.internal
        if internal and self.rng.random() < 0.3:
            name = self.rng.choice(sorted(internal))
            if self.rng.random() < 0.5:
                del internal[name]
            else:
                self.topics.make(name, self.topology.partitions_of(name))
            return self.topics.command()
        return self.topics.change()

    def _rare(self) -> Command:
        rng = self.rng
        group = rng.choice(("g", "g", "g", "h", "none"))
        offset = {"g": group, "topic": rng.choice(NAMES)}
        return rng.choice(
            (
                {"op": "stdescribe", "g": group},
                {"op": "stdescribe", "g": group},
                {"op": "cdescribe", "g": group},
                {"op": "describe", "g": group},
                {"op": "list", "states": rng.sample(STATES, 2)},
                {"op": "list", "types": [rng.choice(("streams", "classic", "Streams"))]},
                {"op": "delete_group", "g": group},
                {"op": "delete_group", "g": group},
                {"op": "delete_group", "g": group},
                *self._of_any_group(offset),
                {"op": "join", "g": group, "m": "", "protos": [["range", "x"]], "v": 3},
                {"op": "leave", "g": group, "members": [{"m": "A0"}]},
                {"op": "hb", "g": group, "m": "A0", "gen": 2},
                {"op": "sync", "g": group, "m": "A0", "gen": 2},
            )
        )

    def told(self, number: int, answer: Command) -> None:
        """Receives the answer to the command with this number, with symbols for member ids."""
        super().told(number, answer)
        counts: dict[str, int] = answer.get("counts") or {}
        if "INCORRECTLY_PARTITIONED_TOPICS" in answer.get("status", ()):
            # The internal topics do not fit the users' topics any more.
            counts = {name: self.topology.partitions_of(name) for name in self.topics.internal}
            if self.rng.random() < 0.3:
                counts = {}
                self.topics.internal.clear()
                alike(self.rng, self.topics)
                self.planned.append(self.topics.command())
        if counts and self.rng.random() < 0.7:
            for name in sorted(counts):
                wrong = self.rng.random() < 0.06
                self.topics.make(name, counts[name] + wrong)
            self.planned.append(self.topics.command())
