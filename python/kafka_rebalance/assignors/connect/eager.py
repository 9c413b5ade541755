# SPDX-License-Identifier: Apache-2.0
"""Connect eager: all work stops, and then all work is assigned to the workers in turn.

1. The workers form a circle, by id.
2. Each connector, in the order of names, goes to the next worker of the circle.
3. Each task, in the order of connector and number, goes to the next worker; the circle continues
   where step 2 stopped.

Order    a worker's work is in the order in which the worker reads it: connectors as in a Java hash
         set, tasks grouped by connector (`Work.after_wire`).
Cost     O(W + C + T) and sorting: W workers, C connectors, T tasks.
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
