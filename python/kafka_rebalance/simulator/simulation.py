# SPDX-License-Identifier: Apache-2.0
"""Virtual time over a broker and its members: plain events on a heap of (at_ms, sequence, event).

A member that has nothing to do but heartbeats is idle: nothing is simulated for it, and it is
vouched for when something happens again. The coordinator, likewise, only times members that are
silent. So a group at rest costs nothing.

The same scenario gives the same run: all that is drawn comes from its seed. `journal` keeps what
went into every state machine, so that a run can be played again without the simulator.
"""

import heapq
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from uuid import UUID

from kafka_rebalance import member as m
from kafka_rebalance.coordinator import Appended, Received, Transition
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.protocol import GroupState, JoinGroup, JoinGroupResponse, Response, Tick

from .broker import Broker
from .cluster import SimulatedCluster
from .herders import Herders
from .intervals import Holds
from .journal import Entry
from .metadata import Metadata
from .network import Wire
from .process import Process
from .rebalances import Rebalances
from .run import Absence, Run
from .scenario import Happening, Kind, MemberConfig, Scenario
from .scheduled import (
    Arrive,
    Back,
    ClientRequest,
    Loading,
    PollNow,
    Read,
    Refresh,
    Reply,
    ScheduledEvent,
    Started,
    TickNow,
    Unstuck,
    Wake,
)

_BROKER = "broker"
START_UP_MS = 10_000  # who starts so soon after the first ones starts with them


class Simulation:
    """`run()` plays the scenario once."""

    def __init__(self, scenario: Scenario, journal: list[Entry] | None = None) -> None:
        self.scenario = scenario
        self.now_ms = 0
        self.events = 0
        self._rng = random.Random(scenario.seed)
        self._wire = Wire(scenario.network, self._rng)
        self._heap: list[tuple[int, int, ScheduledEvent]] = []
        self._sequence = count()
        self._holds = Holds()
        self._cluster = SimulatedCluster(scenario, self._holds)
        self._processes = {
            plan.name: Process(
                plan, str(scenario.seed), self._holds, self._phase(plan.work.process_ms), journal
            )
            for plan in scenario.members
        }
        self._numbers = count(1)
        self._asked: dict[int, Arrive] = {}
        self._silent: set[str] = set()
        self._crashed: dict[str, str] = {}
        self._absences: list[Absence] = []
        self._down_since: dict[str, int] = {}
        self._absences_of_coordinator = 0  # that overlap
        self._pending: dict[tuple[str, type], int] = {}  # the next Wake and Poll of a process
        self._tick_at: int | None = None
        self._rebalances = Rebalances()
        self._broker = Broker(
            scenario.broker, new_id(scenario), self._watch, self._respond, self._append, journal
        )
        self._metadata = Metadata(
            self._cluster, self._processes, self._rng, self._pending, self._tell_news, self._arm
        )
        self._herders = Herders(
            scenario, self._processes, self._holds, self._wire, self._push, self._arm
        )
        for plan in scenario.members:
            start = Happening(at_ms=plan.start_ms, kind=Kind.START, member=plan.name)
            self._push(plan.start_ms, start)
        for happening in scenario.happenings:
            self._push(happening.at_ms, happening)

    def _phase(self, every_ms: int) -> int:
        return self._rng.randrange(every_ms) if every_ms else 0

    def run(self, progress: Callable[[int], None] | None = None) -> Run:
        """Plays to the end; `progress` is told the time now and then."""
        while self._heap and self._heap[0][0] <= self.scenario.until_ms:
            self.now_ms, _, event = heapq.heappop(self._heap)
            self.events += 1
            if progress is not None and self.events % 1000 == 0:
                progress(self.now_ms)
            self._play(event)
            self._herders.serve(self.now_ms)
            self._arm_tick()
        return self._result()

    # Events ---------------------------------------------------------------------------------------

    def _play(self, event: ScheduledEvent) -> None:
        match event:
            case Arrive(name, _, send, number):
                sender = self._processes[name]
                received = Received(number, send.request, send.api_version, sender.name)
                self._broker.receive(send.node_id, received, name, self.now_ms)
                if isinstance(send.request, JoinGroup) and send.request.group_instance_id:
                    self._wake_replaced()
            case Reply():
                self._answer(event)
            case Wake(name, incarnation):
                if self._is_due(name, Wake):
                    self._tell(name, incarnation, Tick())
            case PollNow(name, incarnation):
                if self._is_due(name, PollNow):
                    self._wake_up(self._processes[name])
                    self._metadata.match_anew(self._processes[name], self.now_ms)
                    self._tell(name, incarnation, m.Poll(self._positions(name)))
            case Read(name, incarnation, news):
                self._wake_up(self._processes[name])
                self._tell(name, incarnation, news)
            case Started():
                self._herders.started(event)
            case Unstuck(name, incarnation):
                process = self._processes[name]
                until = max(process.polls_from_ms, process.frozen_until_ms)
                if process.incarnation == incarnation and until <= self.now_ms:
                    self._holds.stick(name, self.now_ms, is_stuck=False)
            case ClientRequest():
                self._herders.ask(event)
            case Refresh(name, incarnation):
                if self._is_due(name, Refresh):
                    self._metadata.refresh(self._processes[name], incarnation, self.now_ms)
            case TickNow():
                if self._tick_at == self.now_ms:
                    self._tick_at = None
                    self._broker.tick(self.now_ms)
            case Appended():
                self._broker.appended(event, self.now_ms)
            case Back(happening):
                self._cluster.come_back(happening, self.now_ms)
                self._metadata.refresh_soon(self.now_ms)
            case Loading():
                self._load()
            case Happening():
                self._happen(event)

    def _answer(self, event: Reply) -> None:
        """A response is there, and read at once or with the application's next poll."""
        process, response = self._processes[event.process], event.response
        if process.incarnation == event.incarnation:
            member_id = response.member_id if isinstance(response, JoinGroupResponse) else ""
            at = process.reads_at_ms(self.now_ms)
            if at > self.now_ms:
                # The group may go on without a member that sends no heartbeats before it reads.
                self._say_silent(member_id, self.now_ms)
                self._push(at, event)
                return
            if member_id in self._silent and not process.frozen_until_ms:
                self._silent.discard(member_id)
                self._broker.heard(self.scenario.group_id, member_id, self.now_ms)
                process.owes_heartbeat = True
            if isinstance(response, JoinGroupResponse):
                self._metadata.learn_topics(process, response, self.now_ms)
        self._tell(event.process, event.incarnation, m.Answered(event.request_id, response))

    def _happen(self, event: Happening) -> None:
        process = self._processes.get(event.member)
        match event.kind:
            case Kind.CREATE_TOPIC:
                self._cluster.create(event.topic, self.now_ms)
            case Kind.GROW:
                self._cluster.grow(event.topic, event.partitions, self.now_ms)
            case Kind.AWAY:
                self._lose_broker(event)
            case Kind.MOVE:
                self._move(event.for_ms)
            case Kind.CREATE | Kind.DELETE:
                self._herders.ask(ClientRequest(event))
        if process is None:
            return
        self._wake_up(process)
        match event.kind:
            case Kind.START if not process.is_up and process.busy_until_ms > self.now_ms:
                self._push(process.busy_until_ms, event)  # the one before is still stopping
            case Kind.START if not process.is_up:
                self._start(process, event.config)
            case Kind.STOP if process.is_up:
                self._down_since[process.name] = self.now_ms
                self._close(process)
            case Kind.KILL if process.is_up:
                self._down_since[process.name] = self.now_ms
                self._fall_silent(process)
                process.stop(self.now_ms)
            case Kind.PAUSE if process.is_up:
                until = self.now_ms + event.for_ms
                process.polls_from_ms = max(process.polls_from_ms, until)
                self._get_stuck(process, process.polls_from_ms)
            case Kind.FREEZE if process.is_up:
                self._fall_silent(process)
                until = self.now_ms + event.for_ms
                process.frozen_until_ms = max(process.frozen_until_ms, until)
                self._get_stuck(process, process.frozen_until_ms)

    def _move(self, for_ms: int) -> None:
        """Nobody coordinates for so long, then another does."""
        if not self._absences_of_coordinator:
            self._broker.leave_node(self.now_ms)
        self._absences_of_coordinator += 1
        self._push(self.now_ms + for_ms, Loading())
        self._wake_all()

    def _load(self) -> None:
        """The last absence of a coordinator is over: sessions start anew."""
        self._absences_of_coordinator -= 1
        if not self._absences_of_coordinator:
            self._broker.take_node(self.now_ms)
            for member_id in sorted(self._silent):
                self._say_silent(member_id, self.now_ms)

    def _lose_broker(self, event: Happening) -> None:
        back = self.now_ms + event.for_ms
        self._cluster.leave(event, self.now_ms)
        self._push(back, Back(event))
        if event.coordinates:
            self._move(event.for_ms)
        if self._cluster.is_reachable():
            self._metadata.refresh_soon(self.now_ms)  # who was connected to it asks another
        dark = set(self._cluster.led(event))
        for process in self._processes.values():
            if dark and dark.issuperset(process.held):
                self._absences.append(Absence(process.name, self.now_ms, back))

    def _close(self, process: Process) -> None:
        """A static member says nothing, and a LeaveGroup may be lost."""
        member = process.member
        assert member is not None
        member_id = member.member_id
        self._fall_silent(process)
        self._tell(process.name, process.incarnation, m.Close())
        if isinstance(member, m.Worker):
            # Its heartbeats go on while connectors and tasks stop.
            self._say_silent(member_id, process.busy_until_ms)
        process.stop(self.now_ms)

    def _get_stuck(self, process: Process, until_ms: int) -> None:
        self._holds.stick(process.name, self.now_ms, is_stuck=True)
        self._absences.append(Absence(process.name, self.now_ms, until_ms))
        self._push(until_ms, Unstuck(process.name, process.incarnation))
        self._schedule(process)

    def _start(self, process: Process, config: MemberConfig | None) -> None:
        down = self._down_since.pop(process.name, None)
        if down is not None:
            self._absences.append(Absence(process.name, down, self.now_ms))
        config = config or process.plan.config
        member = process.start(replace(config, group_id=self.scenario.group_id))
        name, incarnation = process.name, process.incarnation
        if isinstance(member, m.Worker):
            self._tell(name, incarnation, self._herders.config.newest())
            return
        self._tell(name, incarnation, m.MetadataUpdated(self._cluster.metadata(self.now_ms)))
        pattern = process.plan.pattern
        wants = m.SubscribePattern(pattern) if pattern else m.Subscribe(process.plan.topics)
        self._tell(name, incarnation, wants)
        self._metadata.start(process, self.now_ms)

    def _tell_news(self, process: Process, news: m.MetadataUpdated) -> None:
        self._wake_up(process)
        self._tell(process.name, process.incarnation, news)

    def _tell(self, name: str, incarnation: int, event: m.MemberEvent) -> None:
        """An event of a process, unless it is another process by now."""
        process = self._processes[name]
        if process.incarnation != incarnation or not process.is_up:
            if isinstance(event, m.Answered) and isinstance(event.response, JoinGroupResponse):
                # Nobody has ever heard of this id.
                self._say_silent(event.response.member_id, self.now_ms)
            return
        if process.frozen_until_ms > self.now_ms:
            if isinstance(event, m.Answered):  # it waits in the socket
                self._push(
                    process.frozen_until_ms,
                    Reply(name, incarnation, event.request_id, event.response),
                )
            elif isinstance(event, m.ConfigurationUpdated):  # it reads to the end, once it can
                self._push(
                    process.frozen_until_ms, Read(name, incarnation, self._herders.config.newest())
                )
            else:
                self._schedule(process)
            return
        member = process.member
        assert member is not None
        if process.frozen_until_ms:
            process.frozen_until_ms = 0
            self._silent.discard(member.member_id)
            self._broker.heard(self.scenario.group_id, member.member_id, self.now_ms)
        before = member.member_id
        sends = process.handle(event, self.now_ms)
        if before and member.member_id != before:
            self._say_silent(before, self.now_ms)  # it has forgotten this id
        for at, send in sends:
            number = next(self._numbers)
            arrive = Arrive(name, incarnation, send, number)
            self._asked[number] = arrive
            self._push(self._wire.arrival_ms(name, _BROKER, at), arrive)
        for at, connector in process.started:
            self._push(at, Started(name, incarnation, connector))
        process.started.clear()
        if process.crashed is not None:
            # poll() has thrown, and the application with it: nothing is closed.
            fatal = process.crashed
            self._crashed[name] = f"{fatal.error_code}: {fatal.message}"
            self._fall_silent(process)
            self._down_since[name] = self.now_ms
            process.stop(self.now_ms)
        elif isinstance(event, m.Answered) and isinstance(event.response, JoinGroupResponse):
            self._metadata.refresh_early(process, self.now_ms)
        self._schedule(process)

    def _schedule(self, process: Process) -> None:
        """When a process does something next; never, where it is idle."""
        member = process.member
        if member is None:
            return
        wake, poll = member.next_deadline_ms(), process.poll_at_ms(self.now_ms)
        works = process.polls_from_ms <= self.now_ms and not process.frozen_until_ms
        works = works and not process.owes_heartbeat
        if works and self._is_at_rest(member) and wake is not None and wake > self.now_ms:
            process.idle_since_ms = self.now_ms
            self._pending.pop((process.name, Wake), None)
            self._pending.pop((process.name, PollNow), None)
            if poll is not None:
                self._arm(poll, PollNow(process.name, process.incarnation))
            return
        process.idle_since_ms = None
        if wake is not None:
            wake = max(wake, self.now_ms, process.frozen_until_ms)
            self._arm(wake, Wake(process.name, process.incarnation))
        if poll is None and process.polls_from_ms > self.now_ms:
            poll = process.polls_from_ms
        if poll is not None:
            self._arm(poll, PollNow(process.name, process.incarnation))

    def _arm(self, at: int, event: Wake | PollNow | Refresh) -> None:
        key = (event.process, type(event))
        if self._pending.get(key) != at:
            self._pending[key] = at
            self._push(at, event)

    def _is_due(self, name: str, kind: type) -> bool:
        """Whether this is the newest of its kind for the process."""
        if self._pending.get((name, kind)) != self.now_ms:
            return False
        del self._pending[name, kind]
        return True

    # Idle members ---------------------------------------------------------------------------------

    def _wake_up(self, process: Process) -> None:
        """Something happens: an idle member was well until now."""
        if process.idle_since_ms is None or process.member is None:
            return
        every = process.plan.config.heartbeat_interval_ms
        beats = (self.now_ms - process.idle_since_ms) // every
        last = process.idle_since_ms + beats * every
        process.idle_since_ms = None
        process.handle(m.Vouched(last, self.now_ms), self.now_ms)
        self._schedule_woken(process)

    def _schedule_woken(self, process: Process) -> None:
        assert process.member is not None
        wake = process.member.next_deadline_ms()
        if wake is not None:
            self._arm(max(wake, self.now_ms), Wake(process.name, process.incarnation))

    def _wake_all(self) -> None:
        for process in self._processes.values():
            self._wake_up(process)

    def _wake_replaced(self) -> None:
        """A static member may have taken another's place, without a rebalance."""
        for process in self._processes.values():
            member = process.member if process.idle_since_ms is not None else None
            if member is not None and not self._is_at_rest(member):
                self._wake_up(process)

    def _fall_silent(self, process: Process) -> None:
        """Its last heartbeat was so long ago as its clock says."""
        member = process.member
        if member is None or not member.member_id:
            return
        due = member.next_heartbeat_ms()
        every = process.plan.config.heartbeat_interval_ms
        since = self.now_ms if due is None else max(due - every, 0)
        self._say_silent(member.member_id, min(since, self.now_ms))

    def _say_silent(self, member_id: str, since_ms: int) -> None:
        if not member_id:
            return
        self._silent.add(member_id)
        self._broker.silent(self.scenario.group_id, member_id, since_ms, self.now_ms)

    def _is_at_rest(self, member: m.GroupMember) -> bool:
        """Whether heartbeats would change nothing: it is in a Stable group's generation."""
        group = self._broker.coordinator.groups().get(self.scenario.group_id)
        return (
            member.is_idle()
            and group is not None
            and group.is_(GroupState.STABLE)
            and group.generation_id == member.generation_id
            and group.has(member.member_id)
        )

    # Broker ---------------------------------------------------------------------------------------

    def _respond(self, number: int, response: Response) -> None:
        asked = self._asked.pop(number)
        if isinstance(response, JoinGroupResponse) and response.member_id:
            self._rebalances.learn(response.member_id, asked.process)
        at = self._wire.arrival_ms(_BROKER, asked.process, self.now_ms)
        reply = Reply(asked.process, asked.incarnation, asked.send.request_id, response)
        self._push(at, reply)

    def _append(self, event: Appended) -> None:
        self._push(self.now_ms + self.scenario.network.log_ms, event)

    def _watch(self, now_ms: int, transition: Transition, cause: str) -> None:
        sender = self._processes.get(self._broker.sender)
        gave_up_in = None if sender is None else sender.gave_up_in
        self._rebalances.watch(now_ms, transition, cause, gave_up_in)
        if transition.after is GroupState.PREPARING_REBALANCE:
            self._wake_all()

    def _arm_tick(self) -> None:
        due = self._broker.next_deadline_ms()
        if due is not None and (self._tick_at is None or due < self._tick_at):
            self._tick_at = max(due, self.now_ms)
            self._push(self._tick_at, TickNow())

    def _positions(self, name: str) -> tuple[tuple[TopicPartition, int], ...]:
        """How far each partition has been read; a record a ms will do."""
        member = self._processes[name].member
        owned = member.owned_partitions if isinstance(member, m.Consumer) else ()
        return tuple((one, self.now_ms) for one in owned)

    def _push(self, at: int, event: ScheduledEvent) -> None:
        heapq.heappush(self._heap, (at, next(self._sequence), event))

    def _happened(self) -> tuple[Happening, ...]:
        """What the scenario says, and who comes later than the first members."""
        first = min(plan.start_ms for plan in self.scenario.members)
        starts = (
            Happening(at_ms=plan.start_ms, kind=Kind.START, member=plan.name)
            for plan in self.scenario.members
            if plan.start_ms > first + START_UP_MS
        )
        return tuple(sorted((*self.scenario.happenings, *starts), key=lambda one: one.at_ms))

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
            happenings=self._happened(),
            holds=tuple(holds),
            gaps=tuple(self._holds.gaps(holds, until)),
            rebalances=tuple(self._rebalances.seen),
            absences=(
                *self._absences,
                *(Absence(name, since, until) for name, since in self._down_since.items()),
            ),
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
    """The ids that the coordinator of this scenario hands out."""
    rng = random.Random(f"{scenario.seed} ids")
    return lambda: str(UUID(int=rng.getrandbits(128), version=4))


def simulate(
    scenario: Scenario,
    *,
    progress: Callable[[int], None] | None = None,
    journal: list[Entry] | None = None,
) -> Run:
    """Plays a scenario once; into `journal` goes what every state machine was told and did."""
    return Simulation(scenario, journal).run(progress)
