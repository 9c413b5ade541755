# SPDX-License-Identifier: Apache-2.0
"""Assigns the standby replicas of stateful tasks: by load, or by client tags (KIP-708).

By default, each replica of each task in order goes to the least loaded process without the task.
With tags, for each task in order:

1. Begin at the process of the active task.
2. For each tag of that process whose key is in `rack.aware.assignment.tags`: exclude all processes
   with this value. If the key has no more values than the task has copies, exclude no process by
   this key.
3. The least loaded process that has no copy and is not excluded gets a replica. Continue at 2 with
   that process; end if there is none.
4. After all tasks, the replicas that are missing go to the least loaded processes without the task,
   in the order of a `HashMap` of the tasks.

Source   DefaultStandbyTaskAssignor, ClientTagAwareStandbyTaskAssignor (kafka-streams 4.3.1).
"""

from collections.abc import Sequence

from kafka_rebalance.java.hash_map import HashMap
from kafka_rebalance.wire.streams_protocol import TaskId

from .application import Settings, task_hash
from .processes import StreamsProcess, least


def assign(
    processes: Sequence[StreamsProcess], stateful: Sequence[TaskId], settings: Settings
) -> None:
    """Assigns standby replicas; `processes` are sorted by id, `stateful` tasks are sorted."""
    missing: HashMap[TaskId, int] = HashMap(task_hash)
    for task in stateful:
        missing.put(task, settings.num_standby_replicas)
    if settings.rack_aware_assignment_tags:
        values = _values(processes)
        for task in stateful:
            left = _by_tags(processes, task, settings, values)
            if left:
                missing.put(task, left)
            else:
                missing.remove(task)
        # 4.
        left_over = missing.items()
    else:
        left_over = [(task, settings.num_standby_replicas) for task in stateful]
    for task, count in left_over:
        for _ in range(count):
            _give(least(one for one in processes if not one.has(task)), task)


def may_balance(settings: Settings, source: StreamsProcess, target: StreamsProcess) -> bool:
    """Returns whether a task may move; with tags set, only if the target has the source's tags."""
    tags = source.tags.items() if settings.rack_aware_assignment_tags else ()
    return all(target.tags.get(key) == value for key, value in tags)


def may_swap(
    processes: Sequence[StreamsProcess],
    settings: Settings,
    source: StreamsProcess,
    target: StreamsProcess,
    task: TaskId,
) -> bool:
    """Returns whether the task's processes have at least as many different tags after the move."""
    if not settings.rack_aware_assignment_tags:
        return True
    others = [one for one in processes if one.has(task) and one is not source]
    return _distinct([*others, target]) >= _distinct([*others, source])


def _distinct(processes: Sequence[StreamsProcess]) -> int:
    return len({tag for one in processes for tag in one.tags.items()})


def _values(processes: Sequence[StreamsProcess]) -> dict[str, set[str]]:
    values: dict[str, set[str]] = {}
    for one in processes:
        for key, value in one.tags.items():
            values.setdefault(key, set()).add(value)
    return values


def _by_tags(
    processes: Sequence[StreamsProcess],
    task: TaskId,
    settings: Settings,
    values: dict[str, set[str]],
) -> int:
    """Assigns replicas of a task by tags; returns the number of replicas that are missing."""
    # 1.
    last = next(one for one in processes if task in one.active)
    excluded: set[tuple[str, str]] = set()
    for given in range(settings.num_standby_replicas):
        # 2.
        for key, value in last.tags.items():
            if key not in settings.rack_aware_assignment_tags:
                continue
            if len(values[key]) <= given + 1:
                excluded = {tag for tag in excluded if tag[0] != key}
            else:
                excluded.add((key, value))
        # 3.
        without = (one for one in processes if not one.has(task))
        found = least(one for one in without if excluded.isdisjoint(one.tags.items()))
        if found is None:
            return settings.num_standby_replicas - given
        _give(found, task)
        last = found
    return 0


def _give(process: StreamsProcess | None, task: TaskId) -> None:
    if process is not None:
        process.give(task, active=False)
