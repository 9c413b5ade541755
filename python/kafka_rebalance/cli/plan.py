# SPDX-License-Identifier: Apache-2.0
"""Predicts changes of a group, rebalance by rebalance, as Kafka would play them. Shows the kept,
revoked and gained partitions of each member, the partitions without a reader, the balance
afterwards, and the best possible one. Without changes: the next rebalance.
"""

import argparse
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka_rebalance.assignors.registry import SERVER_SIDE, is_known, library_of, misspelt
from kafka_rebalance.errors import NotAffected
from kafka_rebalance.group import contract
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.notes.all_notes import plan_notes
from kafka_rebalance.notes.findings import Note
from kafka_rebalance.notes.leaders import no_answer
from kafka_rebalance.plans.changes.change import Change
from kafka_rebalance.plans.clients import unknown_libraries
from kafka_rebalance.plans.leaders import LedPlan, has_no_answer, plans_by_leader
from kafka_rebalance.plans.rebalance_plan import RebalancePlan, plan
from kafka_rebalance.plans.samples import Samples
from kafka_rebalance.report.text.sentences import print_wrapped, shortened

from .applications import add_planned, planned_application, replayed, show_plan
from .groups import BadGroup, add_changes, add_input, answers, given, report_bad
from .lines import draw
from .options import add_assignor, add_objective, add_table, name_with_objective, path, whole
from .tally import Tally
from .weights import add_weights, only_weighted

if TYPE_CHECKING:
    from kafka_rebalance.applications.plan import ApplicationPlan

_ON_THE_ASSIGNOR = ("no answer", "lists", "eager", "leader", "foreign")


def add_options(parser: argparse.ArgumentParser) -> None:
    options = """
    --curve: show how even the group could be if at most so many partitions were taken from their
      owners, whatever the assignor
    --samples N: predict again with N samples of what is guessed, as ids for new members (default: 8
      to 32 in the table of one group, else 0)
    --explain PARTITION: explain the owners of one partition, for example payments-3
    --how-long: show seconds too: the simulator plays the changes, with the assumptions that it
      prints
    --all: show every member and round
    --output FILE.html: draw the plan as an HTML page
    """
    add_asked(parser, options, samples=whole(0), output=path)
    parser.set_defaults(
        one_group="--explain, --curve and --output need one group: name it with --group"
    )


def add_asked(parser: argparse.ArgumentParser, table: str = "", **how: Any) -> None:
    """Adds the options for a group, its changes and its assignor, and the options of a `table`."""
    add_input(parser)
    add_changes(parser)
    add_assignor(parser)
    add_objective(parser)
    add_weights(parser)
    add_table(parser, table, **how)
    add_planned(parser)


class _Answer(NamedTuple):
    """The plan that is shown, and the plans under all possible leaders (empty with --assignor)."""

    planned: RebalancePlan
    led: tuple[LedPlan, ...] = ()

    @property
    def shown(self) -> LedPlan | None:
        return next((one for one in self.led if one.plan is self.planned), None)

    @property
    def problem(self) -> str:
        from kafka_rebalance.report.plans.notes import names_of

        return shortened(no_answer(self.led), names_of(self.led))

    def leading(self) -> dict[str, Any]:
        """Returns the leaders for JSON; {} with --assignor, or if only Kafka's assignor can run."""
        by_broker = self.planned.assignor in SERVER_SIDE
        certain = len(self.led) == 1 and (by_broker or not library_of(self.planned.assignor))
        if self.shown is None or certain:
            return {}
        others = [one.to_dict() for one in self.led if one is not self.shown]
        return {"leaders": list(self.shown.leaders), "other_leaders": others}


def run(args: argparse.Namespace) -> int:
    args.assignor = name_with_objective(args)
    only_weighted(args)
    if args.assignor is not None and not is_known(args.assignor):
        args.parser.error(f"argument --assignor: {misspelt(args.assignor)}")
    if args.output is not None and args.output.suffix != ".html":
        args.parser.error("argument --output: name a file that ends in .html")
    from kafka_rebalance.report.plans.notes import PlanTable

    in_detail = args.explain is not None or args.output is not None
    only_one = in_detail or (args.curve and not args.json)
    tally = Tally()
    first: _Answer | None = None
    left_out: list[str] = []
    table = PlanTable()
    for answer, not_affected, alone in answers(args, tally, partial(_answer, args, tally)):
        if not isinstance(answer, _Answer):
            if args.output is not None or args.curve:
                args.parser.error(f"{args.one_group}; it shows no Kafka Streams application")
            show_plan(answer, args)
            continue
        if has_no_answer(answer.led):
            tally.bad += 1
            if not (alone or args.json):
                report_bad(BadGroup(answer.planned.group.group_id, answer.problem), as_json=False)
                continue
        if only_one and first is not None:
            args.parser.error(args.one_group)
        first, left_out = (first, left_out) if first else (answer, not_affected)
        if answer.planned.assignor not in SERVER_SIDE:
            tally.libraries.update(unknown_libraries(answer.planned.group))
        if args.json and not only_one:
            print(contract.dumps(_json(answer, args, not_affected, alone=alone)), flush=True)
        elif not only_one and answer is not first:
            for one in (answer,) if table.rows else (first, answer):
                table.add(one.planned, plan_notes(one.planned, cheap=True))
    if first is not None and only_one and args.json:
        print(contract.dumps(_json(first, args, left_out, alone=True)))
    elif first is not None and not (args.json or table.rows):
        _show(first, args)
    elif table.rows:
        if args.how_long:
            args.parser.error("--how-long needs one group, or --json: name the group with --group")
        table.show()
    return tally.finish(args)


def _answer(
    args: argparse.Namespace, tally: Tally, group: GroupSpec, changes: Sequence[Change]
) -> "_Answer | ApplicationPlan":
    if args.assignor is None and (application := replayed(args, group, tally.leaderless)):
        return planned_application(args, group, application, changes)
    if args.assignor is not None:
        return _Answer(plan(group, args.assignor, changes, engine=args.engine))
    led = plans_by_leader(group, changes, engine=args.engine)
    return _Answer(next(one.plan for one in led if one.plan is not None), led)


def _notes(one: _Answer, args: argparse.Namespace, *, cheap: bool = False) -> tuple[Note, ...]:
    is_own = args.assignor is None  # else no note advises `compare`, which plays the group's own
    return plan_notes(one.planned, one.led, draws=args.samples, is_own=is_own, cheap=cheap)


def _json(
    one: _Answer, args: argparse.Namespace, not_affected: list[str], *, alone: bool
) -> dict[str, Any]:
    planned = one.planned
    answer = planned.to_dict() | one.leading()
    if has_no_answer(one.led):
        answer["error"] = one.problem
    answer["notes"] = [note.to_dict() for note in _notes(one, args, cheap=not alone)]
    answer |= {"not_affected": not_affected} if not_affected else {}
    if args.how_long:
        from kafka_rebalance.simulator.timing import timed_or_why

        times, why = timed_or_why(planned)
        answer["times"] = None if times is None else times.to_dict()
        answer["times_missing" if times is None else "times_assumed"] = why
    if args.samples and (samples := _samples(planned, args)):
        answer["samples"] = samples.to_dict()
    if args.explain is not None:
        answer["explanation"] = explained = planned.explain(args.explain, _samples(planned, args))
        answer["summary"] = explained.summary
    if args.curve and planned.curve is not None:
        answer |= planned.curve.to_dict()
    _draw(planned, args)
    return answer


def _show(answer: _Answer, args: argparse.Namespace) -> None:
    from kafka_rebalance.report.plans.figures import print_curve, times_text
    from kafka_rebalance.report.plans.notes import FIRST, SAID_ELSEWHERE, names_of, print_notes
    from kafka_rebalance.report.plans.plan import print_explanation, print_plan

    planned = answer.planned
    if args.curve:
        if print_curve(planned):
            _draw(planned, args)
        return
    names = names_of(answer.led, planned)
    select = "" if args.assignor else given(args, planned.group.group_id)
    show = partial(
        print_notes, names=names, given=select, made_up=planned.made_up, everything=args.all
    )
    notes = _notes(answer, args, cheap=args.explain is not None)
    if args.explain is not None:  # only notes on the assignor help to understand an explanation
        notes = tuple(note for note in notes if note.kind in _ON_THE_ASSIGNOR)
    show(note for note in notes if note.kind in FIRST)
    if args.explain is not None:
        print_explanation(planned.explain(args.explain, _samples(planned, args)), names)
    else:
        times, assumed = times_text(planned) if args.how_long else ("", "")
        print_plan(planned, _samples(planned, args), names, everything=args.all, times=times)
        if assumed:
            print_wrapped(assumed)
    show(note for note in notes if note.kind not in (*FIRST, *SAID_ELSEWHERE))
    _draw(planned, args)


def _samples(planned: RebalancePlan, args: argparse.Namespace) -> Samples | None:
    """Returns the plan's samples, with other random ids; None with `--samples 0`, if the plan
    guesses nothing, or if a change names a made-up id.
    """
    if planned.has_guesses and args.samples != 0:
        with suppress(NotAffected):  # each plan makes up other ids, so the named id may be absent
            return planned.sample(args.samples)
    return None


def _draw(planned: RebalancePlan, args: argparse.Namespace) -> None:
    if args.output is not None:
        from kafka_rebalance.report.plans.page import curve_page, plan_page

        curve = planned.curve if args.curve else None
        draw(args.output, plan_page(planned) if curve is None else curve_page(curve, planned.title))
