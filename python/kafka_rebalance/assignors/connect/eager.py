# SPDX-License-Identifier: Apache-2.0
"""Connect eager: all work stops, then all of it is dealt round-robin.

1. Workers by id, in a circle.
2. Connectors by name, each to the next worker.
3. Then all tasks go out, connector by connector; the circle goes on where step 2 stopped.

Order    a worker's work is in the order in which its assignment's bytes are read: connectors as in
         a Java hash set, each followed by its own tasks (`Work.after_wire`).
Cost     O(C log C + T).
Errors   none for a cluster with workers.
Source   org.apache.kafka.connect.runtime.distributed.EagerAssignor (Connect 4.3.1).
Differs  nowhere.

>>> for worker, work in assign(["w2", "w1"], {"c": 3}).items():
...     print(worker, list(work.connectors), [task.task for task in work.tasks])
w2 [] [0, 2]
w1 ['c'] [1]
"""

from collections.abc import Mapping, Sequence
from itertools import cycle

from kafka_rebalance.java.order import by_name

from .work import Task, Work, configured


def assign(workers: Sequence[str], config: Mapping[str, int]) -> dict[str, Work]:
    """Assigns all work; `workers` are in member order, `config` is connector -> number of tasks."""
    connectors: dict[str, list[str]] = {worker: [] for worker in workers}
    tasks: dict[str, list[Task]] = {worker: [] for worker in workers}
    work = configured(config)
    # 1.
    circle = cycle(by_name(workers))
    # 2.
    for connector, worker in zip(work.connectors, circle, strict=False):
        connectors[worker].append(connector)
    # 3.
    for task, worker in zip(work.tasks, circle, strict=False):
        tasks[worker].append(task)
    return {w: Work(tuple(connectors[w]), tuple(tasks[w])).after_wire() for w in workers}
