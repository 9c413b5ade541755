# SPDX-License-Identifier: Apache-2.0
"""`kafka-rebalance history`: what rebalanced, why, and what would have helped."""

import argparse
import gzip
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group import contract
from kafka_rebalance.group.model import Topic
from kafka_rebalance.history.coordinator_log import CoordinatorLog, read_coordinator_log
from kafka_rebalance.history.counterfactual import Counterfactual, counterfactuals
from kafka_rebalance.history.group_log import RecordedGeneration
from kafka_rebalance.history.log_causes import with_log
from kafka_rebalance.history.patterns import Pattern, find_patterns
from kafka_rebalance.history.rebalance_history import Recorded, recorded_generations
from kafka_rebalance.history.recorded import RecordedRebalance
from kafka_rebalance.history.records import read_records
from kafka_rebalance.history.replay import ReplayedRebalance, replay

from .exit_codes import of_errors


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Reads records of __consumer_offsets and shows each rebalance that they hold, with its "
        "cause. FILE has JSON lines (partition, offset, timestamp in ms, key and value in base64; "
        "also as .gz) or Parquet with these columns."
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="records; - for standard input")
    parser.add_argument(
        "--broker-log",
        metavar="LOG",
        action="append",
        default=[],
        help="a broker's log (also as .gz): causes are read there; give it once for each broker",
    )
    parser.add_argument("--group", metavar="G", help="only this group, rebalance by rebalance")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--patterns", action="store_true", help="only the patterns: storms, restarts and others"
    )
    what.add_argument(
        "--replay", action="store_true", help="compute each rebalance again, and compare"
    )
    what.add_argument(
        "--what-if",
        action="store_true",
        help="play the same events under each assignor, without and with static members",
    )
    parser.add_argument(
        "--topics",
        metavar="PATH",
        help="for --replay and --what-if: the topics' name, partitions and racks, as JSON lines",
    )
    parser.add_argument("--all", action="store_true", help="show every group and every rebalance")
    parser.add_argument("--json", action="store_true", help="print one rebalance per line, as JSON")
    parser.add_argument("--output", type=_page, metavar="PATH", help="draw the history: page.html")
    parser.set_defaults(run=run, parser=parser)


def _page(text: str) -> Path:
    if not text.endswith(".html"):
        raise argparse.ArgumentTypeError(f"{text} does not end with .html")
    return Path(text)


def _check(args: argparse.Namespace) -> None:
    """Reports wrong usage before anything is read."""
    computes = args.replay or args.what_if
    if args.output is not None and computes:
        args.parser.error("--output: not with --replay or --what-if, which draw no page")
    if args.topics is not None and not computes:
        args.parser.error("--topics: only --replay and --what-if read it; add one of them")


def run(args: argparse.Namespace) -> int:
    _check(args)
    recorded = recorded_generations(read_records(*args.files))
    if not recorded:
        where = args.files[0] if len(args.files) == 1 else f"{len(args.files)} files"
        what = "give all records of __consumer_offsets; groups of KIP-848 have none"
        raise GroupError(where, f"no record of a classic group was found; {what}")
    if args.broker_log:
        log = read_coordinator_log(line for path in args.broker_log for line in _log_lines(path))
        rows = with_log([row for row, _ in recorded], log)
        recorded = list(zip(rows, (one for _, one in recorded), strict=True))
        _report_unknown(log)
    if args.group is not None:
        recorded = [one for one in recorded if one[0].group_id == args.group]
        if not recorded:
            raise GroupError("--group", f"no record of a classic group {args.group}")
    errors = sum(row.error is not None for row, _ in recorded)
    if args.replay or args.what_if:
        return of_errors(errors + _compute(args, recorded))
    rows = [row for row, _ in recorded]
    if args.output is not None:
        _draw(args, recorded, rows)
    if args.json:
        _print_json(find_patterns(rows) if args.patterns else rows)
    else:
        _show(args, rows)
    return of_errors(errors)


def _compute(args: argparse.Namespace, recorded: Recorded) -> int:
    """Prints the result of --replay or --what-if; returns how many groups could not be played."""
    from kafka_rebalance.report.history.table import print_counterfactuals, print_replay

    topics = _topics(args.topics)
    if args.replay:
        replayed = replay([one for _, one in recorded if one is not None], topics)
        _print_json(replayed) if args.json else print_replay(replayed)
        return 0
    failed = set()
    played: list[Counterfactual] = []
    for name, group in _by_group(recorded).items():
        try:
            played += counterfactuals(group, topics)
        except GroupError as error:  # a record may hold any numbers
            failed.add(name)
            print(f"kafka-rebalance: {name}: {error}", file=sys.stderr)
    if args.json:
        _print_json(played)
    else:
        # The line "Recorded" is compared with the played ones, so it covers the same groups.
        rows = [row for row, _ in recorded if row.group_id not in failed]
        print_counterfactuals(rows, played)
    return len(failed)


def _draw(args: argparse.Namespace, recorded: Recorded, rows: list[RecordedRebalance]) -> None:
    from kafka_rebalance.report.history.page import history_page

    title = f"Rebalances of {args.group}" if args.group is not None else "Rebalances"
    page = history_page(_by_group(recorded), find_patterns(rows), title)
    args.output.write_text(page, encoding="utf-8")
    print(f"kafka-rebalance: drawn to {args.output}", file=sys.stderr)


def _by_group(recorded: Recorded) -> dict[str, Recorded]:
    groups: dict[str, list[tuple[RecordedRebalance, RecordedGeneration | None]]] = defaultdict(list)
    for one in recorded:
        groups[one[0].group_id].append(one)
    return dict(groups)


_Answer = RecordedRebalance | Pattern | ReplayedRebalance | Counterfactual


def _print_json(answers: Iterable[_Answer]) -> None:
    for one in answers:
        print(contract.dumps(one.to_dict()))


def _topics(path: str | None) -> list[Topic]:
    """Reads JSON lines with name, partitions, and optionally racks."""
    if path is None:
        return []
    found = []
    with Path(path).open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                found.append(contract.topic(contract.parse(line), "line"))
            except GroupError as error:
                raise GroupError(f"{path}:{number}", str(error)) from None
    return found


def _log_lines(path: str) -> Iterator[str]:
    opened = gzip.open if path.endswith(".gz") else Path.open
    with opened(Path(path), "rt", encoding="utf-8", errors="replace") as lines:
        try:
            yield from lines
        except (EOFError, zlib.error) as error:
            raise GroupError(path, str(error)) from None


def _report_unknown(log: CoordinatorLog) -> None:
    if log.unknown:
        told = f"{log.unknown} lines of the coordinator are not known, for example: "
        print(f"kafka-rebalance: {told}{log.examples[0]}", file=sys.stderr)
    if not log.events:
        print("kafka-rebalance: the broker's log has no line about groups", file=sys.stderr)


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
    print("--group G shows one group in detail.")
