"""One member's process: its consumer, how its application works, and what it holds.

Callbacks cost time, and the member does nothing else meanwhile: what it sends after one leaves
later. While it works on records it does not poll. `carry_out` gives what leaves the process, with
the time at which it does.
"""

import random
from dataclasses import dataclass, replace

from kafka_rebalance.member import (
    Assigned,
    Consumer,
    ConsumerConfig,
    Fatal,
    FetchMetadata,
    Lost,
    MemberEffect,
    MemberEvent,
    Revoked,
    Send,
)

from .holds import Holds
from .scenario import MemberPlan

Sends = list[tuple[int, Send]]  # (at_ms, what)


@dataclass(slots=True)
class Process:
    """Getters: is_up, poll_at_ms, wake_at_ms. Inputs: start, stop, handle."""

    plan: MemberPlan
    rng: random.Random
    holds: Holds
    phase_ms: int
    consumer: Consumer | None = None
    incarnation: int = 0
    busy_until_ms: int = 0
    polls_from_ms: int = 0  # it does not poll before
    frozen_until_ms: int = 0
    idle_since_ms: int | None = None  # nothing is simulated since; its heartbeats are vouched for
    crashed: Fatal | None = None

    @property
    def name(self) -> str:
        """The member's name in the scenario."""
        return self.plan.name

    @property
    def is_up(self) -> bool:
        """Whether it runs."""
        return self.consumer is not None

    def start(self, config: ConsumerConfig | None = None) -> Consumer:
        """A new process, with nothing but its settings."""
        self.incarnation += 1
        if config is not None:
            self.plan = replace(self.plan, consumer=config)
        self.consumer = Consumer(self.plan.consumer, rng=self.rng)
        self.busy_until_ms = self.polls_from_ms = self.frozen_until_ms = 0
        self.idle_since_ms = None
        return self.consumer

    def stop(self, now_ms: int) -> None:
        """The process is gone, and what it held is held by nobody."""
        if self.consumer is not None:
            for one in self.consumer.owned_partitions:
                self.holds.give(str(one), self.name, now_ms)
        self.consumer = None

    def handle(self, event: MemberEvent, now_ms: int) -> Sends:
        """One event, and what leaves the process for it."""
        if self.consumer is None:
            return []
        return self._carry_out(self.consumer.handle(event, now_ms), now_ms)

    def _carry_out(self, effects: list[MemberEffect], now_ms: int) -> Sends:
        assert self.consumer is not None
        at, work, sends = max(now_ms, self.busy_until_ms), self.plan.work, Sends()
        for effect in effects:
            match effect:
                case Revoked(partitions) | Lost(partitions):
                    for one in partitions:
                        self.holds.give(str(one), self.name, at)
                    at += work.cost_ms(work.stop_ms, len(partitions))
                case Assigned(partitions):
                    for place, one in enumerate(partitions, 1):
                        ready = at + work.cost_ms(work.start_ms, place)
                        generation = self.consumer.generation_id
                        self.holds.take(str(one), self.name, generation, ready)
                    at += work.cost_ms(work.start_ms, len(partitions))
                case Send():
                    # Heartbeats have a thread of their own.
                    sends.append((at, effect))
                case Fatal():
                    self.crashed = effect
                case FetchMetadata() | _:
                    pass
        self.busy_until_ms = max(self.busy_until_ms, at)
        return sends

    def poll_at_ms(self, now_ms: int) -> int | None:
        """When the application polls next, where a poll would change something."""
        if self.consumer is None:
            return None
        wanted = self.consumer.next_poll_ms()
        if wanted is None:
            return None
        at = max(now_ms, wanted, self.busy_until_ms, self.polls_from_ms, self.frozen_until_ms)
        process = self.plan.work.process_ms
        if process and self.consumer.owned_partitions:
            # In the middle of its records: the next poll is at the end of the batch.
            at += (self.phase_ms - at) % process
        return at
