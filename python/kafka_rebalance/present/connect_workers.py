# SPDX-License-Identifier: Apache-2.0
"""The present state of a Connect group: which worker runs which connectors and tasks."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kafka_rebalance.assignors.connect.work import Task, Work
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.ownership import Balance
from kafka_rebalance.notes.findings import Note

if TYPE_CHECKING:
    from kafka_rebalance.wire.connect_protocol import (
        ConnectAssignment,
        ConnectMetadata,
        Connectors,
        Tasks,
    )


class ConnectWorker(Frozen):
    """A member of a Connect group: what it reported when it joined, and its leader's assignment.

    An incremental assignment contains only the differences from the work at the join.
    """

    member_id: str
    client_id: str
    client_host: str
    metadata: "ConnectMetadata"
    assignment: "ConnectAssignment"

    @property
    def work(self) -> Work:
        """Returns the worker's present work: its report, minus revoked and plus new work."""
        ran, new = self.metadata.assignment, self.assignment
        revoked = _work(new.revoked_connectors, new.revoked_tasks)
        before = Work() if ran is None else _work(ran.connectors, ran.tasks)
        return before - revoked + _work(new.connectors, new.tasks)

    def to_dict(self) -> dict[str, Any]:
        work = self.work
        return {
            "member_id": self.member_id,
            "client_id": self.client_id,
            "client_host": self.client_host,
            "url": self.metadata.url,
            "config_offset": self.metadata.config_offset,
            "connectors": list(work.connectors),
            "tasks": [list(task) for task in work.tasks],
        }


class ConnectGroup(Frozen):
    """A Connect group. `protocol` is the one that its workers selected, such as "sessioned"."""

    group_id: str
    state: str
    protocol: str
    workers: tuple[ConnectWorker, ...]

    @property
    def leader(self) -> str | None:
        """Returns the leader's member id, which every assignment contains; None without workers."""
        return next((one.assignment.leader for one in self.workers), None)

    @property
    def leader_url(self) -> str | None:
        return next((one.assignment.leader_url for one in self.workers), None)

    @property
    def connector_balance(self) -> Balance:
        return Balance.of([len(one.work.connectors) for one in self.workers])

    @property
    def task_balance(self) -> Balance:
        return Balance.of([len(one.work.tasks) for one in self.workers])

    @property
    def findings(self) -> tuple[Note, ...]:
        return tuple(_findings(self))

    def to_dict(self) -> dict[str, Any]:
        return {
            "group_id": self.group_id,
            "group_type": "connect",
            "state": self.state,
            "protocol": self.protocol,
            "leader": self.leader,
            "leader_url": self.leader_url,
            "members": [one.to_dict() for one in self.workers],
            "balance_connectors": self.connector_balance.to_dict(),
            "balance_tasks": self.task_balance.to_dict(),
            "findings": [finding.to_dict() for finding in self.findings],
        }


def _work(connectors: "Connectors", tasks: "Tasks") -> Work:
    return Work.of(connectors, (Task(*task) for task in tasks))


def _findings(group: ConnectGroup) -> Iterator[Note]:
    idle = tuple(w.member_id for w in group.workers if not w.work.connectors and not w.work.tasks)
    if idle and len(idle) < len(group.workers):
        yield Note("idle", "nothing runs there", idle)
    counts = Counter[str]()
    for one in group.workers:
        counts.update((*one.work.connectors, *("{}-{}".format(*task) for task in one.work.tasks)))
    if doubled := [what for what, count in counts.items() if count > 1]:
        yield Note("doubled", f"several workers run {', '.join(doubled)}")
    if delay := max((one.assignment.delay_ms for one in group.workers), default=0):
        text = "at the last rebalance, work of a lost worker was held back for "
        yield Note("waits", f"{text}{delay / 1000:g} s (scheduled.rebalance.max.delay.ms)")
    if any(one.assignment.error for one in group.workers):
        yield Note("mismatch", "the leader had not read the newest connector configurations")
    if len({one.metadata.version for one in group.workers}) > 1:
        yield Note("mixed", "workers send different versions of Connect's protocol")
