# SPDX-License-Identifier: Apache-2.0
"""A group of random members and topics, which events change: a story of `generate`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.generated_names import CROWDED, FAMILIES, colliding, names, pick
from tests.support.generated_shapes import PLACES, SHAPES, repeat_one, some_idle

Case = dict[str, Any]
Owned = list[tuple[str, int]]

# Kafka's general sticky algorithm is worse than quadratic: a much larger case takes seconds.
MOST_MEMBERS_TIMES_PARTITIONS = 20_000
MOST_MEMBERS = 200


def is_server_side(assignor: str) -> bool:
    """Returns whether brokers run the assignor."""
    return assignor.startswith(("consumer/", "share/"))


@dataclass
class RandomTopic:
    """A topic; `racks` lists the racks of each partition's replicas."""

    name: str
    partitions: int
    racks: list[list[str | None]] | None = None


@dataclass
class RandomMember:
    """A member as its client describes it; no generation means that the client sends none."""

    member_id: str
    topics: list[str]
    group_instance_id: str | None = None
    rack_id: str | None = None
    owned: Owned = field(default_factory=list)
    generation_id: int | None = None


class Story:
    """One group with its source of random numbers. Events change it in place; `case` returns it."""

    def __init__(self, rng: random.Random, assignor: str) -> None:
        self.rng = rng
        self.assignor = assignor
        self.is_librdkafka = assignor.startswith("librdkafka/")
        self.is_server_side = is_server_side(assignor)
        self.generation = rng.choice([0, 0, 0, 1, 7, 41])
        self.tangled = "sticky" in assignor and rng.random() < 0.2
        families = [colliding if self.tangled else pick(rng, FAMILIES)]
        if rng.random() < 0.15 and not self.tangled:
            families.append(pick(rng, FAMILIES))
        self.member_names = names(rng, families)
        self.topic_names = names(rng, [pick(rng, FAMILIES)])
        self.instance_names = names(rng, [pick(rng, FAMILIES)])
        self.static = rng.choice([0, 0, 0, 0.3, 0.7, 1])
        # The probability that a static member has another's instance id, which no broker permits.
        self.impostors = rng.choice([0, 0, 0, 0.3]) if self.static else 0
        self.member_racks = rng.choice([0, 0, 0, 0.5, 0.8, 1])
        self.topic_racks = (
            rng.choice([0, 0.5, 1, 1]) if self.member_racks else rng.choice([0, 0, 1])
        )
        self.rack_names = [f"r{n}" for n in range(rng.randint(1, 4))]

        crowded = any(family in CROWDED for family in families)
        members = self._member_count(crowded=crowded)
        self.topics: list[RandomTopic] = []
        sizes = {rng.randint(1, 4): 60, rng.randint(5, 12): 30, rng.randint(13, 30): 9, 0: 1}
        for _ in range(pick(rng, sizes)):
            self.topics.append(self.new_topic(members))
        if rng.random() < 0.3:  # range assigns topics of equal size alike
            count = rng.choice(self.topics).partitions if self.topics else 0
            for topic in self.topics:
                if rng.random() < 0.8 and count - topic.partitions <= self.room(members):
                    topic.partitions = count
        self.members: list[RandomMember] = []
        if self.tangled:
            self._begin_tangled()
        else:
            self.shape = rng.choice(SHAPES)
            self._fill(members)
            if rng.random() < 0.15:  # members own partitions before round 1
                self._claim_at_random(0.6, most=6)
        self.place_replicas()

    def _fill(self, members: int) -> None:
        for n in range(members):
            self.members.append(self.new_member(n, members))
        self.rng.shuffle(self.members)

    def _begin_tangled(self) -> None:
        """Begins a group whose answer depends on removals from a tree in a Java hash table.

        Many member ids share a slot, the balancing leaves some members out, and claims to
        partitions that do not exist let two members own one partition.
        """
        rng = self.rng
        del self.topics[rng.choice([2, 3, 3]) :]
        for topic in self.topics:
            topic.partitions = rng.randint(1, 4)
        self.shape = some_idle
        self.member_racks *= rng.choice([0, 0, 0, 1])
        self._fill(rng.randint(11, 16))
        self.tangle()

    def tangle(self) -> None:
        """Gives all members new subscriptions, some of them claims, and some a newer generation."""
        self.rng.shuffle(self.members)
        for n, member in enumerate(self.members):
            owns = self.rng.random() < 0.3
            member.topics = self.subscription(n, len(self.members))
            member.owned = self.claims(self.rng.randint(1, 3), beyond=0.4) if owns else []
            member.generation_id = self.generation + self.rng.choice([0, 0, 1])

    def _claim_at_random(self, share: float, *, most: int, beyond: float = 0.05) -> None:
        for member in self.members:
            if self.rng.random() < share:
                member.owned = self.claims(self.rng.randint(0, most), beyond)
                member.generation_id = self.some_generation()

    def case(self, group_id: str) -> Case:
        """Returns the group's present state as a contract line, the JSON input of the commands."""
        case: Case = {"group_id": group_id, "assignor": self.assignor}
        if self.generation:
            case["generation_id"] = self.generation
        case["topics"] = [
            {"name": topic.name, "partitions": topic.partitions} | self._said("racks", topic.racks)
            for topic in self.topics
        ]
        case["members"] = [
            {"member_id": member.member_id}
            | self._said("group_instance_id", member.group_instance_id)
            | {"topics": list(member.topics)}
            | self._said("owned_partitions", self._by_topic(member.owned) or None)
            | self._said("generation_id", member.generation_id)
            | self._said("rack_id", member.rack_id)
            for member in self.members
        ]
        if self.is_librdkafka and self.rng.random() < 0.03:
            old = self.rng.choice(case["members"])
            old["subscription_version"] = self.rng.randrange(3)
        return case

    def own(self, assignment: dict[str, Sequence[Sequence[Any]]]) -> None:
        """Makes every member own its assigned partitions, in a new generation."""
        self.generation += 1
        for member in self.members:
            member.owned = [(topic, partition) for topic, partition in assignment[member.member_id]]
            member.generation_id = self.generation

    # Choices of groups.

    def _member_count(self, crowded: bool) -> int:
        rng = self.rng
        if crowded and rng.random() < 0.7:
            return rng.randint(9, 40)
        sizes = {rng.randint(1, 4): 40, rng.randint(5, 13): 40, rng.randint(14, 50): 16}
        return pick(rng, sizes | {rng.randint(51, MOST_MEMBERS): 4})

    def new_topic(self, members: int) -> RandomTopic:
        rng = self.rng
        counts = {
            0: 5,
            1: 15,
            rng.randint(2, 6): 45,
            rng.randint(7, 16): 25,
            rng.randint(17, 64): 10,
        }
        if self.is_server_side:
            # Sets of partition numbers become trees only in topics of hundreds of partitions.
            counts[rng.randint(129, 800)] = 4
        # One topic takes about a third of the room at most, so that room is left for later topics.
        return RandomTopic(
            next(self.topic_names), min(pick(rng, counts), 1 + self.room(members) // 3)
        )

    def room(self, members: int) -> int:
        """Returns how many more partitions the group may have before an answer takes too long."""
        used = sum(topic.partitions for topic in self.topics)
        return max(0, MOST_MEMBERS_TIMES_PARTITIONS // max(1, members) - used)

    def new_member(self, n: int, members: int) -> RandomMember:
        rng = self.rng
        return RandomMember(
            next(self.member_names),
            self.subscription(n, members),
            self._instance() if rng.random() < self.static else None,
            self.member_rack(),
        )

    def _instance(self) -> str:
        known = [m.group_instance_id for m in self.members if m.group_instance_id is not None]
        if known and self.rng.random() < self.impostors:
            return self.rng.choice(known)
        return next(self.instance_names)

    def subscription(self, n: int, members: int) -> list[str]:
        rng = self.rng
        topics = self.shape(rng, [topic.name for topic in self.topics], n, members)
        if rng.random() < 0.5:
            rng.shuffle(topics)
        twist = rng.random()
        if twist < 0.03:
            return []
        if twist < 0.06:
            topics.insert(
                rng.randint(0, len(topics)), rng.choice(["unknown", "\U0001f600?", "aaa"])
            )
        elif twist < 0.08 and topics:
            repeat_one(rng, topics)
        return topics

    def member_rack(self) -> str | None:
        rng = self.rng
        if self.is_librdkafka and rng.random() < 0.3:
            return ""  # a member of librdkafka without `client.rack`
        if rng.random() >= self.member_racks:
            return rng.choice([None, None, None, ""]) if self.member_racks else None
        return rng.choice(self.rack_names) if rng.random() < 0.95 else "elsewhere"

    def place_replicas(self) -> None:
        """Chooses the racks of all replicas again; topics of equal size may have equal racks."""
        rng = self.rng
        alike = rng.random() < 0.4
        placed: dict[int, list[list[str | None]]] = {}
        for topic in self.topics:
            topic.racks = None
            if rng.random() < self.topic_racks:
                place = rng.choice(PLACES)
                racks = [place(rng, self.rack_names, p) for p in range(topic.partitions)]
                topic.racks = placed.setdefault(topic.partitions, racks) if alike else racks

    def claims(self, count: int, beyond: float = 0.05) -> Owned:
        """Returns random claims of a faulty client: real and missing partitions, duplicates."""
        rng = self.rng
        claims: Owned = []
        for _ in range(count if self.topics else 0):
            topic = rng.choice(self.topics)
            ghost = rng.random() < beyond or not topic.partitions
            first, end = (
                (topic.partitions, topic.partitions + 3) if ghost else (0, topic.partitions)
            )
            claims.append((topic.name, rng.randrange(first, end)))
        if rng.random() < 0.1:
            claims.append(("vanished", rng.randint(0, 3)))
        return claims

    def some_generation(self) -> int | None:
        """Chooses a random generation: often the group's, or an older or newer one, -1 or None."""
        g = self.generation
        # Not `pick`, which takes a dict: if g is 0, the first three generations are equal.
        claimed = [g, max(g - 1, 0), max(g - 2, 0), None, -1, g + 1]
        return self.rng.choices(claimed, [12, 4, 2, 2, 1, 1])[0]

    # Fields of a case.

    def _said(self, name: str, value: Any) -> dict[str, Any]:
        """Returns the field with its value; if the value is None, the field is absent or null."""
        return {name: value} if value is not None or self.rng.random() < 0.2 else {}

    def _by_topic(self, owned: Owned) -> list[dict[str, Any]]:
        """Returns an entry for each topic, by first appearance; rarely, several entries for one
        topic.
        """
        rejoin = self.rng.random() < 0.95
        entries: list[dict[str, Any]] = []
        for topic, partition in owned:
            found = [
                entry for entry in (entries if rejoin else entries[-1:]) if entry["topic"] == topic
            ]
            if found:
                found[0]["partitions"].append(partition)
            else:
                entries.append({"topic": topic, "partitions": [partition]})
        return entries
