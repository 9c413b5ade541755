# SPDX-License-Identifier: Apache-2.0
"""Assigns the tasks of a process to its threads, which are sorted by member id.

`assign` is called for active stateful, standby, and active stateless tasks. `load` is the number of
tasks that a thread got in earlier calls. Each call:

1. The least number for each thread is (all loads + tasks) / threads, rounded down. The tasks are a
   `PriorityQueue` that was made from a collection.
2. Not for stateless tasks: each thread takes the tasks that it reported, by lag and task, up to the
   least number. For each task that it reported beyond this number, the thread is remembered: the
   last one, if several threads reported the task.
3. Threads below the least number take the first task of the queue, in turns.
4. A thread with exactly the least number may take one task more. Each remembered task goes to its
   remembered thread, if that thread may still take one.
5. The rest, in the order of the queue's array, goes in turn to the threads that still may take one.

Source   StreamsPartitionAssignor.assignTasksToThreads (kafka-streams 4.3.1).
"""

from collections import deque
from collections.abc import Sequence

from kafka_rebalance.java.priority_queue import PriorityQueue
from kafka_rebalance.wire.streams_protocol import TaskId

from .processes import StreamsProcess


def assign(
    process: StreamsProcess,
    tasks: Sequence[TaskId],
    member_ids: Sequence[str],
    load: dict[str, int],
    *,
    by_lag: bool,
) -> dict[str, list[TaskId]] | None:
    """Returns the tasks of each thread, and adds their number to `load`; None if a thread finds no
    task in step 3.

    `tasks` are in the order in which Java's collection is iterated.
    """
    # 1.
    floor = (sum(load.values()) + len(tasks)) // len(member_ids)
    queue = PriorityQueue[TaskId].of((task, task) for task in tasks)
    got: dict[str, list[TaskId]] = {member_id: [] for member_id in member_ids}
    # 2.
    remembered = {}
    for member_id in member_ids if by_lag else ():
        reported = process.reported[member_id] & process.lags.keys()
        for task in sorted(reported, key=lambda task: (process.lags[task], task)):
            if task in queue:
                if len(got[member_id]) < floor - load[member_id]:
                    got[member_id].append(task)
                    queue.remove(task)
                else:
                    remembered[task] = member_id

    def missing(member_id: str) -> int:
        return floor - load[member_id] - len(got[member_id])

    # 3.
    waiting = deque(one for one in member_ids if missing(one) > 0)
    while waiting:
        member_id = waiting.popleft()
        first = queue.poll()
        if first is None:
            return None
        got[member_id].append(first)
        if missing(member_id) > 0:
            waiting.append(member_id)
    # 4.
    candidates = [one for one in member_ids if missing(one) == 0]
    for task, member_id in sorted(remembered.items()):
        if task in queue and member_id in candidates:
            queue.remove(task)
            got[member_id].append(task)
            candidates.remove(member_id)
    # 5.
    for task, member_id in zip(queue, candidates, strict=False):
        got[member_id].append(task)
    for member_id, list_of_one in got.items():
        load[member_id] += len(list_of_one)
    return got
