# SPDX-License-Identifier: Apache-2.0
"""The brokers' sticky task assignor: members keep their tasks, up to a quota.

1. Count the tasks, once without and once with standby replicas. A quota is the number of tasks
   divided by the number of members, rounded up. A member whose tasks reach the quota exactly is
   full: the quota is computed again from the other members and from the tasks that remain.
2. The previous owner of an active task is the last member that has it. The candidates for a task
   are the members that have it as a standby task, then the members that only reported an offset for
   it; in both parts, the larger offset comes first.
3. Each active task, by partition and subtopology, goes to its previous owner if the owner's tasks
   are fewer than the quota of active tasks.
4. Each remaining task, in this order, goes to its best candidate, under the same condition.
5. Each task that is still left, by subtopology and partition, goes to the least loaded member of
   the least loaded process. The load of a process is its tasks divided by its members.
6. Each task of a stateful subtopology, by partition and subtopology from the last to the first,
   gets its standby replicas: first at the previous owner of the active task, then at the best
   candidate. Their process must not have the task yet, and their tasks must be fewer than the
   quota of all tasks.
7. The replicas that are missing, by subtopology and partition from the last to the first, go to the
   least loaded process that does not have the task.

Order    members are in the order of a default `HashMap`, processes in that of a `HashMap` with room
         for all members. Entries of a `PriorityQueue` with equal keys are in the order of its heap.
         An answer is sorted, as in the record that Kafka writes.
Quirk    a later candidate is better only if it has fewer tasks and its process has a smaller load.
         Racks, client tags and warm-up tasks have no influence. No warm-up task is assigned.
Errors   GroupError if the group has no subtopologies, or a member has no process id.
Source   StickyTaskAssignor, ProcessState (Kafka 4.4.0); KIP-1071.
"""

from typing import NamedTuple

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import StreamsMember, TopicPartition
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.group.streams import all_tasks
from kafka_rebalance.java.hash_map import HashMap, slots_for
from kafka_rebalance.java.order import java_hash_order, name_key, string_hash
from kafka_rebalance.java.priority_queue import PriorityQueue

NAME = "streams/sticky"


class Tasks(NamedTuple):
    """The tasks of each member; a task is a partition of a subtopology."""

    active: dict[str, list[TopicPartition]]
    standby: dict[str, list[TopicPartition]]


def assign(group: GroupSpec) -> Tasks:
    members = _members(group)
    work = _Work(group, members)
    tasks = [
        TopicPartition(one.subtopology_id, number)
        for one in group.subtopologies or ()
        for number in range(one.tasks)
    ]
    work.give_active(tasks)
    if work.replicas > 0:
        stateful = {one.subtopology_id for one in group.subtopologies or () if one.stateful}
        work.give_standby([task for task in tasks if task.topic in stateful])
    return Tasks(_sorted(work.active), _sorted(work.standby))


def _members(group: GroupSpec) -> dict[str, StreamsMember]:
    if group.subtopologies is None:
        raise GroupError("subtopologies", f"missing; {NAME} assigns their tasks")
    members = {}
    for i, member in enumerate(group.members):
        if member.streams is None:
            raise GroupError(f"members[{i}].process_id", f"missing; {NAME} reads it")
        members[member.member_id] = member.streams
    return {member_id: members[member_id] for member_id in java_hash_order(list(members))}


def _sorted(lists: dict[str, list[TopicPartition]]) -> dict[str, list[TopicPartition]]:
    return {member_id: sorted(tasks, key=_by_subtopology) for member_id, tasks in lists.items()}


def _by_partition(task: TopicPartition) -> tuple[int, bytes]:
    return task.partition, name_key(task.topic)


def _by_subtopology(task: TopicPartition) -> tuple[bytes, int]:
    return name_key(task.topic), task.partition


class _Quota:
    """A quota (step 1): a member with `each` tasks or more gets back no more of its old tasks."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.each = -(-tasks // members)

    def count(self, tasks: int) -> None:
        if tasks == self.each:
            self._members -= 1
            self._tasks -= tasks
            self.each = -(-self._tasks // self._members) if self._members else 0


class _Process:
    """The members of a process with their number of tasks, and all tasks of the process."""

    def __init__(self) -> None:
        self.counts: HashMap[str, int] = HashMap(string_hash)
        self.tasks: set[TopicPartition] = set()
        self.load = 0.0
        self._by_count: PriorityQueue[str] | None = None

    def give(self, member_id: str, task: TopicPartition) -> None:
        self.counts.put(member_id, self.counts[member_id] + 1)
        self.tasks.add(task)
        self.load = len(self.tasks) / len(self.counts)

    def forget_order(self) -> None:
        """Drops the queue of `next_member`, because a member got a task without that method."""
        self._by_count = None

    def next_member(self) -> str:
        """Returns the member with the fewest tasks. The caller must give it the next task."""
        if len(self.counts) == 1:
            return next(iter(self.counts))
        if self._by_count is None:
            self._by_count = PriorityQueue()
            for member_id, count in self.counts.items():
                self._by_count.add(count, member_id)
        least = self._by_count.poll()
        assert least is not None  # a process has members
        self._by_count.add(self.counts[least] + 1, least)
        return least


class _Work:
    """The tasks given to each member so far.

    Steps 1 and 2 prepare quotas, previous owners and candidates; steps 3 to 7 give tasks.
    """

    def __init__(self, group: GroupSpec, members: dict[str, StreamsMember]) -> None:
        subtopologies = group.subtopologies or ()
        # 1.
        self.replicas = group.num_standby_replicas or 0
        self.active_quota = _Quota(all_tasks(subtopologies, 0), len(members))
        self.quota = _Quota(all_tasks(subtopologies, self.replicas), len(members))
        self.active: dict[str, list[TopicPartition]] = {one: [] for one in members}
        self.standby: dict[str, list[TopicPartition]] = {one: [] for one in members}
        self.processes: HashMap[str, _Process] = HashMap(string_hash, slots_for(len(members)))
        self.process_of: dict[str, _Process] = {}
        self.owner: dict[TopicPartition, str] = {}
        ranked: dict[TopicPartition, list[tuple[bool, int, str]]] = {}
        for member_id, member in members.items():
            process = self.processes.compute_if_absent(member.process_id, _Process)
            process.counts.put(member_id, 0)
            self.process_of[member_id] = process
            # 2.
            self.owner |= dict.fromkeys(member.active_tasks, member_id)
            offsets = dict(member.task_offsets)
            standby = set(member.standby_tasks)
            for task in standby | offsets.keys():
                place = task not in standby, -offsets.get(task, 0), member_id
                ranked.setdefault(task, []).append(place)
        self.candidates = {
            task: [member_id for *_, member_id in sorted(places, key=lambda place: place[:2])]
            for task, places in ranked.items()
        }

    def give_active(self, tasks: list[TopicPartition]) -> None:
        # 3.
        left = []
        for task in sorted(tasks, key=_by_partition):
            if not self._give_if(self.owner.get(task), task, self.active_quota, active=True):
                left.append(task)
        # 4.
        tasks, left = left, []
        for task in tasks:
            best = self._best_candidate(task, without_task=False)
            if not self._give_if(best, task, self.active_quota, active=True):
                left.append(task)
        # 5.
        queue = self._processes_by_load()
        for task in sorted(left, key=_by_subtopology):
            process = queue.poll()
            assert process is not None  # each member has a process
            self._give(process.next_member(), task, active=True)
            queue.add(process.load, process)

    def give_standby(self, tasks: list[TopicPartition]) -> None:
        # 6.
        missing = []
        for task in sorted(tasks, key=_by_partition, reverse=True):
            for given in range(self.replicas):
                if not self._give_to_earlier(task):
                    missing.append((task, self.replicas - given))
                    break
        # 7.
        queue = self._processes_by_load()
        missing.sort(key=lambda one: _by_subtopology(one[0]), reverse=True)
        for task, replicas in missing:
            for _ in range(replicas):
                if not self._give_to_least_loaded(queue, task):
                    break

    def _give_to_earlier(self, task: TopicPartition) -> bool:
        """Tries to give one replica to the previous owner, then to the best candidate.

        Returns whether one of these members got the replica.
        """
        owner = self.owner.get(task)
        if owner is not None and task in self.process_of[owner].tasks:
            owner = None
        if self._give_if(owner, task, self.quota, active=False):
            return True
        best = self._best_candidate(task, without_task=True)
        return self._give_if(best, task, self.quota, active=False)

    def _give_to_least_loaded(self, queue: PriorityQueue[_Process], task: TopicPartition) -> bool:
        """Gives one replica to the least loaded process without the task; False if none is left."""
        passed = []
        while (process := queue.poll()) is not None:
            passed.append(process)
            if task not in process.tasks:
                self._give(process.next_member(), task, active=False)
                break
        for one in reversed(passed):
            queue.add(one.load, one)
        return process is not None

    def _best_candidate(self, task: TopicPartition, *, without_task: bool) -> str | None:
        """Returns the best candidate; with `without_task`, its process must not have the task."""
        best: tuple[float, int, str] | None = None
        for member_id in self.candidates.get(task, ()):
            process = self.process_of[member_id]
            if without_task and task in process.tasks:
                continue
            count = process.counts[member_id]
            if best is None or (process.load < best[0] and count < best[1]):
                best = process.load, count, member_id
        return None if best is None else best[2]

    def _give_if(
        self, member_id: str | None, task: TopicPartition, quota: _Quota, *, active: bool
    ) -> bool:
        """Gives a task to a member that is below the quota; returns whether it got the task."""
        if member_id is None or self.process_of[member_id].counts[member_id] >= quota.each:
            return False
        self.process_of[member_id].forget_order()
        self._give(member_id, task, active=active)
        return True

    def _give(self, member_id: str, task: TopicPartition, *, active: bool) -> None:
        process = self.process_of[member_id]
        process.give(member_id, task)
        if active:
            self.active_quota.count(process.counts[member_id])
        self.quota.count(process.counts[member_id])
        (self.active if active else self.standby)[member_id].append(task)

    def _processes_by_load(self) -> PriorityQueue[_Process]:
        queue = PriorityQueue[_Process]()
        for _, process in self.processes.items():
            queue.add(process.load, process)
        return queue
