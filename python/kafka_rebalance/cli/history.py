# SPDX-License-Identifier: Apache-2.0
"""`kafka-rebalance history`: what rebalanced, why, and what would have helped."""

import argparse
from collections import defaultdict

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group import contract
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
    parser.add_argument("--group", metavar="G", help="only this group, rebalance by rebalance")
    parser.add_argument("--all", action="store_true", help="show every group and every rebalance")
    parser.add_argument("--json", action="store_true", help="print one rebalance per line, as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    rows = rebalance_history(read_records(*args.files))
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


def _show(args: argparse.Namespace, rows: list[RecordedRebalance]) -> None:
    from kafka_rebalance.report.history.table import print_group, print_groups

    if args.group is not None:
        print_group(args.group, rows, everything=args.all)
        return
    groups = defaultdict(list)
    for row in rows:
        if row.is_rebalance:
            groups[row.group_id].append(row)
    print_groups(groups, everything=args.all)
    print("--group G shows one group in detail.")
