# SPDX-License-Identifier: Apache-2.0
"""The answer in words: what more members bring, whether fewer do as well, what is worth having."""

from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from kafka_rebalance.group.spec import counted

if TYPE_CHECKING:
    from .counts import Count


def answer(
    counts: Sequence["Count"], now: int, per_replica: int, noun: str, *, knows_owners: bool
) -> str:
    """Returns the answer about counts in ascending order, of which one is `now` members."""
    present = next(one for one in counts if one.members == now)
    if present.fullest is None:
        return f"the present {counted(now)} cannot be compared: {present.error}"
    who = "member" if per_replica == 1 else "replica"
    said = [_more(present, [one for one in counts if one.members > now], who, noun)]
    fewer = [one for one in counts if one.members < now and _does_as_well(one, present)]
    if fewer:
        same = read_text(present, noun)
        first = f"{counted(fewer[0].replicas, who)} would do as well as {present.replicas}"
        said.append(f"{first}: the fullest member has {same} either way")
    elif present.idle:
        said.append(f"{present.idle} of the {now} members have nothing to read")
    worth = [one.replicas for one in counts if one.useful]
    said.append(f"worth having: {_spans(worth, [one.replicas for one in counts])}")
    if not knows_owners:
        said.append("who owns what now is not known, so every partition counts as a move")
    return "; ".join(said)


def read_text(one: "Count", noun: str) -> str:
    """Returns what the fullest member reads, such as `3 partitions` or `120 records a second`."""
    return counted(one.fullest or 0, noun) if one.rate is None else f"{one.rate:,.0f} records a second"


def _to_read(one: "Count") -> float:
    return (one.fullest or 0) if one.rate is None else one.rate


def _does_as_well(one: "Count", present: "Count") -> bool:
    return one.error is None and _to_read(one) <= _to_read(present) * (1 + 1e-9)


def _more(present: "Count", more: Sequence["Count"], who: str, noun: str) -> str:
    """Returns what the counts above the present one bring."""
    same = read_text(present, noun)
    useless = [*takewhile(lambda one: not one.useful, more)]
    if not more:
        return f"{counted(present.replicas, who)} now: the fullest member has {same}"
    step = more[len(useless)] if len(useless) < len(more) else None
    brings = ""
    if useless:
        first, last = useless[0].replicas, useless[-1].replicas
        which = f"{first} to {last}" if first < last else f"{first}"
        worse = any(_to_read(one) > _to_read(present) for one in useless if one.error is None)
        has = f"{same}{' or more' if worse else ''}"
        brings = f"{which} {who}s bring nothing: the fullest member has {has} either way"
    if step is None:
        return brings
    cost = f"{counted(step.moves or 0, noun)} move, {step.stops} stop"
    then = f"the fullest member then has {read_text(step, noun)}"
    if useless:
        return f"{brings}; {step.replicas} is the next step: {then}, {cost}"
    return f"{counted(step.replicas, who)} help: {then} instead of {same}, {cost}"


def _spans(numbers: Sequence[int], among: Sequence[int]) -> str:
    """Returns `1 to 4, 6`: a span has no gap in `among`."""
    place = {number: i for i, number in enumerate(among)}
    found: list[list[int]] = []
    for number in numbers:
        if found and place[found[-1][-1]] == place[number] - 1:
            found[-1].append(number)
        else:
            found.append([number])
    return ", ".join(
        f"{one[0]} to {one[-1]}" if len(one) > 2 else ", ".join(map(str, one)) for one in found
    )
