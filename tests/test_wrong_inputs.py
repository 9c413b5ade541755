# SPDX-License-Identifier: Apache-2.0
"""Each wrong input in Python is an error with the field's path and the expected form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import kafka_rebalance as kr
from kafka_rebalance.data import captured_lines

if TYPE_CHECKING:
    from collections.abc import Callable

TOPIC, MEMBER = kr.Topic("t", 2), kr.Member("a", topics=("t",))
ANY: Any = kr
NOT_A_GROUP: Any = {"group_id": "g"}


def group(**fields: Any) -> kr.GroupSpec:
    given = {"group_id": "g", "assignor": "range", "topics": (TOPIC,), "members": (MEMBER,)}
    return ANY.GroupSpec(**{**given, **fields})  # type: ignore[no-any-return]


def member(**fields: Any) -> kr.GroupSpec:
    return group(members=(ANY.Member(**{"member_id": "a", "topics": ("t",), **fields}),))


def topic(*fields: Any, **named: Any) -> kr.GroupSpec:
    return group(topics=(kr.Topic(*fields, **named),))


def planned(change: Any) -> object:
    return kr.plan(group(), None, [change])


def fractions() -> pa.Table:
    rows = pa.Table.from_pylist([{**group().to_dict(), "generation_id": 1.5}])
    assert rows.schema.field("generation_id").type == pa.float64()
    return rows


GROUP = group()
PLAN = kr.plan(GROUP)
GROUPS: dict[str, tuple[str, Callable[[], object]]] = {
    "a topic as a tuple": ("topics[0]: a tuple is not a Topic", lambda: group(topics=(("t", 2),))),
    "a member as a tuple": ("members[0]: a tuple is not a", lambda: group(members=(("a",),))),
    "no members": ("members: ", lambda: group(members=None)),
    "members as a dict": ("members: an object", lambda: group(members={"a": 1})),
    "no topics": ("topics: ", lambda: group(topics=None)),
    "fractions": ("topics[0].partitions: ", lambda: topic("t", 3.0)),
    "true partitions": ("topics[0].partitions: a boolean", lambda: topic("t", True)),
    "partitions as text": ("topics[0].partitions: a string", lambda: topic("t", "3")),
    "racks as text": ("topics[0].racks: ", lambda: topic("t", 2, racks="ab")),
    "too few racks": ("topics[0].racks: 1 entries", lambda: topic("t", 2, racks=(("a",),))),
    "a rack's number": ("topics[0].racks[0][0]: ", lambda: topic("t", 1, racks=((1,),))),
    "no group id": ("group_id: ", lambda: group(group_id=None)),
    "a number as group id": ("group_id: ", lambda: group(group_id=5)),
    "a number as assignor": ("assignor: a number", lambda: group(assignor=5)),
    "a generation as text": ("generation_id: a string", lambda: group(generation_id="1")),
    "a broken generation": ("generation_id: ", lambda: group(generation_id=1.5)),
    "no member id": ("members[0].member_id: ", lambda: member(member_id=None)),
    "a number as member id": ("members[0].member_id: ", lambda: member(member_id=5)),
    "an instance's number": ("members[0].group_instance_", lambda: member(group_instance_id=5)),
    "a member's generation": ("members[0].generation_id: ", lambda: member(generation_id="x")),
    "a member's rack": ("members[0].rack_id: ", lambda: member(rack_id=5)),
    "user data": ("members[0].user_data: ", lambda: member(user_data=5)),
    "topics as one text": ("members[0].topics: 't' is a string", lambda: member(topics="t")),
    "a topic's number": ("members[0].topics[0]: ", lambda: member(topics=(1,))),
    "owned as a tuple": (
        "members[0].owned_partitions[0]: a tuple is not",
        lambda: member(owned_partitions=(("t", 0),)),
    ),
    "owned as text": (
        "members[0].owned_partitions[0]: a string",
        lambda: member(owned_partitions=("t-0",)),
    ),
    "an owned number as text": (
        "members[0].owned_partitions[0].partition: ",
        lambda: member(owned_partitions=(ANY.TopicPartition("t", "0"),)),
    ),
    "an assignment": ('assignment["a"]: ', lambda: ANY.GroupSpec.owning(GROUP, {"a": 1})),
    "a line's list": ("line: a list is not an object", lambda: ANY.GroupSpec.from_dict([1])),
    "no line": ("line: null", lambda: ANY.GroupSpec.from_dict(None)),
    "a line's number": ("line: an int is not text", lambda: ANY.GroupSpec.from_json(5)),
    "half a line": ("line: not JSON", lambda: kr.GroupSpec.from_json("{")),
}
CALLS: dict[str, tuple[str, Callable[[], object]]] = {
    "a dict for assign": ("group: a dict is not a GroupSpec", lambda: kr.assign(NOT_A_GROUP)),
    "a dict for plan": ("group: a dict is not", lambda: kr.plan(NOT_A_GROUP)),
    "a dict for compare": ("group: a dict is not", lambda: kr.compare(NOT_A_GROUP)),
    "a dict for describe": ("group: a dict is not", lambda: kr.describe(NOT_A_GROUP)),
    "a dict for best_possible": ("group: a dict is not", lambda: kr.best_possible(NOT_A_GROUP)),
    "a dict for endless": ("group: a dict is not", lambda: kr.endless(NOT_A_GROUP)),
    "a dict for apply": ("group: a dict", lambda: kr.apply(kr.AddMembers(1), NOT_A_GROUP)),
    "a text for apply": ("change: a str is not a change", lambda: ANY.apply("x", GROUP)),
    "a plug-in": ("assignor: a Range is not a name", lambda: ANY.assign(GROUP, kr.Range())),
    "a class": ("assignor: a type is not a name", lambda: ANY.assign(GROUP, kr.Range)),
    "an unknown assignor": ('assignor: "x" is not known', lambda: kr.assign(GROUP, "x")),
    "an unknown engine": ("engine is", lambda: ANY.assign(GROUP, engine="java")),
    "changes as one text": ("changes: ", lambda: kr.plan(GROUP, None, "add-members=1")),
    "one change": ("changes: an AddMembers is", lambda: ANY.plan(GROUP, None, kr.AddMembers(1))),
    "a number of changes": ("changes: an int is not", lambda: ANY.plan(GROUP, None, 5)),
    "changes of text": ("AddMembers.count: '1'", lambda: planned(ANY.AddMembers("1"))),
    "a fraction of members": ("AddMembers.count: 1.0", lambda: planned(ANY.AddMembers(1.0))),
    "true members": ("AddMembers.count: True", lambda: planned(kr.AddMembers(True))),
    "nobody to remove": ("change: say which", lambda: planned(kr.RemoveMembers())),
    "a name as number": ("RemoveMembers.count: 'a'", lambda: planned(ANY.RemoveMembers("a"))),
    "partitions to add": (
        "AddPartitions.partitions: '3'",
        lambda: planned(ANY.AddPartitions("t", "3")),
    ),
    "topics to add": ("AddTopics.topics: ('t',)", lambda: planned(ANY.AddTopics(("t",)))),
    "one topic": ("Resubscribe.topics: 't'", lambda: planned(ANY.Resubscribe("t"))),
    "a switch": ("SwitchAssignor.assignor: 5", lambda: planned(ANY.SwitchAssignor(5))),
    "a bounce": ("BounceMembers.member: 5", lambda: planned(ANY.BounceMembers(5))),
    "a change's text": ("change: 5 is not a text", lambda: ANY.change_from_text(5)),
    "an unknown change": ("begins with none of", lambda: kr.change_from_text("x")),
    "a partition's text": ("partition: ", lambda: PLAN.explain("t")),
    "a partition's number": ("partition: an int", lambda: ANY.RebalancePlan.explain(PLAN, 3)),
    "draws": ("draws: '3' is not an int", lambda: ANY.RebalancePlan.sample(PLAN, "3")),
    "lines as text": ("lines: a str; give a list", lambda: ANY.assign_lines("x")),
    "lines of text": ("lines[0]: a str; give bytes", lambda: ANY.assign_lines(["{}"])),
    "a function": ("assignor: a function is not", lambda: ANY.register(lambda: 1)),
    "a class to register": ("assignor: a class", lambda: ANY.register(kr.Range)),
    "a scenario": ("scenario: a dict is not", lambda: ANY.simulate({"a": 1})),
    "a batch": ("batch: a dict has no Arrow data", lambda: kr.assign_batch({"a": 1})),
    "one text as assignors": (
        'assignors: "range" is one text; give a list',
        lambda: kr.compare(GROUP, assignors="range"),
    ),
    "a batch of dicts": ("batch[0]: a dict is not", lambda: kr.plan_batch([NOT_A_GROUP])),
    "broken numbers": ("batch: a number is not whole", lambda: kr.assign_batch(fractions())),
}
WRONG = GROUPS | CALLS


@pytest.mark.parametrize("what", WRONG)
def test_wrong_inputs_name_their_path(what: str) -> None:
    said, wrong = WRONG[what]
    with pytest.raises((kr.GroupError, TypeError, ValueError)) as raised:
        wrong()
    assert said in str(raised.value)


# What users have at hand --------------------------------------------------------------------------


def test_every_form_of_arrow_gives_the_answers_of_assign() -> None:
    """Libraries have different types for a list of rows; all are accepted, with equal answers."""
    groups = [kr.GroupSpec.from_json(one) for one in captured_lines() if '"error"' not in one]
    own = pa.Table.from_pylist([one.to_dict() for one in groups])  # int64, and untyped nulls
    parts = pa.concat_tables([own.slice(0, 7), own.slice(7)])
    assert len(parts.column("group_id").chunks) == 2
    answers = kr.assign_batch(groups).to_pylist()
    for form in (parts, own.to_batches()[0], own.to_pandas(), tuple(groups)):
        assert kr.assign_batch(form).to_pylist() == answers
    for one, answer in zip(groups, answers, strict=True):
        found = {
            member["member_id"]: pairs(member["partitions"]) for member in answer["assignment"]
        }
        assert found == {id_: [tuple(tp) for tp in tps] for id_, tps in kr.assign(one).items()}
    empty: tuple[object, ...] = ([], own.slice(0, 0))
    for nothing in empty:
        assert kr.assign_batch(nothing).num_rows == 0
    assert kr.plan_batch(parts, None, ["add-members=1"]).num_rows == len(groups)
    assert kr.compare_batch(groups).num_rows == len(groups)


def pairs(partitions: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(each["topic"], number) for each in partitions for number in each["partitions"]]
