# SPDX-License-Identifier: Apache-2.0
"""What a run has shown: who held what, and every rebalance.

A rebalance lasts from the moment when the group stops being Stable until it is Stable again; rounds
are the generations that it took. What it adds up to is in `measure`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from .intervals import Gap, Hold
from .scenario import Happening


@dataclass(slots=True)
class Rebalance:
    """One rebalance; `is_cut_off` where the coordinator moved before it was over.

    The generation of one that was cut off may be given again: no log knows of it.
    """

    number: int
    causes: list[str]
    from_ms: int
    generation_id: int = 0
    rounds: int = 0
    to_ms: int | None = None
    is_cut_off: bool = False

    @property
    def duration_ms(self) -> int | None:
        """How long it took; None where it had not ended."""
        return None if self.to_ms is None else self.to_ms - self.from_ms


class Absence(NamedTuple):
    """A member's process was down, or stuck."""

    member: str
    from_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True)
class Run:
    """Times in ms from the start of the scenario.

    `held` says what the gaps and holds are of: partitions, or tasks; `assumed` what it costs a
    member to start and stop one; `empty_handed` who was assigned nothing, and when.
    """

    title: str
    until_ms: int
    held: str
    assumed: str
    members: tuple[str, ...]
    happenings: tuple[Happening, ...]
    holds: tuple[Hold, ...]
    gaps: tuple[Gap, ...]
    rebalances: tuple[Rebalance, ...]
    absences: tuple[Absence, ...]
    empty_handed: tuple[tuple[str, int], ...]
    crashed: Mapping[str, str]
    events: int
    rates: Mapping[str, float] = field(default_factory=dict)  # partition -> records a second
