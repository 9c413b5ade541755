# SPDX-License-Identifier: Apache-2.0
"""`kafka-rebalance probe`: what a real client answers as the leader of made-up groups."""

import argparse
import shlex

from kafka_rebalance.serve.probe_workers import CONSUMERS, PATIENCE_S

from .options import whole


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Reads groups as JSON lines, lets a real client lead each of them, and writes its answer "
        "as a result line, in order. Nothing is assigned: the members are made up. Needs the "
        "extra `serve`."
    )
    parser.add_argument("file", metavar="FILE", help="contract lines; - for standard input")
    client = parser.add_mutually_exclusive_group(required=True)
    names = sorted(CONSUMERS)
    client.add_argument(
        "--client", choices=names, metavar="LIBRARY", help=f"a Python library: {', '.join(names)}"
    )
    client.add_argument(
        "--command",
        type=_command,
        metavar="LINE",
        help="a program that subscribes to a topic; {address} and {assignor} are put in",
    )
    parser.add_argument("--assignor", metavar="NAME", help="for all groups, not their own")
    parser.add_argument(
        "--patience",
        type=whole(1),
        default=int(PATIENCE_S),
        metavar="S",
        help="a group without an answer for S seconds is an error (default: %(default)s)",
    )
    parser.set_defaults(run=run)


def _command(text: str) -> str:
    try:
        words = shlex.split(text)
    except ValueError as error:  # a quotation that does not end
        problem = f"{text} cannot be split into words as a shell does: {error}"
        raise argparse.ArgumentTypeError(problem) from None
    if not words or not words[0]:
        raise argparse.ArgumentTypeError("empty; give a program and its arguments")
    return text


def run(args: argparse.Namespace) -> int:
    from .probing import probe  # `--help` works without the extra

    return probe(args)
