# SPDX-License-Identifier: Apache-2.0
"""Prints the figures of one plan, the figures of many plans as a table, and figures in seconds."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kafka_rebalance.notes.broker import other_course
from kafka_rebalance.notes.findings import Note
from kafka_rebalance.notes.other_courses import other_pause
from kafka_rebalance.plans.figures import Figures, figure_rows
from kafka_rebalance.plans.rebalance_plan import RebalancePlan

from ..text.sentences import counted, cut, print_note, print_wrapped
from ..text.tables import print_filled_table, print_table

if TYPE_CHECKING:
    from kafka_rebalance.simulator.seeds import Spread

_LONGEST_ID = 60  # a longer group id is cut in tables of many groups
_NO_BOUNDS = (
    "A range shows how the simulated runs differ under these assumptions: "
    "it is not a bound on a real group."
)

CURVE_NOTE = (
    'taken: at most so many partitions leave their owners; "<": the first row within 5 % of the '
    "best. fullest: the most partitions of one member, proven. deviation, bound: of the members' "
    "numbers of partitions, as found and the least possible."
)


def print_figures(plan: RebalancePlan, figures: Figures) -> None:
    print_table(("", "before", "after", "best possible"), figure_rows(plan, figures))
    said = []
    if (other := other_pause(plan)) is not None:
        said.append(f'{other_course(plan, other)} (see "pause").')
    if figures.owns_nothing:
        said.append(
            "No member owns a partition at the beginning, so every assigned partition counts as a "
            "move; give the present owners in owned_partitions (in Python: GroupSpec.owning)."
        )
    if figures.balance_after.stddev > figures.balance_possible.stddev:
        said.append("A more even assignment is possible. The limits of the best one:")
        said += (f"  {reason}" for reason in plan.possible.reasons()[:5])
    elif figures.least_moves is not None and figures.moves > figures.least_moves:
        more = figures.moves - figures.least_moves
        said.append(f"{counted(more, 'move')} more than needed for that balance")
    for text in said:
        indent = "  " * text.startswith(" ")
        print_wrapped(text.lstrip(), indent, indent)
    if said:
        print()


def waits(partitions: int) -> str:
    """Returns text such as `1 partition waits` or `2 partitions wait`."""
    return f"{counted(partitions, 'partition')} wait{'s' if partitions == 1 else ''}"


def its(number: int) -> str:
    return "its" if number == 1 else "their"


def print_plans(rows: Sequence[tuple[str, str, Figures]], notes: Sequence[Sequence[Note]]) -> None:
    """Prints a line for each group; the columns "waits" and "no leader" appear only if needed.

    `notes` holds the notes of each row's group. A plus after rounds or moves means "at least".
    """
    bounds = [next((n.detail for n in each if n.kind == "lower bound"), None) for each in notes]
    columns = (
        *("group", "assignor", "rounds", "moves (best)", "no reader"),
        *("waits", "no leader", "before", "after", "best"),
    )
    any_waits = any(one.waiting for _, _, one in rows)
    any_leaderless = any(one.leaderless for _, _, one in rows)
    lines = [
        (
            cut(group_id, _LONGEST_ID),
            assignor,
            f"{one.rounds}{'+' * bool(more)}{'' if one.settled else ', never stable'}",
            moves_text(one, is_least=bool(more and more["may_move"])),
            str(one.unavailable),
            str(one.waiting) * any_waits,
            str(one.leaderless) * any_leaderless,
            one.balance_before.least_to_most,
            one.balance_after.least_to_most,
            one.balance_possible.least_to_most,
        )
        for (group_id, assignor, one), more in zip(rows, bounds, strict=True)
    ]
    print_filled_table(columns, lines, right=columns[1:], whole=True, names=2)


def moves_text(one: Figures, *, is_least: bool = False) -> str:
    """Returns the moves and the least possible: `6 (2)`; `6` if unknown; `6+ (2)`: at least 6."""
    moves = f"{one.moves}{'+' * is_least}"
    return moves if one.least_moves is None else f"{moves} ({one.least_moves})"


def times_text(plan: RebalancePlan) -> tuple[str, str]:
    """Returns the plan's simulated times as text, and their assumptions; or "", and why there are
    none.
    """
    from kafka_rebalance.simulator.timing import timed_or_why

    times, assumed = timed_or_why(plan)
    if times is None:
        return "", f"No figures in seconds: {assumed}."
    unread = range_text(times.unread, " partition-seconds")
    text = f" Without a reader: {unread}. Until it is stable again: "
    how = f"Simulated, as `simulate --from` does it: {assumed}. {_NO_BOUNDS}"
    return f"{text}{range_text(times.settled, ' s')}.", how


def median_text(spread: "Spread") -> str:
    return "never" if spread.median is None else seconds_text(spread.median)


def seconds_text(ms: int) -> str:
    return f"{ms / 1000:,.1f}" if ms < 100_000 else f"{ms / 1000:,.0f}"


def range_text(
    spread: "Spread",
    unit: str = "",
    between: str = "{} to {} with other seeds",
    text_of: Callable[[int], str] = seconds_text,
) -> str:
    """Returns a spread as text: median, smallest and largest value; how many runs had none."""
    if spread.least is None or spread.median is None or spread.most is None:
        return "never"
    median, least, most = map(text_of, (spread.median, spread.least, spread.most))
    text = f"{median}{unit}" + f" ({between.format(least, most)})" * (least != most)
    return f"{text}, never in {counted(spread.never, 'run')}" if spread.never else text


def print_curve(plan: RebalancePlan) -> bool:
    """Prints a summary, then the first row for each value of the largest load, and the last row.

    Returns whether the plan has a curve.
    """
    from kafka_rebalance.plans.possible.curve import COLUMNS

    if (curve := plan.curve) is None:
        print_note("no curve: several members can have one partition, or no member is left")
        return False
    print_wrapped(curve.summary)
    print()
    print_wrapped(plan.title, "", "  ")
    print_table(COLUMNS, curve.rows())
    print_wrapped(CURVE_NOTE)
    return True
