# SPDX-License-Identifier: Apache-2.0
"""Random changes of share groups and of streams groups, whose members are Kafka's own."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from kafka import KafkaProducer
from kafka.admin import ConfigResource

from kafka_rebalance.live.broker_groups import STANDBY_REPLICAS
from kafka_rebalance.live.cluster import admin_client
from kafka_rebalance.plans import plan
from kafka_rebalance.plans.rebalance_plan import parse_changes
from tests.support.broker import LIB_STREAMS
from tests.support.live_members import JavaMembers

from .judge import Outcome, await_epoch, await_topics, is_of, joined, judge, settled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from random import Random

    from kafka_rebalance.group.spec import GroupSpec

    from .members import Members

    _Made = tuple[GroupSpec, list[str]]
    """The group before the change, with new settings, and the change as texts."""

    _Begin = Callable[["BrokerAssigned", Random, int], "Stage"]
    _Change = Callable[["BrokerAssigned", Random, "Stage", GroupSpec], _Made | None]
    _Kinds = tuple[_Change, ...]

CHANGES_A_GROUP = 10
_INTERVAL_S = 1.3
"""Longer than the assignment interval of 1 s: then each member that joins has its own target."""

_RECORDS = 20
_MOST_STANDBY = 2


@dataclass
class Stage:
    """A group: its topics with their numbers of partitions, and its clients.

    `clients` maps each share consumer to its topics, or an application to all topics. `threads`
    maps each application to its members.
    """

    group_id: str
    topics: dict[str, int]
    more: dict[str, Any] = field(default_factory=dict)
    clients: dict[str, list[str]] = field(default_factory=dict)
    threads: dict[str, int] = field(default_factory=dict)
    standby: int = 0

    @property
    def members(self) -> int:
        return sum(self.threads.values()) if self.threads else len(self.clients)


class BrokerAssigned:
    """The clients of a run, which are of one kind, in a JVM of their own."""

    def __init__(self, kind: str, members: Members, directory: Path) -> None:
        self.members = members
        self.server = members.server
        self.described: dict[str, dict[str, Any]] = {}
        self._directory = directory
        self._numbers = itertools.count()
        first = [LIB_STREAMS] if kind == "streams" else []
        self._java = JavaMembers(self.server, directory / f"{kind}.log", "BrokerAssigned", first)

    def close(self) -> None:
        self._java.close()

    def send(self, **command: Any) -> None:
        failures = self._java.send(**command)["failures"]
        if failures:
            raise RuntimeError(f"{failures}")

    def start(self, kind: str, stage: Stage, topics: list[str], threads: int = 1) -> str:
        name = f"{kind}-{next(self._numbers)}"
        stage.clients[name] = topics
        if kind == "streams":
            stage.threads[name] = threads
        one = {
            "name": name,
            "kind": kind,
            "group_id": stage.group_id,
            "topics": topics,
            "threads": threads,
            "state_dir": str(self._directory / name),
            **stage.more,
        }
        self.described[name] = one
        self.send(add=[one])
        return name

    def fill(self, topics: dict[str, int]) -> None:
        """Writes records into each partition, so that stateful tasks have a state."""
        producer = KafkaProducer(bootstrap_servers=self.server)
        for topic, partitions in topics.items():
            for n in range(_RECORDS * partitions):
                text = b"%d" % n
                producer.send(topic, key=text, value=text, partition=n % partitions)
        producer.flush()
        producer.close()

    def set_standby_replicas(self, stage: Stage) -> None:
        value = {STANDBY_REPLICAS: str(stage.standby)}
        with admin_client(self.server, None) as admin:
            admin.alter_configs([ConfigResource("GROUP", stage.group_id, value)], incremental=True)

    def stop(self, stage: Stage, name: str) -> None:
        del stage.clients[name]
        stage.threads.pop(name, None)
        self.send(close=[name])


def play_shares(clients: BrokerAssigned, random: Random, number: int) -> Iterator[Outcome]:
    """Yields the outcomes of changes of share groups."""
    return _play(clients, random, number, _share_group, _SHARE)


def play_streams(clients: BrokerAssigned, random: Random, number: int) -> Iterator[Outcome]:
    """Yields the outcomes of changes of streams groups."""
    return _play(clients, random, number, _streams_group, _STREAMS)


def _play(
    clients: BrokerAssigned, random: Random, number: int, begin: _Begin, kinds: _Kinds
) -> Iterator[Outcome]:
    for n in range(0, number, CHANGES_A_GROUP):
        stage = begin(clients, random, n // CHANGES_A_GROUP)
        for _ in range(min(CHANGES_A_GROUP, number - n)):
            before = settled(clients.server, stage.group_id, stage.members)
            time.sleep(_INTERVAL_S)
            made = None
            while made is None:
                made = random.choice(kinds)(clients, random, stage, before)
            before, texts = made
            changes = tuple(parse_changes(texts))
            planned = plan(before, None, changes)
            after = settled(clients.server, stage.group_id, stage.members)
            what = f"{stage.group_id}, {before.assignor}, {', '.join(texts) or 'standby replicas'}"
            yield judge(what, planned, changes, [after], [len(planned.steps) - 1])
        for name in list(stage.clients):
            clients.stop(stage, name)


# Share groups -------------------------------------------------------------------------------------


def _share_group(clients: BrokerAssigned, random: Random, n: int) -> Stage:
    topics = {f"share.{x}.{n}": random.randint(1, 6) for x in "ab"}
    stage = Stage(f"share-{n}", topics)
    clients.members.create(topics)
    for _ in range(random.randint(2, 4)):
        clients.start("share", stage, _some(random, topics))
    return stage


def _some(random: Random, topics: dict[str, int]) -> list[str]:
    """Returns all topics; now and then, some of them."""
    every = sorted(topics)
    return sorted(random.sample(every, random.randint(1, len(every)))) if _rarely(random) else every


def _rarely(random: Random) -> bool:
    return random.random() < 0.25


def _share_join(
    clients: BrokerAssigned, random: Random, stage: Stage, group: GroupSpec
) -> _Made | None:
    like = random.choice(sorted(stage.clients))
    clients.start("share", stage, stage.clients[like])
    return group, [f"add-members=1,like={_id(group, like)}"]


def _leave(clients: BrokerAssigned, random: Random, stage: Stage, group: GroupSpec) -> _Made | None:
    alone = [one for one in sorted(stage.clients) if stage.threads.get(one, 1) == 1]
    if stage.members < 2 or not alone:
        return None
    name = random.choice(alone)
    clients.stop(stage, name)
    return group, [f"remove-member={_id(group, name)}"]


def _quick_restart(
    clients: BrokerAssigned, random: Random, stage: Stage, group: GroupSpec
) -> _Made | None:
    """Restarts a client of one member before another member's heartbeat."""
    alone = [one for one in sorted(stage.clients) if stage.threads.get(one, 1) == 1]
    if stage.members < 2 or not alone:
        return None
    name = random.choice(alone)
    kind = name.partition("-")[0]
    known = [one.member_id for one in group.members]
    with clients.members.between_heartbeats(kind, stage.group_id):
        clients.send(close=[name])
        clients.send(add=[clients.described[name]])
        joined(clients.server, stage.group_id, name, known)
    return group, [f"bounce-members={_id(group, name)},away=0s"]


def _grow(clients: BrokerAssigned, random: Random, stage: Stage, group: GroupSpec) -> _Made | None:
    topic = random.choice([topic.name for topic in group.topics])
    stage.topics[topic] += random.randint(1, 3)
    clients.members.grow(topic, stage.topics[topic])
    await_epoch(clients.server, group)
    return group, [f"partitions {topic}={stage.topics[topic]}"]


def _resubscribe(
    clients: BrokerAssigned, random: Random, stage: Stage, group: GroupSpec
) -> _Made | None:
    name = random.choice(sorted(stage.clients))
    there = sorted(topic.name for topic in group.topics)
    topics = sorted(random.sample(there, random.randint(1, len(there))))
    stage.clients[name] = topics
    clients.described[name]["topics"] = topics  # topics after a restart
    clients.send(subscribe={name: topics})
    await_topics(clients.server, stage.group_id, name, topics)
    return group, [f"resubscribe={_id(group, name)}:{','.join(topics)}"]


# Streams groups -----------------------------------------------------------------------------------


def _streams_group(clients: BrokerAssigned, random: Random, n: int) -> Stage:
    a, b, c = (f"streams.{x}.{n}" for x in "abc")
    topics = {topic: random.randint(2, 5) for topic in (a, b, c)}
    stage = Stage(f"streams-{n}", topics, {"stateful": [a], "repartitioned": [b] if n % 2 else []})
    clients.members.create(topics)
    clients.fill(topics)
    for _ in range(random.randint(2, 3)):
        clients.start("streams", stage, sorted(topics), threads=random.randint(1, 2))
    return stage


def _streams_join(
    clients: BrokerAssigned, _: Random, stage: Stage, group: GroupSpec
) -> _Made | None:
    clients.start("streams", stage, sorted(stage.topics))
    return group, ["add-members=1"]


def _more_threads(
    clients: BrokerAssigned, random: Random, stage: Stage, group: GroupSpec
) -> _Made | None:
    """Starts a thread: a member that joins in an existing process."""
    name = random.choice(sorted(stage.clients))
    stage.threads[name] += 1
    clients.send(more_threads=[name])
    return group, ["add-members=1"]


def _other_standby(
    clients: BrokerAssigned, random: Random, stage: Stage, group: GroupSpec
) -> _Made | None:
    """Changes the number of standby replicas: the next target contains the change."""
    stage.standby = random.choice([n for n in range(_MOST_STANDBY + 1) if n != stage.standby])
    clients.set_standby_replicas(stage)
    await_epoch(clients.server, group)
    return replace(group, num_standby_replicas=stage.standby), []


def _id(group: GroupSpec, name: str) -> str:
    """Returns the id of a client's member; an application's client ids begin with its name."""
    ids = [one.member_id for one in group.members if is_of(one.client_id, name)]
    assert len(ids) == 1
    return ids[0]


_SHARE = (_share_join, _share_join, _leave, _leave, _quick_restart, _grow, _resubscribe)
# Without quick restarts: their plans are known to be inexact in streams groups (docs/plans.md).
_STREAMS = (_streams_join, _streams_join, _more_threads, _leave, _leave, _leave, _other_standby)
