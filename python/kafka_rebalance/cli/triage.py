# SPDX-License-Identifier: Apache-2.0
"""Reads many groups of a file or a cluster, and shows them in the order of their findings."""

import argparse
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, get_args

from kafka_rebalance.errors import ClusterError, GroupError, NotReachedError
from kafka_rebalance.group import contract
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.notes.findings import FINDINGS, SEVERITIES
from kafka_rebalance.present.description import Description, describe, read_partitions
from kafka_rebalance.present.triage import (
    Order,
    TriagedGroup,
    in_order,
    state_in,
    with_any,
    with_patterns,
)
from kafka_rebalance.report.text.sentences import print_note

from . import of_errors
from .groups import BadGroup, cluster_groups, no_such_group, read_groups, report_bad
from .lines import Leaderless
from .options import cluster_configs
from .patterns import is_pattern
from .snapshot import note_left_out

if TYPE_CHECKING:
    from kafka_rebalance.history.patterns import Pattern
    from kafka_rebalance.live.consumer_groups import Listed
    from kafka_rebalance.present.broker_assigned import Lags

CONNECT = "connect"
_NEWEST = 200_000
"""How many of the newest offsets of `__consumer_offsets` are read: kafka-python takes seconds."""
_RECENT_MS = 3_600_000
_Shows = Callable[[argparse.Namespace, GroupSpec, Leaderless], None]


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Adds the options that select and sort groups by their findings."""
    parser.add_argument(
        "--only",
        action="append",
        choices=[*SEVERITIES, *FINDINGS, "empty"],
        metavar="WHAT",
        help="only groups with this finding, or with one of this severity (error, warning, info) "
        "or a worse one; empty: without members; may be given again",
    )
    parser.add_argument(
        "--sort",
        choices=get_args(Order),
        default="severity",
        help="worst first, or the largest lag or most members, or by name (default: %(default)s)",
    )


def show_all(args: argparse.Namespace, patterns: Sequence[str] | None, show: _Shows) -> int:
    """Shows the groups that fit a pattern (None: all); `show` shows a group that is alone."""
    noted = Leaderless()
    listed: dict[str, Listed] = {}
    found = _read(args, patterns, noted, listed)
    if len(found) == 1 and patterns is None and not args.only:
        (alone,) = found
        if isinstance(alone, GroupSpec):
            show(args, alone, noted)
            return of_errors(0)
    rows, bad = _triaged(args, patterns, found, noted, listed)
    for problem in bad:
        report_bad(problem, as_json=args.json)
    _show_rows(args, in_order(rows, args.sort))
    return of_errors(len(bad))


def triaged(
    args: argparse.Namespace, patterns: Sequence[str] | None
) -> tuple[list[TriagedGroup], list[BadGroup]]:
    """Returns the groups that fit a pattern (None: all), and those that cannot be read."""
    noted = Leaderless()
    listed: dict[str, Listed] = {}
    return _triaged(args, patterns, _read(args, patterns, noted, listed), noted, listed)


def _read(
    args: argparse.Namespace,
    patterns: Sequence[str] | None,
    noted: Leaderless,
    listed: dict[str, "Listed"],
) -> list[GroupSpec | BadGroup]:
    if args.file is None and args.bootstrap_server is not None:
        return list(_of_cluster(args, patterns, noted, listed))
    return list(read_groups(args, noted))


def _triaged(
    args: argparse.Namespace,
    patterns: Sequence[str] | None,
    found: Sequence[GroupSpec | BadGroup],
    noted: Leaderless,
    listed: Mapping[str, "Listed"],
) -> tuple[list[TriagedGroup], list[BadGroup]]:
    bad = [*_missing(args, patterns, found, listed)]
    connect = {id_ for id_, one in listed.items() if one.protocol_type == CONNECT}
    found = [one for one in found if _fits(one.group_id, patterns)]
    found = [one for one in found if one.group_id not in connect]
    states: dict[str, str] = {}
    for one in found:
        if not isinstance(one, BadGroup):
            continue
        state = state_in(one.error)
        if state is None or one.group_id is None:
            bad.append(one)
        else:
            states[one.group_id] = state
    groups = [one for one in found if isinstance(one, GroupSpec)]
    rows = [
        *_rows(args, groups, states, noted, listed),
        *_connect_rows(args, [one for one in connect if _fits(one, patterns)]),
    ]
    return with_patterns(rows, _recent_patterns(args)) if listed else rows, bad


def _rows(
    args: argparse.Namespace,
    groups: Sequence[GroupSpec],
    states: Mapping[str, str],
    noted: Leaderless,
    listed: Mapping[str, "Listed"],
) -> Iterator[TriagedGroup]:
    types = {id_: listed[id_].group_type.lower() if id_ in listed else None for id_ in states}
    with_lag = [id_ for id_ in states if types[id_] != "share"]  # no committed offsets
    for one in described(args, groups, noted):
        id_ = one.group.group_id
        yield TriagedGroup.of(one, listed[id_].state if id_ in listed else "Stable")
    lags = _lags_of_others(args, with_lag)
    for id_, state in states.items():
        yield TriagedGroup.undescribed(id_, types[id_], state, lags.get(id_))


def _connect_rows(args: argparse.Namespace, group_ids: Sequence[str]) -> Iterator[TriagedGroup]:
    if not group_ids:
        return
    from kafka_rebalance.live.other_groups import connect_groups

    configs = cluster_configs(args)
    for group_id, one in connect_groups(args.bootstrap_server, group_ids, configs=configs):
        if not isinstance(one, GroupError):
            yield TriagedGroup.of(one)
        elif state := state_in(str(one)):
            yield TriagedGroup.undescribed(group_id, CONNECT, state)
        else:
            note_left_out(group_id, str(one))


def _recent_patterns(args: argparse.Namespace) -> list["Pattern"]:
    """Returns the patterns of the last hour in the newest records; a user may lack the right."""
    from kafka_rebalance.history.all_groups import recorded_in_order
    from kafka_rebalance.history.patterns import find_patterns
    from kafka_rebalance.live.offsets_log import NoLogError, NoTopicError, offsets_records

    def note_missing(problem: str) -> None:
        print_note(f"{problem}: storms and flapping members of their groups are not known")

    where, configs = args.bootstrap_server, cluster_configs(args)
    read = offsets_records(where, configs=configs, newest=_NEWEST, on_missing=note_missing)
    try:
        rows = [row for row, _ in recorded_in_order(read)]
    except NoTopicError:
        return []
    except NoLogError as error:
        print_note(f"storms and flapping members are not known: {error}")
        return []
    since_ms = time.time() * 1000 - _RECENT_MS
    return find_patterns(row for row in rows if row.time_ms >= since_ms)


def _show_rows(args: argparse.Namespace, groups: Sequence[TriagedGroup]) -> None:
    shown = groups if args.only is None else with_any(groups, args.only)
    if args.json:
        for one in shown:
            print(contract.dumps(one.to_dict()), flush=True)
    elif groups:
        from kafka_rebalance.report.plans.triage import print_triage

        if args.only is None and not args.all:
            shown = [one for one in groups if one.findings]
        print_triage(groups, shown, selects=args.only is not None)


def described(
    args: argparse.Namespace, groups: Sequence[GroupSpec], noted: Leaderless
) -> list[Description]:
    """Returns the descriptions of the groups; with the lags, if they are of a cluster."""
    read: dict[str, Iterable[TopicPartition] | None] = {
        group.group_id: [
            tp for owned in Assignment.owned(group).values() for tp in read_partitions(group, owned)
        ]
        for group in groups
    }
    leaderless: list[TopicPartition] = []
    lags = _lags(args, read, leaderless)
    return [
        describe(
            group,
            lags=lags.get(group.group_id),
            leaderless=[*leaderless, *noted.of_group.get(group.group_id, ())],
            engine=args.engine,
        )
        for group in groups
    ]


def _lags(
    args: argparse.Namespace,
    read: Mapping[str, Iterable[TopicPartition] | None],
    leaderless: list[TopicPartition],
) -> Mapping[str, "Lags"]:
    """Returns the lags by group id, and adds the partitions without a leader; empty for a file."""
    if args.bootstrap_server is None:
        return {}
    from kafka_rebalance.live.committed_offsets import group_lags

    configs = cluster_configs(args)
    return group_lags(args.bootstrap_server, read, configs=configs, on_leaderless=leaderless.append)


def _lags_of_others(args: argparse.Namespace, group_ids: Sequence[str]) -> Mapping[str, "Lags"]:
    """Returns the lags of groups of which only the offsets are known.

    If one group is refused, for example for lack of a permission, it is left out.
    """
    if not group_ids:
        return {}
    try:
        return _lags(args, dict.fromkeys(group_ids), [])
    except NotReachedError:
        raise
    except ClusterError as error:
        if len(group_ids) == 1:
            note_left_out(group_ids[0], str(error))
            return {}
    half = len(group_ids) // 2
    parts = group_ids[:half], group_ids[half:]
    return {id_: lags for part in parts for id_, lags in _lags_of_others(args, part).items()}


def _of_cluster(
    args: argparse.Namespace,
    patterns: Sequence[str] | None,
    noted: Leaderless,
    listed: dict[str, "Listed"],
) -> Iterator[GroupSpec | BadGroup]:
    """Yields the groups of a cluster; one without members is an error with its state.

    Groups of Connect are only in `listed`.
    """
    names = None if patterns is None or any(map(is_pattern, patterns)) else patterns
    left: list[BadGroup] = []

    def leave_out(group_id: str, why: str) -> None:
        if state_in(why) is not None:
            left.append(BadGroup(group_id, why))
        elif group_id not in listed or listed[group_id].protocol_type != CONNECT:
            note_left_out(group_id, why)

    for one, line in cluster_groups(args, names, leave_out, listed.update):
        noted.note(one.group_id, line)
        yield one
    yield from left
    if not listed and names is None:
        print_note(f"{args.bootstrap_server}: there is no group")


def _fits(group_id: str | None, patterns: Sequence[str] | None) -> bool:
    if patterns is None or group_id is None:
        return True
    return any(fnmatchcase(group_id, one) for one in patterns)


def _missing(
    args: argparse.Namespace,
    patterns: Sequence[str] | None,
    found: Sequence[GroupSpec | BadGroup],
    listed: Mapping[str, "Listed"],
) -> Iterator[BadGroup]:
    """Yields an error for each name and pattern that no group fits."""
    there = list(dict.fromkeys([*(one.group_id for one in found if one.group_id), *listed]))
    for pattern in patterns or ():
        if not any(fnmatchcase(one, pattern) for one in there):
            yield no_such_group(pattern, args.file or args.bootstrap_server, there)
