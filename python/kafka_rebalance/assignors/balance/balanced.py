# SPDX-License-Identifier: Apache-2.0
"""balanced: the most even load; then racks, moves and the spread of each topic, in a chosen order.

1. Find the best balance (`levels.py`) as levels: sets of members, and their loads.
2. For each level, find the cheapest flow (`network.py`). Its criteria, by default in this order:
   rack    most partitions with a replica in their reader's rack; skipped if no member has a rack
   moves   fewest partitions whose reader is not their present owner
   topics  fewest pairs of partitions of one topic at one member
3. A level needs no flow if its partitions have no owners and its members do not differ: deal its
   partitions to the members in turn, by topic and number.
4. Turn numbers into partitions: of each lot (`network.py`), a member keeps as many of its own as
   the flow sets, first one of each topic, then a second one; a hub deals the rest to its members.

A budget limits how many partitions are taken from their owners. With one, step 1 finds the best
loads within it (`budget.py`), and one flow for the whole group takes the place of the levels'
flows. Moves are then the first criterion. If the budget suffices for the best loads, this order is
its only effect.

Groups beyond `MOST_CELLS` or `MOST_PARTITIONS` have one lot for each topic class, so that topics do
not count in the flow; the deal of step 4 spreads them, and this criterion is not met exactly.

Order    members and topics by their names: the order of a group's lists changes nothing.
Differs  from Kafka's assignors: this one is not Kafka's. Every group has an answer.
"""

import re
from collections import Counter, deque
from collections.abc import Sequence
from typing import NamedTuple

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import TopicPartition, quoted
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.java.order import name_key

from .budget import best_within
from .classes import Classes, classify
from .levels import ClassLevel, levels
from .network import HandedOut, Lots, fewest_taken, hub_members, level_flow, lots_of

NAME = "balanced"
PREFER = ("rack", "moves", "topics")
MOST_CELLS, MOST_PARTITIONS = 100_000, 5_000
WITH_BUDGET = ("moves", "rack", "topics")
_BUDGET = re.compile("[0-9]{1,9}%?", re.ASCII)
_NOBODY = -1

Given = tuple[dict[tuple[int, int], int], list[HandedOut]]
"""(lot, member) -> how many partitions of the lot the member keeps; the hubs that deal the rest."""


class Objective(NamedTuple):
    """The order of the criteria of `PREFER`, and the budget: a number such as "3", or "5%"."""

    prefer: Sequence[str] = PREFER
    budget: str | None = None

    def most_taken(self, partitions: int) -> int | None:
        """Returns how many of `partitions` assigned partitions may be taken; None: any number."""
        if self.budget is None:
            return None
        number = int(self.budget.removesuffix("%"))
        return number * partitions // 100 if self.budget.endswith("%") else number


OBJECTIVE = Objective()


def objective_of(name: str) -> Objective:
    """Returns the objective in a name such as `balanced?prefer=moves,rack,topics&budget=5%`.

    Errors   GroupError at `assignor` for other settings.
    """
    _, mark, settings = name.partition("?")
    if not mark:
        return OBJECTIVE
    given = dict(one.partition("=")[::2] for one in settings.split("&"))
    budget = given.get("budget")
    prefer = given.get("prefer", ",".join(PREFER if budget is None else WITH_BUDGET)).split(",")
    known = given.keys() <= {"prefer", "budget"} and len(given) == settings.count("&") + 1
    fits = budget is None or (_BUDGET.fullmatch(budget) and prefer[0] == WITH_BUDGET[0])
    if known and fits and sorted(prefer) == sorted(PREFER):
        return Objective(tuple(prefer), budget)
    given_name = f"{quoted(name)} has a wrong setting"
    problem = f"{given_name}; give prefer={','.join(PREFER)}, with the three in any order"
    raise GroupError("assignor", f"{problem}; or budget=3 or budget=5%, with moves first")


def assign(group: GroupSpec, objective: Objective = OBJECTIVE) -> dict[str, list[TopicPartition]]:
    """Returns the partitions of each member."""
    classes = classify(group)
    exact = spreads_exactly(classes)
    criteria = [one for one in objective.prefer if one != "topics" or exact]
    coarse = lots_of(group, classes, racks=True, by_topic=False)
    cells = lots_of(group, classes, racks=True, by_topic=True) if exact else coarse
    answer: list[list[TopicPartition]] = [[] for _ in group.members]
    # 1.
    for level in _targets(group, classes, objective):
        # 3.
        hub = None if level.loads else _alike(classes, coarse, level)
        lots = cells if hub is None else coarse
        given: Given = ({}, [hub] if hub else [])
        if hub is None:
            # 2.
            found = level_flow(classes, lots, level, criteria)
            given = found.keep, found.hubs
        # 4.
        hand_out(classes, lots, level, given, answer)
    ids = (member.member_id for member in group.members)
    return {who: sorted(owned, key=by_place) for who, owned in zip(ids, answer, strict=True)}


def _targets(group: GroupSpec, classes: Classes, objective: Objective) -> list[ClassLevel]:
    """Returns the best balance's levels; if these exceed the budget, one level within it."""
    best = levels(classes)
    most = objective.most_taken(sum(classes.supply))
    if most is None or fewest_taken(group, classes, best) <= most:
        return best
    loads = tuple(best_within(classes, most))
    topics, members = range(len(classes.topics)), range(len(classes.members))
    return [ClassLevel(max(loads), 0, [*topics], [*members], loads)]


def spreads_exactly(classes: Classes) -> bool:
    """Returns whether the group is small enough for the exact spread of its topics."""
    sharers = [sum(len(classes.members[k]) for k in of) for of in classes.subscribers]
    cells = sum(n * count for n, count in zip(classes.supply, sharers, strict=True))
    return cells <= MOST_CELLS and sum(classes.supply) <= MOST_PARTITIONS


def _alike(classes: Classes, lots: Lots, level: ClassLevel) -> HandedOut | None:
    here = [n for c in level.topics for n in lots.of_class[c]]
    hubs = list(hub_members(classes, lots, level, here).values())
    inside = set(hubs[0].members)
    if len(hubs) > 1 or any(m in inside for n in here for m in lots.lots[n].held):
        return None
    less = max(level.load - 1, 0)
    wanted = [(m, level.load if i < level.extra else less) for i, m in enumerate(hubs[0].members)]
    return HandedOut(wanted, [(n, len(lots.lots[n].partitions)) for n in here])


def hand_out(
    classes: Classes,
    lots: Lots,
    level: ClassLevel,
    given: Given,
    answer: list[list[TopicPartition]],
) -> None:
    """Adds the partitions of a level to `answer`, a list for each member."""
    keep, hubs = given
    free: dict[int, list[TopicPartition]] = {}
    for n in (n for c in level.topics for n in lots.of_class[c]):
        owned: dict[int, list[TopicPartition]] = {}
        for tp in lots.lots[n].partitions:
            owned.setdefault(classes.owner.get(tp, _NOBODY), []).append(tp)
        free[n] = owned.pop(_NOBODY, [])
        for m, partitions in owned.items():
            spread = _spread(partitions)
            kept = keep.get((n, m), 0)
            answer[m] += spread[:kept]
            free[n] += spread[kept:]
        free[n].sort(key=by_place)
    for hub in hubs:
        batch: list[TopicPartition] = []
        for n, count in hub.lots:
            batch += free[n][:count]
            del free[n][:count]
        waiting = deque((m, wanted) for m, wanted in hub.wanted if wanted)
        for tp in sorted(batch, key=by_place):
            m, wanted = waiting.popleft()
            answer[m].append(tp)
            if wanted > 1:
                waiting.append((m, wanted - 1))


def by_place(tp: TopicPartition) -> tuple[bytes, int]:
    return name_key(tp.topic), tp.partition


def _spread(partitions: list[TopicPartition]) -> list[TopicPartition]:
    """Returns the first partition of each topic, then the second ones, and so on."""
    seen: Counter[str] = Counter()
    turns = []
    for tp in partitions:
        turns.append((seen[tp.topic], tp))
        seen[tp.topic] += 1
    return [tp for _, tp in sorted(turns, key=lambda turn: turn[0])]
