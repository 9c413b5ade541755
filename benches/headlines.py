# SPDX-License-Identifier: Apache-2.0
"""The comparisons of a benchmark's results: one row each, in results/grid.md and in the README.

A ratio says how many times longer a peer takes than we do. `from names` compares first answers;
`again` is a group that we have answered before.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

Row = dict[str, Any]
MADE = "made"
"""Our interface whose time, like the peer's, contains making the group from parsed JSON."""
FROM_NAMES, AGAIN = "ms", "again_ms"
"""The fields of our times: of first answers, and of later answers for the same group."""

_CELLS = ("mean", "least", "under 3x", "slower")
_OWN_ORDER = "all topics listed by each member in an order of its own"
_AS_OBJECTS = "all of our answer is read as Python objects"
_WITH_MAKING = f"both with making the group from parsed JSON; {_AS_OBJECTS}"
_MEMBERS_ONLY = "only the members of our answer are read in Python"


class Comparison(NamedTuple):
    """One comparison. `ours` is "core", or one of our interfaces; `fits` chooses the cases."""

    title: str
    peer: str
    fits: Callable[[Row], bool]
    ours: str = "core"


def ratio(row: Row, peer: str, field: str, ours: str = "core") -> float | None:
    """Returns how many times longer the peer takes; None if the time of one of them is missing."""
    theirs: float | None = row["peers"][peer].get("ms")
    mine = _time(row, ours, field)
    if theirs is None or mine is None:
        return None
    making: float = row["peers"][peer]["make_ms"] if ours == MADE else 0.0
    return (theirs + making) / mine


def _time(row: Row, ours: str, field: str) -> float | None:
    times = row["peers"]["core"] if ours == "core" else row.get("borders", {}).get(ours, {})
    found: float | None = times.get(field)
    return found


def headlines(rows: Sequence[Row]) -> list[str]:
    """Returns a sentence and a Markdown table of all comparisons."""
    heads = [f"{how}: {cell}" for how in ("from names", "again") for cell in _CELLS]
    lines = [_groups(rows), "", f"| against | groups | {' | '.join(heads)} |"]
    lines.append(f"| --- |{' ---: |' * (len(heads) + 1)}")
    for one in _COMPARISONS:
        chosen = [row for row in rows if one.fits(row)]
        columns = [_ratios(chosen, one, FROM_NAMES), _ratios(chosen, one, AGAIN)]
        if any(columns):
            cells = " | ".join(map(_cells, columns))
            title = one.title + _sizes(chosen, one) + _without_time(chosen, one)
            lines.append(f"| {title} | {max(map(len, columns))} | {cells} |")
    return lines


def for_readme(rows: Sequence[Row]) -> list[str]:
    """Returns the README's table: times for one group, and ratios of Java's time over all groups.

    The group is a cell of Kafka's benchmark: 1,000 members, 10,000 partitions, one member joins.
    """
    (one,) = (row for row in rows if _same(row) and all(row[k] == v for k, v in _SHOWN.items()))
    lines = [
        "| an answer | Kafka's Java class | here | Java takes, mean | worst | Java faster |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for title, ours, field in _WAYS:
        ratios = _ratios(rows, Comparison(title, "Java", _same, ours), field)
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        slower = f"{sum(ratio < 1 for ratio in ratios)} of {len(ratios)}"
        java, mine = one["peers"]["Java"]["ms"], _time(one, ours, field)
        times = f"{java:.1f} ms | {mine:.2f} ms | {mean:,.1f}x | {min(ratios):,.1f}x"
        lines.append(f"| {title} | {times} | {slower} |")
    return lines


_SHOWN = {
    "assignor": "cooperative-sticky", "kind": "joins", "members": 1000, "partitions": 10_000,
    "topics": 100, "racks": "none",
}  # fmt: skip
_WAYS = (
    ("from Rust, names in memory", "core", FROM_NAMES),
    ("from a line of JSON, which is read first", "lines", FROM_NAMES),
    ("from Python objects, all of the answer read", "objects", FROM_NAMES),
    ("the same objects asked again", "objects", AGAIN),
)


def _groups(rows: Sequence[Row]) -> str:
    cells = [row for row in rows if _in_kafkas_benchmark(row)]
    joins = sum(row["kind"] == "joins" for row in cells)
    return (
        f"{len(rows)} groups were measured: {len(cells)} are cells of Kafka's own assignor "
        f"benchmark (range, cooperative-sticky); in {joins} of them one member joins, an input "
        "that Kafka's class builds but does not measure. The others have other assignors, racks "
        "or subscriptions."
    )


def _ratios(rows: Iterable[Row], one: Comparison, field: str) -> list[float]:
    found = (ratio(row, one.peer, field, one.ours) for row in rows)
    return [known for known in found if known is not None]


def _cells(ratios: list[float]) -> str:
    if not ratios:
        return "not measured | | |"
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    under = (sum(ratio < limit for ratio in ratios) for limit in (3, 1))
    return f"{mean:,.1f}x | {min(ratios):,.1f}x | {' | '.join(map(str, under))}"


def _sizes(rows: Iterable[Row], one: Comparison) -> str:
    """Returns the partitions of the smallest and the largest group that is compared."""
    sizes = [row["partitions"] for row in rows if ratio(row, one.peer, FROM_NAMES, one.ours)]
    return f", {min(sizes):,} to {max(sizes):,} partitions"


def _without_time(rows: Iterable[Row], one: Comparison) -> str:
    """Returns a sentence about the groups for which we have a time, and the peer has none."""
    timed = (row for row in rows if _time(row, one.ours, FROM_NAMES) is not None)
    reasons = [row["peers"][one.peer].get("skipped", "") for row in timed]
    slow = [found[1] for reason in reasons if (found := _NO_ANSWER.match(reason))]
    wrong = sum(_ERROR.match(reason) is not None for reason in reasons)
    texts = []
    if slow:
        none = f"no answer in {slow[0]} s, or a group not larger had none"
        texts.append(f"; {len(slow)} more: {none}")
    if wrong:
        texts.append(f"; {wrong} more ended in its KeyError")
    return "".join(texts)


_NO_ANSWER = re.compile(r"no answer in ([0-9.]+) s")  # as measure.py writes it
_ERROR = re.compile("KeyError")  # as kafka-python raises it


def _in_kafkas_benchmark(row: Row) -> bool:
    """Returns whether Kafka's ClientSideAssignorBenchmark has the case (see grid.py)."""
    return (
        row["assignor"] in ("range", "cooperative-sticky")
        and row["subscriptions"] in ("same", "buckets")
        and row["racks"] != "two racks"
        and not row["title"]
    )


def _same(row: Row) -> bool:
    return row["subscriptions"] == "same" and not row["title"]


def _in_own_order(row: Row) -> bool:
    return bool(row["subscriptions"] == "shuffled")


def _in_one_order(row: Row) -> bool:
    return not _in_own_order(row)


def _one_joins_buckets(row: Row) -> bool:
    kind = row["subscriptions"], row["kind"], row["members"]
    return kind == ("buckets", "joins", 1000) and "sticky" in row["assignor"]


_COMPARISONS = (
    Comparison("Java, same subscriptions, cells of the grid", "Java", _same),
    Comparison(
        "the same, range",
        "Java",
        lambda row: _same(row) and row["assignor"] == "range",
    ),
    Comparison(
        "the same, roundrobin",
        "Java",
        lambda row: _same(row) and row["assignor"] == "roundrobin",
    ),
    Comparison(
        "the same, sticky family",
        "Java",
        lambda row: _same(row) and "sticky" in row["assignor"],
    ),
    Comparison(f"Java, same subscriptions, {_OWN_ORDER}", "Java", _in_own_order),
    Comparison(
        "Java, five sets of members with topics of their own, sticky family, one joins, "
        "1,000 members",
        "Java",
        _one_joins_buckets,
    ),
    Comparison("franz-go (ours from Rust; answers may differ)", "franz-go", _in_one_order),
    Comparison(f"franz-go, {_OWN_ORDER}", "franz-go", _in_own_order),
    Comparison("kafka-python; ours called from Rust", "kafka-python", _in_one_order),
    Comparison("aiokafka; ours called from Rust", "aiokafka", _in_one_order),
    Comparison(f"Java; {_AS_OBJECTS}", "Java", _in_one_order, "objects"),
    Comparison(f"Java; {_AS_OBJECTS}, {_OWN_ORDER}", "Java", _in_own_order, "objects"),
    Comparison(f"Java, {_WITH_MAKING}", "Java", _in_one_order, MADE),
    Comparison(f"Java, {_WITH_MAKING}, {_OWN_ORDER}", "Java", _in_own_order, MADE),
    Comparison(f"Java; {_MEMBERS_ONLY}", "Java", _in_one_order, "members"),
    Comparison(f"Java; {_MEMBERS_ONLY}, {_OWN_ORDER}", "Java", _in_own_order, "members"),
    Comparison(f"kafka-python; {_AS_OBJECTS}", "kafka-python", _in_one_order, "objects"),
    Comparison(f"aiokafka; {_AS_OBJECTS}", "aiokafka", _in_one_order, "objects"),
)
