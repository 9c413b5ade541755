# SPDX-License-Identifier: Apache-2.0
"""Measures how fast an application restores state, from two readings of its description.

A thread sends the position of each copy of a task's state when it joins. If a copy exists in the
last rebalance before each reading, it has restored the difference of its positions. If it has
reached the end that its changelogs had at the earlier reading, it could have been faster: its rate
is a lower bound. The records written to a task's changelogs are the difference of their ends in the
readings.
"""

from typing import Any, NamedTuple

from kafka_rebalance.assignors.streams.application import Application, end_offset_sums
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.spec import counted
from kafka_rebalance.wire.streams_protocol import LATEST_OFFSET, TaskId

from .lines import utc_text
from .replayed import Place, Replay, read_replay


class Rates(NamedTuple):
    """Measured rates, in records a second. `restore_rate` is that of the slowest copy that has not
    caught up. If all have caught up, each copy's rate is only a lower bound: `is_bound` is True,
    and `restore_rate` is the highest bound. `write_rate` is the fastest growth of a task's
    changelogs.
    """

    restore_rate: int
    write_rate: int
    is_bound: bool
    between_ms: tuple[int, int]

    def __str__(self) -> str:
        first, last = map(utc_text, self.between_ms)
        least = "at least " if self.is_bound else ""
        return (
            f"measured between {first} and {last}: a copy restores {least}"
            f"{counted(self.restore_rate, 'record')} a second, and up to "
            f"{counted(self.write_rate, 'record')} a second are written for a task"
        )


def measured_rates(group_id: str, line: Any, now: Replay) -> Rates:
    """Returns the rates between two readings.

    `line` is the earlier reading, the field `application` of a line; `now` replays the later one.

    Errors   GroupError at `since` if no copy has restored records between the two.
    """
    then = read_replay(group_id, line, now.given)
    between = then.application.now_ms, now.application.now_ms
    ms, before, after = between[1] - between[0], _positions(then), _positions(now)
    ends = [_ends(one.read, now) for one in (then, now)]
    found: list[tuple[bool, float]] = []
    for place in then.standby() & after.keys() if ms > 0 else ():
        task, had = place[1], max(0, before.get(place, 0))
        runs = after[place] == LATEST_OFFSET
        restored = (ends[0].get(task, 0) if runs else after[place]) - had
        if restored > 0:
            found.append((runs or after[place] >= ends[0].get(task, 0), restored * 1000 / ms))
    if not found:
        raise GroupError("since", "no copy of a task's state has restored records since then")
    unfinished = [rate for is_bound, rate in found if not is_bound]
    rate = min(unfinished) if unfinished else max(rate for _, rate in found)
    written = max((ends[1][task] - end for task, end in ends[0].items()), default=0)
    apart_ms = max(1, now.read.now_ms - then.read.now_ms)
    restore_rate, write_rate = max(1, int(rate)), max(0, -(-written * 1000 // apart_ms))
    return Rates(restore_rate, write_rate, not unfinished, between)


def _positions(one: Replay) -> dict[Place, int]:
    return {place: total for place, total in one.sums().items() if total >= LATEST_OFFSET}


def _ends(read: Application, now: Replay) -> dict[TaskId, int]:
    topics = read._replace(subtopologies=now.application.subtopologies)
    return end_offset_sums(topics, now.topology) or {}
