# SPDX-License-Identifier: Apache-2.0
"""The command `kafka-rebalance`: data goes to standard output, all other text to standard error.

A command's module is imported only for that command, so `--help` and `--version` import none.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper

import kafka_rebalance
from kafka_rebalance.errors import GroupError, KafkaRebalanceError

from .exit_codes import FAILED, INTERRUPTED, USAGE

COMMANDS = {
    "describe": "show who owns what in a group, and what is wrong with it",
    "assign": "compute which member owns which partitions",
    "plan": "play changes: moves, pauses and balance, round by round",
    "compare": "play changes with every assignor, and recommend one",
    "simulate": "play a rebalance in virtual time: who stops, and for how long",
    "snapshot": "read the groups of a live cluster",
    "connect": "play the rebalances of a Kafka Connect cluster",
    "coordinator": "step through a group coordinator in virtual time",
    "serve": "run a coordinator behind a port, for tests of consumers",
    "fleet": "assign many groups on Spark",
    "demo": "assign 20,000 sample groups on Spark",
}
"""Each command with its line of help; the command's options are in the module of its name."""

_USAGE_ERRORS = (GroupError, FileNotFoundError, IsADirectoryError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    args = _parser(given).parse_args(given)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Data is UTF-8 in every locale; text that UTF-8 cannot encode is escaped.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        return int(args.run(args))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the pipe has ended; without this, the flush at exit would fail too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (KafkaRebalanceError, OSError) as error:
        print(f"kafka-rebalance: {error}", file=sys.stderr)
        return USAGE if isinstance(error, _USAGE_ERRORS) else FAILED


class _Version(argparse.Action):
    """Prints the version, which loads the compiled core; so no other option loads it."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"{parser.prog} {kafka_rebalance.__version__}")
        parser.exit()


def _parser(given: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kafka-rebalance",
        description="Computes Kafka rebalances exactly as Apache Kafka does.",
        epilog="Exit codes: 0 done, 2 wrong usage, 3 some groups had errors, 130 interrupted, "
        "1 any other failure.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version, and exit")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    word = next((one for one in given if not one.startswith("-")), None)
    for name, line in COMMANDS.items():
        command = commands.add_parser(name, help=line)
        if name == word:
            import_module(f".{name}", __name__).add_options(command)
    return parser
