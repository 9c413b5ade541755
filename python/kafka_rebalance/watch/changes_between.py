# SPDX-License-Identifier: Apache-2.0
"""Finds the single changes between two states of a broker-assigned group.

    changes_between: two states -> the first state to play from, and its changes

A change edits a `BrokerState`: a member leaves, a setting or a topic changes, a member subscribes
to other topics, or a member joins. Each change may have had an epoch and a target of its own.

Members that stay have the instance id, rack and process id of the second state from the beginning.
A topic that the second state lacks was deleted if a member still subscribes to it; a topic that the
first state lacks was created if a member of the first state subscribed to it. Any other topic
exists from the beginning, because a state contains only topics that members read or own.

If there are more than `_MOST` changes, all changes of one kind become one change. The members that
leave do so together, then all topics change together, then all subscriptions; last, members join
one after another, in the order of the second state.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple

from kafka_rebalance.assignors.share import simple
from kafka_rebalance.group.model import Member, Subtopology, Topic
from kafka_rebalance.group.spec import GroupSpec

_MOST = 4
"""The largest number of changes that are tried in every order. 4 changes, of which several may
happen at once, can happen in 75 ways.
"""

_MOST_SIZES = 8
"""If a topic grew, at most this many partition counts between the old and the new one are tried."""


class BrokerState(NamedTuple):
    """The fields of a group that changes edit; a member that has just joined has no generation."""

    members: tuple[Member, ...]
    topics: tuple[Topic, ...]
    subtopologies: tuple[Subtopology, ...] | None
    num_standby_replicas: int | None
    assignor: str | None


_SETTINGS = ("subtopologies", "num_standby_replicas", "assignor")

Edit = Callable[[BrokerState], BrokerState]


class Changes(NamedTuple):
    """The state before all changes (`first`), and the changes (`edits`)."""

    first: BrokerState
    edits: tuple[Edit, ...]


def changes_between(
    before: GroupSpec, after: GroupSpec, back: Mapping[str, str]
) -> Iterator[Changes]:
    """Yields the changes; then, for each partition count that a topic may have had in between, the
    changes again, with the topic's growth to that count as the first change.

    `back` maps the new id of each static member that came back to its old id.
    """
    first, edits = _changes(before, after, back)
    yield Changes(first, edits)
    if len(edits) < _MOST:
        for topic in _between(before, after):
            yield Changes(first, (_put(topic), *edits))


def epochs_of_changes(before: GroupSpec, after: GroupSpec, back: Mapping[str, str]) -> int:
    """Returns how many epochs the changes cause, if each change has an epoch of its own.

    The new partitions of a share group cause two epochs: one when the broker finds them, one when
    they are initialised.
    """
    again = _new_or_grown(before, after) if after.assignor == simple.NAME else ()
    return sum(map(len, (*_kinds(before, after, back), again)))


def _changes(before: GroupSpec, after: GroupSpec, back: Mapping[str, str]) -> Changes:
    now = {back.get(one.member_id, one.member_id): one for one in after.members}
    members = (
        replace(
            now.get(then.member_id, then),
            topics=then.topics,
            owned_partitions=then.owned_partitions,
            generation_id=then.generation_id,
            streams=then.streams,
        )
        for then in before.members
    )
    changed = {topic.name for topic in _new_or_grown(before, after)}
    topics = {topic.name: topic for topic in before.topics}
    topics |= {topic.name: topic for topic in after.topics if topic.name not in changed}
    settings = (getattr(before, name) for name in _SETTINGS)
    first = BrokerState(tuple(members), tuple(topics.values()), *settings)
    return Changes(first, tuple(_few(_kinds(before, after, back))))


def _kinds(before: GroupSpec, after: GroupSpec, back: Mapping[str, str]) -> list[list[Edit]]:
    """Returns the changes of each kind, in the order in which they are combined."""
    now = {back.get(one.member_id, one.member_id): one for one in after.members}
    then = {one.member_id: one for one in before.members}
    stayed = [(then[id_], one) for id_, one in now.items() if id_ in then]
    settings = [(name, getattr(after, name)) for name in _SETTINGS]
    lost = read_topics(after) - {topic.name for topic in after.topics}
    return [
        [_leaves(id_) for id_ in then if id_ not in now],
        [_set(name, value) for name, value in settings if getattr(before, name) != value],
        [_deleted(topic.name) for topic in before.topics if topic.name in lost],
        [_put(topic) for topic in _new_or_grown(before, after)],
        [_subscribes(m.member_id, m.topics) for old, m in stayed if {*m.topics} != {*old.topics}],
        [_joins(member) for id_, member in now.items() if id_ not in then],
    ]


def _few(kinds: Sequence[list[Edit]]) -> list[Edit]:
    """Returns the changes; while there are more than `_MOST`, those of the next kind become one."""
    few = list(kinds)
    for at, edits in enumerate(few):
        if sum(map(len, few)) > _MOST and len(edits) > 1:
            few[at] = [_together(edits)]
    return [edit for edits in few for edit in edits]


def _together(edits: Sequence[Edit]) -> Edit:
    return lambda state: reduce(lambda found, edit: edit(found), edits, state)


# Members and settings -----------------------------------------------------------------------------


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


def _set(name: str, value: Any) -> Edit:
    return lambda state: state._replace(**{name: value})


# Topics -------------------------------------------------------------------------------------------


def read_topics(group: GroupSpec) -> set[str]:
    """Returns the topics to which a member subscribes."""
    return {name for member in group.members for name in member.topics}


def _new_or_grown(before: GroupSpec, after: GroupSpec) -> list[Topic]:
    known: dict[str, object] = dict.fromkeys(read_topics(before))  # None: the topic did not exist
    known |= {topic.name: (topic.partitions, topic.topic_id) for topic in before.topics}
    return [
        topic
        for topic in after.topics
        if topic.name in known and known[topic.name] != (topic.partitions, topic.topic_id)
    ]


def _between(before: GroupSpec, after: GroupSpec) -> Iterator[Topic]:
    """Yields each topic that grew, with each partition count that it may have had in between."""
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


def _deleted(name: str) -> Edit:
    def edit(state: BrokerState) -> BrokerState:
        kept = tuple(topic for topic in state.topics if topic.name != name)
        return state._replace(topics=kept, members=_without(state.members, name))

    return edit


def _put(topic: Topic) -> Edit:
    """Returns the change that creates a topic, gives it another id, or adds partitions to it.

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
