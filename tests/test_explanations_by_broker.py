# SPDX-License-Identifier: Apache-2.0
"""Explanations where the broker assigns agree with the rounds and with the assignors' quotas."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import replace

import pytest

import kafka_rebalance as kr
from kafka_rebalance import GroupSpec, Member, Topic, TopicPartition
from kafka_rebalance.assignors.consumer.heterogeneous import HeterogeneousBuild
from kafka_rebalance.assignors.consumer.targets import view_of
from kafka_rebalance.explain import facts
from kafka_rebalance.explain.broker import Evened, Fewest, Fills, GivenTask, Keeps, Quotas
from kafka_rebalance.explain.reasons import reasons
from kafka_rebalance.explain.share import Filled, FormerReader, Shared, TooFew, Unread
from kafka_rebalance.explain.sticky import Balanced, Held
from kafka_rebalance.group.model import StreamsMember, Subtopology
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.plans.rounds import subscribed_partitions
from tests.support.fact_checks import CHECKS
from tests.support.reference_log import Log

IDS = [f"kBxzrTyqT9CWFMeWiOj{n}ag" for n in range(3)]


def group_of(rng: random.Random, assignor: str) -> GroupSpec:
    topics = tuple(Topic(f"t{n}", rng.randint(1, 6), topic_id=IDS[n]) for n in range(2))
    every = [TopicPartition(t.name, p) for t in topics for p in range(t.partitions)]
    owned: list[list[TopicPartition]] = [[] for _ in range(rng.randint(2, 5))]
    for tp in every:
        if rng.random() < 0.8:
            owned[rng.randrange(len(owned))].append(tp)
    members = tuple(
        Member(f"m{n}", ("t0", "t1"), owned_partitions=tuple(own), generation_id=3)
        for n, own in enumerate(owned)
    )
    return GroupSpec("g", topics, members, assignor, 3)


def test_uniform_keeps_and_fills_up_to_quotas() -> None:
    """A member above its quota gives up, a member below it gets; the quota is total / members, or 1
    more.

    The steps are those of UniformHomogeneousAssignmentBuilder (docs of `homogeneous.py`).
    """
    seen = set()
    for seed in range(100):
        plan = kr.plan(group_of(random.Random(seed), "consumer/uniform"), changes=["add-members=1"])
        (one,) = plan.rounds
        for topic in one.group.topics:
            for p in range(topic.partitions):
                tp = TopicPartition(topic.name, p)
                quotas, keeps, *fills = reasons(one.group, "consumer/uniform", tp)
                assert isinstance(quotas, Quotas)
                assert isinstance(keeps, Keeps)
                least, extras = divmod(quotas.total, quotas.members)
                before = next((m for m, own in one.held.items() if tp in own), None)
                (after,) = [m for m, own in one.assignment.items() if tp in own]
                assert keeps.owner == before
                assert keeps.is_kept == (before == after)
                if before is not None and not keeps.is_kept:
                    assert least <= keeps.kept <= least + (extras > 0)
                    assert keeps.kept < keeps.owned
                assert len(fills) == (before != after)
                for fill in fills:
                    assert isinstance(fill, Fills)
                    assert (fill.member_id, fill.holds) == (after, len(one.assignment[after]))
                    assert fill.kept < fill.holds <= least + (extras > 0)
                seen.add((before is None, before == after))
    assert seen == {(True, False), (False, False), (False, True)}


def unequal_group(rng: random.Random, assignor: str) -> GroupSpec:
    """Returns a group with racks, whose members own partitions that they may have left."""
    group = group_of(rng, assignor)
    topics = tuple(
        replace(topic, racks=tuple((rng.choice("abc"),) for _ in range(topic.partitions)))
        for topic in (*group.topics, Topic("t2", rng.randint(1, 4), topic_id=IDS[2]))
    )
    names = [topic.name for topic in topics]
    members = tuple(
        replace(
            one,
            topics=tuple(rng.sample(names, rng.randint(1, 3))),
            rack_id=rng.choice("abc"),
            group_instance_id=f"i{rng.randrange(100)}-{one.member_id}"
            if rng.random() < 0.2
            else None,
        )
        for one in group.members
    )
    return group.edited(topics=topics, members=members)


class Logged(HeterogeneousBuild):
    """Records each gift: partition, owner, its owner before, sizes, subscribers, holders."""

    def __init__(self, group: GroupSpec) -> None:
        super().__init__(view_of(group, "consumer/uniform"), "consumer/uniform")
        self.given: list[
            tuple[TopicPartition, int, int | None, list[int], list[int], set[int]]
        ] = []

    def _give(self, topic: Uuid, partition: int, m: int) -> None:
        before, sizes = self.owners[topic][partition], list(self.sizes)
        if before is not None:
            sizes[before] += 1
        holders = {one for one in self.owners[topic] if one is not None}
        tp = TopicPartition(self.view.names[topic], partition)
        self.given.append((tp, m, before, sizes, self.subscribers[topic], holders))
        super()._give(topic, partition, m)


def test_uniform_is_explained_by_its_own_steps_among_unequal_subscriptions() -> None:
    """No other assignor's steps: Kafka's sticky reads racks, which uniform ignores."""
    seen = set()
    for seed in range(300):
        group = unequal_group(random.Random(seed), "consumer/uniform")
        answer = kr.assign(group)
        log = Logged(group)
        for step in (log.keep, log.assign_rest, log.balance):
            step()
        ids = [one.member.member_id for one in log.view.members]
        for tp in subscribed_partitions(group):
            found = reasons(group, "consumer/uniform", tp)
            if isinstance(found[0], Quotas):
                break  # all subscribe to the same topics
            text = " ".join(map(str, found))
            assert "rack" not in text
            assert "replica" not in text
            held, *rest = found
            assert isinstance(held, Held)
            had = [m.member_id for m in group.members if tp in m.owned_partitions]
            assert had == ([] if held.member_id is None else [held.member_id])
            given = [one for one in log.given if one[0] == tp]
            gifts = [one for one in rest if not isinstance(one, Balanced)]
            assert len(given) == len(gifts)
            for fact, (_, m, before, sizes, subscribers, holders) in zip(gifts, given, strict=True):
                if isinstance(fact, Fewest):
                    assert before is None
                    assert (fact.member_id, fact.holds) == (ids[m], sizes[m])
                    assert fact.subscribers == len(subscribers)
                else:
                    assert isinstance(fact, Evened)
                    assert before is not None
                    assert (fact.source, fact.destination) == (ids[before], ids[m])
                    assert fact.source_holds == max(sizes[one] for one in holders)
                    assert fact.source_holds == sizes[before] > sizes[m] + 1
                assert sizes[m] == min(sizes[one] for one in subscribers)
            (owner,) = [m for m, own in answer.items() if tp in own]
            last = found[-1]
            named = getattr(last, "destination", None) or getattr(last, "member_id", None)
            assert named == owner
            seen |= {type(one) for one in found} | {held.why_not}
    assert seen == {Held, Fewest, Evened, Balanced, None, "nobody", "unsubscribed"}


def test_range_is_explained_by_its_own_steps() -> None:
    for seed in range(200):
        group = unequal_group(random.Random(seed), "consumer/range")
        log = Log(group, "consumer/range")
        for tp in subscribed_partitions(group):
            found = reasons(group, "consumer/range", tp)
            assert [type(one) for one in found] == [facts.FairShares, facts.RangeOf]
            for fact in found:
                CHECKS[type(fact)](log, tp, fact)
            assert tp in log.answer[found[-1].member_id]  # type: ignore[attr-defined]


def test_uniform_gives_no_reason_of_racks() -> None:
    """m2 keeps a-2 although no replica is in its rack: uniform reads no racks."""
    topics = tuple(
        Topic(name, 3, racks=(("a",), ("b",), ("c",)), topic_id=IDS[n])
        for n, name in enumerate(("a", "c"))
    )
    of_a, of_c = (tuple(TopicPartition(name, p) for p in range(3)) for name in "ac")
    members = (
        Member("m1", ("a", "c"), owned_partitions=of_c),
        Member("m2", ("a",), rack_id="b", owned_partitions=of_a),
    )
    plan = kr.plan(GroupSpec("g", topics, members, "consumer/uniform", 6))
    assert plan.explain("a-2")[1:] == [
        "  1. keep: m2 keeps it for now",
        "  2. balance: balancing leaves it with m2",
        "  m2 -> m2",
    ]


@pytest.mark.parametrize(("members", "readers"), [(2, 1), (4, 1), (5, 2), (8, 2), (9, 3)])
def test_a_shared_partition_has_the_readers_that_its_sentence_says(
    members: int, readers: int
) -> None:
    """SimpleAssignor: each of T partitions is shared by members / T members, rounded up."""
    topics = (Topic("t", 4, topic_id=IDS[0]),)
    group = GroupSpec("g", topics, tuple(Member(f"m{n}", ("t",)) for n in range(members)))
    (one,) = kr.plan(group, "share/simple").rounds
    assert sum(TopicPartition("t", 1) in own for own in one.assignment.values()) == readers
    shared, unread, *filled = reasons(group, "share/simple", TopicPartition("t", 1))
    assert isinstance(shared, Shared)
    assert (shared.partitions, shared.members) == (4, members)
    assert f"each partition is to have {readers} reader" in str(shared)
    assert unread == Unread()
    assert len(filled) == readers


def random_share_group(rng: random.Random) -> GroupSpec:
    """Returns a group at rest, and the group after changes of members and partitions."""
    names = ["t0", "t1"]
    same = rng.random() < 0.5

    def subscribed() -> tuple[str, ...]:
        return tuple(names if same else rng.sample(names, rng.randint(1, 2)))

    topics = [Topic(name, rng.randint(1, 6), topic_id=IDS[n]) for n, name in enumerate(names)]
    members = [Member(f"m{n}", subscribed()) for n in range(rng.randint(1, 9))]
    group = GroupSpec("g", tuple(topics), tuple(members), "share/simple", 3)
    settled = kr.plan(group).final
    stay = [one for one in settled.members if rng.random() < 0.8]
    if not same:
        stay = [replace(one, topics=subscribed()) if rng.random() < 0.2 else one for one in stay]
    new = [Member(f"n{n}", subscribed()) for n in range(rng.randint(not stay, 3))]
    grown = [replace(topic, partitions=topic.partitions + rng.randint(0, 1)) for topic in topics]
    return settled.edited(topics=tuple(grown), members=(*stay, *new))


def test_the_readers_of_a_share_group_are_explained_one_by_one() -> None:
    """The readers of a partition are the members that kept it and those that got it.

    A member's number of partitions grows by one with each partition of the pool that it gets.

    The steps are those of SimpleAssignor (docs of `share/simple.py`).
    """
    seen = set[object]()
    for seed in range(150):
        group = random_share_group(random.Random(seed))
        answer = kr.assign(group)
        before = {one.member_id: one.owned_partitions for one in group.members}
        read = {topic for member in group.members for topic in member.topics}
        has_kept: Counter[tuple[str | None, str]] = Counter()
        held = defaultdict(list)
        for topic in group.topics:
            for p in range(topic.partitions if topic.name in read else 0):
                tp = TopicPartition(topic.name, p)
                shared, *found = reasons(group, "share/simple", tp)
                assert isinstance(shared, Shared)
                readers = [one for one in found if isinstance(one, FormerReader)]
                filled = [one for one in found if isinstance(one, Filled)]
                assert {one.member_id for one in readers} == {m for m in before if tp in before[m]}
                kept = {one.member_id for one in readers if one.outcome == "kept"}
                after = {member_id for member_id, own in answer.items() if tp in own}
                assert after == kept | {one.member_id for one in filled}
                assert (Unread() in found) == (not readers)
                wanted = -(-shared.members // shared.partitions)
                few = [one for one in found if isinstance(one, TooFew)]
                assert [one.readers for one in few] == [len(after)] * (len(after) < wanted)
                assert all(one.held < one.wants for one in filled)
                assert all(one.had > one.wants for one in readers if one.outcome == "given up")
                has_kept.update((shared.topic, member_id) for member_id in kept)
                for one in filled:
                    held[shared.topic, one.member_id].append(one.held)
                seen |= {type(one) for one in found} | {one.outcome for one in readers}
                seen |= {"again" if one.again else "nobody left" for one in few}
        for member, each in held.items():
            assert sorted(each) == [has_kept[member] + n for n in range(len(each))]
    ends = {"again", "nobody left"}
    assert seen == {FormerReader, Filled, Unread, TooFew, "kept", "given up", "crowded"} | ends


def test_an_explanation_of_a_share_group_has_its_numbers() -> None:
    topics = (Topic("t", 4, topic_id=IDS[0]),)
    members = (Member("a", ("t",)), Member("b", ("t",)))
    group = kr.plan(GroupSpec("g", topics, members, "share/simple", 3)).final
    t0 = TopicPartition("t", 0)
    plan = kr.plan(group, changes=["add-members=5,like=a"])
    text = "\n".join(plan.explain("t-0"))
    assert (
        "share: 3 members for 4 partitions of all topics: each partition is to have 1 reader"
        in text
    )
    assert "so each member wants 1 or 2" in text
    assert "keep: a read 2 partitions and wants 1; it keeps this one, and gives up 1 other" in text
    assert "fill: it lacks 1 reader; the next in the circle of members with too few is " in text
    different = group.edited(members=(members[0], Member("b", ("t", "u"))))
    assert "2 members for 4 partitions of t: " in str(reasons(different, "share/simple", t0)[0])


def test_a_partition_that_is_not_initialised_has_no_number_of_readers() -> None:
    topics = (Topic("t", 2, topic_id=IDS[0], initialized=(0,)),)
    group = GroupSpec("g", topics, (Member("a", ("t",)),))
    text = "\n".join(kr.plan(group, "share/simple").explain("t-1"))
    assert "not explained here; docs/behaviour/server-side.md describes them\n" in text


def streams_group() -> GroupSpec:
    running = tuple(TopicPartition("0", n) for n in range(4))
    members = (
        Member("a", (), streams=StreamsMember("p1", active_tasks=running)),
        Member("b", (), streams=StreamsMember("p2")),
    )
    subtopologies = (Subtopology("0", 4, stateful=False),)
    return GroupSpec("g", (), members, "streams/sticky", subtopologies=subtopologies)


@pytest.mark.parametrize("text", ["0[1]", "0-1"])
def test_a_task_is_explained_as_the_tables_print_it(text: str) -> None:
    """The quota is 2: a keeps tasks 0 and 1, the first by partition, and b gets the others."""
    plan = kr.plan(streams_group())
    _, task, owners = plan.explain(text)
    assert owners == "  a -> a"
    assert "4 tasks to 2 members: a member keeps its tasks up to a quota, at first 2" in task
    assert task.endswith("a had it, and keeps it")
    assert "a had it, but is full, so b gets it" in plan.explain("0[3]")[1]
    assert reasons(plan.group, "streams/sticky", TopicPartition("0", 3)) == [
        GivenTask(4, 2, "a", "b")
    ]


def test_a_task_has_the_form_of_streams_too() -> None:
    plan = kr.plan(streams_group())
    assert plan.explain("0_3") == plan.explain("0-3") == plan.explain("0[3]")
    with pytest.raises(kr.GroupError, match="there is no 0-9"):
        plan.explain("0_9")


def test_a_source_topic_of_a_streams_group_is_no_task() -> None:
    with pytest.raises(kr.GroupError, match=r"no payments-1.*give SUBTOPOLOGY_NUMBER"):
        kr.plan(streams_group()).explain("payments-1")
