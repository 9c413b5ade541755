# SPDX-License-Identifier: Apache-2.0
"""Answers an autoscaler: how many replicas a live group should have.

The lag is read from the cluster at each request. The rate of each partition is the growth of its
end offset since an earlier request, made at least WINDOW_S ago. Until there is such a request, the
answer is the present number of replicas. `scaling.choose` chooses the number, and explains it.
"""

import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import partition_or_task_counts
from kafka_rebalance.live.committed_offsets import group_lags, partition_ends
from kafka_rebalance.scaling.choice import choose

from .cluster import FollowedCluster

WINDOW_S = 20.0
"""A rate is measured over at least this many seconds."""
_MOST = {"capacity": 10**9, "min": 10_000, "max": 10_000, "per_replica": 1_000}
"""The parameters of a request, each with its largest value."""

Ends = tuple[float, Mapping[TopicPartition, int]]


class Autoscaling:
    """Answers requests; keeps the end offsets of partitions at earlier requests, by group."""

    def __init__(self, cluster: FollowedCluster) -> None:
        self._cluster, self._lock = cluster, threading.Lock()
        self._ends: dict[str, list[Ends]] = {}

    def answer(self, group_id: str, parameters: Iterable[tuple[str, str]]) -> dict[str, Any]:
        """Returns the result of `choose`; while rates are unknown, the present number of replicas.

        Errors   KeyError for an unknown group; GroupError at a parameter's name; ClusterError.
        """
        group = self._cluster.group(group_id)
        if group is None:
            raise KeyError(group_id)
        given = _read(parameters)
        counts = partition_or_task_counts(group)
        every = [TopicPartition(name, p) for name, count in counts.items() for p in range(count)]
        server, configs = self._cluster.server, self._cluster.configs
        lags = group_lags(server, {group_id: every}, configs=configs)[group_id]
        rates = self._rates(group_id, partition_ends(server, every, configs=configs))
        per_replica = int(given.get("per_replica", 1))
        now = -(-len(group.members) // per_replica)
        if rates is None:
            because = f"the rates are not known yet: ask again in {WINDOW_S:.0f} s"
            return {"group_id": group_id, "replicas": now, "replicas_now": now, "because": because}
        return choose(
            group,
            _replicas(given, now),
            capacity=given["capacity"],
            rate=rates,
            lag=lags,
            per_replica=per_replica,
        )

    def _rates(
        self, group_id: str, ends: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, float] | None:
        now_s = time.monotonic()
        with self._lock:
            seen = self._ends.setdefault(group_id, [])
            while len(seen) > 1 and now_s - seen[1][0] >= WINDOW_S:
                del seen[0]
            then_s, then = seen[0] if seen else (now_s, ends)
            if not seen or now_s - seen[-1][0] >= WINDOW_S / 4:
                seen.append((now_s, ends))
        if now_s - then_s < WINDOW_S:
            return None
        return {tp: max(0, end - then.get(tp, end)) / (now_s - then_s) for tp, end in ends.items()}


def _replicas(given: Mapping[str, float], now: int) -> range:
    least, most = int(given.get("min", 1)), int(given.get("max", 2 * now))
    if least > most:
        raise GroupError("min", f"{least} is more than max, {most}")
    return range(least, most + 1)


def _read(parameters: Iterable[tuple[str, str]]) -> dict[str, float]:
    """Returns the query's parameters. Errors: GroupError with the parameter's name as its path."""
    found: dict[str, float] = {}
    for name, text in parameters:
        if name not in _MOST:
            raise GroupError("query", f"no parameter has this name; {', '.join(_MOST)} exist")
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0 < value <= _MOST[name] or (name != "capacity" and value != int(value)):
            kind = "number" if name == "capacity" else "whole number"
            raise GroupError(name, f"give a {kind} above 0, at most {_MOST[name]}")
        found[name] = value
    if "capacity" not in found:
        problem = "missing: the records a second that a member reads; add ?capacity=N"
        raise GroupError("capacity", problem)
    return found
