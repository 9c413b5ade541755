# SPDX-License-Identifier: Apache-2.0
"""Compares a real run with the simulated one.

Generations and assignments must be equal. Durations depend on the times of members' heartbeats, so
they may differ by these tolerances:
    heartbeats   for each time that a heartbeat informs a member of a rebalance: one interval, plus
                 the time between two clock checks of a client
    polls        for each generation one poll's timeout, plus the largest delay of a timer in the
                 phase
    answers      for each generation the longest response time, once each for heartbeat, commit,
                 join and sync

The delays and response times are measured in the same run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .played import KILLED
from .scenario import HEARTBEAT_MS, PHASES, POLL_MS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .played import Event, Played, Taken
    from .scenario import Phase

LOOK_MS = 100
"""retry.backoff.ms: the heartbeat thread checks its clock at this interval."""

REQUESTS = 4
"""The requests of a member in one generation."""


@dataclass(frozen=True)
class Tolerance:
    """The tolerance of a duration (see the module's docstring); `str` shows its parts."""

    heartbeats: int
    generations: int
    late_ms: int
    answer_ms: int

    @property
    def ms(self) -> int:
        return (
            self.heartbeats * (HEARTBEAT_MS + LOOK_MS)
            + self.generations * (POLL_MS + self.late_ms)
            + self.generations * REQUESTS * self.answer_ms
        )

    def __str__(self) -> str:
        beats = f"{self.heartbeats} × ({HEARTBEAT_MS} + {LOOK_MS}) + " if self.heartbeats else ""
        rest = f"{POLL_MS} + {self.late_ms} + {REQUESTS} × {self.answer_ms}"
        return beats + (f"{self.generations} × ({rest})" if self.generations > 1 else rest)


@dataclass(frozen=True)
class Duration:
    """A duration in both runs; a time is None if the run lacks an event that the duration needs."""

    what: str
    real_ms: int | None
    simulated_ms: int | None
    tolerance: Tolerance

    @property
    def difference_ms(self) -> int | None:
        if self.real_ms is None or self.simulated_ms is None:
            return None
        return abs(self.real_ms - self.simulated_ms)

    @property
    def agrees(self) -> bool:
        return self.difference_ms is not None and self.difference_ms <= self.tolerance.ms


@dataclass(frozen=True)
class Compared:
    """One phase of the scenario, on the real cluster and in the simulator."""

    phase: Phase
    real: list[Taken]
    simulated: list[Taken]
    durations: list[Duration]
    before: Taken | None

    @property
    def is_quiet(self) -> bool:
        """Returns whether no assignment changed in this phase."""
        return all(
            self.before is not None
            and taken.generation_id == self.before.generation_id
            and taken.holds.items() <= self.before.holds.items()
            for taken in (*self.real, *self.simulated)
        )

    @property
    def agrees(self) -> bool:
        return (
            self.real == self.simulated
            and all(one.agrees for one in self.durations)
            and (self.is_quiet or not self.phase.is_quiet)
        )


@dataclass(frozen=True)
class Comparison:
    """The comparison for one assignor; `report.py` prints it."""

    assignor: str
    phases: list[Compared]

    @property
    def agrees(self) -> bool:
        return all(one.agrees for one in self.phases)

    @property
    def durations(self) -> list[Duration]:
        return [duration for one in self.phases for duration in one.durations]


def compare(assignor: str, real: Played, simulated: Played) -> Comparison:
    """Compares all phases."""
    return Comparison(assignor, [_compared(phase, real, simulated) for phase in PHASES])


def _compared(phase: Phase, real: Played, simulated: Played) -> Compared:
    before = real.latest(phase.from_ms)
    taken = simulated.generations(phase)
    numbers = [one.generation_id for one in taken]
    newer = [number for number in numbers if before is not None and number > before.generation_id]
    events, ours = real.during(phase), simulated.during(phase)
    late_ms = real.late_ms(phase)
    answer_ms = max(real.answer_ms, simulated.answer_ms)

    def tolerance(heartbeats: int) -> Tolerance:
        return Tolerance(heartbeats, max(1, len(newer)), late_ms, answer_ms)

    durations = [
        Duration(
            "first JoinGroup to last assigned", _rebalance_ms(events), _rebalance_ms(ours),
            tolerance(len(newer)),
        )
    ]  # fmt: skip
    if any(one.kind == KILLED for one in ours):
        # Heartbeats count twice: the kill can come at any time after a heartbeat, and another
        # member learns of the expired session with its next heartbeat.
        durations.insert(
            0,
            Duration("kill to first JoinGroup", _missed_ms(events), _missed_ms(ours), tolerance(2)),
        )
    revoked = _first_revoked(ours)
    if revoked is not None and newer:
        # Cooperative members revoke when they receive a generation, eager members before they join
        # it.
        since = [number for number in newer if number > revoked.generation_id]
        durations.append(
            Duration(
                "first revoked to last assigned", _stopped_ms(events), _stopped_ms(ours),
                tolerance(len(since)),
            )
        )  # fmt: skip
    return Compared(phase, real.generations(phase), taken, durations, before)


def _rebalance_ms(events: Iterable[Event]) -> int | None:
    joined = _first_join_ms(events)
    return None if joined is None else _last_assigned_ms(events) - joined


def _missed_ms(events: Iterable[Event]) -> int | None:
    killed = [one.at_ms for one in events if one.kind == KILLED]
    joined = _first_join_ms(events)
    return None if joined is None or not killed else joined - killed[0]


def _stopped_ms(events: Iterable[Event]) -> int | None:
    revoked, joined = _first_revoked(events), _first_join_ms(events)
    return None if revoked is None or joined is None else _last_assigned_ms(events) - revoked.at_ms


def _first_revoked(events: Iterable[Event]) -> Event | None:
    return next((one for one in events if one.kind in ("revoked", "lost") and one.partitions), None)


def _first_join_ms(events: Iterable[Event]) -> int | None:
    return min((one.joined_ms for one in events if one.joined_ms is not None), default=None)


def _last_assigned_ms(events: Iterable[Event]) -> int:
    return max(one.at_ms for one in events if one.kind == "assigned")
