# SPDX-License-Identifier: Apache-2.0
"""`java.util.PriorityQueue`: assignments depend on the order in which it returns equal keys.

The queue is a binary heap in an array. Entries with equal keys do not keep their order.

Source   java.util.PriorityQueue of OpenJDK 17 (siftUp, siftDown, heapify, removeAt); the mirror is
         `src/java/priority_queue.rs`.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Generic, Self, TypeVar

T = TypeVar("T")


class PriorityQueue(Generic[T]):
    """Entries with keys, smallest key first.

    >>> queue = PriorityQueue[str]()
    >>> for entry in ("bb", "a", "c", "d"):
    ...     queue.add(len(entry), entry)
    >>> [queue.poll() for _ in range(5)]
    ['a', 'd', 'c', 'bb', None]
    """

    def __init__(self) -> None:
        self._heap: list[tuple[Any, T]] = []

    @classmethod
    def of(cls, entries: Iterable[tuple[Any, T]]) -> Self:
        """Returns `new PriorityQueue(collection)`: its parents move down, the last one first."""
        new = cls()
        new._heap = list(entries)
        for at in reversed(range(len(new._heap) // 2)):
            new._down(at, new._heap[at])
        return new

    def __iter__(self) -> Iterator[T]:
        """Yields the entries in the order of the heap's array, which is not sorted."""
        return (entry for _, entry in self._heap)

    def __contains__(self, entry: object) -> bool:
        return any(one == entry for one in self)

    def add(self, key: Any, entry: T) -> None:
        """Appends the entry, then moves it up while its key is smaller than its parent's key."""
        self._heap.append((key, entry))
        self._up(len(self._heap) - 1, (key, entry))

    def poll(self) -> T | None:
        """Removes and returns the first entry, or None if the queue is empty."""
        heap = self._heap
        if not heap:
            return None
        last = heap.pop()
        if not heap:
            return last[1]
        first = heap[0][1]
        self._down(0, last)
        return first

    def remove(self, entry: T) -> None:
        """Removes the first entry of the array that equals `entry`; there must be one."""
        at = next(i for i, one in enumerate(self) if one == entry)
        last = self._heap.pop()
        if at < len(self._heap) and self._down(at, last) == at:
            self._up(at, last)

    def _up(self, at: int, moving: tuple[Any, T]) -> None:
        heap = self._heap
        while at > 0:
            parent = (at - 1) // 2
            if moving[0] >= heap[parent][0]:
                break
            heap[at] = heap[parent]
            at = parent
        heap[at] = moving

    def _down(self, at: int, moving: tuple[Any, T]) -> int:
        """Moves an entry down from a place; returns the place where it stays."""
        heap = self._heap
        while (child := 2 * at + 1) < len(heap):
            if child + 1 < len(heap) and heap[child][0] > heap[child + 1][0]:
                child += 1
            if moving[0] <= heap[child][0]:
                break
            heap[at] = heap[child]
            at = child
        heap[at] = moving
        return at
