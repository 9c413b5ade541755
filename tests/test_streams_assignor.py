# SPDX-License-Identifier: Apache-2.0
"""streams/sticky: its fields in the contract, its named errors, its answers in each form.

`test_server_side.py` passes the name to every interface; the vectors are Kafka's own answers.
"""

from __future__ import annotations

import copy
import json
import pickle
import random
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.bulk import assign_batch
from kafka_rebalance.group import StreamsMember, Subtopology, TaskOffset
from kafka_rebalance.java.priority_queue import PriorityQueue
from tests.support import contract_lines, generate_streams
from tests.support.contract_lines import MAX
from tests.support.contract_lines import VALID_STREAMS as LINE

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine

NAME = "streams/sticky"
TASKS = ("members", 0, "active_tasks")
OFFSET = ("members", 0, "task_offsets", 0)

Path = tuple[str | int, ...]


def _with(path: Path, value: Any) -> dict[str, Any]:
    line = copy.deepcopy(LINE)
    at: Any = line
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return line


# The contract -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("subtopologies",), None, "missing; streams/sticky assigns their tasks"),
        (("subtopologies",), 1, "a number is not a list"),
        (("subtopologies", 0), None, "null is not an object"),
        (("subtopologies", 1, "subtopology_id"), None, "missing"),
        (
            ("subtopologies", 1, "subtopology_id"),
            "0",
            '"0" is already the id of subtopologies[0]',
        ),
        (("subtopologies", 0, "tasks"), None, "missing"),
        (("subtopologies", 0, "tasks"), 0, f"0 is not a count from 1 to {MAX}"),
        (("subtopologies", 0, "tasks"), "3", "a string is not a count"),
        (("subtopologies", 0, "stateful"), 1, "a number is not true or false"),
        (("num_standby_replicas",), -1, f"-1 is not a count from 0 to {MAX}"),
        (("num_standby_replicas",), True, "a boolean is not a count"),
        (("members", 1, "process_id"), None, "missing; streams/sticky reads it"),
        (("members", 1, "process_id"), 1, "a number is not a string"),
        (TASKS, {}, "an object is not a list"),
        ((*TASKS, 0), [], "a list is not an object"),
        ((*TASKS, 0, "subtopology_id"), None, "missing"),
        ((*TASKS, 0, "partitions"), None, "missing"),
        ((*TASKS, 0, "partitions", 1), -1, f"-1 is not a partition from 0 to {MAX}"),
        (("members", 0, "standby_tasks", 0, "partitions", 0), 0.5, "a number that is not whole"),
        ((*OFFSET, "subtopology_id"), 0, "a number is not a string"),
        ((*OFFSET, "partition"), None, "missing"),
        ((*OFFSET, "partition"), 2**31, f"{2**31} is not a partition from 0 to {MAX}"),
        ((*OFFSET, "offset"), None, "missing"),
        ((*OFFSET, "offset"), "7", "a string is not a task offset"),
        (
            (*OFFSET, "offset"),
            2**63,
            f"{2**63} is not a task offset from {-(2**63)} to {2**63 - 1}",
        ),
    ],
)
def test_bad_fields_are_named_by_both_engines(path: Path, value: Any, problem: str) -> None:
    error = contract_lines.error_of_both(contract_lines.as_bytes(_with(path, value)))
    assert error.startswith(f"{contract_lines.written_path(path)}: {problem}")


def test_a_topology_has_a_limit() -> None:
    """3 stateful tasks with 400 standby tasks each, and 1 stateless task."""
    line = contract_lines.as_bytes(_with(("num_standby_replicas",), 400))
    assert contract_lines.error_of_both(line, limit=1203) == (
        "subtopologies: 1204 active and standby tasks in all, more than the limit of 1203; "
        "raise max_partitions if that is meant"
    )
    assert not contract_lines.rust_answer(line, limit=1204).is_error
    assert contract_lines.rust_answer(line, 1204) == contract_lines.reference_answer(line, 1204)


@pytest.mark.parametrize("path", [TASKS, OFFSET[:-1], ("num_standby_replicas",)])
def test_absent_and_null_are_equal(path: Path, engine: Engine) -> None:
    null = _with(path, None)
    absent = copy.deepcopy(null)
    at: Any = absent
    for step in path[:-1]:
        at = at[step]
    del at[path[-1]]
    answers = [kr.assign(kr.GroupSpec.from_dict(one), engine=engine) for one in (null, absent)]
    assert answers[0] == answers[1]


def test_a_line_keeps_the_fields_of_a_streams_group() -> None:
    group = kr.GroupSpec.from_dict(LINE)
    assert group.subtopologies == (Subtopology("0", 3, True), Subtopology("1", 1))
    assert group.members[0].streams == StreamsMember(
        "p0",
        (kr.TopicPartition("0", 0), kr.TopicPartition("0", 1)),
        (kr.TopicPartition("0", 2),),
        (TaskOffset(kr.TopicPartition("0", 2), 7),),
    )
    assert json.loads(group.to_json()) == LINE
    for copied in (pickle.loads(pickle.dumps(group)), group.edited(generation_id=4)):
        assert copied.to_dict() | {"generation_id": None} == LINE | {"generation_id": None}


def test_other_assignors_ignore_the_fields(engine: Engine) -> None:
    topics = [{"name": "0", "partitions": 2}]
    members = [member | {"topics": ["0"]} for member in LINE["members"]]
    group = kr.GroupSpec.from_dict(LINE | {"topics": topics, "members": members})
    answer = kr.assign(group, "range", engine=engine)
    assert answer.to_dict() == {"m0": [["0", 0]], "m1": [["0", 1]]}
    assert answer.standby is None


@pytest.mark.parametrize(
    ("member", "problem"),
    [
        (StreamsMember(1), "streams.process_id: a number is not a string"),  # type: ignore[arg-type]
        (StreamsMember("p", "t"), "streams.active_tasks: 't' is a string"),  # type: ignore[arg-type]
        (StreamsMember("p", (("0", 1),)), "streams.active_tasks[0]: a tuple is not a"),  # type: ignore[arg-type]
        (
            StreamsMember("p", (), (kr.TopicPartition("0", -1),)),
            "streams.standby_tasks[0]: -1 is not a partition",
        ),
        (
            StreamsMember("p", task_offsets=(TaskOffset(kr.TopicPartition("0", 1), 2**63),)),
            f"streams.task_offsets[0].offset: {2**63} is not a task offset",
        ),
        ("p", "streams: a string is not a StreamsMember"),
    ],
)
def test_python_objects_are_checked(member: Any, problem: str) -> None:
    with pytest.raises(kr.GroupError) as raised:
        kr.GroupSpec("g", (), (kr.Member("m", (), streams=member),), subtopologies=())
    assert str(raised.value).startswith(f"members[0].{problem}")


def test_columns_name_bad_fields() -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="no pyarrow: pip install -e '.[arrow]'")
    changes: list[tuple[Path, Any, str]] = [
        (("subtopologies", 0, "tasks"), 0, f"0 is not a count from 1 to {MAX}"),
        (("subtopologies", 1, "subtopology_id"), None, "missing"),
        (("num_standby_replicas",), -1, f"-1 is not a count from 0 to {MAX}"),
        ((*TASKS, 0, "partitions", 1), -1, f"-1 is not a partition from 0 to {MAX}"),
        ((*TASKS, 0, "subtopology_id"), None, "missing"),
        ((*OFFSET, "partition"), None, "missing"),
        (("members", 1, "process_id"), None, "missing; streams/sticky reads it"),
    ]
    rows = pyarrow.RecordBatch.from_pylist([_with(path, value) for path, value, _ in changes])
    for (path, _, problem), answer in zip(changes, assign_batch(rows).to_pylist(), strict=True):
        assert answer["error"] == f"{contract_lines.written_path(path)}: {problem}"


# Answers ------------------------------------------------------------------------------------------


def test_members_keep_tasks_and_states(engine: Engine) -> None:
    """m0 keeps two tasks, as the quota allows; m1 gets the rest; each holds standby tasks of the
    other member.
    """
    group = kr.GroupSpec.from_dict(LINE)
    answer = kr.assign(group, engine=engine)
    assert answer.to_dict() == {"m0": [["0", 0], ["0", 1]], "m1": [["0", 2], ["1", 0]]}
    assert answer.standby is not None
    assert answer.standby.to_dict() == {"m0": [["0", 2]], "m1": [["0", 0], ["0", 1]]}
    assert answer.anomalies == ()
    assert pickle.loads(pickle.dumps(answer)) == answer
    without = kr.Assignment.of(dict(answer))
    assert answer != without
    assert without == dict(answer)


def test_members_keep_what_an_assignment_gave_them(engine: Engine) -> None:
    group = kr.GroupSpec.from_dict(LINE)
    answer = kr.assign(group, engine=engine)
    now = group.owning(answer)
    assert answer.standby is not None
    for member in now.members:
        assert member.streams is not None
        assert member.streams.active_tasks == answer[member.member_id]
        assert member.streams.standby_tasks == answer.standby[member.member_id]
    assert kr.assign(now, engine=engine) == answer


def test_a_list_of_groups_becomes_columns() -> None:
    pytest.importorskip("pyarrow", reason="no pyarrow: pip install -e '.[arrow]'")
    group = kr.GroupSpec.from_dict(LINE)
    (row,) = assign_batch([group]).to_pylist()
    lists = {one["member_id"]: one["partitions"] for one in row["standby"]}
    assert lists == {
        "m0": [{"topic": "0", "partitions": [2]}],
        "m1": [{"topic": "0", "partitions": [0, 1]}],
    }


def test_a_process_gets_a_task_once(engine: Engine) -> None:
    """With one process, a task has no place for a standby task; with two, it has one."""
    for processes, standby in ((1, 0), (2, 5)):
        members = [
            {"member_id": f"m{n}", "topics": [], "process_id": f"p{n % processes}"}
            for n in range(4)
        ]
        topology = [{"subtopology_id": "0", "tasks": 5, "stateful": True}]
        line = LINE | {"members": members, "subtopologies": topology, "num_standby_replicas": 3}
        answer = kr.assign(kr.GroupSpec.from_dict(line), engine=engine)
        assert answer.standby is not None
        assert len(answer.partitions) == 5
        assert len(answer.standby.partitions) == standby


def test_generated_answers_are_sound(engine: Engine) -> None:
    """Each active task has one member, and no process has a task twice."""

    def ask(case: dict[str, Any]) -> dict[str, Any]:
        found = kr.assign(kr.GroupSpec.from_dict(case), engine=engine)
        assert found.standby is not None
        _assert_sound(case, found, found.standby)
        return {"assignment": found.to_dict(), "standby": found.standby.to_dict()}

    stories = generate_streams.stories(17, NAME, ask)
    for _ in range(200):
        ask(next(stories))


def _assert_sound(case: dict[str, Any], active: kr.Assignment, standby: kr.Assignment) -> None:
    given = sorted(tuple(task) for tasks in active.values() for task in tasks)
    tasks = [
        (one["subtopology_id"], number)
        for one in case["subtopologies"]
        for number in range(one["tasks"])
    ]
    assert given == sorted(tasks)
    stateful = {one["subtopology_id"] for one in case["subtopologies"] if one["stateful"]}
    in_process: dict[str, list[kr.TopicPartition]] = {}
    for member in case["members"]:
        own = in_process.setdefault(member["process_id"], [])
        own += [*active[member["member_id"]], *standby[member["member_id"]]]
        assert {task.topic for task in standby[member["member_id"]]} <= stateful
    assert all(len(own) == len(set(own)) for own in in_process.values())


def test_a_queue_returns_the_smallest_key() -> None:
    rng = random.Random(1)
    queue = PriorityQueue[int]()
    queued: list[int] = []
    for n in range(500):
        if queued and rng.random() < 0.4:
            entry = queue.poll()
            assert entry is not None
            assert entry % 7 == min(one % 7 for one in queued)
            queued.remove(entry)
        else:
            queue.add(n % 7, n)
            queued.append(n)
    assert len(queued) > 50
