# SPDX-License-Identifier: Apache-2.0
"""Generates random changes for generated groups; most of them are valid for the group."""

# ruff: noqa: ARG001 -- all functions in KINDS have one signature
from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from kafka_rebalance import GroupError, GroupSpec, Topic, assign
from kafka_rebalance.assignors.registry import BUILT_IN, SERVER_SIDE
from kafka_rebalance.plans.changes import apply, change_from_text
from tests.support.generate import generate

_PLAYED = [name for name, row in BUILT_IN.items() if row.clients]
"""The assignors that members can list; Kafka's classes and the explanations know no other one."""
LIBRARIES = ("java", "python", "kafka-python", "aiokafka", "librdkafka")


def groups_and_changes(seed: int, count: int) -> Iterator[tuple[GroupSpec, list[str]]]:
    """Yields `count` groups with their changes; a few groups have none."""

    def answer(case: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"assignment": assign(GroupSpec.from_dict(case)).to_dict()}
        except GroupError as error:
            return {"error": str(error)}

    rng, protocols = random.Random(seed), random.Random(f"protocols/{seed}")
    for case in generate(seed, count, _PLAYED, answer):
        group = GroupSpec.from_dict(with_protocol(protocols, with_client_ids(rng, case)))
        yield group, changes(rng, group) if rng.random() < 0.95 else []


def changes(rng: random.Random, group: GroupSpec, most: int = 3) -> list[str]:
    """Chooses one to `most` random changes, each for the group as the earlier changes leave it.

    The last change may be invalid for that group.
    """
    texts: list[str] = []
    for _ in range(rng.randint(1, most)):
        text = rng.choice(KINDS)(rng, group)
        texts.append(text)
        try:
            group = apply(change_from_text(text), group)
        except GroupError:
            break
    return texts


def with_protocol(rng: random.Random, case: dict[str, Any]) -> dict[str, Any]:
    """Adds a rebalance protocol to half of the groups; mostly eager, if two are supported."""
    assignor = case["assignor"]
    if assignor in SERVER_SIDE or rng.random() < 0.5:
        return case
    eager = not BUILT_IN[assignor].withholds or rng.random() < 0.8
    return {**case, "rebalance_protocol": "eager" if eager else "cooperative"}


def with_client_ids(rng: random.Random, case: dict[str, Any]) -> dict[str, Any]:
    """Adds client ids: none, one for all, numbered ids, three in turn, or random ids.

    Some of the members without a client id have a library.
    """
    members = case["members"]
    first = rng.choice([0, 1, 8, 98])
    ways: list[Callable[[int], str | None]] = [
        lambda _: None,
        lambda _: "app",
        lambda n: f"orders-{first + n}",
        lambda n: f"orders-{first + n:03d}",
        lambda n: f"consumer-orders-{1 + n % 3}",
        lambda n: rng.choice(["app", "app-2", "", None, f"pod-{n}", "pod"]),
    ]
    way = rng.choice(ways)
    named = [{**member, "client_id": way(n)} for n, member in enumerate(members)]
    library = rng.choice([None, None, *LIBRARIES])
    if library is not None:
        named = [{"client_library": library, **m} if not m["client_id"] else m for m in named]
    return {**case, "members": named}


def _add(rng: random.Random, group: GroupSpec) -> str:
    text = f"add-members={rng.randint(1, 3)}"
    options = [f",rack={rng.choice(['r0', 'r1', 'r9', ''])}"] if rng.random() < 0.4 else []
    if rng.random() < 0.3:
        options.append(f",client-id={rng.choice(['orders-10', 'app', 'x', 'a-09', ''])}")
    if rng.random() < 0.2:
        names = [member.group_instance_id or "static" for member in group.members]
        options.append(f",instance-id={rng.choice(['s-1', 'static', rng.choice(names), ''])}")
    if rng.random() < 0.1:
        options.append(",rack=r1")
    if rng.random() < 0.5:
        options.append(f",like={_name(rng, group)}")
    rng.shuffle(options)
    return text + "".join(options)


def _name(rng: random.Random, group: GroupSpec) -> str:
    member = rng.choice(group.members)
    return rng.choice([member.member_id, member.group_instance_id or member.member_id])


def _remove_last(rng: random.Random, group: GroupSpec) -> str:
    return f"remove-members={rng.randint(1, len(group.members))}"


def _remove_member(rng: random.Random, group: GroupSpec) -> str:
    return f"remove-member={_name(rng, group)}"


def _remove_rack(rng: random.Random, group: GroupSpec) -> str:
    racks = [member.rack_id or "r0" for member in group.members]
    for topic in group.topics:
        racks += [rack or "r1" for replicas in topic.racks or () for rack in replicas[:1]]
    return f"remove-rack={rng.choice(racks)}"


def _remove_client(rng: random.Random, group: GroupSpec) -> str:
    return f"remove-client={rng.choice([member.client_id or 'app' for member in group.members])}"


def _partitions(rng: random.Random, group: GroupSpec) -> str:
    if not group.topics:
        return "partitions t=3"
    topic = rng.choice(_unread(rng, group) or group.topics)
    return f"partitions {topic.name}={max(0, topic.partitions + rng.randint(-1, 5))}"


def _unread(rng: random.Random, group: GroupSpec) -> list[Topic]:
    """Returns the topics that nobody subscribes to; in most cases, an empty list."""
    read = {topic for member in group.members for topic in member.topics}
    unread = [topic for topic in group.topics if topic.name not in read]
    return unread if rng.random() < 0.3 else []


def _add_topics(rng: random.Random, group: GroupSpec) -> str:
    return f"add-topics new{rng.randint(0, 9)}={rng.randint(0, 6)},aaa={rng.randint(1, 4)}"


def _remove_topics(rng: random.Random, group: GroupSpec) -> str:
    topics = _unread(rng, group) or group.topics
    return f"remove-topics={rng.choice([topic.name for topic in topics] or ['t'])}"


def _resubscribe(rng: random.Random, group: GroupSpec) -> str:
    names = [topic.name for topic in group.topics] or ["t"]
    member = rng.choice(group.members)
    known = [topic for topic in member.topics if topic in names]
    if known and rng.random() < 0.2:  # the topics that the member has, in any order
        rng.shuffle(known)
        return f"resubscribe={member.member_id}:{','.join(known)}"
    who = f"{_name(rng, group)}:" if rng.random() < 0.6 else ""
    return f"resubscribe={who}{','.join(rng.sample(names, rng.randint(1, len(names))))}"


def _switch(rng: random.Random, group: GroupSpec) -> str:
    return f"switch-assignor={rng.choice(_PLAYED)}"


def _bounce(rng: random.Random, group: GroupSpec) -> str:
    who = "*" if len(group.members) <= 6 and rng.random() < 0.5 else _name(rng, group)
    away = rng.choice(["", "", ",away=0s", ",away=1s", ",away=1m"])
    return f"bounce-members={who}{rng.choice(['', '', ',static', ',dynamic'])}{away}"


def _nonsense(rng: random.Random, group: GroupSpec) -> str:
    return rng.choice(
        ["", "add-members", "add-members=-1", "remove-member=", "hop=1", "partitions=x"]
    )


# A function that is listed several times is chosen more often.
KINDS: tuple[Callable[[random.Random, GroupSpec], str], ...] = (
    *(_add, _add, _remove_last, _remove_member, _remove_rack, _remove_client, _partitions),
    *(_partitions, _add_topics, _remove_topics, _resubscribe, _switch, _bounce, _bounce),
    *(_add, _remove_member, _partitions, _resubscribe, _nonsense),
)
