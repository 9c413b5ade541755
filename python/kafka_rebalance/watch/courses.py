# SPDX-License-Identifier: Apache-2.0
"""Finds how a broker-assigned group can have come from one state to the next.

    possible_ends: two states -> Owners for each course (order) of events

A change edits a `BrokerState`: a member leaves, a setting or a topic changes, a member subscribes
to other topics, or a member joins. Each change between the two states has an epoch of its own, and
in most cases a target of its own (`plans/broker_rounds.py`). Two states show neither the order of
the changes, nor which of them had happened when a target was computed. (At most one target is
computed in an assignment interval; after a member leaves, none until the next heartbeat of another
member.) These courses are tried:

1. The changes in each order, in parts of one or several changes that happen together; the broker
   computes a target after each part. In the first course, each change is a part of its own, in the
   order above; for a single change, this course is its plan.
2. In a part with several members that join, one target covers all of them, or each gets a target in
   turn.
3. If there is no change, one course: the broker computes a target again.
4. In a streams group, members may not have reached a target when the next one is computed
   (`present_tasks`).

A group without members has no target, so the last member leaves in the same part as a join.

Members that stay have the instance id, rack and process id of the second state from the beginning.
A topic that the second state lacks was deleted if a member still subscribes to it; a topic that the
first state lacks was created if a member of the first state subscribed to it. Any other topic
exists from the beginning, because a state contains only topics that members read or own.

While there are more than `_MOST` changes, all changes of the next kind become one change, in the
order above. Members that join in such a change do so in the order of the second state.

Source   streams/CurrentAssignmentBuilder (Kafka 4.4.0); `coordinator/streams_group` implements all
         of it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import reduce
from itertools import chain, combinations, islice
from typing import Any, NamedTuple

from kafka_rebalance.assignors.registry import Engine
from kafka_rebalance.assignors.share import simple
from kafka_rebalance.errors import AssignorThrows
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import Member, StreamsMember, Subtopology, Topic, TopicPartition
from kafka_rebalance.group.spec import GroupSpec, partition_or_task_counts
from kafka_rebalance.plans.broker_rounds import play_by_broker, with_one_target

from .owners import Owners, owners

_LEAST_ENDS, _MOST_WORK = 20, 100_000
"""At most _MOST_WORK / (members + partitions) courses are tried, but at least _LEAST_ENDS."""

_MOST_APART = {2: 6, 3: 3}
"""Number of changes -> the most members of which `present_tasks` tries every subset."""

_MOST = 4
"""If there are more changes, those of one kind become one. 4 changes, of which several may happen
at once, can happen in 75 ways.
"""

_MOST_SIZES = 8
"""If a topic grew: the largest number of partition counts to try between the old and the new."""


class BrokerState(NamedTuple):
    """The fields of a group that a change edits; a member that just joined has no generation."""

    members: tuple[Member, ...]
    topics: tuple[Topic, ...]
    subtopologies: tuple[Subtopology, ...] | None
    num_standby_replicas: int | None
    assignor: str | None


_SETTINGS = ("subtopologies", "num_standby_replicas", "assignor")

Edit = Callable[[BrokerState], BrokerState]


def possible_ends(
    before: GroupSpec, after: GroupSpec, back: Mapping[str, str], engine: Engine
) -> Iterator[Owners | None]:
    """Yields the owners at the end of each course; then None if not all courses were tried.

    `back` maps the new id of each static member that came back to its old id. Errors: as in
    `assign`.
    """
    size = len(after.members) + sum(partition_or_task_counts(after).values())
    every = _every_end(before, after, back, engine)
    yield from islice(every, max(_LEAST_ENDS, _MOST_WORK // size))
    if next(every, None) is not None:
        yield None


def _every_end(
    before: GroupSpec, after: GroupSpec, back: Mapping[str, str], engine: Engine
) -> Iterator[Owners]:
    limit = max(before.limit, after.limit)
    start = replace(after, generation_id=before.generation_id, max_partitions=limit)
    for first, edits in _changes(before, after, back):
        # 3.
        courses = _Courses(start, edits or (lambda state: state,), engine)
        yield from courses.ends(first, frozenset(range(len(courses.edits))))


class _Courses(Frozen):
    """Plays the courses of the `edits`. `seen` holds each pair (changes left, state) so far."""

    start: GroupSpec
    edits: Sequence[Edit]
    engine: Engine
    seen: set[tuple[frozenset[int], BrokerState]] = field(default_factory=set)

    def ends(self, state: BrokerState, left: frozenset[int]) -> Iterator[Owners]:
        """Yields the owners at the end of each course of the changes that are left."""
        if (left, state) in self.seen:
            return
        self.seen.add((left, state))
        # 1.
        sizes = range(1, len(left) + 1)
        parts = chain.from_iterable(combinations(sorted(left), size) for size in sizes)
        for part in parts:
            edited = reduce(lambda found, at: self.edits[at](found), part, state)
            for group in self._played(edited) if edited.members else ():
                if len(part) == len(left):
                    yield owners(group)
                    continue
                # 4.
                apart = _MOST_APART.get(len(self.edits), 0)
                for members in present_tasks(edited.members, group.members, apart):
                    yield from self.ends(edited._replace(members=members), left - {*part})

    def _played(self, state: BrokerState) -> Iterator[GroupSpec]:
        group = replace(self.start, **state._asdict(), max_partitions=self.start.limit)
        try:
            yield play_by_broker(group, eager=(), engine=self.engine).group
            # 2.
            if sum(member.generation_id is None for member in group.members) > 1:
                yield with_one_target(group, self.engine)
        except AssignorThrows:
            if len(self.edits) == 1:
                raise  # else a larger part plays this: the broker has no new target so far


def present_tasks(
    before: Sequence[Member], target: tuple[Member, ...], apart: int
) -> Iterator[tuple[Member, ...]]:
    """Yields the members with their present tasks, once for each combination that is possible.

    The assignor sees the tasks that members have at present. A member gives up tasks at its next
    heartbeat, and gets new ones at a later heartbeat, when nobody else runs them. So between two
    targets, a member has its old tasks; or it has given up the tasks that it must give up; or, if
    there are none, it has received the tasks that nobody else runs. If at most `apart` members can
    have changed their tasks, each subset of them is tried; if more can, only all of them and none.
    In groups of other kinds, members have only their target.
    """
    yield target
    then = {one.member_id: one.streams for one in before if one.generation_id is not None}
    if target[0].streams is None:
        return
    held = {task for streams in then.values() if streams for task in streams.active_tasks}
    unmoved = [
        replace(one, streams=then.get(one.member_id) or _free(one.streams, held)) for one in target
    ]
    moved = [
        replace(one, streams=_revoked(was.streams, one.streams, held))
        for one, was in zip(target, unmoved, strict=True)
    ]
    differ = [at for at, one in enumerate(moved) if one != unmoved[at]]
    sizes = range(len(differ) + 1) if len(differ) <= apart else (0, len(differ))
    for size in sizes:
        for part in combinations(differ, size):
            yield tuple(moved[at] if at in part else one for at, one in enumerate(unmoved))


def _free(target: StreamsMember | None, held: Collection[TopicPartition]) -> StreamsMember | None:
    """Returns the target without the active tasks in `held`, which members still run."""
    if target is None:
        return None
    active = tuple(task for task in target.active_tasks if task not in held)
    return replace(target, active_tasks=active)


def _revoked(
    was: StreamsMember | None, target: StreamsMember | None, held: Collection[TopicPartition]
) -> StreamsMember | None:
    """Returns the kept tasks if any must be given up, else the kept and the target's free tasks."""
    if was is None or target is None:
        return target
    kept = tuple(task for task in was.active_tasks if task in target.active_tasks)
    standby = tuple(task for task in was.standby_tasks if task in target.standby_tasks)
    if len(kept) < len(was.active_tasks) or len(standby) < len(was.standby_tasks):
        return replace(target, active_tasks=kept, standby_tasks=standby)
    free = tuple(task for task in target.active_tasks if task in kept or task not in held)
    return replace(target, active_tasks=free)


# Changes between two states -----------------------------------------------------------------------


def epochs_of_changes(before: GroupSpec, after: GroupSpec, back: Mapping[str, str]) -> int:
    """Returns how many epochs the changes make, if each change has an epoch of its own.

    The new partitions of a share group make two epochs: one when the broker finds them, one when
    they are initialised.
    """
    again = _new_or_grown(before, after) if after.assignor == simple.NAME else ()
    return sum(map(len, (*_kinds(before, after, back), again)))


def _changes(
    before: GroupSpec, after: GroupSpec, back: Mapping[str, str]
) -> Iterator[tuple[BrokerState, tuple[Edit, ...]]]:
    """Yields the state before all changes, and the changes. If these are fewer than `_MOST`, both
    follow again for each partition count that a topic may have had in between, with the growth to
    that count as the first change.
    """
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
    edits = tuple(_few(_kinds(before, after, back)))
    yield first, edits
    if len(edits) < _MOST:
        for topic in _between(before, after):
            yield first, (_put(topic), *edits)


def _kinds(before: GroupSpec, after: GroupSpec, back: Mapping[str, str]) -> list[list[Edit]]:
    """Returns the changes as one list for each kind, in the order in which `_few` merges kinds."""
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
    """Returns the changes; while there are more than `_MOST`, all of the next kind become one."""
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
    """Returns the topics to which at least one member subscribes."""
    return {name for member in group.members for name in member.topics}


def _new_or_grown(before: GroupSpec, after: GroupSpec) -> list[Topic]:
    known: dict[str, object] = dict.fromkeys(read_topics(before))  # None: it did not exist
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
    return lambda state: state._replace(
        topics=tuple(topic for topic in state.topics if topic.name != name),
        members=_without(state.members, name),
    )


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
