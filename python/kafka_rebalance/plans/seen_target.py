# SPDX-License-Identifier: Apache-2.0
"""How a group that the broker assigns can have come from one state to the next.

    possible_ends: two states -> Owners, one for each course of events

Each member that joins or leaves has an epoch, and mostly a target, of its own (`broker_rounds.py`).
If more than one did so between the two states, their order is not known. These courses are tried:

1. Members leave; then members join, one after another. For a single change, this is its plan.
2. Members join, one after another; then members leave.
3. Members leave and no target is computed for that; then members join, one after another. If
   nobody stayed, they share one target, as after the initial delay of a streams group.
4. As in 3, but the members that join within the assignment interval share a target.
5. Nobody stayed, and members join, one after another.

In each course, the members that stay have the subscriptions of the second state from the beginning.
A topic that the second state lacks was deleted if a member still subscribes to it. If nobody does,
it is there in each course, because a state has only topics that members read or own.
If more than `_MOST_ORDERED` members join, they are tried in the order of the second state alone.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations

from kafka_rebalance.assignors.registry import Engine
from kafka_rebalance.group.model import Member, Topic
from kafka_rebalance.group.spec import GroupSpec

from .broker_rounds import joined_together, play_by_broker
from .owners import Owners, owners

_MOST_ORDERED = 3


def possible_ends(
    before: GroupSpec, after: GroupSpec, back: Mapping[str, str], engine: Engine
) -> Iterator[Owners]:
    """Yields the owners at the end of each course.

    `back` has new id -> old id of the static members that came back. Errors: those of `assign`.
    """
    there = {back.get(member.member_id, member.member_id): member for member in after.members}
    old = {member.member_id for member in before.members}
    left = old - there.keys()
    topics = (*after.topics, *_unread(before, after))
    names = {topic.name for topic in topics}
    began = [_as_owning(there.get(m.member_id, m), m, names) for m in before.members]
    stayed = [one for one in began if one.member_id not in left]
    joined = [member.owning() for id_, member in there.items() if id_ not in old]

    def group(members: Iterable[Member]) -> GroupSpec:
        start = replace(after, generation_id=before.generation_id, max_partitions=after.limit)
        return start.edited(topics=topics, members=tuple(members))

    def played(members: Iterable[Member]) -> tuple[Member, ...]:
        return play_by_broker(group(members), eager=(), engine=engine).group.members

    for order in _orders(joined):
        if left and stayed:
            at_rest = played(stayed)
            # 1.
            yield owners(group(played([*at_rest, *order]) if order else at_rest))
            # 2.
            if order:
                remain = [one for one in played([*began, *order]) if one.member_id not in left]
                yield owners(group(played(remain)))
        # 3.
        yield owners(group(played([*stayed, *order])))
        # 4.
        if len(order) > 1:
            yield owners(joined_together(group([*stayed, *order]), engine))
        # 5.
        if len(order) > 1 and not stayed:
            yield owners(group(played([*played(order[:1]), *order[1:]])))


def _orders(joined: Sequence[Member]) -> Iterable[Sequence[Member]]:
    return permutations(joined) if len(joined) <= _MOST_ORDERED else [joined]


def _unread(before: GroupSpec, after: GroupSpec) -> Iterator[Topic]:
    """Yields the topics of the first state that the second one lacks because nobody reads them."""
    there = {topic.name for topic in after.topics}
    read = {name for member in after.members for name in member.topics}
    yield from (topic for topic in before.topics if topic.name not in there | read)


def _as_owning(member: Member, then: Member, topics: Collection[str]) -> Member:
    """Returns a member of the second state with the partitions or tasks of the first one."""
    return replace(
        member,
        owned_partitions=tuple(tp for tp in then.owned_partitions if tp.topic in topics),
        generation_id=then.generation_id,
        streams=then.streams,
    )
