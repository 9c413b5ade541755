# SPDX-License-Identifier: Apache-2.0
"""Finds the least moves to the best balance, with prices that prove that fewer do not suffice.

Levels are independent: members of higher levels have no room, so the topics of a level go only to
the members of this level. In each level, the cheapest flow shows which partitions are kept:

    source --partitions--> topic class --held, cost 0--> member --load - 1--> sink
                           topic class --> hub --cost 1--> member --1--> extras --extra--> sink

A hub stands for a subscription class; it replaces arcs from every topic class to every member.

The prices of the flow prove the result (linear duality): no assignment of the level's partitions
moves fewer than

    sum(partitions of T * price of T) - sum(held by M of T * max(0, price of T - price of M))
    - (load - 1) * sum(price of M) - (the `extra` largest prices of M)

if no price of a topic is more than 1 above the price of any of its subscribers in the level.

Cost     for each level, a flow over topic classes x subscription classes + members + holdings.
Source   linear programming duality; convex flows as in `levels.py`.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from .classes import Classes
from .flow import UNLIMITED, Flow
from .levels import ClassLevel


@dataclass(frozen=True, slots=True)
class LevelMoves:
    """The moves of one level.

    `keep[c, m]` partitions of topic class c stay with member m. `more[m]` lists the classes of
    which m gains partitions, with the number from each. `moves` counts all gained partitions.
    The prices are those of the bound in the module's docstring.
    """

    moves: int
    keep: dict[tuple[int, int], int]
    more: dict[int, list[tuple[int, int]]]
    topic_prices: dict[int, int]
    member_prices: dict[int, int]


def least_moves(classes: Classes, level: ClassLevel) -> LevelMoves:
    members = [m for k in level.members for m in classes.members[k]]
    source, sink, extras = 0, 1, 2
    topic_node = {c: 3 + i for i, c in enumerate(level.topics)}
    hub_node = {k: 3 + len(topic_node) + i for i, k in enumerate(level.members)}
    member_node = {m: 3 + len(topic_node) + len(hub_node) + i for i, m in enumerate(members)}
    flow = Flow(3 + len(topic_node) + len(hub_node) + len(member_node))
    for c, node in topic_node.items():
        flow.add(source, node, classes.supply[c])
    kept = {
        (c, m): flow.add(topic_node[c], member_node[m], count)
        for (c, m), count in sorted(_held(classes, topic_node, member_node).items())
    }
    to_hub = {
        (c, k): flow.add(node, hub_node[k], UNLIMITED, 1)
        for c, node in topic_node.items()
        for k in classes.subscribers[c]
        if k in hub_node
    }
    from_hub = {
        m: flow.add(hub_node[classes.class_of_member[m]], node, UNLIMITED)
        for m, node in member_node.items()
    }
    for node in member_node.values():
        flow.add(node, sink, max(level.load - 1, 0))
        flow.add(node, extras, 1)
    flow.add(extras, sink, level.extra)
    moves = flow.cheapest(source, sink)
    return LevelMoves(
        moves,
        {place: flow.sent(arc) for place, arc in kept.items()},
        _through_hubs(classes, level, flow, to_hub, from_hub),
        {c: -flow.potential[node] for c, node in topic_node.items()},
        {m: -flow.potential[node] for m, node in member_node.items()},
    )


def _held(
    classes: Classes, topic_node: dict[int, int], member_node: dict[int, int]
) -> Counter[tuple[int, int]]:
    held: Counter[tuple[int, int]] = Counter()
    for tp, m in classes.owner.items():
        c = classes.class_of_topic[tp.topic]
        if c in topic_node and m in member_node:
            held[c, m] += 1
    return held


def _through_hubs(
    classes: Classes,
    level: ClassLevel,
    flow: Flow,
    to_hub: dict[tuple[int, int], int],
    from_hub: dict[int, int],
) -> dict[int, list[tuple[int, int]]]:
    """Returns member -> the topic classes of which it gains partitions, each with their number."""
    more: dict[int, list[tuple[int, int]]] = {}
    for k in level.members:
        into = _runs((c, flow.sent(to_hub[c, k])) for c in level.topics if (c, k) in to_hub)
        for m in classes.members[k]:
            wanted = flow.sent(from_hub[m])
            while wanted:
                c, run = next(into)
                taken = min(wanted, run[0])
                run[0] -= taken
                wanted -= taken
                if taken:
                    more.setdefault(m, []).append((c, taken))
    return more


def _runs(counts: Iterator[tuple[int, int]]) -> Iterator[tuple[int, list[int]]]:
    """Yields each class with its remaining count, again and again until the caller sets it to 0."""
    for c, count in counts:
        run = [count]
        while run[0]:
            yield c, run
