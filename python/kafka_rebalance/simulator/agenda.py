# SPDX-License-Identifier: Apache-2.0
"""The simulation's virtual time: a heap of actions, timers of processes, delays of messages."""

import heapq
import random
from collections.abc import Callable
from dataclasses import field
from functools import partial
from itertools import count

from kafka_rebalance.frozen import Message, Mutable
from kafka_rebalance.group.declared_types import check_fields, check_times

Action = Callable[[], None]


class Timer(Mutable):
    """A timer of a process, with at most one due time. `ring` is called with the incarnation (the
    number of the process's start) that set the timer.
    """

    ring: Callable[[int], None]
    due_ms: int | None = None
    incarnation: int = 0


class Agenda:
    """The clock of a simulation, and its scheduled actions. Actions that are due at the same time
    run in the order in which they were pushed.
    """

    def __init__(self) -> None:
        self.now_ms = 0
        self._heap: list[tuple[int, int, Action]] = []  # (time, sequence, action)
        self._sequence = count()

    def push(self, at: int, action: Action) -> None:
        heapq.heappush(self._heap, (at, next(self._sequence), action))

    def arm(self, at: int, timer: Timer, incarnation: int) -> None:
        """Sets a timer's due time in place of an older one; the older action then has no effect."""
        if timer.due_ms != at or timer.incarnation != incarnation:
            timer.due_ms, timer.incarnation = at, incarnation
            self.push(at, partial(self._ring, timer, incarnation))

    def _ring(self, timer: Timer, incarnation: int) -> None:
        if timer.due_ms == self.now_ms and timer.incarnation == incarnation:
            timer.due_ms = None
            timer.ring(incarnation)

    def pop(self, until_ms: int) -> Action | None:
        """Returns the next action, and moves the time to it; None if none is due by `until_ms`."""
        heap = self._heap
        if not heap or heap[0][0] > until_ms:
            return None
        self.now_ms, _, action = heapq.heappop(heap)
        return action


class Network(Message):
    """The delays: a message takes `delay_ms` plus up to `spread_ms`, an append takes `log_ms`.

    Errors: GroupError for a negative delay.
    """

    delay_ms: int = 2
    spread_ms: int = 1
    log_ms: int = 2

    def __post_init__(self) -> None:
        check_fields(self)
        check_times(self)


class Wire(Mutable):
    """Chooses arrival times; a message never overtakes an older message on its connection."""

    network: Network
    rng: random.Random
    last_ms: dict[tuple[str, str], int] = field(default_factory=dict)  # by (sender, receiver)

    def arrival_ms(self, sender: str, receiver: str, now_ms: int) -> int:
        """Returns the arrival time of a message that leaves the sender at `now_ms`."""
        # This chooses as `randrange(delays)` does, in a tenth of its time.
        delays = self.network.spread_ms + 1
        bits = delays.bit_length()
        while (extra := self.rng.getrandbits(bits)) >= delays:
            pass
        connection = (sender, receiver)
        at = now_ms + self.network.delay_ms + extra
        at = self.last_ms[connection] = max(at, self.last_ms.get(connection, 0))
        return at
