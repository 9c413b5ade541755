# SPDX-License-Identifier: Apache-2.0
"""Finds the best way to a level's balance, by racks, moves and spread topics, as a cheapest flow.

A level is a set of members, their topics and their loads (`levels.py`). Levels are independent:
members of higher levels have no room, so the topics of a level go only to the members of this
level. A *lot* is a set of partitions that differ in nothing that counts: those of a topic class
with equal racks. A *hub* stands for members of equal subscriptions and racks; it replaces arcs from
every lot to every member. One flow for each level:

    source --partitions--> lot --held, not a move--> member --load - 1--> sink
                           lot --a move--> hub --> member --1--> extras --extra--> sink

If topics are to be spread, a lot belongs to one topic, and each topic and member have a hub of
their own. The hub's arcs to the member carry one partition each, and cost 0, 1, 2, …: together, the
number of pairs of the topic's partitions at this member. The costs of the criteria are added up: a
criterion costs more than all later ones together can cost.

The prices of the flow (the potentials of its nodes) prove the result by linear duality. If moves
are the only criterion, this number is a lower bound for the moves (T: each topic of the level, M:
each of its members):

    sum(partitions of T * price of T) - sum(held by M of T * max(0, price of T - price of M))
    - (load - 1) * sum(price of M) - (the `extra` largest prices of M)

The bound holds if no topic's price is more than 1 above the price of any of its subscribers in the
level.

Cost     for each level, a flow over lots x hubs + members + holdings.
Source   linear programming duality; convex flows as in `levels.py`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.java.order import by_name

from .classes import Classes
from .flow import UNLIMITED, Flow
from .levels import ClassLevel

_NO_RACK = -1


@dataclass(slots=True)
class Lot:
    """Interchangeable partitions, sorted by topic and number; member m owns `held[m]` of them.

    `first` is the number of the first lot of the same topic, which stands for the topic.
    """

    topic_class: int
    first: int
    racks: frozenset[int]
    partitions: list[TopicPartition] = field(default_factory=list)
    held: Counter[int] = field(default_factory=Counter)


@dataclass(slots=True)
class Lots:
    """The lots: one for each topic class (with `by_topic`: each topic) and set of racks.

    Racks are numbers; `rack[m]` is member m's: -1 if it has none, or if racks do not count.
    """

    lots: list[Lot]
    of_class: list[list[int]]
    rack: list[int]
    by_topic: bool


@dataclass(slots=True)
class HandedOut:
    """The partitions that one hub deals out, and to whom.

    `wanted`: pairs (member, number that it gets); `lots`: pairs (lot, number taken from it).
    """

    wanted: list[tuple[int, int]]
    lots: list[tuple[int, int]]


class LevelFlow(Frozen):
    """A level's flow: `keep[lot, m]` partitions stay with member m, hubs assign the rest.

    `moves` counts the partitions that flow through a hub. The prices are explained in the module's
    docstring; they prove something only if moves are the only criterion.
    """

    moves: int
    keep: dict[tuple[int, int], int]
    hubs: list[HandedOut]
    topic_prices: dict[int, int]
    member_prices: dict[int, int]


def lots_of(group: GroupSpec, classes: Classes, *, racks: bool, by_topic: bool) -> Lots:
    """Returns the lots. Without `racks`, the racks of partitions and members are ignored."""
    of_members = {m.rack for m in group.members if racks and m.rack is not None}
    number = {name: n for n, name in enumerate(by_name(of_members))}
    given = {topic.name: topic for topic in group.topics}
    lots: list[Lot] = []
    of_class: list[list[int]] = []
    for c, names in enumerate(classes.topics):
        found: dict[tuple[int, tuple[int, ...]], Lot] = {}
        start = len(lots)
        for t, name in enumerate(names):
            topic = given[name]
            for p in range(topic.partitions):
                near = topic.racks[p] if number and topic.racks else ()
                where = sorted({number[rack] for rack in near if rack in number})
                key = (t if by_topic else 0, tuple(where))
                lot = found.setdefault(key, Lot(c, start, frozenset(where)))
                tp = TopicPartition(name, p)
                lot.partitions.append(tp)
                if tp in classes.owner:
                    lot.held[classes.owner[tp]] += 1
        for key in sorted(found):
            last = lots[-1] if len(lots) > start else None
            if last and last.partitions[0].topic == found[key].partitions[0].topic:
                found[key].first = last.first
            else:
                found[key].first = len(lots)
            lots.append(found[key])
        of_class.append(list(range(start, len(lots))))
    rack = [number.get(member.rack or "", _NO_RACK) for member in group.members]
    return Lots(lots, of_class, rack, by_topic)


def level_flow(
    classes: Classes, lots: Lots, level: ClassLevel, criteria: Sequence[str]
) -> LevelFlow:
    """Returns the cheapest flow of a level; `criteria` is an order of "rack", "moves", "topics"."""
    here = [n for c in level.topics for n in lots.of_class[c]]
    members = [m for k in level.members for m in classes.members[k]]
    hubs = hub_members(classes, lots, level, here)
    source, sink, extras = 0, 1, 2
    lot_node = {n: 3 + i for i, n in enumerate(here)}
    hub_node = {key: 3 + len(here) + i for i, key in enumerate(hubs)}
    member_node = {m: 3 + len(here) + len(hubs) + i for i, m in enumerate(members)}
    price = _prices(classes, level, criteria)
    flow = Flow(3 + len(here) + len(hubs) + len(members))
    for n, node in lot_node.items():
        flow.add(source, node, len(lots.lots[n].partitions))

    def away(n: int, rack: int) -> int:
        return 0 if rack in lots.lots[n].racks else price.get("rack", 0)

    place = {m: i for i, m in enumerate(classes.order)}
    kept: dict[tuple[int, int], int] = {}
    for n, node in lot_node.items():
        for m, count in sorted(lots.lots[n].held.items(), key=lambda held: place[held[0]]):
            if m in member_node:
                cell = hub_node[lots.lots[n].first, m] if lots.by_topic else member_node[m]
                kept[n, m] = flow.add(node, cell, count, away(n, lots.rack[m]))
    to_hub = {
        key: [
            (n, flow.add(lot_node[n], node, UNLIMITED, price["moves"] + away(n, hub.rack)))
            for n in hub.lots
        ]
        for (key, hub), node in zip(hubs.items(), hub_node.values(), strict=True)
    }
    from_hub = {
        key: _out_of(flow, lots, hub, node, (member_node, level.load, price.get("topics", 0)))
        for (key, hub), node in zip(hubs.items(), hub_node.values(), strict=True)
    }
    for m, node in member_node.items():
        flow.add(node, sink, level.loads[m] if level.loads else max(level.load - 1, 0))
        flow.add(node, extras, 1)
    flow.add(extras, sink, level.extra)
    flow.cheapest(source, sink)
    found = []
    for key, hub in hubs.items():
        into = [(n, flow.sent(arc)) for n, arc in to_hub[key] if flow.sent(arc)]
        out = [flow.sent(arc) for arc in from_hub[key]]
        wanted = out or [sum(count for _, count in into)]
        found.append(HandedOut(list(zip(hub.members, wanted, strict=True)), into))
    return LevelFlow(
        sum(count for hub in found for _, count in hub.lots),
        {place: flow.sent(arc) for place, arc in kept.items()},
        found,
        {lots.lots[n].topic_class: -flow.potential[node] for n, node in lot_node.items()},
        {m: -flow.potential[node] for m, node in member_node.items()},
    )


def _out_of(
    flow: Flow, lots: Lots, hub: "HubMembers", node: int, to: tuple[dict[int, int], int, int]
) -> list[int]:
    """Adds the arcs from a hub to its members; returns them, or [] for a topic's hub.

    `to`: the members' nodes, the level's load, and the cost of a pair of partitions of a topic.
    """
    member_node, load, pair = to
    if not lots.by_topic:
        return [flow.add(node, member_node[m], UNLIMITED) for m in hub.members]
    (m,) = hub.members
    for x in range(min(sum(len(lots.lots[n].partitions) for n in hub.lots), load)):
        flow.add(node, member_node[m], 1, x * pair)
    return []


@dataclass(slots=True)
class HubMembers:
    """The members of a hub, their rack, and the lots that they can read."""

    members: list[int]
    rack: int
    lots: list[int]


def hub_members(
    classes: Classes, lots: Lots, level: ClassLevel, here: list[int]
) -> dict[tuple[int, int], HubMembers]:
    """Returns the hubs of a level's lots, in the order in which they hand out partitions."""
    hubs: dict[tuple[int, int], HubMembers] = {}
    if lots.by_topic:
        for n in here:
            subscribers = classes.subscribers[lots.lots[n].topic_class]
            for k in subscribers:
                for m in classes.members[k] if k in level.members else ():
                    cell = lots.lots[n].first, m
                    hubs.setdefault(cell, HubMembers([m], lots.rack[m], [])).lots.append(n)
        return hubs
    for k in level.members:
        fitting = [n for n in here if k in classes.subscribers[lots.lots[n].topic_class]]
        for rack in sorted({lots.rack[m] for m in classes.members[k]}):
            of_rack = [m for m in classes.members[k] if lots.rack[m] == rack]
            hubs[k, rack] = HubMembers(of_rack, rack, fitting)
    return hubs


def fewest_taken(group: GroupSpec, classes: Classes, best: Sequence[ClassLevel]) -> int:
    """Returns the fewest partitions that must leave their owners to reach the levels."""
    lots = lots_of(group, classes, racks=False, by_topic=False)
    moves = sum(level_flow(classes, lots, level, ["moves"]).moves for level in best)
    return moves - (sum(classes.supply) - len(classes.owner))


def _prices(classes: Classes, level: ClassLevel, criteria: Sequence[str]) -> dict[str, int]:
    partitions = sum(classes.supply[c] for c in level.topics)
    prices, unit = {}, 1
    for criterion in reversed(criteria):
        prices[criterion] = unit
        pairs = partitions * (partitions - 1) // 2
        unit *= 1 + (pairs if criterion == "topics" else partitions)
    return prices
