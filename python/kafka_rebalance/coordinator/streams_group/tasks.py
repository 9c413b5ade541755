# SPDX-License-Identifier: Apache-2.0
"""The tasks of members in their three roles; a task is a subtopology's id and a partition.

    active    processes records
    standby   keeps a copy of the state
    warmup    copies the state in order to become active; Kafka 4.4 assigns none

Source   TasksTuple, TasksTupleWithEpochs (Kafka 4.4.0).
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafka_rebalance.java.order import name_key
from kafka_rebalance.wire.streams_groups import SubtopologyTasks, TaskList

Task = tuple[str, int]
NO_TASKS = frozenset[Task]()


class GroupTasks(NamedTuple):
    """Tasks that a member has according to its request, or will have according to its target."""

    active: frozenset[Task] = NO_TASKS
    standby: frozenset[Task] = NO_TASKS
    warmup: frozenset[Task] = NO_TASKS


class MemberTasks(NamedTuple):
    """Tasks of a member; each active task with the assignment epoch in which the member got it."""

    active: Mapping[Task, int] = {}
    standby: frozenset[Task] = NO_TASKS
    warmup: frozenset[Task] = NO_TASKS

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)

    def without_epochs(self) -> GroupTasks:
        return GroupTasks(frozenset(self.active), self.standby, self.warmup)


NOTHING = GroupTasks()
NOTHING_ASSIGNED = MemberTasks()


def has_one_of(owned: GroupTasks, tasks: MemberTasks) -> bool:
    """Returns whether `owned` has one of the tasks, in the same role."""
    return not (
        owned.active.isdisjoint(tasks.active)
        and owned.standby.isdisjoint(tasks.standby)
        and owned.warmup.isdisjoint(tasks.warmup)
    )


def task_set(listed: TaskList) -> frozenset[Task]:
    return frozenset((one.subtopology_id, number) for one in listed for number in one.partitions)


def task_list(tasks: Iterable[Task]) -> TaskList:
    """Returns tasks by subtopology, in the order of records: by the id's UTF-16 units, sorted."""
    found: dict[str, list[int]] = {}
    for subtopology_id, partition in sorted(tasks, key=lambda task: (name_key(task[0]), task[1])):
        found.setdefault(subtopology_id, []).append(partition)
    return tuple(SubtopologyTasks(name, tuple(numbers)) for name, numbers in found.items())
