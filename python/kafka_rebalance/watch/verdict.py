# SPDX-License-Identifier: Apache-2.0
"""Judges a rebalance of a live group: did it end as the plan predicts?

    judged_rebalance: two states of a group -> JudgedRebalance

A state is a description of the group between rebalances, or is read from a record of its log.

1. The plan starts from the members of the second state, so a member that joined has its real id.
   Members start with the partitions that they owned in the first state; a static member that came
   back, with the partitions of its old id. The leader is the second state's; if that is unknown,
   the first state's. If only static members came back, and no partition moved, the rebalance is as
   predicted.
2. The rebalance is planned with each assignor that a leader may have (`leaders.py`). If one of the
   plans ends as the group did, the rebalance is as predicted.
3. If not, possible causes are tried one after another, until a plan that includes one ends as the
   group did. The first cause: the members sent other data than step 1 assumes, as a record shows.
   The last causes are assignors that no possible leader has.

A broker-assigned group has neither a leader nor claims. It is compared with the owners at the end
of each course of events between the two states (`courses.py`). If no course ends as the group did,
the cause is unknown, or not all courses were tried, or the epoch rose by more changes than the two
states show: for example, a member joined and left.

Differs  descriptions do not show what members sent, and two rebalances between them are judged as
         one. Records have neither limit.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from kafka_rebalance.assignors.assigning import assign
from kafka_rebalance.assignors.registry import (
    FOREIGN,
    SERVER_SIDE,
    WEIGHTED,
    Engine,
    is_known,
    unknown,
)
from kafka_rebalance.errors import GroupError
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.spec import GroupSpec, partition_or_task_counts
from kafka_rebalance.notes.listed import is_cooperative
from kafka_rebalance.plans.leaders import possible_dialects
from kafka_rebalance.plans.rebalance_plan import RebalancePlan, plan

from .courses import epochs_of_changes, possible_ends, read_topics
from .owners import Owners, additions, elsewhere, owners, owners_in, renamed

_PREFIXES = ("", "librdkafka/", "kafka-python/", "aiokafka/")
EAGER_MEMBERS = (
    "members claimed nothing: they list an eager assignor too, or joined again before they took "
    "their partitions"
)
MORE_CHANGED = "the epoch rose by more than the changes that the two states show"
NOT_ALL_TRIED = "not every order of the changes was tried, because the group is large"
NO_TOPIC = "the leader did not know a topic yet"
OLD_COUNTS = "the leader did not know the new partition counts yet"
UNKNOWN = "unknown"
NO_CHANGE = "no visible change"
NO_REBALANCE = "no rebalance: static members came back"


class JudgedRebalance(Frozen):
    """A rebalance, and whether it was predicted; docs/plans.md lists the fields.

    `event`       the differences between the states, as a string with whole member ids
    `assignor`    the assignor whose plan ends as the group did; None if no plan does
    `cause`       why the prediction was wrong; None if it was right
    `elsewhere`   how many of the `partitions` have other owners at the end of the first plan; 0 if
                  the rebalance was predicted
    `revoked`     how many partitions members have lost, including members that left
    `gained`      how many partitions members have got, including members that joined
    """

    group_id: str
    generation_id: int | None
    event: str
    assignor: str | None
    cause: str | None
    elsewhere: int
    partitions: int
    revoked: int
    gained: int

    @property
    def is_predicted(self) -> bool:
        return self.cause is None

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "as_predicted": self.is_predicted}


def judged_rebalance(
    before: GroupSpec,
    after: GroupSpec,
    *,
    sent: GroupSpec | None = None,
    was_empty: bool = False,
    engine: Engine = "rust",
) -> JudgedRebalance:
    """Judges the rebalance between two states.

    `sent` is the group as the leader saw it, if that is known from a record. The second state then
    follows a single round, so it is compared with the plan's first round, not with its end. If the
    group `was_empty` between the states, all its members left and the present ones joined.

    Errors   GroupError for `weighted`, and for an assignor that no plan knows, such as that of
             Kafka Streams.
    """
    if after.assignor in FOREIGN:
        raise GroupError("assignor", unknown(after.assignor))
    if after.assignor == WEIGHTED:
        raise GroupError("assignor", f"nobody can read the weights of {WEIGHTED}'s leader")
    if was_empty:
        before = _without_owners(before)
    event, found = _event(before, after, was_empty), owners(after)
    judged = partial(_judged, before, after, event)
    if before.assignor in SERVER_SIDE and after.assignor in SERVER_SIDE:
        return _of_broker(before, after, judged, engine)
    one_round = sent is not None
    # 1.
    started = _started(before, after)
    if owners(started) == found and event.startswith("back: "):
        return judged(after.assignor)
    # 2.
    first: Owners | None = None
    tried = list(possible_dialects(started))
    for name in tried:
        end = _end(started, name, engine, one_round)
        if end == found:
            return judged(name)
        first = first or end
    # 3.
    for name in tried:
        with suppress(GroupError):  # raised by an assignor without an answer
            if sent is not None and owners_in(assign(sent, name, engine=engine)) == found:
                return judged(name, _not_as_owned(started, sent), first)
    for cause, changed, name in _causes(before, started, tried, {topic for topic, _ in found}):
        if _end(changed, name, engine, one_round) == found:
            return judged(name, cause, first)
    return judged(None, UNKNOWN, first)


def _of_broker(
    before: GroupSpec, after: GroupSpec, judged: Callable[..., JudgedRebalance], engine: Engine
) -> JudgedRebalance:
    found, back, right = owners(after), _old_ids(before, after), judged(after.assignor)
    if right.event.startswith("back: ") and not right.revoked + right.gained:
        return right
    first: Owners | None = None
    cause = UNKNOWN
    for end in possible_ends(before, after, back, engine):
        if end == found:
            return right
        cause = NOT_ALL_TRIED if end is None else cause
        first = first or end
    shown = max(1, epochs_of_changes(before, after, back))  # 1 if only the target is new
    if before.generation_id is not None and after.generation_id is not None:
        cause = MORE_CHANGED if after.generation_id - before.generation_id > shown else cause
    return judged(None, cause, first)


def _judged(
    before: GroupSpec,
    after: GroupSpec,
    event: str,
    assignor: str | None,
    cause: str | None = None,
    first: Owners | None = None,
) -> JudgedRebalance:
    """Returns the verdict; `first` are the owners at the end of the first plan if it was wrong."""
    place, first = (after.group_id, after.generation_id, event), first or {}
    new_ids = {old: new for new, old in _old_ids(before, after).items()}
    had, has = renamed(owners(before), new_ids), owners(after)
    far = elsewhere(first, has) if cause else 0
    moves = additions(has, had), additions(had, has)
    return JudgedRebalance(*place, assignor, cause, far, len(has.keys() | first.keys()), *moves)


def is_reached(told: RebalancePlan, after: GroupSpec) -> bool:
    """Returns whether the group may by now have gone through all changes of a plan (`told`).

    If it has, it has as many members as at the end of the plan, the partition counts that the plan
    sets, and, if it is broker-assigned, the plan's epoch or a later one.
    """
    end, counts = told.final, partition_or_task_counts(after)
    resized = partition_or_task_counts(told.group).items() ^ partition_or_task_counts(end).items()
    if any(counts.get(name) != partition_or_task_counts(end).get(name) for name, _ in resized):
        return False
    if len(end.members) != len(after.members):
        return False
    by_broker = end.assignor in SERVER_SIDE and after.assignor in SERVER_SIDE
    return not by_broker or (after.generation_id or 0) >= (end.generation_id or 0)


def distance(told: RebalancePlan, after: GroupSpec) -> int:
    """Returns how many partitions have another owner in `after` than at the end of the plan.

    The plan's new members are matched with the group's new members, in the order of both lists.
    """
    known = {member.member_id for member in told.group.members}
    there = {member.member_id for member in after.members}
    joined = [one.member_id for one in after.members if one.member_id not in known]
    made_up = [one.member_id for one in told.final.members if one.member_id not in there]
    names = dict(zip(made_up, joined, strict=False))
    return elsewhere(renamed(owners(told.final), names), owners(after))


# 1.
def _old_ids(before: GroupSpec, after: GroupSpec) -> dict[str, str]:
    """Returns new id -> old id, for static members that came back."""
    ids = {m.group_instance_id: m.member_id for m in before.members if m.group_instance_id}
    there = {member.member_id for member in before.members}
    return {
        m.member_id: ids[m.group_instance_id]
        for m in after.members
        if m.member_id not in there and m.group_instance_id in ids
    }


def _without_owners(group: GroupSpec) -> GroupSpec:
    """Returns a group whose members own nothing, and cannot come back as static members."""
    members = (replace(one.owning(), group_instance_id=None) for one in group.members)
    return group.edited(members=tuple(members))


def _started(before: GroupSpec, after: GroupSpec) -> GroupSpec:
    back, owned = _old_ids(before, after), {m.member_id: m for m in before.members}
    members = []
    for member in after.members:
        then = owned.get(back.get(member.member_id, member.member_id))
        claims = ((), None) if then is None else (then.owned_partitions, then.generation_id)
        members.append(member.owning(*claims))
    new_ids = {old: new for new, old in back.items()}
    # When a member has left, the second state's subscriptions seldom show the rebalance protocol:
    # it is then that of the first state.
    protocol = before.rebalance_protocol if after.assignor == before.assignor else None
    started = after.edited(members=tuple(members))
    return replace(
        started,
        generation_id=before.generation_id,
        leader_library=before.leader_library,
        leader=after.leader or new_ids.get(before.leader or "", before.leader),
        rebalance_protocol=after.rebalance_protocol or protocol,
        max_partitions=started.limit,
    )


def _event(before: GroupSpec, after: GroupSpec, was_empty: bool) -> str:
    parts = differences(before, after, was_empty=was_empty)
    texts = [f"{what}: {', '.join(names)}" for what, names in parts.items() if names]
    return "; ".join(texts) or NO_CHANGE


def differences(
    before: GroupSpec, after: GroupSpec, *, was_empty: bool = False
) -> dict[str, list[str]]:
    """Returns kind of difference -> the member ids, topics or values that differ, if any."""
    back = _old_ids(before, after)
    old = {} if was_empty else {member.member_id: member for member in before.members}
    new = {back.get(one.member_id, one.member_id): one for one in after.members}
    counts, then = partition_or_task_counts(after), partition_or_task_counts(before)
    standby, stood = after.num_standby_replicas or 0, before.num_standby_replicas or 0
    stayed = [(m, old[id_]) for id_, m in new.items() if id_ in old]
    was, now = before.assignor, after.assignor
    is_switched = was is not None and now is not None and was != now
    return {
        "joined": [new[one].member_id for one in new if one not in old],
        "left": [one for one in old if one not in new],
        "subscribed anew": [m.member_id for m, one in stayed if {*m.topics} != {*one.topics}],
        "partitions": [
            f"{name} {then[name]} -> {count}"
            for name, count in counts.items()
            if name in then and then[name] != count
        ],
        "created": sorted((counts.keys() - then.keys()) & read_topics(before)),
        "deleted": sorted((then.keys() - counts.keys()) & read_topics(after)),
        "standby replicas": [f"{stood} -> {standby}"] if standby != stood else [],
        "back": list(back),
        "assignor": [f"{was} -> {now}"] if is_switched else [],
    }


# 2.
def _end(group: GroupSpec, assignor: str, engine: Engine, one_round: bool) -> Owners | None:
    try:
        planned = plan(group, assignor, (), engine=engine)
    except GroupError:
        return None
    return owners_in(planned.rounds[0].assignment if one_round else planned.after)


# 3.
def _not_as_owned(started: GroupSpec, sent: GroupSpec) -> str:
    had = {member.member_id: set(member.owned_partitions) for member in started.members}
    others = [m for m in sent.members if set(m.owned_partitions) != had[m.member_id]]
    if not others:
        return "members sent other generations"
    names = ", ".join(member.member_id for member in others)
    if is_cooperative(started.assignor) and not any(one.owned_partitions for one in others):
        return f"{EAGER_MEMBERS}: {names}"
    return f"members sent other claims: {names}"


def _causes(
    before: GroupSpec, started: GroupSpec, tried: list[str], given: set[str]
) -> Iterator[tuple[str, GroupSpec, str]]:
    then = {topic.name: topic for topic in before.topics}
    older = tuple(then.get(topic.name, topic) for topic in started.topics)
    assigned = tuple(topic for topic in started.topics if topic.name in given)
    for name in tried:
        if len(assigned) < len(started.topics):
            yield NO_TOPIC, started.edited(topics=assigned), name
        if partition_or_task_counts(before) != partition_or_task_counts(started):
            yield OLD_COUNTS, started.edited(topics=older), name
        for cause, change in _CHANGES.items():
            text = EAGER_MEMBERS if cause is _NO_CLAIMS and is_cooperative(name) else cause
            yield text, change(started), name
    for prefix in _PREFIXES:
        name = f"{prefix}{started.assignor}"
        if name not in tried and is_known(name):
            yield f"a member with {name} led", started, name


def _each(**fields: Any) -> Callable[[GroupSpec], GroupSpec]:
    return lambda group: group.edited(
        members=tuple(replace(member, **fields) for member in group.members)
    )


_NO_CLAIMS = "no member sent what it owned"
_CHANGES: Mapping[str, Callable[[GroupSpec], GroupSpec]] = {
    "the leader ignored racks": lambda group: group.edited(
        topics=tuple(replace(topic, racks=None) for topic in group.topics)
    ),
    "no member sent a generation": _each(generation_id=None),
    _NO_CLAIMS: _each(owned_partitions=(), generation_id=None),
    "the leader ignored instance ids": _each(group_instance_id=None),
}
