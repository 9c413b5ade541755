# SPDX-License-Identifier: Apache-2.0
"""`kafka-rebalance coordinator`: step through a group coordinator, by hand or by a program."""

import argparse
import sys
from pathlib import Path

from kafka_rebalance.errors import GroupError
from kafka_rebalance.tracing import coordinator_runs as trace
from kafka_rebalance.tracing.driver import Driver
from kafka_rebalance.tracing.text import play

_COMMANDS = (trace.__doc__ or "").partition("\n")[2]


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "coordinator",
        help="step through a group coordinator in virtual time",
        description="Plays a trace, a text file of commands, on a group coordinator in virtual "
        "time, and prints it with what the coordinator answers.",
        epilog=_COMMANDS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("trace", nargs="?", type=Path, metavar="TRACE", help="a file, or - for stdin")
    what.add_argument("--json", action="store_true", help="JSON lines in, JSON lines out")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Plays."""
    if args.json:
        driver = Driver()
        for line in sys.stdin:
            print(driver.line(line), flush=True)
        return 0
    try:
        text = sys.stdin.read() if str(args.trace) == "-" else args.trace.read_text("utf-8")
    except UnicodeDecodeError:
        raise GroupError("trace", f"{args.trace} is not text in UTF-8") from None
    print(play(text, trace.Tracer().step), end="")
    return 0
