# SPDX-License-Identifier: Apache-2.0
"""Generates random runs of groups whose brokers assign, as JSON commands.

A run has one theme, so that rare events occur together:

    consumers    members of the consumer protocol
    static       static members that leave for a while and come back, under old or new ids
    patterns     subscriptions by pattern, with topics that come and go
    ties         members that name different assignors
    mixed        members of both protocols: a group changes its type, both ways
    upgrade      a classic group first; then members of the consumer protocol join
    share        share groups, with members of the other protocols that are refused

The class has the methods of `generate_commands.Commands`; symbols such as `@7` are explained there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .random_classic_members import ClassicMember
from .random_consumer_members import ConsumerMember
from .random_share_members import ShareMember
from .random_streams_members import StreamsMember
from .random_topics import NAMES, PATTERNS, Command, RandomTopics

if TYPE_CHECKING:
    import random

START_MS = 1_000_000
"""The start time: at time 0, an assignment would look as if it had never been made."""
GROUPS = ("g", "h")
AnyMember = ConsumerMember | ClassicMember | ShareMember | StreamsMember
THEMES = {"consumers": 3, "static": 2, "patterns": 2, "ties": 1, "mixed": 4, "upgrade": 3}
STEPS_MS = (0, 1, 400, 999, 1_000, 1_001, 1_500, 3_000, 5_000, 10_000, 10_001, 15_000)
LONG_STEPS_MS = (20_000, 44_999, 45_000, 60_000, 600_001)
ERRORS = ("NOT_ENOUGH_REPLICAS", "NOT_LEADER_OR_FOLLOWER", "MESSAGE_TOO_LARGE")
STATES = ("Stable", "stable", "EMPTY", "Empty", "assigning", "Reconciling", "Dead", "other")
POLICIES = ("bidirectional", "bidirectional", "upgrade", "downgrade", "disabled")


class HeartbeatCommands:
    """Makes one random command after another; the caller must pass each answer to `told`."""

    prepared = 0

    def __init__(self, rng: random.Random, theme: str = "") -> None:
        self.rng = rng
        self.theme = theme or rng.choices(list(THEMES), list(THEMES.values()))[0]
        self.topics = RandomTopics(rng)
        self.consumers = [self._consumer(name) for name in "ABCDE"]
        self.classics = [self._classic() for _ in range(4)]
        if self.theme in ("consumers", "static", "patterns", "ties"):
            self.classics = self.classics[:1] if rng.random() < 0.1 else []
        self.planned: list[Command] = [self.topics.command()]
        self.owners: dict[int, AnyMember] = {}
        self.commands: dict[int, Command] = {}
        self.holding = False
        self.drawn = 0

    def settings(self) -> Command:
        """Returns the command that makes a new coordinator."""
        rng = self.rng
        command: Command = {
            "op": "init",
            "at": START_MS,
            "init_delay": rng.choice((0, 1_000)),
            "min_st": 1_000,
            "cai": rng.choice((0, 0, 1_000, 1_000, 5_000)),
            "cst": rng.choice((45_000, 45_000, 8_000)),
            "policy": rng.choice(POLICIES),
        }
        return command | self._rare_settings(
            ("cmax", (1, 2, 3), 0.12),
            ("max_size", (1, 2), 0.06),
            ("assignors", (["range"], ["range", "uniform"]), 0.15),
            ("rri", (20_000,), 0.2),
            ("chi", (3_000,), 0.05),
        )

    def _rare_settings(self, *rare: tuple[str, tuple[Any, ...], float]) -> Command:
        """Draws settings from (name, values, probability that the run uses the setting)."""
        rng = self.rng
        return {name: rng.choice(values) for name, values, chance in rare if rng.random() < chance}

    def _consumer(self, name: str) -> ConsumerMember:
        rng = self.rng
        static = {"static": 0.9}.get(self.theme, 0.2)
        instance = rng.choice("ijk") if rng.random() < static else None
        fixed: Command = {}
        if rng.random() < {"patterns": 0.7}.get(self.theme, 0.08):
            fixed = {"regex": rng.choice(PATTERNS[:-2])}
            if rng.random() < 0.6:
                fixed["topics"] = None
        if self.theme == "ties":
            fixed = {"assignor": rng.choice(("range", "uniform", "uniform", "range", None))}
        if rng.random() < 0.5 and not fixed:
            fixed = {"topics": list(NAMES[:2])}
        group = rng.choices(GROUPS, (12, 1))[0]
        return ConsumerMember(rng, self.topics, name, group, instance, fixed)

    def _classic(self) -> ClassicMember:
        rng = self.rng
        instance = rng.choice("ijk") if rng.random() < 0.2 else None
        return ClassicMember(rng, self.topics, rng.choices(GROUPS, (12, 1))[0], instance)

    def draw(self, number: int) -> Command:
        """Makes the random command with this number."""
        command = self.planned.pop(0) if self.planned else self._draw(number)
        if command["op"] == "topics" and self.holding:
            # A broker waits until a deleted topic's offsets are removed from the log: let it go on.
            command = {"op": "release"}
            self.planned.append(self.topics.command())
        if command["op"] in ("hold", "release"):
            self.holding = command["op"] == "hold"
        self.commands[number] = command
        self.drawn += 1
        return command

    def _draw(self, number: int) -> Command:
        rng = self.rng
        chance = rng.random()
        if chance < 0.07:
            return self._rare()
        if chance < {"patterns": 0.15}.get(self.theme, 0.1):
            return self.topics.change()
        if chance < 0.25:
            return self._advance()
        consumers = self.consumers
        if self.theme == "upgrade" and self.drawn < 14:
            consumers = []
        idle = [one for one in self.classics if not one.busy]
        members: list[AnyMember] = [*consumers, *idle]
        return self._draw_of(number, rng.choice(members or list(self.classics)))

    def _advance(self) -> Command:
        steps = LONG_STEPS_MS if self.rng.random() < 0.06 else STEPS_MS
        return {"op": "advance", "ms": self.rng.choice(steps)}

    def _draw_of(self, number: int, member: AnyMember) -> Command:
        self.owners[number] = member
        return member.draw()

    def _rare(self) -> Command:
        rng = self.rng
        group = rng.choice(("g", "g", "g", "h", "none"))
        offset = {"g": group, "topic": rng.choice(NAMES)}
        return rng.choice(
            (
                {"op": "cdescribe", "g": group},
                {"op": "cdescribe", "g": group},
                {"op": "describe", "g": group},
                {"op": "list", **self._filters()},
                {"op": "delete_group", "g": group},
                {"op": "delete_group", "g": group},
                *self._of_any_group(offset),
                {"op": "leave", "g": group, "members": [{"m": "", "inst": rng.choice("ijk")}]},
                {"op": "leave", "g": group, "members": [{"m": rng.choice(("A0", "B0"))}]},
                self._two_leave(),
                {"op": "hb", "g": group, "m": "A0", "gen": 2},
            )
        )

    def _of_any_group(self, offset: Command) -> tuple[Command, ...]:
        """Draws rare commands for groups of any type; `offset` names a group and a topic."""
        rng = self.rng
        return (
            {"op": "cleanup"},
            {"op": "reload"},
            {"op": "reload"},
            {"op": "hold"},
            {"op": "release"},
            {"op": "release"},
            {"op": "fail_next", "err": rng.choice(ERRORS)},
            {"op": "fetch", **offset},
            {"op": "fetch", **offset, "m": "A0", "epoch": rng.randrange(5)},
            {"op": "commit", **offset, "off": 3},
            {"op": "delete_offsets", **offset},
        )

    def _filters(self) -> Command:
        """Returns filters of a ListGroups; Kafka ignores the case of a filter's letters."""
        rng = self.rng
        filters: Command = {}
        if rng.random() < 0.7:
            filters["states"] = rng.sample(STATES, rng.choice((1, 2, 4)))
        if rng.random() < 0.4:
            filters["types"] = [rng.choice(("consumer", "classic", "Consumer", "share", "other"))]
        return filters

    def _two_leave(self) -> Command:
        """Draws a LeaveGroup of two members, which may be one member twice."""
        rng = self.rng
        leaving = [{"m": one.ids[-1], "inst": one.instance} for one in self.classics]
        leaving += [{"m": "", "inst": "i"}, {"m": "", "inst": "j"}, {"m": "stranger"}]
        return {"op": "leave", "g": "g", "members": rng.choices(leaving, k=2)}

    def told(self, number: int, answer: Command) -> None:
        """Receives the answer to the command with this number, with symbols for member ids."""
        seen = set()
        for event in answer.get("events", ()):
            owner = self.owners.get(event.get("id", -1))
            if event["ev"] in ("join", "sync"):
                seen.add(event["id"])
            if isinstance(owner, ClassicMember) and event["ev"] == "join":
                owner.joined(event)
            elif isinstance(owner, ClassicMember) and event["ev"] == "sync":
                owner.synced(event)
        owner, command = self.owners.get(number), self.commands.get(number)
        if owner is None or command is None:
            return
        if command["op"] in ("join", "sync") and isinstance(owner, ClassicMember):
            owner.busy = number not in seen
        else:
            owner.told(command, answer)


class ShareCommands(HeartbeatCommands):
    """Makes the commands of a run of share groups."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng, "share")
        self.consumers, self.classics = self.consumers[:1], self.classics[:1]
        others: list[AnyMember] = [*self.consumers, *self.classics]
        for other in others:
            other.group = rng.choices(GROUPS, (1, 4))[0]
        common = rng.random() < 0.6
        self.shares = [
            ShareMember(
                rng,
                self.topics,
                name,
                rng.choices(GROUPS, (8, 1))[0],
                None,
                list(NAMES[:2]) if common else self.topics.names(),
            )
            for name in "PQRSTUV"[: rng.choice((2, 3, 5, 7))]
        ]

    def settings(self) -> Command:
        rng = self.rng
        command = super().settings() | {
            # Without a delay, a join's timer is due at the same time as the share state.
            "init_delay": 1_000,
            "sai": rng.choice((0, 0, 1_000, 5_000)),
            "sst": rng.choice((45_000, 45_000, 8_000)),
        }
        return command | self._rare_settings(("smax", (1, 2, 3), 0.12), ("shi", (3_000,), 0.05))

    def _draw(self, number: int) -> Command:
        rng = self.rng
        chance = rng.random()
        if chance < 0.03:
            return {"op": "sdescribe", "g": rng.choice(("g", "g", "h", "none"))}
        if chance < 0.045:
            return self._all_leave()
        if chance < 0.15:
            # The share state of new partitions is initialised at the start.
            return {"op": "advance", "ms": 0}
        if chance < 0.4:
            return super()._draw(number)
        return self._draw_of(number, rng.choice(self.shares))

    def _all_leave(self) -> Command:
        """Lets all members leave their groups; then the group g is deleted, or loaded again, or
        stays.
        """
        self.planned += [
            {"op": "shb", "g": one.group, "m": one.member_id, "epoch": -1} for one in self.shares
        ]
        delete = {"op": "delete_group", "g": "g"}
        self.planned.append(self.rng.choice((delete, delete, {"op": "reload"})))
        return {"op": "advance", "ms": 0}
