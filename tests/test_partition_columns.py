# SPDX-License-Identifier: Apache-2.0
"""The core makes TopicPartitions from columns: columns that do not fit, subclasses of str, the
collector of cycles, and members that are read one by one.
"""

from __future__ import annotations

import gc
import weakref
from array import array

import pytest

import kafka_rebalance as kr
from kafka_rebalance import _core


def column(*numbers: int) -> memoryview:
    return memoryview(array("I", numbers))


def owned(
    offsets: memoryview, ids: memoryview, numbers: memoryview
) -> list[tuple[kr.TopicPartition, ...]]:
    return _core.owned_partitions(("t",), offsets, ids, numbers)


def test_columns_that_do_not_fit_are_errors() -> None:
    with pytest.raises(IndexError, match=r"^5 is not an index into 1 topics$"):
        _core.topic_partitions(("t",), column(5), column(1))
    with pytest.raises(IndexError, match=r"^5 is not an index into 1 topics$"):
        owned(column(0, 1), column(5), column(1))
    for ids, numbers in (((0, 0), (1,)), ((0,), (1, 2))):
        problem = f"^topic_ids has {len(ids)} entries, but partitions has {len(numbers)}$"
        with pytest.raises(ValueError, match=problem):
            _core.topic_partitions(("t",), column(*ids), column(*numbers))
        with pytest.raises(ValueError, match=problem):
            owned(column(0, 1), column(*ids), column(*numbers))
    for first, end in ((0, 3), (3, 4), (2, 1)):
        with pytest.raises(IndexError, match=rf"^{first}\.\.{end} is not a span of 2 entries$"):
            owned(column(first, end), column(0, 0), column(1, 2))
    assert owned(column(0, 1, 2), column(0, 0), column(1, 2)) == [(("t", 1),), (("t", 2),)]


def test_columns_of_another_group_are_no_panic() -> None:
    group = kr.GroupSpec("g", (kr.Topic("t", 2),), (kr.Member("m", ("t",)),))
    interned = _core.intern(group)
    for topics in (("t", "u"), ("t",)):
        ids = column(*range(len(topics)))
        made = _core.topic_partitions(topics, ids, ids, interned)
        assert made == tuple((topic, number) for number, topic in enumerate(topics))


def test_a_cycle_through_an_attribute_of_a_topic_is_collected() -> None:
    class Named(str):
        partitions: tuple[kr.TopicPartition, ...]

    topic = Named("t")
    topic.partitions = _core.topic_partitions((topic,), column(0, 0), column(0, 1))
    assert type(topic.partitions[1].topic) is Named
    gone = weakref.ref(topic)
    del topic
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("runs", [True, False])
def test_the_collector_runs_afterwards_if_it_ran_before(runs: bool) -> None:
    ran = gc.isenabled()
    try:
        (gc.enable if runs else gc.disable)()
        owned(column(0, 1), column(0), column(1))
        assert gc.isenabled() is runs
        with pytest.raises(IndexError):
            owned(column(0, 1), column(5), column(1))
        assert gc.isenabled() is runs
    finally:
        (gc.enable if ran else gc.disable)()


@pytest.mark.parametrize("members", [1, 2, 7, 8, 9, 40])
def test_members_read_one_by_one_have_what_items_have(members: int) -> None:
    joined = tuple(kr.Member(f"m{m}", ("t", "u")[m % 3 :]) for m in range(members))
    group = kr.GroupSpec("g", (kr.Topic("t", 11), kr.Topic("u", 13)), joined)
    expected = dict(kr.assign(group, "sticky", engine="reference").items())
    read = kr.assign(group, "sticky")
    for member_id in sorted(expected, reverse=True):
        assert read[member_id] == expected[member_id]
        with pytest.raises(KeyError):
            read["nobody"]
    assert dict(read.items()) == expected


def test_lists_of_topics_are_shared_only_if_they_are_equal() -> None:
    """Also lists in another order, and equal lists with members between them."""
    lists = [("t", "u"), ("t", "u"), ("u", "t"), ("t",), ("t", "u"), (), (), ("t",)]
    own = [tuple(f"{name} "[:-1] for name in topics) for topics in lists]
    topics = (kr.Topic("t", 5), kr.Topic("u", 7))
    for subscriptions in (lists, own):
        joined = tuple(kr.Member(f"m{m}", one) for m, one in enumerate(subscriptions))
        group = kr.GroupSpec("g", topics, joined)
        for assignor in ("range", "roundrobin", "sticky", "cooperative-sticky"):
            expected = kr.assign(group, assignor, engine="reference")
            assert kr.assign(group, assignor) == expected
