# SPDX-License-Identifier: Apache-2.0
"""`kafka-rebalance compare`: every assignor side by side."""

import argparse
from collections.abc import Sequence
from typing import Any

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group import contract
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans import Comparison, Endless, compare, endless
from kafka_rebalance.plans.changes import Change
from kafka_rebalance.plans.rebalance_plan import parse_changes
from kafka_rebalance.simulator.timing import Timed, assumed, timed

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

    def make(group: GroupSpec, changes: Sequence[Change]) -> Comparison:
        return compare(group, changes, engine=args.engine)

    for one, not_affected, alone in answers(args, tally, make):
        if args.json:
            line = one.to_dict()
            if alone and (found := _endless(one, args)):
                line["never_ends"] = [each.to_dict() for each in found]
            if alone:
                times, why = _times(one)
                line["times"] = {name: each.to_dict() for name, each in times.items()}
                line["times_assumed" if times else "times_missing"] = why
            if not_affected:
                line["not_affected"] = not_affected
            print(contract.dumps(line), flush=True)
        else:
            compared.append(one)
    _show(compared, args)
    if not args.json:
        print("".join(f"{line}\n" for line in tally.lines()), end="")
    return tally.exit_code()


def _endless(compared: Comparison, args: argparse.Namespace) -> list[Endless]:
    """Whether what the group runs, and what is recommended, can hang its leader."""
    names = dict.fromkeys([compared.group.assignor, compared.recommended])
    each = (endless(compared.group, n, compared.changes, engine=args.engine) for n in names if n)
    return [found for found in each if found is not None]


def _show(compared: list[Comparison], args: argparse.Namespace) -> None:
    if not compared:
        return
    from kafka_rebalance.report.plans.compare import print_comparison, print_comparisons
    from kafka_rebalance.report.plans.leader import leader_note, leaders_note
    from kafka_rebalance.report.plans.never_ends import print_endless
    from kafka_rebalance.report.plans.plan import print_wrapped

    if len(compared) == 1:
        print_comparison(compared[0], *_times(compared[0]))
        for found in _endless(compared[0], args):
            print_endless(found)
        if note := leader_note(compared[0].group):
            print_wrapped(note)
    else:
        print_comparisons(compared)
        if note := leaders_note(one.group.leader_library for one in compared):
            print_wrapped(note)
        print("In the last two columns: by the group's own assignor -> by the recommended one.")
        print("--group G shows one of them in detail.")


def _times(one: Comparison) -> tuple[dict[str, Timed], str]:
    """Each assignor in seconds, and what they go by; none where it cannot be played, and why."""
    changes = parse_changes(one.changes)
    times: dict[str, Timed] = {}
    names = [each.assignor for each in one.candidates if each.figures is not None]
    try:
        for name in names:
            times[name] = timed(one.group, changes, name)
        return times, assumed(one.group, changes, names[0]) if names else ""
    except GroupError as error:
        return {}, str(error)
