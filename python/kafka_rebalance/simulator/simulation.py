# SPDX-License-Identifier: Apache-2.0
"""Plays a scenario in virtual time: takes each event from the agenda, and carries it out.

    agenda       the heap of events, and the timers of processes
    happenings   the scenario's own events
    liveness     members whose heartbeats are not simulated, and members that are silent

Equal scenarios lead to equal runs, because all random choices depend on the scenario's seed. If a
`journal` is given, the events of every state machine are added to it, for a replay of the run.
"""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import kafka_rebalance.member.interface as m
from kafka_rebalance.coordinator.coordinator import Coordinator
from kafka_rebalance.coordinator.machine.events import Appended, PatternsDue, Received, Transition
from kafka_rebalance.group.field_paths import a_type
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.member.consumer import Consumer
from kafka_rebalance.plans.changes.made_up import in_hex
from kafka_rebalance.wire.broker_groups import ConsumerGroupHeartbeatResponse
from kafka_rebalance.wire.classic_groups import JoinGroup, JoinGroupResponse
from kafka_rebalance.wire.messages import GroupState, Response, Tick

from . import agenda as scheduled
from .broker import Broker
from .cluster import Metadata, SimulatedCluster
from .happenings import Happenings
from .herders import Herders
from .intervals import Holds
from .liveness import Liveness
from .network import Wire
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
        self._agenda = scheduled.Agenda()
        self._rng = random.Random(scenario.seed)
        self._wire = Wire(scenario.network, self._rng)
        self._twins = twins
        self._holds = Holds() if twins is None else twins
        self._cluster = SimulatedCluster(scenario, self._holds)
        self._processes = {plan.name: self._process(plan, journal) for plan in scenario.members}
        self._sent = 0
        self._asked: dict[int, scheduled.Arrive] = {}
        self._crashed: dict[str, str] = {}
        self._tick_at: int | None = None
        self._journal = journal
        self._epochs: tuple[int, int, str] | None = None
        self._rebalances = Rebalances()
        kept = journal is not None or scenario.moves_coordinator
        new = new_id(scenario)
        coordinator = Coordinator(scenario.broker, new, vouched=True, is_logged=kept)
        self._broker = Broker(
            coordinator,
            self._cluster.has,
            self._watch,
            self._respond,
            self._append,
            self._look,
            journal,
        )
        self._liveness = Liveness(self._agenda, self._broker, self._processes, scenario.group_id)
        self._metadata = Metadata(
            self._cluster, self._processes, self._rng, self._agenda, self._deliver_metadata
        )
        self._herders = Herders(scenario, self._processes, self._holds, self._wire, self._agenda)
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
        self._plays = self._how_to_play()

    def _process(self, plan: MemberPlan, journal: "list[Entry] | None") -> Process:
        """Makes a member's process; the seed decides when its first poll is due."""
        every_ms = plan.work.process_ms
        phase_ms = self._rng.randrange(every_ms) if every_ms else 0
        return Process(plan, str(self.scenario.seed), self._holds, phase_ms, journal)

    def _push_all(self) -> None:
        for plan in self.scenario.members:
            start = Happening(at_ms=plan.start_ms, kind=Kind.START, member=plan.name)
            self._agenda.push(plan.start_ms, start)
        for happening in self.scenario.happenings:
            self._agenda.push(happening.at_ms, happening)

    @property
    def now_ms(self) -> int:
        return self._agenda.now_ms

    def run(self, progress: Callable[[int], None] | None = None) -> Run:
        """Plays to the end; calls `progress(now_ms)` after every 1,000 events."""
        agenda, broker, plays = self._agenda, self._broker, self._plays
        while (event := agenda.pop(self.scenario.until_ms)) is not None:
            self.events += 1
            if progress is not None and self.events % 1000 == 0:
                progress(self.now_ms)
            plays[type(event)](event)
            self._herders.serve(agenda.now_ms)
            if broker.is_touched:
                broker.is_touched = False
                self._arm_tick()
        return self._result()

    # Events ---------------------------------------------------------------------------------------

    def _how_to_play(self) -> dict[type, Callable[[Any], None]]:
        return {
            scheduled.Arrive: self._arrive,
            scheduled.Reply: self._answer,
            scheduled.Wake: self._wake,
            scheduled.PollNow: self._poll,
            scheduled.Refresh: self._refresh,
            scheduled.Read: self._read,
            scheduled.Started: self._herders.started,
            scheduled.Returned: self._return,
            scheduled.ClientRequest: self._herders.ask,
            scheduled.TickNow: self._tick,
            Appended: self._appended,
            PatternsDue: self._appended,
            scheduled.Unstuck: self._happenings.unstick,
            scheduled.Back: self._happenings.come_back,
            scheduled.Loading: self._happenings.load,
            Happening: self._happenings.happen,
        }

    def _arrive(self, event: scheduled.Arrive) -> None:
        name, send = event.process, event.send
        received = Received(event.number, send.request, send.api_version, name)
        self._broker.receive(send.node_id, received, name, self._agenda.now_ms)
        if isinstance(send.request, JoinGroup) and send.request.group_instance_id:
            self._liveness.wake_replaced()

    def _wake(self, event: scheduled.Wake) -> None:
        if self._agenda.is_due(event):
            self._deliver(event.process, event.incarnation, Tick())

    def _poll(self, event: scheduled.PollNow) -> None:
        if self._agenda.is_due(event):
            process = self._processes[event.process]
            if process.idle_since_ms is not None:
                self._liveness.wake(process)
            self._metadata.match_again(process, self._agenda.now_ms)
            self._deliver(event.process, event.incarnation, m.Poll(self._positions(process)))

    def _refresh(self, event: scheduled.Refresh) -> None:
        if self._agenda.is_due(event):
            process = self._processes[event.process]
            self._metadata.refresh(process, event.incarnation, self._agenda.now_ms)

    def _read(self, event: scheduled.Read) -> None:
        self._liveness.wake(self._processes[event.process])
        self._deliver(event.process, event.incarnation, event.news)

    def _return(self, event: scheduled.Returned) -> None:
        self._deliver(event.process, event.incarnation, m.CallbackCompleted())

    def _tick(self, _: scheduled.TickNow) -> None:
        if self._tick_at == self._agenda.now_ms:
            self._tick_at = None
            self._broker.handle(Tick(), self._agenda.now_ms, "time is up")

    def _appended(self, event: Appended | PatternsDue) -> None:
        self._broker.handle(event, self._agenda.now_ms, "the log answers")

    def _answer(self, event: scheduled.Reply) -> None:
        """Delivers a response when the process reads it: now, or in the application's next poll."""
        process, response = self._processes[event.process], event.response
        if process.incarnation == event.incarnation:
            now_ms = self._agenda.now_ms
            member_id = response.member_id if isinstance(response, JoinGroupResponse) else ""
            at = process.reads_at_ms(now_ms)
            if at > now_ms:
                # The member sends no heartbeats until it reads the response.
                self._liveness.report_silent(member_id, now_ms)
                self._agenda.push(at, event)
                return
            if member_id in self._liveness.silent and not process.frozen_until_ms:
                self._liveness.report_heard(member_id)
                process.owes_heartbeat = True
            if isinstance(response, JoinGroupResponse):
                self._metadata.learn_topics(process, response, now_ms)
        self._deliver(event.process, event.incarnation, m.Answered(event.request_id, response))

    def _deliver_metadata(self, process: Process, news: m.MetadataUpdated) -> None:
        self._liveness.wake(process)
        self._deliver(process.name, process.incarnation, news)

    def _deliver(self, name: str, incarnation: int, event: m.MemberEvent) -> None:
        """Passes an event to a process, unless this incarnation has ended or is frozen."""
        process, now_ms = self._processes[name], self._agenda.now_ms
        member = process.member
        answer = event.response if isinstance(event, m.Answered) else None
        if process.incarnation != incarnation or member is None:
            if isinstance(answer, JoinGroupResponse):
                # No process knows the new member id, so no heartbeat will come for it.
                self._liveness.report_silent(answer.member_id, now_ms)
            return
        if process.frozen_until_ms:
            if process.frozen_until_ms > now_ms:
                self._put_off(process, event)
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
            arrive = self._asked[self._sent] = scheduled.Arrive(name, incarnation, send, self._sent)
            self._agenda.push(self._wire.arrival_ms(name, _BROKER, at), arrive)
        if self._twins is not None and isinstance(answer, JoinGroupResponse) and answer.members:
            ids = {key: self._processes[name] for key, name in self._rebalances.names.items()}
            assert isinstance(member, Consumer)
            self._twins.lead(member, answer, sends, ids)
        if process.started:
            for at, connector in process.started:
                self._agenda.push(at, scheduled.Started(name, incarnation, connector))
            process.started.clear()
        if process.returns_at_ms is not None:
            self._agenda.push(process.returns_at_ms, scheduled.Returned(name, incarnation))
            process.returns_at_ms = None
        if process.crashed is not None:
            # poll() has thrown an exception, and the application exits without close().
            fatal = process.crashed
            self._crashed[name] = f"{fatal.error_code}: {fatal.message}"
            self._happenings.end(process)
        elif isinstance(answer, _JOINED):
            self._metadata.refresh_early(process, now_ms)
        self._schedule(process)

    def _put_off(self, process: Process, event: m.MemberEvent) -> None:
        """Schedules an event of a frozen process again, at the end of the freeze."""
        name, incarnation = process.name, process.incarnation
        later: scheduled.ScheduledEvent
        if isinstance(event, m.Answered):
            later = scheduled.Reply(name, incarnation, event.request_id, event.response)
        elif isinstance(event, m.CallbackCompleted):
            later = scheduled.Returned(name, incarnation)
        elif isinstance(event, m.ConfigurationUpdated):
            later = scheduled.Read(name, incarnation, self._herders.config.newest())
        else:
            self._schedule(process)
            return
        self._agenda.push(process.frozen_until_ms, later)

    def _schedule(self, process: Process) -> None:
        """Sets the next timers of a process; a process at rest becomes idle and has no Wake."""
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
            agenda.disarm(process.wake)
            agenda.disarm(process.poll_now)
        else:
            process.idle_since_ms = None
            if wake is not None:
                agenda.arm(max(wake, now_ms, process.frozen_until_ms), process.wake)
            if poll is None and process.polls_from_ms > now_ms:
                poll = process.polls_from_ms
        if poll is not None:
            agenda.arm(poll, process.poll_now)

    # Broker ---------------------------------------------------------------------------------------

    def _respond(self, number: int, response: Response) -> None:
        asked = self._asked.pop(number)
        if isinstance(response, _JOINED) and response.member_id:
            self._rebalances.learn(response.member_id, asked.process, self._agenda.now_ms)
        at = self._wire.arrival_ms(_BROKER, asked.process, self._agenda.now_ms)
        reply = scheduled.Reply(asked.process, asked.incarnation, asked.send.request_id, response)
        self._agenda.push(at, reply)

    def _look(self, now_ms: int, cause: str) -> None:
        group = self._broker.consumer_group(self.scenario.group_id)
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

    def _append(self, event: Appended | PatternsDue) -> None:
        self._agenda.push(self._agenda.now_ms + self.scenario.network.log_ms, event)

    def _watch(self, now_ms: int, transition: Transition, cause: str) -> None:
        sender = self._processes.get(self._broker.sender)
        gave_up_in = None if sender is None else sender.gave_up_in
        by_broker = self._broker.consumer_group(self.scenario.group_id)
        if transition.after is GroupState.DEAD and by_broker is not None:
            return  # not an end: the classic group has become a consumer group
        self._rebalances.watch(now_ms, transition, cause, gave_up_in)
        if transition.after is GroupState.PREPARING_REBALANCE:
            self._liveness.wake_all()

    def _arm_tick(self) -> None:
        due = self._broker.coordinator.next_deadline_ms()
        if due is not None and (self._tick_at is None or due < self._tick_at):
            self._tick_at = max(due, self.now_ms)
            self._agenda.push(self._tick_at, scheduled.TickNow())

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
