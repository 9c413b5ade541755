# SPDX-License-Identifier: Apache-2.0
"""Writes a benchmark's results as Markdown, and as JSON lines that `read` reads again.

    python -m benches.table        writes results/grid.md and the README's table again, from
                                   results/grid.jsonl

In the file of JSON lines, the first line contains the machine, the wheel and the plug-ins. Every
other line is a case, with the fields that the tables and the picture need.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benches.headlines import AGAIN, FROM_NAMES, Row, for_readme, headlines, ratio

RESULTS = Path(__file__).resolve().parent / "results"
README = RESULTS.parent.parent / "README.md"
FIELDS = (FROM_NAMES, AGAIN, "make_ms", "skipped", "peak_bytes", "result_bytes")


def rendered(result: dict[str, Any]) -> str:
    """Returns the text of results/grid.md."""
    return f"{summary(result)}\n\n{table(result['rows'])}\n"


def saved(result: dict[str, Any]) -> str:
    """Returns the result as JSON lines."""
    about = {name: value for name, value in result.items() if name != "rows"}
    lines = [about, *map(_short, result["rows"])]
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def read(text: str) -> dict[str, Any]:
    """Reads a result that `saved` wrote."""
    about, *rows = map(json.loads, text.splitlines())
    return {**about, "rows": rows}


def _short(row: Row) -> Row:
    measured: Row = {
        kind: {
            name: {
                field: float(f"{value:.9g}") if isinstance(value, float) else value
                for field, value in answer.items()
                if field in FIELDS
            }
            for name, answer in row[kind].items()
        }
        for kind in ("peers", "borders")
        if kind in row
    }
    return {**row, **measured}


def summary(result: dict[str, Any]) -> str:
    """Returns machine and versions, a table of comparisons, and lines on growth and plug-ins."""
    about = result["machine"]
    rows = result["rows"]
    versions = ", ".join(about[name] for name in ("system", "rust", "java", "go", "peers"))
    size, import_ms = result["wheel"]["module_bytes"] / 1e6, result["wheel"]["import_ms"]
    lines = [
        f"# Benchmark, {about['date']}",
        "",
        f"{about['machine']}, load {about['load']} at the end.",
        f"Python {about['python']}, {versions}.",
        "",
        f"Compiled module {size:.1f} MB, import {max(0.0, import_ms):.0f} ms.",
        "",
        "Times are medians in ms of one calling thread; ratios say how many times longer the peer",
        "takes than the core; their means are geometric. After a group without an answer in time,",
        "a peer is not asked others of that kind (assignor or sticky family, subscriptions, kind,",
        "racks) that have as many partitions or more.",
        "All peers start from names as texts in memory; the subscriptions are",
        "decoded outside of the time, but Java's and franz-go's sticky assignors read user data in",
        "it. Java: `assign` alone, after 0.3 s and at least 5 calls, or 3 s. franz-go: balancing",
        "alone. A peer that needs more than 0.3 s may have one call. Core, from names: the names",
        "are numbered, hashed and sorted within the time. Core, asked again: it keeps this work",
        "from the call before; Java keeps the hashes of its strings and of owned TopicPartitions.",
        "The core is called from Rust and hands out numbers of topics and partitions, Java makes",
        "TopicPartition objects.",
        "",
        "`members` and `objects` are `kr.assign` in Python: the members of its answer are read, or",
        "every partition of every member, once. First: a GroupSpec of which no name is numbered;",
        "making it is outside of the time, as is making Java's Cluster and Subscriptions.",
        "Numbering its names, making the objects, and freeing group and objects are inside. Again:",
        "a group that was asked before; its answer has the TopicPartitions of the one before.",
        "First answers are medians of as few as 3 calls, in a process that has run the groups",
        "before; they vary by a factor of 2.",
        "",
        *headlines(rows),
    ]
    return "\n".join([*lines, *_growth(rows), *_plug_ins(result["plug_ins"])])


def _plug_ins(rows: Iterable[Row]) -> list[str]:
    """Returns one line for each case: the time of our plug-in, and of the client's own assignor."""
    lines = []
    for row in rows:
        ours, theirs = row["ours"].get("ms"), row["theirs"].get("ms")
        if ours is None:
            lines.append(f"{row['client']}, {row['case']}: ours {row['ours']['skipped']}.")
        elif theirs is None:
            lines.append(
                f"{row['client']}, {row['case']}: ours {ours:,.0f} ms; theirs "
                f"{row['theirs']['skipped']}."
            )
        else:
            lines.append(
                f"{row['client']}, {row['case']}: ours {ours:,.0f} ms, theirs {theirs:,.0f} ms, "
                f"{theirs / ours:,.0f}x."
            )
    return ["", *(f"- {line}" for line in lines)]


def _core_ms(row: Row) -> float:
    """Returns the core's time from names, or if that was not measured, the time of a later
    answer.
    """
    core = row["peers"]["core"]
    ms: float = core["ms"] if "ms" in core else core["again_ms"]
    return ms


def _growth(rows: Iterable[Row]) -> list[str]:
    """Returns lines about cells that Java does not finish, growth with members, and peak memory."""
    rows = list(rows)
    beyond = [
        _core_ms(row) for row in rows if "no answer" in row["peers"]["Java"].get("skipped", "")
    ]
    lines = [""]
    if beyond:
        lines.append(
            f"Cells without a time of Java: {len(beyond)} (above); the core's slowest of them "
            f"takes {max(beyond):,.0f} ms."
        )
    sizes = {
        (row["members"], row["assignor"], row["kind"]): _core_ms(row)
        for row in rows
        if (row["subscriptions"], row["per_member"], row["topics"], row["racks"])
        == ("buckets", 10, 100, "none")
    }
    for (members, assignor, kind), ms in sorted(sizes.items()):
        larger = sizes.get((10 * members, assignor, kind))
        if members == 1000 and larger is not None and "sticky" in assignor:
            lines.append(
                "Growth from 1,000 to 10,000 members, 10 partitions each, in buckets, "
                f"{assignor}, {kind}: {larger / ms:.1f}x."
            )
    held = [
        row["peers"]["core"]["peak_bytes"] / row["peers"]["core"]["result_bytes"]
        for row in rows
        if row["partitions"] == 500_000 and "peak_bytes" in row["peers"]["core"]
    ]
    if held:
        lines.append(
            f"Peak memory of one assignment of 500,000 partitions: {min(held):.1f} to "
            f"{max(held):.1f} times its result as Arrow columns."
        )
    return lines


PEERS = ("Java", "franz-go", "kafka-python", "aiokafka")
BORDERS = (
    ("members", FROM_NAMES),
    ("members", AGAIN),
    ("objects", FROM_NAMES),
    ("objects", AGAIN),
    ("lines", FROM_NAMES),
    ("arrow", FROM_NAMES),
)
"""Our interfaces, and the field of the time that a column shows."""


def table(rows: Iterable[Row]) -> str:
    """Returns one row for each case: times of the core, of each peer and of our interfaces."""
    ours = (f"ours, {name}{', again' * (field == AGAIN)}" for name, field in BORDERS)
    heads = ["case", "partitions", "core", "core, again", *PEERS, *ours]
    lines = [
        f"| {' | '.join(heads)} |",
        f"| --- |{' ---: |' * (len(heads) - 1)}",
    ]
    reasons: dict[str, int] = {}
    for row in rows:
        cells = [row["case"], f"{row['partitions']:,}", *_core(row["peers"]["core"])]
        for peer in PEERS:
            answer = row["peers"][peer]
            if "ms" in answer:
                ratios = (ratio(row, peer, field) for field in (FROM_NAMES, AGAIN))
                shown = ", ".join(f"{known:,.1f}x" for known in ratios if known is not None)
                cells.append(f"{_time(answer)} ({shown})")
            else:
                reasons.setdefault(answer["skipped"], len(reasons) + 1)
                cells.append(f"[{reasons[answer['skipped']]}]")
        borders = row.get("borders", {})
        cells += [_time(borders.get(name, {}), field) for name, field in BORDERS]
        lines.append(f"| {' | '.join(cells)} |")
    notes = [f"[{number}] {reason}  " for reason, number in reasons.items()]
    return "\n".join([*lines, "", "Not measured:", "", *notes])


def _core(answer: dict[str, Any]) -> list[str]:
    return [_time(answer), _time(answer, AGAIN)]


def _time(answer: dict[str, Any], field: str = FROM_NAMES) -> str:
    ms = answer.get(field)
    return "" if ms is None else f"{ms:,.3f}" if ms < 10 else f"{ms:,.0f}"


_BLOCK = re.compile(r"(?<=<!-- generated: headlines -->\n).*?(?=<!-- end -->\n)", re.DOTALL)


def in_readme(text: str, result: dict[str, Any]) -> str:
    """Returns the README's text with the result's headlines."""
    lines = for_readme(result["rows"])
    return _BLOCK.sub("".join(f"{line}\n" for line in lines), text)


def write_pages(result: dict[str, Any]) -> None:
    """Writes results/grid.md and the README's table."""
    (RESULTS / "grid.md").write_text(rendered(result), encoding="utf-8")
    readme = README.read_text(encoding="utf-8")
    README.write_text(in_readme(readme, result), encoding="utf-8")


if __name__ == "__main__":
    write_pages(read((RESULTS / "grid.jsonl").read_text(encoding="utf-8")))
