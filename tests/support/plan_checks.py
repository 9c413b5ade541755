# SPDX-License-Identifier: Apache-2.0
"""Checks plans without the code that made them.

The best possible result is checked by the proof that comes with it, and by brute force. Rounds are
compared with repeated calls of `assign`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import kafka_rebalance as kr
from kafka_rebalance import Assignment, GroupSpec, RebalancePlan, TopicPartition
from kafka_rebalance.assignors.registry import OURS
from kafka_rebalance.plans import Level, Possible, Step
from kafka_rebalance.plans.clients import lists_eager_plug_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_rebalance.plans import Round

# The best possible result -------------------------------------------------------------------------


def subscribed(group: GroupSpec) -> dict[TopicPartition, list[int]]:
    """Returns partition -> indexes of its subscribers; partitions without any are left out."""
    readers = {
        TopicPartition(topic.name, p): [
            m for m, member in enumerate(group.members) if topic.name in member.topics
        ]
        for topic in group.topics
        for p in range(topic.partitions)
    }
    return {tp: members for tp, members in readers.items() if members}


def owners(group: GroupSpec) -> dict[TopicPartition, int]:
    """Returns partition -> index of its owner: the only claimant with the newest generation.

    Partitions whose claimant does not subscribe to the topic are left out.
    """
    claims: dict[TopicPartition, set[tuple[int, int]]] = {}
    for m, member in enumerate(group.members):
        generation = -1 if member.generation_id is None else member.generation_id
        for tp in member.owned_partitions:
            claims.setdefault(tp, set()).add((generation, m))
    newest = {
        tp: [m for generation, m in found if generation == max(found)[0]]
        for tp, found in claims.items()
    }
    readers = subscribed(group)
    return {
        tp: found[0]
        for tp, found in newest.items()
        if len(found) == 1 and found[0] in readers.get(tp, ())
    }


def brute_force(group: GroupSpec) -> tuple[list[int], int]:
    """Tries all assignments; returns the best loads, largest first, and their fewest moves."""
    readers, owner = subscribed(group), owners(group)
    best: tuple[list[int], int] | None = None
    for choice in itertools.product(*readers.values()):
        loads = [0] * len(group.members)
        for m in choice:
            loads[m] += 1
        moves = sum(owner.get(tp) != m for tp, m in zip(readers, choice, strict=True))
        found = (sorted(loads, reverse=True), moves)
        best = found if best is None or found < best else best
    assert best is not None
    return best


def check_witnesses(group: GroupSpec, possible: Possible) -> None:
    """Checks that the answer proves its best balance and its fewest moves."""
    ids = [member.member_id for member in group.members]
    number = {member_id: m for m, member_id in enumerate(ids)}
    readers, owner = subscribed(group), owners(group)
    # The balance is possible: `possible.assignment` is valid and reaches it.
    given = [(tp, number[m]) for m, owned in possible.assignment.items() for tp in owned]
    assert sorted(tp for tp, _ in given) == sorted(readers)
    assert all(m in readers[tp] for tp, m in given)
    assert sum(owner.get(tp) != m for tp, m in given) == possible.least_moves
    assert possible.balance == possible.assignment.balance
    # No balance is better: only members of a level or of earlier ones can read its partitions.
    assert sorted(m for level in possible.levels for m in level.members) == sorted(ids)
    topics = [topic for level in possible.levels for topic in level.topics]
    assert sorted(topics) == sorted({tp.topic for tp in readers})
    loads: list[int] = []
    above: set[int] = set()
    bound = 0
    for level in possible.levels:
        members = [number[member_id] for member_id in level.members]
        above.update(members)
        mine = [tp for tp in readers if tp.topic in level.topics]
        assert all(above.issuperset(readers[tp]) for tp in mine)
        assert len(mine) == level.partitions
        if level.load:
            assert level.partitions == (level.load - 1) * len(members) + level.extra
            assert 1 <= level.extra <= len(members)
        loads += [level.load] * level.extra
        loads += [max(level.load - 1, 0)] * (len(members) - level.extra)
        bound += _bound(group, possible, level, mine, members, owner, readers)
    assert [level.load for level in possible.levels] == sorted(
        {level.load for level in possible.levels}, reverse=True
    )
    assert sorted(possible.assignment.counts(), reverse=True) == loads
    # The prices prove that every assignment with this balance has at least as many moves.
    assert bound == possible.least_moves


def _bound(
    group: GroupSpec,
    possible: Possible,
    level: Level,
    mine: list[TopicPartition],
    members: list[int],
    owner: dict[TopicPartition, int],
    readers: dict[TopicPartition, list[int]],
) -> int:
    """Returns a lower bound for the moves in this level, from the prices (linear duality)."""
    price = {m: possible.member_prices[group.members[m].member_id] for m in members}
    bound = -(max(level.load - 1, 0)) * sum(price.values())
    bound -= sum(sorted(price.values(), reverse=True)[: level.extra])
    for tp in mine:
        of_topic = possible.topic_prices[tp.topic]
        bound += of_topic
        assert all(of_topic <= price[m] + 1 for m in readers[tp] if m in price)
        holder = owner.get(tp)
        if holder in price:
            bound -= max(0, of_topic - price[holder])
    return bound


# Rounds -------------------------------------------------------------------------------------------


def check_rounds(plan: RebalancePlan, *, engine: str = "rust") -> None:
    """Asserts that every round is legal and equals the answer of `assign`."""
    for step in plan.steps:
        if step.rounds:
            _check_step(step, engine, _forgetting(plan, step))
        else:
            assert _held(step.before) == _held(step.after)
    assert plan.after.to_dict() == _held(plan.final)
    unavailable = Counter(tp for one in plan.rounds for tp in one.unavailable)
    assert plan.unavailable == dict(unavailable)


def _forgetting(plan: RebalancePlan, step: Step) -> set[str]:
    """Returns the members that claim nothing although they own partitions, in a change of assignor.

    These are all members, or those that have restarted and list an eager assignor beside a
    cooperative one.
    """
    if not any(isinstance(change, kr.SwitchAssignor) for change in plan.changes):
        return set()
    sent = [(m, one.held[m.member_id]) for one in step.rounds for m in one.group.members]
    forgetting = {
        m.member_id
        for m, held in sent
        if any(tp.topic in m.topics for tp in held) and not m.owned_partitions
    }
    claim = any(m.owned_partitions for m, _ in sent)
    was_eager = plan.group.rebalance_protocol == "eager"
    assert was_eager or forgetting <= {*plan.made_up} or not claim
    return forgetting


def _check_step(step: Step, engine: str, forgetting: set[str]) -> None:
    group = step.before
    assignor = group.assignor
    assert assignor is not None
    ours = assignor.partition("?")[0] in OURS
    cooperative = ours or assignor.endswith("cooperative-sticky")
    librdkafka = assignor.startswith("librdkafka/")
    eager = cooperative and group.rebalance_protocol == "eager"
    # Eager members of a plug-in claim in user data: in a switch, those that restarted do.
    claims_in_user_data = lists_eager_plug_in(group, assignor)
    cooperative &= not claims_in_user_data
    starts_over = step.rounds[0].kind == "eager" and not claims_in_user_data
    if eager or (forgetting and starts_over):
        cooperative = False
        members = tuple(
            replace(member, owned_partitions=(), generation_id=None) for member in group.members
        )
        by_id = {member.member_id: member for member in step.rounds[0].group.members}
        assert tuple(by_id[member.member_id] for member in members) == members
    claims = Counter(tp for m in group.members for tp in set(m.owned_partitions))
    contested = any(count > 1 for count in claims.values())
    target: Assignment | None = None
    for number, one in enumerate(step.rounds, 1):
        answer = target or kr.assign(one.group, assignor, engine=engine)  # type: ignore[arg-type]
        if ours and cooperative:  # the leader withholds, and takes nothing more in the next round
            target, answer = answer, _without_claims_of_others(one.group, answer)
        assert answer == one.assignment
        assert not eager or not any(m.owned_partitions for m in one.group.members)
        # Before it joins, a cooperative member revokes partitions of topics it unsubscribed from.
        claimed = {
            m.member_id: {tp for tp in m.owned_partitions if tp.topic in m.topics}
            if m.member_id not in forgetting
            else set[kr.TopicPartition]()
            for m in group.members
        }
        if cooperative:
            assert {m.member_id: set(m.owned_partitions) for m in one.group.members} == claimed
        _check_changes(group, one)
        # If Kafka assigns a partition twice, the answer lists an anomaly.
        if cooperative and not contested and not one.assignment.anomalies:
            _check_nobody_gains_what_another_claims(one, claimed)
        reading = set().union(*claimed.values()) if cooperative else set()
        assert set(one.unavailable) == set(subscribed(group)) - reading
        lost = any(owned - set(answer[m]) for m, owned in claimed.items())
        assert (number < len(step.rounds)) <= (cooperative and lost)
        if number == len(step.rounds) and step.settled:
            assert not (cooperative and lost)
        _check_withheld(step, number)
        if librdkafka:
            # Members sort the partitions that they receive before they claim them.
            answer = Assignment.of({m: sorted(owned) for m, owned in answer.items()})
        group = _next(group, answer)
    assert _held(step.after) == _held(group)


def _without_claims_of_others(group: GroupSpec, target: Assignment) -> Assignment:
    claims = {(one.member_id, tp) for one in group.members for tp in one.owned_partitions}
    claimed = {tp for _, tp in claims}
    return Assignment.of(
        {
            member_id: [tp for tp in owned if tp not in claimed or (member_id, tp) in claims]
            for member_id, owned in target.items()
        }
    )


def _check_changes(group: GroupSpec, one: Round) -> None:
    """Asserts that kept, revoked and gained partitions lead from the group to the answer."""
    for member in group.members:
        member_id, owned = member.member_id, set(member.owned_partitions)
        kept, revoked = set(one.kept[member_id]), set(one.revoked[member_id])
        assert kept | revoked == owned
        assert not kept & revoked
        gained = set(one.gained[member_id])
        assert kept | gained == set(one.assignment[member_id])
        assert not gained & owned


def _check_nobody_gains_what_another_claims(
    one: Round, claimed: Mapping[str, set[TopicPartition]]
) -> None:
    for member_id in claimed:
        others = (tps for other, tps in claimed.items() if other != member_id)
        assert not set(one.gained[member_id]).intersection(*[set().union(*others)])


def _check_withheld(step: Step, number: int) -> None:
    one = step.rounds[number - 1]
    withheld = {tp for owned in one.withheld.values() for tp in owned}
    given = {tp for owned in one.assignment.values() for tp in owned}
    revoked = {tp for owned in one.revoked.values() for tp in owned}
    assert withheld <= revoked - given
    if number < len(step.rounds):
        following = step.rounds[number].gained
        assert withheld == (revoked - given) & {tp for o in following.values() for tp in o}


def _next(group: GroupSpec, answer: Assignment) -> GroupSpec:
    generation = 1 + max([0, *(member.generation_id or 0 for member in group.members)])
    members = tuple(
        replace(m, owned_partitions=answer[m.member_id], generation_id=generation)
        for m in group.members
    )
    return replace(group, members=members, max_partitions=10**9)


def _held(group: GroupSpec) -> dict[str, list[list[str | int]]]:
    return Assignment.owned(group).to_dict()
