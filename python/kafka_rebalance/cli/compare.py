# SPDX-License-Identifier: Apache-2.0
"""`kafka-rebalance compare`: plays the given changes under several assignors, side by side."""

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

from kafka_rebalance.assignors.registry import (
    Engine,
    is_known,
    library_of,
    unknown,
)
from kafka_rebalance.errors import AssignorThrows, GroupError
from kafka_rebalance.group import contract
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.notes.extra_rebalances import extra_rebalances
from kafka_rebalance.notes.librdkafka_traps import Trap, librdkafka_traps
from kafka_rebalance.notes.never_ends import Endless, endless, endless_plan
from kafka_rebalance.plans import lost_rack, plan
from kafka_rebalance.plans.changes import Change, SwitchAssignor, SwitchProtocol
from kafka_rebalance.plans.changes.text import CHANGES
from kafka_rebalance.plans.leaders import LedPlan, as_led, plans_by_leader
from kafka_rebalance.plans.listed import may_list_eager
from kafka_rebalance.plans.rebalance_plan import parse_changes
from kafka_rebalance.simulator.from_group import is_playable
from kafka_rebalance.simulator.timing import Timed, assumed, timed, why_untimed
from kafka_rebalance.switching.comparison import Comparison, alone_label, compare

from . import plan as plan_command
from .groups import add_arguments, answers, given
from .tally import Tally

# Each assignor is asked as if the group ran it, so a switch is no change here.
_COMPARED = [
    verb.name
    for change in CHANGES
    if change not in (SwitchAssignor, SwitchProtocol)
    for verb in change.VERBS
]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Plans the given changes (without changes: the next rebalance) with every assignor, and "
        "recommends the one with the most even result. Ties are broken by the fewest partitions "
        "without a reader, then the fewest moves, then the most reading in a member's own rack, "
        "then by the assignor that the group runs already. A group that the broker assigns is "
        "compared with the leaders' assignors, as if it were classic."
    )
    add_arguments(parser, _COMPARED)
    parser.add_argument(
        "--assignors",
        metavar="NAME,…",
        help="compare only these, for example range,librdkafka/range (default: Kafka's; those "
        "of the library too that led the group last; the brokers' too for their groups)",
    )
    plan_command.add_leader(parser)
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    names = None if args.assignors is None else args.assignors.split(",")
    for name in names or ():
        if not is_known(name):
            args.parser.error(f"argument --assignors: {unknown(name)}")
    tally = Tally()
    compared: list[Comparison] = []
    led: Sequence[LedPlan] = ()

    def make(group: GroupSpec, changes: Sequence[Change]) -> _Answer:
        found = _led(group, changes, args)
        one = compare(as_led(group, found), changes, assignors=names, engine=args.engine)
        return _Answer(one, found)

    for (one, plans), not_affected, alone in answers(args, tally, make):
        if args.json:
            print(contract.dumps(_json(one, args, not_affected, alone=alone)), flush=True)
        else:
            # Only one group is shown in detail: the plans of many would need too much memory.
            led = () if compared else plans
            compared.append(one)
    if len(compared) == 1:
        _show_one(compared[0], led, args)
    elif compared:
        _show_many(compared)
    return tally.finish(args)


class _Answer(NamedTuple):
    """A comparison, and the plans of all possible leaders."""

    compared: Comparison
    led: Sequence[LedPlan]


def _json(
    one: Comparison, args: argparse.Namespace, not_affected: list[str], *, alone: bool
) -> dict[str, Any]:
    line = one.to_dict()
    if alone and (found := _endless(one, args)):
        line["never_ends"] = [each.to_dict() for each in found]
    if alone and (traps := _traps(one)):
        line["librdkafka_traps"] = [trap.to_dict() for trap in traps]
    if alone:
        times, why = _times(one)
        line["times"] = {name: each.to_dict() for name, each in times.items()}
        line["times_assumed" if times else "times_missing"] = why
    if may_list_eager(one.group, one.group.assignor):
        line["assumes_cooperative_lists"] = True
    if (unknown := lost_rack.at_first(one.group, one.changes)) is not None:
        line["rack_unknown"] = unknown
    if not_affected:
        line["not_affected"] = not_affected
    return line


def _led(
    group: GroupSpec, changes: Sequence[Change], args: argparse.Namespace
) -> Sequence[LedPlan]:
    """Returns the plans of the leaders' assignors, as `plan` shows them; none if there are none."""
    if group.assignor is None or any(
        isinstance(one, SwitchAssignor | SwitchProtocol) for one in changes
    ):
        return ()  # `compare` refuses the switch
    try:
        return plans_by_leader(group, changes, engine=args.engine)
    except AssignorThrows:
        return ()  # `compare` shows the assignors that throw, and recommends another


def _endless(compared: Comparison, args: argparse.Namespace) -> list[Endless]:
    """Returns the calls that never end: of the group's own assignor and of the recommended one."""
    names = dict.fromkeys([compared.group.assignor, compared.recommended])
    each = (_endless_with(name, compared, args.engine) for name in names if name)
    return [found for found in each if found is not None]


def _endless_with(name: str, compared: Comparison, engine: Engine) -> Endless | None:
    where = compared.group, name, compared.changes
    try:
        return endless_plan(plan(*where, engine=engine))
    except GroupError:  # the changes hang the leader, or its assignor throws
        return endless(*where, engine=engine)


def _traps(compared: Comparison) -> tuple[Trap, ...]:
    return librdkafka_traps(compared.group, None, compared.changes, engine=compared.engine)


def _show_one(compared: Comparison, led: Sequence[LedPlan], args: argparse.Namespace) -> None:
    from kafka_rebalance.report.plans.compare import print_comparison
    from kafka_rebalance.report.plans.never_ends import print_endless
    from kafka_rebalance.report.plans.plan import print_wrapped
    from kafka_rebalance.report.plans.traps import print_traps

    select = given(args, compared.group.group_id)
    print_comparison(compared, *_times(compared), select)
    never_ends, traps, notes = _endless(compared, args), _traps(compared), _notes(compared, led)
    if never_ends or traps or notes:
        print()
    for found in never_ends:
        print_endless(found)
    print_traps(traps)
    for text in notes:
        print_wrapped(text)


def _notes(compared: Comparison, led: Sequence[LedPlan]) -> list[str]:
    from kafka_rebalance.report.plans.extra_rebalances import extra_rebalances_note
    from kafka_rebalance.report.plans.leader import leader_note, other_leaders, own_rows_note
    from kafka_rebalance.report.plans.lost_rack import groups_note
    from kafka_rebalance.report.plans.recipes import own_lists_note

    group = compared.group
    notes = [
        groups_note([lost_rack.at_first(group, compared.changes)], before=True),
        leader_note(group, group.assignor, [one.assignor for one in compared.candidates]),
        own_rows_note(group.assignor),
        *other_leaders(led),
        own_lists_note(group),
        extra_rebalances_note(extra_rebalances(group, parse_changes(compared.changes))),
    ]
    return [note for note in notes if note]


def _show_many(compared: Sequence[Comparison]) -> None:
    from kafka_rebalance.report.plans.compare import print_comparisons
    from kafka_rebalance.report.plans.leader import either_note, leaders_note
    from kafka_rebalance.report.plans.lost_rack import groups_note
    from kafka_rebalance.report.plans.plan import print_wrapped
    from kafka_rebalance.report.plans.recipes import lists_note

    print_comparisons(compared)
    kafkas = (one.group for one in compared if not library_of(one.group.assignor))
    if note := leaders_note(group.leader_library for group in kafkas):
        print_wrapped(note)
    each = (lost_rack.at_first(one.group, one.changes) for one in compared)
    if note := groups_note(each, before=True):
        print_wrapped(note)
    groups = (one.group for one in compared)
    unknown = [one.group_id for one in groups if may_list_eager(one, one.assignor)]
    if note := lists_note(unknown):
        print_wrapped(note)
    named = (
        (one.group, name) for one in compared for name in (one.group.assignor, one.recommended)
    )
    if note := either_note(named):
        print_wrapped(note)
    print("The last two columns: with the group's own assignor -> with the recommended one.")
    print("--group G shows one group in detail.")


def _times(one: Comparison) -> tuple[dict[str, Timed], str]:
    """Returns each assignor's times and the assumptions, or no times and the reason."""
    changes = parse_changes(one.changes)
    times: dict[str, Timed] = {}
    played = (each.assignor for each in one.candidates if each.figures is not None)
    names = [name for name in played if is_playable(name)]
    try:
        for name in names:
            times[name] = timed(one.group, changes, name)
        if one.alone is not None:
            cooperative = one.group.edited(rebalance_protocol="cooperative")
            times[alone_label(one.alone.assignor)] = timed(cooperative, changes, one.alone.assignor)
        return times, assumed(one.group, changes, names) if names else ""
    except GroupError as error:
        return {}, why_untimed(error)
