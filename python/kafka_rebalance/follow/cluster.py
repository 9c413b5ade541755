# SPDX-License-Identifier: Apache-2.0
"""Follows all groups of a cluster in two threads, and passes what it sees to a listener.

1. Descriptions of all groups are read every few seconds; an unchanged group costs a comparison.
2. The records of `__consumer_offsets` are read, if this user may. Those that were there at the
   start show how the groups are; each later one is a rebalance that is seen once. Groups that the
   broker assigns, and all groups without records, rebalance between two descriptions.
3. If brokers do not answer, reading goes on with the next broker, after the last record. Groups
   that nobody lists meanwhile are still there.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from typing import Any, Protocol

from kafka_rebalance.assignors.registry import SERVER_SIDE
from kafka_rebalance.errors import ClusterError, GroupError
from kafka_rebalance.group import contract
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.history.followed import FollowedHistory, FollowedRow
from kafka_rebalance.live.consumer_groups import snapshot_lines, topic_lines
from kafka_rebalance.live.offsets_log import FollowedLog, NoLogError
from kafka_rebalance.live.watched_group import EMPTY
from kafka_rebalance.wire.group_records import OffsetsRecord

from .rebalances import Rebalance, from_descriptions, from_record, topics_read, without_reader

RECORDS, DESCRIPTIONS, GROUPS = "records", "descriptions", "groups"
"""What can fail: reading the log, describing the groups, and groups of brokers that are down."""

_RETRY_S = 1.0
_ASK_AGAIN_S = 60.0
"""After how many seconds a user who may not read the log is checked again."""


class Listener(Protocol):
    """What is called, from both threads."""

    def rebalanced(self, one: Rebalance, *, is_old: bool) -> None:
        """Called for each rebalance; `is_old` if it ended before the following began."""

    def described(self, group: GroupSpec) -> None:
        """Called if a group's description has changed."""

    def undescribed(self, group_id: str, why: str) -> None:
        """Called each time a group is not described: it has no members, or is rebalancing."""

    def listed(self, group_ids: Set[str]) -> None:
        """Called when all groups have been described; these exist."""

    def failed(self, what: str, error: ClusterError | None) -> None:
        """Called with each new error of what is read, and with None when it is read again."""


class FollowedCluster:
    """The groups that `is_wanted`; `by_records` is whether classic groups are read from the log."""

    def __init__(
        self,
        bootstrap_server: str,
        listener: Listener,
        *,
        configs: Mapping[str, Any] | None = None,
        is_wanted: Callable[[str], bool] = lambda _: True,
        every_s: float = 30.0,
    ) -> None:
        self.server, self.configs, self.every_s = bootstrap_server, configs, every_s
        self.by_records = False
        self.log = FollowedLog(bootstrap_server, configs)
        self.groups: dict[str, GroupSpec] = {}
        self._listener, self._is_wanted = listener, is_wanted
        self._problems: dict[str, str] = {}
        self._has_begun = False
        self._looks: dict[str, int] = {}
        self._between: dict[str, int] = {}
        self._history = FollowedHistory(is_wanted)
        self._log_is_known, self._ended = threading.Event(), threading.Event()

    def start(self) -> None:
        """Starts the threads; they end with the process, or soon after `stop`."""
        for run in (self._follow_descriptions, self._follow_log):
            threading.Thread(target=run, daemon=True, name=f"kafka-rebalance{run.__name__}").start()

    def stop(self) -> None:
        self._ended.set()

    # 1.
    def _follow_descriptions(self) -> None:
        self._log_is_known.wait(self.every_s)
        while not self._ended.is_set():
            try:
                self.describe_all()
                self._report(DESCRIPTIONS)
            except ClusterError as error:
                self._report(DESCRIPTIONS, error)
            self._ended.wait(self.every_s)

    def describe_all(self) -> None:
        """Describes all groups once. Errors: ClusterError."""
        there, missing = set[str](), ""

        def left_out(group_id: str, why: str) -> None:
            if group_id != "*" and self._is_wanted(group_id):
                there.add(group_id)
                self._not_described(group_id, why)

        for line in snapshot_lines(self.server, configs=self.configs, on_left_out=left_out):
            group_id = line["group_id"]
            if group_id is None:
                missing = line["error"]
            elif self._is_wanted(group_id):
                there.add(group_id)
                self._take_line(group_id, line)
        self._report(GROUPS, ClusterError(missing) if missing else None)
        if missing:
            there |= self.groups.keys()
        for group_id in self.groups.keys() - there:
            del self.groups[group_id]
            self._looks.pop(group_id, None)
        self._has_begun = True
        self._listener.listed(there)

    def _take_line(self, group_id: str, line: Mapping[str, Any]) -> None:
        if "error" in line:
            self._not_described(group_id, line["error"])
            return
        look = hash(contract.dumps(line))
        if self._looks.get(group_id) == look:
            return
        try:
            group = GroupSpec.from_dict(dict(line))
        except GroupError as error:
            self._not_described(group_id, str(error))
            return
        before = self.groups.get(group_id)
        is_classic = group.assignor not in SERVER_SIDE
        may_be_between = before is not None and self._between.get(group_id) != look
        if may_be_between and is_classic and without_reader(group):
            # A cooperative group may be between two rounds: the next description shows it.
            self._between[group_id] = look
            return
        self._between.pop(group_id, None)
        self._looks[group_id], self.groups[group_id] = look, group
        self._listener.described(group)
        if before is None and self._has_begun:
            before = GroupSpec(group_id, (), ())  # the group is new
        is_in_log = self.by_records and is_classic
        if before is not None and not is_in_log and _differs(before, group):
            found = from_descriptions(before, group, int(time.time() * 1000))
            self._listener.rebalanced(found, is_old=False)

    def _not_described(self, group_id: str, why: str) -> None:
        self._looks.pop(group_id, None)
        if why.startswith(EMPTY):
            self.groups[group_id] = GroupSpec(group_id, (), ())
        self._listener.undescribed(group_id, why)

    # 2.
    def _follow_log(self) -> None:
        while not self._ended.is_set():
            wait_s = _RETRY_S
            try:
                for batch in self.log.batches():
                    self.by_records = True
                    self._log_is_known.set()
                    self._report(RECORDS, _missing(self.log))
                    self.take(batch)
                    if self._ended.is_set():
                        return
            except NoLogError as error:
                self.by_records, wait_s = False, _ASK_AGAIN_S
                self._report(RECORDS, error)
            except ClusterError as error:
                self._report(RECORDS, error)
            self._log_is_known.set()
            self._ended.wait(wait_s)

    def take(self, batch: Sequence[OffsetsRecord]) -> None:
        """Takes records in the order of the log."""
        for found, is_old in self._judged(batch):
            self._listener.rebalanced(found, is_old=is_old)

    def _judged(self, batch: Sequence[OffsetsRecord]) -> Iterator[tuple[Rebalance, bool]]:
        rows: list[FollowedRow] = []
        for record in batch:
            is_old = record.offset < self.log.old_before.get(record.partition, 0)
            for found in self._history.add(record):
                if is_old:
                    yield Rebalance(found.row), True
                else:
                    rows.append(found)
        names = frozenset[str]().union(*map(topics_read, rows))
        topics: dict[str, dict[str, Any]] = {}
        with suppress(ClusterError):  # then the rebalances are seen, but not judged
            topics = topic_lines(self.server, names, configs=self.configs) if names else {}
        for found in rows:
            yield from_record(found, topics), False

    # 3.
    def _report(self, what: str, error: ClusterError | None = None) -> None:
        text = "" if error is None else str(error)
        if text != self._problems.get(what, ""):
            self._problems[what] = text
            self._listener.failed(what, error)


def _missing(log: FollowedLog) -> ClusterError | None:
    return ClusterError(log.missing) if log.missing else None


def _differs(before: GroupSpec, after: GroupSpec) -> bool:
    """Returns whether the group has rebalanced: another epoch, or else other members or owners."""
    if before.assignor == after.assignor and after.assignor in SERVER_SIDE:
        return before.generation_id != after.generation_id
    return (before.assignor, Assignment.owned(before)) != (after.assignor, Assignment.owned(after))
