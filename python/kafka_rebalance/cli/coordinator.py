# SPDX-License-Identifier: Apache-2.0
"""Plays a trace (a text file of commands) on a group coordinator in virtual time. Prints the trace,
with the coordinator's answers below each block of commands.
"""

import argparse
import re
import sys
from itertools import pairwise
from pathlib import Path

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.line_files import MAX_LINE_BYTES, read_lines, read_text
from kafka_rebalance.group.spec import counted, first_of
from kafka_rebalance.playback import coordinator_runs as trace
from kafka_rebalance.playback.driver import Driver
from kafka_rebalance.playback.text import Command, play

from . import DONE, of_errors
from .lines import open_input
from .options import add_table

_COMMANDS = (trace.__doc__ or "").partition("\n")[2]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _COMMANDS
    options = """
    trace TRACE: a file; - for standard input
    --json: read JSON lines from standard input, write JSON lines
    """
    add_table(parser, options, trace={"nargs": "?", "type": Path})


def run(args: argparse.Namespace) -> int:
    if args.json is (args.trace is not None):
        args.parser.error("give either TRACE or --json")
    if args.json:
        driver = Driver()
        for line in read_lines(sys.stdin.buffer, MAX_LINE_BYTES):
            print(driver.line(line), flush=True)
        return DONE
    with open_input(str(args.trace)) as source:
        text = read_text(source, "trace", str(args.trace))
    tracer, errors = trace.Tracer(), 0

    def step(command: Command) -> list[str]:
        nonlocal errors
        try:
            return tracer.step(command)
        except GroupError:
            errors += 1
            raise  # `play` shows the error as the command's answer, and continues

    lines = play(_RESULT.sub("", text), step).split("\n")[:-1]
    print(f"# Result: {_ends(lines, tracer)}{f'; {errors} refused' if errors else ''}.\n")
    for shown in lines:
        print(shown)
    return of_errors(errors)


_RESULT = re.compile(r"\A# Result: .*\n\n?")
_CHANGE = re.compile(r"(\S+) (\S+) \w+ -> (\w+) generation=(-?[0-9]+)")


def _ends(lines: list[str], tracer: trace.Tracer) -> str:
    """Returns sentences: how many rebalances began, and the last state of each group."""
    ends, count = dict[str, str](), 0
    for before, line in pairwise(["", *lines]):
        if one := _CHANGE.fullmatch(line):
            why = f", when the {before.partition(' ')[2]}" if before.endswith(" is due") else ""
            why = re.sub(r"the heartbeat of (\S+) is due", r"\1's session ran out", why)
            ends[one[2]] = f"{one[2]} is {one[3]} (generation {one[4]}) since {one[1]}{why}"
            group = tracer.broker.coordinator.classic_group(one[2])
            members = group.members.values() if group and one[3] == "PreparingRebalance" else ()
            if away := [tracer.names.name_of(m.member_id) for m in members if not m.parked_join]:
                ends[one[2]] += f"; it waits for {first_of(away, 3)} to join again"
            count += one[3] == "PreparingRebalance"
    return "; ".join([counted(count, "rebalance"), *ends.values()])
