"""Comparisons as tables of at most 100 columns."""

import textwrap
from collections.abc import Sequence

from kafka_rebalance.plans import Candidate, Comparison

from .names import cut, share_text
from .plan import spread_text
from .tables import print_table


def print_comparison(comparison: Comparison) -> None:
    """All assignors, the recommendation with its reason, and the way there."""
    group = comparison.group
    changes = ", ".join(comparison.changes) or "rebalance as it is"
    print(f"{group.group_id}, which runs {group.assignor or 'an unknown assignor'}: {changes}")
    rows = [_row(one, comparison.recommended) for one in comparison.candidates]
    racks = any(row[-1] != "-" for row in rows)
    columns = (
        *("assignor", "rounds", "moves", "least"),
        *("no reader", "a member", "best", "in rack"),
    )
    keep = len(columns) if racks else len(columns) - 1
    print_table(columns[:keep], [row[:keep] for row in rows])
    for one in comparison.candidates:
        if one.error is not None:
            print(f"{one.assignor}: {one.error}")
    _print_wrapped(f"Recommended: {comparison.reason}.", "")
    for number, step in enumerate(comparison.migration, 1):
        _print_wrapped(step, f"  {number}. ")
    print()


def _row(one: Candidate, recommended: str | None) -> tuple[str, ...]:
    name = f"{one.assignor}{' <' if one.assignor == recommended else ''}"
    if one.figures is None:
        return (name, *[""] * 6, "-")
    figures = one.figures
    return (
        name,
        str(figures.rounds) if figures.settled else "never settles",
        str(figures.moves),
        str(figures.least_moves),
        str(figures.unavailable),
        spread_text(figures.balance_after),
        spread_text(figures.balance_possible),
        share_text(figures.rack_share_after),
    )


def _print_wrapped(text: str, indent: str) -> None:
    print(textwrap.fill(text, 100, initial_indent=indent, subsequent_indent=" " * len(indent)))


def print_comparisons(comparisons: Sequence[Comparison]) -> None:
    """Several groups, one a line."""
    print_table(
        ("group", "runs", "recommended", "a member", "no reader"),
        [_line(one) for one in comparisons],
    )


def _line(comparison: Comparison) -> tuple[str, ...]:
    by_name = {one.assignor: one.figures for one in comparison.candidates}
    both = [by_name.get(name or "") for name in (comparison.group.assignor, comparison.recommended)]
    spreads = ["-" if one is None else spread_text(one.balance_after) for one in both]
    silent = ["-" if one is None else str(one.unavailable) for one in both]
    return (
        cut(comparison.group.group_id, 32),
        comparison.group.assignor or "-",
        comparison.recommended or "-",
        " -> ".join(spreads),
        " -> ".join(silent),
    )
