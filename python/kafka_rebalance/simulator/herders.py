# SPDX-License-Identifier: Apache-2.0
"""Simulates Connect's configuration topic, and the requests that change it through the leader."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial

from kafka_rebalance.frozen import Mutable
from kafka_rebalance.member.interface import ConfigurationUpdated

from .agenda import Agenda, Wire
from .intervals import Holds
from .process import Process
from .scenario import Kind, Scenario


class ConfigTopic:
    """Connect's configuration topic. `connectors` and `newest` read it; other methods write to it.

    A connector is created without tasks; the worker that runs it writes the configurations of its
    tasks once the connector has started. A deletion removes the connector and its tasks.

    Source   KafkaConfigBackingStore (Connect 4.3.1): a connector is one record. Each of its tasks
             is a record, and one more record commits the tasks. A deletion is two tombstones.
    """

    def __init__(self, connectors: Mapping[str, int]) -> None:
        self.offset = 0
        self.connectors: dict[str, int] = {}
        for name, tasks in connectors.items():
            self.create(name)
            self.configure_tasks(name, tasks)

    def newest(self) -> ConfigurationUpdated:
        return ConfigurationUpdated(self.offset, tuple(self.connectors.items()))

    def create(self, name: str) -> None:
        self.offset += 1
        self.connectors.setdefault(name, 0)

    def configure_tasks(self, name: str, tasks: int) -> bool:
        """Sets a connector's number of tasks. Returns whether that number has changed."""
        if self.connectors.get(name) in (None, tasks):
            return False
        self.offset += tasks + 1
        self.connectors[name] = tasks
        return True

    def delete(self, name: str) -> int:
        self.offset += 2
        return self.connectors.pop(name, 0)


_CONFIG = "configuration topic"


class Herders(Mutable):
    """Serves requests to change the configuration, and sends workers the result by `tell`.

    Call `ask` or `started` to queue a request, and `serve` at each event. The leader's herder has
    one thread, so requests wait while the leader does other work.
    """

    scenario: Scenario
    processes: Mapping[str, Process]
    holds: Holds
    wire: Wire
    agenda: Agenda
    tell: Callable[[Process, int, ConfigurationUpdated], None]
    config: ConfigTopic = field(init=False)
    # A client's requests: their kind, and the connectors for which it sends them one by one.
    requests: deque[tuple[Kind, Sequence[str]]] = field(default_factory=deque)
    configured: list[tuple[Process, int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        creations = (one for one in self.scenario.happenings if one.kind is Kind.CREATE)
        created = {name for one in creations for name in one.connectors}
        tasks = self.scenario.connectors
        self.config = ConfigTopic({name: tasks[name] for name in tasks if name not in created})
        for name, count in self.config.connectors.items():
            for held in (name, *task_names(name, 0, count)):
                self.holds.appear(held, 0)

    def ask(self, kind: Kind, connectors: Sequence[str]) -> None:
        """Queues a client's requests to create or delete connectors, one after another."""
        self.requests.append((kind, connectors))

    def started(self, owner: Process, incarnation: int, connector: str) -> None:
        """Queues the request to write the tasks of a connector that has started on its worker."""
        self.configured.append((owner, incarnation, connector))

    def serve(self) -> None:
        """Serves the requests of workers and one request of a client, if the leader is free."""
        if not (self.requests or self.configured):
            return
        for process in self.processes.values():
            worker = process.worker
            if worker is None or not (worker.is_leader and self._is_free(process)):
                continue
            self.configured = [one for one in self.configured if not self._configure(*one)]
            if self.requests:
                self._accept(*self.requests.popleft())
            return

    def _is_free(self, process: Process) -> bool:
        """Returns whether the worker can act now. A busy one polls when it is free again."""
        until = max(process.busy_until_ms, process.polls_from_ms, process.frozen_until_ms)
        worker = process.worker
        if worker is None or not worker.is_at_work():
            return False
        if until > self.agenda.now_ms:
            self.agenda.arm(until, process.poll_now, process.incarnation)
            return False
        return True

    def _configure(self, owner: Process, incarnation: int, connector: str) -> bool:
        """Writes the tasks of a running connector. Returns False while its worker is busy."""
        if owner.incarnation != incarnation or not owner.is_up:
            return True
        if not self._is_free(owner):
            return False
        tasks, before = (
            self.scenario.connectors[connector],
            self.config.connectors.get(connector, 0),
        )
        if connector in owner.held and self.config.configure_tasks(connector, tasks):
            for held in task_names(connector, before, tasks):
                self.holds.appear(held, self.agenda.now_ms)
            self._send_to_workers()
        return True

    def _accept(self, kind: Kind, connectors: Sequence[str]) -> None:
        """Carries out a client's request; after the response, the client can send its next one."""
        name, *others = connectors
        if kind is Kind.CREATE:
            self.config.create(name)
            self.holds.appear(name, self.agenda.now_ms)
        else:
            for gone in (name, *task_names(name, 0, self.config.delete(name))):
                self.holds.disappear(gone, self.agenda.now_ms)
        written_ms = self._send_to_workers()
        if others:
            self.agenda.push(written_ms, partial(self.ask, kind, others))

    def _send_to_workers(self) -> int:
        """Sends the newest configuration to all workers; returns when it is in the log (ms)."""
        written = self.agenda.now_ms + self.scenario.network.log_ms
        for process in self.processes.values():
            if process.worker is not None:
                at = self.wire.arrival_ms(_CONFIG, process.name, written)
                news = self.config.newest()
                self.agenda.push(at, partial(self.tell, process, process.incarnation, news))
        return written


def task_names(connector: str, first: int, end: int) -> list[str]:
    return [f"{connector}-{number}" for number in range(first, end)]
