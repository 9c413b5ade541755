# SPDX-License-Identifier: Apache-2.0
"""Virtual time: a heap of (at_ms, sequence, event), and the next timers of each process."""

import heapq
from itertools import count

from .scheduled import PollNow, Refresh, ScheduledEvent, Wake


class Agenda:
    """The clock, its events and timers. Getters: now_ms, next_ms, timer_ms. Inputs: push, arm, ….

    A process has at most one Wake, one PollNow and one Refresh; arming one again replaces it.
    """

    def __init__(self) -> None:
        self.now_ms = 0
        self._heap: list[tuple[int, int, ScheduledEvent]] = []
        self._sequence = count()
        self._timers: dict[tuple[str, type], int] = {}

    def next_ms(self) -> int | None:
        """The time of the next event; None if there is none."""
        return self._heap[0][0] if self._heap else None

    def timer_ms(self, name: str, kind: type) -> int | None:
        """The time of a process's timer; None if it is not armed."""
        return self._timers.get((name, kind))

    def push(self, at: int, event: ScheduledEvent) -> None:
        """Schedules an event; events of one time keep the order of these calls."""
        heapq.heappush(self._heap, (at, next(self._sequence), event))

    def arm(self, at: int, event: Wake | PollNow | Refresh) -> None:
        """Sets a timer of a process, in place of its older timer of this kind."""
        key = (event.process, type(event))
        if self._timers.get(key) != at:
            self._timers[key] = at
            self.push(at, event)

    def disarm(self, name: str, *kinds: type) -> None:
        """Removes timers of a process."""
        for kind in kinds:
            self._timers.pop((name, kind), None)

    def is_due(self, name: str, kind: type) -> bool:
        """Returns whether a timer that was popped is the newest of its kind, and disarms it."""
        if self._timers.get((name, kind)) != self.now_ms:
            return False
        del self._timers[name, kind]
        return True

    def pop(self) -> ScheduledEvent:
        """Removes the next event and moves the time to it."""
        self.now_ms, _, event = heapq.heappop(self._heap)
        return event
