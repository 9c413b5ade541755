# SPDX-License-Identifier: Apache-2.0
"""Finds why an assignor gave a partition to a member, by running the reference algorithm."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module

from kafka_rebalance.assignors.assigning import assign
from kafka_rebalance.assignors.classic import constrained, round_robin
from kafka_rebalance.assignors.classic import range as ranges
from kafka_rebalance.assignors.classic.claims import Claims, settle
from kafka_rebalance.assignors.classic.racks import Racks
from kafka_rebalance.assignors.classic.subscriptions import members_in_order
from kafka_rebalance.assignors.registry import BUILT_IN, OURS, bare, library_of, protocol_name
from kafka_rebalance.errors import AssignorThrows
from kafka_rebalance.group.model import TopicPartition, UserData, static_first
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.java.order import by_name

from . import facts
from . import sticky as sticky_facts
from .facts import Fact, holders

_Steps = Callable[[GroupSpec, TopicPartition], Iterable[Fact] | None]


def reasons(
    group: GroupSpec, assignor: str, tp: TopicPartition, remembered: Assignment | None = None
) -> list[Fact]:
    """Returns the facts about a partition, which must exist and have a subscriber.

    `remembered` is the assignment of a round that follows another one: `balanced` and `weighted`
    then compute nothing, but assign the partitions that they withheld.
    """
    steps = _STEPS.get(assignor)
    if steps is not None and (facts_found := steps(group, tp)) is not None:
        return list(facts_found)
    if library_of(assignor) not in _CLIENTS:
        unknown: list[Fact] = [_unknown(group, assignor, tp)]
        if bare(assignor) not in OURS:
            return unknown
        if remembered is not None:
            return [facts.Remembered(assignor), _outcome(group, remembered, tp)]
        return [*unknown, _outcome(group, assign(group, assignor), tp)]
    found = list(_by_most_like(group, assignor, protocol_name(assignor), tp))
    if isinstance(found[0], facts.Unknown | facts.NotAlike):
        found.append(_outcome(group, assign(group, assignor), tp))
    return found


_PAGES = {
    **dict.fromkeys(OURS, "docs/balance.md"),
    "librdkafka": "docs/behaviour/librdkafka.md",
    **dict.fromkeys(("consumer", "share", "streams"), "docs/behaviour/server-side.md"),
}
"""An assignor's name, or the part of it before the slash -> the page that describes the assignor.
"""

_CLIENTS = ("kafka-python", "aiokafka", "librdkafka")


def _by_most_like(
    group: GroupSpec, assignor: str, kafkas: str, tp: TopicPartition
) -> Iterator[Fact]:
    """Yields the facts of Kafka's most similar assignor, if it makes exactly the same assignment;
    else a fact with the reason why there are none.
    """
    mine = assign(group, assignor)
    where = f" ({page})" if (page := _page(assignor)) else ""
    if not holders(mine, tp):
        yield facts.GivenToNobody(assignor, where)
        return
    read = _as_read(group, assignor)
    try:
        its = assign(read, kafkas)
    except AssignorThrows:  # Kafka's general algorithm can throw
        yield _unknown(group, assignor, tp)
        return
    if any(set(mine[member_id]) != set(its[member_id]) for member_id in mine):
        withholds = BUILT_IN[kafkas].withholds
        unlike = facts.NotAlike(assignor, where, kafkas)
        yield unlike if withholds else _unknown(group, assignor, tp)
        return
    yield facts.Alike(assignor, kafkas, reads_other_claims=assignor in _USER_DATA_READ)
    yield from _STEPS[kafkas](read, tp) or ()


_USER_DATA_READ: dict[str, UserData | None] = {
    "kafka-python/sticky": None,
    "aiokafka/sticky": "partitions",
}
"""A class that reads its library's user data -> the `Member.user_data` with which Kafka's class
reads equal claims.

kafka-python writes partitions and a generation, but not in Java's form; None means Java's form.
aiokafka writes partitions without a generation.
"""


def _as_read(group: GroupSpec, assignor: str) -> GroupSpec:
    """Returns the group as the library's class reads it: without racks, or with other claims."""
    if library_of(assignor) != "librdkafka" and any(one.rack_id for one in group.members):
        without = tuple(replace(one, rack_id=None) for one in group.members)
        group = group.edited(members=without)
    if assignor not in _USER_DATA_READ:
        return group
    reads = _USER_DATA_READ[assignor]
    members = tuple(
        replace(member, subscription_version=None, user_data=reads, user_data_generation_id=None)
        for member in group.members
    )
    return group.edited(members=members)


def _outcome(group: GroupSpec, answer: Assignment, tp: TopicPartition) -> facts.Outcome:
    (holder, *_) = holders(answer, tp)
    claims = {member.member_id: len(member.owned_partitions) for member in group.members}
    subscribers = [one.member_id for one in group.members if tp.topic in one.topics]
    return facts.Outcome(
        holder,
        tuple(one.member_id for one in group.members if tp in one.owned_partitions),
        claims[holder],
        len(answer[holder]),
        sum(claims[one] < claims[holder] for one in subscribers),
        len(subscribers),
    )


def _page(assignor: str) -> str:
    return _PAGES.get(library_of(assignor) or bare(assignor), "")


def _unknown(group: GroupSpec, assignor: str, tp: TopicPartition) -> facts.Unknown:
    library, kafkas = library_of(assignor) or "", protocol_name(assignor)
    page = _page(assignor)
    if library not in _CLIENTS or BUILT_IN[kafkas].withholds:
        return facts.Unknown(assignor, page)  # cooperative answers depend on all earlier answers
    try:
        agrees = holders(assign(group, assignor), tp) == holders(assign(group, kafkas), tp)
    except AssignorThrows:  # Kafka's general algorithm can throw
        return facts.Unknown(assignor, page)
    return facts.Unknown(assignor, page, kafkas, agrees)


def _range(group: GroupSpec, tp: TopicPartition) -> Iterator[Fact]:
    shares = ranges.topic_shares(group)
    topic = next(share for share in shares if share.name == tp.topic)
    order = [member.member_id for member in topic.subscribers]
    yield facts.FairShares(tp.topic, len(topic.unassigned), len(order), topic.share, topic.extras)
    assignment: dict[str, list[TopicPartition]] = {m.member_id: [] for m in group.members}
    if any(share.needs_racks for share in shares):
        alone = [share.partitioned_as() for share in shares].count(topic.partitioned_as()) == 1
        ranges.assign_with_racks(shares, assignment)
        if alone and not topic.needs_racks:
            yield facts.NoRackPass(tp.topic)
        else:
            near = holders(assignment, tp)
            yield facts.RackPass(near[0] if near else None, alone=alone)
            if near:
                return
    ranges.assign_ranges(topic, lambda _member, _partition: True, assignment)
    (holder,) = holders(assignment, tp)
    holds = tuple(sorted(p for p in assignment[holder] if p.topic == tp.topic))
    yield facts.RangeOf(holder, order.index(holder) + 1, holds)


def _round_robin(group: GroupSpec, tp: TopicPartition) -> Iterator[Fact]:
    counts = group.partition_counts()
    subscribed = {topic for member in group.members for topic in member.topics}
    row = [
        TopicPartition(topic, partition)
        for topic in by_name(subscribed & counts.keys())
        for partition in range(counts[topic])
    ]
    owner = {tp: m for m, owned in round_robin.assign(group).items() for tp in owned}
    circle = [member.member_id for member in static_first(members_in_order(group))]
    at = row.index(tp)
    yield facts.Dealt(len(circle), at + 1, len(row))
    before = (row[at - 1], owner[row[at - 1]]) if at else None
    start = 0 if before is None else circle.index(before[1]) + 1
    following = circle[start:] + circle[:start]
    yield facts.NextInCircle(owner[tp], before, following.index(owner[tp]), tp.topic)


def _sticky(group: GroupSpec, tp: TopicPartition, name: str) -> Iterator[Fact]:
    row = BUILT_IN[name]
    assert row.sent is not None
    sent = {member.member_id: row.sent(member) for member in group.members}
    claims = settle(group, sent)
    yield sticky_facts.ClaimFacts(tuple(_claims(claims, tp)))
    found_equal = claims.equal_subscriptions
    sets = {frozenset(member.topics) for member in group.members}
    yield sticky_facts.Algorithm(found_equal, equal=len(sets) == 1)
    racks = Racks.of(group, claims)
    if found_equal:
        constrained_build = _WatchedConstrained(name, claims, racks, tp)
        yield from _constrained(constrained_build, tp)
        target = constrained_build.assignment
    else:
        from .general_sticky import WatchedGeneral, general_steps

        general_build = WatchedGeneral(name, claims, racks)
        yield from general_steps(general_build, tp)
        target = general_build.answer()
    if row.withholds:
        answer = assign(group, name)
        claimants = tuple(member_id for member_id, own in sent.items() if tp in own.partitions)
        for member_id in holders(target, tp):
            if tp not in answer[member_id]:
                others = tuple(other for other in claimants if other != member_id)
                yield sticky_facts.Withheld(member_id, others or claimants)


def _imported(module: str, name: str) -> _Steps:
    """Returns a function of the room `explain`, which imports its module when it is called."""
    return lambda group, tp: getattr(import_module(f".{module}", __package__), name)(group, tp)


_STEPS: dict[str, _Steps] = {
    "range": _range,
    "roundrobin": _round_robin,
    "sticky": partial(_sticky, name="sticky"),
    "cooperative-sticky": partial(_sticky, name="cooperative-sticky"),
    "librdkafka/cooperative-sticky": _imported("general_sticky", "librdkafka_steps"),
    "consumer/uniform": _imported("broker", "uniform_steps"),
    "consumer/range": _imported("broker", "range_steps"),
    "share/simple": _imported("share", "share_steps"),
    "streams/sticky": _imported("broker", "task_steps"),
}
"""Assignor -> the function that returns the facts about a partition, or None if there are none."""


def _claims(claims: Claims, tp: TopicPartition) -> Iterator[sticky_facts.Claim]:
    """Yields the claims to one partition, in the leader's order, each with the result of comparing
    its generation with that of the claim believed before it.
    """
    against: int | None = None
    for member in claims.members:
        partitions, generation, field_generation = claims.sent[member.member_id]
        for _ in range(partitions.count(tp)):
            outcome: sticky_facts.Outcome = "first"
            if against is not None:
                outcome = "newer" if generation > against else "older"
                outcome = "equal" if generation == against else outcome
            yield sticky_facts.Claim(member.member_id, generation, against, outcome)
            if outcome != "older":
                against = field_generation


class _WatchedConstrained(constrained.ConstrainedBuild):
    """The constrained algorithm; also records the members that get the watched partition."""

    def __init__(self, name: str, claims: Claims, racks: Racks, watched: TopicPartition) -> None:
        super().__init__(name, claims, racks)
        self.watched = watched
        self.given: list[tuple[str, bool]] = []

    def _give(self, tp: TopicPartition, member_id: str) -> int:
        if tp == self.watched:
            self.given.append((member_id, len(self.assignment[member_id]) < self.least))
        return super()._give(tp, member_id)


def _constrained(build: _WatchedConstrained, tp: TopicPartition) -> Iterator[Fact]:
    claims = build.claims
    total = sum(claims.counts.values())
    share = sticky_facts.Share(total, len(build.assignment), build.least, build.most)
    believed = next(iter(holders(claims.owned, tp)), None)
    could = [] if believed is None else _could_keep(build, believed)
    build.keep_owned()
    keepers = holders(build.assignment, tp)
    kept = 0 if believed is None else len(build.assignment[believed])
    if keepers:
        yield sticky_facts.Kept(share, keepers[0], kept, len(could))
    elif tp in claims.multiply_owned:
        yield sticky_facts.NotKept(share, "contested")
    elif believed is None:
        yield sticky_facts.NotKept(share, "nobody")
    elif build.racks.mismatch(believed, tp):
        yield sticky_facts.NotKept(share, "rack", believed)
    else:
        yield sticky_facts.NotKept(share, "share", believed, kept, len(could))
    unassigned = build.sort(build.unassigned())
    if tp not in unassigned:
        return
    short, one_more = len(build.short), len(build.at_least)
    again = bool(keepers)
    yield sticky_facts.Unassigned(len(unassigned), build.least, short, one_more, again)
    if build.racks.active():
        unassigned = build.assign_near(unassigned)
        if not build.given:
            yield sticky_facts.Given(None, near=True)
        for member_id, was_short in build.given:
            yield sticky_facts.Given(member_id, near=True, was_short=was_short)
        build.given.clear()
    build.assign_round_robin(unassigned)
    for member_id, was_short in build.given:
        yield sticky_facts.Given(member_id, near=False, was_short=was_short)


def _could_keep(build: constrained.ConstrainedBuild, member_id: str) -> list[TopicPartition]:
    return [
        tp
        for tp in build.claims.owned[member_id]
        if tp not in build.claims.multiply_owned and not build.racks.mismatch(member_id, tp)
    ]
