# SPDX-License-Identifier: Apache-2.0
"""Finds the best balance of a group and the fewest moves that reach it, with proofs of both.

The best possible result is the answer of the assignor `balanced` if only moves count as a
criterion; the modules of `assignors/balance` find it.

1. Find topic classes, subscription classes, and the owners of partitions.
2. Find the best balance as levels (sets of members whose loads differ by at most 1).
3. Find the fewest moves in each level.
4. Turn numbers into partitions.

Mirror: `src/plans/possible/optimum.rs`.

>>> from kafka_rebalance import GroupSpec, Member, Topic, TopicPartition
>>> from kafka_rebalance.plans import best_possible
>>> a, b = (TopicPartition("t", p) for p in range(2))
>>> group = GroupSpec(
...     "g",
...     topics=(Topic("t", 2), Topic("u", 4)),
...     members=(Member("C1", ("t", "u"), owned_partitions=(a, b)), Member("C2", ("t",))),
... )
>>> possible = best_possible(group, engine="reference")
>>> print(possible.assignment)
C1: u[0, 1, 2, 3]
C2: t[0, 1]
>>> possible.least_moves
6
>>> for reason in possible.reasons():
...     print(reason)
4 partitions of u can go to 1 member only: each must hold 4
2 partitions of t can go to 1 member only and to those above: each must hold 2
"""

from dataclasses import field
from typing import TYPE_CHECKING, Any

import kafka_rebalance._core as _core
from kafka_rebalance.assignors.assigning import from_columns
from kafka_rebalance.assignors.registry import Engine, check_engine
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.ownership import Assignment, Balance
from kafka_rebalance.group.spec import GroupSpec, counted, require_group

if TYPE_CHECKING:
    from kafka_rebalance.assignors.balance.classes import Classes
    from kafka_rebalance.assignors.balance.levels import ClassLevel


class Level(Frozen):
    """Members whose loads differ by at most 1 in the best balance, and the topics that they share.

    `topics` have no subscribers except `members` and members of higher levels. Together they have
    `(load - 1) * len(members) + extra` partitions: `extra` members own `load`, the others one
    fewer.
    """

    load: int
    extra: int
    topics: tuple[str, ...]
    members: tuple[str, ...]
    partitions: int


class Possible(Frozen):
    """The best balance, and the fewest partitions that have to move to reach it.

    `assignment` has this balance, and needs `least_moves` moves. `levels` prove the balance; the
    prices, one for each topic and each member (`assignors/balance/network.py`), prove that fewer
    moves do not suffice. For groups that share partitions or have tasks, `least_moves` is None, and
    there is no proof (`plans/playing.py`).
    """

    balance: Balance
    least_moves: int | None
    levels: tuple[Level, ...] = field(repr=False)
    assignment: Assignment
    topic_prices: dict[str, int] = field(repr=False, hash=False)
    member_prices: dict[str, int] = field(repr=False, hash=False)

    def reasons(self) -> list[str]:
        """Returns a line for each level, highest load first: why its loads cannot be more even."""
        above = ""
        said = []
        for level in self.levels:
            members = len(level.members)
            who = counted(members, "member")
            if not level.partitions:
                said.append(f"nothing is left for {who}")
                break
            names = ", ".join(level.topics[:3]) + (", …" if len(level.topics) > 3 else "")
            load = f"each must hold {level.load}"
            if level.extra < members:
                load = f"{level.extra} must hold {level.load}, the others {level.load - 1}"
            which = counted(level.partitions, "partition")
            said.append(f"{which} of {names} can go to {who} only{above}: {load}")
            above = " and to those above"
        return said

    def to_dict(self) -> dict[str, Any]:
        return {
            "balance": self.balance.to_dict(),
            "least_moves": self.least_moves,
            "reasons": self.reasons(),
        }


def best_possible(group: GroupSpec, *, engine: Engine = "rust") -> Possible:
    """Returns the best balance of a group, and the fewest moves to it from the present owners.

    A partition moves if its new owner is not its present owner, or if it has no present owner. If
    several members claim a partition, the claim of the newest generation counts; if two members
    claim it in that generation, it has no present owner.
    """
    require_group(group)
    if check_engine(engine) == "rust":
        member_ids = tuple(member.member_id for member in group.members)
        return from_core(_core.best_possible(group.interned()), member_ids)
    from kafka_rebalance.assignors.balance.balanced import by_place, hand_out
    from kafka_rebalance.assignors.balance.classes import classify
    from kafka_rebalance.assignors.balance.levels import levels
    from kafka_rebalance.assignors.balance.network import level_flow, lots_of

    # 1.
    classes = classify(group)
    # 2.
    found = levels(classes)
    # 3.
    lots = lots_of(group, classes, racks=False, by_topic=False)
    moved = [level_flow(classes, lots, level, ["moves"]) for level in found]
    # 4.
    given: list[list[TopicPartition]] = [[] for _ in group.members]
    for level, one in zip(found, moved, strict=True):
        hand_out(classes, lots, level, (one.keep, one.hubs), given)
    ids = (member.member_id for member in group.members)
    owned = zip(ids, (sorted(one, key=by_place) for one in given), strict=True)
    assignment = Assignment.of(dict(owned))
    return Possible(
        assignment.balance,
        sum(one.moves for one in moved),
        tuple(_named(group, classes, level) for level in found),
        assignment,
        {
            topic: price
            for one in moved
            for c, price in one.topic_prices.items()
            for topic in classes.topics[c]
        },
        {
            group.members[m].member_id: price
            for one in moved
            for m, price in one.member_prices.items()
        },
    )


def _named(group: GroupSpec, classes: "Classes", level: "ClassLevel") -> Level:
    members = sorted(m for k in level.members for m in classes.members[k])
    return Level(
        level.load,
        level.extra,
        tuple(t for c in level.topics for t in classes.topics[c]),
        tuple(group.members[m].member_id for m in members),
        sum(classes.supply[c] for c in level.topics),
    )


def from_core(found: "_core.Possible", member_ids: tuple[str, ...]) -> Possible:
    """Converts a result of the core; `member_ids` are the group's member ids, in join order."""
    best = from_columns(member_ids, found.assignment)
    members = [tuple(member_ids[m] for m in one.members) for one in found.levels]
    levels = (
        Level(one.load, one.extra, tuple(one.topics), ids, one.partitions)
        for one, ids in zip(found.levels, members, strict=True)
    )
    return Possible(
        best.balance,
        found.least_moves,
        tuple(levels),
        best,
        dict(found.topic_prices),
        {member_ids[m]: price for m, price in found.member_prices},
    )
