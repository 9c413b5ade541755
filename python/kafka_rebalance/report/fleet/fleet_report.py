# SPDX-License-Identifier: Apache-2.0
"""The contents of a fleet's report, as plain values that Spark has already counted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bin:
    """The number of groups whose figure is from `low` to `high`, both included."""

    low: int
    high: int
    groups: int

    @property
    def name(self) -> str:
        return f"{self.low:,}" if self.low == self.high else f"{self.low:,}-{self.high:,}"


@dataclass(frozen=True, slots=True)
class ChangeTotals:
    """The totals of one change ("": the next rebalance), with percentiles of the groups' moves."""

    change: str
    groups: int
    errors: int
    not_affected: int
    without_members: int
    unsettled: int
    uneven: int
    moves: int
    least_moves: int
    moves_p50: int
    moves_p99: int
    moves_max: int
    with_unavailable: int
    with_waiting: int
    with_leaderless: int

    @property
    def affected(self) -> int:
        """Returns how many groups have members after the change, and figures."""
        return self.groups - self.errors - self.not_affected - self.without_members


@dataclass(frozen=True, slots=True)
class ClusterTotals:
    """The totals of one cluster for the next rebalance."""

    cluster: str
    groups: int
    errors: int
    uneven: int
    moves: int


@dataclass(frozen=True, slots=True)
class WorstGroup:
    """One of the groups with the worst plans: figures after `change`, a command that plans it."""

    cluster: str | None
    group_id: str
    change: str
    spread: int
    possible: int
    without_reader: int
    moves: int
    command: str


@dataclass(frozen=True, slots=True)
class FleetReport:
    """The data of the page. `spreads` and `possible` are histograms: spreads now and at best."""

    title: str
    notes: Sequence[str]
    spreads: Sequence[Bin]
    possible: Sequence[Bin]
    changes: Sequence[ChangeTotals]
    racks: Mapping[str, ChangeTotals]
    clusters: Sequence[ClusterTotals]
    worst: Sequence[WorstGroup]
