# SPDX-License-Identifier: Apache-2.0
"""Finds the parts of a prediction for a Connect cluster that depend on facts REST does not show.

A leader revokes work in the order in which the worker started it, and visits workers in the order
of the hashes of their ids (`connect-host:port-<uuid>`). REST shows neither. So the events are
played many times, each time (a draw) with other orders (rotations, and in every fourth draw a
shuffle) and with a random UUID for each worker.
"""

import random
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from kafka_rebalance.assignors.connect.work import Task, Work
from kafka_rebalance.assignors.registry import Engine
from kafka_rebalance.connect.cluster import RoundAnswer
from kafka_rebalance.connect.cluster_changes import play_events
from kafka_rebalance.frozen import Frozen

_MOST_DRAWS, _LEAST_DRAWS = 64, 8
_MOST_WORK = 200_000  # the largest product of items and draws; _LEAST_DRAWS may exceed it
_SHUFFLES = 4  # every fourth draw is a shuffle

Item = str | Task
ConnectChange = tuple[frozenset[Item], frozenset[Item]]
"""The items that a worker starts, and the items that it stops."""


class Varying(Frozen):
    """The items that a worker starts (or stops) in one round, if they differ between draws.

    In each draw, these are `least` to `most` items: all in `sure`, and some in `maybe`.
    """

    round: int
    worker: str
    does: str
    least: int
    most: int
    sure: frozenset[Item]
    maybe: frozenset[Item]

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "sure": _items_dict(self.sure), "maybe": _items_dict(self.maybe)}


class Variation(Frozen):
    """The differences between draws: predictions with random orders and ids.

    `rounds` is the smallest and the largest number of rounds of a draw. `varying` covers only the
    rounds that every draw reaches.
    """

    draws: int
    rounds: tuple[int, int]
    varying: tuple[Varying, ...]

    def to_dict(self) -> dict[str, Any]:
        varying = [one.to_dict() for one in self.varying]
        return {"draws": self.draws, "rounds": list(self.rounds), "varying": varying}


def _items_dict(items: frozenset[Item]) -> dict[str, Any]:
    connectors = sorted(one for one in items if isinstance(one, str))
    tasks = sorted(list(one) for one in items if not isinstance(one, str))
    return {"connectors": connectors, "tasks": tasks}


def vary(
    running: Mapping[str, Work],
    config: Mapping[str, int],
    events: Sequence[str],
    *,
    max_delay_ms: int,
    engine: Engine = "rust",
) -> Variation:
    """Plays the events once for each draw. Errors: the GroupErrors of `play_events`."""
    items = sum(len(work.connectors) + len(work.tasks) for work in running.values())
    draws = max(_LEAST_DRAWS, min(_MOST_DRAWS, _MOST_WORK // max(items, 1)))
    plays = []
    for draw in range(draws):
        ids = _Ids(random.Random(draw))
        work = {ids[one]: _drawn(work, draw, draws) for one, work in running.items()}
        answers = play_events(
            work, config, map(ids.in_event, events), max_delay_ms=max_delay_ms, engine=engine
        )
        plays.append([_changes(answer) for _, answer in answers])
    lengths = [len(play) for play in plays]
    found: list[Varying] = []
    for number, rounds in enumerate(zip(*plays, strict=False), 1):
        found += _varying(number, rounds)
    return Variation(draws, (min(lengths), max(lengths)), tuple(found))


class _Ids(dict[str, str]):
    """The ids of workers, which are named `host:port`, in one draw."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self._rng = rng

    def __missing__(self, worker: str) -> str:
        random_id = uuid.UUID(int=self._rng.getrandbits(128), version=4)
        self[worker] = f"connect-{worker}-{random_id}"
        return self[worker]

    def in_event(self, event: str) -> str:
        """Returns an event such as `worker W joins` with the worker's id in place of W."""
        words = event.split()
        if len(words) > 1 and words[0] in ("worker", "leader"):
            words[1] = self[words[1]]
        return " ".join(words)


def _name(member_id: str) -> str:
    return member_id.removeprefix("connect-")[:-37]  # without "-" and the UUID


def _drawn(work: Work, draw: int, draws: int) -> Work:
    """Returns the work in the order of draw number `draw`: rotated, or shuffled."""
    if draw % _SHUFFLES == _SHUFFLES - 1:
        rng = random.Random(draw)
        connectors = rng.sample(work.connectors, len(work.connectors))
        return Work(tuple(connectors), tuple(rng.sample(work.tasks, len(work.tasks))))
    first, task = (len(each) * draw // draws for each in (work.connectors, work.tasks))
    rotated = work.connectors[first:] + work.connectors[:first]
    return Work(rotated, work.tasks[task:] + work.tasks[:task])


def _changes(answer: RoundAnswer) -> dict[str, ConnectChange]:
    return {
        _name(worker): (
            _items(answer.result.assigned[worker]),
            _items(answer.result.revoked.get(worker, Work())),
        )
        for worker in answer.running
    }


def _items(work: Work) -> frozenset[Item]:
    return frozenset((*work.connectors, *work.tasks))


def _varying(number: int, rounds: Iterable[Mapping[str, ConnectChange]]) -> Iterator[Varying]:
    plays = list(rounds)
    for worker in plays[0]:
        for place, does in enumerate(("starts", "stops")):
            seen = {play[worker][place] for play in plays if worker in play}
            if len(seen) > 1:
                sure = frozenset.intersection(*seen)
                counts = sorted(map(len, seen))
                maybe = frozenset.union(*seen) - sure
                yield Varying(number, worker, does, counts[0], counts[-1], sure, maybe)
