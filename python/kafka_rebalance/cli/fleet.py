# SPDX-License-Identifier: Apache-2.0
"""`kafka-rebalance fleet`: assigns every group of a file or directory on Spark."""

import argparse
import json
import sys
from pathlib import Path

from kafka_rebalance.assignors.registry import BUILT_IN, unknown
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import MAX_PARTITIONS

from .exit_codes import of_errors
from .options import whole


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Assigns every group of INPUT (JSON lines or Parquet, a file or a directory) and writes "
        "OUTPUT as Parquet: group_id, assignor, assignment, anomalies, error. For a bad group "
        "only the column error is set; the job continues with the others."
    )
    parser.add_argument(
        "input", metavar="INPUT", type=Path, help="JSON lines or Parquet, a file or a directory"
    )
    parser.add_argument("output", metavar="OUTPUT", type=Path, help="the directory to create")
    parser.add_argument(
        "--assignor",
        metavar="NAME",
        help=f"use this one for all groups, not their own: {', '.join(BUILT_IN)}",
    )
    parser.add_argument(
        "--max-partitions",
        type=whole(0),
        default=MAX_PARTITIONS,
        metavar="N",
        help="refuse groups with more than N partitions (default: %(default)s)",
    )
    parser.add_argument(
        "--partitions",
        type=whole(1),
        metavar="N",
        help="spread the groups over N Spark tasks",
    )
    parser.add_argument(
        "--master", default="local[*]", help="Spark's master (default: %(default)s)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an OUTPUT that exists")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.assignor is not None and args.assignor not in BUILT_IN:
        raise GroupError("assignor", unknown(args.assignor))
    if not args.input.exists():
        raise GroupError("INPUT", f"there is no {args.input}")
    if _overlap(args.input.resolve(), args.output.resolve()):
        raise GroupError("OUTPUT", f"{args.output} overlaps INPUT, which would be overwritten")
    if args.output.exists() and not args.overwrite:
        raise GroupError("OUTPUT", f"{args.output} exists; --overwrite replaces it")
    from kafka_rebalance.spark import jobs
    from kafka_rebalance.spark.session import session, spark_errors

    with spark_errors():
        spark = session("fleet", master=args.master, progress=sys.stderr.isatty())
    try:
        with spark_errors():
            done = jobs.run(
                spark,
                args.input,
                args.output,
                assignor=args.assignor,
                max_partitions=args.max_partitions,
                partitions=args.partitions,
                overwrite=args.overwrite,
            )
    finally:
        spark.stop()
    rate = done.groups / done.seconds
    if args.json:
        summary = {
            "groups": done.groups,
            "errors": done.errors,
            "never_end": done.never_end,
            "with_anomalies": done.with_anomalies,
            "seconds": round(done.seconds, 3),
            "output": str(args.output),
        }
        print(json.dumps(summary))
    else:
        print(f"{done.groups:,} groups in {done.seconds:.1f} s ({rate:,.0f} a second)")
        print(f"{done.errors:,} with errors, {done.with_anomalies:,} with anomalies")
        if done.never_end:
            print(
                f"{done.never_end:,} of the errors: the assignor never ends, so the leader hangs "
                "(kafka-rebalance plan INPUT --group G shows a way out)"
            )
        print(f"written to {args.output}")
    return of_errors(done.errors)


def _overlap(a: Path, b: Path) -> bool:
    return a == b or a in b.parents or b in a.parents
