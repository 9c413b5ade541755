# SPDX-License-Identifier: Apache-2.0
"""Maps times to positions on an axis that shows busy times in full, and shortens quiet times.

A time is busy while a rebalance runs, while nobody works on some partition, and at an event of the
scenario. A span is an interval of busy times with a margin on both sides. Between two spans, the
axis has a cut of fixed width. Within a span the axis is linear; all spans have the same scale.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

_QUIET_MS = 20_000  # shorter quiet times are not cut
_MARGIN = 0.06  # the margin as a share of the busy time; it is at least 2.5 s
_CUT, _CUTS = 0.02, 0.3  # shares of the axis's width: of one cut; of all cuts together, at most
_STEPS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 3_600)


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """Maps times in ms to positions from 0 to 1. Only times in `spans` are shown in full."""

    spans: tuple[tuple[int, int], ...]

    @classmethod
    def over(cls, busy: Iterable[tuple[int, int]], until_ms: int) -> "TimeAxis":
        """Returns an axis for busy times, which may overlap."""
        spans: list[tuple[int, int]] = []
        for start, end in sorted(busy):
            margin = max(2_500, round(_MARGIN * (end - start)))
            start, end = max(0, start - margin), min(until_ms, end + margin)
            if spans and start - spans[-1][1] <= _QUIET_MS:
                spans[-1] = (spans[-1][0], max(spans[-1][1], end))
            else:
                spans.append((start, end))
        return cls(tuple(spans) or ((0, until_ms),))

    @property
    def _cut(self) -> float:
        return min(_CUT, _CUTS / max(len(self.spans) - 1, 1))

    @property
    def _scale(self) -> float:
        cuts = self._cut * (len(self.spans) - 1)
        return (1.0 - cuts) / max(sum(end - start for start, end in self.spans), 1)

    def place(self, at_ms: float) -> float:
        """Returns the position of a time. The times of a cut are spread evenly over its width."""
        return min(self._place(at_ms), 1.0)

    def _place(self, at_ms: float) -> float:
        x = 0.0
        for place, (start, end) in enumerate(self.spans):
            if at_ms <= start:
                if place and at_ms < start:
                    before = self.spans[place - 1][1]
                    return x - self._cut * (start - at_ms) / (start - before)
                return x
            if at_ms <= end:
                return x + (at_ms - start) * self._scale
            x += (end - start) * self._scale + self._cut
        return x - self._cut

    def cuts(self) -> list[tuple[float, float]]:
        """Returns the cuts as positions (start, end)."""
        return [
            (self.place(before[1]), self.place(after[0])) for before, after in pairwise(self.spans)
        ]

    def ticks(self, most: int = 14) -> list[tuple[float, str]]:
        """Returns the labels of the axis, up to about `most`, as pairs (position, label).

        The labels are at round times; a span without a round time has a label in its middle.
        """
        total_s = sum(end - start for start, end in self.spans) / 1000
        step = next((s * 1000 for s in _STEPS_S if total_s / s <= most), 3_600_000)
        found: list[tuple[float, str]] = []
        for start, end in self.spans:
            first = -(-start // step) * step
            times: Sequence[float] = [
                first + n * step for n in range(int((end - first) // step) + 1)
            ]
            for at in times or [(start + end) / 2]:
                place = self.place(at)
                if not found or place - found[-1][0] > 0.7 / most:
                    found.append((place, _named(at, step)))
        return found


def _named(at_ms: float, step_ms: float) -> str:
    """Returns a time such as `12.5 s`, `2:05` or `1:00:05`; steps below 1 s add a fraction.

    >>> [_named(ms, 1000) for ms in (500, 12_000, 125_000, 3_605_000)]
    ['0.5 s', '12 s', '2:05', '1:00:05']
    >>> _named(125_500, 500)
    '2:05.5'
    """
    tenths = round(at_ms / 100)
    if tenths < 600:
        return f"{tenths / 10:g} s"
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{rest / 10:04.1f}" if step_ms < 1000 else f"{rest // 10:02}"
    return f"{hours}:{minutes:02}:{seconds}" if hours else f"{minutes}:{seconds}"
