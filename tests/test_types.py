# SPDX-License-Identifier: Apache-2.0
"""A value of a wrong type is refused at once, with its path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance import GroupError, GroupSpec, Member, Topic, TopicPartition
from kafka_rebalance.assignors import Range, Sticky, register

TOPIC, MEMBER = Topic("t", 3), Member("m", ("t",))


def group(**fields: Any) -> GroupSpec:
    return GroupSpec(**({"group_id": "g", "topics": (TOPIC,), "members": (MEMBER,)} | fields))


def topic(**fields: Any) -> GroupSpec:
    more: dict[str, Any] = {"name": "u", "partitions": 1, **fields}
    return group(topics=(TOPIC, Topic(**more)))


def member(**fields: Any) -> GroupSpec:
    return group(members=(MEMBER, Member(**({"member_id": "n", "topics": ("t",)} | fields))))


def owned(*partitions: Any) -> GroupSpec:
    return member(owned_partitions=(TopicPartition("t", 0), *partitions))


# Values of type Any: a type checker accepts them as arguments of any type.
NONE: Any = None
REAL: Any = 1.0

WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "no group_id": (lambda: group(group_id=None), "group_id: None is not a string; give a str"),
    "group_id a number": (lambda: group(group_id=5), "group_id: a number is not a string"),
    "group_id bytes": (lambda: group(group_id=b"g"), "group_id: a bytes is not a string"),
    "assignor an object": (
        lambda: group(assignor=Range()),
        "assignor: a Range is not a string",
    ),
    "generation a text": (lambda: group(generation_id="4"), "generation_id: a string is not a gen"),
    "topics a dict": (lambda: group(topics={"t": 3}), "topics: an object, not a tuple; give a"),
    "topic a tuple": (
        lambda: group(topics=(("t", 3),)),
        "topics[0]: a tuple is not a Topic; give Topic(name, partitions)",
    ),
    "topic a name": (lambda: group(topics=("t",)), "topics[0]: a string is not a Topic"),
    "topic without a name": (lambda: topic(name=None), "topics[1].name: None is not a string"),
    "partitions True": (
        lambda: topic(partitions=True),
        "topics[1].partitions: a boolean is not a count; give an int",
    ),
    "partitions 3.0": (
        lambda: topic(partitions=3.0),
        "topics[1].partitions: a number that is not whole is not a count; give an int",
    ),
    "partitions a text": (lambda: topic(partitions="3"), "topics[1].partitions: a string is not"),
    "racks a text": (lambda: topic(racks="a"), "topics[1].racks: 'a' is a string, not a tuple"),
    "racks of a partition a text": (
        lambda: topic(racks=("a",)),
        "topics[1].racks[0]: 'a' is a string, not a tuple",
    ),
    "rack a number": (lambda: topic(racks=((1,),)), "topics[1].racks[0][0]: a number is not a str"),
    "members a generator": (
        lambda: group(members=(m for m in (MEMBER,))),
        "members: a generator, not a tuple; give a tuple",
    ),
    "member a name": (
        lambda: group(members=("m",)),
        "members[0]: a string is not a Member; give Member(member_id, topics)",
    ),
    "member without id": (
        lambda: member(member_id=None),
        "members[1].member_id: None is not a str",
    ),
    "subscription a text": (lambda: member(topics="t"), "members[1].topics: 't' is a string, not"),
    "subscription a set": (lambda: member(topics={"t"}), "members[1].topics: a set, not a tuple"),
    "a topic None": (lambda: member(topics=("t", None)), "members[1].topics[1]: None is not a str"),
    "instance a number": (
        lambda: member(group_instance_id=1),
        "members[1].group_instance_id: a number is not a string",
    ),
    "client_id bytes": (lambda: member(client_id=b"c"), "members[1].client_id: a bytes is not a"),
    "rack_id a number": (lambda: member(rack_id=1), "members[1].rack_id: a number is not a string"),
    "generation a float": (
        lambda: member(generation_id=4.0),
        "members[1].generation_id: a number that is not whole is not a generation",
    ),
    "generation True": (lambda: member(generation_id=True), "members[1].generation_id: a boolean"),
    "owned a text": (
        lambda: owned("t-0"),
        (
            "members[1].owned_partitions[1]: a string is not a TopicPartition; "
            "give TopicPartition(topic, partition)"
        ),
    ),
    "owned of two letters": (lambda: owned("t0"), "members[1].owned_partitions[1]: a string is"),
    "owned a list": (lambda: owned(["t", 0]), "members[1].owned_partitions[1]: a list is not a"),
    "owned a pair": (lambda: owned(("t", 0)), "members[1].owned_partitions[1]: a tuple is not a"),
    "owned a float": (
        lambda: owned(TopicPartition("t", REAL)),
        "members[1].owned_partitions[1].partition: a number that is not whole is not a partition",
    ),
    "owned of a topic None": (
        lambda: owned(TopicPartition(NONE, 1)),
        "members[1].owned_partitions[1].topic: None is not a string",
    ),
    "owned below 0": (
        lambda: owned(TopicPartition("t", -4)),
        "members[1].owned_partitions[1]: -4 is not a partition from 0 to 2147483647",
    ),
    "half a character": (
        lambda: member(topics=("\ud800",)),
        "members[1].topics[0]: half of a surrogate pair is not text",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_field_of_another_type_is_refused_with_its_path(case: str) -> None:
    make, problem = WRONG[case]
    with pytest.raises(GroupError) as refused:
        make()
    assert str(refused.value).startswith(problem)


class Name(str):
    """A subclass of str, which counts as str."""

    __slots__ = ()


def test_lists_and_subclasses_are_fine(engine: Any) -> None:
    one = GroupSpec(
        Name("g"),
        topics=[Topic(Name("t"), 2, [["r"], [None]])],  # type: ignore[arg-type]
        members=[Member(Name("m"), [Name("t")], owned_partitions=[TopicPartition("t", 1)])],  # type: ignore[arg-type]
    )
    assert kr.assign(one, "sticky", engine=engine).to_dict() == {"m": [["t", 1], ["t", 0]]}


GROUP = group(assignor="sticky")
ASSIGN: Callable[..., Any] = kr.assign
PLAN: Callable[..., Any] = kr.plan
REGISTER: Callable[..., Any] = register
CALLS: dict[str, tuple[Callable[[], object], str]] = {
    "a dict for a group": (
        lambda: ASSIGN(GROUP.to_dict()),
        "group: a dict is not a GroupSpec; GroupSpec.from_dict and GroupSpec.from_json read one",
    ),
    "an assignor's object": (
        lambda: ASSIGN(GROUP, Range()),
        'assignor: a Range is not a name; give one, as "sticky"',
    ),
    "a dict to plan": (lambda: PLAN(GROUP.to_dict()), "group: a dict is not a GroupSpec"),
    "an object to plan by": (
        lambda: PLAN(GROUP, Sticky()),
        "assignor: a Sticky is not a",
    ),
    "one change as a text": (
        lambda: PLAN(GROUP, "sticky", "add-members=2"),
        'changes: "add-members=2" is one text; give a list, ["add-members=2"]',
    ),
    "one change to compare": (lambda: kr.compare(GROUP, "add-members=2"), "changes: "),
    "no change at all": (
        lambda: PLAN(GROUP, "sticky", [3]),
        "changes[0]: 3 is not a change; give one, as AddMembers(2)",
    ),
    "a function as an assignor": (
        lambda: REGISTER(lambda _: {}),
        "assignor: a function is not an assignor: it has no name, version, supported_protocols, ",
    ),
    "a class as an assignor": (
        lambda: REGISTER(Range),
        (
            "assignor: a class is not an assignor: make an object of it; "
            "see kafka_rebalance.assignors.Assignor"
        ),
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_an_argument_of_another_type_is_refused_with_what_to_do(case: str) -> None:
    call, problem = CALLS[case]
    with pytest.raises(TypeError) as refused:
        call()
    assert str(refused.value).startswith(problem)


def test_members_are_removed_by_one_field() -> None:
    """A change with no field or with two fields is refused by its constructor."""
    both: list[Callable[[], object]] = [
        kr.RemoveMembers,
        lambda: kr.RemoveMembers(1, member="m"),
    ]
    for make in both:
        with pytest.raises(GroupError, match="change: say which members: one of count, member, "):
            make()


def test_one_thing_is_not_written_as_many() -> None:
    one = kr.GroupSpec("g", (kr.Topic("t", 1),), (kr.Member("m", ("t",)),))
    assert "1 partition, 1 topic, 1 member, no assignor" in repr(one) + one._repr_html_()
    assert "1 rebalance, 1 move>" in repr(kr.plan(one, "range"))


def test_an_assignment_that_is_a_text_is_refused() -> None:
    owning: Any = kr.GroupSpec("g", (kr.Topic("t", 1),), (kr.Member("m", ("t",)),)).owning
    with pytest.raises(TypeError, match="assignment: a str is not an assignment; give what"):
        owning("x")
