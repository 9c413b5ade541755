# SPDX-License-Identifier: Apache-2.0
"""Chooses random changes for a group, each as a string for `plan` and as actions on live members.

    join            add-members=1,like=M    a member like M starts, in M's rack or another rack
    leave           remove-member=M         M closes: LeaveGroup
    kill            remove-member=M         M is killed and sends nothing: its session times out
    partitions      partitions T=N          the topic T gets N partitions
    resubscription  resubscribe=M:T,…       M subscribes to another set of the group's topics
    static bounce   bounce-members=M        a static member is killed, and returns in time
    bounce          bounce-members=M        a dynamic member closes; later it starts again
    quick bounce    bounce-members=M        a dynamic member closes, and starts again at once
    new topic       add-topics T=N          a topic is created; all members subscribe, or their
                                            pattern does
    deleted topic   remove-topics=T         all members leave the topic, and it is deleted
    switch          switch-assignor=A       each member restarts with the list of A and the old one
    lost rack       remove-rack=R           the broker of a rack and the members there are killed;
                                            only in clusters of its own (run.py)

M is the id of a member, T the name of a topic, A an assignor, R a rack.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .cast import (
    AIOKAFKA,
    JAVA,
    KAFKA_PYTHON,
    LIBRDKAFKA,
    OWN_AIOKAFKA,
    RACKS,
    assignors_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .cast import Cast, Part

EVENTS = (
    "join",
    "leave",
    "kill",
    "partitions",
    "resubscription",
    "static bounce",
    "bounce",
    "quick bounce",
    "new topic",
    "deleted topic",
)
SWITCH = "switch"
LOST_RACK = "lost rack"
MOST_MEMBERS = 6
MOST_PARTITIONS = 8


@dataclass(frozen=True)
class Happening:
    """One change of a group.

    The steps are played one after another; before each step, the group must have settled.
    """

    event: str
    text: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Step:
    """Members to close, kill, start or subscribe again; or a topic to grow.

    `creates` is a topic with the nodes of its replicas, `deletes` a topic, `loses` a node to kill.
    """

    closes: tuple[Part, ...] = ()
    kills: tuple[Part, ...] = ()
    starts: tuple[Part, ...] = ()
    subscribes: tuple[Part, ...] = ()
    grows: tuple[str, int] | None = None
    creates: tuple[str, tuple[tuple[int, ...], ...]] | None = None
    deletes: str | None = None
    loses: int | None = None

    def after(self, parts: list[Part]) -> list[Part]:
        """Returns the members of the group after this step."""
        gone = {part.number for part in (*self.closes, *self.kills)}
        anew = {part.number: part for part in self.subscribes}
        kept = [anew.get(part.number, part) for part in parts if part.number not in gone]
        return [*kept, *self.starts]


def deck(cast: Cast) -> list[str]:
    """Returns the events (`join` twice) in the random order in which the group tries them.

    A switch comes last: after it, the members have lists that a snapshot does not show. One group
    in four begins with it.
    """
    drawn = [*EVENTS, "join"]
    cast.random.shuffle(drawn)
    return [SWITCH, *drawn] if cast.random.random() < 0.25 else [*drawn, SWITCH]


def draw(event: str, cast: Cast, ids: Mapping[int, str]) -> Happening | None:
    """Chooses an event's details at random; returns None if it is not possible or changes nothing.

    `ids` maps the number of a `Part` to its member id.
    """
    random, parts = cast.random, sorted(cast.parts, key=lambda part: part.number)
    dynamic = [part for part in parts if part.group_instance_id is None]
    static = [part for part in parts if part.group_instance_id is not None]

    def one_of(some: list[Part]) -> tuple[Part, str]:
        part = random.choice(some)
        return part, ids[part.number]

    match event:
        case "join" if len(parts) < MOST_MEMBERS:
            model, member_id = one_of(parts)
            joins, rack = cast.like(model), ""
            if model.rack_id is not None and random.random() < 0.5:
                joins = replace(joins, rack_id=random.choice(RACKS))
                rack = f",rack={joins.rack_id}"
            text = f"add-members=1{rack},like={member_id}"
            return Happening(event, text, (Step(starts=(joins,)),))
        case "leave" if dynamic and len(parts) > 1:
            part, member_id = one_of(dynamic)
            return Happening(event, f"remove-member={member_id}", (Step(closes=(part,)),))
        case "kill" if len(parts) > 1:
            part, member_id = one_of(parts)
            return Happening(event, f"remove-member={member_id}", (Step(kills=(part,)),))
        case "partitions":
            topic = random.choice(cast.subscribed())
            now = len(cast.topics[topic])
            if now < MOST_PARTITIONS:
                count = now + random.randint(1, 3)
                return Happening(
                    event, f"partitions {topic}={count}", (Step(grows=(topic, count)),)
                )
        case "resubscription":
            part, member_id = one_of(parts)
            known = cast.subscribed()
            topics = tuple(random.sample(known, random.randint(1, len(known))))
            if set(topics) != set(part.topics):
                anew = Step(subscribes=(replace(part, topics=topics),))
                return Happening(event, f"resubscribe={member_id}:{','.join(topics)}", (anew,))
        case "static bounce" if static:
            part, member_id = one_of(static)
            back = Step(kills=(part,), starts=(part,))
            return Happening(event, f"bounce-members={member_id}", (back,))
        case "bounce" if dynamic and len(parts) > 1:
            part, member_id = one_of(dynamic)
            back_again = replace(part, number=next(cast.numbers))
            steps = (Step(closes=(part,)), Step(starts=(back_again,)))
            return Happening(event, f"bounce-members={member_id}", steps)
        case "quick bounce" if dynamic and len(parts) > 1:
            part, member_id = one_of(dynamic)
            back_again = replace(part, number=next(cast.numbers))
            at_once = Step(closes=(part,), starts=(back_again,))
            return Happening(event, f"bounce-members={member_id}", (at_once,))
        case "new topic":
            return _new_topic(event, cast)
        case "deleted topic" if len(cast.subscribed()) > 1:
            topic = random.choice(cast.subscribed())
            if all({*part.topics} - {topic} for part in parts):
                return _deleted_topic(event, cast, topic)
        case "switch":
            return _switch(event, cast, ids)
        case "lost rack":
            return _lost_rack(event, cast)
    return None


def _new_topic(event: str, cast: Cast) -> Happening:
    number = cast.group_id.rpartition("-")[2]
    nodes = sorted({node for at in cast.topics.values() for one in at for node in one})
    topic = f"new{len(cast.topics)}.{number}"
    replicas = tuple((cast.random.choice(nodes),) for _ in range(cast.random.randint(1, 6)))
    subscribes = tuple(replace(part, topics=(*part.topics, topic)) for part in cast.parts)
    step = Step(creates=(topic, replicas), subscribes=subscribes)
    return Happening(event, f"add-topics {topic}={len(replicas)}", (step,))


def _deleted_topic(event: str, cast: Cast, topic: str) -> Happening:
    subscribes = tuple(
        replace(part, topics=tuple(one for one in part.topics if one != topic))
        for part in cast.parts
    )
    step = Step(deletes=topic, subscribes=subscribes)
    return Happening(event, f"remove-topics={topic}", (step,))


def _switch(event: str, cast: Cast, ids: Mapping[int, str]) -> Happening | None:
    """Returns a bounce in the order of `ids`, if all members accept a list of both assignors."""
    libraries = {part.library for part in cast.parts}
    if libraries & {AIOKAFKA, OWN_AIOKAFKA} or not libraries <= {JAVA, KAFKA_PYTHON, LIBRDKAFKA}:
        return None
    eager = {"range", "roundrobin", "sticky"}
    old = cast.parts[0].assignor
    fit = [
        one
        for one in assignors_of(JAVA)
        if one != old and all(one in assignors_of(library) for library in libraries)
        # librdkafka refuses a list of an eager and a cooperative assignor
        if LIBRDKAFKA not in libraries or {one, old} <= eager
    ]
    if not fit:
        return None
    new = cast.random.choice(fit)
    parts = {part.number: part for part in cast.parts}
    steps = [step for number in ids for step in _restarts(parts[number], cast, new)]
    return Happening(event, f"switch-assignor={new}", tuple(steps))


def _restarts(part: Part, cast: Cast, new: str) -> Iterator[Step]:
    back = replace(part, assignor=new, also=part.assignor)
    if part.group_instance_id is not None:
        yield Step(kills=(part,), starts=(back,))
        return
    yield Step(closes=(part,))
    yield Step(starts=(replace(back, number=next(cast.numbers)),))


def _lost_rack(event: str, cast: Cast) -> Happening | None:
    """Returns the loss of a rack in which members are, but not all; node 0 is the controller."""
    racks = {part.rack_id for part in cast.parts}
    fit = sorted(rack for rack in racks & {*RACKS[1:]} if rack) if len(racks) > 1 else []
    if not fit:
        return None
    rack = cast.random.choice(fit)
    kills = tuple(part for part in cast.parts if part.rack_id == rack)
    step = Step(kills=kills, loses=RACKS.index(rack))
    return Happening(event, f"remove-rack={rack}", (step,))
