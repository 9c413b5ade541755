# SPDX-License-Identifier: Apache-2.0
"""Compares a real run of the consumer protocol with the simulated one, and writes it as text.

In each phase, these must be equal: who holds what at its end, the highest epoch of a callback, and
what each member gave up and gained. A member may gain its partitions in one callback or in several;
that depends on whose heartbeat comes first. Durations may differ by one interval for each heartbeat
that lies between, and by the measured delays of polls and timers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .compare import LOOK_MS
from .consumer_scenario import HEARTBEAT_MS, PHASES
from .played import KILLED
from .scenario import POLL_MS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .consumer_scenario import Phase
    from .played import Event, Played

CALLBACKS_OF_A_MOVE = 3  # revoked, assigned; and assigned at the member that gains


@dataclass(frozen=True)
class Side:
    """One phase on one side; partitions by member, times in ms from the phase's start."""

    epoch: int
    holds: dict[str, frozenset[str]]
    gave: dict[str, frozenset[str]]
    gained: dict[str, frozenset[str]]
    last_assigned_ms: int | None
    unread_ms: int | None  # from the first partition given up to the last gained


@dataclass(frozen=True)
class Difference:
    """A duration on both sides."""

    what: str
    real_ms: int | None
    simulated_ms: int | None
    tolerance_ms: int

    @property
    def agrees(self) -> bool:
        if self.real_ms is None or self.simulated_ms is None:
            return self.real_ms is self.simulated_ms
        return abs(self.real_ms - self.simulated_ms) <= self.tolerance_ms

    def __str__(self) -> str:
        sides = (f"{'none' if one is None else f'{one:,}'} ms" for one in self.sides)
        real, simulated = sides
        verdict = "" if self.agrees else "  OUTSIDE"
        tolerance = f"tolerance {self.tolerance_ms:,} ms{verdict}"
        return f"{self.what:30}  real {real:>9}  simulated {simulated:>9}  {tolerance}"

    @property
    def sides(self) -> tuple[int | None, int | None]:
        return self.real_ms, self.simulated_ms


@dataclass(frozen=True)
class ComparedPhase:
    """One phase on the real cluster and in the simulator."""

    phase: Phase
    real: Side
    simulated: Side
    durations: tuple[Difference, ...]

    @property
    def is_equal(self) -> bool:
        fields = ("epoch", "holds", "gave", "gained")
        return all(getattr(self.real, one) == getattr(self.simulated, one) for one in fields)

    @property
    def agrees(self) -> bool:
        return self.is_equal and all(one.agrees for one in self.durations)


@dataclass(frozen=True)
class ConsumerComparison:
    """All phases, with the library of the real consumers: one of CLIENTS."""

    client: str
    phases: tuple[ComparedPhase, ...]

    @property
    def title(self) -> str:
        return f"group.protocol=consumer, {self.client}"

    @property
    def agrees(self) -> bool:
        return all(one.agrees for one in self.phases)


def compare(client: str, real: Played, simulated: Played) -> ConsumerComparison:
    """Compares all phases."""
    phases = tuple(_compared(phase, real, simulated) for phase in PHASES)
    return ConsumerComparison(client, phases)


def _compared(phase: Phase, real: Played, simulated: Played) -> ComparedPhase:
    theirs, ours = _side(phase, real), _side(phase, simulated)
    late_ms = max(
        (late for at, late in real.lags if phase.from_ms <= at < phase.until_ms), default=0
    )
    tolerance = phase.heartbeats * (HEARTBEAT_MS + LOOK_MS)
    tolerance += CALLBACKS_OF_A_MOVE * (POLL_MS + late_ms)
    durations = (
        Difference(
            "event to last assigned", theirs.last_assigned_ms, ours.last_assigned_ms, tolerance
        ),
        Difference("first given up to last gained", theirs.unread_ms, ours.unread_ms, tolerance),
    )
    return ComparedPhase(phase, theirs, ours, durations)


def _side(phase: Phase, played: Played) -> Side:
    holds: dict[str, frozenset[str]] = {}
    gave: dict[str, frozenset[str]] = {}
    gained: dict[str, frozenset[str]] = {}
    epoch, first_given, last_assigned = -1, None, None
    for event, held in _followed(played):
        if event.at_ms >= phase.until_ms:
            break
        holds[event.member] = held
        if event.at_ms < phase.from_ms:
            continue
        epoch = max(epoch, event.generation_id)
        changed = gained if event.kind == "assigned" else gave
        if event.partitions:
            changed[event.member] = changed.get(event.member, frozenset()) | {*event.partitions}
            if event.kind == "assigned":
                last_assigned = event.at_ms
            elif first_given is None:
                first_given = event.at_ms
    since = None if last_assigned is None else last_assigned - phase.from_ms
    unread = None
    if first_given is not None and last_assigned is not None:
        unread = last_assigned - first_given
    there = {name: partitions for name, partitions in holds.items() if partitions}
    return Side(epoch, there, gave, gained, since, unread)


def _followed(played: Played) -> Iterator[tuple[Event, frozenset[str]]]:
    """Yields each event with the member's partitions after it."""
    held: dict[str, frozenset[str]] = {}
    for event in played.events:
        before, changed = held.get(event.member, frozenset()), frozenset(event.partitions)
        if event.kind == KILLED:
            after: frozenset[str] = frozenset()
        else:
            after = before | changed if event.kind == "assigned" else before - changed
        held[event.member] = after
        yield event, after


# Text ---------------------------------------------------------------------------------------------


def show(comparison: ConsumerComparison) -> str:
    """Returns the whole comparison as a string."""
    lines = [f"== {comparison.title}"]
    for one in comparison.phases:
        lines += ["", f"{one.phase.from_ms / 1000:4.1f} s  {one.phase.title}"]
        sides = [("", one.real)] if one.is_equal else [("real", one.real), ("sim.", one.simulated)]
        for name, side in sides:
            verdict = f"DIFFERS, {name}" if name else "equal"
            lines.append(f"        epoch {side.epoch}: {verdict}")
            lines += [f"          {line}" for line in _members(side)]
        lines += [f"        {one}" for one in one.durations]
    return "\n".join(lines)


def summary(comparison: ConsumerComparison) -> str:
    """Returns one line: how many phases and durations agree."""
    phases = comparison.phases
    durations = [each for one in phases for each in one.durations]
    equal = sum(one.is_equal for one in phases)
    within = sum(one.agrees for one in durations)
    gaps = [
        abs(real - simulated)
        for real, simulated in (one.sides for one in durations)
        if real is not None and simulated is not None
    ]
    return (
        f"{comparison.title}: {equal} of {len(phases)} phases equal, {within} of "
        f"{len(durations)} durations within tolerance (largest difference {max(gaps, default=0):,} "
        "ms)"
    )


def _members(side: Side) -> Iterator[str]:
    for name in sorted({*side.holds, *side.gave, *side.gained}):
        parts = [f"{name}: {_listed(side.holds.get(name, frozenset()))}"]
        for what, changes in (("gave up", side.gave), ("gained", side.gained)):
            if name in changes:
                parts.append(f"{what} {_listed(changes[name])}")
        yield "; ".join(parts)


def _listed(partitions: frozenset[str]) -> str:
    """Formats partitions, for example `orders 0 1, payments 0`."""
    topics: dict[str, list[int]] = {}
    for one in partitions:
        topic, _, number = one.rpartition("-")
        topics.setdefault(topic, []).append(int(number))
    lists = {topic: " ".join(map(str, sorted(topics[topic]))) for topic in sorted(topics)}
    return ", ".join(f"{topic} {numbers}" for topic, numbers in lists.items()) or "nothing"
