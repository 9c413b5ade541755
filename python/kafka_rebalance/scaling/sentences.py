# SPDX-License-Identifier: Apache-2.0
"""The answer in words: what more members bring, whether fewer do as well, what is worth having."""

from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from kafka_rebalance.group.spec import GroupSpec, counted

if TYPE_CHECKING:
    from .counts import Count


def answer(
    group: GroupSpec, counts: Sequence["Count"], per_replica: int, *, knows_owners: bool
) -> str:
    """Returns the answer about counts in ascending order; one of them is the present count."""
    now, noun = len(group.members), "partition" if group.subtopologies is None else "task"
    present = next(one for one in counts if one.members == now)
    if present.fullest is None:
        return f"the present {counted(now)} cannot be compared: {present.error}"
    who = "member" if per_replica == 1 else "replica"
    said = _compared(counts, present, who, noun)
    if present.idle:
        said.append(f"{present.idle} of the {counted(now)} have nothing to read")
    worth = dict.fromkeys(one.replicas for one in counts if one.useful)
    every = dict.fromkeys(one.replicas for one in counts)
    said.append(f"worth having: {_spans([*worth], [*every])}")
    if not knows_owners:
        said.append("who owns what now is not known, so every partition counts as a move")
    return "; ".join(said)


def read_text(one: "Count", noun: str = "") -> str:
    """Returns what the fullest member reads, such as `3 partitions` or `120 records a second`.

    Without a noun, the number alone; both ends of a range.
    """
    if one.error is not None:
        return "error"
    if one.rate is not None:
        return f"{one.rate:,.0f}{' records a second' * bool(noun)}"
    least, most = one.ranges.get("fullest", (one.fullest, one.fullest))
    number = f"{one.reads:.3g}" if least == most else f"{least} to {most}"
    return f"{number} {noun}{'' if number == '1' else 's'}" if noun else number


def to_read(one: "Count") -> float:
    """Returns what the fullest member reads, as a number to compare with that of another count."""
    return (one.reads or 0) if one.rate is None else one.rate


def _compared(counts: Sequence["Count"], present: "Count", who: str, noun: str) -> list[str]:
    """Returns which smaller counts do as well, which larger ones bring nothing, and which help."""
    more = [one for one in counts if one.members > present.members]
    useless = [*takewhile(lambda one: not one.useful, more)]
    fewer = [
        one
        for one in counts
        if one.members < present.members
        and one.error is None
        and to_read(one) <= to_read(present) * (1 + 1e-9)
    ]
    alike = []
    if fewer:
        alike.append(f"{counted(fewer[0].replicas, who)} would do as well as {present.replicas}")
    if useless:
        first, last = useless[0].replicas, useless[-1].replicas
        which = f"{first} to {last}" if first < last else f"{first}"
        alike.append(f"{which} {who}s bring nothing")
    same = read_text(present, noun)
    said = []
    if alike:
        answered = [one for one in useless if one.error is None]
        or_more = " or more" * any(to_read(one) > to_read(present) for one in answered)
        said.append(f"{', and '.join(alike)}: the fullest member has {same}{or_more} either way")
    if len(useless) < len(more):
        said.append(_next_step(more[len(useless)], who, noun, is_first=not useless))
    return said or [f"{counted(present.replicas, who)} now: the fullest member has {same}"]


def _next_step(step: "Count", who: str, noun: str, *, is_first: bool) -> str:
    """Returns what the next useful count brings, and its costs."""
    which = f"{counted(step.replicas, who)} help"
    if not is_first:
        which = f"{step.replicas} is the next step"
    moves = counted(step.moves or 0, noun)
    cost = f"{moves} move{'s' * (step.moves == 1)} and {step.stops} stop on the way"
    return f"{which}: the fullest member then has {read_text(step, noun)} ({cost})"


def _spans(numbers: Sequence[int], among: Sequence[int]) -> str:
    """Returns `1 to 4, 6`: a span has no gap in `among`."""
    found: list[list[int]] = [[]]
    for number in among:
        if number in numbers:
            found[-1].append(number)
        elif found[-1]:
            found.append([])
    spans = (f"{one[0]} to {one[-1]}" if len(one) > 2 else one for one in found if one)
    return ", ".join(one if isinstance(one, str) else ", ".join(map(str, one)) for one in spans)
