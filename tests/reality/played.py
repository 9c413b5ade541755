# SPDX-License-Identifier: Apache-2.0
"""One side of the comparison: the callbacks of all members, in the order of time.

Members are identified by name. A member id is `name-UUID`, even that of a static member, so that
ids sort as names do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .scenario import Phase

UUID_LENGTH = 36

CALLBACKS = frozenset({"revoked", "assigned", "lost"})
KILLED = "killed"


@dataclass(frozen=True)
class Event:
    """A callback, or a kill. For `assigned`, the member first sent JoinGroup at `joined_ms`."""

    at_ms: int
    member: str
    kind: str
    partitions: tuple[str, ...] = ()
    generation_id: int = -1
    joined_ms: int | None = None


@dataclass(frozen=True)
class Taken:
    """A generation, and each member's partitions when it received the generation."""

    generation_id: int
    holds: dict[str, frozenset[str]]


@dataclass(frozen=True)
class Played:
    """The data that one side recorded.

    answer_ms   the longest time between a request and its response
    lags        (at_ms, late_ms): the delays of events that only wait for a timer
    member_ids  each member's ids, one for each start
    """

    events: tuple[Event, ...]
    answer_ms: int
    lags: tuple[tuple[int, int], ...] = ()
    member_ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def late_ms(self, phase: Phase) -> int:
        """Returns the largest lag of a phase."""
        within = (late for at, late in self.lags if phase.from_ms <= at < phase.until_ms)
        return max(within, default=0)

    def during(self, phase: Phase) -> list[Event]:
        """Returns the events of a phase."""
        return [one for one in self.events if phase.from_ms <= one.at_ms < phase.until_ms]

    def generations(self, phase: Phase) -> list[Taken]:
        """Returns the generations that members received in a phase, in order."""
        return self._taken(phase.from_ms, phase.until_ms)

    def latest(self, until_ms: int) -> Taken | None:
        """Returns the newest generation received before `until_ms`, or None."""
        return next(reversed(self._taken(0, until_ms)), None)

    def _taken(self, from_ms: int, until_ms: int) -> list[Taken]:
        found: dict[int, dict[str, frozenset[str]]] = {}
        for event, holds in self._followed():
            if event.kind == "assigned" and from_ms <= event.at_ms < until_ms:
                found.setdefault(event.generation_id, {})[event.member] = holds
        return [Taken(number, found[number]) for number in sorted(found)]

    def _followed(self) -> Iterator[tuple[Event, frozenset[str]]]:
        """Yields each event with the member's partitions after it; callbacks contain only
        changes.
        """
        held: dict[str, frozenset[str]] = {}
        for event in self.events:
            before = held.get(event.member, frozenset())
            changed = frozenset(event.partitions)
            held[event.member] = before | changed if event.kind == "assigned" else before - changed
            yield event, held[event.member]


def name_of(member_id: str) -> str:
    """Returns the member's name in a member id; "" for an empty id.

    >>> name_of("c0-2f7c1b9e-52b5-4a53-9d5a-0c4e6d7a8b9c")
    'c0'
    """
    return member_id[: -UUID_LENGTH - 1]
