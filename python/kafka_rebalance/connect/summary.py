# SPDX-License-Identifier: Apache-2.0
"""Sums up rebalances of a Connect cluster in a sentence: what moves, and what runs nowhere."""

from collections.abc import Collection, Sequence

from kafka_rebalance.assignors.connect.work import Task, Work
from kafka_rebalance.group.spec import counted

from .cluster import RoundAnswer, idle

_Item = str | Task


def summary(answers: Sequence[RoundAnswer], before: int = 0) -> str:
    """Returns a sentence: what moves to another worker, and what runs nowhere, and for how long.

    The first `before` answers show the present state; they are counted only if no others follow.
    """
    owner: dict[_Item, str] = {}
    since_ms: dict[_Item, int] = {}
    waited_ms: dict[_Item, int] = {}
    moved: set[_Item] = set()
    left_ms = 0
    for answer in answers:
        now_ms = answer.round.time_ms
        for worker, work in answer.running.items():
            owner |= dict.fromkeys(_items(work), worker)
        for worker, work in answer.result.assigned.items():
            for item in _items(work):
                if owner.get(item, worker) != worker:
                    moved.add(item)
                owner[item] = worker
        found = idle(answer)
        nowhere = {item for one in found for item in _items(one.work)}
        for item in since_ms.keys() - nowhere:
            waited_ms[item] = max(waited_ms.get(item, 0), now_ms - since_ms.pop(item))
        since_ms |= dict.fromkeys(nowhere - since_ms.keys(), now_ms)
        left_ms = max((one.until_ms - now_ms for one in found if one.until_ms), default=0)
    waited = {item: ms for item, ms in waited_ms.items() if ms}
    at_once, later, same = moved - waited.keys(), waited.keys() & moved, waited.keys() - moved
    said = [f"{_counted(at_once)} on another worker"] if at_once else []
    for items, then in (later, ", then on another worker"), (same, ""):
        if items:
            longest = seconds(max(waited[one] for one in items))
            said.append(f"{_counted(items)} nowhere for up to {longest}{then}")
    if since_ms:
        more = f", for {seconds(left_ms)} more" if left_ms else ""
        said.append(f"{_counted(since_ms)} nowhere at the end{more}")
    else:
        said.append("everything runs at the end")
    # Only incremental leaders have a memory.
    eager = ", in each of which every worker stops its work" if answers[0].memory is None else ""
    return f"{counted(len(answers) - before or before, 'rebalance')}{eager}: {'; '.join(said)}."


def seconds(ms: int) -> str:
    """Returns a time such as `300s` or `0.5s`."""
    return f"{ms / 1000:.3f}".rstrip("0").rstrip(".") + "s"


def _items(work: Work) -> list[_Item]:
    return [*work.connectors, *work.tasks]


def _counted(items: Collection[_Item]) -> str:
    connectors = sum(isinstance(one, str) for one in items)
    each = [(connectors, "connector"), (len(items) - connectors, "task")]
    what = " and ".join(counted(number, noun) for number, noun in each if number)
    return f"{what} {'runs' if len(items) == 1 else 'run'}"
