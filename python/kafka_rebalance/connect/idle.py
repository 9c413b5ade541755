# SPDX-License-Identifier: Apache-2.0
"""Finds the work that no worker runs after a round, why, and when the leader will assign it."""

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_rebalance.assignors.connect.work import Work, configured

from .cluster import RoundAnswer


@dataclass(frozen=True, slots=True)
class Idle:
    """Work that is idle for one reason; the leader assigns it at `until_ms`, if that is known."""

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
            # The memory still lists lost work as assigned, but no worker runs or receives it.
            lost = _within(left, memory.assigned) - running(answer.result.assigned)
            why = "lost with its worker, and kept for it in case it returns"
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
    """Returns the reason if the leader backs off and so leaves the load uneven; else None."""
    memory = answer.memory
    if memory is None or not (memory.revoked_in_previous and memory.delay_ms > 0):
        return None
    return (
        f"uneven, but round {memory.revoking_rounds + 1} in a row that would revoke: "
        f"the leader backs off for {memory.delay_ms} ms"
    )


def _within(work: Work, other: Work) -> Work:
    return work - (work - other)
