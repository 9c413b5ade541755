# SPDX-License-Identifier: Apache-2.0
"""The simulation's virtual time: a heap of events ordered by time, and the timers of processes."""

import heapq
from itertools import count

from kafka_rebalance.coordinator.machine.events import Appended, PatternsDue
from kafka_rebalance.frozen import Frozen, Mutable
from kafka_rebalance.member.interface import ConfigurationUpdated, Send
from kafka_rebalance.wire.messages import Response

from .scenario import Happening


class ProcessEvent(Mutable):
    """An event of a process; it has no effect once the process has a later `incarnation`."""

    process: str
    incarnation: int


class Wake(ProcessEvent):
    """A member's deadline is due."""


class PollNow(ProcessEvent):
    """A member's application polls."""


class Refresh(ProcessEvent):
    """A client requests metadata."""


class Returned(ProcessEvent):
    """A callback of an AsyncConsumer returns."""


class Unstuck(ProcessEvent):
    """A pause or a freeze is over."""


class Arrive(ProcessEvent):
    """A process's request arrives at a node."""

    send: Send
    number: int


class Reply(ProcessEvent):
    """A response arrives at the process."""

    request_id: int
    response: Response


class Read(ProcessEvent):
    """A worker has read the configuration topic up to the offset in `news`."""

    news: ConfigurationUpdated


class Started(ProcessEvent):
    """A connector that a worker has started begins to run now."""

    connector: str


class ClientRequest(Frozen):
    """A client asks Connect's leader to create or delete an event's connector at index `place`."""

    happening: Happening
    place: int = 0

    @property
    def connector(self) -> str:
        return self.happening.connectors[self.place]


class TickNow:
    """A coordinator's deadline is due."""


class Back(Frozen):
    """A broker that was down returns."""

    happening: Happening


class Loading:
    """Another node has loaded the log and may become the coordinator."""


ScheduledEvent = (
    ProcessEvent | ClientRequest | TickNow | Loading | Back | Appended | PatternsDue | Happening
)


Timer = Wake | PollNow | Refresh


class Agenda:
    """The clock of a simulation, its scheduled events, and the timers of its processes.

    A process has at most one timer of each kind (Wake, PollNow, Refresh). If a timer is set again,
    its older event stays in the heap, and `is_due` returns False for that event.
    """

    def __init__(self) -> None:
        self.now_ms = 0
        self._heap: list[tuple[int, int, ScheduledEvent]] = []  # (time, sequence, event)
        self._sequence = count()
        # kind of timer -> process -> time of the timer in ms
        self.timers: dict[type, dict[str, int]] = {Wake: {}, PollNow: {}, Refresh: {}}

    def push(self, at: int, event: ScheduledEvent) -> None:
        heapq.heappush(self._heap, (at, next(self._sequence), event))

    def arm(self, at: int, event: Timer) -> None:
        """Sets a timer of a process, which replaces its older timer of this kind."""
        timers = self.timers[type(event)]
        if timers.get(event.process) != at:
            timers[event.process] = at
            heapq.heappush(self._heap, (at, next(self._sequence), event))

    def disarm(self, event: Timer) -> None:
        self.timers[type(event)].pop(event.process, None)

    def is_due(self, event: Timer) -> bool:
        """Returns whether a popped event is its timer's newest; if so, disarms the timer."""
        timers = self.timers[type(event)]
        if timers.get(event.process) != self.now_ms:
            return False
        del timers[event.process]
        return True

    def pop(self, until_ms: int) -> ScheduledEvent | None:
        """Removes the next event up to `until_ms` and moves the time to it; None if none is due."""
        heap = self._heap
        if not heap or heap[0][0] > until_ms:
            return None
        self.now_ms, _, event = heapq.heappop(heap)
        return event
