# SPDX-License-Identifier: Apache-2.0
"""The work of Connect's workers: connectors and tasks, and the orders in which Java visits them.

Source   ConnectorTaskId, ConnectProtocol.Assignment.asMap, IncrementalCooperativeConnectProtocol.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from kafka_rebalance.frozen import Frozen
from kafka_rebalance.java.hash_table import HashTable
from kafka_rebalance.java.order import copied_slots, java_set_order, name_key, string_hash


class Task(NamedTuple):
    """A task of a connector; the tasks of each connector are numbered from 0."""

    connector: str
    task: int


def task_key(task: Task) -> tuple[bytes, int]:
    """Returns the sort key of `ConnectorTaskId.compareTo`."""
    return name_key(task.connector), task.task


class Work(Frozen):
    """Connectors and tasks, each once. Answers depend on their order."""

    connectors: tuple[str, ...] = ()
    tasks: tuple[Task, ...] = ()

    @classmethod
    def of(cls, connectors: Iterable[str], tasks: Iterable[Task]) -> "Work":
        return cls(tuple(dict.fromkeys(connectors)), tuple(dict.fromkeys(tasks)))

    @classmethod
    def union(cls, works: Collection["Work"]) -> "Work":
        """Returns all work of `works`, in order of first appearance."""
        return cls.of(
            [connector for work in works for connector in work.connectors],
            [task for work in works for task in work.tasks],
        )

    def __bool__(self) -> bool:
        return bool(self.connectors or self.tasks)

    def __add__(self, other: "Work") -> "Work":
        return Work.union((self, other))

    def __sub__(self, other: "Work") -> "Work":
        connectors, tasks = set(other.connectors), set(other.tasks)
        return Work(
            tuple(c for c in self.connectors if c not in connectors),
            tuple(t for t in self.tasks if t not in tasks),
        )

    def sorted(self) -> "Work":
        return Work(
            tuple(sorted(self.connectors, key=name_key)), tuple(sorted(self.tasks, key=task_key))
        )

    def in_hash_order(self) -> "Work":
        """Returns the work in the orders of two Java HashSets, one of connectors, one of tasks."""
        tasks = HashTable[Task](copied_slots(len(self.tasks)))
        for task in self.tasks:
            task_hash = 31 * string_hash(task.connector) + task.task & 0xFFFFFFFF
            tasks.put(task, task_hash, task_key(task))
        return Work(tuple(java_set_order(self.connectors)), tuple(tasks))

    def after_wire(self) -> "Work":
        """Returns the work in the order in which a worker reads it from the leader's bytes.

        Connectors are in hash order. Tasks are grouped by connector: first tasks of `connectors`,
        in that hash order; then the tasks of other connectors, in order of first appearance.
        """
        first = self.in_hash_order().connectors
        by_connector: dict[str, list[Task]] = {connector: [] for connector in first}
        for task in self.tasks:
            by_connector.setdefault(task.connector, []).append(task)
        return Work(first, tuple(task for tasks in by_connector.values() for task in tasks))

    def names(self) -> list[str]:
        """Returns the connectors, then the tasks as Kafka names them: `connector-number`."""
        return [*self.connectors, *(f"{task.connector}-{task.task}" for task in self.tasks)]

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Work":
        return cls(tuple(fields["connectors"]), tuple(Task(*task) for task in fields["tasks"]))

    def to_dict(self) -> dict[str, Any]:
        return {"connectors": list(self.connectors), "tasks": [list(task) for task in self.tasks]}


NOTHING = Work()


def configured(config: Mapping[str, int]) -> Work:
    """Returns all connectors and tasks of a configuration (connector -> tasks), sorted."""
    return Work(
        tuple(config), tuple(Task(name, n) for name, count in config.items() for n in range(count))
    ).sorted()
