# SPDX-License-Identifier: Apache-2.0
"""Which number of replicas an autoscaler should ask for, as a document that it can read.

Everything is counted in records. A count of members costs, over the next `horizon_s` seconds:

    waiting   the records that still wait at the end of that time: of each member, its lag, and what
              arrives above its capacity
    the step  the records that arrive for the partitions that stop, for `pause_s` each
    members   a share of what the members could read (`member_share`): a member is worth having only
              if it saves more records than that from waiting

The count with the least cost is chosen. The present count has no step: so no step is chosen whose
cost exceeds its gain, and no step is taken back as long as the members' rates and lag stay the
same. A count that brings nothing is chosen only in place of a useful one that the autoscaler would
ignore, because it is within `tolerance` of the present number.
"""

from collections.abc import Iterable
from typing import Any

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.spec import GroupSpec, counted

from .counts import Count, scale
from .steps import Given


def choose(
    group: GroupSpec,
    replicas: Iterable[int] | None = None,
    *,
    capacity: float,
    rate: Given | None = None,
    lag: Given | None = None,
    per_replica: int = 1,
    horizon_s: float = 300.0,
    member_share: float = 0.02,
    tolerance: float = 0.1,
    pause_s: float = 3.0,
) -> dict[str, Any]:
    """Chooses a number of replicas, each with `per_replica` members (threads).

    `replicas` are the numbers to choose from; None means up to twice the present number. `capacity`
    (of a member), `rate` and `lag` are those of `scale`; give one of the last two at least.
    `pause_s` is how long a partition stops: a Java member's heartbeat interval. `tolerance` is that
    of Kubernetes' HorizontalPodAutoscaler; 0 for one that ignores no step.

    Returns, for JSON, `group_id`, `replicas` to ask for, `replicas_now` and `because`. KEDA's
    scaler `metrics-api` reads it with the valueLocation `replicas` and the targetValue 1.

    Errors   those of `scale`; GroupError at `assignor` if the present members have no answer.
    """
    now_replicas = -(-len(group.members) // per_replica)
    asked = range(1, 2 * now_replicas + 1) if replicas is None else replicas
    load: dict[str, Any] = {"rate": rate, "lag": lag, "capacity": capacity}
    scaled = scale(group, [n * per_replica for n in asked], samples=0, **load)
    now = scaled.now
    if now.error is not None:
        raise GroupError("assignor", now.error)

    def waiting(one: Count) -> float:
        each = (member.lag + (member.rate - capacity) * horizon_s for member in one.loads)
        return sum(max(0.0, left) for left in each)

    def cost(one: Count) -> tuple[float, bool]:
        members = member_share * capacity * horizon_s * one.members
        return waiting(one) + one.stopped_rate * pause_s + members, one is not now

    candidates = (
        one
        for one in scaled.counts
        if one.error is None and abs(one.members / now.members - 1) > tolerance
    )
    chosen = min(now, *candidates, key=cost)
    because = f"{counted(now.members)} stay: in {horizon_s:g} s, no step gains more than it costs"
    if chosen is not now:
        because = (
            f"{counted(chosen.members)} instead of {now.members}: in {horizon_s:g} s, "
            f"{waiting(chosen):,.0f} records wait instead of {waiting(now):,.0f}; "
            f"{chosen.stopped_rate * pause_s:,.0f} arrive for partitions that the step stops"
        )
    document = {"group_id": group.group_id, "replicas": -(-chosen.members // per_replica)}
    return document | {"replicas_now": now_replicas, "because": because}
