# SPDX-License-Identifier: Apache-2.0
"""Explanations are true: every fact is held against another run of the reference.

The run is logged from outside, whole: after each step who holds what, and every partition that is
given or moved with how many each member held just before. A fact has to be in that log.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance import GroupSpec, Member, Topic, TopicPartition
from kafka_rebalance.assignors.classic import (
    claims,
    constrained,
    cooperative_sticky,
    general,
    round_robin,
    subscriptions,
)
from kafka_rebalance.assignors.classic import range as ranges
from kafka_rebalance.assignors.classic.racks import Racks
from kafka_rebalance.group.model import static_first
from kafka_rebalance.java.order import name_key
from kafka_rebalance.plans import facts, sticky_facts
from kafka_rebalance.plans.facts import Fact
from kafka_rebalance.plans.reasons import reasons
from tests.support.generate import generate

VECTORS = Path(__file__).resolve().parent / "vectors"

Holdings = dict[str, list[TopicPartition]]
Sizes = dict[str, int]


class Log:
    """A run of the reference of one group."""

    def __init__(self, group: GroupSpec, assignor: str) -> None:
        self.group = group
        self.assignor = assignor
        self.members = {member.member_id: member for member in group.members}
        self.counts = group.partition_counts()
        self.answer = kr.assign(group, assignor, engine="reference")
        self.after: dict[str, Any] = {}
        self.build: Any = None
        self.given: list[tuple[TopicPartition, str, Sizes]] = []
        self.moved: list[tuple[TopicPartition, TopicPartition, str, str, Sizes]] = []
        if "sticky" in assignor:
            self._run_sticky()

    def _run_sticky(self) -> None:
        cooperative = self.assignor == "cooperative-sticky"
        send = claims.sent_by_cooperative if cooperative else claims.sent_by_sticky
        sent = {member.member_id: send(member) for member in self.group.members}
        self.claims = claims.settle(self.group, sent)
        self.believed = {m: list(owned) for m, owned in self.claims.owned.items()}
        self.racks = Racks.of(self.group, self.claims)
        if self.claims.equal_subscriptions:
            self._run_constrained()
        else:
            self._run_general()

    def _run_constrained(self) -> None:
        log = self

        class Logged(constrained.ConstrainedBuild):
            def _give(self, tp: TopicPartition, member_id: str) -> int:
                log.given.append((tp, member_id, _sizes(self.assignment)))
                return super()._give(tp, member_id)

        self.build = build = Logged(self.assignor, self.claims, self.racks)
        build.keep_owned()
        self.after["keep"] = _copy(build.assignment)
        unassigned = build.sort(build.unassigned())
        self.after["to hand out"] = (list(unassigned), list(build.short), list(build.at_least))
        if self.racks.active():
            unassigned = build.assign_near(unassigned)
        self.after["rack pass"] = len(self.given)
        build.assign_round_robin(unassigned)
        self.target = build.assignment

    def _run_general(self) -> None:
        log = self

        class Logged(general.GeneralBuild):
            def give(self, member_id: str, tp: TopicPartition) -> None:
                if not log.after.get("balancing"):
                    log.given.append((tp, member_id, _sizes(self.current)))
                super().give(member_id, tp)

            def relocate(self, tp: TopicPartition, destination: str) -> None:
                sizes, owner = _sizes(self.current), dict(self.owner)
                super().relocate(tp, destination)
                (went,) = [one for one in owner if owner[one] != self.owner[one]] or [tp]
                log.moved.append((tp, went, owner[went], destination, sizes))

        self.build = build = Logged(self.assignor, self.claims, self.racks)
        build.sort_partitions()
        build.remember_previous()
        unassigned = build.keep_owned()
        self.after["keep"], self.after["unassigned"] = _copy(build.current), list(unassigned)
        initializing = not any(build.current.values())
        left = unassigned
        if self.racks.active():
            left = [tp for tp in unassigned if not build._assign_smallest(tp, self.racks)]
        self.after["near"] = len(self.given)
        for tp in left:
            build._assign_smallest(tp, None)
        build.take_out_fixed()
        self.after["balancing"] = True
        self.after["before"] = _copy(build.current)
        build.balance(unassigned, initializing=initializing)
        self.target = build.current | build.fixed

    def holders(self, holdings: Any, tp: TopicPartition) -> list[str]:
        return [member_id for member_id, owned in holdings.items() if tp in owned]

    def subscribers(self, topic: str) -> set[str]:
        return {m for m, member in self.members.items() if topic in member.topics}

    def near_or_no_rack(self, member_id: str, tp: TopicPartition) -> bool:
        return self.members[member_id].rack in (None, *self.replicas(tp))

    def replicas(self, tp: TopicPartition) -> set[str | None]:
        racks = next(topic.racks for topic in self.group.topics if topic.name == tp.topic)
        return set() if racks is None else set(racks[tp.partition])


def _sizes(holdings: Any) -> Sizes:
    return {member_id: len(owned) for member_id, owned in holdings.items()}


def _copy(holdings: Any) -> Holdings:
    return {member_id: list(owned) for member_id, owned in holdings.items()}


# One check a kind of fact -------------------------------------------------------------------------


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
                assert len(has) >= share  # no room: it has taken its share
                assert all(p < tp for p in has)  # and took what comes first


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
        assert (fact.why == "rack") == (log.racks.active() and not _suits(log, fact.member_id, tp))
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
        assert log.racks.active()
        assert tp not in [one for one, _, _ in of_pass]
        return
    (sizes,) = [sizes for one, m, sizes in of_pass if (one, m) == (tp, fact.member_id)]
    least = sum(log.claims.counts.values()) // len(log.members)
    assert fact.was_short == (sizes[fact.member_id] < least)
    if fact.near:
        assert log.members[fact.member_id].rack in log.replicas(tp)
        if not fact.was_short:  # nobody near has too few
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
            assert log.racks.active()
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
        assert log.racks.active()
        among = {m for m in among if log.near_or_no_rack(m, tp)}
        start, end = 0, start
    if fact.member_id is None:
        assert among == set()
        return
    (sizes,) = [sizes for one, m, sizes in log.given[start:end] if (one, m) == (tp, fact.member_id)]
    assert sizes[fact.member_id] == fact.holds
    assert fact.member_id == min(among, key=lambda m: (sizes[m], name_key(m)))


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
        ]  # it came from there
    elif fact.why == "previous":
        assert log.build.previous[tp][0] == destination
        assert fact.source_holds > fact.destination_holds + 1
    else:
        taking_part = [m for m in log.subscribers(tp.topic) if m in sizes]
        assert destination == min(taking_part, key=lambda m: (sizes[m], name_key(m)))
        assert fact.source_holds > fact.destination_holds + 1


def balanced(log: Log, tp: TopicPartition, fact: sticky_facts.Balanced) -> None:
    assert tp in log.build.current[fact.member_id]
    moves = [went for _, went, *_ in log.moved if went == tp]
    if fact.undone:
        assert moves
        assert log.build.current == log.after["before"]
    elif moves:
        # The one before it comes back by itself, or somebody else holds it as well.
        assert log.build.current == log.after["before"] or log.holders(log.build.current, tp)


def withheld(log: Log, tp: TopicPartition, fact: sticky_facts.Withheld) -> None:
    assert tp in log.target[fact.member_id]
    assert tp not in cooperative_sticky.assign(log.group)[fact.member_id]
    for member_id in fact.claimants:
        assert tp in log.members[member_id].owned_partitions


CHECKS: dict[type, Callable[[Log, TopicPartition, Any], None]] = {
    facts.FairShares: shares,
    facts.RackPass: rack_pass,
    facts.NoRackPass: no_rack_pass,
    facts.RangeOf: range_of,
    facts.Dealt: dealt,
    facts.NextInCircle: next_in_circle,
    sticky_facts.ClaimFacts: all_claims,
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


# The property -------------------------------------------------------------------------------------


def _cases(seed: int, count: int, assignor: str) -> Iterator[GroupSpec]:
    def answer(case: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"assignment": kr.assign(GroupSpec.from_dict(case)).to_dict()}
        except kr.GroupError as error:
            return {"error": str(error)}

    for case in generate(seed, count, (assignor,), answer):
        group = GroupSpec.from_dict(case)
        if sum(group.partition_counts().values()) * len(group.members) < 3_000:
            yield group


def _told(
    group: GroupSpec, assignor: str, *, moved_only: bool = False
) -> Iterator[tuple[Log, TopicPartition, list[Fact]]]:
    try:
        log = Log(group, assignor)
    except kr.GroupError:
        return
    ends = {
        TopicPartition(topic, p) for topic, n in list(log.counts.items())[:6] for p in (0, n - 1)
    }
    moved = {went for _, went, *_ in log.moved[-6:]}
    for tp in sorted(moved if moved_only else ends | moved):
        if log.subscribers(tp.topic):
            yield log, tp, reasons(group, assignor, tp)


OF_RANGE = {facts.FairShares, facts.RackPass, facts.NoRackPass, facts.RangeOf}
OF_ROUND_ROBIN = {facts.Dealt, facts.NextInCircle}
OF_STICKY = set(CHECKS) - OF_RANGE - OF_ROUND_ROBIN
EVERY = {
    "range": OF_RANGE,
    "roundrobin": OF_ROUND_ROBIN,
    "sticky": OF_STICKY - {sticky_facts.Withheld},
    "cooperative-sticky": OF_STICKY,
}


@pytest.mark.parametrize("assignor", EVERY)
def test_every_fact_is_true_of_the_run(assignor: str) -> None:
    seen: Counter[Any] = Counter()
    for group in _cases(31, 250, assignor):
        for log, tp, found in _told(group, assignor):
            for fact in found:
                CHECKS[type(fact)](log, tp, fact)
                assert str(fact)
            seen.update(_variant(fact) for fact in found)
            _ends_where_it_is(log, tp, found)
    assert {variant[0] for variant in seen} == EVERY[assignor]


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_every_fact_is_true_of_the_vectors(assignor: str) -> None:
    """Those that balancing moves partitions in, for every reason that a move may have."""
    with gzip.open(VECTORS / f"{assignor}.jsonl.gz", "rt", encoding="utf-8") as vectors:
        cases = [json.loads(line)["case"] for line in vectors]
    seen: Counter[Any] = Counter()
    for case in cases:
        if case["members"] and len(json.dumps(case)) < 4_000:
            for log, tp, found in _told(GroupSpec.from_dict(case), assignor, moved_only=True):
                for fact in found:
                    CHECKS[type(fact)](log, tp, fact)
                seen.update(_variant(fact) for fact in found)
    assert set(seen) >= {(sticky_facts.Moved, why) for why in ("previous", "smallest", "instead")}


def _variant(fact: Fact) -> tuple[object, ...]:
    match fact:
        case sticky_facts.Moved(why=why):
            return sticky_facts.Moved, why
    return (type(fact),)


def _ends_where_it_is(log: Log, tp: TopicPartition, found: list[Fact]) -> None:
    """The last fact names the holder, or the member from which the partition is withheld."""
    target = log.holders(log.target if "sticky" in log.assignor else log.answer, tp)
    if len(target) == 1:
        last = found[-1]
        holder = getattr(last, "destination", None) or getattr(last, "member_id", None)
        assert [holder] == target
        assert isinstance(last, sticky_facts.Withheld) == (log.holders(log.answer, tp) == [])


# What used to be untrue ---------------------------------------------------------------------------

T0 = TopicPartition("t", 0)


def said(members: tuple[Member, ...], assignor: str, topic: Topic) -> list[str]:
    """All of a plan's only round but who had the partition and has it."""
    plan = kr.plan(GroupSpec("g", (topic,), members), assignor, engine="reference")
    (heading, *steps), rounds = plan.explain("t-0"), len(plan.rounds)
    assert heading == "rebalance as it is, round 1 (eager):"
    assert rounds == 1
    return steps[:-1]


def test_two_claims_of_one_generation_and_a_newer_one() -> None:
    """The newer one is believed, and in the general algorithm kept."""
    generations = {"a": 1, "b": 1, "c": 2}
    claimants = tuple(
        Member(m, ("t",), owned_partitions=(T0,), generation_id=g) for m, g in generations.items()
    )
    story = (
        "  1. claims: a claims it (generation 1); b claims it (generation 1, too), so that neither "
        "is believed; c claims it (generation 2, newer than generation 1) and is believed"
    )
    idle = Member("d", ("t", "u"))  # makes subscriptions differ
    assert said((*claimants, idle), "sticky", Topic("t", 1)) == [
        story,
        "  2. subscriptions: members subscribe to different topics: the general algorithm",
        "  3. keep: c keeps it for now",
        "  4. balance: balancing leaves it with c",
    ]
    assert said(claimants, "sticky", Topic("t", 1)) == [
        story,
        "  2. subscriptions: all subscribe to the same topics: the constrained algorithm",
        (
            "  3. keep: 1 partition to 3 members: 0 or 1 each; nobody keeps a partition that is "
            "claimed twice in one generation"
        ),
        "  4. to hand out: it is one of 1, for 3 members that may have one more",
        "  5. in turn: by id, the next is a, which may have one more",
    ]


def test_the_pass_without_racks_does_not_speak_of_racks() -> None:
    members = (Member("a", ("t",), rack_id="r1"), Member("b", ("t", "u"), rack_id="r1"))
    steps = said(members, "sticky", Topic("t", 2, (("r2",), ("r1",))))
    assert steps[2:] == [
        "  3. keep: it has no owner that could keep it",
        "  4. fewest first: no subscriber is near a replica or without a rack",
        "  5. fewest first: b has the fewest (0) of its subscribers, ties by id",
        "  6. balance: balancing leaves it with b",
    ]


def test_a_topic_to_which_racks_make_no_difference_takes_no_part_in_the_rack_pass() -> None:
    everywhere, split = Topic("t", 1, (("r1", "r2"),)), Topic("u", 2, (("r1",), ("r2",)))
    members = (Member("a", ("t",), rack_id="r1"), Member("b", ("u",), rack_id="r2"))
    plan = kr.plan(GroupSpec("g", (everywhere, split), members), "range", engine="reference")
    assert plan.explain("t-0")[1:] == [
        "  1. shares: t is shared out by itself: 1 partition to 1 member, 1 each",
        "  2. rack pass: t takes no part, because racks make no difference to it",
        "  3. ranges: a is number 1 in the order of ids, static members first, and has t[0]",
        "  nobody -> a",
    ]


def test_a_partition_may_be_given_as_text() -> None:
    plan = kr.plan(GroupSpec("g", (Topic("t", 1),), (Member("a", ("t",)),)), "range")
    assert plan.explain("t-0") == plan.explain("t[0]") == plan.explain(T0)
    with pytest.raises(kr.GroupError, match="partition: there is no t-5, and no change makes it"):
        plan.explain("t-5")
    with pytest.raises(kr.GroupError, match='partition: "t" is not TOPIC-PARTITION, as payments-3'):
        plan.explain("t")
