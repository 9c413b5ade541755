"""Virtual time over a broker and its members: plain events on a heap of (at_ms, sequence, event).

    Arrive   a request comes to a node            Reply    a response comes to a process
    Wake     a member's deadline                  Poll     its application polls
    Tick     a deadline of the coordinator        Done     the log has taken an append
    Happen   something of the scenario            Refresh  a client's metadata is old

A member that has nothing to do but heartbeats is idle: nothing is simulated for it, and it is
vouched for when something happens again. The coordinator, likewise, only times members that are
silent. So a group at rest costs nothing.

The same scenario gives the same run: all that is drawn comes from its seed.
"""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from uuid import UUID

from kafka_rebalance import member as m
from kafka_rebalance.coordinator import (
    Appended,
    GroupState,
    JoinGroupResponse,
    Received,
    Response,
    Transition,
)
from kafka_rebalance.member import Send
from kafka_rebalance.model import Topic, TopicPartition

from .broker import Broker
from .holds import Holds
from .network import Wire
from .process import Process
from .run import Rebalance, Run
from .scenario import Happening, Kind, Scenario

_BROKER = "broker"


@dataclass(frozen=True, slots=True)
class Arrive:
    """A request of a process comes to a node."""

    process: str
    incarnation: int
    send: Send
    number: int


@dataclass(frozen=True, slots=True)
class Reply:
    """A response comes back."""

    process: str
    incarnation: int
    request_id: int
    response: Response


@dataclass(frozen=True, slots=True)
class Wake:
    """A deadline of a member."""

    process: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class PollNow:
    """The application polls."""

    process: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class Refresh:
    """The client fetches metadata."""

    process: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class TickNow:
    """A deadline of the coordinator."""


@dataclass(frozen=True, slots=True)
class Loading:
    """Another node takes the coordinator's place."""


Event = Arrive | Reply | Wake | PollNow | Refresh | TickNow | Loading | Appended | Happening


class Simulation:
    """`run()` plays the scenario once."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.now_ms = 0
        self.events = 0
        self._rng = random.Random(scenario.seed)
        self._wire = Wire(scenario.network, self._rng)
        self._heap: list[tuple[int, int, Event]] = []
        self._sequence = count()
        self._holds = Holds()
        self._topics = {name: plan.partitions for name, plan in scenario.topics.items()}
        self._processes = {
            plan.name: Process(plan, self._rng, self._holds, self._phase(plan.work.process_ms))
            for plan in scenario.members
        }
        self._numbers = count(1)
        self._asked: dict[int, Arrive] = {}
        self._names: dict[str, str] = {}
        self._silent: set[str] = set()
        self._pending: dict[tuple[str, type], int] = {}  # the next Wake and Poll of a process
        self._tick_at: int | None = None
        self._rebalances: list[Rebalance] = []
        self._broker = Broker(
            scenario.broker, self._new_id(), self._watch, self._respond, self._append
        )
        for plan in scenario.members:
            start = Happening(at_ms=plan.start_ms, kind=Kind.START, member=plan.name)
            self._push(plan.start_ms, start)
        for happening in scenario.happenings:
            self._push(happening.at_ms, happening)

    def _phase(self, every_ms: int) -> int:
        return self._rng.randrange(every_ms) if every_ms else 0

    def _new_id(self) -> Callable[[], str]:
        return lambda: str(UUID(int=self._rng.getrandbits(128), version=4))

    def run(self, progress: Callable[[int], None] | None = None) -> Run:
        """Plays to the end; `progress` is told the time now and then."""
        for name, partitions in self._topics.items():
            for number in range(partitions):
                self._holds.appear(f"{name}-{number}", 0)
        while self._heap and self._heap[0][0] <= self.scenario.until_ms:
            self.now_ms, _, event = heapq.heappop(self._heap)
            self.events += 1
            if progress is not None and self.events % 1000 == 0:
                progress(self.now_ms)
            self._play(event)
            self._arm_tick()
        return self._result()

    # Events ---------------------------------------------------------------------------------------

    def _play(self, event: Event) -> None:
        match event:
            case Arrive(name, _, send, number):
                sender = self._processes[name]
                received = Received(number, send.request, send.api_version, sender.name)
                self._broker.receive(send.node_id, received, name, self.now_ms)
            case Reply(name, incarnation, request_id, response):
                self._tell(name, incarnation, m.Answered(request_id, response))
            case Wake(name, incarnation):
                if self._is_due(name, Wake):
                    self._tell(name, incarnation, m.Tick())
            case PollNow(name, incarnation):
                if self._is_due(name, PollNow):
                    self._tell(name, incarnation, m.Poll(self._positions(name)))
            case Refresh(name, incarnation):
                self._refresh(name, incarnation)
            case TickNow():
                if self._tick_at == self.now_ms:
                    self._tick_at = None
                    self._broker.tick(self.now_ms)
            case Appended():
                self._broker.appended(event, self.now_ms)
            case Loading():
                self._broker.take_node(self.now_ms)
                for member_id in sorted(self._silent):
                    self._say_silent(member_id, self.now_ms)  # sessions start anew
            case Happening():
                self._happen(event)

    def _happen(self, event: Happening) -> None:
        process = self._processes.get(event.member)
        match event.kind:
            case Kind.GROW:
                for number in range(self._topics[event.topic], event.partitions):
                    self._holds.appear(f"{event.topic}-{number}", self.now_ms)
                self._topics[event.topic] = max(self._topics[event.topic], event.partitions)
            case Kind.MOVE:
                self._broker.leave_node(self.now_ms)
                self._push(self.now_ms + event.for_ms, Loading())
                self._wake_all()
        if process is None:
            return
        self._wake_up(process)
        match event.kind:
            case Kind.START if not process.is_up:
                process.start(event.consumer)
                self._tell(process.name, process.incarnation, m.MetadataUpdated(self._metadata()))
                topics = m.Subscribe(process.plan.topics)
                self._tell(process.name, process.incarnation, topics)
                age = process.plan.consumer.metadata_max_age_ms
                first = self.now_ms + 1 + self._rng.randrange(age)
                self._push(first, Refresh(process.name, process.incarnation))
            case Kind.STOP if process.is_up:
                # A static member says nothing, and a LeaveGroup may be lost.
                self._fall_silent(process)
                self._tell(process.name, process.incarnation, m.Close())
                process.stop(self.now_ms)
            case Kind.KILL if process.is_up:
                self._fall_silent(process)
                process.stop(self.now_ms)
            case Kind.PAUSE if process.is_up:
                process.polls_from_ms = self.now_ms + event.for_ms
                self._schedule(process)
            case Kind.FREEZE if process.is_up:
                self._fall_silent(process)
                process.frozen_until_ms = self.now_ms + event.for_ms
                self._schedule(process)

    def _tell(self, name: str, incarnation: int, event: m.MemberEvent) -> None:
        """An event of a process, unless it is another process by now."""
        process = self._processes[name]
        if process.incarnation != incarnation or not process.is_up:
            return
        if process.frozen_until_ms > self.now_ms:
            if isinstance(event, m.Answered):  # it waits in the socket
                self._push(
                    process.frozen_until_ms,
                    Reply(name, incarnation, event.request_id, event.response),
                )
            else:
                self._schedule(process)
            return
        if process.frozen_until_ms:
            process.frozen_until_ms = 0
            assert process.consumer is not None
            self._silent.discard(process.consumer.member_id)
            self._broker.heard(self.scenario.group_id, process.consumer.member_id, self.now_ms)
        assert process.consumer is not None
        before = process.consumer.member_id
        sends = process.handle(event, self.now_ms)
        if before and process.consumer.member_id != before:
            self._say_silent(before, self.now_ms)  # it has forgotten this id
        for at, send in sends:
            number = next(self._numbers)
            arrive = Arrive(name, incarnation, send, number)
            self._asked[number] = arrive
            self._push(self._wire.arrival_ms(name, _BROKER, at), arrive)
        self._schedule(process)

    def _schedule(self, process: Process) -> None:
        """When a process does something next; never, where it is idle."""
        consumer = process.consumer
        if consumer is None:
            return
        wake = consumer.next_deadline_ms()
        works = process.polls_from_ms <= self.now_ms and not process.frozen_until_ms
        if works and self._is_at_rest(consumer) and wake is not None and wake > self.now_ms:
            process.idle_since_ms = self.now_ms
            self._pending.pop((process.name, Wake), None)
            self._pending.pop((process.name, PollNow), None)
            return
        process.idle_since_ms = None
        if wake is not None:
            wake = max(wake, self.now_ms, process.frozen_until_ms)
            self._arm(wake, Wake(process.name, process.incarnation))
        poll = process.poll_at_ms(self.now_ms)
        if poll is None and process.polls_from_ms > self.now_ms:
            poll = process.polls_from_ms
        if poll is not None:
            self._arm(poll, PollNow(process.name, process.incarnation))

    def _arm(self, at: int, event: Wake | PollNow) -> None:
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
        if process.idle_since_ms is None or process.consumer is None:
            return
        every = process.plan.consumer.heartbeat_interval_ms
        beats = (self.now_ms - process.idle_since_ms) // every
        last = process.idle_since_ms + beats * every
        process.idle_since_ms = None
        process.handle(m.Vouched(last, self.now_ms), self.now_ms)
        self._schedule_woken(process)

    def _schedule_woken(self, process: Process) -> None:
        assert process.consumer is not None
        wake = process.consumer.next_deadline_ms()
        if wake is not None:
            self._arm(max(wake, self.now_ms), Wake(process.name, process.incarnation))

    def _wake_all(self) -> None:
        for process in self._processes.values():
            self._wake_up(process)

    def _fall_silent(self, process: Process) -> None:
        """Its last heartbeat was so long ago as its clock says."""
        consumer = process.consumer
        if consumer is None or not consumer.member_id:
            return
        due = consumer.next_heartbeat_ms()
        every = process.plan.consumer.heartbeat_interval_ms
        since = self.now_ms if due is None else max(due - every, 0)
        self._say_silent(consumer.member_id, min(since, self.now_ms))

    def _say_silent(self, member_id: str, since_ms: int) -> None:
        self._silent.add(member_id)
        self._broker.silent(self.scenario.group_id, member_id, since_ms, self.now_ms)

    def _is_at_rest(self, consumer: m.Consumer) -> bool:
        """Whether heartbeats would change nothing: it is in a Stable group's generation."""
        group = self._broker.coordinator.groups().get(self.scenario.group_id)
        return (
            consumer.is_idle()
            and group is not None
            and group.is_(GroupState.STABLE)
            and group.generation_id == consumer.generation_id
            and group.has(consumer.member_id)
        )

    # Broker ---------------------------------------------------------------------------------------

    def _respond(self, number: int, response: Response) -> None:
        asked = self._asked.pop(number)
        if isinstance(response, JoinGroupResponse) and response.member_id:
            self._names[response.member_id] = asked.process
        at = self._wire.arrival_ms(_BROKER, asked.process, self.now_ms)
        reply = Reply(asked.process, asked.incarnation, asked.send.request_id, response)
        self._push(at, reply)

    def _append(self, event: Appended) -> None:
        self._push(self.now_ms + self.scenario.network.log_ms, event)

    def _watch(self, now_ms: int, transition: Transition, cause: str) -> None:
        running = self._rebalances[-1] if self._rebalances else None
        if running is not None and running.to_ms is not None:
            running = None
        if transition.after is GroupState.PREPARING_REBALANCE:
            if running is None:
                number = len(self._rebalances) + 1
                running = Rebalance(number, [], now_ms, transition.generation_id)
                self._rebalances.append(running)
            if self._named(cause) not in running.causes:
                running.causes.append(self._named(cause))
            self._wake_all()
        elif running is not None and transition.after is GroupState.COMPLETING_REBALANCE:
            running.rounds += 1
            running.generation_id = transition.generation_id
        elif running is not None:
            # Also where the coordinator moves: the log knows nothing of a rebalance that runs.
            running.generation_id = transition.generation_id
            running.to_ms = now_ms

    def _named(self, cause: str) -> str:
        """A cause with names in place of ids."""
        for member_id, name in self._names.items():
            cause = cause.replace(member_id, name)
        return cause

    def _arm_tick(self) -> None:
        due = self._broker.next_deadline_ms()
        if due is not None and (self._tick_at is None or due < self._tick_at):
            self._tick_at = max(due, self.now_ms)
            self._push(self._tick_at, TickNow())

    # Cluster --------------------------------------------------------------------------------------

    def _metadata(self) -> tuple[Topic, ...]:
        return tuple(Topic(name, partitions) for name, partitions in self._topics.items())

    def _refresh(self, name: str, incarnation: int) -> None:
        process = self._processes[name]
        if process.incarnation != incarnation or not process.is_up:
            return
        metadata = self._metadata()
        assert process.consumer is not None
        if process.consumer.sees(metadata):
            self._wake_up(process)
            self._tell(name, incarnation, m.MetadataUpdated(metadata))
        age = process.plan.consumer.metadata_max_age_ms
        self._push(self.now_ms + age, Refresh(name, incarnation))

    def _positions(self, name: str) -> tuple[tuple[TopicPartition, int], ...]:
        """How far each partition has been read; a record a ms will do."""
        consumer = self._processes[name].consumer
        owned = () if consumer is None else consumer.owned_partitions
        return tuple((one, self.now_ms) for one in owned)

    def _push(self, at: int, event: Event) -> None:
        heapq.heappush(self._heap, (at, next(self._sequence), event))

    def _result(self) -> Run:
        until = self.scenario.until_ms
        holds = self._holds.finish(until)
        rates = {
            f"{name}-{number}": plan.records_per_second
            for name, plan in self.scenario.topics.items()
            for number in range(self._topics[name])
        }
        crashed = {
            name: f"{process.crashed.error_code}: {process.crashed.message}"
            for name, process in self._processes.items()
            if process.crashed is not None
        }
        gaps = tuple(self._holds.gaps(holds, until))
        return Run(
            self.scenario.title,
            until,
            tuple(holds),
            gaps,
            tuple(self._rebalances),
            crashed,
            self.events,
            rates,
        )


def simulate(scenario: Scenario, *, progress: Callable[[int], None] | None = None) -> Run:
    """Plays a scenario once."""
    return Simulation(scenario).run(progress)
