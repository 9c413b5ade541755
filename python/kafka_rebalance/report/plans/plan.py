# SPDX-License-Identifier: Apache-2.0
"""Prints a plan as tables; members without changes are left out unless `everything` is set."""

from collections.abc import Mapping, Sequence
from itertools import takewhile

from kafka_rebalance.assignors.registry import KAFKAS, SERVER_SIDE
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.ownership import Assignment, Delta
from kafka_rebalance.notes.lost_rack import step_note
from kafka_rebalance.plans.changes.assignor import SwitchAssignor
from kafka_rebalance.plans.changes.made_up import Basis
from kafka_rebalance.plans.explanation import Explanation
from kafka_rebalance.plans.rebalance_plan import RebalancePlan
from kafka_rebalance.plans.rounds import Round, Step
from kafka_rebalance.plans.samples import Samples
from kafka_rebalance.plans.summary import is_not_known

from ..text.sentences import counted, cut, member_names, partitions_text, print_wrapped, shortened
from ..text.tables import print_table
from .figures import print_figures, waits

_MOST_ROWS = 20
_MOST_ROUNDS = 6
_MOST_SAMPLED = 3
_MOST_CHARACTERS = 34
_CHARACTERS_IN_SENTENCE = 60


def print_plan(
    plan: RebalancePlan,
    samples: Samples | None,
    names: Mapping[str, str],
    *,
    everything: bool,
    times: str = "",
) -> None:
    """Prints figures, then the changes of each round; with `everything`, no list is shortened.

    `times` are sentences that follow the summary.
    """
    figures = plan.figures()
    print_wrapped(f"{shortened(plan.summary, names)}{times}")
    print()
    if is_not_known(plan) and not figures.leaderless:
        return
    print_wrapped(plan.title, "", "  ")
    print_figures(plan, figures)
    shown = quiet = 0
    before = () if everything else _before_switch(plan)
    if before:
        rounds = counted(sum(len(step.rounds) for step in before), "round")
        print(f"{rounds} of {plan.assignor} before it is replaced (--all shows them)\n")
    for step in plan.steps[len(before) :]:
        cause = shortened(step.cause, names)
        quiet = 0 if step.rounds else quiet + 1
        if quiet <= _MOST_ROWS or everything:
            notes = step_notes(step)
            for note in notes:
                print_wrapped(f"{cause}{note}", "", "  ")
            if step.rounds and notes:
                print()
        for number, one in enumerate(step.rounds, 1):
            shown += 1
            if shown <= _MOST_ROUNDS or everything:
                heading = round_title(plan, cause, number, one)
                _print_round(heading, one, names, everything=everything)
    if shown > _MOST_ROUNDS and not everything:
        print(f"… and {counted(shown - _MOST_ROUNDS, 'round')} more (--all shows them)")
        print()
    if quiet > _MOST_ROWS and not everything:
        print(f"… and {quiet - _MOST_ROWS} more (--all shows them)")
    if quiet:
        print()
    if not plan.settled:
        print("The group is never stable: a state occurs again, so partitions move for ever.\n")
    _print_guesses(plan, everything=everything)
    if samples is not None:
        _print_samples(samples, names, everything=everything)


def _before_switch(plan: RebalancePlan) -> tuple[Step, ...]:
    """Returns the steps in which the old assignor still answers; () if the plan is not a switch."""
    if len(plan.changes) != 1 or not isinstance(plan.changes[0], SwitchAssignor):
        return ()
    still = takewhile(lambda step: step.before.assignor == plan.assignor, plan.steps)
    return tuple(still)


def step_notes(step: Step) -> list[str]:
    """Returns notes on a step, such as its waiting partitions, to print after the step's cause."""
    notes = []
    if step.waiting:
        is_lost = "comes back" not in step.cause and step.rounds
        how = " until the sessions there end; then the group rebalances" if is_lost else " for it"
        notes.append(f"; {waits(len(step.waiting))}{how}")
    if step.leaderless:
        names = partitions_text(step.leaderless, _CHARACTERS_IN_SENTENCE)
        one = len(step.leaderless) == 1
        notes.append(
            f": {counted(len(step.leaderless), 'partition')} without a leader, because all known "
            f"replicas were there: {names}. Kafka still assigns "
            f"{'it, but no member can read it' if one else 'them, but no member can read them'}"
        )
    if note := step_note(step):
        notes.append(note)
    if step.cause.startswith("partitions ") and step.rounds and step.rounds[0].kind != "broker":
        notes.append(
            ": nobody reads the new partitions until the leader reads the topic's metadata again, "
            "within metadata.max.age.ms (5 minutes by default); then the group rebalances"
        )
    if not step.rounds and not notes:
        of_topics = step.cause.startswith(("partitions ", "remove-topics=", "resubscribe="))
        why = ", because no member sees a change" if of_topics else ""
        notes.append("" if "no rebalance" in step.cause else f": no rebalance{why}")
    return notes


def round_title(plan: RebalancePlan, cause: str, number: int, one: Round) -> str:
    unit = "group epoch" if one.kind == "broker" else "generation"
    more = "" if plan.knows_generation else "+"
    return f"{cause}, round {number} ({one.kind}), {unit} {more}{one.generation_id}"


def names_in_plan(plan: RebalancePlan) -> dict[str, str]:
    """Returns short names of all members that exist before, during or after the plan, by id."""
    members = {m.member_id: m for m in plan.group.members}
    for step in plan.steps:
        members |= {m.member_id: m for m in step.before.members}
    client_ids = {member_id: member.client_id for member_id, member in members.items()}
    return member_names(client_ids, plan.made_up)


def _with_some(part: Assignment) -> set[str]:
    return {who for who, count in zip(part, part.counts(), strict=True) if count}


def changing_members(one: Round) -> set[str]:
    return _with_some(one.revoked) | _with_some(one.gained) | _with_some(one.withheld)


def _members(one: Round) -> Sequence[str]:
    """Returns the member ids in the order in which the leader or the broker reads them."""
    if one.assignor in KAFKAS:
        return one.held.member_ids  # also in join order; making `one.group` takes time
    return [member.member_id for member in one.group.members]


ROUND_COLUMNS = ("member", "kept", "revoked", "gained", "still held by others")


def round_rows(
    one: Round, names: Mapping[str, str], most: int | None = None, *, everything: bool = False
) -> list[tuple[str, ...]]:
    """Returns a row for each member that the round changes (`everything`: for each member); lists
    of partitions are cut after `most` characters.
    """
    rows, changing = [], changing_members(one)
    for who in _members(one):
        if everything or who in changing:
            parts = [one.revoked[who], one.gained[who], one.withheld.get(who, ())]
            texts = (partitions_text(part, most) for part in parts)
            rows.append((names[who], str(len(one.kept[who])), *texts))
    return rows


def _print_round(title: str, one: Round, names: Mapping[str, str], *, everything: bool) -> None:
    most = None if everything else _MOST_CHARACTERS
    rows = round_rows(one, names, most, everything=everything)
    columns = ROUND_COLUMNS[: 5 if any(row[4] for row in rows) else 4]
    print(title)
    more = _print_members(columns, rows, everything=everything)
    if one.standby is not None:
        _print_standby(one.standby, names, everything=everything)
    notes = []
    if more:
        change = "changes" if more == 1 else "change"
        notes.append(f"{counted(more, 'member')} more {change} (--all shows them)")
    if not everything:
        notes += quiet_notes(one)
    read = "every partition has a reader"
    if one.unavailable:
        read = f"{counted(len(one.unavailable), 'partition')} without a reader"
    print(f"  {'; '.join([*notes, f'{read} in this round'])}")
    print()


def _print_members(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, everything: bool
) -> int:
    """Prints a row for each member; returns the number of members that are left out."""
    shown = rows if everything else rows[:_MOST_ROWS]
    if shown:
        cells = [(cut(row[0], 36), *row[1 : len(columns)]) for row in shown]
        print_table(columns, cells, left=(2, 3, 4))
    return len(rows) - len(shown)


def _print_standby(standby: Delta, names: Mapping[str, str], *, everything: bool) -> None:
    most = None if everything else _MOST_CHARACTERS
    rows = [
        (
            names[member_id],
            str(len(standby.kept[member_id])),
            partitions_text(standby.revoked[member_id], most),
            partitions_text(standby.gained[member_id], most),
        )
        for member_id in standby.kept
        if standby.revoked[member_id] or standby.gained[member_id]
    ]
    columns = ("standby tasks of", *ROUND_COLUMNS[1:4])
    if more := _print_members(columns, rows, everything=everything):
        print(f"  {counted(more, 'member')} more (--all shows them)")


def quiet_notes(one: Round) -> list[str]:
    """Returns clauses on members without changes: how many keep partitions, how many are idle."""
    quiet = {*_members(one)} - changing_members(one)
    idle = len(quiet - _with_some(one.kept))
    kept, notes = len(quiet) - idle, []
    if kept:
        notes.append(f"{counted(kept, 'member')} keep{'' if kept > 1 else 's'} what ")
        notes[0] += "they have" if kept > 1 else "it has"
    if idle:
        notes.append(f"{counted(idle, 'member')} {'is' if idle == 1 else 'are'} idle")
    return notes


def _print_guesses(plan: RebalancePlan, *, everything: bool) -> None:
    """Prints the ids, racks and orders that the plan made up; tables mark made-up ids with `*`."""
    if plan.newcomers:
        changed = {who for one in plan.rounds for who in _with_some(one.gained)}
        mark = "* " if everything or changed & {*plan.made_up} else ""
        made = len(plan.newcomers)
        are, others = "are placeholders", "others"
        if made == 1:
            are, others = "is a placeholder", "another"
        who = "members" if plan.steps[-1].before.assignor in SERVER_SIDE else "the broker"
        text = f"{counted(made, 'member id')} {are}: {who} will choose {others}, and ids break ties"
        print_wrapped(f"{mark}{text}.", "", "  ")
    for is_guessed, text in (
        (plan.places_guessed, _ANY_RACKS),
        (plan.topic_ids_guessed, _ANY_IDS),
        (plan.topics_guessed, _ANY_ORDER),
        *((True, line) for line in _assumed(plan)),
    ):
        if is_guessed:
            print_wrapped(text, "  ")


def _print_samples(samples: Samples, names: Mapping[str, str], *, everything: bool) -> None:
    """Prints the partitions whose last owner is not the same in all samples."""
    if samples.throws:
        both = samples.draws + len(samples.throws)
        failing = f"{len(samples.throws)} of {counted(both, 'sample')}"
        print_wrapped(f"In {failing}, the rebalance fails: {samples.throws[0]}.", "  ")
    if not samples.draws:
        return
    depends = sorted(samples.depends)
    shown = depends if everything else depends[:_MOST_SAMPLED]
    print_wrapped(samples.summary, "  ")
    for tp in shown:
        print_wrapped(f"  {_ends_of(tp, samples, names)}", "  ")
    if len(depends) > len(shown):
        more = f"… and {len(depends) - len(shown)} more (--all shows them)"
        print_wrapped(f"{more}; --samples N may find others.", "    ")


def _ends_of(tp: TopicPartition, samples: Samples, names: Mapping[str, str]) -> str:
    """Returns how often a partition moves in the samples, and its most frequent last owners."""
    ends = ", ".join(
        f"{names.get(member_id, member_id)} in {count}"
        for member_id, count in samples.ends[tp].most_common(4)
    )
    more = len(samples.ends[tp]) - 4
    if more > 0:
        ends += f", {counted(more, 'other')}"
    return f"{tp}: moves in {samples.moved[tp]} of {samples.draws}; ends with {ends}"


_ANY_RACKS = "The racks of the new partitions' replicas are a guess: brokers choose them."
_ANY_IDS = "The ids of new topics are placeholders: brokers choose others, and ids break ties."
_ANY_ORDER = (
    "Each process of kafka-python or aiokafka lists its topics in an order of its own, on which "
    "this assignor's answer can depend: the order of new subscriptions is a guess."
)

_ASSUMED = {
    Basis.COUNTED: "{} is a guess, the next number after the others; set {} to change it",
    Basis.COPIED: "{} is a guess, copied from the member it is modelled on; set {} to change it",
    Basis.SHARED: "{} is assumed, since all other members have it; set {} to change it",
}


def _assumed(plan: RebalancePlan) -> list[str]:
    lines = []
    for basis, text in _ASSUMED.items():
        for is_static in (False, True):
            kind, new = "instance" if is_static else "client", plan.newcomers
            of_kind = (one for one in new if one.basis is basis and one.is_static == is_static)
            if called := [one.name for one in of_kind]:
                to = f" to {called[-1]}" * (called[-1] != called[0])
                first = f"The {kind} id {called[0]}{to}"
                lines.append(f"{text.format(first, f'{kind}-id= in add-members')}.")
    return lines


def print_explanation(lines: Explanation, names: Mapping[str, str]) -> None:
    print_wrapped(shortened(lines.summary, names))
    print()
    for line in lines:
        text = line.lstrip()
        print_wrapped(shortened(text, names), " " * (len(line) - len(text)), "   ")
