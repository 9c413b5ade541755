# SPDX-License-Identifier: Apache-2.0
"""Events, the parts of every change: an event edits a group."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import NamedTuple

from kafka_rebalance.assignors.registry import SERVER_SIDE
from kafka_rebalance.errors import GroupError, NotAffected
from kafka_rebalance.group.model import Member, Topic, TopicPartition, quoted
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.java.order import name_key
from kafka_rebalance.plans.clients import AIOKAFKA, KAFKA_PYTHON, clients_for

from .made_up import Basis, MadeUp, prefix_of
from .short_names import is_short_name, own_short_name


class Edited(NamedTuple):
    """A group after an event.

    `renamed`      new id -> old id, for each member that came back.
    `rebalances`   is False if the event starts no rebalance, as when a static member restarts.
    `starts_over`  is True for a change of assignor in which all members revoke all partitions and
                   claim none.
    `waiting`      are partitions of members that are down, but whose sessions have not ended.
    `leaderless`   are assigned partitions that no member can read, because no broker leads them.
    `eager`        are the eager classic members of a broker-assigned group.
    `forgets`      are eager members that revoke all partitions, and claim none.
    `held`         are the partitions that members hold when the rebalance begins, if `group` lacks
                   the partitions of a member that came back; None otherwise.
    """

    group: GroupSpec
    renamed: dict[str, str] = {}  # noqa: RUF012 -- never written to
    rebalances: bool = True
    starts_over: bool = False
    waiting: tuple[TopicPartition, ...] = ()
    leaderless: tuple[TopicPartition, ...] = ()
    eager: frozenset[str] = frozenset()
    forgets: frozenset[str] = frozenset()
    held: Assignment | None = None


class GroupEvent(NamedTuple):
    """One event: its cause in words, and a function that returns the edited group."""

    cause: str
    edit: Callable[[GroupSpec, MadeUp], Edited]


AS_IT_IS = GroupEvent("a rebalance without a change", lambda group, _: Edited(group))
"""The only event of a plan without changes: the group rebalances, but nothing is edited."""


def find_member(group: GroupSpec, name: str) -> Member:
    """Returns the member with this member_id, group_instance_id or shortened member_id.

    Errors   NotAffected if there is none; GroupError if several members have this shortened id.
    """
    for field in ("member_id", "group_instance_id"):
        for member in group.members:
            if getattr(member, field) == name:
                return member
    short = [
        member
        for member in group.members
        if is_short_name(name, member.member_id)
        or name == own_short_name(member.client_id, member.member_id)
    ]
    if len(short) > 1:
        raise error(f"{quoted(name)} is short for {len(short)} members; give a whole member_id")
    if short:
        return short[0]
    problem = f"no member has the member_id or group_instance_id {quoted(name)}"
    raise NotAffected("change", problem)


def find_topic(group: GroupSpec, name: str) -> Topic:
    for topic in group.topics:
        if topic.name == name:
            return topic
    raise NotAffected("change", f"the group has no topic {quoted(name)}")


def without(group: GroupSpec, gone: set[str]) -> GroupSpec:
    return group.edited(members=tuple(m for m in group.members if m.member_id not in gone))


def restarted(
    member: Member, ids: MadeUp, there: Iterable[Member], *, is_bare: bool = False
) -> Member:
    """Returns a member after the restart of its process: it has a new id and owns nothing.

    No member of `there` has the new id. With `is_bare`, the id is only a UUID (`made_up.py`).
    """
    taken = {one.member_id for one in there}
    name = member.group_instance_id or prefix_of(member.client_id, member.member_id)
    is_static = member.group_instance_id is not None
    made = ids.newcomer(name, Basis.KNOWN, taken, is_static=is_static, is_bare=is_bare)
    return replace(member.owning(), member_id=made.member_id)


def held_by(group: GroupSpec, members: set[str]) -> tuple[TopicPartition, ...]:
    """Returns the existing partitions that these members claim, each of them once."""
    counts = group.partition_counts()
    held = dict.fromkeys(
        tp
        for member in group.members
        if member.member_id in members
        for tp in member.owned_partitions
        if tp.partition < counts.get(tp.topic, 0)
    )
    return tuple(held)


def check_limit(group: GroupSpec, more: int) -> None:
    """Raises a GroupError if `more` new partitions would exceed the group's limit."""
    total = sum(topic.partitions for topic in group.topics) + more
    if total > group.limit:
        raise error(f"{total} partitions in all, more than the limit of {group.limit}")


def error(problem: str) -> GroupError:
    return GroupError("change", problem)


# The order of topics ------------------------------------------------------------------------------

_COMPARE_LISTS = ("kafka-python/sticky", "aiokafka/sticky")
"""The assignors whose answers depend on the order of topics in a subscription."""


def newly_listed(group: GroupSpec, ids: MadeUp, who: Collection[str] | None = None) -> GroupSpec:
    """Returns the group after the members `who` (None: all) list their topics for the first time.

    kafka-python and aiokafka send topics in the order of a Python set, which differs from process
    to process. Only the sticky classes of both libraries compare the members' *lists*, so only
    their answers depend on this order: a plan uses the order in the group's line or in the change,
    and each draw (a play with other ids) has its own (`MadeUp.listed`). Members of a group whose
    broker assigns send sorted topics. These classes run in Python only: there is no mirror in Rust.

    Source   kafka-python 3.0.12, aiokafka 0.14.0 (SubscriptionState; _are_subscriptions_identical
             of the sticky class). Java uses a TreeSet; librdkafka and kafka-python's
             cooperative-sticky sort.
    """
    new = {member.member_id for member in group.members} if who is None else who
    changed: dict[str, Member] = {}
    if group.assignor in SERVER_SIDE:
        for member in group.members:
            if member.member_id in new:
                by_name = tuple(sorted(member.topics, key=name_key))
                changed[member.member_id] = replace(member, topics=by_name)
    elif group.assignor in _COMPARE_LISTS:
        listed = [member for member in group.members if member.member_id not in new]
        for member in group.members:
            topics = tuple(dict.fromkeys(member.topics))
            if member.member_id not in new or len(topics) < 2 or not _lists_a_set(member, group):
                continue
            same = (other.topics for other in listed if {*other.topics} == {*topics})
            alike = tuple(dict.fromkeys(next(same, topics)))
            one = replace(member, topics=ids.listed(member.member_id, topics, alike))
            changed[member.member_id] = one
            listed.append(one)
    if not changed:
        return group
    return group.edited(members=tuple(changed.get(m.member_id, m) for m in group.members))


def _lists_a_set(member: Member, group: GroupSpec) -> bool:
    """Returns whether the member may run a Python library's own class; these do not sort topics."""
    if member.client_library in ("java", "librdkafka"):
        return False
    return not {KAFKA_PYTHON, AIOKAFKA}.isdisjoint(clients_for(member, group.group_id))
