# SPDX-License-Identifier: Apache-2.0
"""The answer in words: what more members bring, whether fewer do as well, what is worth having."""

import math
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from kafka_rebalance.group.spec import counted

if TYPE_CHECKING:
    from .counts import Count


def answer(counts: Sequence["Count"], members: int, noun: str, *, knows_owners: bool) -> str:
    """Returns the answer; `members` is the present count, `noun` a partition, task or record."""
    now = next(one for one in counts if one.members == members)
    said = _compared(counts, now, noun)
    if now.idle:
        said.append(f"{now.idle} of the {counted(members)} have nothing to read")
    if now.catch_up_s is not None:
        enough = (one.members for one in counts if one.catch_up_s != math.inf)
        said.append(f"{next(enough, 'no number')} is enough to read what arrives")
    said.append(f"worth having: {', '.join(str(one.members) for one in counts if one.useful)}")
    if not knows_owners:
        said.append("who owns what now is not known, so every partition counts as a move")
    return "; ".join(said)


def is_less(one: "Count", other: "Count") -> bool:
    """Returns whether the busiest member reads less; sums of rates are equal if nearly equal."""
    return one.busiest < other.busiest * (1 - 1e-9)


def _compared(counts: Sequence["Count"], now: "Count", noun: str) -> list[str]:
    """Returns which smaller counts do as well, which larger ones bring nothing, and which help."""
    more = [one for one in counts if one.members > now.members]
    useless = [*takewhile(lambda one: not one.useful, more)]
    as_well = next(one for one in counts if not is_less(now, one))
    alike = []
    if as_well is not now:
        alike.append(f"{counted(as_well.members)} would do as well as {now.members}")
    if useless:
        first, last = useless[0].members, useless[-1].members
        alike.append(f"{first}{f' to {last}' * (first < last)} members bring nothing")
    has = f"the fullest member has {_reads(now, noun)}"
    or_more = " or more" * any(is_less(now, one) for one in useless)
    said = [f"{', and '.join(alike)}: {has}{or_more} either way"] if alike else []
    if len(useless) < len(more):
        step = more[len(useless)]
        helps = f"{step.members} is the next step" if useless else f"{counted(step.members)} help"
        cost = f"{counted(step.moves, 'move')}, {step.stops} without a reader on the way"
        said.append(f"{helps}: the fullest member then has {_reads(step, noun)} ({cost})")
    return said or [f"{counted(now.members)} now: {has}"]


def _reads(one: "Count", noun: str) -> str:
    """Returns `3 partitions`, `6 to 7 partitions` or `1,200 records a second`."""
    number = f"{one.busiest:,.0f}" if one.busiest >= 10 else f"{one.busiest:.3g}"
    if noun != "record" and "fullest" in one.ranges and one.busiest == one.fullest:
        number = " to ".join(map(str, one.ranges["fullest"]))
    return f"{number} {noun}{'s' * (number != '1')}{' a second' * (noun == 'record')}"
