# SPDX-License-Identifier: Apache-2.0
"""Events, the parts of every change: each turns one group into the next."""

from collections.abc import Callable
from typing import NamedTuple

from kafka_rebalance.errors import GroupError, NotAffected
from kafka_rebalance.group.model import Member, Topic, TopicPartition, quoted
from kafka_rebalance.group.spec import GroupSpec

from .made_up import MadeUp


class Edited(NamedTuple):
    """A group after an event.

    `renamed`     maps new member ids of members that came back to their old ids.
    `rebalances`  False if the event starts no rebalance, because a static member returns in time.
    `starts_over` True for a change of assignor: the members revoke all partitions and forget them.
    `waiting`     partitions that nobody reads until a rebalance begins: their member is down, and
                  its session has not ended.
    `leaderless`  partitions that are assigned but unavailable, because no broker can lead them.
    """

    group: GroupSpec
    renamed: dict[str, str] = {}  # noqa: RUF012 -- never written to
    rebalances: bool = True
    starts_over: bool = False
    waiting: tuple[TopicPartition, ...] = ()
    leaderless: tuple[TopicPartition, ...] = ()


class GroupEvent(NamedTuple):
    """One event: its cause in words, and a function from the group before to the group after."""

    cause: str
    edit: Callable[[GroupSpec, MadeUp], Edited]


AS_IT_IS = GroupEvent("rebalance as it is", lambda group, _: Edited(group))
"""The event of a plan without changes."""


def find_member(group: GroupSpec, name: str) -> Member:
    """Returns the member with this member_id or group_instance_id. Errors: NotAffected."""
    for member in group.members:
        if member.member_id == name:
            return member
    for member in group.members:
        if member.group_instance_id == name:
            return member
    problem = f"no member has the member_id or group_instance_id {quoted(name)}"
    raise NotAffected("change", problem)


def find_topic(group: GroupSpec, name: str) -> Topic:
    for topic in group.topics:
        if topic.name == name:
            return topic
    raise NotAffected("change", f"there is no topic {quoted(name)}")


def without(group: GroupSpec, gone: set[str]) -> GroupSpec:
    return group.edited(members=tuple(m for m in group.members if m.member_id not in gone))


def held_by(group: GroupSpec, members: set[str]) -> tuple[TopicPartition, ...]:
    """Returns the existing partitions that these members claim, each once."""
    counts = group.partition_counts()
    held = dict.fromkeys(
        tp
        for member in group.members
        if member.member_id in members
        for tp in member.owned_partitions
        if tp.partition < counts.get(tp.topic, 0)
    )
    return tuple(held)


def guard(group: GroupSpec, more: int) -> None:
    total = sum(topic.partitions for topic in group.topics) + more
    if total > group.limit:
        raise error(f"{total} partitions in all, more than the limit of {group.limit}")


def error(problem: str) -> GroupError:
    return GroupError("change", problem)
