# SPDX-License-Identifier: Apache-2.0
"""Random changes of groups of the consumer protocol."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kafka_rebalance.group.model import Member
from kafka_rebalance.plans import plan
from kafka_rebalance.plans.broker_rounds import joined_together
from kafka_rebalance.plans.rebalance_plan import parse_changes

from .judge import Outcome, await_epoch, await_topics, joined, judge, owned, settled
from .members import JAVA, LIBRARIES, LIBRDKAFKA, Client, Members

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

    from kafka_rebalance.group.spec import GroupSpec

CHANGES_A_GROUP = 10
_TOGETHER = 0.4
"""The share of joins in which a second member follows at once."""

_ASSIGNMENT_INTERVAL_S = 1.0
_INTERVAL_S = 1.3
"""Longer than the assignment interval: then each member that joins has its own target."""


@dataclass
class Stage:
    """A group: its clients, and its topics with their numbers of partitions."""

    group_id: str
    clients: list[Client]
    topics: dict[str, int]
    is_pattern: bool
    racks: Sequence[str | None]
    is_timed: bool = True


def play_changes(
    members: Members,
    random: Random,
    number: int,
    *,
    assignors: Sequence[str | None] = (None, "range"),
    racks: Sequence[str | None] = (),
    first: int = 0,
    timed: bool = True,
) -> Iterator[Outcome]:
    """Yields the outcomes; a new group after each CHANGES_A_GROUP changes.

    The groups name these `assignors` in turn. Each member has one of the `racks`, if there are any.
    The number of the `first` group is part of the names of groups and topics. Without `timed`, no
    change is made whose answer depends on the times of heartbeats: a loaded machine shifts them.
    """
    stage = None
    for n in range(number):
        if n % CHANGES_A_GROUP == 0:
            if stage:
                end(members, stage)
            group = first + n // CHANGES_A_GROUP
            stage = _stage(members, random, group, assignors[group % len(assignors)], racks)
            stage.is_timed = timed
        assert stage
        yield _change(members, random, stage)
    if stage:
        end(members, stage)


def end(members: Members, stage: Stage) -> None:
    for client in stage.clients:
        members.close(client)


def _stage(
    members: Members, random: Random, n: int, assignor: str | None, racks: Sequence[str | None]
) -> Stage:
    topics = {f"{word}.{n}": random.randint(1, 9) for word in random.sample("abcdef", 3)}
    is_pattern = n % 3 == 2
    group_id = f"modern-{n}"
    stage = Stage(group_id, [], topics, is_pattern, racks)
    members.create(topics)
    for _ in range(random.randint(2, 5)):
        stage.clients.append(_client(members, random, stage, assignor))
        members.start(stage.clients[-1])
    return stage


def _client(members: Members, random: Random, stage: Stage, assignor: str | None) -> Client:
    number = next(members.numbers)
    library = LIBRDKAFKA if stage.is_pattern else random.choice(LIBRARIES)
    some = tuple(random.sample(sorted(stage.topics), random.randint(1, 3)))
    n = stage.group_id.rpartition("-")[2]
    topics = (f"^.[.]{n}$",) if stage.is_pattern else some if random.random() < 0.3 else ()
    return Client(
        f"c-{number}",
        stage.group_id,
        library,
        topics or tuple(sorted(stage.topics)),
        assignor=assignor,
        instance_id=f"pod-{number}" if random.random() < 0.25 else None,
        rack=random.choice(stage.racks) if stage.racks else None,
    )


def _change(members: Members, random: Random, stage: Stage) -> Outcome:
    before = settled(members.server, stage.group_id, len(stage.clients))
    kinds = ["join", "join", "grow"]
    if len(stage.clients) > 1:
        kinds += ["leave", "kill", "restart"] + ["quick restart"] * stage.is_timed
    kinds.append("create" if stage.is_pattern else "resubscribe")
    kind = random.choice(kinds)
    if kind == "join" and stage.is_timed and random.random() < _TOGETHER:
        return _join_together(members, random, stage, before)
    changes = tuple(parse_changes(_DO[kind](members, random, stage, before)))
    planned = plan(before, None, changes)
    after = settled(members.server, stage.group_id, len(stage.clients))
    what = f"{stage.group_id}, {before.assignor}, {', '.join(map(str, changes))}"
    return judge(what, planned, changes, [after], [len(planned.steps) - 1])


def _join(members: Members, random: Random, stage: Stage, group: GroupSpec) -> list[str]:
    model = random.choice(stage.clients)
    new = _client(members, random, stage, model.assignor)
    new = replace(
        new,
        topics=model.topics,
        instance_id=None if model.instance_id is None else f"pod-{new.name}",
    )
    stage.clients.append(new)
    members.start(new)
    named = f",instance-id={new.instance_id}" if new.instance_id else ""
    rack = f",rack={new.rack}" if new.rack else ""
    return [f"add-members=1{named}{rack},like={_id(group, model)}"]


def _join_together(members: Members, random: Random, stage: Stage, before: GroupSpec) -> Outcome:
    """Starts a member as soon as another one has joined: both share the second target.

    On a slow machine the second member can come later than the interval; then each has its own
    target.
    """
    model = replace(random.choice(stage.clients), library=LIBRDKAFKA, instance_id=None)
    time.sleep(_INTERVAL_S)
    ids = []
    began = time.monotonic()
    for _ in range(2):
        client = replace(model, name=f"c-{next(members.numbers)}")
        stage.clients.append(client)
        members.start(client)
        ids.append(joined(members.server, stage.group_id, client.name))
    is_late = time.monotonic() - began > _ASSIGNMENT_INTERVAL_S
    after = settled(members.server, stage.group_id, len(stage.clients))
    first, second = (Member(one, _topics(before, model), rack_id=model.rack) for one in ids)
    expected = joined_together(before.edited(members=(*before.members, first, second)), "rust")
    problem = None
    if is_late and owned(expected) != owned(after):
        alone = joined_together(before.edited(members=(*before.members, first)), "rust")
        expected = joined_together(alone.edited(members=(*alone.members, second)), "rust")
    if owned(expected) != owned(after):
        problem = f"wrong: {expected.to_json()} is {after.to_json()}"
    what = f"{stage.group_id}, {before.assignor}, two members at once"
    return Outcome(what, problem, with_planned_ids=False, observed={})


def _leave(members: Members, random: Random, stage: Stage, group: GroupSpec) -> list[str]:
    dynamic = [client for client in stage.clients if client.instance_id is None]
    if not dynamic:
        return _grow(members, random, stage, group)
    client = random.choice(dynamic)
    stage.clients.remove(client)
    members.close(client)
    return [f"remove-member={_id(group, client)}"]


def _kill(members: Members, random: Random, stage: Stage, group: GroupSpec) -> list[str]:
    java = [client for client in stage.clients if client.library == JAVA]
    if not java:
        return _leave(members, random, stage, group)
    client = random.choice(java)
    stage.clients.remove(client)
    members.kill(client)
    return [f"remove-member={_id(group, client)}"]


def _restart(members: Members, random: Random, stage: Stage, group: GroupSpec) -> list[str]:
    client = random.choice(stage.clients)
    members.close(client)
    if client.instance_id is None:
        settled(members.server, stage.group_id, len(stage.clients) - 1)
    time.sleep(_INTERVAL_S)
    members.start(client)
    known = [one.member_id for one in group.members]
    joined(members.server, stage.group_id, client.name, known)  # a static member was never absent
    return [f"bounce-members={_id(group, client)}"]


def _quick_restart(members: Members, random: Random, stage: Stage, group: GroupSpec) -> list[str]:
    """Restarts a dynamic member before another member's heartbeat."""
    dynamic = [client for client in stage.clients if client.instance_id is None]
    if not dynamic:
        return _grow(members, random, stage, group)
    client = random.choice(dynamic)
    known = [one.member_id for one in group.members]
    with members.between_heartbeats("consumer", stage.group_id):
        members.close(client)
        members.start(client)
        joined(members.server, stage.group_id, client.name, known)
    return [f"bounce-members={_id(group, client)},away=0s"]


def _grow(members: Members, random: Random, stage: Stage, group: GroupSpec) -> list[str]:
    there = {topic.name for topic in group.topics}
    topic = random.choice(sorted(there))
    stage.topics[topic] += random.randint(1, 4)
    members.grow(topic, stage.topics[topic])
    await_epoch(members.server, group)
    return [f"partitions {topic}={stage.topics[topic]}"]


def _create(members: Members, random: Random, stage: Stage, group: GroupSpec) -> list[str]:
    """Creates a topic that the members' pattern matches."""
    n = stage.group_id.rpartition("-")[2]
    topic = random.choice([f"{x}.{n}" for x in "abcdef" if f"{x}.{n}" not in stage.topics] or [""])
    if not topic:
        return _grow(members, random, stage, group)
    stage.topics[topic] = random.randint(1, 9)
    members.create({topic: stage.topics[topic]})
    await_epoch(members.server, group)
    return [f"add-topics {topic}={stage.topics[topic]}"]


def _resubscribe(members: Members, random: Random, stage: Stage, group: GroupSpec) -> list[str]:
    i = random.randrange(len(stage.clients))
    client = stage.clients[i]
    there = sorted({topic.name for topic in group.topics})
    topics = tuple(sorted(random.sample(there, random.randint(1, len(there)))))
    stage.clients[i] = replace(client, topics=topics)
    members.subscribe(stage.clients[i])
    await_topics(members.server, stage.group_id, client.name, topics)
    return [f"resubscribe={_id(group, client)}:{','.join(topics)}"]


def _topics(group: GroupSpec, client: Client) -> tuple[str, ...]:
    """Returns the client's topics; a pattern stands for all topics of the group."""
    is_pattern = client.topics[0].startswith("^")
    return tuple(topic.name for topic in group.topics) if is_pattern else client.topics


def _id(group: GroupSpec, client: Client) -> str:
    return next(one.member_id for one in group.members if one.client_id == client.name)


_DO = {
    "join": _join,
    "leave": _leave,
    "kill": _kill,
    "restart": _restart,
    "quick restart": _quick_restart,
    "grow": _grow,
    "create": _create,
    "resubscribe": _resubscribe,
}
