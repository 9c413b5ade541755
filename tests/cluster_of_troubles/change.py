# SPDX-License-Identifier: Apache-2.0
"""Ordinary change: groups that are well gain and lose members, are deployed, stop and start again.

Each group with light members changes once. The storm and the flapping member go on, and a topic
gets partitions, which the members of its groups see after a while, as with metadata.max.age.ms.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

from .groups import GROWS, LIBRARIES, java_member

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.large_cluster.members import LightGroups

    from .groups import Troubles

_TURN_S = 4.0
_STORM_TURNS, _FLAP_TURNS, _JAVA_TURNS = 7, 50, 30
_FIRST_FLAP_TURN = 155
"""After ten minutes: together with the flaps planted at first it would be a storm."""
_EMPTY_TURNS = 15


class OrdinaryChange(threading.Thread):
    """Makes a change every few seconds until `stop`; `made` counts them, `problem` ended them."""

    def __init__(self, cluster: Troubles, create: Callable[[int], None], sees_s: float) -> None:
        """`create(n)` lets the topic GROWS have n partitions; members see new ones in `sees_s`."""
        super().__init__(daemon=True)
        self._cluster, self._create, self._sees_turns = cluster, create, int(sees_s / _TURN_S)
        self._ended = threading.Event()
        self._later: dict[int, list[Callable[[], None]]] = {}
        self._turn = 0
        self.made: Counter[str] = Counter()
        self.problem: Exception | None = None

    def stop(self) -> None:
        self._ended.set()
        self.join(60)

    def run(self) -> None:
        try:
            steps = [self._light(), self._java()]
            self._let_grow()
            while not self._ended.wait(_TURN_S):
                self._turn += 1
                for do in self._later.pop(self._turn, ()):
                    do()
                next(steps[0], None)
                if self._turn % _JAVA_TURNS == 0:
                    next(steps[1], None)
                self._go_on()
            for do in [do for turn in self._later.values() for do in turn]:
                do()
        except Exception as error:  # the judge reports it
            self.problem = error

    def _of(self, group_id: str) -> LightGroups:
        return self._cluster.light[group_id.rpartition("-")[0]]

    def _light(self) -> Iterator[None]:
        """Changes one group after another, once each."""
        for group_id, read in self._cluster.read.items():
            light = self._of(group_id)
            what = self._change(light, group_id, read)
            self.made[what] += 1
            yield

    def _change(self, light: LightGroups, group_id: str, read: list[str]) -> str:
        number, is_one = int(group_id[-3:]), len(light.owned[group_id]) == 1
        if number % 7 == 0:  # a batch job
            light.leave(group_id)
            again = self._turn + _EMPTY_TURNS
            members = len(light.owned[group_id])
            self._at(again, lambda: light.form(group_id, read, members))
            return "stops, later starts"
        if is_one and number % 3:
            light.grow(group_id, read)
            return "a member joins"
        if is_one:
            light.leave(group_id)
            light.form(group_id, read)
            return "deploy"
        light.shrink(group_id, read)
        if number % 3 == 0:
            return "a member leaves"
        light.grow(group_id, read)
        light.shrink(group_id, read, leaves=0)
        light.grow(group_id, read)
        return "deploy"

    def _java(self) -> Iterator[None]:
        """Restarts the members of the real Java groups, one after another, twice: two deploys.

        A third time would be a flapping member.
        """
        names = [one for one in self._cluster.well if one.startswith("real-java")]
        for name, number in 2 * [(name, number) for name in names for number in (0, 1)]:
            assert self._cluster.java
            self._cluster.java.tell(close=[f"{name}-{number}"])
            self._cluster.java.tell(add=[java_member(name, number)])
            self.made["a Java consumer restarts"] += 1
            yield

    def _let_grow(self) -> None:
        names = [f"{library}-{GROWS}" for library in LIBRARIES]
        for group_id in names:
            self._of(group_id).form(group_id, [GROWS], 2)
        self._cluster.well += names
        self._at(2, lambda: self._create(6))

        def see() -> None:
            for group_id in names:
                self._of(group_id).grown(GROWS, 6)
                self._of(group_id).shrink(group_id, [GROWS])
                self._of(group_id).grow(group_id, [GROWS])
            self.made["a topic grows"] += 1

        self._at(2 + self._sees_turns, see)

    def _at(self, turn: int, do: Callable[[], None]) -> None:
        self._later.setdefault(turn, []).append(do)

    def _go_on(self) -> None:
        if self._turn % _STORM_TURNS == 0:
            self._cluster.light["aiokafka"].join_again(self._cluster.planted["storm"], ["six"])
        if self._turn >= _FIRST_FLAP_TURN and self._turn % _FLAP_TURNS == 0:
            flapping = self._cluster.planted["flapping"]
            self._cluster.light["kafkajs"].leave(flapping)
            self._cluster.light["kafkajs"].form(flapping, ["six"])
