# SPDX-License-Identifier: Apache-2.0
"""Finds the best balance that the subscriptions allow, as levels that prove it.

A member's load is its number of partitions. The best balance has the smallest possible largest
load, then as few members as possible with this load, then the smallest possible next load, and so
on; this balance also has the least standard deviation. It has levels, each with its own proof:

    level   members S, and topics T to which only members of S and of higher levels subscribe.
            T has (load - 1) * |S| + extra partitions, and members of higher levels have no room.
            So at least `extra` members of S must have `load` partitions.

1. The largest load: start at the mean, rounded up. If not all partitions fit, the minimum cut shows
   topics with too few subscribers. Raise the load to the mean of that cut, and try again.
2. With `load - 1` for each member, `extra` partitions do not fit. In the minimum cut, the topics
   and members on the side of these partitions are the level: its members have no room, and its
   topics have no other subscribers that could take partitions.
3. Remove the level, and continue with the rest, in which all loads are smaller.

Cost     for each level, a few flows over topic classes x subscription classes.
Source   Frank, Murota: Fair integral network flows, Math. OR 2022 (canonical partition); Harvey,
         Ladner, Lovász, Tamir: Semi-matchings for bipartite graphs, J. Algorithms 2006.
"""

from collections.abc import Mapping, Sequence

from kafka_rebalance.frozen import Frozen

from .classes import Classes
from .flow import UNLIMITED, Flow


class ClassLevel(Frozen):
    """`extra` members (at least 1, unless `load` is 0) have `load` partitions, the rest one fewer.

    With `loads`, which only a budget sets, member m has `loads[m]` partitions; `load` is the most.
    """

    load: int
    extra: int
    topics: list[int]
    members: list[int]
    loads: tuple[int, ...] = ()


def levels(classes: Classes) -> list[ClassLevel]:
    """Returns all levels, from the highest load to the lowest."""
    topics = list(range(len(classes.topics)))
    members = list(range(len(classes.members)))
    found: list[ClassLevel] = []
    while members:
        # 1.
        load = _least_load(classes, topics, members)
        if load == 0:
            found.append(ClassLevel(0, 0, topics, members))
            break
        # 2.
        left, stuck_topics, stuck_members = _cut(classes, topics, members, load - 1)
        found.append(ClassLevel(load, left, stuck_topics, stuck_members))
        # 3.
        topics = [c for c in topics if c not in set(stuck_topics)]
        members = [k for k in members if k not in set(stuck_members)]
    return found


def _least_load(classes: Classes, topics: list[int], members: list[int]) -> int:
    load = _mean_up(classes, topics, members)
    while True:
        left, stuck_topics, stuck_members = _cut(classes, topics, members, load)
        if not left:
            return load
        load = _mean_up(classes, stuck_topics, stuck_members)


def _mean_up(classes: Classes, topics: list[int], members: list[int]) -> int:
    supply = sum(classes.supply[c] for c in topics)
    return -(-supply // sum(len(classes.members[k]) for k in members))


def _cut(
    classes: Classes, topics: list[int], members: list[int], load: int
) -> tuple[int, list[int], list[int]]:
    room = {k: load * len(classes.members[k]) for k in members}
    return cut(classes, topics, room, classes.supply)


def cut(
    classes: Classes, topics: list[int], room: Mapping[int, int], supply: Sequence[int]
) -> tuple[int, list[int], list[int]]:
    """Returns how much of `supply` does not fit; and the topic classes and subscription classes on
    the source's side of the minimum cut.

    `room`: how many partitions all members of each subscription class together can take.
    """
    source, sink = 0, 1
    topic_node = {c: 2 + i for i, c in enumerate(topics)}
    member_node = {k: 2 + len(topics) + i for i, k in enumerate(room)}
    flow = Flow(2 + len(topics) + len(room))
    for c in topics:
        flow.add(source, topic_node[c], supply[c])
        for k in classes.subscribers[c]:
            if k in member_node:
                flow.add(topic_node[c], member_node[k], UNLIMITED)
    for k, most in room.items():
        flow.add(member_node[k], sink, most)
    left = sum(supply[c] for c in topics) - flow.largest(source, sink)
    stuck = flow.reachable(source)
    return (
        left,
        [c for c in topics if stuck[topic_node[c]]],
        [k for k in room if stuck[member_node[k]]],
    )
