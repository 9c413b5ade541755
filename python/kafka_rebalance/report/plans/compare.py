# SPDX-License-Identifier: Apache-2.0
"""Prints comparisons at most 100 characters wide; settings to paste are never wrapped."""

import shlex
from collections.abc import Mapping, Sequence

from kafka_rebalance.assignors.registry import protocol_name
from kafka_rebalance.plans import Bounce, Candidate, Comparison, Migration, Recipe
from kafka_rebalance.plans.clients import CLIENTS
from kafka_rebalance.plans.figures import share_text
from kafka_rebalance.plans.rounds import protocol_of
from kafka_rebalance.report.text.names import counted, cut
from kafka_rebalance.report.text.tables import print_table
from kafka_rebalance.simulator.timing import Timed

from .plan import its, print_wrapped, waits
from .times import median_text, seconds_text

Times = Mapping[str, Timed]


def print_comparison(comparison: Comparison, times: Times, assumed: str) -> None:
    """Prints all assignors, the recommendation with its reason, and how to change to it.

    `times` has the simulated assignors' figures in seconds. `assumed` is the text of the
    simulation's assumptions; without times, it is the reason why there are none.
    """
    group = comparison.group
    print(comparison.title)
    rows = [
        _row(one, times.get(one.assignor), comparison.recommended) for one in comparison.candidates
    ]
    columns = (
        *("assignor", "rounds", "moves (least)", "no reader"),
        *("unread", "settles", "a member", "best", "in rack"),
    )
    there = [
        i for i in range(len(columns)) if i == 0 or any(row[i] not in ("", "-") for row in rows)
    ]
    shown = [[row[i] for i in there] for row in rows]
    print_table([columns[i] for i in there], shown, whole=True)
    if times:
        print_wrapped(
            "unread: partition-seconds without a reader; settles: seconds. Both are simulated, as "
            f"`simulate --from` does it: {assumed}."
        )
    elif assumed:
        print_wrapped(f"No figures in seconds: {assumed}.")
    waiting = max((one.figures.waiting for one in comparison.candidates if one.figures), default=0)
    if waiting:
        print_wrapped(
            f"Under every assignor {waits(waiting)} while {its(waiting)} member is down; rounds do "
            "not count that time."
        )
    for one in comparison.candidates:
        if one.error is not None:
            print(f"{one.assignor}: {one.error}")
    print()
    print_wrapped(f"Recommended: {comparison.reason}.")
    _print_clock(comparison, times)
    migration = comparison.migration
    if migration is not None:
        print_migration(migration, group.group_id)
    print()


_LENGTHS = (
    " Rounds differ in length: an eager round stops all members, but only for a short time; in a "
    "cooperative group a moving partition waits for the second round."
)


def _print_clock(comparison: Comparison, times: Times) -> None:
    """Prints the assignor that is best in seconds, if it is better than the recommended one."""
    recommended = comparison.recommended or ""
    mine = times.get(recommended)
    if mine is None or mine.unread.median is None:
        return
    known = {
        name: one.unread.median for name, one in times.items() if one.unread.median is not None
    }
    name = min(known, key=lambda one: (known[one], one != comparison.group.assignor))
    if known[name] < mine.unread.median:
        print_wrapped(
            f"In seconds, {name} is best: {seconds_text(known[name])} partition-seconds unread, "
            f"{seconds_text(mine.unread.median)} under {comparison.recommended}."
            + (_LENGTHS if len({protocol_of(one) for one in (name, recommended)}) > 1 else "")
        )


def _row(one: Candidate, timed: Timed | None, recommended: str | None) -> tuple[str, ...]:
    name = f"{one.assignor}{' <' if one.assignor == recommended else ''}"
    if one.figures is None:
        return (name, *[""] * 7, "-")
    figures = one.figures
    return (
        name,
        str(figures.rounds) if figures.settled else "never settles",
        f"{figures.moves} ({figures.least_moves})",
        str(figures.unavailable),
        "" if timed is None else median_text(timed.unread),
        "" if timed is None else median_text(timed.settled),
        figures.balance_after.least_to_most,
        figures.balance_possible.least_to_most,
        share_text(figures.rack_share_after),
    )


# How to switch ------------------------------------------------------------------------------------


_HOW = "How to switch depends on the client library, and no client id shows it:"
_HOW_BY_BYTES = "How to switch, for each client library that the members' bytes fit:"


def print_migration(migration: Migration, group_id: str) -> None:
    """Prints the steps for each client library, with settings to paste."""
    if not migration.is_known and migration.recipes:
        print_wrapped(_HOW if len(migration.recipes) == len(CLIENTS) else _HOW_BY_BYTES)
    for one in migration.recipes:
        _print_recipe(one, migration)
    if not migration.recipes:
        for number, bounce in enumerate(migration.bounces, 1):
            print_wrapped(f"{number}. {_cost(bounce, migration)}", "  ", "   ")
    ways = {one.way for one in migration.recipes}
    if migration.is_known and len(migration.recipes) > 1 and "stop all" in ways:
        print_wrapped("The members run several clients: stop all of them together.")
    if "stop all" in ways:
        print_wrapped(
            "The group keeps its offsets. To keep the old group as a way back, start the members "
            "with a new group id, and copy the offsets while all members are stopped:"
        )
        _print_settings(*copy_commands(group_id))


def copy_commands(group_id: str) -> tuple[str, str]:
    """Returns Kafka's commands that copy offsets to another group; all members must be stopped."""
    command = "kafka-consumer-groups.sh --bootstrap-server HOST:9092 --reset-offsets"
    old, new = shlex.quote(group_id), shlex.quote(f"{group_id}-2")
    return (
        f"{command} --group {old} --all-topics --to-current --dry-run --export > offsets.csv",
        f"{command} --group {new} --from-file offsets.csv --execute",
    )


def _print_recipe(one: Recipe, migration: Migration) -> None:
    client = "librdkafka (confluent-kafka and others)" if one.client == "librdkafka" else one.client
    if one.way == "none":
        print_wrapped(f"{client}: not possible, because it has no {_listed(migration)[1]}")
        return
    if one.way == "stop all":
        why = _no_rolling(one, migration)
        print_wrapped(f"{client}: {why}; stop all members, then start all with")
        _print_settings(one.needs, one.settings[0])
        return
    print_wrapped(f"{client}: two rolling bounces")
    for number, (setting, bounce) in enumerate(
        zip(one.settings, migration.bounces, strict=True), 1
    ):
        print_wrapped(f"{number}. {_cost(bounce, migration)}", "  ", "   ")
        _print_settings(one.needs if number == 1 else None, setting)
    if one.client == "Java" and migration.from_default is not None:
        print_wrapped(
            "Members with Kafka's default list already have both assignors, range first: they need "
            f"only step 2, {_counts(migration.from_default)}.",
            "  ",
        )


def _no_rolling(one: Recipe, migration: Migration) -> str:
    if one.client == "aiokafka":
        return "a member joins once for each assignor in its list"
    old, new = _listed(migration)
    return f"a list must not contain both {old} and {new}"


def _listed(migration: Migration) -> tuple[str, str]:
    """Returns both names as clients list them, without a library of this project's names."""
    return protocol_name(migration.old), protocol_name(migration.new)


def _print_settings(*lines: str | None) -> None:
    """Prints lines without wrapping, so that they can be copied."""
    for line in lines:
        if line is not None:
            print(f"     {line}")


def _counts(bounce: Bounce) -> str:
    least = "" if bounce.is_exact else "at least "
    restarts = counted(bounce.restarts, "restart")
    return f"{restarts}, {least}{counted(bounce.rebalances, 'rebalance')}"


def _cost(bounce: Bounce, migration: Migration) -> str:
    text = _counts(bounce)
    old, new = _listed(migration)
    if bounce.takes_over is not None:
        text += (
            f"; {old} assigns until the last member without {new} "
            f"{'leaves' if bounce.takes_over.endswith('leaves') else 'has returned'}, then "
            f"{new} assigns"
        )
    cooperative = "cooperative-sticky" in (new, old)
    if cooperative and len(bounce.assignors) > 1:
        text += "; members that list both are eager"
    elif cooperative and new == "cooperative-sticky":
        text += (
            "; a moving partition is revoked in one rebalance and gained in the next, and only "
            "moving partitions stop"
        )
    return text


# Several groups -----------------------------------------------------------------------------------


def print_comparisons(comparisons: Sequence[Comparison]) -> None:
    """Prints several groups, one on each line."""
    print_table(
        ("group", "runs", "recommended", "a member", "no reader"),
        [_line(one) for one in comparisons],
    )


def _line(comparison: Comparison) -> tuple[str, ...]:
    by_name = {one.assignor: one.figures for one in comparison.candidates}
    both = [by_name.get(name or "") for name in (comparison.group.assignor, comparison.recommended)]
    spreads = ["-" if one is None else one.balance_after.least_to_most for one in both]
    silent = ["-" if one is None else str(one.unavailable) for one in both]
    return (
        cut(comparison.group.group_id, 32),
        comparison.group.assignor or "-",
        comparison.recommended or "-",
        " -> ".join(spreads),
        " -> ".join(silent),
    )
