# SPDX-License-Identifier: Apache-2.0
"""The command. Data goes to standard output, everything else to standard error.

Exit codes: 0 done, 2 wrong usage, 3 some groups had errors, 1 anything else, 130 interrupted.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from kafka_rebalance import __version__
from kafka_rebalance.errors import GroupError, KafkaRebalanceError

from . import assign, compare, connect, coordinator, demo, fleet, plan, simulate, snapshot

DONE, FAILED, USAGE, SOME_ERRORS, INTERRUPTED = 0, 1, 2, 3, 130
_USAGE_ERRORS = (GroupError, FileNotFoundError, IsADirectoryError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; gives its exit code."""
    args = _parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Data is UTF-8 whatever the locale; what cannot be said is escaped.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        return int(args.run(args))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough; nothing more can be said to it, also not while closing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (KafkaRebalanceError, OSError) as error:
        print(f"kafka-rebalance: {error}", file=sys.stderr)
        return USAGE if isinstance(error, _USAGE_ERRORS) else FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kafka-rebalance",
        description="Computes Kafka rebalances exactly as Apache Kafka does.",
        epilog="Exit codes: 0 done, 2 wrong usage, 3 some groups had errors, 130 interrupted, "
        "1 anything else.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in (assign, plan, compare, simulate, snapshot, connect, coordinator, fleet, demo):
        command.add_parser(commands)
    return parser
