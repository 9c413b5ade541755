# SPDX-License-Identifier: Apache-2.0
"""Plays a scenario in virtual time: takes one action after another from the agenda.

    agenda       the heap of actions, and the timers of processes
    happenings   the scenario's own events
    broker       the coordinator, and the members that it does not hear

Equal scenarios lead to equal runs, because all random choices depend on the scenario's seed. If a
`journal` is given, the events of every state machine are added to it, for a replay of the run.
"""

import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import kafka_rebalance.member.interface as m
from kafka_rebalance.coordinator.coordinator import Coordinator
from kafka_rebalance.coordinator.machine.events import Received, Transition
from kafka_rebalance.group.field_paths import a_type
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.member.consumer import Consumer
from kafka_rebalance.plans.changes.made_up import in_hex
from kafka_rebalance.wire.broker_groups import ConsumerGroupHeartbeatResponse
from kafka_rebalance.wire.classic_groups import JoinGroup, JoinGroupResponse
from kafka_rebalance.wire.messages import GroupState, Response, Tick

from .agenda import Action, Agenda, Timer, Wire
from .broker import Broker, Liveness
from .cluster import Metadata, SimulatedCluster
from .happenings import Happenings, Herders
from .intervals import Holds
from .process import Process
from .run import Rebalances, Run, happenings_with_late_starts, joined_ms
from .scenario import Happening, Kind, MemberPlan, Scenario

if TYPE_CHECKING:
    from .journal import Entry
    from .twins import Twins

_BROKER = "broker"
_JOINED = (JoinGroupResponse, ConsumerGroupHeartbeatResponse)


class Simulation:
    """Connects the parts of a simulation. `run` plays the scenario once."""

    def __init__(
        self,
        scenario: Scenario,
        journal: "list[Entry] | None" = None,
        twins: "Twins | None" = None,
    ) -> None:
        self.scenario = scenario
        self.events = 0
        self._agenda = Agenda()
        self._rng = random.Random(scenario.seed)
        self._wire = Wire(scenario.network, self._rng)
        self._twins = twins
        self._holds = Holds() if twins is None else twins
        self._cluster = SimulatedCluster(scenario, self._holds, self._agenda)
        self._processes = {plan.name: self._process(plan, journal) for plan in scenario.members}
        self._sent = 0
        self._asked: dict[int, tuple[Process, int, int]] = {}  # process, incarnation, request id
        self._crashed: dict[str, str] = {}
        self._journal = journal
        self._epochs: tuple[int, int, str] | None = None
        self._rebalances = Rebalances()
        kept = journal is not None or scenario.moves_coordinator
        self._broker = Broker(
            Coordinator(scenario.broker, new_id(scenario), vouched=True, is_logged=kept),
            self._agenda,
            scenario.network.log_ms,
            self._cluster.has,
            self._watch,
            self._respond,
            self._look,
            journal,
        )
        self._liveness = Liveness(self._agenda, self._broker, self._processes, scenario.group_id)
        self._metadata = Metadata(
            self._cluster, self._processes, self._rng, self._agenda, self._tell
        )
        self._herders = Herders(
            scenario, self._processes, self._holds, self._wire, self._agenda, self._tell
        )
        self._happenings = Happenings(
            scenario,
            self._agenda,
            self._processes,
            self._holds,
            self._broker,
            self._cluster,
            self._metadata,
            self._herders,
            self._liveness,
            self._deliver,
            self._schedule,
        )
        self._happenings.publish_topics()
        self._push_all()

    def _process(self, plan: MemberPlan, journal: "list[Entry] | None") -> Process:
        """Makes a member's process; the seed decides when its first poll is due."""
        every_ms = plan.work.process_ms
        phase_ms = self._rng.randrange(every_ms) if every_ms else 0
        process = Process(plan, str(self.scenario.seed), self._holds, phase_ms, journal)
        process.wake = Timer(lambda incarnation: self._deliver(process, incarnation, Tick()))
        process.poll_now = Timer(partial(self._poll, process))
        process.refresh = Timer(lambda incarnation: self._metadata.refresh(process, incarnation))
        return process

    def _push_all(self) -> None:
        starts = (
            Happening(at_ms=plan.start_ms, kind=Kind.START, member=plan.name)
            for plan in self.scenario.members
        )
        for happening in (*starts, *self.scenario.happenings):
            self._agenda.push(happening.at_ms, partial(self._happenings.happen, happening))

    def run(self, progress: Callable[[int], None] | None = None) -> Run:
        """Plays to the end; calls `progress(now_ms)` every 1,000 events."""
        agenda, broker = self._agenda, self._broker
        while (action := agenda.pop(self.scenario.until_ms)) is not None:
            self.events += 1
            if progress is not None and self.events % 1000 == 0:
                progress(agenda.now_ms)
            action()
            self._herders.serve()
            if broker.is_touched:
                broker.arm_tick()
        return self._result()

    # Events ---------------------------------------------------------------------------------------

    def _arrive(self, process: Process, send: m.Send, number: int) -> None:
        request = send.request
        received = Received(number, request, send.api_version, process.name)
        self._broker.receive(send.node_id, received)
        if isinstance(request, JoinGroup) and request.group_instance_id:
            self._liveness.wake_replaced()

    def _poll(self, process: Process, incarnation: int) -> None:
        if process.idle_since_ms is not None:
            self._liveness.wake(process)
        self._metadata.match_again(process)
        self._deliver(process, incarnation, m.Poll(self._positions(process)))

    def _answer(self, process: Process, incarnation: int, answer: m.Answered) -> None:
        """Delivers a response when the process reads it: now, or in the application's next poll."""
        if process.incarnation == incarnation:
            response, now_ms = answer.response, self._agenda.now_ms
            member_id = response.member_id if isinstance(response, JoinGroupResponse) else ""
            at = process.reads_at_ms(now_ms)
            if at > now_ms:
                # The member sends no heartbeats until it reads the response.
                self._liveness.report_silent(member_id, now_ms)
                self._agenda.push(at, partial(self._answer, process, incarnation, answer))
                return
            if member_id in self._liveness.silent and not process.frozen_until_ms:
                self._liveness.report_heard(member_id)
                process.owes_heartbeat = True
            if isinstance(response, JoinGroupResponse):
                self._metadata.learn_topics(process, response)
        self._deliver(process, incarnation, answer)

    def _tell(self, process: Process, incarnation: int, news: m.MemberEvent) -> None:
        self._liveness.wake(process)
        self._deliver(process, incarnation, news)

    def _deliver(self, process: Process, incarnation: int, event: m.MemberEvent) -> None:
        """Passes an event to a process, unless this incarnation has ended or is frozen."""
        name, member, now_ms = process.name, process.member, self._agenda.now_ms
        answer = event.response if isinstance(event, m.Answered) else None
        if process.incarnation != incarnation or member is None:
            if isinstance(answer, JoinGroupResponse):
                # No process knows the new member id, so no heartbeat will come for it.
                self._liveness.report_silent(answer.member_id, now_ms)
            return
        if process.frozen_until_ms:
            if process.frozen_until_ms > now_ms:
                self._put_off(process, incarnation, event)
                return
            process.frozen_until_ms = 0
            self._liveness.report_heard(member.member_id)
        before = member.member_id
        sends = process.handle(event, now_ms)
        if isinstance(member, Consumer) and member.reads_nothing != process.reads_nothing:
            process.reads_nothing = member.reads_nothing
            self._holds.stick(name, now_ms, is_stuck=process.reads_nothing)
        if before and member.member_id != before:
            # The member no longer uses its old id.
            self._liveness.report_silent(before, now_ms)
        for at, send in sends:
            self._sent += 1
            self._asked[self._sent] = process, incarnation, send.request_id
            arrives = partial(self._arrive, process, send, self._sent)
            self._agenda.push(self._wire.arrival_ms(name, _BROKER, at), arrives)
        if self._twins is not None and isinstance(answer, JoinGroupResponse) and answer.members:
            ids = {key: self._processes[name] for key, name in self._rebalances.names.items()}
            assert isinstance(member, Consumer)
            self._twins.lead(member, answer, sends, ids)
        for at, connector in process.started:
            started = partial(self._herders.started, process, incarnation, connector)
            self._agenda.push(at, started)
        process.started.clear()
        if process.returns_at_ms is not None:
            returns = partial(self._deliver, process, incarnation, m.CallbackCompleted())
            self._agenda.push(process.returns_at_ms, returns)
            process.returns_at_ms = None
        if process.crashed is not None:
            # poll() has thrown an exception, and the application exits without close().
            fatal = process.crashed
            self._crashed[name] = f"{fatal.error_code}: {fatal.message}"
            self._happenings.end(process)
        elif isinstance(answer, _JOINED):
            self._metadata.refresh_early(process)
        self._schedule(process)

    def _put_off(self, process: Process, incarnation: int, event: m.MemberEvent) -> None:
        """Schedules an event for a frozen process again, at the end of the freeze."""
        again: Action
        match event:
            case m.Answered():
                again = partial(self._answer, process, incarnation, event)
            case m.CallbackCompleted():
                again = partial(self._deliver, process, incarnation, event)
            case m.ConfigurationUpdated():
                again = partial(self._tell, process, incarnation, self._herders.config.newest())
            case _:
                self._schedule(process)
                return
        self._agenda.push(process.frozen_until_ms, again)

    def _schedule(self, process: Process) -> None:
        """Sets the next timers of a process; a process at rest becomes idle, without a `wake`."""
        member, agenda, now_ms = process.member, self._agenda, self._agenda.now_ms
        if member is None:
            return
        wake, poll = member.next_deadline_ms(), process.poll_at_ms(now_ms)
        if (
            wake is not None
            and wake > now_ms
            and process.polls_from_ms <= now_ms
            and not (process.frozen_until_ms or process.owes_heartbeat)
            and self._liveness.is_at_rest(member)
        ):
            process.idle_since_ms = now_ms
            process.wake.due_ms = process.poll_now.due_ms = None
        else:
            process.idle_since_ms = None
            if wake is not None:
                at = max(wake, now_ms, process.frozen_until_ms)
                agenda.arm(at, process.wake, process.incarnation)
            if poll is None and process.polls_from_ms > now_ms:
                poll = process.polls_from_ms
        if poll is not None:
            agenda.arm(poll, process.poll_now, process.incarnation)

    # Broker ---------------------------------------------------------------------------------------

    def _respond(self, number: int, response: Response) -> None:
        process, incarnation, request_id = self._asked.pop(number)
        now_ms = self._agenda.now_ms
        if isinstance(response, _JOINED) and response.member_id:
            self._rebalances.learn(response.member_id, process.name, now_ms)
        at = self._wire.arrival_ms(_BROKER, process.name, now_ms)
        answer = m.Answered(request_id, response)
        self._agenda.push(at, partial(self._answer, process, incarnation, answer))

    def _look(self, cause: str) -> None:
        now_ms, group = self._agenda.now_ms, self._broker.consumer_group(self.scenario.group_id)
        if group is None:
            return
        if self._journal is not None:
            epochs = (group.epoch, group.assignment_epoch, str(group.state))
            if epochs != self._epochs:
                from .journal import EpochEntry

                self._journal.append(EpochEntry(now_ms, group.group_id, *epochs))
                self._epochs = epochs
        if self._rebalances.watch_epochs(now_ms, group, cause):
            self._liveness.wake_all()

    def _watch(self, transition: Transition, cause: str) -> None:
        sender = self._processes.get(self._broker.sender)
        gave_up_in = None if sender is None else sender.gave_up_in
        by_broker = self._broker.consumer_group(self.scenario.group_id)
        if transition.after is GroupState.DEAD and by_broker is not None:
            return  # the group has not ended: it has become a consumer group
        self._rebalances.watch(self._agenda.now_ms, transition, cause, gave_up_in)
        if transition.after is GroupState.PREPARING_REBALANCE:
            self._liveness.wake_all()

    def _positions(self, process: Process) -> tuple[tuple[TopicPartition, int], ...]:
        """Returns the positions that a consumer commits.

        Assumes that each partition gets one record per ms, and that the consumer has read all
        records.
        """
        consumer, now_ms = process.consumer, self._agenda.now_ms
        return tuple([(one, now_ms) for one in consumer.owned_partitions]) if consumer else ()

    def _result(self) -> Run:
        until = self.scenario.until_ms
        holds = self._holds.finish(until)
        rates = {
            f"{name}-{number}": plan.records_per_second
            for name, plan in self.scenario.topics.items()
            for number in range(self._cluster.partitions.get(name, 0))
        }
        return Run(
            title=self.scenario.title,
            until_ms=until,
            held=self.scenario.held,
            assumed=self.scenario.assumed(),
            members=tuple(self._processes),
            happenings=happenings_with_late_starts(self.scenario),
            holds=tuple(holds),
            gaps=tuple(self._holds.gaps(holds, until)),
            rebalances=tuple(self._rebalances.seen),
            joined_ms=joined_ms(self.scenario, self._rebalances.joined_ms),
            absences=self._happenings.absences(until),
            empty_handed=tuple(
                (process.name, at)
                for process in self._processes.values()
                for at in process.empty_handed
            ),
            crashed=self._crashed,
            events=self.events,
            rates=rates,
        )


def new_id(scenario: Scenario) -> Callable[[], str]:
    rng = random.Random(f"{scenario.seed} ids")

    def random_uuid() -> str:  # importing `uuid` takes longer than a small run
        number = rng.getrandbits(128) & ~(0xF000 << 64 | 0xC000 << 48) | 0x4000 << 64 | 0x8000 << 48
        return in_hex(number.to_bytes(16, "big"))

    return random_uuid


def simulate(
    scenario: Scenario,
    *,
    progress: Callable[[int], None] | None = None,
    journal: "list[Entry] | None" = None,
) -> Run:
    """Plays a scenario once; `journal` collects the events and effects of every state machine."""
    if not isinstance(scenario, Scenario):
        raise TypeError(f"scenario: {a_type(scenario)} is not a Scenario")
    return Simulation(scenario, journal).run(progress)
