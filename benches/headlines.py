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
FROM_NAMES, AGAIN = "ms", "again_ms"
"""The fields of our times: of first answers, and of later answers for the same group."""

PYTHON_CLIENTS_PARTITIONS = 2_000
"""The most partitions of the groups that kafka-python and aiokafka are asked."""

_CELLS = ("mean", "least", "under 3x", "slower")
_SMALL = f"up to {PYTHON_CLIENTS_PARTITIONS:,} partitions"
_OWN_ORDER = "the topics of each member in an order of its own"


class Comparison(NamedTuple):
    """What is compared. `ours` is "core", or one of our interfaces; `fits` chooses the cases."""

    title: str
    peer: str
    fits: Callable[[Row], bool]
    ours: str = "core"
    in_readme: bool = True


def ratio(row: Row, peer: str, field: str, ours: str = "core") -> float | None:
    """Returns how many times longer the peer takes; None if one of the two has no time."""
    times = row["peers"]["core"] if ours == "core" else row.get("borders", {}).get(ours, {})
    theirs, mine = row["peers"][peer].get("ms"), times.get(field)
    return None if theirs is None or mine is None else theirs / mine


def headlines(rows: Sequence[Row], *, in_readme: bool = False) -> list[str]:
    """Returns a sentence and a Markdown table of all comparisons, or those of the README."""
    heads = [f"{how}: {cell}" for how in ("from names", "again") for cell in _CELLS]
    lines = [_groups(rows), "", f"| against | groups | {' | '.join(heads)} |"]
    lines.append(f"| --- |{' ---: |' * (len(heads) + 1)}")
    for one in _COMPARISONS:
        chosen = [row for row in rows if one.fits(row)]
        columns = [_ratios(chosen, one, FROM_NAMES), _ratios(chosen, one, AGAIN)]
        if any(columns) and (one.in_readme or not in_readme):
            cells = " | ".join(map(_cells, columns))
            title = one.title + _without_answer(chosen, one.peer)
            lines.append(f"| {title} | {max(map(len, columns))} | {cells} |")
    return lines


def _groups(rows: Sequence[Row]) -> str:
    return (
        f"{len(rows)} groups were measured: {sum(map(_in_kafkas_benchmark, rows))} are of Kafka's "
        "own assignor benchmark (range, cooperative-sticky), the others have other assignors, "
        "racks or subscriptions."
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


def _without_answer(rows: Iterable[Row], peer: str) -> str:
    """Returns a text about the groups that have no ratio because the peer was too slow."""
    skipped = (_NO_ANSWER.match(row["peers"][peer].get("skipped", "")) for row in rows)
    limits = [found[1] for found in skipped if found]
    if not limits:
        return ""
    return f"; {len(limits)} more, or smaller ones like them, had no answer in {limits[0]} s"


_NO_ANSWER = re.compile(r"no answer in ([0-9.]+) s")  # as measure.py writes it


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


def _over_5000(row: Row) -> bool:
    return _in_one_order(row) and row["partitions"] > 5000


def _one_joins_buckets(row: Row) -> bool:
    kind = row["subscriptions"], row["kind"], row["members"]
    return kind == ("buckets", "joins", 1000) and "sticky" in row["assignor"]


_COMPARISONS = (
    Comparison("Java, same subscriptions", "Java", _same),
    Comparison(
        "the same, range",
        "Java",
        lambda row: _same(row) and row["assignor"] == "range",
        in_readme=False,
    ),
    Comparison(
        "the same, roundrobin",
        "Java",
        lambda row: _same(row) and row["assignor"] == "roundrobin",
        in_readme=False,
    ),
    Comparison(
        "the same, sticky family",
        "Java",
        lambda row: _same(row) and "sticky" in row["assignor"],
        in_readme=False,
    ),
    Comparison(f"Java, same subscriptions, {_OWN_ORDER}", "Java", _in_own_order),
    Comparison(
        "Java, different subscriptions, sticky family, one joins, 1,000 members",
        "Java",
        _one_joins_buckets,
    ),
    Comparison("franz-go, whose answer may differ from Kafka's", "franz-go", _in_one_order),
    Comparison(f"the same, {_OWN_ORDER}", "franz-go", _in_own_order, in_readme=False),
    Comparison(f"kafka-python, {_SMALL}", "kafka-python", _in_one_order),
    Comparison(f"aiokafka, {_SMALL}", "aiokafka", _in_one_order),
    Comparison(
        "Java; all of our answer is read as Python objects, over 5,000 partitions",
        "Java",
        _over_5000,
        "objects",
    ),
    Comparison(f"the same, {_OWN_ORDER}", "Java", _in_own_order, "objects", in_readme=False),
    Comparison(
        "Java; only the members of our answer are read, over 5,000 partitions",
        "Java",
        _over_5000,
        "members",
    ),
)
