# SPDX-License-Identifier: Apache-2.0
"""Reads many groups of a file or a cluster, and shows them in the order of their findings."""

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain
from typing import TYPE_CHECKING, get_args

from kafka_rebalance.assignors.registry import SERVER_SIDE
from kafka_rebalance.errors import ClusterError, GroupError, NotReachedError
from kafka_rebalance.frozen import Mutable
from kafka_rebalance.group import contract
from kafka_rebalance.group.model import TopicPartition, shell_option
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.notes.findings import FINDINGS, SEVERITIES
from kafka_rebalance.present import triage
from kafka_rebalance.present.description import Description, describe, read_partitions
from kafka_rebalance.present.triage import TriagedGroup
from kafka_rebalance.report.text.sentences import print_note

from . import of_errors
from .applications import findings
from .groups import BadGroup, cluster_groups, no_such_group, read_groups, report_bad
from .lines import Leaderless
from .options import add_table, cluster_configs, fits, is_pattern
from .snapshot import note_left_out

if TYPE_CHECKING:
    from kafka_rebalance.live import Listed
    from kafka_rebalance.present.broker_assigned import Lags

CONNECT = "connect"
_NEWEST = 200_000
"""The number of newest offsets of `__consumer_offsets` to read; this takes a few seconds."""
_RECENT_MS = 3_600_000
_APART_S, _MOST_NAMED = 30, 5
"""The seconds between two descriptions of a group; the most group ids that a note lists."""
_Shows = Callable[[argparse.Namespace, GroupSpec, Leaderless], None]


def add_selection(parser: argparse.ArgumentParser) -> None:
    kinds = [*SEVERITIES, *FINDINGS, "empty"]
    selection = """
    --only WHAT: only groups with this finding, or with one of this severity (error, warning, info)
      or a worse one; empty: without members; may be given again
    --sort: worst first, or the largest lag or most members, or by name (default: %(default)s)
    """
    add_table(
        parser,
        selection,
        only={"action": "append", "choices": kinds},
        sort={"choices": get_args(triage.Order), "default": "severity"},
    )


def show_all(args: argparse.Namespace, patterns: Sequence[str] | None, show: _Shows) -> int:
    """Shows the groups that match a pattern (None: all). If the input is one group, and neither a
    pattern nor `--only` selects, `show` is called for it instead.
    """
    look = _Look(args, patterns)
    found = look.read()
    if len(found) == 1 and patterns is None and not args.only:
        (alone,) = found
        if isinstance(alone, GroupSpec):
            show(args, alone, look.noted)
            return of_errors(0)
    rows, bad = look.triaged(found)
    for problem in bad:
        report_bad(problem, as_json=args.json)
    groups = triage.in_order(rows, args.sort)
    shown = groups if args.only is None else triage.with_any(groups, args.only)
    if args.json:
        for one in shown:
            print(contract.dumps(one.to_dict()), flush=True)
    elif groups:
        from kafka_rebalance.report.groups.description import print_triage

        if patterns is None and args.only is None and not args.all:
            shown = [one for one in groups if one.findings]
        print_triage(groups, shown, only=args.only)
    return of_errors(len(bad))


def triaged(
    args: argparse.Namespace, patterns: Sequence[str] | None, *, counts: bool = False
) -> tuple[list[TriagedGroup], list[BadGroup]]:
    """Returns the groups that fit a pattern (None: all), and the errors of other groups.

    With `counts`, the groups of a cluster include their number of rebalances.
    """
    look = _Look(args, patterns)
    rows, bad = look.triaged(look.read())
    return look.counted_again(rows) if counts and look.listed else rows, bad


class _Look(Mutable):
    """One reading of the groups that match a pattern. `listed` maps the ids of all groups of the
    cluster to their entries in the cluster's list.
    """

    args: argparse.Namespace
    patterns: Sequence[str] | None
    noted: Leaderless = field(default_factory=Leaderless)
    listed: dict[str, "Listed"] = field(default_factory=dict)

    def read(self) -> list[GroupSpec | BadGroup]:
        if self.args.file is None and self.args.bootstrap_server is not None:
            return list(self._of_cluster())
        return list(read_groups(self.args, self.noted))

    def triaged(
        self, found: Sequence[GroupSpec | BadGroup]
    ) -> tuple[list[TriagedGroup], list[BadGroup]]:
        bad = [*self._missing(found)]
        connect = [id_ for id_ in self.listed if self._is_connect(id_) and self._fits(id_)]
        groups, states = list[GroupSpec](), dict[str, str]()
        for one in found:
            if not self._fits(one.group_id) or self._is_connect(one.group_id):
                continue
            if isinstance(one, GroupSpec):
                groups.append(one)
            elif one.group_id is None or (state := triage.state_in(one.error)) is None:
                bad.append(one)
            else:
                states[one.group_id] = state
        rows = [*self._rows(groups, states), *_connect_rows(self.args, connect)]
        return (_with_records(self.args, rows) if self.listed else rows), bad

    def counted_again(self, rows: Sequence[TriagedGroup]) -> list[TriagedGroup]:
        """Returns the groups with their numbers of rebalances; groups without records are described
        again to count them.
        """
        seen = {
            one.group_id: one.described.group
            for one in rows
            if one.rebalances is None and isinstance(one.described, Description)
        }
        if not seen:
            return list(rows)
        ids = ", ".join(seen) if len(seen) <= _MOST_NAMED else f"{len(seen)} groups"
        print_note(
            f"{ids}: no records show rebalances, so they are described again in {_APART_S} s"
        )
        time.sleep(_APART_S)
        again = {one.group_id: one for one, _ in cluster_groups(self.args, [*seen], None)}
        between = f"between two descriptions, {_APART_S} s apart"
        return [
            replace(one, rebalances=_between(before, again.get(one.group_id)), counted_in=between)
            if (before := seen.get(one.group_id)) is not None
            else one
            for one in rows
        ]

    def _is_connect(self, group_id: str | None) -> bool:
        one = self.listed.get(group_id or "")
        return one is not None and one.protocol_type == CONNECT

    def _fits(self, group_id: str | None) -> bool:
        return group_id is None or fits(group_id, self.patterns)

    def _missing(self, found: Sequence[GroupSpec | BadGroup]) -> Iterator[BadGroup]:
        """Yields an error for each given name or pattern that no group matches."""
        ids = (one.group_id for one in found if one.group_id is not None)
        there = [*dict.fromkeys([*ids, *self.listed])]
        for pattern in self.patterns or ():
            if not any(fits(one, [pattern]) for one in there):
                yield no_such_group(pattern, self.args.file or self.args.bootstrap_server, there)

    def _of_cluster(self) -> Iterator[GroupSpec | BadGroup]:
        """Yields the groups of the cluster (if only names are given, these), but none of Connect. A
        group without members, or in a rebalance, is yielded as an error with its state.
        """
        named = self.patterns is not None and not any(map(is_pattern, self.patterns))
        left: list[BadGroup] = []

        def leave_out(group_id: str, why: str) -> None:
            if triage.state_in(why) is not None:
                left.append(BadGroup(group_id, why))
            elif not self._is_connect(group_id):
                note_left_out(group_id, why)

        names = self.patterns if named else None
        for one, line in cluster_groups(self.args, names, leave_out, self.listed.update):
            self.noted.note(one.group_id, line)
            yield one
        yield from left
        if not self.listed and not named:
            print_note(f"{self.args.bootstrap_server}: there is no group")

    def _rows(
        self, groups: Sequence[GroupSpec], states: Mapping[str, str]
    ) -> Iterator[TriagedGroup]:
        for one in described(self.args, groups, self.noted):
            listed = self.listed.get(one.group.group_id)
            yield TriagedGroup.of(one, "Stable" if listed is None else listed.state)
        types = {id_: one.group_type.lower() for id_, one in self.listed.items()}
        with_lag = [id_ for id_ in states if types.get(id_) != "share"]  # they commit no offsets
        lags = _lags_of_others(self.args, with_lag)
        for id_, state in states.items():
            yield TriagedGroup.undescribed(id_, types.get(id_), state, lags.get(id_))


def _between(before: GroupSpec, after: GroupSpec | BadGroup | None) -> int:
    """Returns the least number of rebalances between two descriptions of a group; for a classic
    group, only 0 or 1 is known.
    """
    if not isinstance(after, GroupSpec):
        return 1
    if before.assignor in SERVER_SIDE:
        return max(0, (after.generation_id or 0) - (before.generation_id or 0))
    return int(Assignment.owned(before) != Assignment.owned(after))


def _connect_rows(args: argparse.Namespace, group_ids: Sequence[str]) -> Iterator[TriagedGroup]:
    if not group_ids:
        return
    from kafka_rebalance.live import connect_groups

    configs = cluster_configs(args)
    for group_id, one in connect_groups(args.bootstrap_server, group_ids, configs=configs):
        if not isinstance(one, GroupError):
            yield TriagedGroup.of(one)
        elif state := triage.state_in(str(one)):
            yield TriagedGroup.undescribed(group_id, CONNECT, state)
        else:
            note_left_out(group_id, str(one))


def _with_records(args: argparse.Namespace, groups: Sequence[TriagedGroup]) -> list[TriagedGroup]:
    """Returns the groups with the last hour's rebalances and patterns, if records can be read."""
    from kafka_rebalance.history.all_groups import recorded_in_order
    from kafka_rebalance.history.patterns import find_patterns
    from kafka_rebalance.live import NoLogError, NoTopicError, offsets_records

    missing = list[str]()

    def note_missing(problem: str) -> None:
        missing.append(problem)
        print_note(f"{problem}: storms and flapping members of their groups are not known")

    where, configs = args.bootstrap_server, cluster_configs(args)
    records = offsets_records(where, configs=configs, newest=_NEWEST, on_missing=note_missing)
    since_ms = time.time() * 1000 - _RECENT_MS
    try:
        rows = [row for row, _ in recorded_in_order(records) if row.time_ms >= since_ms]
    except NoTopicError:
        return list(groups)
    except NoLogError as error:
        print_note(f"storms and flapping members are not known: {error}")
        return list(groups)
    counts = Counter(row.group_id for row in rows if row.is_rebalance)
    found = []
    for one in triage.with_patterns(groups, find_patterns(rows)):
        if one.group_type in ("classic", "consumer"):  # records of other kinds are not counted
            count = counts[one.group_id]
            rebalances = None if missing and not count else count
            one = replace(one, rebalances=rebalances, counted_in="in records of the last hour")
        found.append(one)
    return found


def described(
    args: argparse.Namespace, groups: Sequence[GroupSpec], noted: Leaderless
) -> list[Description]:
    """Returns the descriptions of the groups; with lags, if they are of a cluster."""
    read: dict[str, Iterable[TopicPartition] | None] = {
        group.group_id: read_partitions(group, chain(*Assignment.owned(group).values()))
        for group in groups
    }
    leaderless: list[TopicPartition] = []
    lags, found = _lags(args, read, leaderless), list[Description]()
    for group in groups:
        lag, silent = lags.get(group.group_id), noted.of_group.get(group.group_id, ())
        one = describe(group, lags=lag, leaderless=[*leaderless, *silent], engine=args.engine)
        found.append(_weighed(args, one.also(findings(args, group, noted))))
    return found


def _weighed(args: argparse.Namespace, one: Description) -> Description:
    """Returns the description; the command of "overloaded" repeats the options of weights."""
    given = [(f"--{name}", vars(args).get(name)) for name in ("weights", "capacity")]
    options = [shell_option(option, value) for option, value in given if value is not None]
    found = list(one.findings)
    for place, note in enumerate(found):
        if note.kind == "overloaded":
            found[place] = replace(note, ask=" ".join([note.ask or "", *options]))
    return replace(one, findings=tuple(found))


def _lags(
    args: argparse.Namespace,
    read: Mapping[str, Iterable[TopicPartition] | None],
    leaderless: list[TopicPartition],
) -> Mapping[str, "Lags"]:
    """Returns the lags by group id; {} if the groups come from a file. Adds partitions without a
    leader to `leaderless`.
    """
    if args.bootstrap_server is None:
        return {}
    from kafka_rebalance.live import group_lags

    configs = cluster_configs(args)
    return group_lags(args.bootstrap_server, read, configs=configs, on_leaderless=leaderless.append)


def _lags_of_others(args: argparse.Namespace, group_ids: Sequence[str]) -> Mapping[str, "Lags"]:
    """Returns the lags of groups that cannot be described here, where the cluster permits it."""
    try:
        return _lags(args, dict.fromkeys(group_ids), []) if group_ids else {}
    except NotReachedError:
        raise
    except ClusterError as error:
        if len(group_ids) == 1:
            note_left_out(group_ids[0], str(error))
            return {}
    half = len(group_ids) // 2
    parts = group_ids[:half], group_ids[half:]
    return {id_: lags for part in parts for id_, lags in _lags_of_others(args, part).items()}
