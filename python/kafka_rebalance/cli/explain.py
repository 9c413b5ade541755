# SPDX-License-Identifier: Apache-2.0
"""Explains the owners of one partition: what the assignor did, in which order, and why. With
changes, in every rebalance that they cause. Of a classic Kafka Streams application, explains a
task, such as 1_2. Short for `plan --explain PARTITION`.
"""

import argparse
from os.path import exists, isfile  # `pathlib` is slow to import

from . import plan


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("explain", metavar="PARTITION", help="for example payments-3")
    plan.add_asked(parser)
    parser.set_defaults(output=None, samples=None, all=False, how_long=False, curve=False)
    parser.set_defaults(one_group="there are several groups: name that of PARTITION with --group")


def run(args: argparse.Namespace) -> int:
    if args.file is not None and not exists(args.file) and isfile(args.explain):  # noqa: PTH110, PTH113
        args.parser.error(f"PARTITION comes first: explain {args.file} {args.explain}")
    if args.file is None and args.bootstrap_server is None and isfile(args.explain):  # noqa: PTH113
        args.parser.error(
            f"a partition or a task, such as 1_2, comes first; describe {args.explain} names them"
        )
    return plan.run(args)
