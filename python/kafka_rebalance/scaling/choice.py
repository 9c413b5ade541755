# SPDX-License-Identifier: Apache-2.0
"""Chooses the number of replicas for an autoscaler, as a document that it can read."""

from collections.abc import Iterable
from typing import Any

from kafka_rebalance.group.field_paths import integer
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
    """Chooses one of `replicas` (None: up to twice the present number) by its cost in records.

    The cost (docs/scaling.md) is the sum of three parts: the lag after `horizon_s` seconds, the
    records that arrive in `pause_s` for partitions without a reader, and `member_share` of the
    records that the members could read. The default of `pause_s` is a Java member's heartbeat
    interval. Numbers within `tolerance` of the present one are left out, and numbers with which a
    topic may lose its last subscriber. Each replica has `per_replica` members (threads); `rate` and
    `lag` are given as in `scale`, which raises the errors.

    Returns, for JSON, `group_id`, `replicas` (the number to ask for), `replicas_now` and `because`.
    KEDA's scaler `metrics-api` reads this with the valueLocation `replicas` and the targetValue 1.
    """
    now_replicas = -(-len(group.members) // integer(per_replica, "per_replica", "number", 1))
    asked = range(1, 2 * now_replicas + 1) if replicas is None else replicas
    load: dict[str, Any] = {"rate": rate, "lag": lag, "capacity": capacity}
    scaled = scale(group, [n * per_replica for n in asked], samples=0, **load)
    now = scaled.now

    def waiting(one: Count) -> float:
        return sum(max(0.0, lag + (rate - capacity) * horizon_s) for _, rate, lag in one.loads)

    def cost(one: Count) -> tuple[float, bool]:
        members = member_share * capacity * horizon_s * one.members
        return waiting(one) + one.stopped_rate * pause_s + members, one is not now

    others = (
        one
        for one in scaled.counts
        if abs(one.members / now.members - 1) > tolerance and not one.may_lose
    )
    chosen = min(now, *others, key=cost)
    because = f"{counted(now.members)} stay: in {horizon_s:g} s, no step gains more than it costs"
    if chosen is not now:
        because = (
            f"{counted(chosen.members)} instead of {now.members}: in {horizon_s:g} s, "
            f"a lag of {waiting(chosen):,.0f} records instead of {waiting(now):,.0f}; "
            f"{chosen.stopped_rate * pause_s:,.0f} arrive while nobody reads their partition"
        )
    document = {"group_id": group.group_id, "replicas": -(-chosen.members // per_replica)}
    return document | {"replicas_now": now_replicas, "because": because}
