# SPDX-License-Identifier: Apache-2.0
"""Laws that hold for every group, with both engines."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kafka_rebalance as kr
from kafka_rebalance.assignors import validate_cooperative
from kafka_rebalance.group import MAX_PARTITIONS, Anomaly, Balance
from kafka_rebalance.group.model import static_first
from kafka_rebalance.java.order import by_name

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine

ASSIGNORS = ["range", "roundrobin", "sticky", "cooperative-sticky"]
STICKY = ["sticky", "cooperative-sticky"]

# Groups -------------------------------------------------------------------------------------------

# "Aa" and "BB" have equal Java hashes; as in Java, U+10000 sorts before "\ue000" (UTF-16).
PARTS = st.sampled_from(["Aa", "BB", "m", "0", "é", "\ue000", "\U00010000"])
NAMES = st.lists(PARTS, max_size=4).map("".join)
TOPICS = st.dictionaries(st.sampled_from(["t0", "t1", "AaAa", "BBBB", "é"]), st.integers(0, 7))
RACKS = st.sampled_from(["a", "b", "c"])


@st.composite
def groups(draw: st.DrawFn, *, equal: bool = False, racks: bool = True) -> kr.GroupSpec:
    """Makes a random group without owned partitions; `equal` makes all subscriptions equal."""
    counts = draw(TOPICS)
    topics = tuple(
        kr.Topic(name, count, _replicas(draw, count) if racks else None)
        for name, count in counts.items()
    )
    subscribable = [*counts, "nowhere"]
    least = 1 if equal else 0
    subscriptions = st.lists(st.sampled_from(subscribable), unique=True, min_size=least).map(tuple)
    same = draw(subscriptions) if equal else None
    ids = draw(st.lists(NAMES, unique=True, min_size=1, max_size=9))
    members = tuple(
        kr.Member(
            member_id,
            draw(subscriptions) if same is None else same,
            group_instance_id=draw(st.sampled_from([None, f"i{n}"])),
            rack_id=draw(st.none() | RACKS) if racks else None,
        )
        for n, member_id in enumerate(ids)
    )
    return kr.GroupSpec("g", topics, members)


def _replicas(draw: st.DrawFn, count: int) -> tuple[tuple[str | None, ...], ...] | None:
    replicas = st.lists(st.none() | RACKS, max_size=3).map(tuple)
    return draw(st.none() | st.tuples(*[replicas] * count))


@st.composite
def claims(draw: st.DrawFn) -> kr.GroupSpec:
    """Makes a random group with any claims: old, repeated, or to partitions that do not exist."""
    group = draw(groups())
    names = [*(topic.name for topic in group.topics), "nowhere"]
    partitions = st.builds(kr.TopicPartition, st.sampled_from(names), st.integers(0, 8))
    members = tuple(
        replace(
            member,
            owned_partitions=tuple(draw(st.lists(partitions, max_size=6))),
            generation_id=draw(st.none() | st.integers(-1, 2)),
        )
        for member in group.members
    )
    return replace(group, members=members, max_partitions=MAX_PARTITIONS)


def _with(group: kr.GroupSpec, members: tuple[kr.Member, ...]) -> kr.GroupSpec:
    return kr.GroupSpec(group.group_id, group.topics, members)


def own(group: kr.GroupSpec, result: kr.Assignment, generation_id: int) -> kr.GroupSpec:
    """Returns the group before its next rebalance: each member owns its assigned partitions."""
    return _with(
        group,
        tuple(
            replace(m, owned_partitions=result[m.member_id], generation_id=generation_id)
            for m in group.members
        ),
    )


@st.composite
def changed(draw: st.DrawFn, group: kr.GroupSpec) -> kr.GroupSpec:
    """Returns the group after random changes: members leave and join, and one may resubscribe."""
    kept = [member for member in group.members if draw(st.integers(0, 3)) > 0]
    taken = {member.member_id for member in group.members}
    fresh = draw(st.lists(NAMES.filter(lambda name: name not in taken), unique=True, max_size=3))
    topics = group.members[0].topics
    members = [*kept, *(kr.Member(name, topics) for name in fresh)]
    resubscribes = draw(st.booleans())
    if members and resubscribes:
        n = draw(st.integers(0, len(members) - 1))
        choices: list[tuple[str, ...]] = [(), topics, topics[:1]]
        members[n] = replace(members[n], topics=draw(st.sampled_from(choices)))
    return _with(group, tuple(members or group.members))


def existing(group: kr.GroupSpec) -> set[kr.TopicPartition]:
    """Returns the partitions of topics with a subscriber."""
    subscribed = {name for member in group.members for name in member.topics}
    counts = group.partition_counts().items()
    return {kr.TopicPartition(t, p) for t, n in counts if t in subscribed for p in range(n)}


def given_out(result: kr.Assignment) -> list[kr.TopicPartition]:
    return [tp for partitions in result.values() for tp in partitions]


# Every assignor -----------------------------------------------------------------------------------


@pytest.mark.parametrize("assignor", ASSIGNORS)
@given(group=groups())
def test_every_partition_once_and_only_to_subscribers(
    group: kr.GroupSpec, assignor: str, engine: Engine
) -> None:
    """Each partition of a subscribed topic is assigned once, if members own nothing before.

    If the new owner does not subscribe to the topic, the answer lists an anomaly.
    """
    result = kr.assign(group, assignor, engine=engine)
    assert list(result) == [member.member_id for member in group.members]
    handed = given_out(result)
    assert len(handed) == len(set(handed))
    assert set(handed) == existing(group)
    topics = {member.member_id: member.topics for member in group.members}
    astray = [(m, *tp) for m, tps in result.items() for tp in tps if tp.topic not in topics[m]]
    # Kafka's sticky assignors can overlook an empty subscription (step 3 of claims.py).
    assert astray == [(a.member_id, a.topic, a.partition) for a in result.anomalies]
    assert {anomaly.kind for anomaly in result.anomalies} <= {"unsubscribed"}
    if assignor not in STICKY:
        assert result.anomalies == ()
    assert all(topics[anomaly.member_id or ""] == () for anomaly in result.anomalies)


def _answer(group: kr.GroupSpec, assignor: str, engine: Engine) -> kr.Assignment | str:
    try:
        return kr.assign(group, assignor, engine=engine)
    except kr.AssignorThrows as error:
        return str(error)


@pytest.mark.parametrize("assignor", ASSIGNORS)
@given(group=claims())
def test_engines_agree_and_anomalies_are_complete(group: kr.GroupSpec, assignor: str) -> None:
    rust, reference = (_answer(group, assignor, engine) for engine in ("rust", "reference"))
    if isinstance(rust, str) or isinstance(reference, str):
        assert rust == reference
        return
    assert list(rust.items()) == list(reference.items())
    assert rust.anomalies == reference.anomalies
    assert set(rust.anomalies) == _anomalies(group, rust, assignor)
    assert len(set(rust.anomalies)) == len(rust.anomalies)


def _anomalies(group: kr.GroupSpec, result: kr.Assignment, assignor: str) -> set[Anomaly]:
    """Returns all anomalies of the answer, found by code outside the package."""
    counts = group.partition_counts()
    found: set[Anomaly] = set()
    handed = given_out(result)
    for member in group.members:
        for tp in result[member.member_id]:
            if tp.topic not in member.topics:
                found.add(Anomaly("unsubscribed", *tp, member.member_id))
            if tp.partition not in range(counts.get(tp.topic, 0)):
                found.add(Anomaly("nonexistent", *tp, member.member_id))
    for tp in handed:
        holders = [m for m, partitions in result.items() for each in partitions if each == tp]
        found |= {Anomaly("duplicate", *tp, holder) for holder in holders[1:]}
    held_back = {tp for member in group.members for tp in member.owned_partitions}
    nobodys = existing(group) - set(handed)
    if assignor == "cooperative-sticky":
        nobodys -= held_back
    return found | {Anomaly("unassigned", *tp, None) for tp in nobodys}


@pytest.mark.parametrize("assignor", ["roundrobin", "sticky", "cooperative-sticky"])
@given(group=groups(equal=True))
def test_loads_differ_by_at_most_one(group: kr.GroupSpec, assignor: str, engine: Engine) -> None:
    counts = kr.assign(group, assignor, engine=engine).counts()
    assert max(counts) - min(counts) <= 1


# Range and round-robin ----------------------------------------------------------------------------


@given(group=groups(racks=False))
def test_range_gives_runs_and_the_first_members_one_more(
    group: kr.GroupSpec, engine: Engine
) -> None:
    result = kr.assign(group, "range", engine=engine)
    for topic, count in group.partition_counts().items():
        members = [m.member_id for m in static_first(group.members) if topic in m.topics]
        runs = [[p for t, p in result[member] if t == topic] for member in members]
        if members:
            share, extras = divmod(count, len(members))
            assert [len(run) for run in runs] == [share + (n < extras) for n in range(len(members))]
            assert [p for run in runs for p in run] == list(range(count))


@given(group=groups())
def test_racks_leave_the_shares_of_range_as_they_are(group: kr.GroupSpec, engine: Engine) -> None:
    result = kr.assign(group, "range", engine=engine)
    for topic, count in group.partition_counts().items():
        members = [m.member_id for m in group.members if topic in m.topics]
        loads = [sum(t == topic for t, _ in result[member]) for member in members]
        if members:
            assert max(loads) - min(loads) <= 1
            assert sum(loads) == count


@given(group=groups(equal=True))
def test_round_robin_deals_in_order(group: kr.GroupSpec, engine: Engine) -> None:
    result = kr.assign(group, "roundrobin", engine=engine)
    counts = group.partition_counts()
    names = by_name(tp.topic for tp in existing(group) if tp.partition == 0)
    deck = [kr.TopicPartition(name, p) for name in names for p in range(counts[name])]
    order = [member.member_id for member in static_first(group.members)]
    dealt = {member: tuple(deck[n :: len(order)]) for n, member in enumerate(order)}
    assert dict(result) == dealt


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
@given(group=claims())
def test_range_and_round_robin_ignore_owned_partitions(
    group: kr.GroupSpec, assignor: str, engine: Engine
) -> None:
    fresh = tuple(replace(m, owned_partitions=(), generation_id=None) for m in group.members)
    result = kr.assign(group, assignor, engine=engine)
    assert result == kr.assign(_with(group, fresh), assignor, engine=engine)


# The sticky assignors -----------------------------------------------------------------------------


def _settle(group: kr.GroupSpec, assignor: str, engine: Engine) -> list[kr.Assignment]:
    """Rebalances until two answers in a row are equal; returns all answers."""
    answers: list[kr.Assignment] = []
    while True:
        result = kr.assign(group, assignor, engine=engine)
        answers.append(result)
        if len(answers) > 1 and _sets(answers[-2]) == _sets(result):
            return answers
        assert len(answers) < 6, "does not settle"
        # Every member joins again with the newest generation.
        group = own(group, result, len(answers) + 100)


def _sets(result: kr.Assignment) -> dict[str, set[kr.TopicPartition]]:
    return {member: set(partitions) for member, partitions in result.items()}


@pytest.mark.parametrize("assignor", STICKY)
@given(group=groups(equal=True, racks=False))
def test_an_unchanged_group_moves_nothing(
    group: kr.GroupSpec, assignor: str, engine: Engine
) -> None:
    """There are no racks: Kafka moves partitions that have no replica in their owner's rack."""
    first = kr.assign(group, assignor, engine=engine)
    again = kr.assign(own(group, first, 1), assignor, engine=engine)
    assert (again - first).moves == 0
    assert _sets(again) == _sets(first)


@given(data=st.data(), group=groups(equal=True, racks=False))
def test_sticky_moves_only_what_the_balance_needs(
    data: st.DataObject, group: kr.GroupSpec, engine: Engine
) -> None:
    """When members with equal subscriptions leave and join, the other members keep up to their new
    share.

    There are no racks: Kafka moves partitions that have no replica in their owner's rack.
    """
    before = kr.assign(group, "sticky", engine=engine)
    owning = own(group, before, 1)
    kept = tuple(member for member in owning.members if data.draw(st.booleans()))
    fresh = tuple(kr.Member(f"new{n}", group.members[0].topics) for n in range(2))
    after_group = _with(group, kept + fresh)
    after = kr.assign(after_group, "sticky", engine=engine)
    most = -(-len(existing(after_group)) // len(after_group.members))
    for member in kept:
        lost = set(member.owned_partitions) - set(after[member.member_id])
        least = len(existing(after_group)) // len(after_group.members)
        assert len(lost) <= max(0, len(member.owned_partitions) - least)
        assert not lost or len(after[member.member_id]) in (least, most)


@given(data=st.data(), group=groups())
def test_cooperative_gives_nothing_that_somebody_still_owns(
    data: st.DataObject, group: kr.GroupSpec, engine: Engine
) -> None:
    """Only partitions that another member must revoke first are withheld."""
    for generation in range(1, 4):
        owned = kr.Assignment.owned(group)
        result = kr.assign(group, "cooperative-sticky", engine=engine)
        validate_cooperative(group, result)
        handed = given_out(result)
        assert len(handed) == len(set(handed))
        withheld = existing(group) - set(handed)
        assert withheld <= set(given_out((result - owned).revoked))
        group = data.draw(changed(own(group, result, generation)))


@given(data=st.data(), group=groups())
def test_cooperative_settles_evenly_within_a_few_rounds(
    data: st.DataObject, group: kr.GroupSpec, engine: Engine
) -> None:
    first = kr.assign(group, "cooperative-sticky", engine=engine)
    group = data.draw(changed(own(group, first, 1)))
    answers = _settle(group, "cooperative-sticky", engine)
    last = answers[-1]
    assert set(given_out(last)) == existing(group)
    if len({frozenset(member.topics) for member in group.members}) == 1:
        assert max(last.counts()) - min(last.counts()) <= 1


@given(data=st.data(), group=groups(equal=True, racks=False))
def test_cooperative_is_sticky_without_what_is_transferring(
    data: st.DataObject, group: kr.GroupSpec, engine: Engine
) -> None:
    owning = own(group, kr.assign(group, "sticky", engine=engine), 1)
    group = data.draw(changed(owning))
    target = kr.assign(group, "sticky", engine=engine)
    result = kr.assign(group, "cooperative-sticky", engine=engine)
    transferring = (target - kr.Assignment.owned(group)).transferring
    loads = [a + b for a, b in zip(result.counts(), transferring.counts(), strict=True)]
    if len({frozenset(member.topics) for member in group.members}) == 1:
        # sticky's user data lists partitions by topic, so only the loads must be equal.
        assert sorted(loads) == sorted(target.counts())


# Values -------------------------------------------------------------------------------------------


@given(group=claims())
def test_groups_come_back_from_dict_json_and_pickle(group: kr.GroupSpec) -> None:
    assert kr.GroupSpec.from_dict(group.to_dict()) == group
    assert kr.GroupSpec.from_json(group.to_json()) == group
    assert kr.GroupSpec.from_json(group.to_json().encode()) == group
    assert pickle.loads(pickle.dumps(group)) == group
    assert json.loads(group.to_json()) == group.to_dict()


@pytest.mark.parametrize("assignor", ASSIGNORS)
@given(group=claims())
def test_assignments_come_back(group: kr.GroupSpec, assignor: str, engine: Engine) -> None:
    result = _answer(group, assignor, engine)
    if isinstance(result, str):
        return
    again = pickle.loads(pickle.dumps(result))
    assert again == result
    assert again.anomalies == result.anomalies
    assert str(again) == str(result)
    parsed = json.loads(json.dumps(result.to_dict()))
    pairs = {m: [kr.TopicPartition(*tp) for tp in tps] for m, tps in parsed.items()}
    assert kr.Assignment.of(pairs) == result
    assert sum(result.counts()) == len(given_out(result))


@given(data=st.data())
def test_delta_equations(data: st.DataObject) -> None:
    partitions = st.builds(kr.TopicPartition, st.sampled_from(["t0", "t1"]), st.integers(0, 5))
    lists = st.dictionaries(st.sampled_from("ABCD"), st.lists(partitions, unique=True))
    old, new = (kr.Assignment.of(data.draw(lists)) for _ in range(2))
    delta = new - old
    members = set(old) | set(new)
    revoked_by: dict[kr.TopicPartition, set[str]] = {}
    for member in members:
        owned, target = set(old.get(member, ())), set(new.get(member, ()))
        assert set(delta.kept[member]) == owned & target
        assert set(delta.revoked[member]) == owned - target
        assert set(delta.gained[member]) == target - owned
        for tp in owned - target:
            revoked_by.setdefault(tp, set()).add(member)
    for member in members:
        taken_over = {tp for tp in delta.gained[member] if tp in revoked_by}
        assert set(delta.transferring[member]) == taken_over
    assert delta.moves == sum(len(delta.gained[member]) for member in members)
    assert (old - old).moves == 0


@given(st.lists(st.integers(0, 50), min_size=1))
def test_balance(counts: list[int]) -> None:
    balance = Balance.of(counts)
    assert (balance.min, balance.max) == (min(counts), max(counts))
    assert balance.mean * len(counts) == pytest.approx(sum(counts))
    assert (balance.stddev == 0) == all(a == b for a, b in pairwise(counts))
