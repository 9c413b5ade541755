# SPDX-License-Identifier: Apache-2.0
"""Draws requests of members of the classic protocol, whose group may be a consumer group.

A member knows what a client knows: its id, its generations, and its partitions. Most of its
requests are the next ones of a real client; the others are late, repeated or wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.wire.consumer_protocol import (
    AssignmentData,
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)

from .random_heartbeat_members import REBALANCES
from .random_topics import NAMES, NEVER, Command, Partitions, RandomTopics

if TYPE_CHECKING:
    import random

SESSIONS = (6_000, 10_000, 45_000)
PROTOCOLS = (["range"], ["range", "sticky"], ["sticky", "range"], ["roundrobin"])
LEADER_USER_DATA = (None, None, None, None, None, None, b"", b"data")


@dataclass
class ClassicMember:
    """A member of the classic protocol; its id is a symbol such as `@7`."""

    rng: random.Random
    topics: RandomTopics
    group: str
    instance: str | None
    ids: list[str] = field(default_factory=lambda: [""])
    generations: list[int] = field(default_factory=lambda: [-1, 0])
    owned: Partitions = field(default_factory=dict)
    next: str = "join"
    busy: bool = False
    members: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Members with common topics revoke partitions for each other.
        self.names = list(NAMES[:2]) if self.rng.random() < 0.7 else self.topics.names()
        self.session = self.rng.choice(SESSIONS)
        self.rebalance = self.rng.choice(REBALANCES)
        self.offered = self.rng.choices(PROTOCOLS, (10, 4, 4, 1))[0]
        self.is_eager = self.rng.random() < 0.25
        self.version = self.rng.choice((0, 1, 2, 3, 3))

    def draw(self) -> Command:
        """Draws the next request."""
        rng = self.rng
        what = self.next
        if rng.random() < 0.25:
            what = rng.choice(("join", "sync", "live", "live", "leave"))
        return {"join": self._join, "sync": self._sync, "leave": self._leave}.get(
            what, self._live
        )()

    def told(self, command: Command, answer: Command) -> None:
        """Receives the answer to a Heartbeat."""
        error = answer.get("err")
        if command["op"] == "hb" and error != "NONE":
            self.next = "join"
        if command["op"] == "hb" and error == "UNKNOWN_MEMBER_ID":
            self._lose()

    def joined(self, event: Command) -> None:
        """Receives the answer to a JoinGroup."""
        self.busy = False
        error = event["err"]
        self.next = "sync" if error == "NONE" else "join"
        if error in ("NONE", "MEMBER_ID_REQUIRED"):
            self.ids.append(event["member"])
        elif error in ("UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID"):
            self._lose()
        if error == "NONE":
            self.generations.append(event["gen"])
            self.members = [one["id"] for one in event["members"]]

    def synced(self, event: Command) -> None:
        """Receives the answer to a SyncGroup."""
        self.busy = False
        self.next = "live" if event["err"] == "NONE" else "join"
        if event["err"] == "NONE" and event["asg"].startswith("hex:"):
            self.owned = {}
            for topic, partition in decode_assignment(bytes.fromhex(event["asg"][4:])).partitions:
                self.owned.setdefault(topic, []).append(partition)

    def _lose(self) -> None:
        self.ids.append("")
        self.owned = {}

    def _whose(self) -> Command:
        rng = self.rng
        newest = rng.random() < 0.9
        command: Command = {
            "g": self.group,
            "m": self.ids[-1] if newest else rng.choice([*self.ids, "stranger"]),
            "gen": self.generations[-1] if newest else rng.choice(self.generations) + 1,
        }
        if self.instance is not None and rng.random() < 0.95:
            command["inst"] = self.instance
        return command

    def _join(self) -> Command:
        rng = self.rng
        if rng.random() < 0.08:
            self.names = self.topics.names()
        if self.is_eager:
            self.owned = {}
        owned = () if rng.random() < 0.05 else _flat(self.owned)
        subscription = Subscription(
            topics=tuple(self.names),
            owned_partitions=owned if self.version else (),
            generation_id=self.generations[-1] if self.version > 1 else None,
            version=self.version,
        )
        metadata = f"hex:{encode_subscription(subscription).hex()}"
        if rng.random() < 0.02:
            metadata = "not a subscription"
        command = self._whose()
        del command["gen"]
        return command | {
            "op": "join",
            "st": self.session,
            "rt": self.rebalance,
            "pt": "consumer" if rng.random() < 0.98 else "connect",
            "protos": [[name, metadata] for name in self.offered],
            "v": rng.choices((0, 1, 2, 3, 9), (1, 1, 1, 4, 8))[0],
        }

    def _sync(self) -> Command:
        rng = self.rng
        command = self._whose() | {"op": "sync", "pt": "consumer", "pn": self.offered[0]}
        if rng.random() < 0.06:
            command |= {"pt": rng.choice(("consumer", "connect", None)), "pn": "other"}
        if self.members:
            command["asg"] = self._assignments()
        return command

    def _assignments(self) -> dict[str, str]:
        """Returns the leader's answer: all partitions in turn, and sometimes a wrong one."""
        rng = self.rng
        shares: dict[str, list[TopicPartition]] = {one: [] for one in self.members}
        places = list(shares)
        topics = self.topics.topics.items()
        every = [TopicPartition(name, n) for name, one in topics for n in range(one["partitions"])]
        for at, partition in enumerate(every):
            shares[places[at % len(places)]].append(partition)
        odd = rng.random()
        if odd < 0.05:
            shares[places[0]] += [TopicPartition(NEVER, 0), TopicPartition("t", 90)]
        elif odd < 0.08 and every:
            shares[places[-1]].append(every[0])
        data = rng.choice(LEADER_USER_DATA)
        return {
            one: f"hex:{encode_assignment(AssignmentData(tuple(got), data, version=1)).hex()}"
            for one, got in shares.items()
        }

    def _live(self) -> Command:
        command = self._whose()
        if self.rng.random() < 0.8:
            return command | {"op": "hb"}
        command |= {"topic": self.rng.choice(NAMES), "off": self.rng.randrange(100)}
        return command | {"op": "commit", "v": self.rng.choice((8, 9))}

    def _leave(self) -> Command:
        whose = self._whose()
        del whose["gen"]
        group = whose.pop("g")
        return {"op": "leave", "g": group, "members": [whose]}


def _flat(partitions: Partitions) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic, n) for topic, numbers in partitions.items() for n in numbers)
