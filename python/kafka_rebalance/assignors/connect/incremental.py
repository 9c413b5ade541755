# SPDX-License-Identifier: Apache-2.0
"""Connect incremental cooperative: only work that has to move stops.

`handle` is one round of the leader: from the work that each worker reports, it computes the work
that each worker has to start and to stop. The caller keeps the leader's memory between two rounds.

    handle: (Memory, ConnectSpec, now_ms) -> (Memory, Result)        no clock, no I/O

1. If a sync was lost (the last completed generation is not the remembered one), the leader forgets
   the work that it assigned. If work that it revoked in the last round still runs, all running work
   counts as assigned.
2. deleted = assigned - configured;  lost = assigned - running - deleted;
   created = configured - assigned - running.
3. Work that is deleted, or that runs on more than one worker, is revoked.
4. Lost work waits up to `max_delay_ms` for its worker to return. After the wait, it goes to the
   workers that had no work in some round of the wait. Without such a worker, it counts as created
   work. If no worker is missing when the wait would begin, it counts as created work at once.
5. If no work waits, workers with more than an even share lose the excess. If the last round also
   revoked work for this reason, the leader first waits (back-off).
6. Created connectors go to the workers with the fewest connectors, created tasks to those with the
   fewest tasks. Ties go to the worker that had fewer before this step; then ids break ties.

Order    workers are in the hash order of their ids; in step 5, a worker loses work from the front
         of its report; in step 6, created work comes first, then lost work, each sorted by name.
Cost     O(W + C + T) and sorting: W workers, C connectors, T tasks.
Errors   AssignorThrows if there are no workers.
Source   IncrementalCooperativeAssignor (Connect 4.3.1); KIP-415, KAFKA-12495 (back-off).
Differs  for a few maximum delays (1207 ms, 3049 ms, …: 146 of the first 1.5 million), Java's
         Math.pow and C's pow round differently, and the back-off can differ by 1 ms.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from kafka_rebalance.errors import AssignorThrows
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.java.order import java_hash_order, name_key

from .work import NOTHING, Task, Work, configured

T = TypeVar("T")


class ConnectSpec(Frozen):
    """The input of a round: the workers in member order, each with the work that it reports.

    `config` maps each connector to its number of tasks. `max_delay_ms` is the setting
    scheduled.rebalance.max.delay.ms. `generation_id` is the generation that this round makes;
    `last_completed_generation_id` is the newest one whose assignment the leader has received.
    """

    running: Mapping[str, Work]
    config: Mapping[str, int]
    max_delay_ms: int
    generation_id: int
    last_completed_generation_id: int


class Result(Frozen):
    """The work that each worker starts and stops; the next round follows after `delay_ms`.

    `scheduled_rebalance_ms` is the time of the next round. If none is scheduled, both are 0.
    """

    assigned: Mapping[str, Work]
    revoked: Mapping[str, Work]
    delay_ms: int
    scheduled_rebalance_ms: int


class Memory(Frozen):
    """The memory of a leader after a round; the memory of a new leader is `Memory()`.

    assigned                the work of all workers, and the waiting lost work; sorted
    revoked                 the work that the round revoked; sorted
    candidates              the workers that had no work in some round while lost work waited
    scheduled_rebalance_ms  the time of the next round in ms; 0 if none is scheduled
    """

    assigned: Work = NOTHING
    revoked: Work = NOTHING
    generation_id: int = -1
    members: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    scheduled_rebalance_ms: int = 0
    delay_ms: int = 0
    revoked_in_previous: bool = False
    revoking_rounds: int = 0


@dataclass(eq=False, slots=True)
class _Worker:
    """A worker's work, which changes as the round assigns and revokes."""

    worker: str
    connectors: list[str]
    tasks: list[Task]

    def drop(self, work: Work) -> None:
        left = Work(tuple(self.connectors), tuple(self.tasks)) - work
        self.connectors, self.tasks = list(left.connectors), list(left.tasks)

    def work(self) -> Work:
        return Work(tuple(self.connectors), tuple(self.tasks))


@dataclass(eq=False, slots=True)
class _Leader:
    """The state of the leader during a round. `memory` is its memory after the last round."""

    now_ms: int
    max_delay_ms: int
    memory: Memory
    workers: list[_Worker]
    candidates: list[str]
    delay_ms: int
    scheduled_ms: int
    revoked_in_previous: bool
    revoking_rounds: int
    revoked: dict[str, Work] = field(default_factory=dict)

    def revoke(self, work: Mapping[str, Work]) -> None:
        for worker in self.workers:
            gone = work.get(worker.worker, Work())
            self.revoked[worker.worker] = self.revoked.get(worker.worker, Work()) + gone
            worker.drop(gone)


def handle(memory: Memory, spec: ConnectSpec, now_ms: int) -> tuple[Memory, Result]:
    if not spec.running:
        raise AssignorThrows.of(
            "connect/incremental", "IndexOutOfBoundsException", "there is no worker"
        )
    running = {worker: spec.running[worker] for worker in _hash_order(spec.running)}
    target = configured(spec.config)
    active = Work.union(running.values())
    # 1.
    previous = memory.assigned
    if memory.generation_id != spec.last_completed_generation_id:
        previous = Work()
    if _overlap(memory.revoked, active):
        previous = active
    # 2.
    deleted = (previous - target).sorted()
    lost = (previous - active - deleted).sorted()
    created = (target - previous - active).sorted()
    leader = _Leader(
        now_ms,
        spec.max_delay_ms,
        memory,
        [_Worker(w, list(work.connectors), list(work.tasks)) for w, work in running.items()],
        list(memory.candidates),
        memory.delay_ms,
        memory.scheduled_rebalance_ms,
        memory.revoked_in_previous,
        memory.revoking_rounds,
    )
    # 3.
    for gone in (deleted, _duplicated(running.values())):
        leader.revoke({worker: _running_of(work, gone) for worker, work in running.items()})
    # 4.
    lost_as_new = _handle_lost(leader, lost)
    # 5.
    if leader.delay_ms == 0:
        _balance_load(leader, target)
    else:
        leader.revoked_in_previous = False
    # 6.
    new = created + lost_as_new
    _deal(leader.workers, new.connectors, lambda worker: worker.connectors)
    _deal(leader.workers, new.tasks, lambda worker: worker.tasks)
    assigned = {w.worker: w.work() - (running[w.worker] - deleted) for w in leader.workers}
    result = Result(assigned, leader.revoked, leader.delay_ms, leader.scheduled_ms)
    return _remember(leader, spec, lost), result


def _hash_order(workers: Iterable[str]) -> list[str]:
    """Returns workers in the order of a copy of a HashMap that was filled in member order."""
    return java_hash_order(java_hash_order(list(workers)))


def _overlap(some: Work, others: Work) -> bool:
    return not (
        set(some.connectors).isdisjoint(others.connectors)
        and set(some.tasks).isdisjoint(others.tasks)
    )


def _duplicated(running: Iterable[Work]) -> Work:
    works = list(running)
    connectors = Counter(c for work in works for c in work.connectors)
    tasks = Counter(t for work in works for t in work.tasks)
    return Work(
        tuple(c for c, count in connectors.items() if count > 1),
        tuple(t for t, count in tasks.items() if count > 1),
    )


def _running_of(running: Work, gone: Work) -> Work:
    """Returns the part of `gone` that is in `running`, in the order of a hash set of `running`."""
    order = running.in_hash_order()
    return order - (order - gone)


def _handle_lost(leader: _Leader, lost: Work) -> Work:
    """Assigns lost work whose wait is over; returns the lost work that counts as created."""
    if not lost and not leader.revoked_in_previous:
        _end_wait(leader)
        return Work()
    present = {worker.worker for worker in leader.workers}
    if leader.scheduled_ms <= 0 and present.issuperset(leader.memory.members):
        return lost  # no worker is missing, so waiting would be useless
    if leader.max_delay_ms == 0:
        return lost
    if 0 < leader.scheduled_ms <= leader.now_ms:
        by_id = {worker.worker: worker for worker in leader.workers}
        takers = [by_id[candidate] for candidate in leader.candidates if candidate in by_id]
        for i, connector in enumerate(lost.connectors if takers else ()):
            takers[i % len(takers)].connectors.append(connector)
        for i, task in enumerate(lost.tasks if takers else ()):
            takers[i % len(takers)].tasks.append(task)
        _end_wait(leader)
        leader.revoked_in_previous = False
        return Work() if takers else lost
    empty = java_hash_order([w.worker for w in leader.workers if not w.work()])
    leader.candidates = list(dict.fromkeys(leader.candidates + empty))
    left_ms = leader.scheduled_ms - leader.now_ms
    leader.delay_ms = min(left_ms, leader.max_delay_ms) if left_ms > 0 else leader.max_delay_ms
    leader.scheduled_ms = leader.now_ms + leader.delay_ms
    return Work()


def _end_wait(leader: _Leader) -> None:
    leader.candidates = []
    leader.scheduled_ms = 0
    leader.delay_ms = 0


def _balance_load(leader: _Leader, target: Work) -> None:
    surplus = _surplus(leader.workers, target)
    if surplus and leader.revoked_in_previous:
        leader.revoking_rounds += 1
        leader.delay_ms = backoff_ms(leader.revoking_rounds, leader.max_delay_ms)
        if leader.delay_ms != 0:
            leader.scheduled_ms = leader.now_ms + leader.delay_ms
        else:
            leader.revoke(surplus)
    elif surplus:
        leader.revoke(surplus)
        leader.revoked_in_previous = True
    elif leader.revoked_in_previous:
        leader.revoked_in_previous = False
        leader.revoking_rounds = 0


def _surplus(workers: Sequence[_Worker], target: Work) -> dict[str, Work]:
    """Returns worker -> the work above its share, for each worker that has more than its share."""
    if not target or not any(worker.work() for worker in workers):
        return {}
    connectors = _above_share(workers, len(target.connectors), lambda worker: worker.connectors)
    tasks = _above_share(workers, len(target.tasks), lambda worker: worker.tasks)
    return {
        w.worker: Work(tuple(connectors.get(w.worker, ())), tuple(tasks.get(w.worker, ())))
        for w in workers
        if w.worker in connectors or w.worker in tasks
    }


def _above_share(
    workers: Sequence[_Worker], total: int, held: Callable[[_Worker], list[T]]
) -> dict[str, list[T]]:
    share, extras = divmod(total, len(workers))
    sizes = Counter(len(held(worker)) for worker in workers)
    if sizes[share + 1] == extras and sizes[share] + sizes[share + 1] == len(workers):
        return {}
    surplus = {}
    for worker in workers:
        size = len(held(worker))
        if size <= share:
            continue
        keep = share
        if extras > 0:
            extras -= 1
            keep = share + 1
            if size == keep:
                continue
        surplus[worker.worker] = held(worker)[: size - keep]
    return surplus


def _deal(workers: list[_Worker], new: Sequence[T], held: Callable[[_Worker], list[T]]) -> None:
    """Sorts the workers by items held, then id; gives each new item to a worker with the fewest."""
    workers.sort(key=lambda worker: (len(held(worker)), name_key(worker.worker)))
    left = list(reversed(new))
    while left:
        level = len(held(workers[0]))
        for worker in workers:
            if not left or len(held(worker)) > level:
                break
            held(worker).append(left.pop())


def _remember(leader: _Leader, spec: ConnectSpec, lost: Work) -> Memory:
    revoked = Work.union(leader.revoked.values())
    assigned = Work.union([worker.work() for worker in leader.workers])
    return Memory(
        assigned=(assigned - revoked + lost).sorted(),
        revoked=revoked.sorted(),
        generation_id=spec.generation_id,
        members=tuple(spec.running),
        candidates=tuple(leader.candidates),
        scheduled_rebalance_ms=leader.scheduled_ms,
        delay_ms=leader.delay_ms,
        revoked_in_previous=leader.revoked_in_previous,
        revoking_rounds=leader.revoking_rounds,
    )


def backoff_ms(rounds: int, max_delay_ms: int) -> int:
    """Returns the back-off in ms after `rounds` revoking rounds in a row: 40, 1600, …

    The result is truncated from a double, so it may be 1 ms less than the maximum delay.

    >>> [backoff_ms(n, 1000) for n in (1, 2, 3)]
    [40, 999, 999]
    """
    first = min(1, max_delay_ms)
    if max_delay_ms <= first:
        return first
    exponent = min(rounds, math.log(max_delay_ms / max(first, 1)) / math.log(40))
    return min(int(first * 40**exponent), max_delay_ms)
