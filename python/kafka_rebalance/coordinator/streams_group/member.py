# SPDX-License-Identifier: Apache-2.0
"""A member of a streams group, as the broker keeps it; an update makes a new member.

A task is a subtopology's id and a partition. An active task processes records, a standby task keeps
a copy of the state, a warm-up copies the state in order to become active.

Source   StreamsGroupMember.java, MemberState.java, TasksTuple, TasksTupleWithEpochs (Kafka 4.4.0).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from kafka_rebalance.java.order import name_key
from kafka_rebalance.wire.broker_records import Role
from kafka_rebalance.wire.streams_groups import SubtopologyTasks, TaskList
from kafka_rebalance.wire.streams_topology import UserEndpoint

from ..broker_assigned.group import AssignedMember

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


def task_set(listed: TaskList | Role) -> frozenset[Task]:
    return frozenset((one.subtopology_id, number) for one in listed for number in one.partitions)


def task_list(tasks: Iterable[Task]) -> TaskList:
    """Returns tasks by subtopology, in the order of records: by the id's UTF-16 units, sorted."""
    found: dict[str, list[int]] = {}
    for subtopology_id, partition in sorted(tasks, key=lambda task: (name_key(task[0]), task[1])):
        found.setdefault(subtopology_id, []).append(partition)
    return tuple(SubtopologyTasks(name, tuple(numbers)) for name, numbers in found.items())


NO_TOPOLOGY_EPOCH = -1


class TasksState(IntEnum):
    """The state of a member's reconciliation, with its number in records."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3
    UNKNOWN = 127

    @classmethod
    def _missing_(cls, value: object) -> "TasksState":
        """Returns the state of a number that only other versions know."""
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class StreamsGroupMember(AssignedMember):
    """A member; all members of one process have its `process_id`."""

    previous_member_epoch: int = 0
    state: TasksState = TasksState.STABLE
    topology_epoch: int = NO_TOPOLOGY_EPOCH
    process_id: str = ""
    user_endpoint: UserEndpoint | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    assigned: MemberTasks = NOTHING_ASSIGNED
    pending_revocation: MemberTasks = NOTHING_ASSIGNED

    @property
    def is_revoking(self) -> bool:
        return self.state is TasksState.UNREVOKED_TASKS

    def is_assigned_alike(self, other: "StreamsGroupMember") -> bool:
        """Returns whether no field has changed on which the assignment of tasks may depend."""
        return (self.topology_epoch, self.rack_id, self.client_tags, self.process_id) == (
            other.topology_epoch,
            other.rack_id,
            other.client_tags,
            other.process_id,
        )
