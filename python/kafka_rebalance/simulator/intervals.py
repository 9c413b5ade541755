# SPDX-License-Identifier: Apache-2.0
"""Which member held which partition (or connector or task) and when, and the gaps in between.

    partition   |--- c0 ---|          |--- c1 ------|
                           ^ nobody  ^

Intervals are half-open, [from_ms, to_ms). A hold begins when the member can work on the partition
(its start is over), and ends when the member stops. A stuck member holds its partitions but works
on none, and nobody works on a partition whose broker is down: the gaps include both, as if nobody
held these partitions.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


class Hold(NamedTuple):
    """One member held one partition; `is_stuck` if the member could not work on it."""

    partition: str
    member: str
    generation_id: int
    from_ms: int
    to_ms: int
    is_stuck: bool = False


class Gap(NamedTuple):
    """An interval in which nobody worked on an existing partition."""

    partition: str
    from_ms: int
    to_ms: int


@dataclass(slots=True)
class _Open:
    member: str
    generation_id: int
    from_ms: int
    is_stuck: bool = False


class Holds:
    """Records which member holds which partition.

    Getters: gaps. Inputs, in the order of time: appear, disappear, take, give, stick, darken;
    finish.
    """

    def __init__(self) -> None:
        # partition -> the intervals in which it existed; an end of None is still open
        self._there: dict[str, list[tuple[int, int | None]]] = {}
        self._open: dict[str, list[_Open]] = {}
        self._closed: list[Hold] = []
        self._dark: set[str] = set()

    def appear(self, partition: str, now_ms: int) -> None:
        """A partition exists from now on."""
        spans = self._there.setdefault(partition, [])
        if not spans or spans[-1][1] is not None:
            spans.append((now_ms, None))

    def disappear(self, partition: str, now_ms: int) -> None:
        """A partition no longer exists; its holder still has to stop."""
        spans = self._there.get(partition)
        if spans and spans[-1][1] is None:
            spans[-1] = (spans[-1][0], now_ms)

    def take(self, partition: str, member: str, generation_id: int, now_ms: int) -> None:
        """A member starts to work on a partition."""
        holders = self._open.setdefault(partition, [])
        if all(one.member != member for one in holders):
            holders.append(_Open(member, generation_id, now_ms))

    def give(self, partition: str, member: str, now_ms: int) -> None:
        """A member stops working on a partition, if it had started."""
        for one in self._open.get(partition, ()):
            if one.member == member:
                self._open[partition].remove(one)
                self._close(partition, one, now_ms)
                return

    def stick(self, member: str, now_ms: int, *, is_stuck: bool) -> None:
        """A member gets stuck and works on nothing, or works again on its partitions."""
        for partition, holders in self._open.items():
            for place, one in enumerate(holders):
                if one.member == member and one.is_stuck != is_stuck:
                    self._close(partition, one, now_ms)
                    since = max(now_ms, one.from_ms)
                    holders[place] = _Open(member, one.generation_id, since, is_stuck)

    def darken(self, partition: str, now_ms: int, *, is_dark: bool) -> None:
        """A partition becomes unreadable for every member, or readable again."""
        holders = self._open.get(partition, [])
        for place, one in enumerate(holders):
            self._close(partition, one, now_ms)
            since = max(now_ms, one.from_ms)
            holders[place] = _Open(one.member, one.generation_id, since, one.is_stuck)
        (self._dark.add if is_dark else self._dark.discard)(partition)

    def _close(self, partition: str, one: _Open, now_ms: int) -> None:
        if now_ms > one.from_ms:
            is_stuck = one.is_stuck or partition in self._dark
            held = (partition, one.member, one.generation_id, one.from_ms, now_ms, is_stuck)
            self._closed.append(Hold(*held))

    def finish(self, now_ms: int) -> list[Hold]:
        """Closes all open intervals; returns all holds, ordered by partition and time."""
        for partition, holders in list(self._open.items()):
            for one in list(holders):
                self.give(partition, one.member, now_ms)
        # A start or a stop may last beyond the end of the run.
        seen = (one._replace(to_ms=min(one.to_ms, now_ms)) for one in self._closed)
        held = [one for one in seen if one.from_ms < one.to_ms]
        return sorted(held, key=lambda one: (partition_key(one.partition), one.from_ms))

    def gaps(self, holds: Iterable[Hold], until_ms: int) -> list[Gap]:
        """Returns when nobody worked on a partition while it existed."""
        of: dict[str, list[Hold]] = {}
        for hold in holds:
            if hold.is_stuck:
                continue
            of.setdefault(hold.partition, []).append(hold)
        found = []
        for partition, spans in self._there.items():
            for since, until in spans:
                at, end = since, until_ms if until is None else until
                for hold in of.get(partition, ()):  # by time
                    if hold.from_ms >= end:
                        break
                    if hold.from_ms > at:
                        found.append(Gap(partition, at, hold.from_ms))
                    at = max(at, hold.to_ms)
                if at < end:
                    found.append(Gap(partition, at, end))
        return found


def partition_key(name: str) -> tuple[str, int]:
    """Orders `orders-2` before `orders-10`.

    >>> sorted(["t-10", "t-2", "s"], key=partition_key)
    ['s', 't-2', 't-10']
    """
    topic, _, number = name.rpartition("-")
    return (topic, int(number)) if topic and number.isdigit() else (name, -1)
