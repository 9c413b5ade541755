# SPDX-License-Identifier: Apache-2.0
"""Generates random groups for the comparison of engines; a seed always generates the same groups.

Groups are difficult on purpose. Every assignor has its own random sequence of stories. A story is
one group in one to eight rounds: members own the partitions of the round before, and between two
rounds events (`EVENTS`) change the group. In the first round, names (`FAMILIES`: some collide in
Java's hash tables), subscriptions (`SHAPES`) and racks (`PLACES`) are chosen. Some members send
data that only faulty clients send: topics listed twice, partitions that do not exist.

    case --assign--> answer --own--> members --events--> next case

A seed determines the groups, because each story has one source of random numbers, and no loop runs
over a set. Groups are valid by the contract: no negative partition, no two topics of one name, no
two members of one id.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support import generate_streams
from tests.support.generated_names import CROWDED, FAMILIES, colliding, names, pick
from tests.support.generated_shapes import PLACES, SHAPES, some_idle

Case = dict[str, Any]
Assign = Callable[[Case], dict[str, Any]]
Owned = list[tuple[str, int]]

# Kafka's general sticky algorithm is worse than quadratic: a much larger case takes seconds.
MOST_MEMBERS_TIMES_PARTITIONS = 20_000
MOST_MEMBERS = 200


def generate(seed: int, count: int, assignors: Sequence[str], assign: Assign) -> Iterator[Case]:
    """Yields `count` cases, the assignors in turn; `assign` answers a case for the next round."""
    streams = [
        generate_streams.stories(seed, assignor, assign)
        if assignor.startswith("streams/")
        else _stories(seed, assignor, assign)
        for assignor in assignors
    ]
    for n in range(count):
        yield next(streams[n % len(streams)])


def _stories(seed: int, assignor: str, assign: Assign) -> Iterator[Case]:
    rng = random.Random(f"{seed}/{assignor}")
    # Range and roundrobin must ignore owned partitions; a second round is enough to test this.
    most_rounds = 8 if "sticky" in assignor or _is_server_side(assignor) else 2
    number = itertools.count()
    while True:
        story = _Story(rng, assignor)
        for _ in range(rng.randint(1, most_rounds)):
            case = story.case(f"gen-{seed}-{assignor}-{next(number):06d}")
            yield case
            answer = assign(case)
            if "assignment" not in answer:
                break
            story.own(answer["assignment"])
            if story.tangled:
                story.tangle()
                continue
            for _ in range(pick(rng, {0: 1, 1: 6, 2: 3, 3: 1})):
                rng.choice(EVENTS)(story)
            if story.is_server_side and rng.random() < 0.15:
                _own_a_stride(story)


def _is_server_side(assignor: str) -> bool:
    return assignor.startswith(("consumer/", "share/"))


# A group ------------------------------------------------------------------------------------------


@dataclass
class _Topic:
    name: str
    partitions: int
    racks: list[list[str | None]] | None = None


@dataclass
class _Member:
    member_id: str
    topics: list[str]
    group_instance_id: str | None = None
    rack_id: str | None = None
    owned: Owned = field(default_factory=list)
    generation_id: int | None = None


class _Story:
    """One group with its source of random numbers. Events change it in place; `case` returns it."""

    def __init__(self, rng: random.Random, assignor: str) -> None:
        self.rng = rng
        self.assignor = assignor
        self.is_librdkafka = assignor.startswith("librdkafka/")
        self.is_server_side = _is_server_side(assignor)
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
        self.topics: list[_Topic] = []
        sizes = {rng.randint(1, 4): 60, rng.randint(5, 12): 30, rng.randint(13, 30): 9, 0: 1}
        for _ in range(pick(rng, sizes)):
            self.topics.append(self._topic(members))
        if rng.random() < 0.3:  # range assigns topics of equal size alike
            count = rng.choice(self.topics).partitions if self.topics else 0
            for topic in self.topics:
                if rng.random() < 0.8 and count - topic.partitions <= self._room(members):
                    topic.partitions = count
        self.members: list[_Member] = []
        if self.tangled:
            self._begin_tangled()
        else:
            self.shape = rng.choice(SHAPES)
            self._fill(members)
            if rng.random() < 0.15:  # members own partitions before round 1
                self._claim_at_random(0.6, most=6)
        self._place_replicas()
        if rng.random() < 0.08:
            _repeat_topics(self)
        if rng.random() < 0.04:
            _claim_beyond(self)

    def _fill(self, members: int) -> None:
        for n in range(members):
            self.members.append(self._member(n, members))
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
            member.topics = self._subscription(n, len(self.members))
            member.owned = self._claims(self.rng.randint(1, 3), beyond=0.4) if owns else []
            member.generation_id = self.generation + self.rng.choice([0, 0, 1])

    def _claim_at_random(self, share: float, *, most: int, beyond: float = 0.05) -> None:
        for member in self.members:
            if self.rng.random() < share:
                member.owned = self._claims(self.rng.randint(0, most), beyond)
                member.generation_id = self._generation()

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

    def _topic(self, members: int) -> _Topic:
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
        return _Topic(next(self.topic_names), min(pick(rng, counts), 1 + self._room(members) // 3))

    def _room(self, members: int) -> int:
        """Returns how many more partitions the group may have before an answer takes too long."""
        used = sum(topic.partitions for topic in self.topics)
        return max(0, MOST_MEMBERS_TIMES_PARTITIONS // max(1, members) - used)

    def _member(self, n: int, members: int) -> _Member:
        rng = self.rng
        return _Member(
            next(self.member_names),
            self._subscription(n, members),
            self._instance() if rng.random() < self.static else None,
            self._member_rack(),
        )

    def _instance(self) -> str:
        known = [m.group_instance_id for m in self.members if m.group_instance_id is not None]
        if known and self.rng.random() < self.impostors:
            return self.rng.choice(known)
        return next(self.instance_names)

    def _subscription(self, n: int, members: int) -> list[str]:
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
            _repeat_one(rng, topics)
        return topics

    def _member_rack(self) -> str | None:
        rng = self.rng
        if self.is_librdkafka and rng.random() < 0.3:
            return ""  # a member of librdkafka without `client.rack`
        if rng.random() >= self.member_racks:
            return rng.choice([None, None, None, ""]) if self.member_racks else None
        return rng.choice(self.rack_names) if rng.random() < 0.95 else "elsewhere"

    def _place_replicas(self) -> None:
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

    def _claims(self, count: int, beyond: float = 0.05) -> Owned:
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

    def _generation(self) -> int | None:
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
        """Returns an entry for each topic, by first appearance; rarely, several for one topic."""
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


# Events between two rounds ------------------------------------------------------------------------


def _quiet(story: _Story) -> None:
    """Changes only the order of the members."""
    story.rng.shuffle(story.members)


def _join(story: _Story) -> None:
    for _ in range(story.rng.choice([1, 1, 2, 5])):
        count = len(story.members)
        if count < MOST_MEMBERS and story._room(count + 1):
            newcomer = story._member(story.rng.randint(0, count), count + 1)
            story.members.insert(story.rng.randint(0, count), newcomer)


def _leave(story: _Story) -> None:
    for _ in range(story.rng.choice([1, 1, 2, 5])):
        if len(story.members) > 1:
            story.members.pop(story.rng.randrange(len(story.members)))


def _restart(story: _Story) -> None:
    """Some members restart with a new member id and without partitions; instance ids stay."""
    for member in _some(story):
        member.member_id = next(story.member_names)
        member.owned, member.generation_id = [], None


def _resubscribe(story: _Story) -> None:
    for member in _some(story):
        n = story.rng.randrange(len(story.members))
        member.topics = story._subscription(n, len(story.members))


def _repeat_topics(story: _Story) -> None:
    """A member lists topics twice; often, members after it get the same list."""
    rng = story.rng
    at = rng.randrange(len(story.members))
    topics = list(story.members[at].topics)
    for _ in range(rng.randint(1, 3) if topics else 0):
        _repeat_one(rng, topics)
    run = rng.choice([1, 2, 3, len(story.members)])
    for member in story.members[at : at + run]:
        member.topics = list(topics)


def _repeat_one(rng: random.Random, topics: list[str]) -> None:
    topics.insert(rng.randint(0, len(topics)), rng.choice(topics))


def _change_shape(story: _Story) -> None:
    story.shape = story.rng.choice(SHAPES)
    for n, member in enumerate(story.members):
        member.topics = story._subscription(n, len(story.members))


def _claim_twice(story: _Story) -> None:
    """Members claim partitions of other members, with the group's or another generation."""
    for claimant in _some(story):
        other = story.rng.choice(story.members)
        stolen = story.rng.sample(other.owned, story.rng.randint(0, len(other.owned)))
        claimant.owned = (
            claimant.owned + stolen if story.rng.random() < 0.5 else stolen + claimant.owned
        )
        claimant.generation_id = story._generation()


def _claim_beyond(story: _Story) -> None:
    """Members claim partitions that do not exist."""
    rng = story.rng
    counts = {topic.name: topic.partitions for topic in story.topics}
    for member in _some(story):
        known = [topic for topic in member.topics if topic in counts] or list(counts)
        for _ in range(rng.randint(1, 3) if known else 0):
            topic = rng.choice(known)
            ghost = topic, counts[topic] + rng.randrange(3)
            member.owned.insert(rng.randint(0, len(member.owned)), ghost)
        if member.generation_id is None:
            member.generation_id = story._generation()


def _go_stale(story: _Story) -> None:
    """Some members send a random generation, perhaps an old one; half of them claim more."""
    for member in _some(story):
        member.generation_id = story._generation()
        if story.rng.random() < 0.5:
            member.owned += story._claims(story.rng.randint(1, 4))


def _forget_generations(story: _Story) -> None:
    """No member sends a generation, as old clients do."""
    for member in story.members:
        member.generation_id = None


def _lose_partitions(story: _Story) -> None:
    for member in _some(story):
        member.owned = story.rng.sample(member.owned, story.rng.randint(0, len(member.owned)))


def _own_a_stride(story: _Story) -> None:
    """One member gets the partitions of a topic whose numbers share a slot of a Java hash table."""
    rng = story.rng
    large = [topic for topic in story.topics if topic.partitions > 128]
    if not large:
        return
    topic, step = rng.choice(large), rng.choice([16, 32, 64, 64])
    taken = {(topic.name, p) for p in range(rng.randrange(step), topic.partitions, step)}
    for member in story.members:
        member.owned = [owned for owned in member.owned if owned not in taken]
    numbers = sorted(taken)
    rng.shuffle(numbers)
    owner = rng.choice(story.members)
    owner.owned = numbers + owner.owned if rng.random() < 0.5 else owner.owned + numbers


def _repeat_claims(story: _Story) -> None:
    """Members list a partition twice."""
    for member in _some(story):
        if member.owned:
            member.owned.insert(
                story.rng.randint(0, len(member.owned)), story.rng.choice(member.owned)
            )


def _topics_change(story: _Story) -> None:
    """A topic grows, shrinks, empties, vanishes or appears."""
    rng = story.rng
    members = len(story.members)
    if story.topics and rng.random() < 0.8:
        topic = rng.choice(story.topics)
        wanted = rng.choice([topic.partitions + 1, topic.partitions * 2, topic.partitions // 2, 0])
        if rng.random() < 0.2:
            story.topics.remove(topic)
        elif wanted <= 64 and wanted - topic.partitions <= story._room(members):
            topic.partitions = wanted
    elif len(story.topics) < 30:
        fresh = story._topic(members)
        story.topics.append(fresh)
        for member in story.members:
            if rng.random() < 0.7:
                member.topics.append(fresh.name)
    story._place_replicas()


def _racks_change(story: _Story) -> None:
    story.member_racks = story.rng.choice([0, 0.5, 1])
    story.topic_racks = story.rng.choice([0.5, 1])
    story._place_replicas()
    for member in story.members:
        member.rack_id = story._member_rack()


EVENTS: tuple[Callable[[_Story], None], ...] = (
    *(
        _quiet,
        _join,
        _join,
        _leave,
        _leave,
        _restart,
        _resubscribe,
        _change_shape,
        _claim_twice,
        _claim_twice,
        _claim_beyond,
        _repeat_topics,
    ),
    *(
        _go_stale,
        _go_stale,
        _forget_generations,
        _lose_partitions,
        _repeat_claims,
        _topics_change,
        _racks_change,
    ),
)


def _some(story: _Story) -> list[_Member]:
    """Chooses one to three random members."""
    return story.rng.sample(story.members, min(len(story.members), story.rng.randint(1, 3)))
