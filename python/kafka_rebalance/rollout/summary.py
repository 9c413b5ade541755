# SPDX-License-Identifier: Apache-2.0
"""What a deploy does, and which settings cost less, in words and with medians."""

from typing import TYPE_CHECKING

from kafka_rebalance.group.spec import counted

if TYPE_CHECKING:
    from .forecast import Forecast, PlayedDeploy

_LEAST_STOP_MS = 50  # an eager rebalance for which all members are ready stops them for less


def summary(found: "Forecast") -> str:
    """Returns in words, with medians, what the deploy does and which settings cost less."""
    now, *others = found.variants
    done = f"{_counted(now, 'rebalances', 'rebalance')} and {_counted(now, 'moves', 'move')}"
    if (now.figures["longest_stop_ms"].median or 0) >= _LEAST_STOP_MS:
        stopped = f"stops {_counted(now, 'stopped', 'member')}, whose pods run on,"
        done += f", and {stopped} for up to {_median(now, 'longest_stop_ms')} s"
    text = f"a deploy of {found.workload} causes {done}; {_unread(now)}"
    if now.figures["twice_ms"].most:
        records = f"{_median(now, 'twice_ms')} partition-seconds of records are"
        if "records_twice" in now.figures:
            records = f"{_counted(now, 'records_twice', 'record')} are"
        text += f", and {records} read twice"
    best = min(found.variants, key=lambda one: one.cost)
    free = [one for one in found.variants if not one.figures["rebalances"].most]
    less = [f'the least with "{best.name}": {_unread(best)}'] if best is not now else []
    if free and best not in free:
        least = min(free, key=lambda one: one.cost)
        less.append(f'no rebalance with "{least.name}": {_unread(least)}')
    if not less and others:
        less = ["nothing tried here costs less"]
    return ". ".join([text, *(f"{one[0].upper()}{one[1:]}" for one in less)]) + "."


def _unread(one: "PlayedDeploy") -> str:
    if not one.figures["unread_ms"].most:
        return "every partition is read throughout"
    unread, longest = _median(one, "unread_ms"), _median(one, "longest_ms")
    return f"partitions are unread for {unread} partition-seconds, one of them for {longest} s"


def _median(one: "PlayedDeploy", figure: str) -> str:
    return f"{(one.figures[figure].median or 0) / 1000:,.1f}"


def _counted(one: "PlayedDeploy", figure: str, noun: str) -> str:
    number = one.figures[figure].median
    return counted(number, noun) if number else f"no {noun}"
