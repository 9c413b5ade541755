# SPDX-License-Identifier: Apache-2.0
"""`kafka-rebalance plan`: plays the rebalances that changes of a group cause."""

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka_rebalance.assignors.registry import (
    SERVER_SIDE,
    is_known,
    library_of,
    planned_names,
    unknown,
)
from kafka_rebalance.errors import GroupError, NotAffected
from kafka_rebalance.group import contract
from kafka_rebalance.group.model import quoted
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.notes.broker import broker_notes
from kafka_rebalance.notes.commit_waits import CommitWaits, commit_waits
from kafka_rebalance.notes.extra_rebalances import (
    ExtraRebalances,
    Further,
    extra_rebalances,
    played_further,
)
from kafka_rebalance.notes.librdkafka_traps import Trap, librdkafka_traps
from kafka_rebalance.notes.may_happen import may_happen
from kafka_rebalance.notes.met_apart import played_apart
from kafka_rebalance.notes.never_ends import endless_plan
from kafka_rebalance.plans import (
    Figures,
    RebalancePlan,
    Samples,
    lost_rack,
    plan,
)
from kafka_rebalance.plans.changes import BounceMembers, Change
from kafka_rebalance.plans.clients import class_name, unknown_libraries
from kafka_rebalance.plans.leaders import LedPlan, has_no_answer, plans_by_leader
from kafka_rebalance.plans.listed import may_list_eager
from kafka_rebalance.plans.rebalance_plan import parse_changes
from kafka_rebalance.report.text.names import counted
from kafka_rebalance.report.text.sentences import print_note
from kafka_rebalance.switching.not_rolling import by_plug_ins, not_rolling

from .groups import BadGroup, add_arguments, answers, given, report_bad
from .lines import written
from .options import whole
from .tally import Tally

if TYPE_CHECKING:
    from kafka_rebalance.simulator.timing import Timed


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Plays changes of a group, round by round, as Kafka would. Shows the kept, revoked and "
        "gained partitions of each member, the partitions without a reader, the balance "
        "afterwards, and the best possible balance. Without changes: the next rebalance."
    )
    add_arguments(parser)
    add_assignor(parser)
    parser.add_argument(
        "--samples",
        type=whole(0),
        metavar="N",
        help="play again with N draws of what is guessed, as ids for new members "
        "(default: 8 to 32 in the table of one group, else 0)",
    )
    parser.add_argument(
        "--explain",
        metavar="PARTITION",
        help="explain the owners of one partition, for example payments-3",
    )
    parser.add_argument(
        "--how-long",
        action="store_true",
        help="show seconds too: the simulator plays the changes, with the assumptions that it "
        "prints",
    )
    parser.add_argument("--all", action="store_true", help="show every member and round")
    parser.add_argument(
        "--output", type=Path, metavar="FILE.html", help="draw the plan as an HTML page"
    )
    parser.set_defaults(run=run, parser=parser)
    parser.set_defaults(one_group="--explain and --output need one group: name it with --group")


def add_assignor(parser: argparse.ArgumentParser) -> None:
    """Adds the options that replace the group's own assignor and its leader."""
    parser.add_argument(
        "--assignor",
        metavar="NAME",
        help=f"as if the group ran this one: {', '.join(planned_names())} (default: its own, "
        "as the leader's library has it)",
    )
    add_leader(parser)


def add_leader(parser: argparse.ArgumentParser) -> None:
    """Adds the option that names the leader, whose library decides which assignor answers."""
    parser.add_argument(
        "--leader",
        metavar="MEMBER",
        help="as if this member led its group: a member_id, also shortened as in the tables, or a "
        "group_instance_id (default: the leader in FILE)",
    )


class _Answer(NamedTuple):
    """The plan that is shown, and those of all possible leaders (none with --assignor)."""

    planned: RebalancePlan
    led: tuple[LedPlan, ...] = ()

    @property
    def shown(self) -> LedPlan | None:
        return next((one for one in self.led if one.plan is self.planned), None)

    @property
    def problem(self) -> str:
        """Returns why no member that may lead has an answer."""
        from kafka_rebalance.report.plans.leader import no_answer

        return no_answer(self.led)

    def leading(self) -> dict[str, Any]:
        """Returns who leads, for JSON.

        Nothing with --assignor, or if Kafka's own assignor certainly answers.
        """
        by_broker = self.planned.assignor in SERVER_SIDE
        certain = len(self.led) == 1 and (by_broker or not library_of(self.planned.assignor))
        if self.shown is None or certain:
            return {}
        others = [one.to_dict() for one in self.led if one is not self.shown]
        return {"leaders": list(self.shown.leaders), "other_leaders": others}


def run(args: argparse.Namespace) -> int:
    if args.assignor is not None and not is_known(args.assignor):
        args.parser.error(f"argument --assignor: {unknown(args.assignor)}")
    if args.output is not None and args.output.suffix != ".html":
        args.parser.error("argument --output: name a file that ends in .html")
    only_one = args.explain is not None or args.output is not None
    tally = Tally()
    first: _Answer | None = None
    table = _Table()
    libraries: Counter[str] = Counter()
    for answer, not_affected, alone in answers(args, tally, partial(_answer, args)):
        if has_no_answer(answer.led):
            tally.bad += 1
            if not (alone or args.json):
                report_bad(BadGroup(answer.planned.group.group_id, answer.problem), as_json=False)
                continue
        if only_one and first is not None:
            args.parser.error(args.one_group)
        first = first or answer
        if answer.planned.assignor not in SERVER_SIDE:
            libraries.update(unknown_libraries(answer.planned.group))
        if args.json and not only_one:
            print(contract.dumps(_json(answer, args, not_affected, alone=alone)), flush=True)
        elif not only_one:
            table.add(answer.planned)
    if first is not None and only_one and args.json:
        print(contract.dumps(_json(first, args, [], alone=True)))
    elif first is not None and (only_one or len(table.rows) == 1):
        _show(first, args)
    elif table.rows:
        if args.how_long:
            args.parser.error("--how-long needs one group, or --json: name the group with --group")
        table.show()
    for library, groups in libraries.items():
        _warn(library, groups)
    return tally.finish(args)


def _answer(args: argparse.Namespace, group: GroupSpec, changes: Sequence[Change]) -> _Answer:
    if args.assignor is not None:
        return _Answer(plan(group, args.assignor, changes, engine=args.engine))
    led = plans_by_leader(group, changes, engine=args.engine)
    return _Answer(next(one.plan for one in led if one.plan is not None), led)


@dataclass(slots=True)
class _Table:
    """The rows of many groups, and the numbers for the notes below them.

    `extra` has the reason why the rounds of a group are a lower bound, or None.
    `leaders` has the `leader_library` of each group whose rebalances Kafka's own assignor answers.
    `racks_unknown` is that of `lost_rack.in_plan` for each group. `lists_unknown` are the ids of
    groups whose plans depend on lists that are not known. `places_guessed` counts groups of members
    with racks that get new partitions, whose replicas' racks are guesses. `either` is that of
    `either_note`. `restarts_assumed` counts groups whose restarts may take another course
    (`changes/bounces.py`).
    """

    rows: list[tuple[str, str, Figures]] = field(default_factory=list)
    extra: list[ExtraRebalances | None] = field(default_factory=list)
    waits: list[CommitWaits | None] = field(default_factory=list)
    leaders: list[str | None] = field(default_factory=list)
    racks_unknown: list[list[str] | None] = field(default_factory=list)
    lists_unknown: list[str] = field(default_factory=list)
    places_guessed: int = 0
    either: str | None = None
    restarts_assumed: int = 0

    def add(self, planned: RebalancePlan) -> None:
        from kafka_rebalance.report.plans.leader import either_note

        named = planned.group, planned.assignor
        self.either = self.either or either_note([named])
        name = class_name(*named) or ""
        self.rows.append((planned.group.group_id, name, planned.figures()))
        self.extra.append(_extra(planned))
        self.waits.append(commit_waits(planned))
        self.racks_unknown.append(lost_rack.in_plan(planned))
        has_racks = any(member.rack_id for member in planned.group.members)
        self.places_guessed += planned.places_guessed and has_racks
        self.restarts_assumed += any(
            isinstance(one, BounceMembers) and not one.is_certain_in(planned.group)
            for one in planned.changes
        )
        if _assumes_lists(planned):
            self.lists_unknown.append(planned.group.group_id)
        if planned.rounds and not library_of(planned.assignor):
            self.leaders.append(planned.group.leader_library)

    def show(self) -> None:
        from kafka_rebalance.report.plans.commit_waits import commit_waits_in_groups_note
        from kafka_rebalance.report.plans.extra_rebalances import extra_in_groups_note
        from kafka_rebalance.report.plans.leader import leaders_note
        from kafka_rebalance.report.plans.lost_rack import groups_note
        from kafka_rebalance.report.plans.plan import print_plans, print_wrapped
        from kafka_rebalance.report.plans.recipes import lists_note

        print_plans(self.rows, self.extra)
        cautions = extra_in_groups_note(self.extra), groups_note(self.racks_unknown)
        waits = commit_waits_in_groups_note(self.waits)
        notes = self.either, waits, *cautions, leaders_note(self.leaders)
        for note in filter(None, (*notes, lists_note(self.lists_unknown))):
            print_wrapped(note)
        if self.places_guessed:
            which = counted(self.places_guessed, "group")
            print_wrapped(
                f"Guessed for {which} with racks: where brokers put the new partitions. The "
                "members that get them can depend on it; --group G prints draws."
            )
        if self.restarts_assumed:
            which = counted(self.restarts_assumed, "group")
            print_wrapped(
                f"Assumed for {which}: how long restarted members are away (bounce-members: "
                "away=). Back within a heartbeat, they start fewer rebalances; --group G prints "
                "both courses."
            )
        print("--group G shows one group in detail.")


def _warn(library: str, groups: int) -> None:
    """Reports on standard error a library of members whose assignors are not known here."""
    has = f"{counted(groups, 'group')} {'has' if groups == 1 else 'have'}"
    problem = f"{has} members or a leader of {quoted(library)}, a client library that is not known "
    problem += (
        "here: if it leads, its answer may differ from that of Kafka's assignor, planned here"
    )
    print_note(problem)


def _json(
    one: _Answer, args: argparse.Namespace, not_affected: list[str], *, alone: bool
) -> dict[str, Any]:
    planned = one.planned
    answer = planned.to_dict() | one.leading()
    if has_no_answer(one.led):
        answer["error"] = one.problem
    if alone and (found := endless_plan(planned)) is not None:
        answer["never_ends"] = found.to_dict()
    if alone and (traps := _traps(planned)):
        answer["librdkafka_traps"] = [trap.to_dict() for trap in traps]
    if extra := _extra(planned):
        further = _further(planned, extra, args) if alone else None
        played = {} if further is None else {"played": further.to_dict()}
        answer["extra_rebalances"] = extra.to_dict() | played
    if waits := commit_waits(planned):
        answer["commit_waits"] = waits.to_dict()
    if alone and (possible := may_happen(planned)):
        answer["may_happen"] = [one.to_dict() for one in possible]
    if alone and (notes := broker_notes(planned)):
        answer["broker_notes"] = [note.to_dict() for note in notes]
    switches = (planned.group, planned.changes, planned.assignor)
    if switched := not_rolling(*switches):
        answer["not_rolling"] = [one.to_dict() for one in switched]
    if switched := by_plug_ins(*switches):
        answer["rolling_by_plug_ins"] = [one.to_dict() for one in switched]
    if _assumes_lists(planned):
        answer["assumes_cooperative_lists"] = True
    if not_affected:
        answer["not_affected"] = not_affected
    if args.how_long:
        times, why = _how_long(planned)
        answer["times"] = None if times is None else times.to_dict()
        answer["times_missing" if times is None else "times_assumed"] = why
    if args.samples and (samples := _samples(planned, args)):
        answer["samples"] = samples.to_dict()
    if args.explain is not None:
        answer["explanation"] = planned.explain(args.explain)
    _draw(planned, args)
    return answer


def _show(answer: _Answer, args: argparse.Namespace) -> None:
    from kafka_rebalance.report.plans.plan import (
        names_in_plan,
        print_explanation,
        print_plan,
        print_wrapped,
    )

    planned = answer.planned
    if has_no_answer(answer.led):
        kafkas = f"The answer below is that of Kafka's {planned.assignor}, as if a Java member led."
        print_wrapped(f"WARNING: {answer.problem}. {kafkas}")
        print()
    if args.explain is not None:
        print_explanation(planned, args.explain)
    else:
        from kafka_rebalance.report.plans.broker_notes import print_broker_notes
        from kafka_rebalance.report.plans.commit_waits import commit_waits_note
        from kafka_rebalance.report.plans.never_ends import print_endless
        from kafka_rebalance.report.plans.recipes import print_switches
        from kafka_rebalance.report.plans.times import print_times
        from kafka_rebalance.report.plans.traps import print_traps
        from kafka_rebalance.report.plans.whole_switch import print_whole_switch

        if waits := commit_waits(planned):
            print_wrapped(commit_waits_note(waits, names_in_plan(planned)))
            print()
        print_plan(planned, _samples(planned, args), everything=args.all)
        if args.how_long:
            print_times(*_how_long(planned))
        print_endless(endless_plan(planned))
        print_traps(_traps(planned))
        print_broker_notes(planned, everything=args.all)
        switches = (planned.group, planned.changes, planned.assignor)
        rolling, refusing = by_plug_ins(*switches), not_rolling(*switches)
        # `compare` asks the group's own assignor, not that of --assignor.
        select = "" if args.assignor else given(args, planned.group.group_id)
        print_switches(rolling, refusing, planned.group, select)
        if not (rolling or refusing):
            print_whole_switch(planned, select)
    if note := _lists_note(planned):
        print_wrapped(note)
    if args.explain is None:
        _show_extra(planned, args)
        for possible in may_happen(planned):
            print_wrapped(possible.text)
    _show_leaders(answer)
    _draw(planned, args)


def _extra(planned: RebalancePlan) -> ExtraRebalances | None:
    """Returns why the number of rebalances is a lower bound; None if it is exact."""
    return extra_rebalances(planned.group, planned.changes) if planned.rounds else None


def _further(
    planned: RebalancePlan, extra: ExtraRebalances, args: argparse.Namespace
) -> Further | None:
    """Plays the further rebalances, if they are known and can move partitions."""
    if extra.cause == "subscriptions":
        return played_apart(planned, args.samples)
    is_played = extra.cause == "metadata" and extra.may_move
    return played_further(planned, args.samples) if is_played else None


def _show_extra(planned: RebalancePlan, args: argparse.Namespace) -> None:
    from kafka_rebalance.report.plans.extra_rebalances import extra_rebalances_note
    from kafka_rebalance.report.plans.plan import names_in_plan, print_wrapped

    if (extra := _extra(planned)) is None:
        return
    further, names = _further(planned, extra, args), names_in_plan(planned)
    readers = {tp: names[one] for one, owned in planned.after.items() for tp in owned}
    partitions = () if further is None else further.partitions
    note = extra_rebalances_note(extra, further, [(tp, readers[tp]) for tp in partitions])
    print_wrapped(note or "")


def _samples(planned: RebalancePlan, args: argparse.Namespace) -> Samples | None:
    """Returns the draws of guessed ids; None without guesses, or if a change names a guessed id."""
    if not planned.has_guesses or args.samples == 0:
        return None
    try:
        return planned.sample(args.samples)
    except NotAffected:  # each draw has other ids
        return None


def _lists_note(planned: RebalancePlan) -> str | None:
    from kafka_rebalance.report.plans.recipes import COOPERATIVE_LISTS, eager_note

    if _assumes_lists(planned):
        return COOPERATIVE_LISTS
    return eager_note(planned.group, planned.assignor)


def _show_leaders(answer: _Answer) -> None:
    from kafka_rebalance.report.plans.leader import leader_note, leading_lines
    from kafka_rebalance.report.plans.plan import print_wrapped

    planned, shown = answer.planned, answer.shown
    lines = [] if shown is None else list(leading_lines(answer.led, shown))
    # Without a rebalance, no leader's assignor answers.
    answered = lines or not planned.rounds or (shown is not None and shown.leaders)
    if note := None if answered else leader_note(planned.group, planned.assignor):
        lines.append(note)
    for line in lines:
        print_wrapped(line)


def _how_long(planned: RebalancePlan) -> "tuple[Timed | None, str]":
    """Returns the times and the assumptions, or no times and the reason."""
    from kafka_rebalance.simulator.timing import assumed, timed, why_untimed

    changes = parse_changes(planned.changes)
    try:
        times = timed(planned.group, changes, planned.assignor)
        return times, assumed(planned.group, changes, [planned.assignor])
    except GroupError as error:
        return None, why_untimed(error)


def _assumes_lists(planned: RebalancePlan) -> bool:
    """Returns whether the plan's cooperative rounds depend on lists that are not known."""
    is_cooperative = any(one.kind == "cooperative" for one in planned.rounds)
    return is_cooperative and may_list_eager(planned.group, planned.assignor)


def _traps(planned: RebalancePlan) -> tuple[Trap, ...]:
    return librdkafka_traps(planned.group, planned.assignor, planned.changes, engine=planned.engine)


def _draw(planned: RebalancePlan, args: argparse.Namespace) -> None:
    if args.output is None:
        return
    from kafka_rebalance.report.plans.page import plan_page

    with written(args.output) as path:
        path.write_text(plan_page(planned), encoding="utf-8")
    print_note(f"drawn to {args.output}")
