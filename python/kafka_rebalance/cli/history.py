# SPDX-License-Identifier: Apache-2.0
"""Reads records of __consumer_offsets and shows each rebalance that they hold, with its cause. FILE
has JSON lines (partition, offset, timestamp in ms, key and value in base64; also as .gz) or Parquet
with these columns. With --bootstrap-server, the records of a live cluster are read; nothing is
changed there, and no group is joined.
"""

import argparse
import gzip
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from kafka_rebalance.errors import ClusterError, GroupError, NotReachedError
from kafka_rebalance.group import contract
from kafka_rebalance.group.line_files import MAX_LINE_BYTES, read_lines
from kafka_rebalance.group.model import Topic
from kafka_rebalance.history.all_groups import (
    Recorded,
    in_time,
    recorded_in_files,
    recorded_in_order,
)
from kafka_rebalance.history.coordinator_log import CoordinatorLog, read_coordinator_log
from kafka_rebalance.history.counterfactual import Counterfactual, counterfactuals
from kafka_rebalance.history.group_log import RecordedGeneration
from kafka_rebalance.history.log_causes import with_log
from kafka_rebalance.history.patterns import Pattern, find_patterns
from kafka_rebalance.history.recorded import RecordedRebalance
from kafka_rebalance.history.replayed import ReplayedRebalance, replay
from kafka_rebalance.report.text.sentences import GLOSSARY, counted, print_note
from kafka_rebalance.report.text.terminal import item_progress

from . import SOME_ERRORS, of_errors
from .groups import no_such_group, report_bad
from .lines import draw, required
from .options import REPEATED, add_cluster, add_table, cluster_configs

_NONE = "a group that only commits offsets has no record of its own"
_LOG_LINE_BYTES = 1 << 20  # the lines of a coordinator's log are shorter


def add_options(parser: argparse.ArgumentParser) -> None:
    add_table(parser, "files FILE: records; - for standard input", files={"nargs": "*"})
    add_cluster(parser, instead="; its records are read, not FILE")
    reading = """
    --broker-log LOG: a broker's log (also as .gz): causes are read there; give it once for each
      broker
    --group G: only this group, rebalance by rebalance
    """
    add_table(parser, reading, broker_log=REPEATED)
    answers = """
    --patterns: only the patterns: storms, restarts and others
    --replay: compute each rebalance again, and compare
    --what-if: play the same events under each assignor, without and with static members
    """
    add_table(parser.add_mutually_exclusive_group(), answers)
    table = """
    --topics PATH: for --replay and --what-if: the topics' name, partitions and racks, as JSON lines
    --all: show every group and every rebalance
    --json: print one rebalance per line, as JSON
    --output PATH: draw the history: page.html
    """
    add_table(parser, table, output=_page)


def _page(text: str) -> Path:
    if not text.endswith(".html"):
        raise argparse.ArgumentTypeError(f"{text} does not end with .html")
    return Path(text)


def _check(args: argparse.Namespace) -> None:
    """Reports wrong usage before anything is read."""
    usage, computes = args.parser.error, args.replay or args.what_if
    if bool(args.files) == bool(args.bootstrap_server):
        usage("give either FILE, with records of __consumer_offsets, or --bootstrap-server")
    for name in ("command_config", "timeout"):
        if getattr(args, name) is not None and args.bootstrap_server is None:
            usage(f"--{name.replace('_', '-')}: only --bootstrap-server reads it; add it")
    if args.all and (computes or args.patterns or args.json):
        usage("--all: not with --replay, --what-if, --patterns or --json, which show everything")
    if args.replay and args.broker_log:
        usage("--broker-log: not with --replay, which reads no causes")
    if args.output is not None and computes:
        usage("--output: not with --replay or --what-if, which draw no page")
    if args.topics is not None and not computes:
        usage("--topics: only --replay and --what-if read it; add one of them")


def run(args: argparse.Namespace) -> int:
    _check(args)
    missing: list[str] = []
    recorded = _recorded(args, missing)
    source, why = args.bootstrap_server, _NONE
    if args.files:
        source = args.files[0] if len(args.files) == 1 else f"{len(args.files)} files"
        why = f"give all records of __consumer_offsets; {_NONE}"
    if args.group is not None and all(row.group_id != args.group for row, _ in recorded):
        there = list(dict.fromkeys(row.group_id for row, _ in recorded))
        absent = no_such_group(args.group, f"the records of {source}", there)
        report_bad(absent._replace(error=f"{absent.error}; {why}"), as_json=args.json)
        return SOME_ERRORS
    if not recorded:
        raise GroupError(source, f"no record of a group was found; {why}")
    if args.broker_log:
        log = read_coordinator_log(line for path in args.broker_log for line in _log_lines(path))
        rows = with_log([row for row, _ in recorded], log)
        recorded = list(zip(rows, (one for _, one in recorded), strict=True))
        _report_unknown(log)
    if args.group is not None:
        recorded = [one for one in recorded if one[0].group_id == args.group]
    errors = len(missing) + sum(row.error is not None for row, _ in recorded)
    if args.replay or args.what_if:
        return of_errors(errors + _compute(args, recorded))
    rows = [row for row, _ in recorded]
    if args.output is not None:
        from kafka_rebalance.report.history.page import history_page

        title = f"Rebalances of {args.group}" if args.group is not None else "Rebalances"
        draw(args.output, history_page(_by_group(recorded), find_patterns(rows), title))
    if args.json:
        _print_json(find_patterns(rows) if args.patterns else rows)
    else:
        _show(args, rows)
    return of_errors(errors)


def _recorded(args: argparse.Namespace, missing: list[str]) -> Recorded:
    """Reads the files, or a live cluster; adds to `missing` why records of groups are missing."""
    # --replay, --what-if and --output need each generation; rows alone take much less memory.
    needs_all = args.replay or args.what_if or args.output is not None
    if args.bootstrap_server is None:
        found = recorded_in_files(*args.files)
        return in_time((row, one if needs_all else None) for row, one in found)
    from kafka_rebalance.live import group_sessions, offsets_records

    configs, sessions = cluster_configs(args), {}
    try:
        sessions = group_sessions(args.bootstrap_server, args.group, configs=configs)
    except ClusterError as error:  # without settings, the defaults apply; but a broker must answer
        if isinstance(error, NotReachedError) and error.none_answered:
            raise
    with item_progress("records") as advance:
        read = offsets_records(
            args.bootstrap_server,
            configs=configs,
            groups=None if args.group is None else (args.group,),
            on_progress=advance,
            on_missing=missing.append,
        )
        rows = recorded_in_order(read, args.group, session_ms=sessions)
        recorded = in_time((row, one if needs_all else None) for row, one in rows)
    for problem in missing:
        print_note(f"{problem}, so the groups of these partitions are missing")
    return recorded


def _compute(args: argparse.Namespace, recorded: Recorded) -> int:
    """Plays the recorded rebalances again, and prints the results; returns how many rebalances
    (with --replay) or groups could not be computed.
    """
    from kafka_rebalance.report.history.table import print_counterfactuals, print_replay

    topics = _topics(args.topics)
    if args.replay:
        replayed = replay([one for _, one in recorded if one is not None], topics)
        _print_json(replayed) if args.json else print_replay(replayed)
        return sum(one.equal is None for one in replayed)
    failed = set()
    played: list[Counterfactual] = []
    for name, group in _by_group(recorded).items():
        try:
            played += counterfactuals(group, topics)
        except GroupError as error:  # a record may hold any numbers
            failed.add(name)
            print_note(f"{name}: {error}")
    if args.json:
        _print_json(played)
    else:
        # The row "Recorded" is compared with the played rows, so it counts only played groups.
        rows = [row for row, _ in recorded if row.group_id not in failed]
        print_counterfactuals(rows, played)
    return len(failed)


def _by_group(recorded: Recorded) -> dict[str, Recorded]:
    groups: dict[str, list[tuple[RecordedRebalance, RecordedGeneration | None]]] = defaultdict(list)
    for one in recorded:
        groups[one[0].group_id].append(one)
    return dict(groups)


def _print_json(
    answers: Iterable[RecordedRebalance | Pattern | ReplayedRebalance | Counterfactual],
) -> None:
    for one in answers:
        sys.stdout.write(f"{contract.dumps(one.to_dict())}\n")


def _topics(path: str | None) -> list[Topic]:
    """Reads topics from JSON lines with name, partitions, and optionally racks."""
    if path is None:
        return []
    found = []
    with Path(path).open("rb") as source:
        for number, line in enumerate(read_lines(source, MAX_LINE_BYTES), 1):
            try:
                found.append(contract.topic(contract.parse(required(line)), "line"))
            except GroupError as error:
                raise GroupError(f"{path}:{number}", str(error)) from None
    return found


def _log_lines(path: str) -> Iterator[str]:
    opened = gzip.open if path.endswith(".gz") else Path.open
    with opened(Path(path), "rb") as source:
        try:
            for line in read_lines(source, _LOG_LINE_BYTES):
                yield "" if line is None else line.decode("utf-8", "replace")
        except (EOFError, zlib.error) as error:  # a gzip file that is cut or damaged
            raise GroupError(path, str(error)) from None


def _report_unknown(log: CoordinatorLog) -> None:
    if log.unknown:
        are = "is" if log.unknown == 1 else "are"
        told = f"{counted(log.unknown, 'line')} of the coordinator {are} not known, for example: "
        print_note(f"{told}{log.examples[0]}")
    if not log.events:
        print_note("the broker's log has no line about groups")


def _show(args: argparse.Namespace, rows: list[RecordedRebalance]) -> None:
    from kafka_rebalance.report.history.table import print_group, print_groups, print_patterns

    if args.patterns:
        print_patterns(find_patterns(rows))
        return
    if args.group is not None:
        print_group(args.group, rows, find_patterns(rows), everything=args.all)
        return
    groups = defaultdict(list)
    for row in rows:
        if row.is_rebalance:
            groups[row.group_id].append(row)
    print_groups(groups, find_patterns(rows), everything=args.all)
    print(f"--group G shows one group in detail. {GLOSSARY}")
