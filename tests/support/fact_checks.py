# SPDX-License-Identifier: Apache-2.0
"""One check for each kind of fact of an explanation: `CHECKS[type(fact)](log, tp, fact)`.

A check asserts that a fact about partition `tp` is true of a logged run of the assignor. It uses
the log, the group and the assignors, never the code that found the fact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from kafka_rebalance import TopicPartition
from kafka_rebalance.assignors.classic import (
    constrained,
    round_robin,
    subscriptions,
)
from kafka_rebalance.assignors.classic import range as ranges
from kafka_rebalance.explain import facts
from kafka_rebalance.explain import sticky as sticky_facts
from kafka_rebalance.explain.general_sticky import NewestClaim, SameInstance
from kafka_rebalance.group.model import static_first
from kafka_rebalance.java.order import name_key
from tests.support.reference_log import Holdings, Log


def shares(log: Log, tp: TopicPartition, fact: facts.FairShares) -> None:
    assert fact.topic == tp.topic
    assert fact.partitions == log.counts[tp.topic]
    assert fact.members == len(log.subscribers(tp.topic))
    assert fact.share * fact.members + fact.extras == fact.partitions
    assert 0 <= fact.extras < fact.members
    held = Counter(m for m, owned in log.answer.items() for p in owned if p.topic == tp.topic)
    assert set(held.values()) <= {fact.share, fact.share + 1}


def _after_rack_pass(log: Log) -> Holdings:
    topics = ranges.topic_shares(log.group)
    assignment: Holdings = {member_id: [] for member_id in log.members}
    ranges.assign_with_racks(topics, assignment)
    return assignment


def rack_pass(log: Log, tp: TopicPartition, fact: facts.RackPass) -> None:
    taken = _after_rack_pass(log)
    assert log.holders(taken, tp) == ([] if fact.member_id is None else [fact.member_id])
    order = [m.member_id for m in static_first(subscriptions.members_in_order(log.group))]
    earlier = order if fact.member_id is None else order[: order.index(fact.member_id)]
    if fact.member_id is not None:
        assert log.near_or_no_rack(fact.member_id, tp)
    if fact.alone:
        for member_id in earlier:
            if tp.topic in log.members[member_id].topics and log.near_or_no_rack(member_id, tp):
                has = [p for p in taken[member_id] if p.topic == tp.topic]
                share = log.counts[tp.topic] // len(log.subscribers(tp.topic))
                assert len(has) >= share  # the member already has its share, …
                assert all(p < tp for p in has)  # … which consists of earlier partitions


def no_rack_pass(log: Log, tp: TopicPartition, fact: facts.NoRackPass) -> None:
    taken = _after_rack_pass(log)
    assert not [p for owned in taken.values() for p in owned if p.topic == fact.topic == tp.topic]


def range_of(log: Log, tp: TopicPartition, fact: facts.RangeOf) -> None:
    order = [
        member.member_id
        for member in static_first(subscriptions.members_in_order(log.group))
        if tp.topic in member.topics
    ]
    assert order[fact.place - 1] == fact.member_id
    assert tp in fact.holds
    has = [p for p in log.answer[fact.member_id] if p.topic == tp.topic]
    assert sorted(has) == list(fact.holds)


def dealt(log: Log, tp: TopicPartition, fact: facts.Dealt) -> None:
    assert fact.members == len(log.members)
    given = sorted((p for owned in log.answer.values() for p in owned), key=_by_topic)
    assert (given[fact.at - 1], len(given)) == (tp, fact.of)


def _by_topic(tp: TopicPartition) -> tuple[bytes, int]:
    return name_key(tp.topic), tp.partition


def next_in_circle(log: Log, tp: TopicPartition, fact: facts.NextInCircle) -> None:
    owner = {p: m for m, owned in round_robin.assign(log.group).items() for p in owned}
    row = sorted(owner, key=_by_topic)
    at = row.index(tp)
    assert fact.before == ((row[at - 1], owner[row[at - 1]]) if at else None)
    assert owner[tp] == fact.member_id
    order = [m.member_id for m in static_first(subscriptions.members_in_order(log.group))]
    start = order.index(fact.before[1]) + 1 if fact.before else 0
    for n in range(fact.passed):
        assert tp.topic not in log.members[order[(start + n) % len(order)]].topics
    assert order[(start + fact.passed) % len(order)] == fact.member_id


def all_claims(log: Log, tp: TopicPartition, fact: sticky_facts.ClaimFacts) -> None:
    claimed = Counter({m.member_id: m.owned_partitions.count(tp) for m in log.group.members})
    assert Counter(claim.member_id for claim in fact.claims) == +claimed
    believed: str | None = None
    for claim in fact.claims:
        generation = log.members[claim.member_id].generation_id
        assert claim.generation == (-1 if generation is None else generation)
        assert (claim.against is None) == (claim.outcome == "first")
        if claim.against is not None:
            compared = (claim.generation > claim.against) - (claim.generation < claim.against)
            assert claim.outcome == {1: "newer", 0: "equal", -1: "older"}[compared]
        if claim.outcome in ("first", "newer"):
            believed = claim.member_id
        elif claim.outcome == "equal":
            believed = None
    assert log.holders(log.believed, tp) == ([] if believed is None else [believed])
    contested = any(claim.outcome == "equal" for claim in fact.claims)
    assert contested == (tp in log.claims.multiply_owned)


def algorithm(log: Log, _tp: TopicPartition, fact: sticky_facts.Algorithm) -> None:
    assert fact.found_equal == isinstance(log.build, constrained.ConstrainedBuild)
    assert fact.equal == (len({frozenset(m.topics) for m in log.group.members}) == 1)


def _share(log: Log, share: sticky_facts.Share) -> None:
    total = sum(n for t, n in log.counts.items() if log.subscribers(t))
    assert (share.partitions, share.members) == (total, len(log.members))
    assert share.least == total // len(log.members)
    assert share.most == -(-total // len(log.members))


def kept(log: Log, tp: TopicPartition, fact: sticky_facts.Kept) -> None:
    _share(log, fact.share)
    assert log.holders(log.after["keep"], tp) == [fact.member_id]
    assert log.after["keep"][fact.member_id] == _could(log, fact.member_id)[: fact.kept]
    assert len(_could(log, fact.member_id)) == fact.could


def _could(log: Log, member_id: str) -> list[TopicPartition]:
    could = [
        tp
        for tp in log.believed[member_id]
        if tp not in log.claims.multiply_owned and not log.racks.mismatch(member_id, tp)
    ]
    return sorted(could, key=lambda tp: (tp.partition, name_key(tp.topic)))


def not_kept(log: Log, tp: TopicPartition, fact: sticky_facts.NotKept) -> None:
    _share(log, fact.share)
    assert log.holders(log.after["keep"], tp) == []
    if fact.why == "nobody":
        assert log.holders(log.believed, tp) == []
        assert tp not in log.claims.multiply_owned
    elif fact.why == "contested":
        assert tp in log.claims.multiply_owned
    else:
        assert fact.member_id is not None
        assert log.holders(log.believed, tp) == [fact.member_id]
        near = log.members[fact.member_id].rack in log.replicas(tp)
        assert (fact.why == "rack") == (log.has_racks and not _suits(log, fact.member_id, tp))
        if fact.why == "share":
            could = _could(log, fact.member_id)
            assert log.after["keep"][fact.member_id] == could[: fact.kept]
            assert tp in could[fact.kept :]
            assert len(could) == fact.could
        else:
            assert not near


def _suits(log: Log, member_id: str, tp: TopicPartition) -> bool:
    return log.near_or_no_rack(member_id, tp)


def unassigned(log: Log, tp: TopicPartition, fact: sticky_facts.Unassigned) -> None:
    every, short, at_least = log.after["to hand out"]
    assert tp in every
    assert (fact.unassigned, fact.short, fact.one_more) == (len(every), len(short), len(at_least))
    assert all(len(log.after["keep"][member_id]) < fact.least for member_id in short)
    assert fact.again == bool(log.holders(log.after["keep"], tp))
    if fact.again:
        kept = [p for owned in log.after["keep"].values() for p in owned]
        assert any(p.partition >= log.counts.get(p.topic, 0) for p in kept)


def given(log: Log, tp: TopicPartition, fact: sticky_facts.Given) -> None:
    pass_end = log.after["rack pass"]
    of_pass = log.given[:pass_end] if fact.near else log.given[pass_end:]
    if fact.member_id is None:
        assert fact.near
        assert log.has_racks
        assert tp not in [one for one, _, _ in of_pass]
        return
    (sizes,) = [sizes for one, m, sizes in of_pass if (one, m) == (tp, fact.member_id)]
    least = sum(log.claims.counts.values()) // len(log.members)
    assert fact.was_short == (sizes[fact.member_id] < least)
    if fact.near:
        assert log.members[fact.member_id].rack in log.replicas(tp)
        if not fact.was_short:  # no member near a replica has less than its share
            near = [m for m in sizes if log.members[m].rack in log.replicas(tp)]
            assert all(sizes[m] >= least for m in near)


def held(log: Log, tp: TopicPartition, fact: sticky_facts.Held) -> None:
    assert fact.topic == tp.topic
    believed = log.holders(log.believed, tp)
    assert believed == ([] if fact.member_id is None else [fact.member_id])
    assert log.holders(log.after["keep"], tp) == (believed if fact.why_not is None else [])
    if fact.why_not == "nobody":
        assert believed == []
    elif fact.why_not is not None:
        assert fact.member_id is not None
        subscribed = tp.topic in log.members[fact.member_id].topics
        assert (fact.why_not == "unsubscribed") == (not subscribed)
        if subscribed:
            assert log.has_racks
            assert not log.near_or_no_rack(fact.member_id, tp)


def again(log: Log, tp: TopicPartition, _fact: sticky_facts.Again) -> None:
    assert log.holders(log.after["keep"], tp)
    assert tp in log.after["unassigned"]
    kept = [p for owned in log.after["keep"].values() for p in owned]
    assert any(p.partition >= log.counts.get(p.topic, 0) for p in kept)


def smallest(log: Log, tp: TopicPartition, fact: sticky_facts.Smallest) -> None:
    among = log.subscribers(tp.topic)
    start, end = log.after["near"], len(log.given)
    if fact.among == "near":
        assert log.has_racks
        among = {m for m in among if log.near_or_no_rack(m, tp)}
        start, end = 0, start
    if fact.member_id is None:
        assert among == set()
        return
    (sizes,) = [sizes for one, m, sizes in log.given[start:end] if (one, m) == (tp, fact.member_id)]
    assert sizes[fact.member_id] == fact.holds
    assert fact.member_id == min(among, key=lambda m: (sizes[m], log.by_id(m)))


def fixed(log: Log, tp: TopicPartition, fact: sticky_facts.Fixed) -> None:
    owned = log.build.fixed[fact.member_id]
    assert tp in owned
    assert len(owned) == fact.holds
    own = log.members[fact.member_id].topics
    assert fact.holds >= sum(log.counts.get(topic, 0) for topic in set(own))
    assert all(log.subscribers(p.topic) <= {fact.member_id} for p in owned)


def moved(log: Log, tp: TopicPartition, fact: sticky_facts.Moved) -> None:
    found = [
        (asked, went, source, destination, sizes)
        for asked, went, source, destination, sizes in log.moved
        if went == tp
        and (source, destination) == (fact.source, fact.destination)
        and (sizes[source], sizes[destination]) == (fact.source_holds, fact.destination_holds)
        and (asked == tp) == (fact.instead is None)
    ]
    assert found
    *_, destination, sizes = found[0]
    if fact.why == "instead":
        assert fact.instead in [asked for asked, *_ in found]
        assert destination in [
            source for _, went, source, _, _ in log.moved if went == tp
        ]  # `tp` also moved away from this member
    elif fact.why == "previous":
        assert destination in (log.build.previous[tp], log.build.previous[tp][0])
        assert fact.source_holds > fact.destination_holds + 1
    else:
        taking_part = [m for m in log.subscribers(tp.topic) if m in sizes]
        assert destination == min(taking_part, key=lambda m: (sizes[m], log.by_id(m)))
        assert fact.source_holds > fact.destination_holds + 1


def balanced(log: Log, tp: TopicPartition, fact: sticky_facts.Balanced) -> None:
    assert tp in log.build.current[fact.member_id]
    moves = [went for _, went, *_ in log.moved if went == tp]
    if fact.undone:
        assert moves
        assert log.build.current == log.after["before"]
    elif moves:
        # All moves were undone, or a member holds the partition.
        assert log.build.current == log.after["before"] or log.holders(log.build.current, tp)


def withheld(log: Log, tp: TopicPartition, fact: sticky_facts.Withheld) -> None:
    assert tp in log.target[fact.member_id]
    assert tp not in log.answer[fact.member_id]
    for member_id in fact.claimants:
        assert tp in log.members[member_id].owned_partitions


def newest_claim(log: Log, tp: TopicPartition, fact: NewestClaim) -> None:
    read = [m for m in log.group.members if m.topics]  # librdkafka drops the others
    claimed = Counter({m.member_id: m.owned_partitions.count(tp) for m in read})
    assert Counter(member_id for member_id, _ in fact.claims) == +claimed
    assert log.holders(log.believed, tp) == ([] if fact.owner is None else [fact.owner])
    numbers = [number for _, number in fact.claims]
    contested = len(set(numbers)) < len(numbers)
    assert (fact.owner is None) == (contested or not numbers)
    if fact.owner is not None and max(numbers) - min(numbers) < 2**31:
        assert (fact.owner, max(numbers)) in fact.claims


def same_instance(log: Log, tp: TopicPartition, fact: SameInstance) -> None:
    assert log.holders(log.answer, tp) == [fact.member_id]
    assert tp in log.target[fact.other]
    one, other = (log.members[m].group_instance_id for m in (fact.member_id, fact.other))
    assert one == other is not None


CHECKS: dict[type, Callable[[Log, TopicPartition, Any], None]] = {
    facts.FairShares: shares,
    facts.RackPass: rack_pass,
    facts.NoRackPass: no_rack_pass,
    facts.RangeOf: range_of,
    facts.Dealt: dealt,
    facts.NextInCircle: next_in_circle,
    sticky_facts.ClaimFacts: all_claims,
    NewestClaim: newest_claim,
    SameInstance: same_instance,
    sticky_facts.Algorithm: algorithm,
    sticky_facts.Kept: kept,
    sticky_facts.NotKept: not_kept,
    sticky_facts.Unassigned: unassigned,
    sticky_facts.Given: given,
    sticky_facts.Held: held,
    sticky_facts.Again: again,
    sticky_facts.Smallest: smallest,
    sticky_facts.Fixed: fixed,
    sticky_facts.Moved: moved,
    sticky_facts.Balanced: balanced,
    sticky_facts.Withheld: withheld,
}
