# SPDX-License-Identifier: Apache-2.0
"""Prints simulated runs as tables: rebalances, totals, and how long groups took to settle."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from kafka_rebalance.simulator import measure
from kafka_rebalance.simulator.run import Run
from kafka_rebalance.simulator.scenario import start_condition
from kafka_rebalance.simulator.seeds import Part, SeedRuns, Spread, parts_of

from ..text.sentences import GLOSSARY, counted, cut, in_words, print_wrapped
from ..text.tables import print_table

_MOST_ROWS = 60
Shown = Callable[[int], str]
_Runs = Sequence[Run] | Sequence[SeedRuns]


def print_run(run: Run) -> None:
    print_wrapped(summary_of({"": run}))
    print()
    print_run_tables(run)


def print_run_tables(run: Run, most: int = _MOST_ROWS) -> None:
    print_wrapped(run.assumed)
    if run.of_seeds:
        print_wrapped(f"shown: {run.of_seeds}")
    rows = chapter_rows(run)
    if len(rows) > most:
        half = most // 2
        print(f"{len(rows)} rebalances and events; here are the first {half} and the last {half}")
        rows = [*rows[:half], ["…"] + [""] * (len(rows[0]) - 1), *rows[-half:]]
    columns = chapter_columns(run)
    print_table(columns, rows, left=[1, len(columns) - 1])
    print_totals({"": run})
    for name, why in run.crashed.items():
        print(f"{name} stopped: {why}")
    print(GLOSSARY)


def print_comparison(runs: Mapping[str, Run]) -> None:
    print_wrapped(summary_of(runs))
    print()
    _print_assumed([*runs.values()])
    parts = {name: list(parts_of(run)) for name, run in runs.items()}
    by_event = len(next(iter(parts.values()))) >= len(parts)
    _print_settled(parts, settled_text, 40, by_event=by_event)
    print_totals(runs)


def summary_of(runs: Mapping[str, Run]) -> str:
    """Returns the title, then the summary of the run or, of several runs, a sentence that ranks
    them.
    """
    first, *others = runs.values()
    if not others:
        return f"{first.title}: {first.summary}"
    sums = {name: measure.totals(run) for name, run in runs.items()}
    figures = {
        name: (one.unavailable_ms, one.stopped_ms, one.rebalances) for name, one in sums.items()
    }
    events = [(one.at_ms, one.what) for one in measure.settlings(first)]
    return f"{first.title}{_away(events)}: {_ranked(figures, [*runs.values()])}"


def _away(events: Sequence[tuple[int, str]]) -> str:
    """Returns ", each away for 10 s" if members stop and start again, all for the same time."""
    pairs = [
        (later - at, what.removeprefix("stop "), then.removeprefix("start "))
        for (at, what), (later, then) in pairwise(events)
        if what.startswith("stop ")
    ]
    if len({ms for ms, _, _ in pairs}) != 1 or any(left != back for _, left, back in pairs):
        return ""
    return f", {'each ' * (len(pairs) > 1)}away for {pairs[0][0] / 1000:g} s"


def _ranked(figures: Mapping[str, tuple[int | None, ...]], runs: _Runs) -> str:
    """Returns a sentence on the run with the fewest partition-seconds without a reader.

    `figures` holds, for each run: partition-ms without a reader, member-ms stopped, rebalances. If
    the runs differ in their costs, which nobody chooses, the sentence advises nothing.
    """
    held = runs[0].held
    ranked = sorted(figures.items(), key=lambda one: [figure or 0 for figure in one[1]])
    waits = f": no rebalance, its {held}s wait for their member"
    (best, least), *others = [
        (name, f"{seconds(unread)}{waits if unread and not rebalances else ''}")
        for name, (unread, _, rebalances) in ranked
    ]
    more = ", ".join(f"{name} {text}" for name, text in others)
    idle = f"{held}-seconds {measure.without_reader(held)}"
    is_advice = all(one.assumed == runs[0].assumed for one in runs)
    said = f"{best} leaves the fewest {idle}: {least} ({more})."
    if is_advice:
        holds_if = start_condition(runs[0].assumed, "--costs 200ms/100ms")
        said = f"{holds_if}, take {best}, with the fewest {idle}: {least} ({more})."
    prices = {
        name: f"{seconds(ms)} member-seconds in {counted(count or 0, 'rebalance')}"
        for name, (_, ms, count) in ranked
        if seconds(ms) != "0.0"
    }
    only = "only " if len(prices) < len(ranked) else ""
    if is_advice and (price := prices.pop(best, "")):
        none = "" if prices else f", under {in_words([name for name, _ in others])} none"
        said, only = f"{said} Its price: running members stop for {price}{none}.", "also "
    texts = ", ".join(f"{name} ({price})" for name, price in prices.items())
    return f"{said} Running members stop {only}under {texts}." if texts else said


def seconds(ms: int | None) -> str:
    return f"{(ms or 0) / 1000:,.1f}"


def _print_assumed(runs: _Runs) -> None:
    if all(one.assumed == runs[0].assumed for one in runs):
        print_wrapped(runs[0].assumed)


def chapter_columns(run: Run) -> list[str]:
    """Returns the headings of `chapter_rows`; "no target s" are the seconds until the heartbeat
    that computes a target.
    """
    numbers = ["epoch", "targets", "no target s"] if run.has_epochs else ["generation", "rounds"]
    return ["at s", "because", *numbers, "took s", unread(run.held), "members that stopped"]


def chapter_rows(run: Run) -> list[list[str]]:
    """Returns a row for each rebalance, and for other events from 50 partition-ms unread on."""
    stopped, unread_between = measure.stops_of(run), measure.unavailability(run)
    rows = []
    for one in measure.chapters(run):
        unread_ms = unread_between(one.from_ms, one.to_ms)
        row = [f"{one.from_ms / 1000:,.1f}", cut(one.what, 34)]
        if one.rebalance is not None:
            took = one.rebalance.duration_ms
            row += [str(one.rebalance.generation_id), str(one.rebalance.rounds)]
            row += [f"{one.rebalance.untargeted_ms / 1000:,.2f}"] if run.has_epochs else []
            row += ["not over" if took is None else f"{took / 1000:,.2f}"]
            who = stopped_text(stopped.get(one.rebalance.number, []))
        elif unread_ms < 50:
            continue
        else:
            row, who = [*row, *[""] * (4 if run.has_epochs else 3)], ""
        rows.append([*row, f"{unread_ms / 1000:,.1f}", who])
    return rows


def stopped_text(stopped: Sequence[measure.Stopped]) -> str:
    """Returns how many members stopped, and the longest time in seconds; "" if none did."""
    if not stopped:
        return ""
    longest = max(one.to_ms - one.from_ms for one in stopped)
    return f"{len({one.member for one in stopped})}, up to {longest / 1000:,.1f} s"


def unread(held: str) -> str:
    """Returns the heading for times in which no member reads a partition or runs a task."""
    return "task-s idle" if held == "task" else "partition-s without reader"


def print_totals(runs: Mapping[str, Run]) -> None:
    every = {name: measure.totals(run) for name, run in runs.items()}
    first = next(iter(every.values()))
    start = "never" if first.start_up_ms is None else f"{first.start_up_ms / 1000:,.1f} s"
    print(f"after the start-up ({start}):")
    held = next(iter(runs.values())).held
    rows = [[name, *total_cells(one, held)] for name, one in every.items()]
    print_table(["", *total_columns(held)], rows)


def _figures(held: str) -> list[tuple[str, str, Shown]]:
    """Returns the columns of totals: title, field of `Totals`, function that shows its value. If
    tasks are held, no column counts records.
    """
    return [
        ("rebalances", "rebalances", str),
        ("moves", "moves", str),
        (unread(held), "unavailable_ms", seconds),
        ("longest s", "longest_gap_ms", seconds),
        ("member-s stopped", "stopped_ms", seconds),
        *([] if held == "task" else [("records behind", "records_behind", "{:,}".format)]),
        ("stable at s", "settled_ms", seconds),
    ]


def total_columns(held: str) -> list[str]:
    return [title for title, _, _ in _figures(held)]


def total_cells(one: measure.Totals, held: str) -> list[str]:
    values = ((getattr(one, name), shown) for _, name, shown in _figures(held))
    return ["never" if value is None else shown(value) for value, shown in values]


def _print_settled(
    parts: Mapping[str, Sequence[Part[Any]]],
    text_of: Callable[[Part[Any]], str],
    most: int,
    *,
    by_event: bool,
) -> None:
    """Prints the time to settle after each event; the event's name is cut to `most` characters.

    A row is an event (`by_event`), or a run. Events at one time count as one.
    """
    events = next(iter(parts.values()))
    what = [f"{cut(each.what, most)} at {seconds(each.at_ms)} s" for each in events]
    cells = {name: [*map(text_of, each)] for name, each in parts.items()}
    if not by_event:
        rows = [[name, *each] for name, each in cells.items()]
    else:
        rows = [[name, *each] for name, *each in zip(what, *cells.values(), strict=True)]
    if events:
        print_table(["stable after s", *(cells if by_event else what)], rows)


def settled_text(one: Part[int | None]) -> str:
    """Returns the seconds from an event until the group was stable, or why there are none."""
    if one.settled_in_ms is None:
        return _not_stable(one.rebalances)
    return f"{one.settled_in_ms / 1000:,.2f}"


def _not_stable(rebalances: int | None) -> str:
    """Returns why no time until the group was stable is known. Without a rebalance, there is
    nothing to wait for: a static member that is away causes none.
    """
    return "not yet" if rebalances else "no rebalance"


def print_seeds(runs: Mapping[str, SeedRuns]) -> None:
    """Prints events and totals over several seeds, of one run or of several runs side by side."""
    first = next(iter(runs.values()))
    text = f"{first.title}: {first.summary}"
    if len(runs) > 1:
        events = [(one.at_ms, one.what) for one in first.part_spreads()]
        spreads = {name: one.spreads() for name, one in runs.items()}
        ranked = ("unavailable_ms", "stopped_ms", "rebalances")
        medians = {name: tuple(one[of].median for of in ranked) for name, one in spreads.items()}
        text = f"{first.title}{_away(events)}: {_ranked(medians, [*runs.values()])}"
    print_wrapped(text)
    print()
    _print_assumed([*runs.values()])
    seeds = f"seed {first.seeds[0]}"
    if len(first.seeds) > 1:
        seeds = f"seeds {first.seeds[0]} to {first.seeds[-1]}"
    print(f"{seeds}: least–most (median); one number where all are equal")
    if len(runs) == 1:
        _print_parts(first)
    else:
        parts = {name: one.part_spreads() for name, one in runs.items()}
        _print_settled(parts, _settled_spread, 30, by_event=True)
    _print_totals(runs)
    for name, one in runs.items():
        for seed, crashed in zip(one.seeds, one.crashed, strict=True):
            for member, why in crashed.items():
                print(" ".join(filter(None, (name, f"seed {seed}: {member} stopped: {why}"))))
    print(GLOSSARY)


def spread_text(one: Spread, shown: Shown, never: str = "never") -> str:
    """Returns text such as `2.8–3.4 (3.1)`, or `7`; `never` stands for runs without a figure."""
    if one.least is None or one.median is None or one.most is None:
        return never if one.never else "-"
    if one.is_one or (not one.never and shown(one.least) == shown(one.most)):
        return shown(one.least)
    most = never if one.never else shown(one.most)
    return f"{shown(one.least)}–{most} ({shown(one.median)})"


def _settled_spread(one: Part[Spread]) -> str:
    return spread_text(one.settled_in_ms, seconds, _not_stable(one.rebalances.most))


def _print_parts(runs: SeedRuns) -> None:
    columns = ["at s", "what happens", "stable after s", "rebalances", unread(runs.held)]
    columns += ["members that stopped", "up to s"]
    rows = [
        [
            spread_text(Spread.of(part.at_ms for part in each), seconds),
            cut(one.what, 22),
            _settled_spread(one),
            spread_text(one.rebalances, str),
            spread_text(one.unavailable_ms, seconds),
            spread_text(one.stopped, str),
            spread_text(one.longest_stop_ms, seconds),
        ]
        for one, each in zip(runs.part_spreads(), zip(*runs.parts, strict=True), strict=True)
    ]
    if rows:
        print_table(columns, rows, left=[1])


def _print_totals(runs: Mapping[str, SeedRuns]) -> None:
    held = next(iter(runs.values())).held
    spreads = {name: one.spreads() for name, one in runs.items()}
    rows = [
        [title, *(spread_text(each[field], shown) for each in spreads.values())]
        for title, field, shown in _figures(held)
    ]
    print_table(["after the start-up", *runs], rows)
