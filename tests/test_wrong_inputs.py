# SPDX-License-Identifier: Apache-2.0
"""Each wrong input in Python is an error with the field's path and the expected form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import kafka_rebalance as kr
from kafka_rebalance.assignors import Range, unregister
from kafka_rebalance.bulk import assign_batch, assign_lines, compare_batch, plan_batch
from kafka_rebalance.errors import SchemaError
from kafka_rebalance.history import find_patterns, read_coordinator_log
from kafka_rebalance.notes import endless
from kafka_rebalance.plans import best_possible
from kafka_rebalance.plans.changes import apply, change_from_text

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


def lags(given: Any) -> object:
    return kr.describe(group(), lags=given)


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
    "a dict for best_possible": (
        "group: a dict is not",
        lambda: best_possible(NOT_A_GROUP),
    ),
    "a dict for endless": ("group: a dict is not", lambda: endless(NOT_A_GROUP)),
    "a dict for apply": (
        "group: a dict",
        lambda: apply(kr.AddMembers(1), NOT_A_GROUP),
    ),
    "a text for apply": (
        "change: a str is not a change",
        lambda: ANY.plans.changes.apply("x", GROUP),
    ),
    "a plug-in": (
        "assignor: a Range is not a name",
        lambda: ANY.assign(GROUP, Range()),
    ),
    "a class": ("assignor: a type is not a name", lambda: ANY.assign(GROUP, Range)),
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
    "a change's text": ("change: 5 is not a text", lambda: ANY.plans.changes.change_from_text(5)),
    "an unknown change": ("begins with none of", lambda: change_from_text("x")),
    "a partition's text": ("partition: ", lambda: PLAN.explain("t")),
    "a partition's number": ("partition: an int", lambda: ANY.RebalancePlan.explain(PLAN, 3)),
    "draws": ("draws: '3' is not an int", lambda: ANY.RebalancePlan.sample(PLAN, "3")),
    "lines as text": ("lines: a str; give a list", lambda: ANY.bulk.assign_lines("x")),
    "lines of text": ("lines[0]: a str; give bytes", lambda: ANY.bulk.assign_lines(["{}"])),
    "a function": ("assignor: a function is not", lambda: ANY.assignors.register(lambda: 1)),
    "a class to register": ("assignor: a class", lambda: ANY.assignors.register(Range)),
    "a scenario": ("scenario: a dict is not", lambda: ANY.simulate({"a": 1})),
    "a batch": ("batch: a dict has no Arrow data", lambda: assign_batch({"a": 1})),
    "one text as assignors": (
        'assignors: "range" is one text; give a list',
        lambda: kr.compare(GROUP, assignors="range"),
    ),
    "no assignors": ("assignors: empty", lambda: kr.compare(GROUP, assignors=[])),
    "an unknown one of assignors": (
        'assignors[1]: "x" is not known; known are range, ',
        lambda: kr.compare(GROUP, assignors=["range", "x"]),
    ),
    "a number of assignors": (
        "assignors: an int is not a list",
        lambda: ANY.compare(GROUP, assignors=5),
    ),
    "a number among assignors": (
        "assignors[0]: an int is not a name",
        lambda: ANY.compare(GROUP, assignors=[5]),
    ),
    "an assignor to unregister": (
        "name: 'zzz' is not a registered assignor; registered: none",
        lambda: unregister("zzz"),
    ),
    "no group": ("group: None is not a GroupSpec", lambda: ANY.assign(None)),
    "no draws": ("draws: 0 is not a number of draws from 1", lambda: PLAN.sample(0)),
    "fewer than no draws": ("draws: -1 is not a number of draws", lambda: PLAN.sample(-1)),
    "true draws": ("draws: True is not an int", lambda: PLAN.sample(True)),
    "lags as a list": ("lags: a list is not a mapping; give {", lambda: lags([1])),
    "lags of topics": ("lags: 't' is not a TopicPartition; give {", lambda: lags({"t": 5})),
    "lags as text": (
        "lags[TopicPartition(topic='t', partition=0)]: '5' is not a number",
        lambda: lags({kr.TopicPartition("t", 0): "5"}),
    ),
    "fewer than no members": ("change: -1 is not a number of members", lambda: kr.AddMembers(-1)),
    "fewer than none to remove": (
        "change: -1 is not a number of members from 1 on",
        lambda: kr.RemoveMembers(-1),
    ),
    "fewer than no partitions": (
        "change: -1 is not a number of partitions from 1 on",
        lambda: kr.AddPartitions("t", -1),
    ),
    "a new topic of less than nothing": (
        "change: -1 is not a number of partitions from 0 on",
        lambda: kr.AddTopics((("new", -1),)),
    ),
    "a switch to an unknown assignor": (
        'change: "newone" is not known; known are range, ',
        lambda: kr.SwitchAssignor("newone"),
    ),
    "a protocol": (
        'change: "newone" is not consumer or classic',
        lambda: kr.SwitchProtocol("newone"),
    ),
    "a protocol's assignor": (
        'change: "sticky" is none of uniform, range',
        lambda: kr.SwitchProtocol("consumer", "sticky"),
    ),
    "edited members": (
        "members: 'a' is a string",
        lambda: ANY.GroupSpec.edited(GROUP, members="a"),
    ),
    "one edited member": (
        "members[0]: a number is not a Member",
        lambda: ANY.GroupSpec.edited(GROUP, members=[1]),
    ),
    "an assignment of a number": (
        "members: an int is not a mapping; give {member_id: [",
        lambda: ANY.Assignment.of(5),
    ),
    "an assignment of text": (
        'members["b"]: not a list of TopicPartition',
        lambda: ANY.Assignment.of({"a": [("t", 0)], "b": "x"}),
    ),
    "an assignment of numbers": (
        'members["a"]: not a list of TopicPartition',
        lambda: ANY.Assignment.of({"a": 5}),
    ),
    "an assignment of texts": (
        'members["c"]: not a list of TopicPartition',
        lambda: ANY.Assignment.of({"a": [("t", 0)], "b": [], "c": [("t", 1), "t0"]}),
    ),
    "an assignment of half a partition": (
        'members["a"]: not a list of TopicPartition',
        lambda: ANY.Assignment.of({"a": [("t", 0.5)]}),
    ),
    "an assignment of a topic's number": (
        'members["b"]: not a list of TopicPartition',
        lambda: ANY.Assignment.of({"a": [("t", 0)], "b": [(1, 0)]}),
    ),
    "generations": ("generations[0]: an int is not a Recorded", lambda: ANY.history.replay([1])),
    "a number of generations": ("generations: an int is not a list", lambda: ANY.history.replay(5)),
    "an inventory": ("topics[0]: an int is not a Topic", lambda: ANY.history.replay([], [1])),
    "a text of changes for a batch": (
        'changes: "add-members=1" is one text; give a list, ["add-members=1"]',
        lambda: plan_batch([GROUP], "sticky", "add-members=1"),
    ),
    "a text of changes to compare": (
        'changes: "add-members=1" is one text; give a list',
        lambda: compare_batch([GROUP], "add-members=1"),
    ),
    "a change for a batch": (
        "changes[1]: 1 is not a change; give one, as AddMembers(2)",
        lambda: ANY.bulk.plan_batch([GROUP], None, [kr.AddMembers(1), 1]),
    ),
    "a change that no string describes": (
        "changes[0]: BounceMembers(member='*', static=None, away_ms=None) cannot be written",
        lambda: plan_batch([GROUP], None, [kr.BounceMembers("*")]),
    ),
    "a number of changes for a batch": (
        "changes: an int is not a list",
        lambda: ANY.bulk.compare_batch([GROUP], 5),
    ),
    "a batch of dicts": ("batch[0]: a dict is not", lambda: plan_batch([NOT_A_GROUP])),
    "no threads": (
        "threads: 0 is not a number",
        lambda: assign_batch([GROUP], threads=0),
    ),
    "threads as text": ("threads: a string", lambda: ANY.bulk.assign_batch([GROUP], threads="x")),
    "no threads for lines": ("threads: 0 is not a", lambda: assign_lines([], threads=0)),
    "a limit below 0": (
        "max_partitions: -1 is not a number from 0",
        lambda: plan_batch([GROUP], max_partitions=-1),
    ),
    "a limit as text": (
        "max_partitions: a string",
        lambda: ANY.bulk.compare_batch([GROUP], max_partitions="x"),
    ),
    "a limit of lines": ("max_partitions: -1", lambda: assign_lines([], max_partitions=-1)),
    "a group's limit": ("max_partitions: a string", lambda: group(max_partitions="x")),
    "a line's limit": (
        "max_partitions: a string",
        lambda: ANY.GroupSpec.from_json(GROUP.to_json(), max_partitions="x"),
    ),
    "lags below 0": (
        "lags[TopicPartition(topic='t', partition=0)]: -5 is not a number of records from 0 on",
        lambda: lags({kr.TopicPartition("t", 0): -5}),
    ),
    "broken numbers": ("batch: a number is not whole", lambda: assign_batch(fractions())),
}
ASSIGNMENTS: dict[str, tuple[str, Callable[[], object]]] = {
    "true as partition": (
        'members["a"]: not a list of TopicPartition',
        lambda: kr.Assignment.of({"a": [kr.TopicPartition("t", True)]}),
    ),
    "a negative partition": (
        'members["b"]: -1 is not a partition from 0 to 2147483647',
        lambda: ANY.Assignment.of({"a": [("t", 0)], "b": [("t", -1)]}),
    ),
    "a partition beyond Kafka's": (
        'members["a"]: 2147483648 is not a partition from 0 to',
        lambda: ANY.Assignment.of({"a": [("t", 2**31)]}),
    ),
    "a member's number": ("members: 5 is not a member_id", lambda: ANY.Assignment.of({5: []})),
    "no member's id": ("members: None is not a member_id", lambda: ANY.Assignment.of({None: []})),
    "anomalies": ("anomalies: an int", lambda: ANY.Assignment.of({}, anomalies=5)),
    "an anomaly": (
        "anomalies[0]: an int is not",
        lambda: ANY.Assignment.of({}, anomalies=[5]),
    ),
    "standby tasks": ("standby: a list is not an", lambda: ANY.Assignment.of({}, standby=[1])),
    "a group that owns": ("group: an int is not a GroupSpec", lambda: ANY.Assignment.owned(5)),
    "a difference": (
        "unsupported operand type(s) for -: 'Assignment' and 'int'",
        lambda: ANY.assign(GROUP) - 5,
    ),
    "a cooperative group": (
        "group: an int is not",
        lambda: ANY.assignors.validate_cooperative(5, 5),
    ),
    "a cooperative assignment": (
        "members: an int is not a mapping",
        lambda: ANY.assignors.validate_cooperative(GROUP, 5),
    ),
    "a number as partition": (
        "partition: an int is not a text, as payments-3",
        lambda: ANY.plans.partition_from_text(5),
    ),
    "no new topic": ("change: say which topics", lambda: kr.AddTopics(())),
    "no topic to remove": ("change: say which topics", lambda: kr.RemoveTopics(())),
    "no topic to read": ("change: say which topics", lambda: kr.Resubscribe(())),
    "a text as count": ("change: AddMembers.count: '0'", lambda: ANY.AddMembers("0")),
}
HISTORIES: dict[str, tuple[str, Callable[[], object]]] = {
    "records": ("records[0]: an int is not an Off", lambda: ANY.history.rebalance_history([5])),
    "a number of records": (
        "records: an int is not a",
        lambda: ANY.history.recorded_generations(5),
    ),
    "rows": ("rows[0]: an int is not a RecordedRebalance", lambda: ANY.history.find_patterns([5])),
    "a storm": (
        "storm: a string is not a number",
        lambda: ANY.history.find_patterns([], storm="x"),
    ),
    "a window": (
        "window_ms: -1 is not a number",
        lambda: find_patterns([], window_ms=-1),
    ),
    "what would have been": ("recorded[0]: an int is", lambda: ANY.history.counterfactuals([5])),
    "rows with a log": ("rows: an int is not a list", lambda: ANY.history.with_log(5, 5)),
    "a log": ("log: an int is not a CoordinatorLog", lambda: ANY.history.with_log([], 5)),
    "a number as log": ("lines: an int is not a list", lambda: ANY.history.read_coordinator_log(5)),
    "a text as log": (
        "lines: a str; give a list",
        lambda: read_coordinator_log("a log"),
    ),
    "replayed": ("replayed[0]: an int is not a Replayed", lambda: ANY.history.replay_shares([5])),
    "a server": ("bootstrap_server: an int is not a", lambda: list(ANY.snapshot(5))),
    "a port as text": (
        'bootstrap_server: "localhost:abc": "abc" is not a port from 1 to 65535',
        lambda: list(kr.snapshot("localhost:abc")),
    ),
    "a port beyond the last": (
        'bootstrap_server: "[::1]:99999": "99999" is not a port',
        lambda: list(kr.snapshot("broker:9092, [::1]:99999")),
    ),
    "settings": ("properties: an int is not a mapping", lambda: ANY.live.client_configs(5)),
    "groups of lags": ("partitions: an int is not a", lambda: ANY.live.group_lags("x", 5)),
}
WRONG = GROUPS | CALLS | ASSIGNMENTS | HISTORIES
assert len(WRONG) == sum(map(len, (GROUPS, CALLS, ASSIGNMENTS, HISTORIES)))


@pytest.mark.parametrize("what", WRONG)
def test_wrong_inputs_name_their_path(what: str) -> None:
    said, wrong = WRONG[what]
    with pytest.raises((kr.GroupError, TypeError, ValueError)) as raised:
        wrong()
    assert said in str(raised.value)


def test_spark_takes_no_list() -> None:
    pytest.importorskip("pyspark")
    from kafka_rebalance import spark

    listed: Any = [1]
    for answer in (spark.assign_groups, spark.plan_groups, spark.compare_groups):
        with pytest.raises(SchemaError, match="groups: a list is not a DataFrame of Spark"):
            answer(listed)


@pytest.mark.parametrize("library", ["java", "librdkafka", "sarama"])
def test_a_library_that_is_not_known_loses_no_group(library: str) -> None:
    """Another version's snapshot may name a new library: plans are then those for Java, with a
    warning.
    """
    member = kr.Member("a", ("t",), client_library=library)
    named = group(members=(member,), leader_library=library)
    read = kr.GroupSpec.from_json(named.to_json())
    assert (read.leader_library, read.members[0].client_library) == (library, library)
    assert kr.assign(read) == kr.assign(GROUP)
    foreign = [one.text for one in kr.describe(read).facts]
    assert [library in text for text in foreign] == ([] if library == "java" else [True])
