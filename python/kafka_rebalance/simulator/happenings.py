# SPDX-License-Identifier: Apache-2.0
"""Carries out the scenario's events: members start and stop, brokers go down, topics grow."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from kafka_rebalance import member as m

from .agenda import Agenda
from .broker import Broker
from .cluster import SimulatedCluster
from .herders import Herders
from .intervals import Holds
from .liveness import Liveness
from .metadata import Metadata
from .process import Process
from .run import Absence
from .scenario import Happening, Kind, MemberConfig, Scenario
from .scheduled import Back, ClientRequest, Loading, Unstuck


class Happenings:
    """Carries out events. Getters: absences. Inputs: happen, come_back, load, unstick, end.

    `deliver` hands an event to a process, `schedule` sets the process's next timers.
    """

    def __init__(
        self,
        scenario: Scenario,
        agenda: Agenda,
        processes: Mapping[str, Process],
        holds: Holds,
        broker: Broker,
        cluster: SimulatedCluster,
        metadata: Metadata,
        herders: Herders,
        liveness: Liveness,
        deliver: Callable[[str, int, m.MemberEvent], None],
        schedule: Callable[[Process], None],
    ) -> None:
        self._group_id = scenario.group_id
        self._agenda = agenda
        self._processes = processes
        self._holds = holds
        self._broker = broker
        self._cluster = cluster
        self._metadata = metadata
        self._herders = herders
        self._liveness = liveness
        self._deliver = deliver
        self._schedule = schedule
        self._absences: list[Absence] = []
        self._down_since: dict[str, int] = {}
        self._coordinator_absences = 0  # absences of the coordinator that have not ended

    def absences(self, until_ms: int) -> tuple[Absence, ...]:
        """Returns all absences of processes; one that is still down is absent until the end."""
        down = (Absence(name, since, until_ms) for name, since in self._down_since.items())
        return (*self._absences, *down)

    def happen(self, event: Happening) -> None:
        """Carries out one event of the scenario."""
        now_ms = self._agenda.now_ms
        match event.kind:
            case Kind.CREATE_TOPIC:
                self._cluster.create(event.topic, now_ms)
            case Kind.GROW:
                self._cluster.grow(event.topic, event.partitions, now_ms)
            case Kind.AWAY:
                self._lose_broker(event)
            case Kind.MOVE:
                self._move(event.for_ms)
            case Kind.CREATE | Kind.DELETE:
                self._herders.ask(ClientRequest(event))
        if event.member in self._processes:
            self._happen_to(self._processes[event.member], event)

    def _happen_to(self, process: Process, event: Happening) -> None:
        now_ms = self._agenda.now_ms
        self._liveness.wake(process)
        if event.kind is Kind.START and not process.is_up:
            if process.busy_until_ms > now_ms:
                self._agenda.push(process.busy_until_ms, event)  # the old process is still stopping
            else:
                self._start(process, event.config)
            return
        if not process.is_up:
            return
        until = now_ms + event.for_ms
        match event.kind:
            case Kind.STOP:
                self._close(process)
            case Kind.KILL:
                self.end(process)
            case Kind.PAUSE:
                process.polls_from_ms = max(process.polls_from_ms, until)
                self._get_stuck(process, process.polls_from_ms)
            case Kind.FREEZE:
                self._liveness.fall_silent(process)
                process.frozen_until_ms = max(process.frozen_until_ms, until)
                self._get_stuck(process, process.frozen_until_ms)

    # Brokers --------------------------------------------------------------------------------------

    def _move(self, for_ms: int) -> None:
        """Takes the coordinator away for this long; after that another node coordinates."""
        if not self._coordinator_absences:
            self._broker.leave_node(self._agenda.now_ms)
        self._coordinator_absences += 1
        self._agenda.push(self._agenda.now_ms + for_ms, Loading())
        self._liveness.wake_all()

    def load(self) -> None:
        """Ends one absence of the coordinator; after the last one, sessions start anew."""
        self._coordinator_absences -= 1
        if not self._coordinator_absences:
            self._broker.take_node(self._agenda.now_ms)
            self._liveness.repeat_reports()

    def _lose_broker(self, event: Happening) -> None:
        now_ms = self._agenda.now_ms
        back = now_ms + event.for_ms
        self._cluster.leave(event, now_ms)
        self._agenda.push(back, Back(event))
        if event.coordinates:
            self._move(event.for_ms)
        if self._cluster.is_reachable():
            self._metadata.refresh_soon(now_ms)  # its clients ask another broker
        dark = set(self._cluster.led(event))
        for process in self._processes.values():
            if dark and dark.issuperset(process.held):
                self._absences.append(Absence(process.name, now_ms, back))

    def come_back(self, event: Happening) -> None:
        """Takes a broker back."""
        self._cluster.come_back(event, self._agenda.now_ms)
        self._metadata.refresh_soon(self._agenda.now_ms)

    # Processes ------------------------------------------------------------------------------------

    def _start(self, process: Process, config: MemberConfig | None) -> None:
        now_ms, name = self._agenda.now_ms, process.name
        down = self._down_since.pop(name, None)
        if down is not None:
            self._absences.append(Absence(name, down, now_ms))
        member = process.start(replace(config or process.plan.config, group_id=self._group_id))
        incarnation = process.incarnation
        if isinstance(member, m.Worker):
            self._deliver(name, incarnation, self._herders.config.newest())
            return
        self._deliver(name, incarnation, m.MetadataUpdated(self._cluster.metadata(now_ms)))
        pattern = process.plan.pattern
        wants = m.SubscribePattern(pattern) if pattern else m.Subscribe(process.plan.topics)
        self._deliver(name, incarnation, wants)
        self._metadata.start(process, now_ms)

    def _close(self, process: Process) -> None:
        """Closes a member; if it is static or its LeaveGroup is lost, it is silent from now on."""
        member, now_ms = process.member, self._agenda.now_ms
        assert member is not None
        member_id = member.member_id
        self._down_since[process.name] = now_ms
        self._liveness.fall_silent(process)
        self._deliver(process.name, process.incarnation, m.Close())
        if isinstance(member, m.Worker):
            # A worker's heartbeats go on while its connectors and tasks stop.
            self._liveness.report_silent(member_id, process.busy_until_ms)
        process.stop(now_ms)

    def end(self, process: Process) -> None:
        """A process ends without closing its member."""
        self._down_since[process.name] = self._agenda.now_ms
        self._liveness.fall_silent(process)
        process.stop(self._agenda.now_ms)

    def _get_stuck(self, process: Process, until_ms: int) -> None:
        now_ms = self._agenda.now_ms
        self._holds.stick(process.name, now_ms, is_stuck=True)
        self._absences.append(Absence(process.name, now_ms, until_ms))
        self._agenda.push(until_ms, Unstuck(process.name, process.incarnation))
        self._schedule(process)

    def unstick(self, event: Unstuck) -> None:
        """Ends a pause or a freeze, unless a longer one goes on."""
        process = self._processes[event.process]
        until = max(process.polls_from_ms, process.frozen_until_ms)
        if process.incarnation == event.incarnation and until <= self._agenda.now_ms:
            self._holds.stick(process.name, self._agenda.now_ms, is_stuck=False)
