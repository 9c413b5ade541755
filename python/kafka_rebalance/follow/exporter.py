# SPDX-License-Identifier: Apache-2.0
"""Keeps the metrics of the groups of one cluster, and writes them as a page in OpenMetrics."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import suppress
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.openmetrics.exposition import generate_latest

from kafka_rebalance.errors import ClusterError, KafkaRebalanceError
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.live.committed_offsets import group_lags
from kafka_rebalance.present.description import describe

from .cluster import DESCRIPTIONS, RECORDS, FollowedCluster
from .metrics import GroupMetrics, line, page
from .rebalances import FollowedRebalance


class Exporter:
    """Keeps the metrics of the groups that `is_wanted` accepts, at most `most_groups` of them.

    `on_problem(part, error)` is called for each new error of a part of the cluster that cannot be
    read; `error` is None when the part can be read again. After any error but a ClusterError, the
    part is given up. `followed` reads the cluster.
    """

    def __init__(
        self,
        bootstrap_server: str,
        *,
        configs: Mapping[str, Any] | None = None,
        is_wanted: Callable[[str], bool] = lambda _: True,
        every_s: float = 30.0,
        most_groups: int = 10_000,
        on_problem: Callable[[str, Exception | None], None] = lambda *_: None,
    ) -> None:
        self._is_wanted, self._most, self.failed = is_wanted, most_groups, on_problem
        self._lock = threading.Lock()
        self._groups: dict[str, GroupMetrics] = {}
        self._left_out: set[str] = set()
        self._left_out_before = 0
        self._read_s: float | None = None
        self.followed = FollowedCluster(
            bootstrap_server, self, configs=configs, is_wanted=self._has_place, every_s=every_s
        )
        self._process = CollectorRegistry()
        ProcessCollector(registry=self._process)

    # What the cluster shows -----------------------------------------------------------------------

    def rebalanced(self, one: FollowedRebalance, *, is_old: bool) -> None:
        with self._lock:
            self._of(one.row.group_id).rebalanced(one, _now_ms(), is_old=is_old)

    def described(self, group: GroupSpec, source: str) -> None:
        try:
            found = describe(group)
        except KafkaRebalanceError as error:  # only this group loses its figures
            self.undescribed(group.group_id, str(error))
            return
        with self._lock:
            self._of(group.group_id).shown(found, _now_ms())

    def undescribed(self, group_id: str, why: str) -> None:
        with self._lock:
            self._of(group_id).without_description(why, _now_ms())

    def listed(self, group_ids: Set[str]) -> None:
        with self._lock:
            asked = [one for one in group_ids if self._of(one).members == 0]
        lags: dict[str, dict[TopicPartition, int]] = {}
        if asked:
            with suppress(ClusterError):  # if the cluster stays unreachable, `failed` reports it
                server, configs = self.followed.server, self.followed.configs
                lags = group_lags(server, dict.fromkeys(asked), configs=configs)
        with self._lock:
            for group_id, lag in lags.items():
                self._groups[group_id].stopped(sum(lag.values()))
            for group_id in self._groups.keys() - group_ids:
                del self._groups[group_id]
        self._left_out_before, self._left_out = len(self._left_out), set()
        self._read_s = time.monotonic()

    def _has_place(self, group_id: str) -> bool:
        if group_id in self._groups or not self._is_wanted(group_id):
            return group_id in self._groups
        if has_place := len(self._groups) < self._most:
            with self._lock:
                self._of(group_id)
        else:
            self._left_out.add(group_id)
        return has_place

    def _of(self, group_id: str) -> GroupMetrics:
        return self._groups.setdefault(group_id, GroupMetrics(group_id))

    # Answers --------------------------------------------------------------------------------------

    def page(self) -> Iterator[bytes]:
        """Yields the page of all metrics, as OpenMetrics, in pieces."""
        with self._lock:
            texts = [one.text(_now_ms()) for one in self._groups.values()]
        yield from (part.encode() for part in page([*texts, self._own()]))
        yield generate_latest(self._process)  # type: ignore[no-untyped-call]

    def health(self) -> str:
        """Returns why the metrics are out of date, or "" if they are up to date."""
        if self._read_s is None:
            return "the groups have not been read yet"
        age_s = time.monotonic() - self._read_s
        is_old = age_s > 3 * self.followed.every_s + 30
        return f"the groups were last read {age_s:.0f} s ago" if is_old else ""

    def _own(self) -> dict[str, str]:
        """Returns the exporter's own figures: family -> lines."""
        by_records, read_s = self.followed.by_records, self._read_s
        figures = {
            "groups": len(self._groups),
            "groups_left_out": self._left_out_before,
            "descriptions_age_seconds": -1 if read_s is None else time.monotonic() - read_s,
            "log_offsets_behind": self.followed.log.behind,
        }
        sources = {RECORDS: by_records, DESCRIPTIONS: not by_records}
        texts = (line("source", is_read, f'source="{one}"') for one, is_read in sources.items())
        return {name: line(name, value) for name, value in figures.items()} | {
            "source": "".join(texts)
        }


def _now_ms() -> int:
    return int(time.time() * 1000)
