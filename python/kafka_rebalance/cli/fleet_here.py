# SPDX-License-Identifier: Apache-2.0
"""Runs the jobs of `fleet` on local files of contract lines, in this process: they finish seconds
before Spark could start. Spark writes equal files and reports, but does not count the groups that
need a second rebalance.
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kafka_rebalance.bulk import paths
from kafka_rebalance.bulk.calls import assign_call, compare_call, plan_call
from kafka_rebalance.bulk.local_files import answer_files, files_of, read_columns
from kafka_rebalance.bulk.plan_totals import READ, PlanTotals, write_totals
from kafka_rebalance.bulk.splits import Split, line_batches
from kafka_rebalance.errors import NO_MEMBERS
from kafka_rebalance.report.fleet import Bin

from .fleet_jobs import BETTER, RECOMMENDABLE, WITHHOLDING, asked
from .lines import items_of

if TYPE_CHECKING:
    from kafka_rebalance.bulk.parts import Done

MOST_BYTES = 100_000_000
"""If INPUT has at least this many bytes, Spark runs the job."""


def files_here(args: argparse.Namespace) -> list[Split] | None:
    """Returns the files if this process can run the job, None if Spark must run it."""
    spark_is_asked = (
        args.master is not None
        or args.remote is not None
        or args.direct is False
        or args.topics is not None
        or (args.direct and args.word == "summary")
    )
    if spark_is_asked or paths.is_pattern(args.input):
        return None
    if paths.local(args.input) is None or paths.local(args.output) is None:
        return None
    if (args.format or paths.format_of(args.input)) != paths.LINES:
        return None
    files = files_of(args.input)
    return files if files and sum(file.end for file in files) < MOST_BYTES else None


class Here:
    """The fleet in these local files; `OnSpark` is its twin for all other inputs."""

    plain = True

    def __init__(self, args: argparse.Namespace, files: Sequence[Split]) -> None:
        self.args = args
        self._files = files
        self._has_cluster = any(file.cluster is not None for file in files)
        self._answers = str(paths.local(args.output))
        self._changes: dict[tuple[str | None, str], PlanTotals] = {}

    def answer(self) -> tuple["Done", dict[str, int]]:
        """Runs the job of `fleet assign`, `plan` or `compare`."""
        args = self.args
        calls: dict[str, Any] = {"assign": assign_call, "plan": plan_call, "compare": compare_call}
        call = calls[args.word](**asked(args))
        how = {"tasks": args.tasks, "overwrite": args.overwrite}
        done = answer_files(self._files, args.output, args.word, [call], **how)
        return replace(done, counts=getattr(self, f"_count_{args.word}")()), {}

    def _count_assign(self) -> dict[str, int]:
        """Counts the groups with anomalies, and the groups and partitions that wait for a second
        rebalance.
        """
        found = Counter(with_anomalies=0, only_round_1=0, in_round_2=0)
        batches = (batch for file in self._files for batch in line_batches(file))
        lines = (line for batch in batches for line in batch.column(0))
        for table in read_columns(self._answers, ["assignor", "assignment", "anomalies"]):
            found["with_anomalies"] += len(table) - table["anomalies"].null_count
            columns = (table["assignor"].to_pylist(), table["assignment"])
            for name, given, line in zip(*columns, lines, strict=False):
                if name not in WITHHOLDING or not given.is_valid:
                    continue
                group = json.loads(line.as_py())
                listed = {topic for member in group["members"] for topic in member["topics"]}
                later = sum(one["partitions"] for one in group["topics"] if one["name"] in listed)
                runs = (run for member in given.as_py() for run in member["partitions"])
                later -= sum(len(run["partitions"]) for run in runs)
                found.update(only_round_1=later > 0, in_round_2=max(later, 0))
        return found

    def _count_plan(self) -> dict[str, int]:
        totals = PlanTotals()
        for row in self.rows(READ):
            totals.add(row)
        names = ("not_affected", "without_members", "unsettled", "moves", "with_moves", "uneven")
        counts = {name: totals.counts[name] for name in (*names, "with_unavailable")}
        return {**counts, "without_a_reader": totals.counts["unavailable"]}

    def _count_compare(self) -> dict[str, int]:
        names = ("not_affected", "without_members", "another_recommended", *BETTER)
        names += tuple(f"recommended {name}" for name in RECOMMENDABLE)
        found = Counter(dict.fromkeys(names, 0))
        for row in self.rows(("assignor", "recommended", "reason", "error", "error_kind")):
            own, other, reason = row["assignor"], row["recommended"], row["reason"]
            found["not_affected"] += reason is None and row["error"] is None
            found["without_members"] += row["error_kind"] == NO_MEMBERS
            if own is not None and other not in (None, own):
                found.update(["another_recommended", f"recommended {other}"])
                found.update(name for name, words in BETTER.items() if re.search(words, reason))
        return found

    def causes(self) -> dict[str, int]:
        return {}  # causes are counted only for records, which Spark reads

    def worst(self, figure: str, most: int, change: str | None = None) -> list[dict[str, Any]]:
        """Returns the groups in which a figure is largest and above 0; ids break ties. If `fleet
        summary` has planned, `change` selects the plans of one change.
        """
        columns, of = _FIGURES[figure]
        rows = self.rows(("group_id", *["change"] * (change is not None), *columns))
        found = [
            row | {"figure": int(number)}
            for row in rows
            if row.get("change") == change and row["group_id"] is not None and (number := of(row))
        ]
        found.sort(key=lambda row: (-row["figure"], row["group_id"], row.get("cluster") or ""))
        return found[:most]

    def contract_lines(
        self, wanted: Iterable[tuple[str | None, str]]
    ) -> dict[tuple[str | None, str], str]:
        """Returns the contract lines of a few groups, by (cluster, id)."""
        pairs = set(wanted)
        found = {}
        for cluster, line, group in _read(self._files) if pairs else ():
            key = (cluster, str(group.get("group_id")))
            if key in pairs:
                found[key] = line
        return found

    def left_out(self) -> dict[str, int]:
        return {}

    def racks(self) -> dict[str, int]:
        """Returns rack -> the number of groups with a member or a replica in it. The key "" counts
        the groups with a member whose rack is unknown.
        """
        found = Counter[str]()
        for _, _, group in _read(self._files):
            racks = [one.get("rack_id") or "" for one in items_of(dict, group.get("members"))]
            for topic in items_of(dict, group.get("topics")):
                racks += [
                    rack or None for one in items_of(list, topic.get("racks")) for rack in one
                ]
            found.update(set(items_of(str, racks)))
        return found

    def plan(self, changes: Sequence[str], output: str) -> None:
        """Writes, for each group, a plan for each change by itself, and adds up the figures."""
        args, self._answers = self.args, f"{output}/plans"
        calls = [
            (text, plan_call(args.assignor, [text] if text else [], args.max_partitions)[1])
            for text in changes
        ]
        answer_files(
            self._files, self._answers, "plan", calls,
            tasks=args.tasks, has_label=True, overwrite=args.overwrite,
        )  # fmt: skip
        for row in self.rows(("change", *READ)):
            key = (row.get("cluster"), row["change"])
            self._changes.setdefault(key, PlanTotals()).add(row)

    def summary(self, output: str, worst: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Writes the summary; returns its rows, and each change's totals over all clusters."""
        whole: dict[str, PlanTotals] = {}
        for (_, change), one in self._changes.items():
            whole.setdefault(change, PlanTotals()).merge(one)
        rows = []
        for (cluster, change), one in self._changes.items():
            keys = {"cluster": cluster} if self._has_cluster else {}
            rows.append({**keys, "change": change, **one.row(worst)})
        write_totals(rows, f"{output}/summary")
        return rows, {change: {"change": change, **one.row(1)} for change, one in whole.items()}

    def bins(self, figure: str) -> list[Bin]:
        """Returns a histogram over all groups, with the bins of `fleet_histogram`."""
        found: Counter[int] = Counter()
        for (_, change), one in self._changes.items():
            if change == "":
                found.update(n if n < 2 else 1 << n.bit_length() - 1 for n in one.values[figure])
        return [Bin(low, low if low < 2 else 2 * low - 1, found[low]) for low in sorted(found)]

    def most_frequent_error(self) -> dict[str, Any]:
        """Returns the most frequent error text, and how many groups have that error."""
        rows = self.rows(("error", "error_kind", *["change"] * bool(self._changes)))
        bad = (row for row in rows if not row.get("change") and row["error_kind"] != NO_MEMBERS)
        errors = Counter(row["error"] for row in bad if row["error"] is not None)
        error, groups = min(errors.items(), key=lambda pair: (-pair[1], pair[0]))
        return {"error": error, "groups": groups}

    def rows(self, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yields rows with these columns of the answers, after any column `cluster`."""
        keys = ["cluster"] * self._has_cluster
        for table in read_columns(self._answers, [*keys, *names]):
            yield from table.to_pylist()


def _above(row: Mapping[str, Any]) -> int:
    """Returns how far the spread (largest minus smallest number of partitions) after a plan is
    above the best possible one; 0 for an error row.
    """
    after, best = row["balance_after"], row["balance_possible"]
    return after["max"] - after["min"] - best["max"] + best["min"] if after and best else 0


_FIGURES: dict[str, tuple[Sequence[str], Callable[[Mapping[str, Any]], Any]]] = {
    "never ends": (("error_kind",), lambda row: row["error_kind"] == "never-ends"),
    "better": (
        ("assignor", "recommended"),
        lambda row: row["assignor"] and row["recommended"] not in (None, row["assignor"]),
    ),
    "without_members": (("error_kind",), lambda row: row["error_kind"] == NO_MEMBERS),
    "uneven": ([one for one in READ if one.startswith(("balance_after", "balance_p"))], _above),
    "waiting": (("waiting",), lambda row: row["waiting"]),
    "unavailable": (("unavailable",), lambda row: row["unavailable"]),
}
"""As `FIGURES` of `fleet_spark`: figure -> the columns that it reads, and a function that computes
it.
"""


def _read(files: Iterable[Split]) -> Iterator[tuple[str | None, str, dict[str, Any]]]:
    """Yields (cluster, line, group) of each line that is a JSON object."""
    for file in files:
        for batch in line_batches(file):
            for line in batch.column(0).to_pylist():
                try:
                    text = line.decode().rstrip("\r\n")
                    group = json.loads(text)
                except (ValueError, RecursionError):
                    continue  # the answer to such a line is an error
                if isinstance(group, dict):
                    yield file.cluster, text, group
