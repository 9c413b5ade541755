# SPDX-License-Identifier: Apache-2.0
"""`kafka-rebalance serve`: a broker for tests of consumers; its topics have no records."""

import argparse
from pathlib import Path

from kafka_rebalance.coordinator import CoordinatorConfig

from .options import MOST_DIGITS, whole

_MOST_PORT = 65_535


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Runs a group coordinator behind a TCP port, so that unmodified consumers can subscribe, "
        "rebalance, and commit. For tests and studies: topics have no records, and without "
        "--log-dir groups and offsets are lost when it ends. Needs the extra `serve`."
    )
    parser.add_argument(
        "--topic", action="append", default=[], metavar="NAME=N", help="a topic with N partitions"
    )
    parser.add_argument(
        "--topics-of", type=Path, metavar="FILE", help="the topics of the groups in a snapshot"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address (default: %(default)s)")
    parser.add_argument(
        "--port", type=_port, default=9092, help="0: any free one (default: %(default)s)"
    )
    parser.add_argument(
        "--initial-delay-ms",
        type=whole(0),
        default=CoordinatorConfig().group_initial_rebalance_delay_ms,
        metavar="MS",
        help="group.initial.rebalance.delay.ms (default: %(default)s)",
    )
    parser.add_argument(
        "--log-dir", type=Path, metavar="DIR", help="keep groups and offsets in DIR, and read them"
    )
    parser.set_defaults(run=run)


def _port(text: str) -> int:
    value = int(text) if text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS else -1
    if not 0 <= value <= _MOST_PORT:
        raise argparse.ArgumentTypeError(f"{text} is not a port from 0 to {_MOST_PORT}")
    return value


def run(args: argparse.Namespace) -> int:
    from .serving import serve  # `--help` works without the extra

    return serve(args)
