# SPDX-License-Identifier: Apache-2.0
"""The actions that a run draws at random for each group.

    join          a new member, or one that was stopped before, starts
    leave         a member is closed
    kill          a member ends without a LeaveGroup
    bounce        a member is closed and, when the group is quiet, started again
    quick bounce  a member is closed and started at once; a static one replaces itself
    crash bounce  a member is killed and started at once
    partitions    a topic gets more partitions
    subscribe     a member subscribes to other topics
    restart       all members are closed, then started again

An action has one or two steps; the group settles after each of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .cast import KAFKA_PYTHON, MOST_MEMBERS, MOST_PARTITIONS, START_MEMBERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .cast import Cast, Part

CLOSED, KILLED = "closed", "killed"

_DYNAMIC = (
    "join", "join", "leave", "leave", "kill", "kill", "bounce", "bounce", "quick bounce",
    "crash bounce", "partitions", "subscribe", "subscribe", "restart",
)  # fmt: skip
_STATIC = (
    "join",
    "kill",
    "quick bounce",
    "quick bounce",
    "crash bounce",
    "partitions",
    "subscribe",
)


@dataclass(frozen=True)
class Step:
    """Actions at one time; members end before others start. `grows` is a topic and its new
    partition count.
    """

    name: str
    ends: tuple[tuple[Part, str], ...] = ()
    starts: tuple[Part, ...] = ()
    subscribes: Part | None = None
    grows: tuple[str, int] | None = None


def formation(cast: Cast) -> list[Step]:
    """Returns the steps that start the group: one member first, so that it leads."""
    first, *others = (cast.new() for _ in range(START_MEMBERS))
    return [Step("start", starts=(first,)), Step("join", starts=tuple(others))]


def deck(cast: Cast) -> Iterator[list[Step]]:
    """Yields the possible actions in a random order, then again in another order, without end."""
    while True:
        names = list(_STATIC if cast.kind.is_static else _DYNAMIC)
        cast.random.shuffle(names)
        for name in names:
            if steps := _drawn(name, cast):
                yield steps


def _drawn(name: str, cast: Cast) -> list[Step]:
    """Returns the steps of an action; none if the action is not possible in this group."""
    there = [cast.parts[number] for number in sorted(cast.parts)]
    one = cast.random.choice(there)
    if name == "join":
        if len(there) >= MOST_MEMBERS:
            return []
        is_new = not cast.away or cast.random.random() < 0.5
        return [Step(name, starts=(cast.new() if is_new else cast.away.pop(),))]
    if name in ("leave", "kill"):
        if len(there) < 2:
            return []
        return [Step(name, ends=((one, CLOSED if name == "leave" else KILLED),))]
    if name == "bounce":
        return [Step(name, ends=((one, CLOSED),)), Step(name, starts=(one,))]
    if name in ("quick bounce", "crash bounce"):
        how = CLOSED if name == "quick bounce" else KILLED
        return [Step(name, ends=((one, how),), starts=(one,))]
    if name == "partitions":
        if cast.kind.is_static and KAFKA_PYTHON in cast.kind.libraries:
            return []  # a restarted leader does not know that it leads, and sees no new partitions
        topic = cast.random.choice(cast.subscribed())
        more = cast.topics[topic] + cast.random.randint(1, 3)
        return [Step(name, grows=(topic, more))] if more <= MOST_PARTITIONS else []
    if name == "subscribe":
        # After a new subscription, kafka-python 3.0.12 often stops sending heartbeats.
        there = [part for part in there if part.library != KAFKA_PYTHON]
        if not there:
            return []
        one, topics = cast.random.choice(there), sorted(cast.topics)
        other = tuple(topics[:1] if len(one.topics) == len(topics) else topics)
        return [Step(name, subscribes=replace(one, topics=other))]
    closed = tuple((part, CLOSED) for part in there)
    return [Step(name, ends=closed), Step(name, starts=tuple(there))]


def after(cast: Cast, step: Step) -> None:
    """Changes the cast to the members and topics that should be there after the step."""
    for part, _ in step.ends:
        del cast.parts[part.number]
        if part not in step.starts and step.name in ("leave", "kill"):
            cast.away.append(part)
    for part in (*step.starts, *([step.subscribes] if step.subscribes else [])):
        cast.parts[part.number] = part
    if step.grows:
        cast.topics[step.grows[0]] = step.grows[1]
