# SPDX-License-Identifier: Apache-2.0
"""Follows groups: by their records in __consumer_offsets if the user has Read on this topic, else
by their descriptions. After each rebalance, it prints whether the group ended as predicted from the
state before, with the ids of the members that joined, or else what made the difference; and why the
group rebalanced. With changes, it follows the descriptions of one group, plans the changes at the
start, and says once they are made how many partitions have other members than planned. If brokers
are down, it waits. Ctrl-C ends it.
"""

import argparse
import queue
import time
from collections.abc import Callable, Set
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, cast

from kafka_rebalance.assignors.registry import SERVER_SIDE, STREAM, library_of
from kafka_rebalance.errors import AssignorThrows, GroupError, NotReachedError, shown
from kafka_rebalance.follow.cluster import RECORDS, FollowedCluster
from kafka_rebalance.follow.rebalances import FollowedRebalance
from kafka_rebalance.group import contract
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.live.consumer_groups import EMPTY, NO_SUCH_GROUP
from kafka_rebalance.live.offsets_log import NoLogError
from kafka_rebalance.plans.leaders import plans_by_leader
from kafka_rebalance.plans.rebalance_plan import RebalancePlan
from kafka_rebalance.report.text.sentences import counted, member_names, print_note, shortened
from kafka_rebalance.watch.owners import owners
from kafka_rebalance.watch.verdict import (
    NO_CHANGE,
    NO_REBALANCE,
    JudgedRebalance,
    differences,
    distance,
    is_reached,
)

from . import SOME_ERRORS, of_errors
from .groups import add_changes, error_text
from .options import (
    add_cluster,
    add_patterns,
    add_table,
    cluster_configs,
    fits,
    is_pattern,
    seconds,
    whole,
)
from .tally import OF_APPLICATION

_Events = queue.SimpleQueue[tuple[str, tuple[Any, ...], dict[str, Any]]]
"""Calls of a listener: the method, and its arguments by position and by name."""
PATIENCE_S = 60.0
"""The seconds without an answer after which a cluster counts as gone; a broker restarts in less
time.
"""
_OF_NAMED_S, _OF_ALL_S = 0.5, 5.0
"""The seconds between two descriptions of named groups, and of all groups."""
_WITHOUT_MEMBERS = (EMPTY, "state: Dead", NO_SUCH_GROUP)


def add_options(parser: argparse.ArgumentParser) -> None:
    add_cluster(parser)
    add_patterns(parser)
    table = """
    --rebalances N: end after N rebalances
    --for S: end after S seconds
    --json: print one answer per line, as JSON
    --engine
    """
    how: dict[str, Any] = {"for": {"type": seconds, "dest": "for_s"}}
    add_table(parser, table, rebalances=whole(1), **how)
    add_changes(parser)


def run(args: argparse.Namespace) -> int:
    patterns = args.group or ["*"]
    names = None if any(map(is_pattern, patterns)) else list(dict.fromkeys(patterns))
    if args.changes and (names is None or len(names) > 1):
        args.parser.error("changes: name one group with --group, without a pattern")
    watch = _Watch(args, names)
    cluster = FollowedCluster(
        args.bootstrap_server,
        cast(Any, _Queued(watch.events)),
        configs=cluster_configs(args),
        is_wanted=partial(fits, patterns=args.group),
        names=names,
        reads_log=not args.changes,
        every_s=_OF_ALL_S if names is None else _OF_NAMED_S,
        engine=args.engine,
    )
    cluster.start()
    try:
        return watch.run()
    finally:
        cluster.stop()


class _Queued:
    """Passes each call of a listener on to the thread that prints."""

    def __init__(self, events: _Events) -> None:
        self._events = events

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *given, **named: self._events.put((name, given, named))


@dataclass
class _Watch:
    """Prints what happens to the groups. `names` is None if patterns select them."""

    args: argparse.Namespace
    names: list[str] | None
    events: _Events = field(default_factory=queue.SimpleQueue)
    told: RebalancePlan | None = None
    seen: int = 0
    wrong: int = 0
    refused: str = ""
    groups: dict[str, GroupSpec] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    whys: dict[str, str] = field(default_factory=dict)
    emptied: set[str] = field(default_factory=set)
    lost: dict[str, tuple[NotReachedError, float]] = field(default_factory=dict)
    has_begun: bool = False

    def run(self) -> int:
        """Prints until the end; returns the exit code. Errors: ClusterError if retries fail."""
        began_s = time.monotonic()
        while not self.refused and self.seen != (self.args.rebalances or -1):
            left_s = (self.args.for_s or 1e9) - (time.monotonic() - began_s)
            if left_s <= 0 and self.events.empty():
                break
            try:
                what, given, more = self.events.get(timeout=max(0.0, min(1.0, left_s)))
            except queue.Empty:
                self._check_patience()
            else:
                getattr(self, what)(*given, **more)
        if self.refused:
            print_note(self.refused)
            return SOME_ERRORS
        if not self.groups and self.names is not None:
            which = "group" if len(self.names) == 1 else "groups"
            named = f"{which} {', '.join(map(shown, self.names))}"
            print_note(f"{named} was never seen stable and with members: nothing was judged")
            return SOME_ERRORS
        judged = f"{counted(self.seen, 'rebalance')}, {self.wrong} not as predicted"
        print_note(judged if self.seen else "no rebalance came, so nothing was judged")
        return of_errors(self.wrong)

    def rebalanced(self, one: FollowedRebalance, *, is_old: bool) -> None:
        row, after = one.row, one.after
        is_first = row.group_id not in self.sources
        is_first |= row.cause == "started" and row.group_id not in self.emptied
        if is_old or (is_first and self.names is not None):
            return  # the first description of a group is the beginning, not an event
        if after is not None:
            self.groups[row.group_id] = after
        if not row.members and row.is_rebalance:
            self.undescribed(row.group_id, f"{EMPTY}, it has no members")
        elif row.is_rebalance or one.judged is not None:
            self.whys.pop(row.group_id, None)
            far = None
            if self.told is not None and after is not None and is_reached(self.told, after):
                far, self.told = distance(self.told, after), None
            changes = ", ".join(map(str, self.args.changes))
            self.wrong += one.judged is not None and not one.judged.is_predicted
            self.seen += 1
            if self.args.json:
                print(contract.dumps(_document(one, far, changes)), flush=True)
            else:
                group = f"{shown(row.group_id)}: " if self.names is None or self.names[1:] else ""
                print(f"{group}{_line(one, far, changes)}", flush=True)

    def described(self, group: GroupSpec, source: str) -> None:
        group_id, before = group.group_id, self.groups.get(group.group_id)
        self.whys.pop(group_id, None)
        self.groups[group_id] = group
        if before is None and self.names is not None and (why := self._refusal(group)):
            self.refused = f"{shown(group_id)}: {why}"
        elif self.sources.get(group_id) != source and self.names is not None:
            if self.sources.get(group_id):
                who = "its leader" if source == RECORDS else "the broker"
                how = f"{who} assigns it now, by {group.assignor}"
                print_note(f"{shown(group_id)} was converted: {how}")
            print_note(_beginning(group, source))
        elif before and before.members == group.members and group.subtopologies is None:
            resized = ", ".join(differences(before, group)["partitions"])
            note = f"{shown(group_id)}: partitions: {resized}; no rebalance yet; waiting"
            print_note(note) if resized else None
        self.sources[group_id] = source

    def undescribed(self, group_id: str, why: str) -> None:
        is_seen = group_id in self.groups
        is_lost = is_seen and why.startswith(_WITHOUT_MEMBERS)
        if is_lost:
            self.emptied.add(group_id)
        is_awaited = not is_seen and self.names is not None
        if (is_lost or is_awaited) and why != self.whys.get(group_id):
            self.whys[group_id] = why
            text = f"{shown(group_id)}: {why}"
            if why.startswith(NO_SUCH_GROUP):
                text = f"there is no group {shown(group_id)} yet{why.removeprefix(NO_SUCH_GROUP)}"
            print_note(f"{text}; waiting")

    def listed(self, group_ids: Set[str]) -> None:
        if not self.has_begun and self.names is None:
            by_records = sum(source == RECORDS for source in self.sources.values())
            there = counted(len(self.groups), "group")
            print_note(f"watching {there} with members, {by_records} of them by records")
        self.has_begun = True

    def failed(self, what: str, error: Exception | None) -> None:
        who = f"{shown(self.names[0])}: its coordinator" if self.names else "a coordinator"
        if isinstance(error, NoLogError):
            print_note(f"following descriptions: {error}")
            error = None
        if error is None:
            if self.lost.pop(what, None) and not self.lost:
                print_note(f"{who} answers again")
            return
        if not isinstance(error, NotReachedError):
            raise error
        was_lost, (_, since_s) = bool(self.lost), self.lost.get(what, (error, time.monotonic()))
        self.lost[what] = error, since_s
        self._check_patience()
        if not was_lost:
            why = str(error).removeprefix(f"{self.args.bootstrap_server}: ")
            print_note(f"{who} does not answer ({why}); waiting")

    def _check_patience(self) -> None:
        """Raises an error if two hold: it is a minute old, no server answers, nothing is listed."""
        for error, since_s in self.lost.values():
            is_over = time.monotonic() - since_s > PATIENCE_S
            if [is_over, error.none_answered, not self.has_begun].count(True) > 1:
                raise error

    def _refusal(self, group: GroupSpec) -> str:
        """Plans the changes. Returns why they cannot be planned; "" if they can.

        Without changes, only an error at `assignor` counts: then no plan is possible. But an
        assignor that throws now may answer later, and the causes of a Kafka Streams group's
        rebalances are known without a plan.
        """
        changes = self.args.changes
        try:
            led = plans_by_leader(group, changes, engine=self.args.engine)
        except GroupError as error:
            is_final = error.path == "assignor" and not isinstance(error, AssignorThrows)
            is_stream = error.path == "assignor" and group.assignor == STREAM
            if not changes and (is_stream or not is_final):
                return ""
            return OF_APPLICATION if is_stream else error_text(error, changes)
        if changes:
            self.told = next(one.plan for one in led if one.plan is not None)
        return ""


def _document(one: FollowedRebalance, far: int | None, changes: str) -> dict[str, Any]:
    row = one.row
    judged = {"group_id": row.group_id, "generation_id": row.generation_id, "as_predicted": None}
    if one.judged is not None:
        judged = one.judged.to_dict()
    more = {} if far is None else {"told_elsewhere": far}
    causes = [asdict(cause) for cause in row.causes]
    return judged | more | {"summary": _line(one, far, changes), "causes": causes}


def _beginning(group: GroupSpec, source: str) -> str:
    size = f"{counted(len(group.members), 'member')}, {counted(len(owners(group)), _noun(group))}"
    how = "in __consumer_offsets" if source == RECORDS else "by asking the broker"
    return f"watching {group.group_id} {how}: {group.assignor}, {size}"


def _line(one: FollowedRebalance, far: int | None, changes: str) -> str:
    """Returns a line about a rebalance, with the short names of members that `plan` prints."""
    row, judged, after = one.row, one.judged, one.after
    unit = "group epoch" if row.protocol in SERVER_SIDE else "generation"
    generation = f"{unit} {row.generation_id}, " if row.generation_id >= 0 else ""
    why = "; ".join(
        f"{cause.kind} ({cause.detail})" if cause.detail else cause.kind for cause in row.causes
    )
    if judged is None or after is None:
        return shown(f"{generation}{counted(row.members, 'member')}: not judged; why: {why}")
    by_library = library_of(judged.assignor) and judged.assignor not in SERVER_SIDE
    how = f"as predicted ({'led by ' if by_library else ''}{judged.assignor})"
    if judged.is_predicted and judged.event.startswith("back: "):
        how = NO_REBALANCE
    elif not judged.is_predicted:
        noun = counted(judged.partitions, _noun(after))
        have = "has" if judged.elsewhere == 1 else "have"
        how = f"not as predicted: {judged.elsewhere} of {noun} {have} other members than predicted"
        how += f"; cause: {judged.cause}"
    told = ""
    if far is not None:
        than = "as" if far == 0 else f"{counted(far, _noun(after))} with other members than"
        told = f"; {than} in your plan ({changes})"
    members = (*(one.before.members if one.before else ()), *after.members)
    names = member_names({m.member_id: m.client_id for m in members})
    text = f"{generation}{_event(judged, after)}: {how}{told}"
    return shortened(f"{text}; why: {why}" if row.offset >= 0 else text, names)


def _event(one: JudgedRebalance, after: GroupSpec) -> str:
    """Returns what caused the rebalance; if nothing visible did, how many partitions were revoked
    and gained.
    """
    moves = [(one.revoked, "revoked"), (one.gained, "gained")]
    moved = [f"{counted(number, _noun(after))} {what}" for number, what in moves if number]
    if one.event != NO_CHANGE or not moved:
        return one.event
    return f"no member changed ({', '.join(moved)})"


def _noun(group: GroupSpec) -> str:
    return "partition" if group.subtopologies is None else "task"
