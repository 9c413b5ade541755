# SPDX-License-Identifier: Apache-2.0
"""Generates random Connect rebalances for the comparison of engines; a seed determines them.

Scripts are difficult on purpose. A script is one cluster in one to twelve rounds. Between two
rounds, time can pass (`_Story.wait`), and events can change the cluster (`EVENTS`). A round can
also fail (`_Story.mishaps`).

    names, max delay --> round --wait, events--> round …

A seed determines a script, because it has one source of random numbers, and no loop runs over a
set. A script is valid by `Script.from_dict`: times do not decrease, a round lists a worker once,
and workers run only work that was in some round's config.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from tests.support.generated_names import CROWDED, FAMILIES, names, pick

Script = dict[str, Any]

MOST_ROUNDS = 12
MOST_WORKERS = 20
MOST_TASKS = 60
# Some of these are steps of Connect's exponential back-off (1, 40, 1600 and 64000 ms).
MAX_DELAYS_MS = (0, 1, 2, 39, 40, 41, 100, 999, 1000, 1600, 64_000, 2**31 - 1)
COMMON_MAX_DELAYS_MS = (300_000, 300_000, 600_000, 3_600_000)
BACKOFF_MS = (1, 40, 999, 1600, 64_000)


def generate(seed: int, count: int) -> Iterator[Script]:
    """Yields `count` random scripts of rounds; one in eight is for the eager assignor."""
    for n in range(count):
        rng = random.Random(f"{seed}/connect/{n}")
        yield _Story(rng, eager=n % 8 == 7).script(f"gen-connect-{seed}-{n:06d}")


class _Story:
    """One cluster with its source of random numbers.

    Events change the cluster in place; `round` returns its state.
    """

    def __init__(self, rng: random.Random, *, eager: bool) -> None:
        self.rng = rng
        self.eager = eager
        self.max_delay_ms = self._max_delay_ms()
        self.time_ms = rng.choice([0, 0, 1, 1000, 1_700_000_000_000])
        self.due_ms: list[int] = []
        # A factor of the probabilities of most failures in this script.
        self.misfortune = rng.choice([0, 0, 0.1, 0.3, 1])
        families = [pick(rng, FAMILIES)]
        if rng.random() < 0.15:
            families.append(pick(rng, FAMILIES))
        self.worker_names = names(rng, families)
        self.connector_names = names(rng, [pick(rng, FAMILIES)])

        self.config: dict[str, int] = {}
        self.known: list[str] = []  # every connector that was in a round's config
        connectors = {0: 1, rng.randint(1, 4): 60, rng.randint(5, 12): 30, rng.randint(13, 40): 9}
        for _ in range(pick(rng, connectors)):
            self.create()
        self.workers: list[str] = []
        self.away: list[str] = []
        self.back: list[str] = []  # workers that have returned since the last round
        self.given: dict[str, dict[str, Any]] = {}  # work to report in the next round, by worker
        crowded = any(family in CROWDED for family in families)
        sizes = {rng.randint(1, 4): 60, rng.randint(5, 9): 30, rng.randint(10, MOST_WORKERS): 10}
        many = crowded and rng.random() < 0.4
        for _ in range(rng.randint(9, MOST_WORKERS) if many else pick(rng, sizes)):
            self.join()

    def script(self, id: str) -> Script:
        rng = self.rng
        rounds = []
        for n in range(rng.randint(1, MOST_ROUNDS)):
            if n or rng.random() < 0.1:
                self.happen(n)
            elif rng.random() < 0.1:
                self.restart()
            rounds.append(self.round())
            self.wait()
        script: Script = {"id": id, "assignor": self._assignor()}
        if not self.eager or rng.random() < 0.5:
            script["max_delay_ms"] = self.max_delay_ms
        return script | {"rounds": rounds}

    def round(self) -> dict[str, Any]:
        """Returns the cluster's present state as a round of the script."""
        rng = self.rng
        workers = []
        for worker in self.workers:
            entry: dict[str, Any] = {"id": worker} | self.given.get(worker, {})
            if worker in self.back and rng.random() < 0.5:
                entry["retained"] = True
            workers.append(entry)
        round_: dict[str, Any] = {
            "time_ms": self.time_ms,
            "workers": workers,
            "config": dict(self.config),
        }
        self.back, self.given = [], {}
        self.known += [name for name in self.config if name not in self.known]
        return round_ | self.mishaps()

    def mishaps(self) -> dict[str, Any]:
        """Chooses random failures of a round."""
        rng = self.rng
        wrong: dict[str, Any] = {}
        if rng.random() < 0.15 * self.misfortune:
            wrong["apply"] = "none"
        elif rng.random() < 0.3 * self.misfortune:
            wrong["apply"] = rng.sample(self.workers, rng.randint(0, len(self.workers)))
        elif rng.random() < 0.1:
            wrong["apply"] = "all"
        if rng.random() < 0.12 * self.misfortune:
            wrong["generation_mismatch"] = True
        if rng.random() < 0.08 * self.misfortune:
            wrong["new_leader"] = True
        if rng.random() < (0.3 if self.eager else 0.08) and self.config:
            wrong["inconsistent"] = rng.sample(list(self.config), rng.randint(1, len(self.config)))
        return wrong

    def wait(self) -> None:
        """Lets time pass, often to within 1 ms of a time at which the leader may stop waiting."""
        rng = self.rng
        due = [due_ms for due_ms in self.due_ms if due_ms >= self.time_ms]
        if due and rng.random() < 0.4:
            # At the scheduled time itself (+0 ms), the leader's wait is over.
            at_ms = rng.choice(due) + rng.choice([-1, 0, 0, 0, 0, 1])
            self.time_ms = max(self.time_ms, at_ms)
            return
        delay = self.max_delay_ms
        steps = [0, 0, 1, *BACKOFF_MS, rng.randint(0, 1000), delay // 3, delay // 2, delay]
        self.time_ms += rng.choice(steps)

    def happen(self, n: int) -> None:
        """Plays the events between two rounds; keeps the times when the leader's waits may end."""
        rng = self.rng
        for _ in range(pick(rng, {0: 4, 1: 8, 2: 3, 4: 1})):
            event = pick(rng, EVENTS)
            event(self)
        # A wait for lost workers ends at the deadline that it got in its first round, so older
        # times are kept, too. A back-off can start in any round.
        self.due_ms = [*self.due_ms[-4:], self.time_ms + self.max_delay_ms]
        if n and rng.random() < 0.5:
            self.due_ms.append(self.time_ms + min(self.max_delay_ms, rng.choice(BACKOFF_MS)))

    # Events.

    def join(self) -> None:
        if len(self.workers) < MOST_WORKERS:
            place = self.rng.randint(0, len(self.workers))
            self.workers.insert(place, next(self.worker_names))

    def leave(self) -> None:
        if len(self.workers) > 1:
            worker = self.rng.choice(self.workers)
            self.workers.remove(worker)
            self.away.append(worker)

    def return_(self) -> None:
        if self.away and len(self.workers) < MOST_WORKERS:
            worker = self.away.pop(self.rng.randrange(len(self.away)))
            self.workers.insert(self.rng.randint(0, len(self.workers)), worker)
            self.back.append(worker)

    def bounce(self) -> None:
        """A step of a rolling restart: an absent worker returns, and a worker leaves."""
        self.return_()
        self.leave()

    def crash(self) -> None:
        """Two thirds of the workers leave at once."""
        for _ in range(len(self.workers) * 2 // 3):
            self.leave()

    def heal(self) -> None:
        for _ in range(len(self.away)):
            self.return_()

    def shuffle(self) -> None:
        """Changes only the order of the workers."""
        self.rng.shuffle(self.workers)

    def create(self) -> None:
        rng = self.rng
        name = next(self.connector_names)
        if rng.random() < 0.2:
            gone = [connector for connector in self.known if connector not in self.config]
            name = rng.choice(gone) if gone else name
        self.config[name] = self._tasks()

    def delete(self) -> None:
        # Deletes only connectors that were in a round's config: after a restart, a worker may
        # report any present connector, and a script refuses work that no round has configured.
        deletable = [name for name in self.known if name in self.config]
        if deletable:
            del self.config[self.rng.choice(deletable)]

    def resize(self) -> None:
        if self.config:
            name = self.rng.choice(list(self.config))
            self.config[name] = 0
            self.config[name] = self._tasks()

    def claim(self) -> None:
        """A worker reports random work, perhaps other workers' work or work not configured now."""
        if not self.known:
            return
        rng = self.rng
        claims: dict[str, Any] = {}
        if rng.random() < 0.8:
            claims["connectors"] = rng.sample(self.known, rng.randint(0, min(4, len(self.known))))
        if rng.random() < 0.8 or not claims:
            claims["tasks"] = [self._task() for _ in range(rng.randint(0, 8))]
        self.given[rng.choice(self.workers)] = claims

    def restart(self) -> None:
        """In the next round, random workers report all configured work as theirs."""
        running: dict[str, dict[str, Any]] = {
            worker: {"connectors": [], "tasks": []} for worker in self.workers
        }
        for name, count in self.config.items():
            running[self.rng.choice(self.workers)]["connectors"].append(name)
            for n in range(count):
                running[self.rng.choice(self.workers)]["tasks"].append([name, n])
        self.given = running

    # Random choices.

    def _tasks(self) -> int:
        rng = self.rng
        room = max(0, MOST_TASKS - sum(self.config.values()))
        return min(room, pick(rng, {0: 2, 1: 4, rng.randint(2, 5): 8, rng.randint(6, 40): 3}))

    def _task(self) -> list[Any]:
        name = self.rng.choice(self.known)
        return [name, self.rng.randint(0, max(1, self.config.get(name, 3)))]

    def _max_delay_ms(self) -> int:
        rng = self.rng
        sizes = {rng.choice(COMMON_MAX_DELAYS_MS): 5, rng.choice(MAX_DELAYS_MS): 4}
        return pick(rng, sizes | {rng.randint(0, 1000): 2, rng.randint(0, 10_000_000): 1})

    def _assignor(self) -> str:
        name = "eager" if self.eager else "incremental"
        return self.rng.choice(["connect/", "connect-"]) + name


EVENTS = {
    _Story.join: 4,
    _Story.leave: 5,
    _Story.return_: 5,
    _Story.bounce: 4,
    _Story.crash: 1,
    _Story.heal: 1,
    _Story.shuffle: 1,
    _Story.create: 4,
    _Story.delete: 3,
    _Story.resize: 3,
    _Story.claim: 2,
    _Story.restart: 1,
}
