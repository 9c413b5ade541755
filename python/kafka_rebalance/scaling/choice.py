# SPDX-License-Identifier: Apache-2.0
"""Which number of members an autoscaler should ask for, as a document that it can read.

Everything is counted in records. A count of members costs, over the next `horizon_s` seconds:

    waiting   the records that still wait at the end of that time: of each member, its lag, and what
              arrives above its capacity
    the step  the records that arrive for the partitions that stop, while they stop
    members   a share of what the members could read (`member_share`): a member is worth having only
              if it saves more records than that from waiting

The count with the least cost is chosen. The present count has no step: so no step is chosen whose
cost exceeds its gain, and a step is not taken back as long as rates and lag stay the same. Counts
that are not useful are never chosen.
"""

from dataclasses import dataclass
from typing import Any

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.spec import counted

from .counts import Count, Scaled

HORIZON_S, MEMBER_SHARE, PAUSE_S = 300.0, 0.1, 3.0


@dataclass(frozen=True, slots=True)
class Choice:
    """The number of replicas to ask for, beside the present one, and the reason.

    `waiting`, `step` and `kept_waiting` are records: those that wait with the chosen number, those
    that its step stops, and those that wait with the present number.
    """

    group_id: str
    replicas: int
    replicas_now: int
    members: int
    waiting: int
    step: int
    kept_waiting: int
    because: str

    def to_dict(self) -> dict[str, Any]:
        """Returns the document for autoscalers.

        KEDA's scaler `metrics-api` reads it with valueLocation `replicas` and targetValue 1.
        """
        return {name: getattr(self, name) for name in self.__slots__}


def choose(
    scaled: Scaled,
    *,
    least: int = 1,
    most: int | None = None,
    horizon_s: float = HORIZON_S,
    member_share: float = MEMBER_SHARE,
    pause_s: float = PAUSE_S,
) -> Choice:
    """Chooses among the counts of `scale`, from `least` to `most` replicas.

    `scaled` needs rates or lag, and the capacity of a member. `pause_s` is how long a partition
    stops, where the simulator has not played the step: one heartbeat interval of a Java consumer.

    Errors   GroupError at `capacity`, `rate`, `horizon_s`, `member_share`, `pause_s`, or at `least`
             if no count that has an answer is from `least` to `most`.
    """
    capacity = scaled.load.capacity
    if capacity is None:
        raise GroupError("capacity", "is not given: how many records a second a member can read")
    if scaled.load.rate is None and scaled.load.lag is None:
        raise GroupError("rate", "neither rates nor lag are given, so no count is better than now")
    for name, value in (("horizon_s", horizon_s), ("pause_s", pause_s)):
        if not value > 0:
            raise GroupError(name, f"{value} is not a number of seconds above 0")
    if not 0 <= member_share < 1:
        raise GroupError("member_share", f"{member_share} is not a share from 0 to below 1")
    now = scaled.now

    def waiting(one: Count) -> float:
        return sum(max(0.0, lag + (rate - capacity) * horizon_s) for rate, lag in one.loads)

    def step(one: Count) -> float:
        if one is now:
            return 0.0
        if one.times is not None and one.stops:
            return one.stopped_rate * one.times.unread_partition_s / one.stops
        return one.stopped_rate * pause_s

    def cost(one: Count) -> tuple[float, bool, int]:
        members = member_share * capacity * horizon_s * one.members
        return waiting(one) + step(one) + members, one is not now, one.members

    candidates = [
        one
        for one in scaled.counts
        if one.error is None
        and (one.useful or one is now)
        and least <= one.replicas <= (one.replicas if most is None else most)
    ]
    if not candidates:
        problem = f"no count from {least} to {'any number' if most is None else most} has an answer"
        raise GroupError("least", problem)
    chosen = min(candidates, key=cost)
    return Choice(
        scaled.group_id,
        chosen.replicas,
        now.replicas,
        chosen.members,
        round(waiting(chosen)),
        round(step(chosen)),
        round(waiting(now)),
        _because(chosen, now, horizon_s, waiting(chosen), step(chosen), waiting(now)),
    )


def _because(
    chosen: Count, now: Count, horizon_s: float, waiting: float, step: float, kept: float
) -> str:
    after = f"in {horizon_s:g} s"
    if chosen is now:
        return f"{counted(now.members)} stay: no step saves more records than it costs {after}"
    costs = f"the step stops partitions for which {step:,.0f} arrive"
    if chosen.members > now.members:
        return (
            f"{counted(chosen.members)} instead of {now.members}: {after}, {waiting:,.0f} records "
            f"wait instead of {kept:,.0f}; {costs}"
        )
    return (
        f"{counted(chosen.members)} instead of {now.members} are enough: {after}, {waiting:,.0f} "
        f"records wait; {costs}"
    )
