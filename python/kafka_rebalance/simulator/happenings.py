# SPDX-License-Identifier: Apache-2.0
"""Carries out the scenario's events: members start and stop, brokers go down, topics grow.

In Connect, clients also create and delete connectors, by requests to the leader's herder.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial

import kafka_rebalance.member.interface as m
from kafka_rebalance.frozen import Mutable

from .agenda import Agenda, Wire
from .broker import Broker, Liveness
from .cluster import Metadata, SimulatedCluster
from .intervals import Holds
from .process import Process
from .run import Absence
from .scenario import Happening, Kind, MemberConfig, Scenario


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

    def newest(self) -> m.ConfigurationUpdated:
        return m.ConfigurationUpdated(self.offset, tuple(self.connectors.items()))

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
    tell: Callable[[Process, int, m.ConfigurationUpdated], None]
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
        """Returns whether the worker can act now. A busy worker polls when it is free again."""
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


class Happenings(Mutable):
    """Carries out the scenario's events when they are due, and their later consequences."""

    scenario: Scenario
    agenda: Agenda
    processes: Mapping[str, Process]
    holds: Holds
    broker: Broker
    cluster: SimulatedCluster
    metadata: Metadata
    herders: Herders
    liveness: Liveness
    deliver: Callable[[Process, int, m.MemberEvent], None]
    schedule: Callable[[Process], None]
    known_absences: list[Absence] = field(default_factory=list)  # absences with a known end
    down_since: dict[str, int] = field(default_factory=dict)  # process -> start of its absence
    coordinator_absences: int = 0  # absences of the coordinator that have not ended

    def absences(self, until_ms: int) -> tuple[Absence, ...]:
        """Returns all absences; a process that is down at the end is absent until `until_ms`."""
        down = (Absence(name, since, until_ms) for name, since in self.down_since.items())
        return (*self.known_absences, *down)

    def happen(self, event: Happening) -> None:
        match event.kind:
            case Kind.CREATE_TOPIC:
                self.cluster.create(event.topic)
                self.publish_topics()
            case Kind.DELETE_TOPIC:
                gone = self.cluster.delete(event.topic)
                self.publish_topics()
                self.metadata.refresh_soon(gone)
            case Kind.GROW:
                self.cluster.grow(event.topic, event.partitions)
                self.publish_topics()
            case Kind.AWAY:
                self._lose_broker(event)
            case Kind.MOVE:
                self._move(event.for_ms)
            case Kind.CREATE | Kind.DELETE:
                self.herders.ask(event.kind, event.connectors)
        if event.member in self.processes:
            self._happen_to(self.processes[event.member], event)

    def publish_topics(self) -> None:
        """Sends the coordinator the topics, if a member ever has the consumer protocol."""
        if self.scenario.has_consumer_protocol:
            self.broker.handle(self.cluster.topics_changed())
            self.liveness.wake_all()

    def _happen_to(self, process: Process, event: Happening) -> None:
        now_ms = self.agenda.now_ms
        self.liveness.wake(process)
        if event.kind is Kind.START and not process.is_up:
            if process.busy_until_ms > now_ms:  # the old process is still stopping
                self.agenda.push(process.busy_until_ms, partial(self.happen, event))
            else:
                self._start(process, event.config)
            return
        if not process.is_up:
            return
        until = now_ms + event.for_ms
        if process.member is not None and process.member.kind == "async":
            process.report_polls(now_ms)  # the process has polled until now, whatever happens next
        match event.kind:
            case Kind.STOP:
                self._close(process)
            case Kind.KILL:
                self.end(process)
            case Kind.PAUSE:
                process.polls_from_ms = max(process.polls_from_ms, until)
                self._get_stuck(process, process.polls_from_ms)
            case Kind.FREEZE:
                self.liveness.fall_silent(process)
                process.frozen_until_ms = max(process.frozen_until_ms, until)
                self._get_stuck(process, process.frozen_until_ms)

    # Brokers --------------------------------------------------------------------------------------

    def _move(self, for_ms: int) -> None:
        """Takes the coordinator away for `for_ms`; after that, another node is the coordinator."""
        if not self.coordinator_absences:
            self.broker.leave_node()
        self.coordinator_absences += 1
        self.agenda.push(self.agenda.now_ms + for_ms, self._load)
        self.liveness.wake_all()

    def _load(self) -> None:
        """Ends one absence of the coordinator; after the last, a new node is the coordinator."""
        self.coordinator_absences -= 1
        if not self.coordinator_absences:
            self.broker.take_node()
            self.liveness.repeat_reports()

    def _lose_broker(self, event: Happening) -> None:
        now_ms = self.agenda.now_ms
        back = now_ms + event.for_ms
        dark = self.cluster.leave(event)
        self.agenda.push(back, partial(self._come_back, event, dark))
        if event.coordinates:
            self._move(event.for_ms)
        if self.cluster.is_reachable():
            self.metadata.refresh_soon()  # clients of the lost broker ask another broker
        unread = set(dark)
        for process in self.processes.values():
            if unread and unread.issuperset(process.held):
                self.known_absences.append(Absence(process.name, now_ms, back))

    def _come_back(self, event: Happening, dark: tuple[str, ...]) -> None:
        self.cluster.come_back(event, dark)
        self.metadata.refresh_soon()

    # Processes ------------------------------------------------------------------------------------

    def _start(self, process: Process, config: MemberConfig | None) -> None:
        now_ms, name = self.agenda.now_ms, process.name
        down = self.down_since.pop(name, None)
        if down is not None:
            self.known_absences.append(Absence(name, down, now_ms))
        config = config or process.plan.config
        if config.group_id != self.scenario.group_id:
            config = replace(config, group_id=self.scenario.group_id)
        member = process.start(config)
        incarnation = process.incarnation
        if member.kind == "worker":
            self.deliver(process, incarnation, self.herders.config.newest())
            return
        self.deliver(process, incarnation, m.MetadataUpdated(self.cluster.metadata()))
        pattern = process.plan.pattern
        wants = m.SubscribePattern(pattern) if pattern else m.Subscribe(process.plan.topics)
        self.deliver(process, incarnation, wants)
        self.metadata.start(process)

    def _close(self, process: Process) -> None:
        member, now_ms = process.member, self.agenda.now_ms
        assert member is not None
        member_id = member.member_id
        self.down_since[process.name] = now_ms
        self.liveness.fall_silent(process)
        self.deliver(process, process.incarnation, m.Close())
        if member.kind == "worker":
            # A worker keeps sending heartbeats while its connectors and tasks stop.
            self.liveness.report_silent(member_id, process.busy_until_ms)
        process.stop(now_ms)

    def end(self, process: Process) -> None:
        self.down_since[process.name] = self.agenda.now_ms
        self.liveness.fall_silent(process)
        process.stop(self.agenda.now_ms)

    def _get_stuck(self, process: Process, until_ms: int) -> None:
        now_ms = self.agenda.now_ms
        self.holds.stick(process.name, now_ms, is_stuck=True)
        self.known_absences.append(Absence(process.name, now_ms, until_ms))
        self.agenda.push(until_ms, partial(self._unstick, process, process.incarnation))
        self.schedule(process)

    def _unstick(self, process: Process, incarnation: int) -> None:
        """Ends a pause or a freeze, unless a later one has not ended yet."""
        until = max(process.polls_from_ms, process.frozen_until_ms)
        if process.incarnation == incarnation and until <= self.agenda.now_ms:
            self.holds.stick(process.name, self.agenda.now_ms, is_stuck=False)
