# SPDX-License-Identifier: Apache-2.0
"""Simulates a member's process: a consumer or a worker, its application, and its partitions.

Callbacks take time, and requests that follow a callback wait for it; heartbeats do not. The
application does not poll while it processes records.
"""

import random
from dataclasses import field, replace
from typing import TYPE_CHECKING, TypeAlias

import kafka_rebalance.member.interface as m
from kafka_rebalance.frozen import Mutable
from kafka_rebalance.member.config import WorkerConfig
from kafka_rebalance.member.consumer import Consumer
from kafka_rebalance.wire.broker_groups import ConsumerGroupHeartbeat
from kafka_rebalance.wire.classic_groups import Heartbeat, SyncGroup
from kafka_rebalance.wire.messages import Tick

from .agenda import Timer
from .intervals import Holds
from .scenario import MemberConfig, MemberPlan

if TYPE_CHECKING:
    from kafka_rebalance.member.consumer_group.async_consumer import AsyncConsumer
    from kafka_rebalance.member.worker import Worker

    from .journal import Entry

    AnyConsumer: TypeAlias = Consumer | AsyncConsumer
    AnyMember: TypeAlias = AnyConsumer | Worker

_HEARTBEATS = (Heartbeat, ConsumerGroupHeartbeat)
_CALLS = (m.Revoked, m.Assigned, m.Lost)
Sends = list[tuple[int, m.Send]]  # requests, each with the time at which it leaves the process


class Process(Mutable):
    """A process of the scenario. `started` holds (time in ms, connector) of the newest starts."""

    plan: MemberPlan
    seed: str
    holds: Holds
    phase_ms: int
    journal: "list[Entry] | None" = None
    member: "AnyMember | None" = None
    incarnation: int = 0
    wake: Timer = field(init=False)  # a deadline of the member is due
    poll_now: Timer = field(init=False)  # the application polls
    refresh: Timer = field(init=False)  # the client requests metadata
    busy_until_ms: int = 0
    polls_from_ms: int = 0  # the application does not poll before this time
    polled_ms: int = -1  # the last simulated poll
    frozen_until_ms: int = 0
    is_cold: bool = True  # the process has sent no SyncGroup yet; cold_ms delays its first one
    idle_since_ms: int | None = None  # from then on, heartbeats are not simulated; None: they are
    owes_heartbeat: bool = False  # the member counts as silent: simulate its next heartbeat
    gave_up_in: int = -1  # the newest generation whose assignment made the member revoke
    crashed: m.Fatal | None = None
    started: list[tuple[int, str]] = field(default_factory=list)
    reads_nothing: bool = False  # polls return no records (`Consumer.reads_nothing`)
    empty_handed: list[int] = field(default_factory=list)  # the times of empty assignments
    returns_at_ms: int | None = None  # when the callback of the last event returns

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def is_up(self) -> bool:
        return self.member is not None

    @property
    def consumer(self) -> "AnyConsumer | None":
        """Returns the member if it is a consumer, else None."""
        return None if self.member is None or self.member.kind == "worker" else self.member

    @property
    def worker(self) -> "Worker | None":
        """Returns the member if it is a Connect worker, else None."""
        return self.member if self.member is not None and self.member.kind == "worker" else None

    @property
    def held(self) -> list[str]:
        """Returns the names of the member's partitions, or of its connectors and tasks."""
        if self.consumer is not None:
            return [str(one) for one in self.consumer.owned_partitions]
        return [] if self.worker is None else self.worker.running.names()

    @property
    def holds_any(self) -> bool:
        return bool(self.held if self.consumer is None else self.consumer.owned_partitions)

    def start(self, config: MemberConfig) -> "AnyMember":
        self.incarnation += 1
        if config is not self.plan.config:
            self.plan = replace(self.plan, config=config)
        # Each process has its own random generator, so that no process affects another's choices.
        rng = random.Random(f"{self.seed} {self.name} {self.incarnation}")
        if isinstance(config, WorkerConfig):
            from kafka_rebalance.member.worker import Worker

            self.member = Worker(config, url=f"http://{self.name}/", rng=rng)
        elif config.is_classic:
            self.member = Consumer(config, rng=rng)
        else:
            from kafka_rebalance.member.consumer_group.async_consumer import AsyncConsumer

            ids = self.plan.member_ids[self.incarnation - 1 :]
            self.member = AsyncConsumer(config, rng=rng, member_id=ids[0] if ids else "")
        self.busy_until_ms = self.polls_from_ms = self.frozen_until_ms = 0
        self.polled_ms = -1
        self.idle_since_ms = self.crashed = self.returns_at_ms = None
        self.is_cold, self.owes_heartbeat = True, False
        self.started.clear()
        return self.member

    def stop(self, now_ms: int) -> None:
        for one in self.held:
            self.holds.give(one, self.name, now_ms)
        self.member = None

    def handle(self, event: m.MemberEvent, now_ms: int) -> Sends:
        """Handles one event. Returns the requests that leave the process, each with its time."""
        if self.member is None:
            return []
        if isinstance(event, m.Poll):
            self.polled_ms = now_ms
        # A separate thread handles heartbeats and timeouts, without waiting for callbacks.
        is_async = self.member.kind == "async"
        is_background = isinstance(event, Tick) or is_async
        waits = not is_background or isinstance(event, m.Close)
        at = max(now_ms, self.busy_until_ms) if waits else now_ms
        if isinstance(event, Tick) and self.member.poll_until_ms <= now_ms:
            self.report_polls(now_ms)
        before = self.member.generation_id
        effects = self._handle(event, now_ms)
        if not effects:
            self.busy_until_ms = max(self.busy_until_ms, at)
            return []
        if _gives_up(effects):
            self.gave_up_in = before
        sends = self._carry_out(effects, at)
        if is_async and any(isinstance(one, _CALLS) for one in effects):
            self.returns_at_ms = self.busy_until_ms
        return sends

    def report_polls(self, now_ms: int) -> None:
        """Reports a consumer's last poll, unless its application is stuck or in a callback."""
        busy_until_ms = max(self.busy_until_ms, self.polls_from_ms, self.frozen_until_ms)
        if self.worker is not None or busy_until_ms > now_ms:
            return
        process = self.plan.work.process_ms
        last = now_ms - (now_ms - self.phase_ms) % process if process and self.holds_any else now_ms
        self._handle(m.Polled(max(last, busy_until_ms)), now_ms)

    def _handle(self, event: m.MemberEvent, now_ms: int) -> list[m.MemberEffect]:
        assert self.member is not None
        effects = self.member.handle(event, now_ms)
        if self.journal is not None:
            from .journal import MemberEntry

            config, generation_id = self.member.config, self.member.generation_id
            entry = (self.name, self.incarnation, config, event, tuple(effects), generation_id)
            self.journal.append(MemberEntry(now_ms, *entry))
        return effects

    def _carry_out(self, effects: list[m.MemberEffect], at: int) -> Sends:
        sends = Sends()
        for effect in effects:
            match effect:
                case m.Send():
                    if self.is_cold and isinstance(effect.request, SyncGroup):
                        at += self.plan.work.cold_ms
                        self.is_cold = False
                    if self.owes_heartbeat and isinstance(effect.request, _HEARTBEATS):
                        self.owes_heartbeat = False
                    sends.append((at, effect))
                case m.PendingRevocation(partitions):
                    for one in partitions:
                        self.holds.give(str(one), self.name, at)
                case m.Revoked(partitions) | m.Lost(partitions):
                    at = self._give([str(one) for one in partitions], at)
                case m.Assigned(partitions):
                    at = self._take([str(one) for one in partitions], at)
                    if not self.holds_any:
                        self.empty_handed.append(at)
                case m.Stop(work):
                    at = self._give(work.names(), at)
                case m.Start(work):
                    at = self._take(work.names(), at)
                    self.started += ((at, connector) for connector in work.connectors)
                case m.Fatal():
                    self.crashed = effect
                case _:
                    pass
        self.busy_until_ms = max(self.busy_until_ms, at)
        return sends

    def _give(self, names: list[str], at: int) -> int:
        """Stops all `names` at once. Returns the time at which the last one has stopped."""
        for one in names:
            self.holds.give(one, self.name, at)
        return at + self.plan.work.cost_ms(self.plan.work.stop_cost_ms, len(names))

    def _take(self, names: list[str], at: int) -> int:
        """Starts `names`, `parallel` of them at a time. Returns the time at which all are ready."""
        assert self.member is not None
        work = self.plan.work
        for place, one in enumerate(names, 1):
            ready = at + work.cost_ms(work.start_cost_ms, place)
            self.holds.take(one, self.name, self.member.generation_id, ready)
        return at + work.cost_ms(work.start_cost_ms, len(names))

    def poll_at_ms(self, now_ms: int) -> int | None:
        """Returns the time of the next poll that affects the member; None if there is none."""
        if self.member is None:
            return None
        wanted = self.member.next_poll_ms()
        if wanted is None:
            return None
        at = max(now_ms, wanted, self.busy_until_ms, self.polls_from_ms, self.frozen_until_ms)
        return at if self.member.is_in_poll else self._end_of_batch_ms(at)

    def reads_at_ms(self, now_ms: int) -> int:
        """Returns when the process reads a response that has arrived: now, or in its next poll."""
        if not isinstance(self.member, Consumer) or not self.member.reads_in_poll:
            return now_ms
        return self._end_of_batch_ms(max(now_ms, self.busy_until_ms, self.polls_from_ms))

    def _end_of_batch_ms(self, at: int) -> int:
        """Returns the time of the first poll at or after `at`, which ends the present batch.

        If the application polled at `at`, it is still processing the records of that poll.
        """
        process = self.plan.work.process_ms
        if not process or not self.holds_any:
            return at
        from_ms = at + 1 if at == self.polled_ms else at
        return from_ms + (self.phase_ms - from_ms) % process


def _gives_up(effects: list[m.MemberEffect]) -> bool:
    """Returns whether the effects come from an assignment that revokes partitions or work."""
    first = effects[0]
    if isinstance(first, m.Stop):
        return first.is_revoked
    revokes = isinstance(first, m.Revoked) and len(effects) > 1
    return revokes and isinstance(effects[1], m.Assigned)
