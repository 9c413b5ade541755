# SPDX-License-Identifier: Apache-2.0
"""Simulates Connect's configuration topic, and the requests that change it through the leader."""

from collections import deque
from collections.abc import Mapping

from kafka_rebalance.member.interface import ConfigurationUpdated

from .agenda import Agenda, ClientRequest, Read, Started
from .intervals import Holds
from .network import Wire
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


class Herders:
    """Serves requests to change the configuration.

    Call `ask` or `started` to queue a request, and `serve` at each event. The leader's herder has
    one thread, so requests wait while the leader does other work.
    """

    def __init__(
        self,
        scenario: Scenario,
        processes: Mapping[str, Process],
        holds: Holds,
        wire: Wire,
        agenda: Agenda,
    ) -> None:
        created = {
            name
            for one in scenario.happenings
            if one.kind is Kind.CREATE
            for name in one.connectors
        }
        self._tasks = scenario.connectors
        there = {name: tasks for name, tasks in self._tasks.items() if name not in created}
        self.config = ConfigTopic(there)
        for name, tasks in there.items():
            for held in (name, *task_names(name, 0, tasks)):
                holds.appear(held, 0)
        self._log_ms = scenario.network.log_ms
        self._processes = processes
        self._holds = holds
        self._wire = wire
        self._agenda = agenda
        self._requests: deque[ClientRequest] = deque()
        self._configured: list[Started] = []

    def ask(self, request: ClientRequest) -> None:
        self._requests.append(request)

    def started(self, event: Started) -> None:
        """Queues the request to write the tasks of a connector that has started on its worker."""
        self._configured.append(event)

    def serve(self, now_ms: int) -> None:
        """Serves the requests of workers and one request of a client, if the leader is free."""
        if not (self._requests or self._configured):
            return
        for process in self._processes.values():
            worker = process.worker
            if worker is None or not (worker.is_leader and self._is_free(process, now_ms)):
                continue
            self._configured = [one for one in self._configured if not self._configure(one, now_ms)]
            if self._requests:
                self._accept(self._requests.popleft(), now_ms)
            return

    def _is_free(self, process: Process, now_ms: int) -> bool:
        """Returns whether the worker can act now. A busy worker polls when it is free again."""
        until = max(process.busy_until_ms, process.polls_from_ms, process.frozen_until_ms)
        worker = process.worker
        if worker is None or not worker.is_at_work():
            return False
        if until > now_ms:
            self._agenda.arm(until, process.poll_now)
            return False
        return True

    def _configure(self, one: Started, now_ms: int) -> bool:
        """Writes the tasks of a running connector. Returns False while its worker is busy."""
        owner, connector = self._processes[one.process], one.connector
        if owner.incarnation != one.incarnation or not owner.is_up:
            return True
        if not self._is_free(owner, now_ms):
            return False
        tasks, before = self._tasks[connector], self.config.connectors.get(connector, 0)
        if connector in owner.held and self.config.configure_tasks(connector, tasks):
            for held in task_names(connector, before, tasks):
                self._holds.appear(held, now_ms)
            self._send_to_workers(now_ms)
        return True

    def _accept(self, request: ClientRequest, now_ms: int) -> None:
        """Carries out a client's request; after the response, the client can send its next one."""
        name = request.connector
        if request.happening.kind is Kind.CREATE:
            self.config.create(name)
            self._holds.appear(name, now_ms)
        else:
            for gone in (name, *task_names(name, 0, self.config.delete(name))):
                self._holds.disappear(gone, now_ms)
        written_ms = self._send_to_workers(now_ms)
        if request.place + 1 < len(request.happening.connectors):
            self._agenda.push(written_ms, ClientRequest(request.happening, request.place + 1))

    def _send_to_workers(self, now_ms: int) -> int:
        """Sends the newest configuration to all workers; returns when it is in the log (ms)."""
        written = now_ms + self._log_ms
        for process in self._processes.values():
            if process.worker is not None:
                at = self._wire.arrival_ms(_CONFIG, process.name, written)
                read = Read(process.name, process.incarnation, self.config.newest())
                self._agenda.push(at, read)
        return written


def task_names(connector: str, first: int, end: int) -> list[str]:
    return [f"{connector}-{number}" for number in range(first, end)]
