# SPDX-License-Identifier: Apache-2.0
"""Chooses random changes for a group, each as a text for `plan` and as actions on live members.

    join            add-members=1,like=M    a member like M starts, in M's rack or another rack
    leave           remove-member=M         M closes: LeaveGroup
    kill            remove-member=M         M is killed and sends nothing: its session times out
    partitions      partitions T=N          the topic T gets N partitions
    resubscription  resubscribe=M:T,…       M subscribes to another set of the group's topics
    static bounce   bounce-members=M        a static member is killed, and returns in time
    bounce          bounce-members=M        a dynamic member closes; later it starts again

M is the id of a member, T the name of a topic.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .cast import RACKS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .cast import Cast, Part

EVENTS = (
    "join",
    "leave",
    "kill",
    "partitions",
    "resubscription",
    "static bounce",
    "bounce",
)
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
    """Members to close, to kill, to start or to subscribe again; or a topic to grow."""

    closes: tuple[Part, ...] = ()
    kills: tuple[Part, ...] = ()
    starts: tuple[Part, ...] = ()
    subscribes: tuple[Part, ...] = ()
    grows: tuple[str, int] | None = None

    def after(self, parts: list[Part]) -> list[Part]:
        """Returns the members of the group after this step."""
        gone = {part.number for part in (*self.closes, *self.kills)}
        anew = {part.number: part for part in self.subscribes}
        kept = [anew.get(part.number, part) for part in parts if part.number not in gone]
        return [*kept, *self.starts]


def deck(cast: Cast) -> list[str]:
    """Returns the events (`join` twice) in the random order in which the group tries them."""
    drawn = [*EVENTS, "join"]
    cast.random.shuffle(drawn)
    return drawn


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
    return None
