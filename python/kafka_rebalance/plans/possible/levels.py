# SPDX-License-Identifier: Apache-2.0
"""The best balance that the subscriptions allow, with the reason.

Best: the largest load as small as possible, then as few members at it as possible, then the same
for the others (the load vector, sorted descending, is lexicographically least; it then also has the
least deviation). It decomposes into levels, each with its own proof:

    level   topics T that only its members S (and those of higher levels) subscribe to;
            the partitions of T are (load - 1) * |S| + extra, so that at least `extra` members
            of S must have `load`, and nobody more.

1. The largest load: start at the mean, rounded up; if not all partitions fit, the cut shows topics
   that have too few subscribers; raise the load to their mean, and try again.
2. With one less a member not everything fits; what is left over is `extra`, and the side of the cut
   that it is stuck on is the level: its members are full, and its topics have nobody else.
3. Take the level away and go on with the rest, in which everybody has less.

Cost     a level is a few flows over topic classes x subscription classes.
Source   Frank, Murota: Fair integral network flows, Math. OR 2022 (canonical partition); Harvey,
         Ladner, Lovász, Tamir: Semi-matchings for bipartite graphs, J. Algorithms 2006.
"""

from dataclasses import dataclass

from .classes import Classes
from .flow import UNLIMITED, Flow


@dataclass(frozen=True, slots=True)
class ClassLevel:
    """`extra` members (at least 1, if `load` is not 0) have `load` partitions, the others less 1.

    `topics` and `members` are numbers of topic classes and subscription classes.
    """

    load: int
    extra: int
    topics: list[int]
    members: list[int]


def levels(classes: Classes) -> list[ClassLevel]:
    """From the highest load to the lowest."""
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
    """What does not fit with `load` a member, and the topics and members that it is stuck with."""
    source, sink = 0, 1
    topic_node = {c: 2 + i for i, c in enumerate(topics)}
    member_node = {k: 2 + len(topics) + i for i, k in enumerate(members)}
    flow = Flow(2 + len(topics) + len(members))
    for c in topics:
        flow.add(source, topic_node[c], classes.supply[c])
        for k in classes.subscribers[c]:
            if k in member_node:
                flow.add(topic_node[c], member_node[k], UNLIMITED)
    for k in members:
        flow.add(member_node[k], sink, load * len(classes.members[k]))
    left = sum(classes.supply[c] for c in topics) - flow.largest(source, sink)
    stuck = flow.reachable(source)
    return (
        left,
        [c for c in topics if stuck[topic_node[c]]],
        [k for k in members if stuck[member_node[k]]],
    )
