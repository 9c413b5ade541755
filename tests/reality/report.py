# SPDX-License-Identifier: Apache-2.0
"""Prints the comparison of a real and a simulated run for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .compare import Compared, Comparison, Duration
    from .played import Taken


def show(one: Comparison) -> str:
    """Returns the whole comparison of one assignor as a string."""
    lines = [f"== {one.assignor}"]
    for phase in one.phases:
        lines += ["", f"{phase.phase.from_ms / 1000:4.1f} s  {phase.phase.title}"]
        lines += [f"        {line}" for line in _phase(phase)]
    return "\n".join(lines)


def summary(one: Comparison) -> str:
    """Returns one line: how many assignments and durations agree, or how many differ."""
    pairs = [pair for phase in one.phases for pair in _pairs(phase.real, phase.simulated)]
    generations = {taken.generation_id for pair in pairs for taken in pair if taken is not None}
    wrong = sum(real != simulated for real, simulated in pairs)
    outside = sum(not duration.agrees for duration in one.durations)
    parts = [
        f"{one.assignor}: {len(generations)} generations, {len(pairs)} assignments equal"
        if not wrong
        else f"{one.assignor}: {wrong} of {len(pairs)} assignments DIFFER",
        f"{len(one.durations)} durations within tolerance{_largest(one.durations)}"
        if not outside
        else f"{outside} of {len(one.durations)} durations OUTSIDE their tolerance",
    ]
    if not all(phase.is_quiet for phase in one.phases if phase.phase.is_quiet):
        parts.append("a rebalance where there should be NONE")
    return "; ".join(parts)


def _largest(durations: Iterable[Duration]) -> str:
    one = max(durations, key=lambda one: one.difference_ms or 0)
    return f" (largest difference {_ms(one.difference_ms)} ms of {_ms(one.tolerance.ms)} ms)"


def _phase(one: Compared) -> list[str]:
    lines = []
    for real, simulated in _pairs(one.real, one.simulated):
        if real is not None and real == simulated:
            lines += [f"generation {real.generation_id}: equal", *_holds(real.holds)]
            continue
        for side, taken in (("real", real), ("simulated", simulated)):
            number = "no such generation" if taken is None else f"generation {taken.generation_id}"
            lines += [f"DIFFERS, {side}: {number}", *_holds({} if taken is None else taken.holds)]
    if one.phase.is_quiet:
        lines.append(
            "no rebalance: the generation before, and what was held in it"
            if one.is_quiet
            else "DIFFERS: a rebalance"
        )
    return [*lines, *map(_duration, one.durations)]


def _pairs(
    real: Iterable[Taken], simulated: Iterable[Taken]
) -> list[tuple[Taken | None, Taken | None]]:
    """Pairs the real and the simulated generations by number."""
    theirs = {one.generation_id: one for one in real}
    ours = {one.generation_id: one for one in simulated}
    return [(theirs.get(number), ours.get(number)) for number in sorted({*theirs, *ours})]


def _holds(holds: Mapping[str, frozenset[str]]) -> list[str]:
    return [f"  {name}: {_partitions(holds[name])}" for name in sorted(holds)]


def _partitions(partitions: frozenset[str]) -> str:
    """Formats partitions, for example `orders 0 1, payments 0`."""
    topics: dict[str, list[int]] = {}
    for one in partitions:
        topic, _, number = one.rpartition("-")
        topics.setdefault(topic, []).append(int(number))
    lists = {topic: " ".join(map(str, sorted(topics[topic]))) for topic in sorted(topics)}
    return ", ".join(f"{topic} {numbers}" for topic, numbers in lists.items()) or "nothing"


def _duration(one: Duration) -> str:
    sides = f"real {_ms(one.real_ms):>5} ms  simulated {_ms(one.simulated_ms):>5} ms"
    difference = f"difference {_ms(one.difference_ms):>5} of {_ms(one.tolerance.ms):>5} ms"
    verdict = "" if one.agrees else "  OUTSIDE"
    return f"{one.what:31}  {sides}  {difference} = {one.tolerance}{verdict}"


def _ms(value: int | None) -> str:
    return "none" if value is None else f"{value:,}"
