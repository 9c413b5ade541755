# SPDX-License-Identifier: Apache-2.0
"""Prints a scenario under several seeds: the least, the most and the median of each figure."""

from collections.abc import Callable, Mapping, Sequence

from kafka_rebalance.report.text.names import cut
from kafka_rebalance.report.text.tables import print_table
from kafka_rebalance.simulator.seeds import SeedRuns, Spread

from .run import unread

Shown = Callable[[int], str]


def print_seeds(runs: Mapping[str, SeedRuns]) -> None:
    """Prints the events and totals of one run under several seeds, or several runs side by side."""
    first = next(iter(runs.values()))
    print(first.title)
    if all(one.assumed == first.assumed for one in runs.values()):
        print(first.assumed)
    print(f"{seeds_text(first.seeds)}: least–most (median); one number where all are equal")
    if len(runs) == 1:
        _print_parts(first)
    else:
        _print_settlings(runs)
    _print_totals(runs)
    for name, one in runs.items():
        for seed, crashed in zip(one.seeds, one.crashed, strict=True):
            for member, why in crashed.items():
                print(" ".join(filter(None, (name, f"seed {seed}: {member} stopped: {why}"))))


def seeds_text(seeds: Sequence[int]) -> str:
    """Returns `seeds 1 to 20`, or `seed 1`."""
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


def spread_text(one: Spread, shown: Shown, never: str = "never") -> str:
    """Returns a string such as `2.8–3.4 (3.1)`, or `7` for equal values.

    `never` is the text for runs without the figure.
    """
    if one.least is None or one.median is None or one.most is None:
        return never if one.never else "-"
    if one.is_one or (not one.never and shown(one.least) == shown(one.most)):
        return shown(one.least)
    most = never if one.never else shown(one.most)
    return f"{shown(one.least)}–{most} ({shown(one.median)})"


def _print_parts(runs: SeedRuns) -> None:
    columns = ["at s", "what happens", "settles in s", "rebalances", unread(runs.held)]
    columns += ["stopped", "up to s"]
    rows = [
        [
            f"{one.at_ms / 1000:,.1f}",
            cut(one.what, 22),
            spread_text(one.settled_in_ms, _seconds, "not"),
            spread_text(one.rebalances, str),
            spread_text(one.unavailable_ms, _seconds),
            spread_text(one.stopped, str),
            spread_text(one.longest_stop_ms, _seconds),
        ]
        for one in runs.part_spreads()
    ]
    if rows:
        print_table(columns, rows, left=[1])


def _print_settlings(runs: Mapping[str, SeedRuns]) -> None:
    parts = {name: one.part_spreads() for name, one in runs.items()}
    rows = [
        [
            f"{cut(one.what, 30)} at {one.at_ms / 1000:,.1f} s",
            *(spread_text(each[place].settled_in_ms, _seconds, "not") for each in parts.values()),
        ]
        for place, one in enumerate(next(iter(parts.values())))
    ]
    if rows:
        print_table(["settles in s", *parts], rows)


def _print_totals(runs: Mapping[str, SeedRuns]) -> None:
    held = next(iter(runs.values())).held
    figures: list[tuple[str, str, Shown]] = [
        ("rebalances", "rebalances", str),
        ("moves", "moves", str),
        (unread(held), "unavailable_ms", _seconds),
        ("longest s", "longest_gap_ms", _seconds),
        ("member-s stopped", "stopped_ms", _seconds),
    ]
    if held != "task":
        figures.append(("records behind", "records_behind", lambda count: f"{count:,}"))
    figures.append(("settled at s", "settled_ms", _seconds))
    spreads = {name: one.spreads() for name, one in runs.items()}
    rows = [
        [title, *(spread_text(each[field], shown) for each in spreads.values())]
        for title, field, shown in figures
    ]
    print_table(["after the start-up", *runs], rows)


def _seconds(ms: int) -> str:
    return f"{ms / 1000:,.1f}"
