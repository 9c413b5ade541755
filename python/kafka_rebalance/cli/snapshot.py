# SPDX-License-Identifier: Apache-2.0
"""`kafka-rebalance snapshot`: writes the groups of a live cluster as contract lines."""

import argparse
import json
import sys
from typing import Any

from kafka_rebalance.assignors.registry import FOREIGN
from kafka_rebalance.group import contract
from kafka_rebalance.live import snapshot
from kafka_rebalance.report.text.names import counted

from .exit_codes import of_errors


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Reads the classic consumer groups of a live cluster and writes one contract line for "
        "each: the input of the other commands. Changes nothing on the cluster and joins no group."
    )
    parser.add_argument(
        "--bootstrap-server",
        required=True,
        metavar="H:P",
        help="one broker, or several separated by commas",
    )
    parser.add_argument(
        "--group",
        action="append",
        metavar="G",
        help="only this group (repeatable); default: every group that has members",
    )
    parser.add_argument(
        "--config",
        action="append",
        type=_setting,
        default=[],
        metavar="KEY=VALUE",
        help="a setting of kafka-python's admin client, for example security_protocol=SASL_SSL "
        "(repeatable)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    left_out = groups = bad = 0

    def on_left_out(group_id: str, why: str) -> None:
        nonlocal left_out
        left_out += 1
        print(f"kafka-rebalance: {group_id} left out: {why}", file=sys.stderr)

    lines = snapshot(
        args.bootstrap_server,
        args.group,
        configs=dict(args.config),
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


def _setting(text: str) -> tuple[str, Any]:
    key, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text} is not KEY=VALUE")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value
