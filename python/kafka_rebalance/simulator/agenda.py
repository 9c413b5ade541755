# SPDX-License-Identifier: Apache-2.0
"""The simulation's virtual time: a heap of events ordered by time, and the timers of processes."""

import heapq
from itertools import count

from .scheduled import PollNow, Refresh, ScheduledEvent, Wake


class Agenda:
    """The clock of a simulation, its scheduled events, and the timers of its processes.

    A process has at most one timer each of Wake, PollNow and Refresh. If a timer is armed again,
    its older event stays in the heap, and `is_due` returns False for that event.
    """

    def __init__(self) -> None:
        self.now_ms = 0
        self._heap: list[tuple[int, int, ScheduledEvent]] = []  # (time, sequence, event)
        self._sequence = count()
        self._timers: dict[tuple[str, type], int] = {}

    def next_ms(self) -> int | None:
        return self._heap[0][0] if self._heap else None

    def timer_ms(self, name: str, kind: type) -> int | None:
        return self._timers.get((name, kind))

    def push(self, at: int, event: ScheduledEvent) -> None:
        """Schedules an event; events of one time are popped in the order of their pushes."""
        heapq.heappush(self._heap, (at, next(self._sequence), event))

    def arm(self, at: int, event: Wake | PollNow | Refresh) -> None:
        """Sets a timer of a process, in place of its older timer of this kind."""
        key = (event.process, type(event))
        if self._timers.get(key) != at:
            self._timers[key] = at
            self.push(at, event)

    def disarm(self, name: str, *kinds: type) -> None:
        for kind in kinds:
            self._timers.pop((name, kind), None)

    def is_due(self, name: str, kind: type) -> bool:
        """Returns whether a popped event is the newest of its kind; disarms that timer."""
        if self._timers.get((name, kind)) != self.now_ms:
            return False
        del self._timers[name, kind]
        return True

    def pop(self) -> ScheduledEvent:
        """Removes the next event, and moves the time forward to it."""
        self.now_ms, _, event = heapq.heappop(self._heap)
        return event
