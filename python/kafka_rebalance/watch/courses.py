# SPDX-License-Identifier: Apache-2.0
"""Finds how a broker-assigned group can have come from one state to the next.

    possible_ends: two states -> Owners for each course (order) of events

Each change between the two states (`changes_between.py`) has an epoch of its own, and in most cases
a target of its own (`plans/broker_rounds.py`). Two states show neither the order of the changes,
nor which of them had happened when a target was computed. (At most one target is computed in an
assignment interval; after a member leaves, none until the next heartbeat of another member.) These
courses are tried:

1. The changes in each order, one or several at once: each such part is followed by a target. In the
   first course, each change is a part, in the order of `changes_between.py`; for a single change,
   this course is its plan.
2. In a part with several members that join, one target covers all of them, or each gets a target in
   turn.
3. If there is no change, one course: the broker computes a target again.
4. In a streams group, members may not have reached a target when the next one is computed
   (`present_tasks`).

A group without members has no target, so the last member leaves in the same part as a join.

Source   streams/CurrentAssignmentBuilder (Kafka 4.4.0); `coordinator/streams_group` implements all
         of it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import reduce
from itertools import combinations

from kafka_rebalance.assignors.registry import Engine
from kafka_rebalance.errors import AssignorThrows
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import Member, StreamsMember, TopicPartition
from kafka_rebalance.group.spec import GroupSpec, partition_or_task_counts
from kafka_rebalance.plans.broker_rounds import play_by_broker, with_one_target

from .changes_between import BrokerState, Edit, changes_between
from .owners import Owners, owners

_LEAST_ENDS, _MOST_WORK = 20, 100_000
"""At most _MOST_WORK / (members + partitions) courses are tried, but at least _LEAST_ENDS."""

_MOST_APART = {2: 6, 3: 3}
"""Number of changes -> the most members of which `present_tasks` tries every subset."""


def possible_ends(
    before: GroupSpec, after: GroupSpec, back: Mapping[str, str], engine: Engine
) -> Iterator[Owners | None]:
    """Yields the owners at the end of each course; then None if not all courses were tried.

    `back` maps the new id of each static member that came back to its old id. Errors: as in
    `assign`.
    """
    size = len(after.members) + sum(partition_or_task_counts(after).values())
    every = _every_end(before, after, back, engine)
    most = max(_LEAST_ENDS, _MOST_WORK // size)
    for tried, end in enumerate(every):
        if tried == most:
            yield None
            return
        yield end


def _every_end(
    before: GroupSpec, after: GroupSpec, back: Mapping[str, str], engine: Engine
) -> Iterator[Owners]:
    limit = max(before.limit, after.limit)
    start = replace(after, generation_id=before.generation_id, max_partitions=limit)
    for first, edits in changes_between(before, after, back):
        # 3.
        courses = _Courses(start, edits or (lambda state: state,), engine)
        yield from courses.ends(first, frozenset(range(len(courses.edits))))


class _Courses(Frozen):
    """Plays the courses of the `edits`. `seen` holds each (changes left, state) that was played."""

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
        for part in _parts(left):
            edited = reduce(lambda found, at: self.edits[at](found), part, state)
            for group in self._played(edited) if edited.members else ():
                if len(part) == len(left):
                    yield owners(group)
                else:
                    yield from self._later(edited, group.members, left - {*part})

    def _later(
        self, state: BrokerState, target: tuple[Member, ...], left: frozenset[int]
    ) -> Iterator[Owners]:
        # 4.
        apart = _MOST_APART.get(len(self.edits), 0)
        for members in present_tasks(state.members, target, apart):
            yield from self.ends(state._replace(members=members), left)

    def _played(self, state: BrokerState) -> Iterator[GroupSpec]:
        group = replace(self.start, **state._asdict(), max_partitions=self.start.limit)
        try:
            yield play_by_broker(group, eager=(), engine=self.engine).group
            # 2.
            if sum(member.generation_id is None for member in group.members) > 1:
                yield with_one_target(group, self.engine)
        except AssignorThrows:
            if len(self.edits) == 1:
                raise  # else the course continues: the broker has no target until the next change


def _parts(left: frozenset[int]) -> Iterator[tuple[int, ...]]:
    """Yields each subset of the changes that are left, the smallest ones first."""
    for size in range(1, len(left) + 1):
        yield from combinations(sorted(left), size)


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
