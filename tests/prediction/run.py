# SPDX-License-Identifier: Apache-2.0
"""Runs a cluster with several groups at a time, until enough changes are made or time is up."""

from __future__ import annotations

import concurrent.futures
import itertools
import sys
import tempfile
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.broker import Broker

from .cast import JAVA, LIBRARIES, LIBRDKAFKA, RACKS, casts
from .events import LOST_RACK
from .log import OffsetsLog
from .members import Members
from .result import Result, result
from .stage import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .cast import Cast
    from .observed import Observed
    from .told import Foreseen

    Seen = Callable[[Observed, Foreseen | None], None]

LOSSES = 25
"""One change in this many is the loss of a rack, if there are three brokers."""

_WITH_RACKS = (JAVA, LIBRDKAFKA)
_REPLICATED = {"offsets.topic.replication.factor": "3"}

MOST_CHANGES_A_GROUP = 3
FAILED_GROUPS = 10
"""If more groups than this ended before a change, the run starts no further group."""


class _Budget:
    """The number of remaining changes, and the groups that play them; many threads share it."""

    def __init__(self, changes: int, a_group: int, groups: Iterator[Cast]) -> None:
        self._left = changes
        self._a_group = a_group
        self._groups = groups
        self._failed = 0
        self._lock = threading.Lock()

    def take(self) -> tuple[Cast, int] | None:
        with self._lock:
            if not self._left or self._failed > FAILED_GROUPS:
                return None
            changes = min(self._a_group, self._left)
            self._left -= changes
            return next(self._groups), changes

    def give_back(self, changes: int, *, failed: bool) -> None:
        with self._lock:
            self._left += changes
            self._failed += failed


def run(
    changes: int,
    seed: int,
    *,
    leaders: Sequence[str] = LIBRARIES,
    minutes: float = 40,
    brokers: int = 3,
    lanes: int = 5,
    events: Sequence[str] = (),
    enough: int | None = None,
    progress: Callable[[Result], None] = lambda _: None,
) -> list[Result]:
    """Plays and judges changes, only those in `events` unless it is empty; a switch ends its group.

    When `enough` results tell something, after `minutes`, or at Ctrl-C, returns the results so far.

    Errors: BrokerError, and every error of a thread that plays a group.
    """
    results: list[Result] = []
    lock = threading.Lock()
    stop = threading.Event()

    def seen(observed: Observed, foreseen: Foreseen | None) -> None:
        one = result(observed, foreseen)
        with lock:
            if enough and stop.is_set():  # cut off by the end: not all of its members are known
                return
            results.append(one)
            progress(one)
            if sum(each.told is not None for each in results) == enough:
                stop.set()

    losses = changes // LOSSES if not events else changes * (LOST_RACK in events)
    changes -= losses
    a_group = max(2, min(MOST_CHANGES_A_GROUP, changes // 11))
    budget = _Budget(changes, a_group, casts(seed, leaders, brokers))
    timer = threading.Timer(60 * minutes, stop.set)
    with (
        tempfile.TemporaryDirectory(prefix="kafka-rebalance-prediction-") as directory,
        _cluster(brokers) as broker,
        OffsetsLog(broker.bootstrap_server) as log,
        Members(broker.bootstrap_server, Path(directory)) as members,
        concurrent.futures.ThreadPoolExecutor(lanes) as pool,
    ):
        timer.start()
        stage = partial(Stage, broker.bootstrap_server, brokers, members, log, stop, seen, events)
        futures = [pool.submit(_lane, stage, budget, stop) for _ in range(lanes)]
        try:
            for future in concurrent.futures.as_completed(futures):
                future.result()
        except KeyboardInterrupt:
            print("ending …", file=sys.stderr)
        finally:
            stop.set()
            timer.cancel()
    if brokers == len(RACKS):
        _lose_racks(losses, casts(f"{seed}/racks", _WITH_RACKS, brokers), seen)
    return results


def _lose_racks(number: int, groups: Iterator[Cast], seen: Seen) -> None:
    """Loses racks, each in a separate cluster whose topics have replicas in two racks."""
    for cast in itertools.islice(filter(_has_racks, groups), number):
        with (
            tempfile.TemporaryDirectory(prefix="kafka-rebalance-prediction-") as directory,
            Broker(brokers=len(RACKS), properties=_REPLICATED) as broker,
            OffsetsLog(broker.bootstrap_server) as log,
            Members(broker.bootstrap_server, Path(directory)) as members,
        ):
            server, stop = broker.bootstrap_server, threading.Event()
            only = (LOST_RACK,)
            stage = Stage(server, len(RACKS), members, log, stop, seen, only, broker.kill)
            try:
                stage.play(cast, 1)
            finally:
                stage.close()


def _has_racks(cast: Cast) -> bool:
    replicas = min(len(at) for topic in cast.topics.values() for at in topic)
    lost = {part.rack_id for part in cast.parts} & {*RACKS[1:]}
    return replicas > 1 and len({part.rack_id for part in cast.parts}) > 1 and bool(lost)


def _lane(make: Callable[[], Stage], budget: _Budget, stop: threading.Event) -> None:
    stage = make()
    try:
        while not stop.is_set() and (taken := budget.take()):
            cast, changes = taken
            played = stage.play(cast, changes)
            budget.give_back(changes - played, failed=not played)
    finally:
        stage.close()


def _cluster(brokers: int) -> Broker:
    """Returns a cluster whose nodes have racks, even if there is only one node."""
    return Broker(brokers=brokers, properties={"broker.rack": RACKS[0]} if brokers == 1 else {})
