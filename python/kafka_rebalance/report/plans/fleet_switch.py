# SPDX-License-Identifier: Apache-2.0
"""The switch of a fleet to another protocol: the groups that can switch, in order, with the cost of
each switch.

Order    by how often the switch leaves partitions without a reader or waiting for their member,
         least first, then by moves, then by id: so a surprise in the first groups costs little.
         Groups that lose reads within racks come last.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kafka_rebalance.group.spec import first_of
from kafka_rebalance.notes.broker import HAS
from kafka_rebalance.plans.figures import share_text

from ..fleet import group_name
from ..text.sentences import counted, cut, print_wrapped
from ..text.tables import print_filled_table

_SHOWN, _NAMED = 20, 3
_COLUMNS = (
    "cluster", "group", "assignor", "rebalances", "moves", "no reader", "times no reader",
    "waiting", "in rack",
)  # fmt: skip
READ = (
    "group_id", "assignor", "rounds", "moves", "unavailable", "unavailable_rounds", "waiting",
    "rack_share_before", "rack_share_after", "not_affected", "error",
)  # fmt: skip
"""The columns of plans that the table reads, besides `cluster`."""

_Row = Mapping[str, Any]


class FleetSwitch(NamedTuple):
    """The groups that can switch, in order, and the groups that cannot, as rows.

    `already` counts the groups that already run the protocol, `other` the groups that run it with
    another assignor than the one asked for, `single` the groups of a kind that has only one
    protocol.
    """

    can: Sequence[_Row]
    cannot: Sequence[_Row]
    already: int
    other: int
    single: int

    @classmethod
    def of(cls, rows: Iterable[_Row]) -> "FleetSwitch":
        can, cannot, left_out = list[_Row](), list[_Row](), list[str]()
        for one in rows:
            texts = (one["not_affected"] or "").split("; ")
            out = next((text for text in texts if text.startswith("switch-protocol=")), None)
            if one["error"] is not None:
                cannot.append(one)
            elif out is not None:
                left_out.append(out)
            else:
                can.append(one)
        single = sum("have two protocols" in text for text in left_out)
        other = sum(": switch-assignor=" in text for text in left_out)
        cannot.sort(key=lambda one: (*_id(one), one["error"]))
        already = len(left_out) - single - other
        return cls(sorted(can, key=_order), cannot, already, other, single)

    @property
    def losing(self) -> list[str]:
        """Returns the groups that will read fewer partitions within their racks, and the shares."""
        return [f"{group_name(one)} {_shares(one)}" for one in self.can if _loses_racks(one)]

    @property
    def unknown(self) -> list[_Row]:
        """Returns the groups of `cannot` that are rebalancing: they may be able to switch later."""
        return [one for one in self.cannot if _REBALANCES in one["error"]]

    @property
    def summary(self) -> str:
        text, unknown = f"{counted(len(self.can), 'group')} can switch", len(self.unknown)
        if no := len(self.cannot) - unknown:
            text += f", {no:,} cannot"
        if unknown:
            are = "is not known (it is" if unknown == 1 else "are not known (they are"
            text += f", {unknown:,} {are} rebalancing: ask again)"
        for count, words in (
            (self.already, "switched already"),
            (self.other, "the protocol, with another assignor (--switch-assignor changes it)"),
            (self.single, "only one protocol (share and streams groups)"),
        ):
            text += f", {count:,} {'has' if count == 1 else 'have'} {words}" if count else ""
        moves, stopped, times, waiting = (sum(one[name] for one in self.can) for name in _COSTS)
        text += f". Together: {counted(moves, 'move')}; {counted(stopped, 'partition')} "
        text += f"{'has' if stopped == 1 else 'have'} no reader"
        text += f" in one rebalance or more ({times:,} times in all)" if stopped else ""
        if waiting:
            waits = "waits while its" if waiting == 1 else "wait while their"
            text += f"; {counted(waiting, 'partition')} {waits} member is down"
        text += "."
        if any(not one["assignor"].startswith("consumer/") for one in self.can):
            text += " That needs brokers of 4.0 or newer, and clients that have the protocol (their"
            text += f" versions are not known): {'; '.join(HAS.values())}; kafka-python and "
            text += "aiokafka do not have it."
        if losing := self.losing:
            text += f" {counted(len(losing), 'group')} will read less in rack"
            text += f" ({first_of(losing, _NAMED)})."
        return text

    def to_dict(self) -> dict[str, Any]:
        return {
            "summary": self.summary,
            "can": len(self.can),
            "cannot": len(self.cannot) - len(self.unknown),
            "not_known": len(self.unknown),
            "switched_already": self.already,
            "other_assignor": self.other,
            "only_one_protocol": self.single,
            "lose_racks": len(self.losing),
        }

    def show(self) -> None:
        """Prints the summary, the first groups to switch, and the reasons why others cannot."""
        shown = self.can[:_SHOWN]
        order = " Cheapest first (times no reader + waiting)"
        if losing := len(self.losing):
            last = "one that reads" if losing == 1 else f"{losing:,} that read"
            order += f", and the {last} less in rack last"
        print_wrapped(self.summary + f"{order}:" * bool(shown))
        if shown:
            print_filled_table(_COLUMNS, [[*_cells(one)] for one in shown], right=_COLUMNS[3:])
        if len(self.can) > _SHOWN:
            print_wrapped(f"{len(self.can) - _SHOWN:,} more follow in this order; OUTPUT has all.")
        reasons = dict[str, list[str]]()
        for one in self.cannot:
            reasons.setdefault(one["error"], []).append(group_name(one))
        often = sorted(reasons.items(), key=lambda reason: -len(reason[1]))
        for why, names in often[:_SHOWN]:
            problem = re.sub(r"^changes\[\d+\]: ", "", why)
            kind = "not known" if _REBALANCES in why else "cannot"
            print_wrapped(f"{kind}: {first_of(names, _NAMED)}: {problem}")
        if len(often) > _SHOWN:
            print_wrapped(f"{len(often) - _SHOWN:,} more reasons are in OUTPUT.")


_COSTS = ("moves", "unavailable", "unavailable_rounds", "waiting")
_REBALANCES = "it is rebalancing"


def _loses_racks(row: _Row) -> bool:
    before, after = row["rack_share_before"], row["rack_share_after"]
    return bool(before and after is not None and after < before and _shares(row))


def _order(row: _Row) -> tuple[Any, ...]:
    stops = row["unavailable_rounds"] + row["waiting"]
    return _loses_racks(row), stops, row["moves"], *_id(row)


def _id(row: _Row) -> tuple[str, str]:
    return row["group_id"] or "", row.get("cluster") or ""


def _cells(row: _Row) -> Iterator[str]:
    yield from (cut(row.get("cluster") or "", 60), cut(row["group_id"], 60), row["assignor"])
    yield from (str(row[name]) for name in ("rounds", *_COSTS))
    yield _shares(row)


def _shares(row: _Row) -> str:
    """Returns the shares read within racks, before and after; "" if they round to equal strings."""
    texts = [share_text(row[f"rack_share_{when}"]) for when in ("before", "after")]
    return " to ".join(texts) if texts[0] != texts[1] else ""
