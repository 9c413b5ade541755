# SPDX-License-Identifier: Apache-2.0
"""A table that is made again from the log has the key order of one table with reverts."""

from __future__ import annotations

import random
from collections.abc import Sequence

from kafka_rebalance.java.timeline_hash_map import TimelineHashMap

KEYS = "abcdefghijkl"
Change = tuple[str, int | None]
"""A key, and its new value or None if it is removed."""


def apply(table: TimelineHashMap[str, int], changes: Sequence[Change]) -> None:
    for key, value in changes:
        if value is None:
            table.remove(key)
        else:
            table.put(key, value)


class Remade:
    """The table of a group in the coordinator, beside the table of the records in the log.

    After a failed append, the table is a copy of the one in the log, changed by the appends in
    flight; it takes the places of the keys from the table that failed.
    """

    def __init__(self) -> None:
        self.table = TimelineHashMap[str, int]()
        self.durable = TimelineHashMap[str, int]()
        self.in_flight: list[Sequence[Change]] = []

    def append(self, changes: Sequence[Change], epoch: int) -> None:
        self.table.snapshot(epoch)
        apply(self.table, changes)
        self.in_flight.append(changes)

    def complete(self) -> None:
        apply(self.durable, self.in_flight.pop(0))

    def fail(self) -> None:
        """Takes back the newest append."""
        del self.in_flight[-1]
        after = self.durable.copy()
        for changes in self.in_flight:
            apply(after, changes)
        self.table.revert()
        after.take_places(self.table)
        self.table = after


def test_a_table_after_failed_appends_is_one_table_with_as_many_reverts() -> None:
    """After every append, both tables have equal entries. Up to three appends are in flight."""
    failed_twice = 0
    for seed in range(400):
        rng = random.Random(seed)
        one, remade = TimelineHashMap[str, int](), Remade()
        epoch, failed = 0, [False]
        for number in range(30):
            changes = [
                (rng.choice(KEYS), number if rng.random() < 0.6 else None)
                for _ in range(rng.randint(1, 4))
            ]
            one.snapshot(epoch)
            apply(one, changes)
            remade.append(changes, epoch)
            failed.append(rng.random() < 0.4)
            if failed[-1]:
                one.revert()
                remade.fail()
                failed_twice += failed[-2] and bool(remade.in_flight)
            else:
                epoch += 1
            while len(remade.in_flight) > rng.randint(0, 3):
                remade.complete()
            assert remade.table.items() == one.items()
    assert failed_twice > 500
