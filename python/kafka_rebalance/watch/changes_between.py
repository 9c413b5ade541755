# SPDX-License-Identifier: Apache-2.0
"""Finds the single changes between two states of a group that the broker assigns.

    changes_between: two states -> the first state to play from, and its changes

A change edits a `BrokerState`: members leave, the settings or a topic change, a member subscribes
to other topics, a member joins. Each change may have had an epoch and a target of its own.

Members that stay have the instance, the rack and the process of the second state from the
beginning. A topic that the second state lacks was deleted if a member still subscribes to it; a
topic that the first state lacks was created if a member of it subscribed to it. Any other topic
exists from the beginning, because a state contains only topics that members read or own.

If there are more than `_MOST` changes, those of one kind become one change: all members leave
together, then all topics change together, then all subscriptions; at last, members join one after
another, in the order of the second state.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

from kafka_rebalance.assignors.share import simple
from kafka_rebalance.group.model import Member, Subtopology, Topic
from kafka_rebalance.group.spec import GroupSpec

_MOST = 4
"""The most changes that are tried in every order: 75 courses, in which several changes may happen
at once.
"""

_MOST_SIZES = 8
"""If a topic grew, at most this many sizes between the old one and the new one are tried."""


class BrokerState(NamedTuple):
    """The fields of a group that changes edit; a member that has just joined has no generation."""

    members: tuple[Member, ...]
    topics: tuple[Topic, ...]
    subtopologies: tuple[Subtopology, ...] | None
    num_standby_replicas: int | None
    assignor: str | None


Edit = Callable[[BrokerState], BrokerState]


class Changes(NamedTuple):
    """The state before all changes, and the changes."""

    first: BrokerState
    edits: tuple[Edit, ...]


def changes_between(
    before: GroupSpec, after: GroupSpec, back: Mapping[str, str]
) -> Iterator[Changes]:
    """Yields the changes; then again, with one more change, for each size that a topic may have had
    between the two states.

    `back` maps the new id of each static member that came back to its old id.
    """
    first, edits = _changes(before, after, back)
    yield Changes(first, edits)
    if len(edits) < _MOST:
        for topic in _between(before, after):
            yield Changes(first, (_put(topic), *edits))


def epochs_of_changes(before: GroupSpec, after: GroupSpec, back: Mapping[str, str]) -> int:
    """Returns how many epochs the changes make, if each change has an epoch of its own.

    The new partitions of a share group make two epochs: one when the broker finds them, one when
    they are initialised.
    """
    kinds = _kinds(before, after, back)
    again = len(kinds.topics) if after.assignor == simple.NAME else 0
    return sum(map(len, kinds)) + again


class _Kinds(NamedTuple):
    left: list[Edit]
    settings: list[Edit]
    deleted: list[Edit]
    topics: list[Edit]
    subscribed: list[Edit]
    joined: list[Edit]


def _changes(before: GroupSpec, after: GroupSpec, back: Mapping[str, str]) -> Changes:
    now = {back.get(member.member_id, member.member_id): member for member in after.members}
    first = BrokerState(
        tuple(_as_it_began(now.get(m.member_id, m), m) for m in before.members),
        _first_topics(before, after),
        before.subtopologies,
        before.num_standby_replicas,
        before.assignor,
    )
    return Changes(first, tuple(_few(_kinds(before, after, back))))


def _kinds(before: GroupSpec, after: GroupSpec, back: Mapping[str, str]) -> _Kinds:
    now = {back.get(member.member_id, member.member_id): member for member in after.members}
    then = {member.member_id: member for member in before.members}
    stayed = [(then[id_], one) for id_, one in now.items() if id_ in then]
    return _Kinds(
        [_leaves(id_) for id_ in then if id_ not in now],
        _settings(before, after),
        _deletions(before, after),
        [_put(topic) for topic in _new_or_grown(before, after)],
        [_subscribes(m.member_id, m.topics) for old, m in stayed if {*m.topics} != {*old.topics}],
        [_joins(member) for id_, member in now.items() if id_ not in then],
    )


def _few(kinds: Sequence[list[Edit]]) -> list[Edit]:
    """Returns the changes, combined kind by kind until there are at most `_MOST`, if possible."""
    few = list(kinds)
    for at, edits in enumerate(few):
        if sum(map(len, few)) > _MOST and len(edits) > 1:
            few[at] = [_together(edits)]
    return [edit for edits in few for edit in edits]


def _together(edits: Sequence[Edit]) -> Edit:
    return lambda state: reduce(lambda found, edit: edit(found), edits, state)


# Members ------------------------------------------------------------------------------------------


def _as_it_began(member: Member, then: Member) -> Member:
    """Returns `member` of the second state, with topics and partitions as in the first state."""
    return replace(
        member,
        topics=then.topics,
        owned_partitions=then.owned_partitions,
        generation_id=then.generation_id,
        streams=then.streams,
    )


def _leaves(member_id: str) -> Edit:
    return lambda state: state._replace(
        members=tuple(one for one in state.members if one.member_id != member_id)
    )


def _joins(member: Member) -> Edit:
    return lambda state: state._replace(members=(*state.members, member.owning()))


def _subscribes(member_id: str, topics: tuple[str, ...]) -> Edit:
    return lambda state: state._replace(
        members=tuple(
            replace(one, topics=topics) if one.member_id == member_id else one
            for one in state.members
        )
    )


# Topics and settings ------------------------------------------------------------------------------


def _first_topics(before: GroupSpec, after: GroupSpec) -> tuple[Topic, ...]:
    """Returns the topics before the changes; unchanged topics have the racks of the later state."""
    changed = {topic.name for topic in _new_or_grown(before, after)}
    now = {topic.name: topic for topic in after.topics if topic.name not in changed}
    return tuple(({topic.name: topic for topic in before.topics} | now).values())


def _deletions(before: GroupSpec, after: GroupSpec) -> list[Edit]:
    there = {topic.name for topic in after.topics}
    read = read_topics(after)
    return [_deleted(one.name) for one in before.topics if one.name in read - there]


def _new_or_grown(before: GroupSpec, after: GroupSpec) -> list[Topic]:
    then = {topic.name: topic for topic in before.topics}
    read = read_topics(before)
    return [
        topic
        for topic in after.topics
        if (
            (then[topic.name].partitions, then[topic.name].topic_id)
            != (topic.partitions, topic.topic_id)
            if topic.name in then
            else topic.name in read
        )
    ]


def _between(before: GroupSpec, after: GroupSpec) -> Iterator[Topic]:
    """Yields each topic that grew, with each size between old and new: it may grow in two steps."""
    then = {topic.name: topic for topic in before.topics}
    for topic in after.topics:
        old = then.get(topic.name)
        if old is None or old.topic_id != topic.topic_id:
            continue
        for count in range(old.partitions + 1, topic.partitions)[:_MOST_SIZES]:
            racks = None if topic.racks is None else topic.racks[:count]
            known = topic.initialized
            known = None if known is None else tuple(p for p in known if p < count)
            yield replace(topic, partitions=count, racks=racks, initialized=known)


def read_topics(group: GroupSpec) -> set[str]:
    """Returns the topics to which a member subscribes."""
    return {name for member in group.members for name in member.topics}


def _deleted(name: str) -> Edit:
    def edit(state: BrokerState) -> BrokerState:
        kept = tuple(topic for topic in state.topics if topic.name != name)
        return state._replace(topics=kept, members=_without(state.members, name))

    return edit


def _put(topic: Topic) -> Edit:
    """Returns the change that sets a topic: it is new, or has another id or more partitions.

    A topic never shrinks, so a change to fewer partitions than the topic has does nothing.
    """

    def edit(state: BrokerState) -> BrokerState:
        there = {one.name: one for one in state.topics}
        then = there.get(topic.name)
        is_made_again = then is not None and then.topic_id != topic.topic_id
        if then is not None and not is_made_again and then.partitions >= topic.partitions:
            return state
        members = _without(state.members, topic.name) if is_made_again else state.members
        there[topic.name] = topic
        return state._replace(topics=tuple(there.values()), members=members)

    return edit


def _without(members: Iterable[Member], topic: str) -> tuple[Member, ...]:
    return tuple(
        replace(one, owned_partitions=tuple(tp for tp in one.owned_partitions if tp.topic != topic))
        for one in members
    )


def _settings(before: GroupSpec, after: GroupSpec) -> list[Edit]:
    edits: list[Edit] = []
    if before.subtopologies != after.subtopologies:
        edits.append(lambda state: state._replace(subtopologies=after.subtopologies))
    if before.num_standby_replicas != after.num_standby_replicas:
        replicas = after.num_standby_replicas
        edits.append(lambda state: state._replace(num_standby_replicas=replicas))
    if before.assignor != after.assignor:
        edits.append(lambda state: state._replace(assignor=after.assignor))
    return edits
