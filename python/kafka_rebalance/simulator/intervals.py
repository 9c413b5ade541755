# SPDX-License-Identifier: Apache-2.0
"""Records when each member held each partition (or connector or task), and finds the gaps.

    partition   |--- c0 ---|          |--- c1 ------|
                           ^ nobody  ^

Intervals are half-open, [from_ms, to_ms). A *hold* begins when the member has started the partition
and can work on it, and ends when the member stops working. A *gap* is time in which no member works
on a partition. A stuck member does not work, so its holds count as gaps; so do the holds of
partitions whose broker is down.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

_Item = TypeVar("_Item")
_Key = TypeVar("_Key")


class Hold(NamedTuple):
    """An interval in which a member held a partition; if `is_stuck`, without working on it."""

    partition: str
    member: str
    generation_id: int
    from_ms: int
    to_ms: int
    is_stuck: bool = False


class Gap(NamedTuple):
    """An interval in which no member worked on an existing partition."""

    partition: str
    from_ms: int
    to_ms: int


class Holds:
    """Records who holds each partition. The caller reports changes in the order of time."""

    def __init__(self) -> None:
        # partition -> the intervals in which it existed; the end is None while it exists
        self._there: dict[str, list[tuple[int, int | None]]] = {}
        # partition -> member -> its hold that has not ended
        self._open: dict[str, dict[str, Hold]] = {}
        self._closed: list[Hold] = []
        self._dark: set[str] = set()

    def appear(self, partition: str, now_ms: int) -> None:
        spans = self._there.setdefault(partition, [])
        if not spans or spans[-1][1] is not None:
            spans.append((now_ms, None))

    def disappear(self, partition: str, now_ms: int) -> None:
        """Records that a partition no longer exists; its holder still has to stop working on it."""
        spans = self._there.get(partition)
        if spans and spans[-1][1] is None:
            spans[-1] = (spans[-1][0], now_ms)

    def take(self, partition: str, member: str, generation_id: int, now_ms: int) -> None:
        taken = Hold(partition, member, generation_id, now_ms, now_ms)
        self._open.setdefault(partition, {}).setdefault(member, taken)

    def give(self, partition: str, member: str, now_ms: int) -> None:
        if one := self._open.get(partition, {}).pop(member, None):
            self._close(one, now_ms)

    def stick(self, member: str, now_ms: int, *, is_stuck: bool) -> None:
        """Records that a member gets stuck and works on nothing, or that it works again."""
        for holders in self._open.values():
            if (one := holders.get(member)) and one.is_stuck != is_stuck:
                holders[member] = self._reopened(one, now_ms, is_stuck)

    def darken(self, partition: str, now_ms: int, *, is_dark: bool) -> None:
        """Records that no member can read a partition, or that members can read it again."""
        holders = self._open.get(partition, {})
        for member, one in holders.items():
            holders[member] = self._reopened(one, now_ms, one.is_stuck)
        (self._dark.add if is_dark else self._dark.discard)(partition)

    def _reopened(self, one: Hold, now_ms: int, is_stuck: bool) -> Hold:
        self._close(one, now_ms)
        return one._replace(from_ms=max(now_ms, one.from_ms), is_stuck=is_stuck)

    def _close(self, one: Hold, now_ms: int) -> None:
        if now_ms > one.from_ms:
            is_stuck = one.is_stuck or one.partition in self._dark
            name, member, generation_id, from_ms, _, _ = one
            self._closed.append(Hold(name, member, generation_id, from_ms, now_ms, is_stuck))

    def finish(self, now_ms: int) -> list[Hold]:
        for holders in self._open.values():
            for one in holders.values():
                self._close(one, now_ms)
        self._open.clear()
        # Starts and stops in progress at the end of the run have later times: cut them off.
        seen = (one._replace(to_ms=min(one.to_ms, now_ms)) for one in self._closed)
        held = [one for one in seen if one.from_ms < one.to_ms]
        return sorted(held, key=lambda one: (partition_key(one.partition), one.from_ms))

    def gaps(self, holds: Iterable[Hold], until_ms: int) -> list[Gap]:
        """Returns the intervals in which no member worked on a partition that existed."""
        working = grouped((one for one in holds if not one.is_stuck), lambda one: one.partition)
        return [
            gap
            for name, spans in self._there.items()
            for since, until in spans
            for gap in without(
                Gap(name, since, until_ms if until is None else until), working.get(name, ())
            )
        ]


def without(whole: Gap, holds: Iterable[Hold]) -> Iterator[Gap]:
    """Yields the parts of an interval that `holds`, which are ordered by time, do not cover."""
    at = whole.from_ms
    for hold in holds:
        if hold.from_ms >= whole.to_ms:
            break
        if hold.from_ms > at:
            yield Gap(whole.partition, at, hold.from_ms)
        at = max(at, hold.to_ms)
    if at < whole.to_ms:
        yield Gap(whole.partition, at, whole.to_ms)


def grouped(items: Iterable[_Item], key: Callable[[_Item], _Key]) -> dict[_Key, list[_Item]]:
    """Returns key -> items with this key; the items keep their order."""
    found: dict[_Key, list[_Item]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def partition_key(name: str) -> tuple[str, int]:
    """Returns a sort key that puts `orders-2` before `orders-10`.

    >>> sorted(["t-10", "t-2", "s"], key=partition_key)
    ['s', 't-2', 't-10']
    """
    topic, _, number = name.rpartition("-")
    return (topic, int(number)) if topic and number.isdigit() else (name, -1)
