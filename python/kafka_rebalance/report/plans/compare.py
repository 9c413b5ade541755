# SPDX-License-Identifier: Apache-2.0
"""Prints comparisons at most 100 characters wide; settings to paste are never wrapped."""

from collections import Counter
from collections.abc import Mapping, Sequence

from kafka_rebalance.assignors.interface import RebalanceProtocol
from kafka_rebalance.assignors.registry import SERVER_SIDE, protocol_of
from kafka_rebalance.group.model import shell_option
from kafka_rebalance.plans.changes.edits import AS_IT_IS
from kafka_rebalance.plans.clients import class_name
from kafka_rebalance.plans.figures import Figures, share_text
from kafka_rebalance.plans.rounds import lists_eager
from kafka_rebalance.simulator.timing import Timed
from kafka_rebalance.switching.comparison import Comparison
from kafka_rebalance.switching.recommendation import Candidate, alone_label, lacking_clients

from ..text.sentences import GLOSSARY, counted, cut, in_words, print_wrapped
from ..text.tables import print_filled_table, print_table
from .figures import its, median_text, moves_text, seconds_text, waits
from .recipes import print_completion, print_migration

Times = Mapping[str, Timed]


def print_comparison(
    comparison: Comparison, times: Times, assumed: str, given: str = "FILE"
) -> None:
    """Prints all assignors, the recommendation with its reason, and how to switch to it.

    `times` holds the simulated figures in seconds of each assignor, and of `comparison.alone` under
    its label. `assumed` names the simulation's assumptions or, if `times` is empty, the reason why
    there are no figures. `given` is the part of the command line that selects input and group.
    """
    dearer, why = _clock(comparison, times)
    print_wrapped(f"{comparison.summary}{dearer}")
    print()
    print_wrapped(comparison.title, "", "  ")
    rows = [
        _row(label, one, times.get(label.removesuffix(" <"))) for label, one in comparison.rows()
    ]
    columns = (
        *("assignor", "rebalances", "moves (best)", "no reader"),
        *("partition-s", "stable s", "per member", "best possible", "in rack"),
        "fullest / mean load",
    )
    print_filled_table(columns, rows, right=columns[1:], whole=True, empty=("", "-"))
    notes = _table_notes(comparison, times, assumed)
    for note in notes:
        print_wrapped(note)
    changes = comparison.recommended is not None and not comparison.keeps_assignor
    if notes and (why or changes or comparison.alone is not None):
        print()
    if why:
        print_wrapped(why)
    if why.endswith(":"):  # a command that compares eager with cooperative follows
        source = given if given.startswith("--") else f"--from {given}"
        options = [shell_option("--change", one) for one in comparison.changes]
        options += ["--compare eager,cooperative", "--costs 200ms/100ms"]
        print(f"     kafka-rebalance simulate {source} {' '.join(options)}")
    _print_change(comparison, given)


_IN_SECONDS = (
    "partition-s: partition-seconds without a reader; stable s: seconds until no rebalance is "
    "left. Both are simulated, as `simulate --from` does it"
)


def _table_notes(comparison: Comparison, times: Times, assumed: str) -> list[str]:
    """Returns the lines below the table: on its seconds, on members that are down, and each
    assignor's error.
    """
    notes = [f"No figures in seconds: {assumed}. {GLOSSARY}"] if assumed else []
    if times:
        notes = [f"{_IN_SECONDS}: {assumed}. --json has the ranges. {GLOSSARY}"]
    candidates = comparison.candidates
    if waiting := max((one.figures.waiting for one in candidates if one.figures), default=0):
        while_ = f"while {its(waiting)} member is down; rounds do not count that time."
        notes.append(f"Under every assignor {waits(waiting)} {while_}")
    return notes + [f"{one.assignor}: {one.error}" for one in candidates if one.error]


def _print_change(comparison: Comparison, given: str) -> None:
    if not comparison.keeps_assignor and comparison.completion is not None:
        print_completion(comparison.completion)
    if comparison.switch_protocol is not None:
        protocol = comparison.switch_protocol.partition("/")[0]
        needs = f"{comparison.recommended} needs group.protocol={protocol}"
        print_wrapped(f"{needs}. This plans the switch and lists settings:")
        switch = shell_option("--switch-protocol", comparison.switch_protocol)
        print(f"  kafka-rebalance plan {given} {switch}")
    if comparison.migration is not None:
        print_migration(comparison.migration, comparison.group.group_id)


def _clock(comparison: Comparison, times: Times) -> tuple[str, str]:
    """Returns two strings if another assignor than the recommended one leaves partitions unread for
    less time; else ("", ""). The first is a sentence with the figures, which follows the summary;
    the second is the reason.
    """
    group = comparison.group
    recommended = comparison.recommended or ""
    if comparison.keeps_assignor and comparison.alone is not None:
        recommended = alone_label(recommended)
    known = {
        name: one.unread.median
        for name, one in times.items()
        if one.unread.median is not None and not lacking_clients(group, name)
    }
    if recommended not in known:
        return "", ""
    least = seconds_text(min(known.values()))
    best = [name for name, unread in known.items() if seconds_text(unread) == least]
    if recommended in best:
        return "", ""
    eager = {
        name != alone_label(group.assignor or "")
        and (lists_eager(group, name) or protocol_of(name) is RebalanceProtocol.EAGER)
        for name in (*best, recommended)
    }
    dearer = (
        " But where partitions start and stop in 0 ms (assumed; most take longer): "
        f"{seconds_text(known[recommended])} partition-seconds without a reader under "
        f"{recommended}, {least} under {in_words(best)}."
    )
    why = "The recommendation counts partitions and moves"
    if len(eager) == 1 or recommended in SERVER_SIDE:
        return dearer, f"{why}; seconds depend on what is assumed."
    return dearer, (
        f"{why}: an eager round is short but stops all, a cooperative one lets moving partitions "
        "wait for the next. If starts take time, it can be the other way round:"
    )


def _row(name: str, one: Candidate, timed: Timed | None) -> tuple[str, ...]:
    if one.figures is None:
        return (name, *[""] * 7, "-", "")
    figures = one.figures
    return (
        name,
        str(figures.rounds) if figures.settled else "never settles",
        moves_text(figures),
        str(figures.unavailable),
        "" if timed is None else median_text(timed.unread),
        "" if timed is None else median_text(timed.settled),
        figures.balance_after.least_to_most,
        figures.balance_possible.least_to_most,
        share_text(figures.rack_share_after),
        "" if one.load is None else f"{one.load:.2f}",
    )


# Several groups -----------------------------------------------------------------------------------


def print_comparisons(comparisons: Sequence[Comparison]) -> None:
    """Prints a summary of all groups, then a line for each group."""
    steps = (one.migration for one in comparisons)
    prices = [None if one is None else (one.rebalances, one.moves) for one in steps]
    print_wrapped(_answer(comparisons, prices))
    print_table(
        ("group", "runs", "recommended", "per member", "no reader", "rebalances / moves to switch"),
        [_line(one, price) for one, price in zip(comparisons, prices, strict=True)],
        whole=True,
        names=3,
    )


_Price = tuple[int, int | None]
"""(rebalances, moves) of a switch; moves is None if the group is too large to be played."""


def _answer(comparisons: Sequence[Comparison], prices: Sequence[_Price | None]) -> str:
    """Returns a sentence such as `19 groups: 12 switch to cooperative-sticky; 7 keep theirs;
    getting there costs 200 rebalances and 3,000 moves once.`
    """
    advice: Counter[tuple[str, str]] = Counter()
    for one in comparisons:
        if one.recommended is None:
            advice["has no recommendation", "have no recommendation"] += 1
        elif not one.keeps_assignor:
            name = class_name(one.group, one.recommended)
            advice[f"switches to {name}", f"switch to {name}"] += 1
        elif one.alone is None:
            advice["keeps its own", "keep theirs"] += 1
        else:
            advice["lists its own alone", "list theirs alone"] += 1
    parts = [f"{number} {words[number > 1]}" for words, number in advice.most_common()]
    parts += _gained(comparisons)
    if paid := [one for one in prices if one is not None]:
        rebalances, moves = (sum(one or 0 for one in each) for each in zip(*paid, strict=True))
        least = "at least " if any(one is None for _, one in paid) else ""
        costs = f"{counted(rebalances, 'rebalance')} and {least}{counted(moves, 'move')}"
        parts.append(f"getting there costs {costs} once")
    return f"{counted(len(comparisons), 'group')}: {'; '.join(parts)}."


def _gained(comparisons: Sequence[Comparison]) -> list[str]:
    """Returns clauses on the groups that switch: the partitions without a reader before and after,
    the groups that gain and lose most, and how many groups become better balanced.
    """
    stops, evener, text = dict[str, tuple[int, int]](), 0, ""
    for one in comparisons:
        own, best = _both(one)
        if own is not best and own is not None and best is not None:
            stops[one.group.group_id] = own.unavailable, best.unavailable
            spreads = [each.balance_after.max - each.balance_after.min for each in (own, best)]
            evener += spreads[1] < spreads[0]
    if not stops:
        return []
    old, new = map(sum, zip(*stops.values(), strict=True))
    ranked = sorted(stops, key=lambda id_: stops[id_][1] - stops[id_][0])
    for ends, group_id in (("gains", ranked[0]), ("loses", ranked[-1])):
        before, after = stops[group_id]
        if len(stops) > 1 and (after < before if ends == "gains" else after > before):
            text += f"; {cut(group_id, 60)} {ends} most: {after:,} instead of {before:,}"
    played = any(one.changes for one in comparisons)
    there = "the changes then leave" if played else f"{AS_IT_IS.cause} then leaves"
    if not played and new and evener:
        there += ", the first time,"
    stop = f"{there} {counted(new, 'partition')} without a reader instead of {old:,}"
    stop += f" (how long: --group){text}"
    said = [stop] if old != new else []
    return said + (
        [f"{counted(evener, 'group')} end{'s' * (evener == 1)} more even"] * (evener > 0)
    )


def _both(comparison: Comparison) -> list[Figures | None]:
    """Returns the figures of the group's own assignor, and of the recommended one."""
    by_name = {one.assignor: one.figures for one in comparison.candidates}
    both = [by_name.get(name or "") for name in (comparison.group.assignor, comparison.recommended)]
    if comparison.keeps_assignor and comparison.alone is not None:
        both[1] = comparison.alone.figures
    return both


def _line(comparison: Comparison, price: _Price | None) -> tuple[str, ...]:
    both = _both(comparison)
    recommended = class_name(comparison.group, comparison.recommended) or "-"
    if comparison.keeps_assignor and comparison.alone is not None:
        recommended = f"{recommended} alone"
    spreads = ["-" if one is None else one.balance_after.least_to_most for one in both]
    silent = ["-" if one is None else str(one.unavailable) for one in both]
    return (
        cut(comparison.group.group_id, 60),
        class_name(comparison.group, comparison.group.assignor) or "-",
        recommended,
        " -> ".join(spreads),
        " -> ".join(silent),
        "" if price is None else f"{price[0]:,} / {'?' if price[1] is None else f'{price[1]:,}'}",
    )
