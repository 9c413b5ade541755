# SPDX-License-Identifier: Apache-2.0
"""Plays the rebalances of a Connect cluster: the work of each worker, and the leader's memory."""

from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, field

from kafka_rebalance.assignors.connect.engines import assign_eager, handle
from kafka_rebalance.assignors.connect.incremental import ConnectSpec, Memory, Result
from kafka_rebalance.assignors.connect.work import Work, configured
from kafka_rebalance.assignors.registry import Engine
from kafka_rebalance.frozen import Frozen, Mutable


class ClusterRound(Frozen):
    """The input of one rebalance of a cluster.

    `running[worker]` is the work that the worker reports. None: it reports the work that it had
    after the previous round. A worker that was absent in that round reports nothing, unless
    `retained` contains it; in that case, it reports the work that it had after its last round.
    `config` maps connectors to their numbers of tasks. `apply` lists the workers that receive the
    answer; None: all do.
    """

    time_ms: int
    running: Mapping[str, Work | None]
    config: Mapping[str, int]
    retained: Collection[str] = ()
    apply: Collection[str] | None = None
    generation_mismatch: bool = False
    new_leader: bool = False


class RoundAnswer(Frozen):
    """One rebalance: the work that workers reported (`running`), its result, and the work after it.

    `memory` is the leader's memory after the rebalance; None in an eager cluster.
    """

    round: ClusterRound
    running: Mapping[str, Work]
    result: Result
    after: Mapping[str, Work]
    memory: Memory | None


class ConnectCluster(Mutable):
    """A Connect cluster. Call `step` once for each rebalance, in order of time.

    With `own_order`, a worker keeps its work in its own order, as a real worker does; else in the
    order in which the leader read that work. In rare cases this order decides which work is
    revoked.
    """

    _: KW_ONLY
    eager: bool
    max_delay_ms: int
    own_order: bool = False
    engine: Engine = "rust"
    memory: Memory = field(default_factory=Memory)
    carried: dict[str, Work] = field(default_factory=dict)  # the last work of each worker so far
    before: Collection[str] = ()  # the workers of the round before
    generation_id: int = 0

    def step(self, round_: ClusterRound) -> RoundAnswer:
        """Plays one rebalance: workers report, the leader answers, workers apply the answer."""
        self.generation_id += 1
        own = {worker: self._own(worker, round_) for worker in round_.running}
        reported = {worker: work.after_wire() for worker, work in own.items()}
        if self.eager:
            assigned = assign_eager(list(own), round_.config, engine=self.engine)
            result = Result(assigned, {}, 0, 0)
        else:
            spec = ConnectSpec(
                reported,
                round_.config,
                self.max_delay_ms,
                self.generation_id,
                self.generation_id - 1 - round_.generation_mismatch,
            )
            memory = Memory() if round_.new_leader else self.memory
            self.memory, result = handle(memory, spec, round_.time_ms, engine=self.engine)
        after = {}
        for worker in own:
            if round_.apply is not None and worker not in round_.apply:
                after[worker] = own[worker]
            elif self.eager:  # an eager worker stopped all its work before the rebalance
                after[worker] = result.assigned[worker]
            else:
                kept = (own if self.own_order else reported)[worker] - result.revoked[worker]
                after[worker] = result.assigned[worker].after_wire() + kept
        self.carried.update(after)
        self.before = own
        return RoundAnswer(round_, reported, result, after, None if self.eager else self.memory)

    def _own(self, worker: str, round_: ClusterRound) -> Work:
        given = round_.running[worker]
        if given is not None:
            return given
        if worker in self.before or worker in round_.retained:
            return self.carried.get(worker, Work())
        return Work()


class Idle(Frozen):
    """Work that is idle for the reason `why`; it is assigned at `until_ms`, None if unknown."""

    work: Work
    why: str
    until_ms: int | None


def idle(answer: RoundAnswer) -> list[Idle]:
    """Returns all configured work that no worker runs, grouped by reason."""
    left = configured(answer.round.config) - running(answer.after)
    found: list[Idle] = []
    memory = answer.memory
    now_ms = answer.round.time_ms
    if memory is not None:
        revoked = _within(left, memory.revoked)
        why = "revoked in this round, assigned in the next, which follows at once"
        found.append(Idle(revoked, why, now_ms))
        left = left - revoked
        if memory.scheduled_rebalance_ms > 0:
            # The memory still lists lost work as assigned, but no worker runs it or is assigned it.
            lost = _within(left, memory.assigned) - running(answer.result.assigned)
            why = "its worker is gone: kept for it in case it returns"
            found.append(Idle(lost, why, memory.scheduled_rebalance_ms))
            left = left - lost
    found.append(Idle(left, "assigned, but the worker did not get the answer", None))
    return [one for one in found if one.work]


def running(after: Mapping[str, Work]) -> Work:
    return Work.of(
        [c for work in after.values() for c in work.connectors],
        [t for work in after.values() for t in work.tasks],
    )


def backing_off(answer: RoundAnswer) -> str | None:
    """Returns a text if the leader backs off, and so does not even out the load yet; else None."""
    memory = answer.memory
    if memory is None or not (memory.revoked_in_previous and memory.delay_ms > 0):
        return None
    return (
        f"uneven, but round {memory.revoking_rounds + 1} in a row that would revoke: "
        f"the leader backs off for {memory.delay_ms} ms"
    )


def _within(work: Work, other: Work) -> Work:
    return work - (work - other)
