# SPDX-License-Identifier: Apache-2.0
"""Finds why a plan was wrong: for which fields of members or topics it assumed wrong values.

The plan, with the real member ids, is compared with the generations of the log. In the first round
with another assignment, one kind of field after another gets its real values.
A kind is the cause if the assignment then equals the leader's. If no single kind is the cause, all
differing kinds are causes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import kafka_rebalance as kr

from .given import inventory_of, spec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kafka_rebalance import GroupSpec, Member
    from kafka_rebalance.plans.rebalance_plan import RebalancePlan

    from .log import Written
    from .observed import Observed

    Mend = Callable[[GroupSpec, GroupSpec], GroupSpec]


def find(observed: Observed, plan: RebalancePlan, records: Sequence[Written]) -> list[str]:
    """Returns the causes as strings, or an empty list if all rounds are equal."""
    for n, (round_, record) in enumerate(zip(plan.rounds, records, strict=False), 1):
        theirs = {id_: set(owned) for id_, owned in record.assigned().items()}
        if {id_: set(map(tuple, own)) for id_, own in round_.assignment.items()} == theirs:
            continue
        planned = round_.group
        real = spec(record, inventory_of(record, observed.inventories).topics)
        real = real.edited(assignor=planned.assignor)
        if {m.member_id for m in planned.members} != {m.member_id for m in real.members}:
            return [f"round {n}: other members than planned"]
        differing = [
            what
            for what, mend in MENDS.items()
            if mend(planned, real) != planned
            and (what not in OF_STICKY or "sticky" in (planned.assignor or ""))
        ]
        enough = [what for what in differing if _answer(MENDS[what](planned, real)) == theirs]
        all_of_them = [what for what in differing if what != BOTH]
        return [_named(what, planned, real) for what in enough[:1] or all_of_them]
    return []


def _members(*names: str) -> Mend:
    """Returns a function that gives these fields the members' real values.

    A list that differs only in its order is left as it is.
    """

    def mend(planned: GroupSpec, real: GroupSpec) -> GroupSpec:
        sent = {member.member_id: member for member in real.members}
        members = []
        for member in planned.members:
            theirs = {name: getattr(sent[member.member_id], name) for name in names}
            other = {
                name: value
                for name, value in theirs.items()
                if _unordered(value) != _unordered(getattr(member, name))
            }
            members.append(replace(member, **other))
        return planned.edited(members=tuple(members))

    return mend


def _unordered(value: object) -> object:
    return set(value) if isinstance(value, tuple) else value


def _order(planned: GroupSpec, real: GroupSpec) -> GroupSpec:
    ours = {member.member_id: member for member in planned.members}
    return planned.edited(members=tuple(ours[member.member_id] for member in real.members))


def _counts(planned: GroupSpec, real: GroupSpec) -> GroupSpec:
    subscribed = {topic for member in planned.members for topic in member.topics}
    ours = {topic.name: topic for topic in planned.topics}
    topics = tuple(
        topic
        if topic.name not in ours or ours[topic.name].partitions != topic.partitions
        else ours[topic.name]
        for topic in real.topics
        if topic.name in subscribed
    )
    same = {topic.name: topic for topic in topics} == {
        name: topic for name, topic in ours.items() if name in subscribed
    }
    return planned if same else planned.edited(topics=topics)


def _topic_racks(planned: GroupSpec, real: GroupSpec) -> GroupSpec:
    racks = {topic.name: topic for topic in real.topics}
    topics = tuple(
        replace(topic, racks=racks[topic.name].racks)
        if topic.name in racks and racks[topic.name].partitions == topic.partitions
        else topic
        for topic in planned.topics
    )
    return planned.edited(topics=topics)


GENERATION = ("generation_id", "subscription_version", "user_data", "user_data_generation_id")
BOTH = "claims and generations"
OF_STICKY = ("claims", "generations", BOTH)
MENDS: dict[str, Mend] = {
    "claims": _members("owned_partitions"),
    "generations": _members(*GENERATION),
    BOTH: _members("owned_partitions", *GENERATION),
    "subscriptions": _members("topics"),
    "racks of members": _members("rack_id"),
    "instance ids": _members("group_instance_id"),
    "partitions of topics": _counts,
    "racks of partitions": _topic_racks,
    "order of members": _order,
}


def _answer(group: GroupSpec) -> dict[str, set[tuple[str, int]]] | None:
    try:
        return {
            id_: {(tp.topic, tp.partition) for tp in owned}
            for id_, owned in kr.assign(group).items()
        }
    except kr.KafkaRebalanceError:
        return None


def _named(what: str, planned: GroupSpec, real: GroupSpec) -> str:
    """Returns the text of a cause, as in docs and reports."""
    sent = {member.member_id: member for member in real.members}
    pairs = [(member, sent[member.member_id]) for member in planned.members]
    kinds: set[str] = set()
    if what in ("claims", BOTH):
        kinds |= {_claims(*pair) for pair in pairs}
    if what in ("generations", BOTH):
        newest = max((m.generation_id or -1 for m in real.members), default=-1)
        kinds |= {_age(*pair, newest) for pair in pairs}
    return ": ".join([what, ", ".join(sorted(kinds - {""}))]) if kinds - {""} else what


def _claims(planned: Member, sent: Member) -> str:
    ours, theirs = set(planned.owned_partitions), set(sent.owned_partitions)
    if ours == theirs:
        return ""
    if theirs == {tp for tp in ours if tp.topic in sent.topics}:
        return "topics left are not claimed"
    if ours and not theirs:
        return "none sent"
    if ours < theirs:
        left = all(tp.topic not in sent.topics for tp in theirs - ours)
        return "topics left are claimed" if left else "more sent than is held"
    return "others sent"


def _age(planned: Member, sent: Member, newest: int) -> str:
    if planned.generation_id == sent.generation_id:
        ours = planned.version, planned.user_data, planned.user_data_generation_id
        theirs = sent.version, sent.user_data, sent.user_data_generation_id
        return "" if ours == theirs else f"sent as {theirs}, planned as {ours}"
    if sent.generation_id is None or sent.generation_id < 0:
        return "generation never sent"
    if planned.generation_id is None:
        return "generation not known to the plan"
    return "generation stale" if sent.generation_id < newest else "another generation"
