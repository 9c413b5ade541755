# SPDX-License-Identifier: Apache-2.0
"""`kafka-rebalance snapshot`: writes the groups of a live cluster as contract lines."""

import argparse
import sys

from kafka_rebalance.assignors.registry import FOREIGN
from kafka_rebalance.group import contract
from kafka_rebalance.live import snapshot
from kafka_rebalance.report.text.names import counted

from .exit_codes import of_errors
from .options import add_cluster, cluster_configs


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Reads the classic consumer groups of a live cluster and writes one contract line for "
        "each: the input of the other commands. Changes nothing on the cluster and joins no group."
    )
    add_cluster(parser)
    parser.add_argument(
        "--group",
        action="append",
        metavar="G",
        help="only this group (repeatable); default: every group that has members",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    left_out = groups = bad = 0

    def on_left_out(group_id: str, why: str) -> None:
        nonlocal left_out
        left_out += group_id != "*"
        print(f"kafka-rebalance: {group_id} left out: {why}", file=sys.stderr)

    lines = snapshot(
        args.bootstrap_server,
        args.group,
        configs=cluster_configs(args),
        on_left_out=on_left_out,
    )
    for line in lines:
        print(contract.dumps(line), flush=True)
        groups += 1
        bad += "error" in line
        if line.get("assignor") in FOREIGN:
            whose = FOREIGN[line["assignor"]]
            print(
                f"kafka-rebalance: {line['group_id']}: {line['assignor']} is {whose}; plan and "
                "compare refuse the group",
                file=sys.stderr,
            )
    print(
        f"kafka-rebalance: {counted(groups, 'group')}, {bad} with errors, {left_out} left out",
        file=sys.stderr,
    )
    return of_errors(bad)
