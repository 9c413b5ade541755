# SPDX-License-Identifier: Apache-2.0
"""`kafka-rebalance fleet summary`: plans each change by itself for all groups; writes a page.

OUTPUT/plans      a row for each group and change, with the columns EACH_CHANGE_SCHEMA
OUTPUT/summary    the columns SUMMARY_SCHEMA
DIR/report.html   the page (DIR: --report, or OUTPUT)
DIR/worst         the contract lines of the groups that the page lists as the worst
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from kafka_rebalance.bulk.output_directory import whole_directory
from kafka_rebalance.bulk.paths import local
from kafka_rebalance.errors import GroupError
from kafka_rebalance.notes.lost_rack import loses_rack
from kafka_rebalance.report.fleet import (
    FleetReport,
    Totals,
    WorstGroup,
    fleet_page,
    group_name,
    worst_changes,
)
from kafka_rebalance.report.text.sentences import counted, print_note, print_wrapped

from . import of_errors
from .fleet_jobs import command
from .lines import written

if TYPE_CHECKING:
    from .fleet_here import Here
    from .fleet_spark import OnSpark

Fleet: TypeAlias = "OnSpark | Here"

_WORST = 20
_AT_LEAST = 5
"""The page lists up to this many groups even if the balance of each is the best possible."""
_NAMED = 3
"""The largest number of groups that the first sentence names for each harm."""
_MOST_RACKS = 12
_MOST_CLUSTERS = 50
_USUAL = ("add-members=1", "remove-members=1")


def summarise(fleet: Fleet) -> int:
    """Runs the job, and prints its counts; returns the exit code."""
    args, done = fleet.args, write_summary(fleet)
    if args.json:
        print(json.dumps(done))
    else:
        asked = f"{counted(done['groups'], 'group')}, {counted(len(done['changes']), 'change')}"
        print_wrapped(done["summary"])
        print()
        print(f"{asked}, in {done['seconds']} s")
        if done["most_frequent_error"] is not None:
            print(_cause(done["most_frequent_error"]))
        for name, count in done["left_out"].items():
            print(f"left out: {count:,} {name}")
        print(f"written to {args.output}; the page: {done['report']}")
    return of_errors(done["errors"])


def write_summary(fleet: Fleet) -> dict[str, Any]:
    """Runs the job with the command's `args`, and writes the page; returns the counts."""
    args = fleet.args
    here = local(args.output, plain=fleet.plain)
    if args.report is None and here is None:
        problem = f"missing; {args.output} is not a local directory, and the page needs one"
        raise GroupError("--report", problem)
    directory = None if args.report is None else Path(args.report)
    if here is None:
        assert directory is not None
        return _write(fleet, args.output, directory)
    with whole_directory(here, overwrite=args.overwrite) as written:
        written.mkdir()
        return _write(fleet, str(written), directory or written)


def _write(fleet: Fleet, output: str, directory: Path) -> dict[str, Any]:
    args, start = fleet.args, time.perf_counter()
    losing = args.racks != "" or loses_rack(map(str, args.changes))
    found = fleet.racks() if losing else {}
    lost = {f"remove-rack={rack}": rack for rack in _racks(args, found)}
    given = [str(change) for change in args.changes] or list(_USUAL)
    changes = list(dict.fromkeys(["", *given, *lost]))
    fleet.plan(changes, output)
    rows, totals = fleet.summary(output, _WORST)
    # If a group is equally bad after several changes, the page shows the change named first.
    rows = sorted(rows, key=lambda row: changes.index(row["change"]))
    now = totals[""] if "" in totals else Counter()
    error = fleet.most_frequent_error() if now["errors"] else None
    seconds = round(time.perf_counter() - start, 1)
    left_out = fleet.left_out()
    every = [totals[change] for change in changes if change in totals]
    shown = {"uneven": ""} | {name: one["change"] for name, one in worst_changes(every).items()}
    report = FleetReport(
        f"{counted(now['groups'], 'group')}: balance, moves and racks",
        _notes(args, now, error, left_out),
        fleet.bins("spread_before"),
        fleet.bins("spread_possible"),
        every,
        {rack: totals[change] for change, rack in lost.items() if change in totals},
        _clusters(rows),
        _keep_worst(fleet, rows, directory),
        {
            figure: [
                (group_name(row), row["figure"]) for row in fleet.worst(figure, _NAMED, change)
            ]
            for figure, change in shown.items()
        },
        found.get("", 0),
    )
    directory.mkdir(parents=True, exist_ok=True)
    with written(directory / "report.html") as path:
        path.write_text(fleet_page(report), encoding="utf-8")
    return {
        "summary": report.summary,
        "groups": now["groups"],
        "errors": now["errors"],
        "most_frequent_error": error,
        "uneven": now["uneven"],
        "changes": changes,
        "left_out": left_out,
        "seconds": seconds,
        "output": args.output,
        "report": str(Path(args.report or args.output) / "report.html"),
    }


def _racks(args: argparse.Namespace, groups: Mapping[str, int]) -> list[str]:
    if args.racks is not None:
        return [rack for rack in args.racks.split(",") if rack]
    found = sorted(filter(None, groups))
    if len(found) > _MOST_RACKS:
        problem = f"{len(found)} racks; only the first {_MOST_RACKS} are lost, --racks names others"
        print_note(problem)
    return found[:_MOST_RACKS]


def _cause(most: dict[str, Any]) -> str:
    """Returns a sentence on the most frequent error, with advice if the assignor is missing."""
    error = most["error"]
    if error.startswith("assignor: missing"):
        error = "assignor: missing; --assignor NAME plays every group with this assignor"
    return f"most frequent error ({counted(most['groups'], 'group')}): {error}"


def _notes(
    args: argparse.Namespace,
    now: Totals,
    error: dict[str, Any] | None,
    left_out: dict[str, int],
) -> list[str]:
    assignor = f"as if all ran {args.assignor}" if args.assignor else "with their own assignors"
    notes = [
        f"{args.input}: {counted(now['groups'], 'group')}, {assignor}.",
        "Assignors are those of Java's clients, unless a name begins with another library.",
    ]
    if error is not None:
        notes.append(f"{counted(now['errors'], 'group')} with an error, in no other figure.")
        cause = _cause(error)
        notes.append(f"{cause[0].upper()}{cause[1:]}.")
    if left_out:
        words = ", ".join(f"{count:,} {name}" for name, count in left_out.items())
        notes.append(f"Left out: {words}.")
    return notes


def _clusters(rows: Sequence[Totals]) -> list[Totals]:
    now = [row for row in rows if row["change"] == "" and "cluster" in row]
    return sorted(now, key=lambda row: (-row["groups"], row["cluster"] or ""))[:_MOST_CLUSTERS]


def _keep_worst(fleet: Fleet, rows: Sequence[Any], directory: Path) -> list[WorstGroup]:
    """Returns the worst groups, and writes the contract line of each to a file of its own."""
    args = fleet.args
    found = [(row, one) for row in rows for one in row["worst"] or () if any(_badness(one)[:3])]
    has_cluster = bool(rows) and "cluster" in rows[0]
    if has_cluster:
        found.sort(key=lambda pair: pair[0]["cluster"] or "")
    found.sort(key=lambda pair: _badness(pair[1]), reverse=True)
    first: dict[tuple[str | None, str], tuple[Any, Any]] = {}
    for row, one in found:
        cluster = row["cluster"] if has_cluster else None
        first.setdefault((cluster, one["group_id"]), (row, one))
    uneven = sum(_badness(one)[0] > 0 for _, one in first.values())
    kept = list(first.items())[: min(_WORST, max(uneven, _AT_LEAST))]
    lines = fleet.contract_lines([key for key, _ in kept])
    place = directory / "worst"
    place.mkdir(parents=True, exist_ok=True)
    final = Path(args.report or args.output) / "worst"
    worst = []
    for number, (key, (row, one)) in enumerate(kept, 1):
        name = f"{number:02}.jsonl"
        (place / name).write_text(f"{lines[key]}\n", encoding="utf-8")
        changes = [row["change"]] if row["change"] else []
        worst.append(
            WorstGroup(
                key[0],
                one["group_id"],
                row["change"],
                one["spread_after"],
                one["spread_possible"],
                one["unavailable_rounds"] + one["waiting"] + one["leaderless"],
                one["moves"],
                command(args, final / name, None, changes),
            )
        )
    return worst


def _badness(one: Any) -> tuple[int, int, int, str]:
    above = one["spread_after"] - one["spread_possible"]
    stopped = one["unavailable_rounds"] + one["waiting"] + one["leaderless"]
    return above, stopped, one["moves"], one["group_id"]
