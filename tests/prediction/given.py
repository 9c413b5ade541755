# SPDX-License-Identifier: Apache-2.0
"""Judges every generation of a group: do we compute the assignment that the leader sent?

1. Members come from the bytes of their subscriptions (`wire.sent_member`), topics from the cluster
   at the time of the record, in the order in which the members first name them. The assignor is
   that of the leader's library. The sticky classes of kafka-python and aiokafka are not judged
   here: they read user data that Kafka's classes cannot read.
2. Our assignment must equal the leader's: each member has equal partitions; if the leader is a Java
   client, also in equal order.
3. The log does not show which topics the leader knew. If the assignments differ, the topics of
   other times are tried, those to which the leader subscribes, and all topics but some. If one of
   them explains the leader's assignment, the verdict is OLDER. If only the order differs, it is
   ORDER. Else it is DIFFERENT, and the cause names the fields that the leader ignored, if that
   explains the assignment.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from itertools import combinations, groupby
from typing import TYPE_CHECKING, Any

import kafka_rebalance as kr
from kafka_rebalance import GroupSpec, Topic
from kafka_rebalance.wire.sent_members import sent_member

from .cast import JAVA, OWN
from .log import generations, subscription_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from .log import Written
    from .observed import Inventory, Observed

    Owners = Mapping[str, Iterable[tuple[str, int]]]

Answer = dict[str, tuple[tuple[str, int], ...]]


class Verdict(enum.Enum):
    EQUAL = "equal"
    OLDER = "equal with metadata that the leader had before"
    ORDER = "the same partitions in another order"
    DIFFERENT = "different"


@dataclass(frozen=True)
class Judged:
    """The verdict on one generation; `cause` is empty for EQUAL and ORDER."""

    generation_id: int
    leader: str
    assignor: str
    verdict: Verdict
    cause: str = ""

    @property
    def is_right(self) -> bool:
        return self.verdict in (Verdict.EQUAL, Verdict.OLDER)


def judge(observed: Observed) -> list[Judged]:
    """Judges every generation in the records since the change."""
    known = -1 if observed.earlier is None else observed.earlier.generation_id
    return [
        _judge(record, observed)
        for record in generations(observed.records)
        if record.generation_id != known and "sticky" not in _own_of_python(record, observed)
    ]


def _own_of_python(record: Written, observed: Observed) -> str:
    """Returns the assignor, if it is a Python library's own assignor."""
    prefix = OWN.get(observed.libraries.get(record.value.leader or "", ""), "librdkafka/")
    return "" if prefix == "librdkafka/" else record.value.protocol or ""


def spec(record: Written, topics: Sequence[Topic], prefix: str = "") -> GroupSpec:
    """Returns the leader's input, rebuilt from the record; the assignor's name gets `prefix`."""
    value = record.value
    members = tuple(
        sent_member(
            member.member_id,
            subscription_of(member),
            value.protocol or "",
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
        )
        for member in value.members
    )
    named = list(dict.fromkeys(topic for member in members for topic in member.topics))
    ordered = sorted(
        topics,
        key=lambda one: (one.name not in named, named.index(one.name) if one.name in named else 0),
    )
    assignor = f"{prefix}{value.protocol}"
    return GroupSpec("", tuple(ordered), members, assignor, value.generation_id)


def inventory_of(record: Written, inventories: Sequence[Inventory]) -> Inventory:
    """Returns the topics at the time of the record."""
    at = [one for one in inventories if one.from_ms <= record.timestamp_ms]
    return at[-1] if at else inventories[0]


def _judge(record: Written, observed: Observed) -> Judged:
    leader = observed.libraries.get(record.value.leader or "", "unknown")
    verdict, cause = _compare(
        record, observed.inventories, OWN.get(leader, ""), in_order=leader == JAVA
    )
    return Judged(record.generation_id, leader, record.value.protocol or "", verdict, cause)


def _compare(
    record: Written, inventories: Sequence[Inventory], prefix: str, *, in_order: bool
) -> tuple[Verdict, str]:
    group = spec(record, inventory_of(record, inventories).topics, prefix)
    theirs = record.assigned()
    # 2.
    try:
        ours = _answer(group)
    except kr.KafkaRebalanceError as error:
        return Verdict.DIFFERENT, f"we raise {error}"
    if _same(ours, theirs, in_order):
        return Verdict.EQUAL, ""
    # 3.
    for what, topics in _older(record, group, inventories):
        if _same(_answer(group.edited(topics=topics)), theirs, in_order):
            return Verdict.OLDER, what
    if _same(ours, theirs, in_order=False):
        return Verdict.ORDER, ""
    for what, changed in _explanations(group):
        if _same(_answer(changed), theirs, in_order=False):
            return Verdict.DIFFERENT, what
    return Verdict.DIFFERENT, "unknown"


def _older(
    record: Written, group: GroupSpec, inventories: Sequence[Inventory]
) -> Iterator[tuple[str, tuple[Topic, ...]]]:
    """Yields other sets of topics that the leader may have known, each after its description."""
    for one in inventories:
        if one.topics != group.topics:
            yield "topics of another time", one.topics
    (leader,) = (m for m in group.members if m.member_id == record.value.leader)
    for one in (inventory_of(record, inventories), *inventories):
        own = tuple(topic for topic in one.topics if topic.name in leader.topics)
        yield "only topics of the leader's own subscription", own
        names = [topic.name for topic in one.topics]
        for count in range(1, len(names) + 1):
            for missing in combinations(names, count):
                some = tuple(topic for topic in one.topics if topic.name not in missing)
                yield f"no metadata of {', '.join(missing)}", some


def _explanations(group: GroupSpec) -> Iterator[tuple[str, GroupSpec]]:
    """Yields groups without some fields, as if the leader ignored them; fewest fields first."""
    for count in range(1, len(_IGNORED) + 1):
        for names in combinations(_IGNORED, count):
            changed = group
            for name in names:
                changed = _IGNORED[name](changed)
            yield f"the leader ignored {' and '.join(names)}", changed


def _without(**fields: Any) -> Callable[[GroupSpec], GroupSpec]:
    return lambda group: group.edited(
        members=tuple(replace(member, **fields) for member in group.members)
    )


def _without_topic_racks(group: GroupSpec) -> GroupSpec:
    return group.edited(topics=tuple(replace(topic, racks=None) for topic in group.topics))


_IGNORED = {
    "racks of brokers": _without_topic_racks,
    "racks of members": _without(rack_id=None),
    "instance ids": _without(group_instance_id=None),
    "generations": _without(generation_id=None, user_data_generation_id=None),
    "claims": _without(owned_partitions=()),
}


def _answer(group: GroupSpec) -> Answer:
    return {
        member: tuple((tp.topic, tp.partition) for tp in owned)
        for member, owned in kr.assign(group).items()
    }


def _same(ours: Owners, theirs: Owners, in_order: bool) -> bool:
    shape = _in_order if in_order else frozenset
    return {m: shape(owned) for m, owned in ours.items()} == {
        m: shape(owned) for m, owned in theirs.items()
    }


def _in_order(owned: Iterable[tuple[str, int]]) -> list[tuple[str, list[int]]]:
    """Groups partitions by topic as the bytes do: each topic once, in order of first appearance."""
    topics: dict[str, list[int]] = {}
    for topic, run in groupby(owned, key=lambda tp: tp[0]):
        topics.setdefault(topic, []).extend(p for _, p in run)
    return list(topics.items())
