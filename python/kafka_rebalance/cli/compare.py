"""`kafka-rebalance compare`: every assignor side by side."""

import argparse
from typing import Any

from kafka_rebalance import contract
from kafka_rebalance.plans import Comparison, Endless, compare, endless

from .groups import Tally, add_arguments, answers


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "compare",
        help="every assignor side by side, and which one to take",
        description="Plans the same changes (or the next rebalance as things are) by every "
        "assignor. Recommended is the most even one; of those the one that leaves the fewest "
        "partitions without a reader, then moves least, then reads most in its own rack; if all "
        "are equal the one that the group runs.",
    )
    add_arguments(parser)
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    tally = Tally()
    compared: list[Comparison] = []
    for one in answers(args, tally, lambda g: compare(g, args.changes, engine=args.engine)):
        if args.json:
            found = [each.to_dict() for each in _endless(one, args)]
            told = {"never_ends": found} if found else {}
            print(contract.dumps(one.to_dict() | told), flush=True)
        else:
            compared.append(one)
    _show(compared, args)
    return tally.exit_code()


def _endless(compared: Comparison, args: argparse.Namespace) -> list[Endless]:
    """Whether what the group runs, and what is recommended, can hang its leader."""
    names = dict.fromkeys([compared.group.assignor, compared.recommended])
    each = (endless(compared.group, n, args.changes, engine=args.engine) for n in names if n)
    return [found for found in each if found is not None]


def _show(compared: list[Comparison], args: argparse.Namespace) -> None:
    if not compared:
        return
    from kafka_rebalance.report.compare import print_comparison, print_comparisons
    from kafka_rebalance.report.never_ends import print_endless

    if len(compared) == 1:
        print_comparison(compared[0])
        for found in _endless(compared[0], args):
            print_endless(found)
    else:
        print_comparisons(compared)
        print("In the last two columns: by the group's own assignor -> by the recommended one.")
        print("--group G shows one of them in detail.")
