# SPDX-License-Identifier: Apache-2.0
"""Plays other courses of a plan: members leave in another order, return at another time, or join
more often than the plan counts.

kafka-python: if a rebalance ends between two calls of `poll` by a member, its next `poll` joins
again. If this member is the leader, the group rebalances once more; another member that joins with
an unchanged subscription does not cause this.

librdkafka: each member joins again when its own metadata shows that a topic has grown, or that
racks of its brokers have disappeared; in Java only the leader does. If the member by then owns
other partitions than at its last join, the group rebalances again. `played_further` plays these
rebalances, once in the plan and once in each draw (the plan with other random ids).

All members: in a plan they change their subscriptions at one moment. In most real groups that do
not subscribe by a pattern, members change them one after another. `mixed_subscriptions.py` plays
this.

Source   kafka-python 3.0.12 (BaseCoordinator.join_group_async: a `_join_task` that is done);
         librdkafka (rd_kafka_cgrp_metadata_update_check); Kafka 4.4.0
         (GroupMetadataManager.classicGroupJoinExistingMember).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, permutations
from typing import Any, Literal, NamedTuple

from kafka_rebalance.assignors.registry import SERVER_SIDE, library_of, protocol_name
from kafka_rebalance.errors import GroupError
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import GroupSpec, counted
from kafka_rebalance.plans.changes.bounces import BounceMembers, heartbeat_ms
from kafka_rebalance.plans.changes.change import Change
from kafka_rebalance.plans.changes.made_up import PLANNED, Draw
from kafka_rebalance.plans.changes.members import RemoveMembers
from kafka_rebalance.plans.changes.topics import AddPartitions, AddTopics, RemoveTopics, Resubscribe
from kafka_rebalance.plans.clients import AIOKAFKA, KAFKA_PYTHON, LIBRDKAFKA, clients_for
from kafka_rebalance.plans.rebalance_plan import RebalancePlan, replay
from kafka_rebalance.plans.samples import enough_draws

from .findings import Note
from .never_ends import MOST_WORK, work

_MOST_PERMUTED = 3
"""If more members than this leave one after another, only the reverse order is played."""


class OtherOrder(NamedTuple):
    """The order of departures after which the most partitions have other owners than in the plan.

    `elsewhere` is the number of these partitions, `moves` the number of moves in this order, and
    `orders` the number of orders that were played.
    """

    orders: int
    elsewhere: int
    moves: int


def other_order(plan: RebalancePlan) -> OtherOrder | None:
    """Returns the order of departures whose result differs most from the plan's result; None if no
    result differs, or if members assign.

    Cost     a plan for each other order: up to 5 for three members in a row.
    """
    if plan.group.assignor not in SERVER_SIDE or plan.final.assignor not in SERVER_SIDE:
        return None
    others = list(_orders(plan.changes))
    ends = _ends(plan)
    found = []
    for changes in others:
        played = replay(plan.group, changes, plan.engine, PLANNED, plan.possible)
        elsewhere = {tp for _, tp in _ends(played) ^ ends}
        found.append(OtherOrder(len(others), len(elsewhere), played.moves))
    most = max(found, key=lambda one: one.elsewhere, default=None)
    return most if most is not None and most.elsewhere else None


class OtherPause(NamedTuple):
    """The course of restarts that the plan does not play. If `is_sooner`, members return sooner in
    it, else later.

    `elsewhere` is the number of partitions that have another owner than in the plan. `chance` is
    the chance (0 to 1) of the plan's own course at each restart; None if the plan assumes the time.
    """

    is_sooner: bool
    rebalances: int
    moves: int
    elsewhere: int
    chance: float | None


def other_pause(plan: RebalancePlan) -> OtherPause | None:
    """Returns the course of restarts that the plan does not play; None if the plan's own course is
    certain, or if each other course has as many steps. Cost: up to 2 plans.
    """
    bounces = [one for one in plan.changes if isinstance(one, BounceMembers)]
    groups = (plan.group, plan.final) if bounces else ()
    doubtful = [one for one in bounces if not all(map(one.is_certain_in, groups))]
    if not doubtful:
        return None
    for away_ms in (0, heartbeat_ms(plan.group)):
        changes = tuple(
            replace(one, away_ms=away_ms) if one in doubtful else one for one in plan.changes
        )
        played = replay(plan.group, changes, plan.engine, PLANNED, plan.possible)
        if len(played.steps) != len(plan.steps):
            chance = doubtful[0].chance_to_be_first(plan.group)
            return OtherPause(
                is_sooner=away_ms == 0,
                rebalances=len(played.rounds),
                moves=played.moves,
                elsewhere=len({tp for _, tp in _by_origin(played) - _by_origin(plan)}),
                chance=None
                if doubtful[0].away_ms is None
                else round(1 - chance if away_ms == 0 else chance, 2),
            )
    return None


def _by_origin(plan: RebalancePlan) -> set[tuple[str, TopicPartition]]:
    """Returns (owner, partition) at the plan's end; owners are named by their first ids."""
    origins = plan.steps[-1].origins
    return {(origins.get(member_id, member_id), tp) for member_id, tp in _ends(plan)}


def _orders(changes: tuple[Change, ...]) -> Iterator[tuple[Change, ...]]:
    """Yields `changes` in other orders: each permutes one run of consecutive removals."""
    start = 0
    for is_removal, members in groupby(changes, _names_who_leaves):
        row = tuple(members)
        end = start + len(row)
        if is_removal:
            few = len(row) <= _MOST_PERMUTED
            for other in permutations(row) if few else [row[::-1]]:
                if other != row:
                    yield (*changes[:start], *other, *changes[end:])
        start = end


def _names_who_leaves(change: Change) -> bool:
    """Returns whether a change removes named members, so that its order among others can vary."""
    if not isinstance(change, RemoveMembers):
        return False
    return change.member is not None or change.client_id is not None


def _ends(plan: RebalancePlan) -> set[tuple[str, TopicPartition]]:
    return {(member_id, tp) for member_id, owned in plan.after.items() for tp in owned}


# More rebalances ----------------------------------------------------------------------------------

_MOST_REJOINS = 8
"""The largest number of additional rebalances played in a row: in some groups, every further one
moves partitions.
"""

_MOST_NAMED = 6

_BECAUSE = {
    "polls": "if one ends between two polls of a kafka-python leader, it joins again, and the "
    "group rebalances once more; under sticky, partitions may move again.",
    "metadata": "each member of librdkafka joins again when its own metadata shows the change. If "
    "the group has rebalanced by then, it may rebalance once more.",
    "subscriptions": "all members subscribe at one moment here, as members of Java do by a pattern."
    " A member of librdkafka meets a topic when its own metadata shows it, and processes that name "
    "their topics change one after another: each time, the group rebalances, and partitions may "
    "end elsewhere, also if racks count and a new topic's replicas are in some.",
}
_MOVES_TOO = (
    " With racks, each of these can take partitions outside their owner's rack away: moves are a "
    "lower bound, too, and partitions may end at other members."
)


class ExtraRebalances(NamedTuple):
    """The cause of additional rebalances, and whether these may also move partitions."""

    cause: Literal["polls", "metadata", "subscriptions"]
    may_move: bool


class Further(Frozen):
    """The result of up to `rejoins` additional rebalances, after the plan and after `draws` draws.

    `moves` is the smallest and the largest number of additional moves. `partitions` end at another
    member because of the additional rebalances, after the plan or a draw.
    """

    rejoins: int
    draws: int
    moves: tuple[int, int]
    partitions: tuple[TopicPartition, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "rejoins": self.rejoins,
            "draws": self.draws,
            "moves": list(self.moves),
            "partitions": [list(tp) for tp in self.partitions],
        }


def extra_rebalances(group: GroupSpec, changes: Sequence[Change]) -> ExtraRebalances | None:
    """Returns why a member may join more often than planned; None if there is no cause."""
    if group.assignor in SERVER_SIDE:
        return None
    if len(group.members) > 1 and any(map(changes_all, changes)):
        return ExtraRebalances("subscriptions", may_move=True)
    name = protocol_name(group.assignor or "")
    python = {KAFKA_PYTHON, AIOKAFKA}
    runs = [clients_for(member, group.group_id) for member in group.members]
    if any(KAFKA_PYTHON in clients and python.issuperset(clients) for clients in runs):
        return ExtraRebalances("polls", may_move=name == "sticky")
    grows = any(isinstance(change, AddPartitions) for change in changes)
    loses = any(isinstance(change, RemoveMembers) and change.rack for change in changes)
    sees = (grows and name == "cooperative-sticky") or (loses and _has_racks(group))
    if not sees or (LIBRDKAFKA,) not in runs:
        return None
    moves = name == "cooperative-sticky" and _has_racks(group)
    return ExtraRebalances("metadata", may_move=moves)


def changes_all(change: Change) -> bool:
    """Returns whether all members change their subscriptions; a plan plays this as one event."""
    if isinstance(change, Resubscribe):
        return change.member is None
    return isinstance(change, AddTopics | RemoveTopics)


def _has_racks(group: GroupSpec) -> bool:
    has_members = any(member.rack_id for member in group.members)
    return has_members and any(topic.racks is not None for topic in group.topics)


def played_further(plan: RebalancePlan, draws: int | None = None) -> Further:
    """Plays additional rebalances by librdkafka members, after the plan and after its draws.

    Cost     a plan and up to 8 rebalances for each draw; large groups have fewer draws.
    """
    own = [clients_for(one, plan.group.group_id) for one in plan.final.members].count((LIBRDKAFKA,))
    leads = library_of(plan.final.assignor) == "librdkafka"  # the plan plays the leader's join
    rejoins = min(max(0, own - leads), _MOST_REJOINS)
    draws = enough_draws(plan) if draws is None else draws
    draws = min(draws * plan.has_guesses, MOST_WORK // (1 + work(plan.final)))
    moves: list[int] = []
    elsewhere: dict[TopicPartition, None] = {}
    for played in _draws(plan, draws):
        last, moved = _rejoined(played, rejoins)
        moves.append(moved)
        for member_id, owned in last.after.items():
            held = frozenset(played.after.get(member_id, ()))
            elsewhere |= dict.fromkeys(tp for tp in owned if tp not in held)
    return Further(rejoins, draws, (min(moves), max(moves)), tuple(sorted(elsewhere)))


def _draws(plan: RebalancePlan, draws: int) -> Iterator[RebalancePlan]:
    yield plan
    for number in range(1, draws + 1):
        draw = Draw(number, draws, plan.newcomers)
        try:
            yield replay(plan.group, plan.changes, plan.engine, draw, plan.possible)
        except GroupError:  # the assignor throws with this draw's racks, or an id is missing
            continue


def _rejoined(plan: RebalancePlan, rejoins: int) -> tuple[RebalancePlan, int]:
    """Plays up to `rejoins` rebalances after the plan, until one moves nothing; returns the last
    plan, and the sum of their moves.
    """
    moves = 0
    for _ in range(rejoins):
        try:
            following = replay(plan.final, (), plan.engine, PLANNED, plan.possible)
        except GroupError:
            break
        if not following.moves:
            break
        plan, moves = following, moves + following.moves
    return plan, moves


Readers = Sequence[tuple[TopicPartition, str]]


def extra_note(
    extra: ExtraRebalances,
    further: Further | None = None,
    readers: Mapping[TopicPartition, str] = {},
) -> Note:
    """Returns the note on `extra`. `readers` maps partitions to their readers after the plan."""
    text = f"The number of rebalances is a lower bound: {_BECAUSE[extra.cause]}"
    partitions = () if further is None else further.partitions
    there = [(tp, (readers or {})[tp]) for tp in partitions]
    if extra.cause == "subscriptions":
        text += _apart(further, there) if further and further.draws else ""
    elif extra.cause == "metadata" and extra.may_move:
        text += _MOVES_TOO + (_played(further, there) if further and further.rejoins else "")
    played = {} if further is None else {"played": further.to_dict()}
    ids = tuple(dict.fromkeys(who for _, who in there))
    return Note("lower bound", text, ids, partitions, detail=extra._asdict() | played)


def _played(further: Further, readers: Readers) -> str:
    low, high = further.moves
    after = f" and after {counted(further.draws, 'sample')}" if further.draws else ""
    played = f" Played up to {counted(further.rejoins, 'time')} after this plan{after}, they "
    if not high:
        return f"{played}move nothing."
    moves = f"{low} to {high} times" if low < high else counted(high, "time")
    return f"{played}move partitions {moves} more; {_elsewhere(readers)}."


def _apart(further: Further, readers: Readers) -> str:
    low, high = further.moves
    moves = f"{low:+} to {high:+}" if low < high else f"{high:+}"
    ends = _elsewhere(readers) if readers else "every partition ends at the same member"
    return (
        f" Played in {counted(further.draws, 'random order')}: up to "
        f"{counted(further.rejoins, 'rebalance')} more, moves {moves}; {ends}."
    )


def _elsewhere(readers: Readers) -> str:
    named = ", ".join(f"{tp} (here {who})" for tp, who in readers[:_MOST_NAMED])
    if (more := len(readers) - _MOST_NAMED) > 0:
        named += f", and {more} more (--json has all)"
    return f"these may end elsewhere: {named}"
