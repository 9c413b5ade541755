# SPDX-License-Identifier: Apache-2.0
"""One member's process: a consumer or a worker, how its application works, and what it holds.

Callbacks cost time, and the member does nothing else meanwhile: what it sends after one leaves
later. While it works on records it does not poll. `carry_out` gives what leaves the process, with
the time at which it does.
"""

import random
from dataclasses import dataclass, field, replace

from kafka_rebalance.assignors.connect import Work
from kafka_rebalance.member import (
    Assigned,
    Consumer,
    Fatal,
    Lost,
    MemberEffect,
    MemberEvent,
    Revoked,
    Send,
    Start,
    Stop,
    Worker,
    WorkerConfig,
)
from kafka_rebalance.protocol import Heartbeat, SyncGroup, Tick

from .intervals import Holds
from .journal import Entry, MemberEntry
from .scenario import MemberConfig, MemberPlan

Sends = list[tuple[int, Send]]  # (at_ms, what)


@dataclass(slots=True)
class Process:
    """Getters: is_up, held, poll_at_ms. Inputs: start, stop, handle.

    `started` collects (ready_ms, connector) of connectors that were started.
    """

    plan: MemberPlan
    seed: str
    holds: Holds
    phase_ms: int
    journal: list[Entry] | None = None
    member: Consumer | Worker | None = None
    incarnation: int = 0
    busy_until_ms: int = 0
    polls_from_ms: int = 0  # it does not poll before
    frozen_until_ms: int = 0
    is_cold: bool = True  # it has not answered a JoinGroup yet
    idle_since_ms: int | None = None  # nothing is simulated since; its heartbeats are vouched for
    owes_heartbeat: bool = False  # its session runs at the coordinator until the next one
    gave_up_in: int = -1  # the generation in which it gave something up, and so joins once more
    crashed: Fatal | None = None
    started: list[tuple[int, str]] = field(default_factory=list)
    empty_handed: list[int] = field(default_factory=list)  # when it was assigned nothing

    @property
    def name(self) -> str:
        """The member's name in the scenario."""
        return self.plan.name

    @property
    def is_up(self) -> bool:
        """Whether it runs."""
        return self.member is not None

    @property
    def held(self) -> list[str]:
        """What it owns or runs, by name."""
        match self.member:
            case Consumer(owned_partitions=partitions):
                return [str(one) for one in partitions]
            case Worker(running=work):
                return _names(work)
        return []

    def start(self, config: MemberConfig) -> Consumer | Worker:
        """A new process, with nothing but its settings."""
        self.incarnation += 1
        self.plan = replace(self.plan, config=config)
        # A generator of its own: what one member draws changes nothing for the others.
        rng = random.Random(f"{self.seed} {self.name} {self.incarnation}")
        if isinstance(config, WorkerConfig):
            self.member = Worker(config, url=f"http://{self.name}/", rng=rng)
        else:
            self.member = Consumer(config, rng=rng)
        self.busy_until_ms = self.polls_from_ms = self.frozen_until_ms = 0
        self.idle_since_ms = self.crashed = None
        self.is_cold, self.owes_heartbeat = True, False
        self.started.clear()
        return self.member

    def stop(self, now_ms: int) -> None:
        """The process is gone, and what it held is held by nobody."""
        for one in self.held:
            self.holds.give(one, self.name, now_ms)
        self.member = None

    def handle(self, event: MemberEvent, now_ms: int) -> Sends:
        """One event, and what leaves the process for it."""
        if self.member is None:
            return []
        # Heartbeats and timeouts have a thread of their own.
        at = now_ms if isinstance(event, Tick) else max(now_ms, self.busy_until_ms)
        before = self.member.generation_id
        effects = self.member.handle(event, now_ms)
        if self.journal is not None:
            config, generation_id = self.member.config, self.member.generation_id
            entry = (self.name, self.incarnation, config, event, tuple(effects), generation_id)
            self.journal.append(MemberEntry(now_ms, *entry))
        if _gives_up(effects):
            self.gave_up_in = before
        return self._carry_out(effects, at)

    def _carry_out(self, effects: list[MemberEffect], at: int) -> Sends:
        sends = Sends()
        for effect in effects:
            match effect:
                case Revoked(partitions) | Lost(partitions):
                    at = self._give([str(one) for one in partitions], at)
                case Assigned(partitions):
                    at = self._take([str(one) for one in partitions], at)
                    if not self.held:
                        self.empty_handed.append(at)
                case Stop(work):
                    at = self._give(_names(work), at)
                case Start(work):
                    at = self._take(_names(work), at)
                    self.started += ((at, connector) for connector in work.connectors)
                case Send(request=request):
                    if self.is_cold and isinstance(request, SyncGroup):
                        at += self.plan.work.cold_ms
                        self.is_cold = False
                    self.owes_heartbeat &= not isinstance(request, Heartbeat)
                    sends.append((at, effect))
                case Fatal():
                    self.crashed = effect
                case _:
                    pass
        self.busy_until_ms = max(self.busy_until_ms, at)
        return sends

    def _give(self, names: list[str], at: int) -> int:
        """Stops, all from now on; when that is over."""
        for one in names:
            self.holds.give(one, self.name, at)
        return at + self.plan.work.cost_ms(self.plan.work.stop_cost_ms, len(names))

    def _take(self, names: list[str], at: int) -> int:
        """Starts, some at a time; when all have started."""
        assert self.member is not None
        work = self.plan.work
        for place, one in enumerate(names, 1):
            ready = at + work.cost_ms(work.start_cost_ms, place)
            self.holds.take(one, self.name, self.member.generation_id, ready)
        return at + work.cost_ms(work.start_cost_ms, len(names))

    def poll_at_ms(self, now_ms: int) -> int | None:
        """When the application polls next, where a poll would change something."""
        if self.member is None:
            return None
        wanted = self.member.next_poll_ms()
        if wanted is None:
            return None
        at = max(now_ms, wanted, self.busy_until_ms, self.polls_from_ms, self.frozen_until_ms)
        return at if self.member.is_in_poll else self._end_of_batch_ms(at)

    def reads_at_ms(self, now_ms: int) -> int:
        """When the process reads an answer that has come: at its next poll, or at once."""
        if not isinstance(self.member, Consumer) or not self.member.reads_in_poll:
            return now_ms
        return self._end_of_batch_ms(max(now_ms, self.busy_until_ms, self.polls_from_ms))

    def _end_of_batch_ms(self, at: int) -> int:
        """When the application polls, where it may be in the middle of its records."""
        process = self.plan.work.process_ms
        return at + (self.phase_ms - at) % process if process and self.held else at


def _gives_up(effects: list[MemberEffect]) -> bool:
    """Whether an assignment has just taken something away."""
    match effects:
        case [Revoked(), Assigned(), *_] | [Stop(is_revoked=True), *_]:
            return True
    return False


def _names(work: Work) -> list[str]:
    """Connectors by name, then tasks as Kafka writes them."""
    return [*work.connectors, *(f"{task.connector}-{task.task}" for task in work.tasks)]
