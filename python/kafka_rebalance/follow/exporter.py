# SPDX-License-Identifier: Apache-2.0
"""Reads a cluster in two threads, and keeps the metrics of its groups.

1. Descriptions of all groups are read every few seconds; an unchanged group costs a comparison.
2. The records of `__consumer_offsets` are read, if this user may. Those that were there at the
   start show how the groups are; only later ones are counted, each once. Without records,
   rebalances are differences between descriptions.
3. If brokers do not answer, reading goes on with the next broker, after the last record. Groups
   that nobody lists meanwhile keep their metrics.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, ProcessCollector
from prometheus_client.openmetrics.exposition import generate_latest

from kafka_rebalance.assignors.registry import SERVER_SIDE
from kafka_rebalance.errors import ClusterError, GroupError
from kafka_rebalance.group import contract
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.history.followed import FollowedHistory, FollowedRow
from kafka_rebalance.live.consumer_groups import snapshot_lines, topic_lines
from kafka_rebalance.live.offsets_log import FollowedLog, NoLogError
from kafka_rebalance.present.description import describe
from kafka_rebalance.wire.group_records import OffsetsRecord

from .metrics import PREFIX, GroupMetrics, page, without_reader
from .rebalances import Rebalance, from_descriptions, from_record, topics_read

_RETRY_S = 1.0
_ASK_AGAIN_S = 60.0
"""After how many seconds a user who may not read the log is checked again."""
_SOURCES = ("records", "descriptions")
_NO_MEMBERS = ("state: Empty", "state: Dead")


class Exporter:
    """The metrics of the groups that `is_wanted`, at most `most_groups` of them.

    `on_problem` is called with each new reason why something cannot be read, and with "" when all
    is read again.
    """

    def __init__(
        self,
        bootstrap_server: str,
        *,
        configs: Mapping[str, Any] | None = None,
        is_wanted: Callable[[str], bool] = lambda _: True,
        every_s: float = 30.0,
        most_groups: int = 10_000,
        on_problem: Callable[[str, str], None] = lambda *_: None,
    ) -> None:
        self.server, self.configs, self.every_s = bootstrap_server, configs, every_s
        self._is_wanted, self._most = is_wanted, most_groups
        self._on_problem, self._problems = on_problem, dict[str, str]()
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._groups: dict[str, GroupMetrics] = {}
        self._lines: dict[str, int] = {}
        self._described: dict[str, GroupSpec] = {}
        self._between: dict[str, int] = {}
        self._left_out: set[str] = set()
        self._log = FollowedLog(bootstrap_server, configs)
        self._history = FollowedHistory(is_wanted)
        self.by_records = False
        self._read_s: float | None = None
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._own = _OwnMetrics(self._registry, self)

    # Reading --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the threads; they end with the process, or soon after `stop`."""
        for run in (self._follow_descriptions, self._follow_log):
            threading.Thread(target=run, daemon=True, name=f"kafka-rebalance{run.__name__}").start()

    def stop(self) -> None:
        self._ended.set()

    def _follow_descriptions(self) -> None:
        while not self._ended.is_set():
            try:
                self.describe_all()
                self._report("descriptions", "")
            except ClusterError as error:
                self._report("descriptions", str(error))
            self._ended.wait(self.every_s)

    def _follow_log(self) -> None:
        while not self._ended.is_set():
            wait_s = _RETRY_S
            try:
                for batch in self._log.batches():
                    self.by_records = True
                    self._report("records", self._log.missing)
                    self.take(batch)
                    if self._ended.is_set():
                        return
            except NoLogError as error:
                self.by_records, wait_s = False, _ASK_AGAIN_S
                self._report("records", f"{error}; rebalances are read from descriptions")
            except ClusterError as error:
                self._report("records", str(error))
            self._ended.wait(wait_s)

    def _report(self, what: str, problem: str) -> None:
        if problem != self._problems.get(what, ""):
            self._problems[what] = problem
            self._on_problem(what, problem)

    # 1.
    def describe_all(self) -> None:
        """Reads all groups once. Errors: ClusterError."""
        there, missing = set[str](), False

        def left_out(group_id: str, why: str) -> None:
            if group_id != "*" and self._is_wanted(group_id):
                there.add(group_id)
                self._without_description(group_id, why)

        for line in snapshot_lines(self.server, configs=self.configs, on_left_out=left_out):
            group_id = line["group_id"]
            if group_id is None:
                missing = True
                self._report("groups", line["error"])
            elif self._is_wanted(group_id):
                there.add(group_id)
                self._take_line(group_id, line)
        if not missing:
            self._report("groups", "")
            with self._lock:
                for group_id in self._groups.keys() - there:
                    self._forget(group_id)
                self._left_out &= there
        self._read_s = time.monotonic()

    def _forget(self, group_id: str) -> None:
        del self._groups[group_id]
        self._lines.pop(group_id, None)
        self._described.pop(group_id, None)
        self._between.pop(group_id, None)

    def _take_line(self, group_id: str, line: Mapping[str, Any]) -> None:
        if "error" in line:
            self._without_description(group_id, line["error"])
            return
        look = hash(contract.dumps(line))
        if self._lines.get(group_id) == look or (metrics := self._of(group_id)) is None:
            return
        try:
            group = GroupSpec.from_dict(dict(line))
            described = describe(group)
        except GroupError as error:
            self._without_description(group_id, str(error))
            return
        may_be_between = group_id in self._described and self._between.get(group_id) != look
        if may_be_between and group.assignor not in SERVER_SIDE and without_reader(group):
            # A cooperative group may be between two rounds: the next description shows it.
            self._between[group_id] = look
            return
        before, now_ms = self._described.get(group_id), _now_ms()
        by_records = self.by_records and group.assignor not in SERVER_SIDE
        found: Rebalance | None = None
        was_empty = metrics.figures.get("members") == 0
        if not by_records and (before is not None or was_empty) and _differs(before, group):
            found = from_descriptions(None if was_empty else before, group, now_ms)
        with self._lock:
            self._lines[group_id], self._described[group_id] = look, group
            metrics.shown(described, now_ms)
            if found is not None:
                metrics.rebalanced(found)

    def _without_description(self, group_id: str, why: str) -> None:
        if (metrics := self._of(group_id)) is not None:
            with self._lock:
                self._lines.pop(group_id, None)
                metrics.without_description(why, _now_ms())

    def _of(self, group_id: str) -> GroupMetrics | None:
        """Returns the group's metrics; None if there are as many groups as are allowed."""
        with self._lock:
            if (known := self._groups.get(group_id)) is not None:
                return known
            if len(self._groups) >= self._most:
                self._left_out.add(group_id)
                return None
            self._left_out.discard(group_id)
            return self._groups.setdefault(group_id, GroupMetrics(group_id))

    # 2.
    def take(self, batch: Sequence[OffsetsRecord]) -> None:
        """Takes records in the order of the log. Errors: ClusterError for the present topics."""
        for found, is_old in self._judged(batch):
            if (metrics := self._of(found.row.group_id)) is not None:
                with self._lock:
                    metrics.rebalanced(found, is_old=is_old)

    def _judged(self, batch: Sequence[OffsetsRecord]) -> Iterator[tuple[Rebalance, bool]]:
        rows: list[FollowedRow] = []
        for record in batch:
            is_old = record.offset < self._log.old_before.get(record.partition, 0)
            for found in self._history.add(record):
                if is_old:
                    yield Rebalance(found.row), True
                else:
                    rows.append(found)
        if rows:
            names = frozenset[str]().union(*map(topics_read, rows))
            topics: dict[str, dict[str, Any]] = {}
            with suppress(ClusterError):  # then the rebalances are counted, and not judged
                topics = topic_lines(self.server, names, configs=self.configs) if names else {}
            for found in rows:
                yield from_record(found, topics), False

    # Answers --------------------------------------------------------------------------------------

    def group(self, group_id: str) -> GroupSpec | None:
        """Returns the group as it was last described; None if it was not."""
        return self._described.get(group_id)

    def page(self) -> bytes:
        """Returns the page of all metrics, as OpenMetrics."""
        own = generate_latest(self._registry)  # type: ignore[no-untyped-call]
        with self._lock:
            return "".join((*page(self._groups, _now_ms()), own.decode())).encode()

    def health(self) -> str:
        """Returns why the metrics are old; empty if they are not."""
        if self._read_s is None:
            return "the groups have not been read yet"
        age_s = time.monotonic() - self._read_s
        return f"the groups were last read {age_s:.0f} s ago" if age_s > self.oldest_s else ""

    @property
    def oldest_s(self) -> float:
        """After how many seconds metrics count as old."""
        return 3 * self.every_s + 30

    def reads(self, source: str) -> float:
        """Returns 1 if rebalances are read from this source, else 0."""
        return float(self.by_records == (source == "records"))

    def count(self, name: str) -> float:
        """Returns one of the exporter's own gauges."""
        age_s = -1.0 if self._read_s is None else time.monotonic() - self._read_s
        return {
            "groups": len(self._groups),
            "groups_left_out": len(self._left_out),
            "descriptions_age_seconds": age_s,
            "log_offsets_behind": self._log.behind,
        }[name]


def _now_ms() -> int:
    return int(time.time() * 1000)


def _differs(before: GroupSpec | None, after: GroupSpec) -> bool:
    """Returns whether the group has rebalanced: another epoch, or else other members or owners."""
    if before is None or before.assignor != after.assignor:
        return True
    if after.assignor in SERVER_SIDE:
        return before.generation_id != after.generation_id
    return Assignment.owned(before) != Assignment.owned(after)


class _OwnMetrics:
    """The exporter's own metrics, in prometheus_client's registry."""

    def __init__(self, registry: CollectorRegistry, exporter: Exporter) -> None:
        texts = {
            "groups": "Groups with metrics.",
            "groups_left_out": "Groups without metrics, because there are more than --max-groups.",
            "descriptions_age_seconds": "Seconds since all groups were last described; -1: never.",
            "log_offsets_behind": "Offsets of the log's past that are still to be read.",
        }
        for name, text in texts.items():
            gauge = Gauge(PREFIX + name, text, registry=registry)
            gauge.set_function(partial(exporter.count, name))
        source = Gauge(
            PREFIX + "source", "Where rebalances are read.", ["source"], registry=registry
        )
        for one in _SOURCES:
            source.labels(one).set_function(partial(exporter.reads, one))
