# SPDX-License-Identifier: Apache-2.0
"""Follows all groups of a cluster in two threads, and reports their rebalances to a listener.

1. All groups are described every `every_s` seconds; an unchanged group needs nothing else.
2. The records of `__consumer_offsets` are read, if this user may read them. The records that exist
   at the start show the groups' states; each later record is a rebalance. For broker-assigned
   groups, and for all groups if the records cannot be read, a rebalance is a difference between two
   descriptions.
3. If a broker does not answer, reading goes on as soon as one does, after the last record that was
   read. Groups that no broker lists meanwhile are not forgotten.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from typing import Any, Protocol

from kafka_rebalance.assignors.registry import SERVER_SIDE, Engine, assigns_tasks, shares_partitions
from kafka_rebalance.errors import ClusterError, GroupError, NotReachedError
from kafka_rebalance.group import contract
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.history.all_groups import FollowedHistory, FollowedRow
from kafka_rebalance.live.broker_groups import AWAY
from kafka_rebalance.live.consumer_groups import EMPTY, snapshot_lines, topic_lines, why_unlisted
from kafka_rebalance.live.offsets_log import FollowedLog, NoLogError, NoTopicError
from kafka_rebalance.plans.rounds import without_reader
from kafka_rebalance.wire.group_records import OffsetsRecord

from .rebalances import FollowedRebalance, from_descriptions, from_record, topics_read

RECORDS, DESCRIPTIONS, GROUPS = "records", "descriptions", "groups"
"""The parts that can fail: reading the log, describing groups, reaching their brokers."""

_RETRY_S = 1.0
_LOG_S = 5.0
"""The seconds for which the first description waits for the log."""
_HOLES_S = 6.0
"""A group with an ownerless partition counts as settled once it is unchanged for this long."""
_ASK_AGAIN_S = 60.0
"""The seconds after which the log is tried again if this user may not read it."""


class Listener(Protocol):
    """Receives the calls of both threads."""

    def rebalanced(self, one: FollowedRebalance, *, is_old: bool) -> None:
        """Called for each rebalance; `is_old` if it ended before this process began to follow."""

    def described(self, group: GroupSpec, source: str) -> None:
        """Called if a description is new or has changed, before `rebalanced` for that change.

        `source` is where the group's rebalances are read: RECORDS or DESCRIPTIONS.
        """

    def undescribed(self, group_id: str, why: str) -> None:
        """Called each time a group cannot be described: usually it is empty or rebalancing."""

    def listed(self, group_ids: Set[str]) -> None:
        """Called when all groups have been described; `group_ids` are all groups that exist."""

    def failed(self, what: str, error: Exception | None) -> None:
        """Called with each new error of `what`, such as RECORDS; with None when it works again.

        After any error but a ClusterError, the thread has ended: no later attempt would succeed.
        """


class FollowedCluster:
    """Follows the groups that `is_wanted` accepts; if `names` is given, only groups in it.

    `by_records` is True while the log shows the rebalances of classic groups. If `reads_log` is
    False, only descriptions are read.
    """

    def __init__(
        self,
        bootstrap_server: str,
        listener: Listener,
        *,
        configs: Mapping[str, Any] | None = None,
        is_wanted: Callable[[str], bool] = lambda _: True,
        names: Sequence[str] | None = None,
        reads_log: bool = True,
        every_s: float = 30.0,
        engine: Engine = "rust",
    ) -> None:
        self.server, self.configs, self.every_s = bootstrap_server, configs, every_s
        self._names, self._reads_log, self._engine = names, reads_log, engine
        self.by_records = self._has_no_topic = False
        self.log = FollowedLog(bootstrap_server, configs, names)
        # The groups' newest descriptions (None: no members) as JSON, because objects take eight
        # times the memory.
        self._lines: dict[str, str | None] = {}
        self._listener, self._is_wanted = listener, is_wanted
        self._problems: dict[str, str] = {}
        self._has_begun = False
        self._states: dict[str, str | None] = {}  # after each group's last rebalance, as JSON
        self._looks: dict[str, int] = {}
        self._between: dict[str, tuple[int, float]] = {}
        self._history = FollowedHistory(is_wanted)
        self._there: set[str] = set()  # groups that the last `look` described
        self._recent: set[str] = set()  # groups with records since that `look` began
        self._log_is_known, self._ended = threading.Event(), threading.Event()

    def group(self, group_id: str) -> GroupSpec | None:
        """Returns the newest description of a group; None if it has no members or is not known."""
        return _read(self._lines.get(group_id))

    def start(self) -> None:
        """Starts the threads; they end with the process, or soon after `stop`."""
        runs = {DESCRIPTIONS: self._follow_descriptions}
        runs |= {RECORDS: self._follow_log} if self._reads_log else {}
        for what, run in runs.items():
            name = f"kafka-rebalance follows {what}"
            threading.Thread(target=self._run, args=(what, run), daemon=True, name=name).start()

    def stop(self) -> None:
        self._ended.set()

    def _run(self, what: str, run: Callable[[], None]) -> None:
        try:
            run()
        except Exception as error:  # reported, so that the main thread can raise it
            self._listener.failed(what, error)

    # 1.
    def _follow_descriptions(self) -> None:
        self._log_is_known.wait(_LOG_S if self._reads_log else 0)
        while not self._ended.is_set():
            self.look()
            self._ended.wait(self.every_s)

    def look(self) -> None:
        """Describes all groups once; passes a ClusterError to the listener."""
        try:
            self._describe_all()
            self._report(DESCRIPTIONS)
        except ClusterError as error:
            self._report(DESCRIPTIONS, error)

    def _describe_all(self) -> None:
        there, missing = set[str](), ""
        self._recent = set()

        def left_out(group_id: str, why: str) -> None:
            if group_id != "*" and self._is_wanted(group_id):
                there.add(group_id)
                self._not_described(group_id, why)

        for line in snapshot_lines(
            self.server, self._names, configs=self.configs, on_left_out=left_out, applications=False
        ):
            group_id, error = line["group_id"], line.get("error", "")
            if group_id is None:
                missing = error
            elif group_id in self._lines and (why := why_unlisted(error)):
                missing = why
            elif self._is_wanted(group_id):
                there.add(group_id)
                self._take_line(group_id, line)
        self._report(GROUPS, NotReachedError(missing) if missing else None)
        there |= self._recent | (self._there if missing else set())
        for group_id in self._there - there:
            for kept in (self._lines, self._states, self._looks, self._between):
                kept.pop(group_id, None)
        self._there = there
        self._has_begun = True
        self._listener.listed(there)

    def _take_line(self, group_id: str, line: Mapping[str, Any]) -> None:
        if "error" in line:
            self._not_described(group_id, line["error"])
            return
        text = contract.dumps(line)
        look = hash(text)
        if self._looks.get(group_id) == look:
            return
        try:
            group = GroupSpec.from_dict(dict(line))
        except GroupError as error:
            self._not_described(group_id, str(error))
            return
        before = _read(self._states.get(group_id))
        is_new = self._has_begun and self._names is None
        is_known = group_id in self._states or is_new  # else this is the group's first state
        if not has_target(line):
            return
        source = self._source(group)
        was_by_broker = before is not None and before.assignor in SERVER_SIDE
        is_described = source == DESCRIPTIONS or was_by_broker
        is_rebalance = is_known and is_described and _differs(before, group)
        if is_rebalance and not self._has_settled(look, group):
            return
        self._looks[group_id], self._lines[group_id] = look, text
        if is_rebalance or not is_known or not is_described:
            self._states[group_id] = text  # else only topics have changed, and the state is kept
        self._listener.described(group, source)
        if is_rebalance:
            found = from_descriptions(before, group, int(time.time() * 1000), self._engine)
            self._listener.rebalanced(found, is_old=False)

    def _source(self, group: GroupSpec) -> str:
        if group.assignor in SERVER_SIDE:
            return DESCRIPTIONS
        # The first group of a cluster creates the log's topic: wait until the log is read.
        if self._has_no_topic and group.group_id not in self._lines and self.log.has_topic():
            self._log_is_known.clear()
            self._log_is_known.wait(_LOG_S)
        return RECORDS if self.by_records else DESCRIPTIONS

    def _has_settled(self, look: int, group: GroupSpec) -> bool:
        """Returns whether the rebalance is over: no partition lacks an owner, or nothing changes.

        While a partition has no owner, a cooperative group may be between two rounds. But in a
        broker-assigned group, a new topic or a share group's new partition may have no owner until
        a later epoch, so the wait is limited.
        """
        now_s = time.monotonic()
        known, since_s = self._between.get(group.group_id, (0, now_s))
        if not without_reader(group, Assignment.owned(group)) or (
            known == look and now_s - since_s >= _HOLES_S
        ):
            self._between.pop(group.group_id, None)
            return True
        self._between[group.group_id] = look, since_s if known == look else now_s
        return False

    def _not_described(self, group_id: str, why: str) -> None:
        self._looks.pop(group_id, None)
        if why.startswith(EMPTY) and (self._names is None or group_id in self._states):
            self._lines[group_id] = self._states[group_id] = None
        self._listener.undescribed(group_id, why)

    # 2.
    def _follow_log(self) -> None:
        while not self._ended.is_set():
            wait_s = _RETRY_S
            try:
                for batch in self.log.batches():
                    self.by_records, self._has_no_topic = True, False
                    self._log_is_known.set()
                    missing = self.log.missing
                    self._report(RECORDS, NotReachedError(missing) if missing else None)
                    self.take(batch)
                    if self._ended.is_set():
                        return
            except NoLogError as error:
                self._has_no_topic = isinstance(error, NoTopicError)
                self.by_records, wait_s = False, _RETRY_S if self._has_no_topic else _ASK_AGAIN_S
                self._report(RECORDS, error)
            except ClusterError as error:
                self._report(RECORDS, error)
            self._log_is_known.set()
            self._ended.wait(wait_s)

    def take(self, batch: Sequence[OffsetsRecord]) -> None:
        """Passes the rebalances that records show to the listener, in the order of the log."""
        rows: list[FollowedRow] = []
        for record in batch:
            is_old = record.offset < self.log.old_before.get(record.partition, 0)
            for found in self._history.add(record):
                if is_old:
                    self._listener.rebalanced(FollowedRebalance(found.row), is_old=True)
                else:
                    rows.append(found)
        self._recent.update(found.row.group_id for found in rows)  # before the listener gets them
        names = frozenset[str]().union(*map(topics_read, rows))
        topics: dict[str, dict[str, Any]] = {}
        with suppress(ClusterError):  # on an error, rebalances are reported, but not judged
            topics = topic_lines(self.server, names, configs=self.configs) if names else {}
        for found in rows:
            one = from_record(found, topics, self._engine)
            known = _read(self._states.get(one.row.group_id))
            # After a conversion from the consumer protocol, keep the state before the conversion:
            # the next description, compared with that state, shows who left.
            if one.after and not (known and known.assignor in SERVER_SIDE):
                self._states[one.row.group_id] = one.after.to_json()
            self._listener.rebalanced(one, is_old=False)

    # 3.
    def _report(self, what: str, error: ClusterError | None = None) -> None:
        text = "" if error is None else str(error)
        if text != self._problems.get(what, "") and not self._ended.is_set():
            self._problems[what] = text
            self._listener.failed(what, error)


def has_target(line: Mapping[str, Any]) -> bool:
    """Returns whether a line shows the target of its group's epoch; True for classic groups.

    consumer groups   if the newest target is the epoch's. Members reach it later, in steps
    share groups      if all members are in the epoch; descriptions have no target
    streams groups    if both hold: the next target depends on the tasks that members then have
    """
    epoch = line.get("assignment_epoch")
    if epoch is None:
        return True
    if not shares_partitions(line["assignor"]):
        return bool(epoch == line["generation_id"])
    targets = {"target_active_tasks", "target_standby_tasks"}
    if assigns_tasks(line["assignor"]) and any(targets & {*one} for one in line["members"]):
        return False
    epochs = {member["generation_id"] for member in line["members"]} - {AWAY}
    return epochs | {epoch} == {line["generation_id"]}


def _read(line: str | None) -> GroupSpec | None:
    return None if line is None else GroupSpec.from_json(line)


def _differs(before: GroupSpec | None, after: GroupSpec) -> bool:
    """Returns whether the group has rebalanced.

    A classic group has if its assignor or owners differ, a broker-assigned one if its epoch or
    members do.
    """

    def state(group: GroupSpec | None) -> object:
        if group is None:
            return None
        if group.assignor in SERVER_SIDE:
            return group.generation_id, {member.member_id for member in group.members}
        return group.assignor, dict(Assignment.owned(group))

    return state(before) != state(after)
