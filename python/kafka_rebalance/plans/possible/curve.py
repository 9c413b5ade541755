# SPDX-License-Identifier: Apache-2.0
"""The curve of a group: its best balance by the number of partitions taken from their owners.

>>> from kafka_rebalance import GroupSpec, Member, Topic, TopicPartition
>>> from kafka_rebalance.plans import balance_curve
>>> owned = tuple(TopicPartition("t", p) for p in range(6))
>>> members = (Member("C1", ("t",), owned_partitions=owned), Member("C2", ("t",)))
>>> curve = balance_curve(GroupSpec("g", (Topic("t", 6),), members), engine="reference")
>>> print(curve.summary)
Taking 3 of 6 partitions brings the fullest member from 6 to 3, the best possible.
>>> [(one.taken_at_most, one.greatest) for one in curve.points]
[(0, 6), (1, 5), (2, 4), (3, 3)]
"""

import math
from typing import Any

import kafka_rebalance._core as _core
from kafka_rebalance.assignors.balance.budget import CurvePoint, curve_points
from kafka_rebalance.assignors.balance.classes import classify
from kafka_rebalance.assignors.balance.levels import levels
from kafka_rebalance.assignors.balance.network import fewest_taken
from kafka_rebalance.assignors.registry import Engine, check_engine
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.html_tables import small_table
from kafka_rebalance.group.spec import GroupSpec, counted, require_group

from .optimum import best_possible

MOST_POINTS = 100
"""The curve has every point up to this K; beyond it, the first point for each value of `greatest`,
and the last point.
"""

_NEAR = 105
"""The knee is the first point whose largest load is at most this percentage of the best possible
one.
"""


class Curve(Frozen):
    """The best balance for each number of partitions that may be taken from their owners.

    K is the number of partitions that may be taken. `points` begin at K = 0 (only partitions
    without an owner are assigned) and end at the smallest K that allows the best balance.
    `partitions` is the number of assigned partitions.
    """

    group_id: str
    members: int
    partitions: int
    points: tuple[CurvePoint, ...]

    @property
    def knee(self) -> CurvePoint:
        """Returns the first point whose fullest member is at most 5 % above the best possible."""
        best = self.points[-1].greatest
        return next(one for one in self.points if one.greatest * 100 <= best * _NEAR)

    @property
    def first_best(self) -> CurvePoint:
        """Returns the first point whose fullest member has the least possible load."""
        return next(one for one in self.points if one.greatest == self.points[-1].greatest)

    def within(self, taken_at_most: int) -> CurvePoint:
        """Returns the last point that takes at most `taken_at_most` partitions."""
        return [one for one in self.points if one.taken <= taken_at_most][-1]

    def in_words(self, at: CurvePoint) -> str:
        """Returns a sentence that compares the point `at` with the first and the last point."""
        first, best = self.points[0].greatest, self.points[-1].greatest
        least = self.first_best.taken
        of = f"of {counted(self.partitions, 'partition')}"
        if first == best:
            rest = self.points[-1].taken
            more = f"taking {rest} {of} evens out the others" if rest else "no move helps"
            return f"The fullest member has {first}, the fewest possible: {more}."
        if at.greatest == first:
            return (
                f"Taking {at.taken} {of} leaves {first} at the fullest member; "
                f"the best possible, {best}, takes {least}."
            )
        brings = f"Taking {at.taken} {of} brings the fullest member from {first} to {at.greatest}"
        if at.greatest == best:
            return f"{brings}, the best possible."
        return f"{brings}; the best possible, {best}, takes {least}."

    @property
    def summary(self) -> str:
        return self.in_words(self.knee)

    def __str__(self) -> str:
        return self.summary

    def _repr_html_(self) -> str:
        return small_table(self.summary, COLUMNS, self.rows(), lambda row: row)

    def rows(self) -> list[tuple[str, ...]]:
        """Returns rows for `COLUMNS`: the first point for each largest load; the last point."""
        ends = {one.greatest: one for one in reversed(self.points)}
        shown = sorted([*ends.values(), self.points[-1]], key=lambda one: one.taken_at_most)
        return [
            (
                f"{one.taken_at_most}{' <' if one == self.knee else ''}",
                str(one.greatest),
                self._deviation(one.squares),
                self._deviation(one.bound),
            )
            for one in dict.fromkeys(shown)
        ]

    def _deviation(self, squares: int) -> str:
        """Returns the standard deviation of loads with this sum of squares."""
        mean = self.partitions / self.members
        return f"{math.sqrt(max(squares / self.members - mean * mean, 0)):.2f}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "summary": self.summary,
            "knee": self.knee.taken_at_most,
            "curve": [one.to_dict() for one in self.points],
        }


COLUMNS = ("taken", "fullest", "deviation", "bound")


def balance_curve(group: GroupSpec, *, most: int = MOST_POINTS, engine: Engine = "rust") -> Curve:
    """Returns the curve with all points up to K = `most`.

    `greatest` is proven for each K, `squares` where `exact`. Racks and weights do not count.
    """
    require_group(group)
    if check_engine(engine) == "rust":
        fields, last = _core.balance_curve(group.interned(), most)
        points = [CurvePoint(*one) for one in fields]
    else:
        classes = classify(group)
        points = [*curve_points(classes, most)]
        last = fewest_taken(group, classes, levels(classes))
    best = best_possible(group, engine=engine).assignment.counts()
    squares = sum(load * load for load in best)
    if points[-1].squares > squares:
        points.append(CurvePoint(last, last, max(best), squares, squares))
    return Curve(group.group_id, len(group.members), sum(best), tuple(points))
