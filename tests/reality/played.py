# SPDX-License-Identifier: Apache-2.0
"""What one side has shown: the callbacks of all members, in the order of time.

Members go by their names: a member id is `name-UUID`, of a static member as well, so ids sort as
the names do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .scenario import Phase

UUID_LENGTH = 36

CALLBACKS = frozenset({"revoked", "assigned", "lost"})
KILLED = "killed"


@dataclass(frozen=True)
class Event:
    """`joined_ms`, of `assigned` alone: when the member sent this rebalance's first JoinGroup."""

    at_ms: int
    member: str
    kind: str
    partitions: tuple[str, ...] = ()
    generation_id: int = -1
    joined_ms: int | None = None


@dataclass(frozen=True)
class Taken:
    """A generation, and who held what in it as each member took it."""

    generation_id: int
    holds: dict[str, frozenset[str]]


@dataclass(frozen=True)
class Played:
    """One side.

    answer_ms   the longest that a request has waited for its answer
    lags        (at_ms, late_ms): how late something came that only waits for the clock
    overtaken   members whose SyncGroup came when another had joined again: they join again
                themselves, and their assignment is never taken
    """

    events: tuple[Event, ...]
    answer_ms: int
    lags: tuple[tuple[int, int], ...] = ()
    overtaken: tuple[str, ...] = ()

    def late_ms(self, phase: Phase) -> int:
        """The largest lag of a phase."""
        within = (late for at, late in self.lags if phase.from_ms <= at < phase.until_ms)
        return max(within, default=0)

    def during(self, phase: Phase) -> list[Event]:
        """The events of a phase."""
        return [one for one in self.events if phase.from_ms <= one.at_ms < phase.until_ms]

    def generations(self, phase: Phase) -> list[Taken]:
        """Those that members took in a phase, in their order."""
        return self._taken(phase.from_ms, phase.until_ms)

    def latest(self, until_ms: int) -> Taken | None:
        """The newest that was taken before; None before the first."""
        return next(reversed(self._taken(0, until_ms)), None)

    def _taken(self, from_ms: int, until_ms: int) -> list[Taken]:
        found: dict[int, dict[str, frozenset[str]]] = {}
        for event, holds in self._followed():
            if event.kind == "assigned" and from_ms <= event.at_ms < until_ms:
                found.setdefault(event.generation_id, {})[event.member] = holds
        return [Taken(number, found[number]) for number in sorted(found)]

    def _followed(self) -> Iterator[tuple[Event, frozenset[str]]]:
        """Each event, with what its member holds after it: callbacks only tell what changes."""
        held: dict[str, frozenset[str]] = {}
        for event in self.events:
            before = held.get(event.member, frozenset())
            changed = frozenset(event.partitions)
            held[event.member] = before | changed if event.kind == "assigned" else before - changed
            yield event, held[event.member]


def name_of(member_id: str) -> str:
    """A member's name; nothing for no id.

    >>> name_of("c0-2f7c1b9e-52b5-4a53-9d5a-0c4e6d7a8b9c")
    'c0'
    """
    return member_id[: -UUID_LENGTH - 1]
