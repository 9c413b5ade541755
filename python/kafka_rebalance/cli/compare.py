# SPDX-License-Identifier: Apache-2.0
"""Plans the given changes (without changes: the next rebalance) with every assignor, and recommends
the one with the most even result. Ties are broken by the fewest partitions without a reader, then
the fewest moves, then the most reading in a member's own rack, then by the assignor that the group
runs already. A group that the broker assigns is compared with the leaders' assignors, as if it were
classic.
"""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kafka_rebalance.assignors.registry import is_known, misspelt
from kafka_rebalance.errors import AssignorThrows, GroupError
from kafka_rebalance.group import contract
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.notes.all_notes import comparison_notes
from kafka_rebalance.notes.lost_rack import loses_rack
from kafka_rebalance.plans.changes.assignor import SwitchAssignor
from kafka_rebalance.plans.changes.change import Change
from kafka_rebalance.plans.changes.protocol import SwitchProtocol
from kafka_rebalance.plans.changes.text import CHANGES
from kafka_rebalance.plans.clients import class_name
from kafka_rebalance.plans.leaders import LedPlan, as_led, plans_by_leader
from kafka_rebalance.plans.rebalance_plan import parse_changes
from kafka_rebalance.report.text.sentences import print_wrapped
from kafka_rebalance.simulator.from_group import is_playable
from kafka_rebalance.simulator.timing import Timed, timed, timed_each, why_untimed
from kafka_rebalance.switching.comparison import Comparison, compare
from kafka_rebalance.switching.recommendation import alone_label

from .applications import add_planned, compared_settings, replayed, show_settings
from .groups import add_changes, add_input, answers, given
from .options import add_table
from .tally import Tally
from .weights import add_weights

if TYPE_CHECKING:
    from kafka_rebalance.applications.comparison import ComparedSettings

# Each assignor plays the changes as if the group ran it, so `compare` has no switch changes.
_COMPARED = [
    verb.name
    for change in CHANGES
    if change not in (SwitchAssignor, SwitchProtocol)
    for verb in change.VERBS
]


def add_options(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    add_changes(parser, _COMPARED)
    assignors = """
    --assignors NAME,…: compare only these, for example range,librdkafka/range (default: Kafka's;
      those of the library too that led the group last; the brokers' too for their groups)
    --leader
    """
    add_table(parser, assignors)
    add_weights(parser)
    add_planned(parser)


def run(args: argparse.Namespace) -> int:
    names = None if args.assignors is None else args.assignors.split(",")
    for name in names or ():
        if not is_known(name):
            args.parser.error(f"argument --assignors: {misspelt(name)}")
    tally = Tally()
    compared: list[Comparison] = []
    led: Sequence[LedPlan] = ()

    def make(
        group: GroupSpec, changes: Sequence[Change]
    ) -> "tuple[Comparison | list[ComparedSettings], Sequence[LedPlan]]":
        if names is None and (application := replayed(args, group, tally.leaderless)):
            return compared_settings(args, group, application, changes), ()
        found = _led(group, changes, args)
        return compare(as_led(group, found), changes, assignors=names, engine=args.engine), found

    for (one, plans), not_affected, alone in answers(args, tally, make):
        if isinstance(one, list):
            show_settings(one, as_json=args.json)
        elif args.json:
            print(contract.dumps(_json(one, plans, not_affected, alone=alone)), flush=True)
        else:
            # Only a single group is shown with its plans: many groups' plans need too much memory.
            led = () if compared else plans
            compared.append(one)
    if len(compared) == 1:
        _show_one(compared[0], led, args)
    elif compared:
        _show_many(compared)
    return tally.finish(args)


def _json(
    one: Comparison, led: Sequence[LedPlan], not_affected: list[str], *, alone: bool
) -> dict[str, Any]:
    line = one.to_dict()
    line["notes"] = [note.to_dict() for note in comparison_notes(one, led, cheap=not alone)]
    if alone:
        times, why = _times(one)
        line["times"] = {name: each.to_dict() for name, each in times.items()}
        line["times_assumed" if times else "times_missing"] = why
    if not_affected:
        line["not_affected"] = not_affected
    return line


def _led(
    group: GroupSpec, changes: Sequence[Change], args: argparse.Namespace
) -> Sequence[LedPlan]:
    """Returns a plan for each assignor that a possible leader runs; () if there is no plan."""
    if group.assignor is None or any(
        isinstance(one, SwitchAssignor | SwitchProtocol) for one in changes
    ):
        return ()  # `compare` refuses the switch
    try:
        return plans_by_leader(group, changes, engine=args.engine)
    except AssignorThrows:
        return ()  # `compare` shows the assignors that throw, and recommends another


def _show_one(compared: Comparison, led: Sequence[LedPlan], args: argparse.Namespace) -> None:
    from kafka_rebalance.report.plans.compare import print_comparison
    from kafka_rebalance.report.plans.notes import names_of, print_notes

    select = given(args, compared.group.group_id)
    print_comparison(compared, *_times(compared), select)
    if notes := comparison_notes(compared, led):
        print()
    print_notes(notes, names_of(led), select)


def _show_many(compared: Sequence[Comparison]) -> None:
    from kafka_rebalance.report.plans.compare import print_comparisons
    from kafka_rebalance.report.plans.notes import either_note, notes_on_groups

    print_comparisons(compared)
    each = [(one.group.group_id, comparison_notes(one, cheap=True)) for one in compared]
    losing = sum(loses_rack(one.changes) for one in compared)
    names = (
        class_name(one.group, name)
        for one in compared
        for name in (one.group.assignor, one.recommended)
    )
    said = notes_on_groups(each, losing=losing, before=True)
    of_groups = (said.get(kind) for kind in ("foreign", "lost rack", "lists"))
    for note in filter(None, (*of_groups, either_note(names))):
        print_wrapped(note)
    print_wrapped(
        "per member, no reader: with the group's own assignor -> with the recommended one; to "
        "switch: what the switch itself costs, once. --group G shows one group in detail."
    )


def _times(one: Comparison) -> tuple[dict[str, Timed], str]:
    """Returns each assignor's times and their assumptions; or {}, and why there are none."""
    changes = parse_changes(one.changes)
    played = (each.assignor for each in one.candidates if each.figures is not None)
    names = [name for name in played if is_playable(name)]
    try:
        times, why = timed_each(one.group, changes, names) if names else ({}, "")
        if one.alone is not None:
            cooperative = one.group.edited(rebalance_protocol="cooperative")
            times[alone_label(one.alone.assignor)] = timed(cooperative, changes, one.alone.assignor)
        return times, why
    except GroupError as error:
        return {}, why_untimed(error)
