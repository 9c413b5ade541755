# SPDX-License-Identifier: Apache-2.0
"""What REST does not tell of a Connect cluster, drawn, and what of a prediction depends on it.

Not told are the order in which a worker took up what it runs, from the front of which a leader
takes away, and the ids of workers, `connect-host:port-<uuid>`, by whose hashes a leader walks them.
Each draw has other orders and other ids, and the same events are played.

    orders   rotations, so that everything comes to the front in some draw; then shuffles
    ids      a random UUID for each worker and draw
"""

import random
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kafka_rebalance.assignors.connect import Task, Work
from kafka_rebalance.assignors.registry import Engine
from kafka_rebalance.plans.connect import RoundAnswer
from kafka_rebalance.plans.connect.cluster_changes import play_events

_MOST_DRAWS, _LEAST_DRAWS = 64, 8
_MOST_WORK = 200_000  # connectors and tasks, over all draws
_SHUFFLES = 4  # one draw of so many is a shuffle

Item = str | Task
ConnectChange = tuple[frozenset[Item], frozenset[Item]]  # what a worker starts, and what it stops


@dataclass(frozen=True, slots=True)
class Varying:
    """What a worker starts, or stops, in a round: `least` to `most`, of which `sure` always."""

    round: int
    worker: str
    does: str
    least: int
    most: int
    sure: frozenset[Item]
    maybe: frozenset[Item]


@dataclass(frozen=True, slots=True)
class Variation:
    """`rounds` is how many rounds there were, least and most; rounds beyond the least are left out.

    `varying` has only what is not equal in all draws.
    """

    draws: int
    rounds: tuple[int, int]
    varying: tuple[Varying, ...]


def vary(
    running: Mapping[str, Work],
    config: Mapping[str, int],
    events: Sequence[str],
    *,
    max_delay_ms: int,
    engine: Engine = "rust",
) -> Variation:
    """Plays the events in many draws. Errors: GroupError, as `play_events`."""
    items = sum(len(work.connectors) + len(work.tasks) for work in running.values())
    draws = max(_LEAST_DRAWS, min(_MOST_DRAWS, _MOST_WORK // max(items, 1)))
    plays = []
    for draw in range(draws):
        names = _Names(random.Random(draw))
        work = {names.id_of(one): _drawn(work, draw, draws) for one, work in running.items()}
        answers = play_events(
            work, config, map(names.in_event, events), max_delay_ms=max_delay_ms, engine=engine
        )
        plays.append([_changes(answer, names) for _, answer in answers])
    lengths = [len(play) for play in plays]
    found: list[Varying] = []
    for number, rounds in enumerate(zip(*plays, strict=False), 1):
        found += _varying(number, rounds)
    return Variation(draws, (min(lengths), max(lengths)), tuple(found))


class _Names:
    """Worker ids as the leader of one draw knows them."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._ids: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def id_of(self, worker: str) -> str:
        """Of `host:port`; the same id for one that is back."""
        if worker not in self._ids:
            random_id = uuid.UUID(int=self._rng.getrandbits(128), version=4)
            self._ids[worker] = f"connect-{worker}-{random_id}"
            self._names[self._ids[worker]] = worker
        return self._ids[worker]

    def name_of(self, member_id: str) -> str:
        return self._names[member_id]

    def in_event(self, event: str) -> str:
        """`worker W joins` with an id in place of W."""
        words = event.split()
        if len(words) > 1 and words[0] in ("worker", "leader"):
            words[1] = self.id_of(words[1])
        return " ".join(words)


def _drawn(work: Work, draw: int, draws: int) -> Work:
    """The same work in another order."""
    if draw % _SHUFFLES == _SHUFFLES - 1:
        rng = random.Random(draw)
        connectors = rng.sample(work.connectors, len(work.connectors))
        return Work(tuple(connectors), tuple(rng.sample(work.tasks, len(work.tasks))))
    first, task = (len(each) * draw // draws for each in (work.connectors, work.tasks))
    return Work(
        work.connectors[first:] + work.connectors[:first], work.tasks[task:] + work.tasks[:task]
    )


def _changes(answer: RoundAnswer, names: _Names) -> dict[str, ConnectChange]:
    return {
        names.name_of(worker): (
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
