# SPDX-License-Identifier: Apache-2.0
"""Finds the tasks that members of a streams group can have when the next target is computed.

    present_tasks: members before a target, the same with it -> the members, in each way

The assignor sees the tasks that members have at present, not their targets. A member gives up tasks
at its next heartbeat, and gets new tasks at a later heartbeat, when nobody else runs them. So
between two targets, a member

    has reached its target           if all members have
    has its old tasks                if it has sent no heartbeat since
    has given up what it must        else: it gets nothing more, or only what is free

If up to `apart` members can differ in this, each set of them is tried; of more members, all or
none.

Source   streams/CurrentAssignmentBuilder (Kafka 4.4.0); `coordinator/streams_group` implements all
         of it.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from kafka_rebalance.group.model import Member, StreamsMember, TopicPartition


def present_tasks(
    before: Sequence[Member], target: tuple[Member, ...], apart: int
) -> Iterator[tuple[Member, ...]]:
    """Yields the members with the tasks on which the next target depends.

    Members of groups without tasks have only their target.
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
    """Returns the target without the active tasks that members still run."""
    if target is None:
        return None
    active = tuple(task for task in target.active_tasks if task not in held)
    return replace(target, active_tasks=active)


def _revoked(
    was: StreamsMember | None, target: StreamsMember | None, held: Collection[TopicPartition]
) -> StreamsMember | None:
    """Returns the tasks of a member that has given up what it must, and gets only free tasks."""
    if was is None or target is None:
        return target
    kept, standby = (
        tuple(task for task in had if task in wanted)
        for had, wanted in (
            (was.active_tasks, target.active_tasks),
            (was.standby_tasks, target.standby_tasks),
        )
    )
    if len(kept) < len(was.active_tasks) or len(standby) < len(was.standby_tasks):
        return replace(target, active_tasks=kept, standby_tasks=standby)
    free = tuple(task for task in target.active_tasks if task in kept or task not in held)
    return replace(target, active_tasks=free)
