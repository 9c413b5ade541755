# SPDX-License-Identifier: Apache-2.0
"""The order of `java.util.PriorityQueue`, on which answers depend when keys are equal.

The queue is a binary heap in an array. Entries with equal keys do not keep their order.

Source   java.util.PriorityQueue of OpenJDK 17 (siftUp, siftDown); the mirror is
         `src/java/priority_queue.rs`.
"""

from typing import Generic, TypeVar

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
        self._heap: list[tuple[float, T]] = []

    def add(self, key: float, entry: T) -> None:
        """Appends the entry, then moves it up while its key is smaller than that of its parent."""
        heap = self._heap
        at = len(heap)
        heap.append((key, entry))
        while at > 0:
            parent = (at - 1) // 2
            if key >= heap[parent][0]:
                break
            heap[at] = heap[parent]
            at = parent
        heap[at] = key, entry

    def poll(self) -> T | None:
        """Removes and returns the first entry (None if empty); the last entry takes its place."""
        heap = self._heap
        if not heap:
            return None
        last = heap.pop()
        if not heap:
            return last[1]
        first = heap[0][1]
        at = 0
        while (child := 2 * at + 1) < len(heap):
            if child + 1 < len(heap) and heap[child][0] > heap[child + 1][0]:
                child += 1
            if last[0] <= heap[child][0]:
                break
            heap[at] = heap[child]
            at = child
        heap[at] = last
        return first
