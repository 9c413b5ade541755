# SPDX-License-Identifier: Apache-2.0
"""The fields of streams groups (KIP-1071) in contract lines: reads, checks and writes them.

A member's tasks are read only if it has a `process_id`. The mirrors are `src/group/contract.rs`
(reading) and `src/group/streams.rs` (checks of ids and of the total).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kafka_rebalance.errors import GroupError

from .field_paths import MAX_INT32, each, flag, integer, object_, optional_integer, required, string
from .model import StreamsMember, Subtopology, TaskOffset, TopicPartition, in_runs, quoted

MIN_INT64, MAX_INT64 = -(2**63), 2**63 - 1


def read_topology(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of a `GroupSpec` that describe a topology."""
    subtopologies = None
    if fields.get("subtopologies") is not None:
        subtopologies = each(fields, "subtopologies", "", _subtopology)
    replicas = optional_integer(fields, "num_standby_replicas", "", "count")
    return {"subtopologies": subtopologies, "num_standby_replicas": replicas}


def _subtopology(value: Any, at: str) -> Subtopology:
    fields = object_(value, at)
    return Subtopology(  # the arguments are read, and so checked, in this order
        string(fields, "subtopology_id", at),
        integer(required(fields, "tasks", at), f"{at}.tasks", "count", 1),
        flag(fields, "stateful", at),
        _source_topics(fields.get("source_topics")),
    )


def _source_topics(value: Any) -> tuple[str, ...]:
    """Returns the names, or none if the value has another form: no answer depends on this field."""
    names = value if isinstance(value, list) else []
    return tuple(names) if all(isinstance(name, str) for name in names) else ()


def read_member(fields: Mapping[str, Any], at: str) -> StreamsMember | None:
    """Returns the tasks of a member; None if it has no `process_id`."""
    if fields.get("process_id") is None:
        return None
    return StreamsMember(  # the arguments are read, and so checked, in this order
        string(fields, "process_id", at),
        _tasks(fields, "active_tasks", at),
        _tasks(fields, "standby_tasks", at),
        each(fields, "task_offsets", at, _offset) if fields.get("task_offsets") is not None else (),
    )


def _tasks(fields: Mapping[str, Any], name: str, at: str) -> tuple[TopicPartition, ...]:
    if fields.get(name) is None:
        return ()
    return tuple(task for tasks in each(fields, name, at, _tasks_of_one) for task in tasks)


def _tasks_of_one(value: Any, at: str) -> list[TopicPartition]:
    fields = object_(value, at)
    subtopology_id = string(fields, "subtopology_id", at)
    return [TopicPartition(subtopology_id, p) for p in each(fields, "partitions", at, _partition)]


def _partition(value: Any, at: str) -> int:
    return integer(value, at, "partition")


def _offset(value: Any, at: str) -> TaskOffset:
    fields = object_(value, at)
    task = TopicPartition(
        string(fields, "subtopology_id", at),
        _partition(required(fields, "partition", at), f"{at}.partition"),
    )
    offset = required(fields, "offset", at)
    return TaskOffset(task, integer(offset, f"{at}.offset", "task offset", MIN_INT64, MAX_INT64))


def all_tasks(subtopologies: Sequence[Subtopology], standby_replicas: int) -> int:
    """Returns the number of active tasks and of standby tasks together."""
    return sum(one.tasks * (1 + standby_replicas * one.stateful) for one in subtopologies)


def check_topology(
    subtopologies: Sequence[Subtopology], standby_replicas: int | None, max_tasks: int
) -> None:
    """Checks ids and counts. Errors: GroupError with the field's path."""
    ids: dict[str, int] = {}
    for i, one in enumerate(subtopologies):
        if (first := ids.setdefault(one.subtopology_id, i)) != i:
            problem = f"{quoted(one.subtopology_id)} is already the id of subtopologies[{first}]"
            raise GroupError(f"subtopologies[{i}].subtopology_id", problem)
        _check_count(one.tasks, f"subtopologies[{i}].tasks", least=1)
    _check_count(standby_replicas or 0, "num_standby_replicas", least=0)
    total, limit = all_tasks(subtopologies, standby_replicas or 0), min(max_tasks, MAX_INT32)
    if total > limit:
        raise GroupError(
            "subtopologies",
            f"{total} active and standby tasks in all, more than the limit of {limit}; "
            "raise max_partitions if that is meant",
        )


def _check_count(count: int, at: str, *, least: int) -> None:
    if not least <= count <= MAX_INT32:
        raise GroupError(at, f"{count} is not a count from {least} to {MAX_INT32}")


def topology_to_dict(subtopologies: Sequence[Subtopology]) -> list[dict[str, Any]]:
    return [
        {
            "subtopology_id": one.subtopology_id,
            "tasks": one.tasks,
            "stateful": one.stateful,
            **({"source_topics": list(one.source_topics)} if one.source_topics else {}),
        }
        for one in subtopologies
    ]


def member_to_dict(member: StreamsMember) -> dict[str, Any]:
    """Returns the fields of a contract line's member; lists that are empty are left out."""
    line: dict[str, Any] = {"process_id": member.process_id}
    for name in ("active_tasks", "standby_tasks"):
        if runs := in_runs(getattr(member, name), "subtopology_id"):
            line[name] = runs
    if member.task_offsets:
        line["task_offsets"] = [
            {"subtopology_id": task.topic, "partition": task.partition, "offset": offset}
            for task, offset in member.task_offsets
        ]
    return line
