# SPDX-License-Identifier: Apache-2.0
"""Which number of members an autoscaler should ask for, as a document that it can read.

Everything is counted in records. A count of members costs, over the next `horizon_s` seconds:

    waiting   the records that still wait at the end of that time: of each member, its lag, and what
              arrives above its capacity
    the step  the records that arrive for the partitions that stop, while they stop
    members   a share of what the members could read (`member_share`): a member is worth having only
              if it saves more records than that from waiting

The count with the least cost is chosen. The present count has no step: so no step is chosen whose
cost exceeds its gain, and no step is taken back as long as the members' rates and lag stay the
same. A count that brings nothing is chosen only in place of a useful one that the autoscaler would
ignore, because it is within `tolerance` of the present number.
"""

from dataclasses import asdict, dataclass
from typing import Any

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.spec import counted

from .counts import Count, Scaled

PAUSE_S = 3.0
"""How long a partition stops if the simulator did not play it: a Java member's heartbeat interval.
"""


@dataclass(frozen=True, slots=True)
class Choice:
    """The number of replicas to ask for, beside the present one, and the reason.

    KEDA's scaler `metrics-api` reads `to_dict` as JSON, with the valueLocation `replicas` and the
    targetValue 1.
    """

    group_id: str
    replicas: int
    replicas_now: int
    because: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def choose(
    scaled: Scaled,
    *,
    horizon_s: float = 300.0,
    member_share: float = 0.02,
    tolerance: float = 0.1,
) -> Choice:
    """Chooses among the counts of `scale`, which must know the load.

    `tolerance` is that of Kubernetes' HorizontalPodAutoscaler; 0 for one that ignores no step.

    Errors   GroupError at `capacity` if `scaled` lacks the capacity, or both rates and lag.
    """
    capacity, now = scaled.load.capacity, scaled.now
    if capacity is None or not scaled.load.is_known:
        problem = "give how many records a second a member can read, and the rate or the lag"
        raise GroupError("capacity", problem)

    def waiting(one: Count) -> float:
        return sum(max(0.0, lag + (rate - capacity) * horizon_s) for rate, lag in one.loads)

    def cost(one: Count) -> tuple[float, bool]:
        members = member_share * capacity * horizon_s * one.members
        return waiting(one) + _step(one) + members, one is not now

    candidates = (
        one
        for one in scaled.counts
        if one.error is None and abs(one.replicas / now.replicas - 1) > tolerance
    )
    chosen = min(now, *candidates, key=cost)
    after = f"in {horizon_s:g} s"
    because = f"{counted(now.members)} stay: {after}, no step gains more than it costs"
    if chosen is not now:
        because = (
            f"{counted(chosen.members)} instead of {now.members}: {after}, {waiting(chosen):,.0f} "
            f"records wait instead of {waiting(now):,.0f}; {_step(chosen):,.0f} arrive for "
            "partitions that the step stops"
        )
    return Choice(scaled.group_id, chosen.replicas, now.replicas, because)


def _step(one: Count) -> float:
    """Returns the records that arrive for stopped partitions; 0 for the present count."""
    each_s = one.times.unread_partition_s / one.stops if one.times and one.stops else PAUSE_S
    return one.stopped_rate * each_s
