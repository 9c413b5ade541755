"""A plan as tables of at most 100 columns; long groups are folded to what changes."""

import textwrap
from collections.abc import Sequence

from kafka_rebalance.model import TopicPartition
from kafka_rebalance.ownership import Balance
from kafka_rebalance.plans import Figures, RebalancePlan, Round, Samples, explain

from .names import cut, partitions_text, share_text, short_names, shortened
from .tables import print_table

_MOST_ROWS = 20
_MOST_ROUNDS = 6
_MOST_CHARACTERS = 34


def print_plan(plan: RebalancePlan, samples: Samples | None, *, everything: bool) -> None:
    """Figures, then round by round who keeps, gives up and gets what."""
    figures = plan.figures()
    changes = ", ".join(str(change) for change in plan.changes) or "rebalance as it is"
    print(f"{plan.group.group_id}, {plan.assignor}: {changes}")
    print_figures(plan, figures)
    names = member_names(plan)
    told = 0
    for step in plan.steps:
        if not step.rounds:
            print(f"{shortened(step.cause, names)}\n")
        for number, one in enumerate(step.rounds, 1):
            told += 1
            if told <= _MOST_ROUNDS or everything:
                _print_round(
                    f"{shortened(step.cause, names)}, round {number}",
                    one,
                    names,
                    everything=everything,
                )
    if told > _MOST_ROUNDS and not everything:
        print(f"… and {told - _MOST_ROUNDS} rounds more (--all shows them)\n")
    if not plan.settled:
        print("It never settles: a state comes again, and partitions move round for ever.\n")
    _print_ids(plan, samples, names)


def print_figures(plan: RebalancePlan, figures: Figures) -> None:
    """Before, after, and what would have been possible."""
    rows: list[tuple[str, ...]] = [
        ("members", str(len(plan.group.members)), str(len(plan.final.members)), ""),
        (
            "partitions a member",
            spread_text(figures.balance_before),
            spread_text(figures.balance_after),
            spread_text(figures.balance_possible),
        ),
        (
            "deviation",
            f"{figures.balance_before.stddev:.2f}",
            f"{figures.balance_after.stddev:.2f}",
            f"{figures.balance_possible.stddev:.2f}",
        ),
    ]
    shares = figures.rack_share_before, figures.rack_share_after
    if shares != (None, None):
        rows.append(("read in a replica's rack", *map(share_text, shares), ""))
    rows.append(("moves", "", str(figures.moves), str(figures.least_moves)))
    print_table(("", "before", "after", "possible"), rows)
    print(f"{_count(figures.rounds, 'rebalance')}; {_silent(figures)}")
    if figures.balance_after.stddev > figures.balance_possible.stddev:
        print("Not as even as possible, since")
        for reason in plan.possible.reasons()[:5]:
            print(f"  {reason}")
    elif figures.moves > figures.least_moves:
        more = figures.moves - figures.least_moves
        print(f"{_count(more, 'move')} more than needed for that balance")
    print()


def spread_text(balance: Balance) -> str:
    """Least to most: 3-4."""
    return str(balance.min) if balance.min == balance.max else f"{balance.min}-{balance.max}"


def _silent(figures: Figures) -> str:
    if not figures.unavailable:
        return "every partition has a reader all the time"
    text = f"{_count(figures.unavailable, 'partition')} without a reader for a round"
    if figures.unavailable_rounds > figures.unavailable:
        text += f" or more ({figures.unavailable_rounds} partition-rounds)"
    return text


def member_names(plan: RebalancePlan) -> dict[str, str]:
    """Short names of everybody who is there at some time."""
    ids = dict.fromkeys(m.member_id for m in plan.group.members)
    for step in plan.steps:
        ids |= dict.fromkeys(m.member_id for m in step.before.members)
    return short_names(ids, plan.made_up)


def _print_round(title: str, one: Round, names: dict[str, str], *, everything: bool) -> None:
    rows: list[tuple[str, ...]] = []
    quiet = 0
    most = None if everything else _MOST_CHARACTERS
    for member in one.group.members:
        who = member.member_id
        parts = [one.revoked[who], one.gained[who], one.withheld.get(who, ())]
        if not any(parts) and not everything:
            quiet += 1
            continue
        rows.append(
            (
                cut(names[who], 36),
                str(len(one.kept[who])),
                *(partitions_text(part, most) for part in parts),
            )
        )
    shown = rows if everything else rows[:_MOST_ROWS]
    withheld = any(row[4] for row in rows)
    columns = ["member", "keeps", "gives up", "gets", "has to wait for"][: 5 if withheld else 4]
    print(f"{title} ({one.protocol.name.lower()}), generation {one.generation_id}")
    if shown:
        print_table(columns, [row[: len(columns)] for row in shown], left=(2, 3, 4))
    notes = []
    if len(rows) > len(shown):
        notes.append(f"{len(rows) - len(shown)} members more change (--all shows them)")
    if quiet:
        notes.append(
            "1 member keeps what it has" if quiet == 1 else f"{quiet} members keep what they have"
        )
    silent = _count(len(one.unavailable), "partition")
    notes.append(
        f"{silent} without a reader in this round"
        if one.unavailable
        else "every partition has a reader in this round"
    )
    print(f"  {'; '.join(notes)}\n")


def _print_ids(plan: RebalancePlan, samples: Samples | None, names: dict[str, str]) -> None:
    if not plan.made_up:
        return
    ids = _count(len(plan.made_up), "id")
    print(f"* {ids} made up: the broker will choose others, and ids break ties.")
    if samples is None or not samples.draws:
        return
    moved = sorted(samples.moved.values())
    depends = samples.depends
    print(
        f"  In {_count(samples.draws, 'draw')} of other ids "
        + (
            f"{len(depends)} of {len(moved)} partitions end elsewhere in some:"
            if depends
            else "every partition ends in the same place (new members are alike)."
        )
    )
    for tp in sorted(depends)[:_MOST_ROWS]:
        ends = ", ".join(
            f"{names.get(member_id, member_id)} {count}"
            for member_id, count in samples.ends[tp].most_common(4)
        )
        print(f"  {tp}: moves in {samples.moved[tp]} of {samples.draws}; ends with {ends}")
    if len(depends) > _MOST_ROWS:
        print(f"  … and {len(depends) - _MOST_ROWS} more (--json has all)")


def print_explanation(plan: RebalancePlan, tp: TopicPartition) -> None:
    """Why a partition went where it went."""
    names = member_names(plan)
    for line in explain(plan, tp):
        indent = " " * (len(line) - len(line.lstrip()))
        text = shortened(line, names)
        print(textwrap.fill(text, 100, subsequent_indent=f"{indent}   "))


def print_plans(rows: Sequence[tuple[str, str, Figures]]) -> None:
    """Several groups, one a line."""
    print_table(
        (
            "group",
            "assignor",
            "rounds",
            "moves",
            "least",
            "no reader",
            "before",
            "after",
            "best",
        ),
        [
            (
                cut(group_id, 22),
                assignor,
                str(one.rounds) if one.settled else f"{one.rounds}, unsettled",
                str(one.moves),
                str(one.least_moves),
                str(one.unavailable),
                spread_text(one.balance_before),
                spread_text(one.balance_after),
                spread_text(one.balance_possible),
            )
            for group_id, assignor, one in rows
        ],
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
