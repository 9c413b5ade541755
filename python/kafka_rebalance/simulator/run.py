"""What a run has shown: who held what, every rebalance, and what it adds up to.

A rebalance lasts from the moment when the group stops being Stable until it is Stable again and
every member has taken its assignment; rounds are the generations that it took.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .holds import Gap, Hold


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


@dataclass(frozen=True, slots=True)
class Totals:
    """`unavailable_ms` in partition-ms; `records_behind` what came meanwhile."""

    rebalances: int
    rounds: int
    moves: int
    unavailable_ms: int
    longest_gap_ms: int
    records_behind: int
    settled_ms: int | None


@dataclass(frozen=True, slots=True)
class Run:
    """Times in ms from the start of the scenario."""

    title: str
    until_ms: int
    holds: tuple[Hold, ...]
    gaps: tuple[Gap, ...]
    rebalances: tuple[Rebalance, ...]
    crashed: Mapping[str, str]
    events: int
    rates: Mapping[str, float] = field(default_factory=dict)  # partition -> records a second

    def totals(self) -> Totals:
        """The sums. A partition has moved when another member holds it than before."""
        lengths = [gap.to_ms - gap.from_ms for gap in self.gaps]
        behind = sum(
            (gap.to_ms - gap.from_ms) / 1000 * self.rates.get(gap.partition, 0.0)
            for gap in self.gaps
        )
        moves = 0
        last: dict[str, str] = {}
        for hold in sorted(self.holds, key=lambda one: one.from_ms):
            moves += last.get(hold.partition, hold.member) != hold.member
            last[hold.partition] = hold.member
        ended = [one.to_ms for one in self.rebalances]
        settled = None if None in ended else max((at for at in ended if at is not None), default=0)
        open_gaps = any(gap.to_ms == self.until_ms for gap in self.gaps)
        return Totals(
            rebalances=len(self.rebalances),
            rounds=sum(one.rounds for one in self.rebalances),
            moves=moves,
            unavailable_ms=sum(lengths),
            longest_gap_ms=max(lengths, default=0),
            records_behind=round(behind),
            settled_ms=None if open_gaps else settled,
        )
