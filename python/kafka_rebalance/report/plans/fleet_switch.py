# SPDX-License-Identifier: Apache-2.0
"""Prints the switch of a fleet to another protocol: which groups can, in which order, and the cost.

Order    fewest partition-rounds without a reader first, then the fewest moves, then the group's id:
         surprises then cost the least. Groups that lose reads within racks come last.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from kafka_rebalance.plans.figures import share_text
from kafka_rebalance.report.text.names import counted, cut
from kafka_rebalance.report.text.sentences import print_wrapped
from kafka_rebalance.report.text.tables import print_filled_table

_SHOWN = 20
_COLUMNS = ("group", "assignor", "rebalances", "moves", "no reader", "reads in racks")
READ = (
    "group_id", "assignor", "rounds", "moves", "unavailable_rounds", "rack_share_before",
    "rack_share_after", "error",
)  # fmt: skip
"""The columns of plans that the table reads."""


def print_switch(rows: Iterable[Mapping[str, Any]]) -> None:
    """Prints the answer in words, the first groups to switch, and groups that cannot, with why."""
    each = list(rows)
    can = sorted((one for one in each if one["moves"] is not None), key=_order)
    failed = (one for one in each if one["error"] is not None)
    cannot = sorted(failed, key=lambda one: (one["group_id"] or "", one["error"]))
    others = len(each) - len(can) - len(cannot)
    text = f"{counted(len(can), 'group')} can switch, {len(cannot):,} cannot"
    if others:
        text += f", {others:,} have no classic protocol"
    moves, stops = (sum(one[name] for one in can) for name in ("moves", "unavailable_rounds"))
    text += f". Together: {counted(moves, 'move')}, and {counted(stops, 'partition-round')} without"
    text += " a reader."
    if losing := sum(map(_loses_racks, can)):
        text += f" {counted(losing, 'group')} will read less within racks."
    print_wrapped(text)
    if can:
        print_filled_table(_COLUMNS, [*map(_cells, can[:_SHOWN])], right=_COLUMNS[2:])
    if len(can) > _SHOWN:
        print_wrapped(f"{len(can) - _SHOWN:,} more follow in this order; OUTPUT has all.")
    for one in cannot[:_SHOWN]:
        print_wrapped(f"cannot: {cut(one['group_id'] or '', 60)}: {one['error']}")
    if len(cannot) > _SHOWN:
        print_wrapped(f"{len(cannot) - _SHOWN:,} more cannot; OUTPUT has their errors.")


def _loses_racks(row: Mapping[str, Any]) -> bool:
    before, after = row["rack_share_before"], row["rack_share_after"]
    return before is not None and after is not None and after < before


def _order(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return _loses_racks(row), row["unavailable_rounds"], row["moves"], row["group_id"]


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    shares = [row["rack_share_before"], row["rack_share_after"]]
    racks = "" if shares == [None, None] else " to ".join(map(share_text, shares))
    figures = (str(row[name]) for name in ("rounds", "moves", "unavailable_rounds"))
    return cut(row["group_id"], 60), row["assignor"], *figures, racks
