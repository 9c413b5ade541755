# SPDX-License-Identifier: Apache-2.0
"""A streams group as the broker stores it: epochs, members, targets, and the owners of tasks.

    topology             the application's topology; `validated_topology_epoch` is its epoch if
                         it was ready in the last group epoch, else -1
    assignment_configs   the settings of the last group epoch
    active               task -> process that has it, or still has to revoke it
    standby, warmup      task -> the processes that have it

Records change a group, except for these fields, which no record contains: `unlogged`; `refresh_at`;
`shutdown_member_id`, the first member that asked to shut the application down.

Source   StreamsGroup.java (Kafka 4.4.0); KIP-1071; docs/behaviour/streams-groups.md.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from operator import attrgetter
from typing import ClassVar, NamedTuple

from kafka_rebalance.java.order import name_key
from kafka_rebalance.wire import broker_records as wire
from kafka_rebalance.wire.broker_records import NO_TOPOLOGY, BrokerRecord, Role
from kafka_rebalance.wire.streams_groups import (
    StreamsTopology,
    SubtopologyTasks,
    TaskList,
    UserEndpoint,
)

from ..broker_assigned.group import AssignedMember, StateNumber
from ..broker_assigned.records import RecordedGroup, sorted_pairs
from .topology import ConfiguredTopology, required_topics, sources_by_name

Task = tuple[str, int]
NO_TASKS = frozenset[Task]()


class GroupTasks(NamedTuple):
    """The tasks that a member reports in a request, or those in its target."""

    active: frozenset[Task] = NO_TASKS
    standby: frozenset[Task] = NO_TASKS
    warmup: frozenset[Task] = NO_TASKS


class MemberTasks(NamedTuple):
    """A member's tasks; `active` maps a task to the assignment epoch in which it was assigned."""

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
    """Returns whether `owned` contains one of the tasks, in the same role."""
    return any(not mine.isdisjoint(others) for mine, others in zip(owned, tasks, strict=True))


def task_set(listed: TaskList | Role) -> frozenset[Task]:
    return frozenset((one.subtopology_id, number) for one in listed for number in one.partitions)


def task_list(tasks: Iterable[Task]) -> TaskList:
    """Returns each subtopology's sorted tasks; subtopologies are in order of their UTF-16 units."""
    found: dict[str, list[int]] = {}
    for subtopology_id, partition in sorted(tasks, key=lambda task: (name_key(task[0]), task[1])):
        found.setdefault(subtopology_id, []).append(partition)
    return tuple(SubtopologyTasks(name, tuple(numbers)) for name, numbers in found.items())


class TasksState(StateNumber):
    """Whether a member is STABLE, or waits for its own revocations or for other members' tasks."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3
    UNKNOWN = 127


class StreamsGroupMember(AssignedMember):
    """A member of a streams group; all members of one process have its `process_id`."""

    previous_member_epoch: int = 0
    state: TasksState = TasksState.STABLE
    topology_epoch: int = NO_TOPOLOGY
    process_id: str = ""
    user_endpoint: UserEndpoint | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    assigned: MemberTasks = NOTHING_ASSIGNED
    pending_revocation: MemberTasks = NOTHING_ASSIGNED

    @property
    def is_revoking(self) -> bool:
        return self.state is TasksState.UNREVOKED_TASKS

    def is_assigned_alike(self, other: "StreamsGroupMember") -> bool:
        """Returns whether both members are equal in all fields that affect assignments of tasks."""
        reads = attrgetter("topology_epoch", "rack_id", "client_tags", "process_id")
        return bool(reads(self) == reads(other))


Owners = dict[Task, set[str]]


class RefinedTargets(NamedTuple):
    """The targets of an assignment epoch, as the broker remembers them."""

    epoch: int = -1
    targets: Mapping[str, GroupTasks] = {}


class Unlogged(NamedTuple):
    """Values that no record contains; a failed append restores the earlier values.

    `configured` is the topology with the partition counts of the present topics; `refined` are the
    targets with which members were last reconciled.
    """

    configured: ConfiguredTopology | None = None
    refined: RefinedTargets = RefinedTargets()


_NOTHING_UNLOGGED = Unlogged()


class StreamsGroup(RecordedGroup[StreamsGroupMember, GroupTasks]):
    """A streams group; a method either only reads it, or makes one change.

    `unlogged_before` holds the id of the append that followed the last change to `unlogged`, and
    the value that a failure of this append restores.
    """

    group_type: ClassVar[str] = "streams"
    after: ClassVar[tuple[str, ...]] = ("TOPOLOGY",)
    delays_first_targets: ClassVar[bool] = True
    nested: ClassVar[tuple[str, ...]] = ("standby", "warmup")

    validated_topology_epoch: int = NO_TOPOLOGY
    assignment_configs: Mapping[str, str] = field(default_factory=dict)
    description_epochs: tuple[int, int] = (NO_TOPOLOGY, NO_TOPOLOGY)
    topology: StreamsTopology | None = None
    active: dict[Task, str] = field(default_factory=dict)
    standby: Owners = field(default_factory=dict)
    warmup: Owners = field(default_factory=dict)
    unlogged: Unlogged = _NOTHING_UNLOGGED
    unlogged_before: tuple[int, Unlogged] = (-1, _NOTHING_UNLOGGED)
    shutdown_member_id: str | None = None

    @property
    def is_ready(self) -> bool:
        topology = self.topology
        return topology is not None and topology.epoch == self.validated_topology_epoch

    def is_subscribed(self, topic: str) -> bool:
        """Returns whether members process the topic, so that its offsets are kept."""
        topology = None if self.is_empty else self.topology
        return topology is not None and topic in sources_by_name(topology)

    def reads(self, topic: str) -> bool:
        return self.topology is not None and topic in required_topics(self.topology)

    def _replaced(self, old: StreamsGroupMember | None, new: StreamsGroupMember | None) -> None:
        if old is not None:
            self._disown(old)
        if new is not None:
            for tasks in (new.assigned, new.pending_revocation):
                self._own(tasks, new.process_id)
        if self.is_empty:
            self.shutdown_member_id = None

    def _own(self, tasks: MemberTasks, process_id: str) -> None:
        self.active |= dict.fromkeys(tasks.active, process_id)
        for owners, owned in ((self.standby, tasks.standby), (self.warmup, tasks.warmup)):
            for task in owned:
                owners.setdefault(task, set()).add(process_id)

    def _disown(self, member: StreamsGroupMember) -> None:
        """Removes the member's tasks from its process, even those that another member also has."""
        process_id = member.process_id
        for tasks in (member.assigned, member.pending_revocation):
            for task in tasks.active:
                if self.active.get(task) == process_id:
                    del self.active[task]
            for owners, owned in ((self.standby, tasks.standby), (self.warmup, tasks.warmup)):
                for task in owned:
                    owners.get(task, set()).discard(process_id)

    def set_unlogged(self, unlogged: Unlogged, next_append: int) -> None:
        if self.unlogged_before[0] != next_append:
            self.unlogged_before = next_append, self.unlogged
        self.unlogged = unlogged

    def forget_unlogged(self, append_id: int) -> None:
        if self.unlogged_before[0] == append_id:
            self.unlogged = self.unlogged_before[1]

    def keep_unlogged(self, before: "StreamsGroup") -> None:
        """Copies unlogged fields. Quirk: also copies the owners of standby tasks and warm-ups."""
        self.unlogged, self.unlogged_before = before.unlogged, before.unlogged_before
        self.shutdown_member_id = before.shutdown_member_id
        for owners, others in ((self.standby, before.standby), (self.warmup, before.warmup)):
            for task in owners:
                owners[task] = set(others.get(task, owners[task]))

    # Records; tasks are sorted by subtopology and partition ---------------------------------------

    def targeted(self, target: GroupTasks) -> Iterable[Role]:
        return map(_role, target)

    def held(self, member: StreamsGroupMember) -> Iterable[Role]:
        for active, standby, warmup in (member.assigned, member.pending_revocation):
            yield tuple(
                wire.TaskIds(name, numbers, tuple(active[name, number] for number in numbers))
                for name, numbers in task_list(active)
            )
            yield _role(standby)
            yield _role(warmup)

    def next_epoch_record(
        self, epoch: int, metadata_hash: int, validated_topology: int, configs: Mapping[str, str]
    ) -> BrokerRecord:
        fields = (epoch, metadata_hash, validated_topology, sorted_pairs(configs))
        return self.epoch_record(*fields, *self.description_epochs)

    def topology_record(self, topology: StreamsTopology) -> BrokerRecord:
        return self.record("TOPOLOGY", None, *topology)


def _role(tasks: Collection[Task]) -> Role:
    return tuple(wire.TaskIds(*one) for one in task_list(tasks))
