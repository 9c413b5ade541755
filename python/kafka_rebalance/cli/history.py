# SPDX-License-Identifier: Apache-2.0
"""`kafka-rebalance history`: what rebalanced, why, and what would have helped."""

import argparse
import gzip
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group import contract
from kafka_rebalance.history.coordinator_log import CoordinatorLog, read_coordinator_log
from kafka_rebalance.history.log_causes import with_log
from kafka_rebalance.history.patterns import find_patterns
from kafka_rebalance.history.rebalance_history import rebalance_history
from kafka_rebalance.history.recorded import RecordedRebalance
from kafka_rebalance.history.records import read_records

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
    parser.add_argument("--all", action="store_true", help="show every group and every rebalance")
    parser.add_argument("--json", action="store_true", help="print one rebalance per line, as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    rows = rebalance_history(read_records(*args.files))
    if args.broker_log:
        log = read_coordinator_log(line for path in args.broker_log for line in _log_lines(path))
        rows = with_log(rows, log)
        _report_unknown(log)
    if args.group is not None:
        rows = [row for row in rows if row.group_id == args.group]
        if not rows:
            raise GroupError("--group", f"no record of a classic group {args.group}")
    if args.json:
        for row in rows:
            print(contract.dumps(row.to_dict()))
    else:
        _show(args, rows)
    return of_errors(sum(row.error is not None for row in rows))


def _log_lines(path: str) -> Iterator[str]:
    opened = gzip.open if path.endswith(".gz") else Path.open
    with opened(Path(path), "rt", encoding="utf-8", errors="replace") as lines:
        yield from lines


def _report_unknown(log: CoordinatorLog) -> None:
    if log.unknown:
        told = f"{log.unknown} lines of the coordinator are not known, for example: "
        print(f"kafka-rebalance: {told}{log.examples[0]}", file=sys.stderr)
    if not log.events:
        print("kafka-rebalance: the broker's log has no line about groups", file=sys.stderr)


def _show(args: argparse.Namespace, rows: list[RecordedRebalance]) -> None:
    from kafka_rebalance.report.history.table import print_group, print_groups

    if args.group is not None:
        print_group(args.group, rows, find_patterns(rows), everything=args.all)
        return
    groups = defaultdict(list)
    for row in rows:
        if row.is_rebalance:
            groups[row.group_id].append(row)
    print_groups(groups, find_patterns(rows), everything=args.all)
    print("--group G shows one group in detail.")
