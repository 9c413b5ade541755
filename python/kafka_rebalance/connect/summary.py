# SPDX-License-Identifier: Apache-2.0
"""Sums up rebalances of a Connect cluster in a sentence: what moves, and what runs nowhere."""

from collections.abc import Collection, Mapping, Sequence

from kafka_rebalance.assignors.connect.work import Task, Work
from kafka_rebalance.group.spec import counted

from .cluster import Idle, RoundAnswer, idle

_Item = str | Task


def summary(answers: Sequence[RoundAnswer], before: int = 0) -> str:
    """Returns a sentence: what moves to another worker, and what runs nowhere, and for how long.

    The first `before` answers show the present state; they are counted only if no others follow.
    """
    owner: dict[_Item, str] = {}
    since_ms: dict[_Item, int] = {}
    waited_ms: dict[_Item, int] = {}
    moved: set[_Item] = set()
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
    said = _courses(moved, {item: ms for item, ms in waited_ms.items() if ms})
    said += [_at_the_end(one, answer, owner) for one in found] or ["everything runs at the end"]
    # Only the leader of an eager cluster has no memory.
    eager = ", in each of which every worker stops its work" if answers[0].memory is None else ""
    return f"{counted(len(answers) - before or before, 'rebalance')}{eager}: {'; '.join(said)}."


def _courses(moved: set[_Item], waited_ms: Mapping[_Item, int]) -> list[str]:
    """Returns clauses: which items moved, and which waited; no item is in two clauses."""

    def waits(some: Collection[_Item]) -> str:
        return f"nowhere for up to {seconds(max(waited_ms[one] for one in some))}"

    said, first, back = [], moved & waited_ms.keys(), waited_ms.keys() - moved
    if first and first == moved:
        said.append(f"{_counted(moved)} {waits(moved)}, then on another worker")
    elif moved:
        after = f", {len(first)} of them after being {waits(first)}" if first else ""
        said.append(f"{_counted(moved)} on another worker{after}")
    if back:
        said.append(f"{_counted(back)} {waits(back)}, then where they ran")
    return said


def _at_the_end(one: Idle, last: RoundAnswer, owner: Mapping[_Item, str]) -> str:
    """Returns a clause: how much runs nowhere after the `last` round, and why or for how long."""
    items, now_ms = _items(one.work), last.round.time_ms
    if one.until_ms is None or one.until_ms <= now_ms:
        return f"{_counted(items)} nowhere: {one.why}"
    gone = dict.fromkeys(owner[item] for item in items)
    of = f"{next(iter(gone))}, which is" if len(gone) == 1 else f"{len(gone)} workers, which are"
    runs = _counted(items).replace(" run", f" of {of} gone, run")
    kept = f"kept for {'it' if len(gone) == 1 else 'them'}"
    return (
        f"{runs} nowhere for {seconds(one.until_ms - now_ms)} more, {kept}, then on another worker"
    )


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
