# SPDX-License-Identifier: Apache-2.0
"""Prints the simulated course of a classic Kafka Streams application."""

from collections.abc import Iterator

from kafka_rebalance.applications.plan import ApplicationPlan
from kafka_rebalance.simulator import measure
from kafka_rebalance.simulator.from_application import BEFORE_MS
from kafka_rebalance.simulator.run import Run

from ..groups.application import print_assumed, tasks_text, time_text
from ..text.sentences import counted, print_wrapped
from ..text.tables import print_filled_table
from .run import print_run_tables

_MOST_ROWS, _MOST_LAGS = 20, 6


def summary(plan: ApplicationPlan, run: Run) -> str:
    """Returns a sentence: when the application is stable, how many tasks are idle, which warm-ups
    never end.
    """
    course, sums = plan.likeliest, measure.totals(run)
    probings = "without a probing rebalance"
    if course.probings:
        probings = f"after {counted(course.probings, 'probing rebalance')}"
    if course.settled and sums.settled_ms is not None:
        text = f"stable after {time_text(sums.settled_ms - BEFORE_MS)}, {probings}"
    else:
        copies = (*course.calls[-1].warming, *course.calls[-1].restored)
        late = counted(max((one.records for one in copies), default=0), "record")
        text = f"never stable: {probings}, in {time_text(run.until_ms)}, copies of "
        text += f"{tasks_text(one.task for one in copies)} are up to {late} behind"
    tasks = counted(len({gap.partition for gap in run.gaps}), "task")
    idle = f"{tasks} idle for up to {time_text(sums.longest_gap_ms)}"
    text += f"; {idle if run.gaps else 'no task is idle'}"
    if len(plan.courses) > 1:
        chance = f"{course.probability:.0%}"
        text += f". The id of the new process is random; its likeliest rank ({chance}) is played"
    return f"{run.title}: {text}."


def print_application_run(plan: ApplicationPlan, run: Run) -> None:
    """Prints a summary, the lag of each copy, each rebalance, and the assumptions."""
    print_wrapped(summary(plan, run))
    if rows := [*_copies(plan, run)]:
        columns = ("task", "at", "copy", "records behind after each rebalance", "runs there after")
        print_filled_table(columns, rows[:_MOST_ROWS])
    if len(rows) > _MOST_ROWS:
        print(f"{len(rows) - _MOST_ROWS} more copies are in the output of --json")
    print_run_tables(run, most=_MOST_ROWS)
    print_assumed(plan.replay)


def _copies(plan: ApplicationPlan, run: Run) -> Iterator[tuple[str, ...]]:
    """Yields a row for each copy that is restored: its lag in records after each rebalance."""
    found: dict[tuple[str, str, str], list[int]] = {}
    for phase in plan.likeliest.phases:
        last = phase[-1]
        kinds = (last.restored, "restored first"), (last.warming, "warms up")
        for copies, kind in (*kinds, (last.standby, "standby")):
            for one in copies:
                place = str(one.task), plan.replay.names.get(one.process, one.process), kind
                found.setdefault(place, []).append(one.records)
    starts = {(hold.partition, hold.member): hold.from_ms for hold in run.holds}
    for (task, process, kind), lags in found.items():
        shown = [f"{one:,}" for one in lags]
        if len(shown) > _MOST_LAGS:
            shown = [*shown[: _MOST_LAGS - 2], "…", shown[-1]]
        start = starts.get((task, process))
        runs = "" if kind == "standby" else "never"
        runs = runs if start is None else time_text(start - BEFORE_MS)
        yield task, process, kind, "; ".join(shown), runs
