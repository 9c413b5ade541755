# SPDX-License-Identifier: Apache-2.0
"""`assign_batch` returns the answers of `assign`, in their order, as columns."""

from __future__ import annotations

import gzip
import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kafka_rebalance as kr
from kafka_rebalance.bulk import assign_batch, compare_batch, plan_batch
from kafka_rebalance.data import captured_lines

VECTORS = Path(__file__).resolve().parent / "vectors"

OWNED = pa.struct([("topic", pa.string()), ("partitions", pa.list_(pa.int32()))])
TOPIC = pa.struct(
    [
        ("name", pa.string()),
        ("partitions", pa.int32()),
        ("racks", pa.list_(pa.list_(pa.string()))),
    ]
)
MEMBER = pa.struct(
    [
        ("member_id", pa.string()),
        ("group_instance_id", pa.string()),
        ("topics", pa.list_(pa.string())),
        ("owned_partitions", pa.list_(OWNED)),
        ("generation_id", pa.int32()),
        ("rack_id", pa.string()),
    ]
)
SCHEMA = pa.schema(
    [
        ("group_id", pa.string()),
        ("assignor", pa.string()),
        ("topics", pa.list_(TOPIC)),
        ("members", pa.list_(MEMBER)),
    ]
)


def in_columns(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = assign_batch(pa.RecordBatch.from_pylist(cases, SCHEMA)).to_pylist()
    return rows


def pairs(row: dict[str, Any]) -> dict[str, list[list[Any]]] | str:
    """Returns a row's assignment as `Assignment.to_dict` does, or the row's error."""
    if row["error"] is not None:
        return str(row["error"])
    return {
        member["member_id"]: [
            [r["topic"], p] for r in member["partitions"] for p in r["partitions"]
        ]
        for member in row["assignment"]
    }


def on_its_own(case: dict[str, Any]) -> dict[str, list[list[Any]]] | str:
    try:
        return kr.assign(kr.GroupSpec.from_dict(case)).to_dict()
    except kr.GroupError as error:
        return str(error)


def test_columns_keep_kafkas_order_where_topics_mix() -> None:
    """A sticky member's partitions are sorted by number, then topic, so its topics alternate."""
    owned = [{"topic": topic, "partitions": [0, 1]} for topic in ("a", "b")]
    member = {"member_id": "m", "topics": ["a", "b"], "owned_partitions": owned, "generation_id": 1}
    topics = [{"name": name, "partitions": 2} for name in ("a", "b")]
    case = {"group_id": "g", "assignor": "sticky", "topics": topics, "members": [member]}
    (row,) = in_columns([case])
    assert pairs(row) == on_its_own(case) == {"m": [["a", 0], ["b", 0], ["a", 1], ["b", 1]]}


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_every_vector_is_answered_as_on_its_own(assignor: str) -> None:
    """A member's neighbouring partitions of one topic form one entry, not several."""
    with gzip.open(VECTORS / f"{assignor}.jsonl.gz", "rt", encoding="utf-8") as lines:
        cases = [json.loads(line)["case"] for line in lines][::4]
    for case, row in zip(cases, in_columns(cases), strict=True):
        assert pairs(row) == on_its_own(case)
        for member in row["assignment"] or ():
            topics = [run["topic"] for run in member["partitions"]]
            assert topics == [topic for topic, _ in groupby(topics)]


def test_only_numbers_of_the_contract_have_to_be_whole() -> None:
    """pandas turns integers with nulls into floats; columns that are not read can be anything."""
    topics = pa.array([[{"name": "t", "partitions": 2.0, "lag": 0.5}]])
    members = pa.array([[{"member_id": "m", "topics": ["t"], "generation_id": None, "load": 1.5}]])
    columns = {"group_id": ["g"], "assignor": ["range"], "topics": topics, "members": members}
    table = pa.table({**columns, "cost": [1.5]})
    (answer,) = assign_batch(table).to_pylist()
    assert answer["error"] is None
    assert answer["assignment"][0]["partitions"] == [{"topic": "t", "partitions": [0, 1]}]
    half = pa.array([[{"name": "t", "partitions": 2.5}]])
    with pytest.raises(TypeError, match="a number is not whole"):
        assign_batch(pa.table({**columns, "topics": half}))


def test_fields_that_are_null_in_all_rows_stand_beside_floats() -> None:
    """pandas uses floats for a missing generation, and the null type for a field without a
    value.
    """
    unread = {"odd": [{"n": None}] * 3, "user_data": None}
    member = {"topics": ["t"], "generation_id": 2.0, **unread}
    members = [{"member_id": name, **member} for name in "ab"]
    topics = [{"name": "t", "partitions": 4, "topic_id": None}]
    group = {"group_id": "g", "assignor": "range", "topics": topics, "members": members}
    table = pa.Table.from_pylist([{**group, "generation_id": n} for n in (None, 5.0)])
    for name, nulls in (("leader_library", pa.float64()), ("subtopologies", pa.float64())):
        table = table.append_column(name, pa.nulls(2, nulls))
    assert table.column("members").type.value_type.field("user_data").type == pa.null()
    for answers in (
        assign_batch(table),
        plan_batch(table, None, ["add-members=1"]),
    ):
        assert answers.column("error").to_pylist() == [None, None]
    wrong = table.set_column(table.schema.names.index("assignor"), "assignor", [[None, 1.5]])
    with pytest.raises(TypeError, match="assignor: double is not string"):
        assign_batch(wrong)


def test_every_form_of_arrow_gives_the_answers_of_assign() -> None:
    """Libraries have different types for a list of rows; all are accepted, with equal answers."""
    groups = [kr.GroupSpec.from_json(one) for one in captured_lines() if '"error"' not in one]
    own = pa.Table.from_pylist([one.to_dict() for one in groups])  # int64, and untyped nulls
    parts = pa.concat_tables([own.slice(0, 7), own.slice(7)])
    assert len(parts.column("group_id").chunks) == 2
    answers = assign_batch(groups).to_pylist()
    for form in (parts, own.to_batches()[0], own.to_pandas(), tuple(groups)):
        assert assign_batch(form).to_pylist() == answers
    for one, answer in zip(groups, answers, strict=True):
        found = {
            member["member_id"]: by_topic(member["partitions"]) for member in answer["assignment"]
        }
        assert found == {id_: [tuple(tp) for tp in tps] for id_, tps in kr.assign(one).items()}
    empty: tuple[object, ...] = ([], own.slice(0, 0))
    for nothing in empty:
        assert assign_batch(nothing).num_rows == 0
    planned = plan_batch(parts, None, ["add-members=1"])
    assert planned.num_rows == len(groups)
    assert plan_batch(parts, None, [kr.AddMembers(1)]) == planned
    assert compare_batch(groups).num_rows == len(groups)


def by_topic(partitions: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(each["topic"], number) for each in partitions for number in each["partitions"]]


def test_a_member_with_two_bad_fields_has_the_error_of_a_line() -> None:
    fields = {"owned_partitions": [{"topic": "t", "partitions": [-4]}], "user_data": "bad"}
    member = {"member_id": "a", "topics": ["t"], **fields}
    topics = [{"name": "t", "partitions": 1}]
    line = {"group_id": "g", "assignor": "range", "topics": topics, "members": [member]}
    with pytest.raises(kr.GroupError) as raised:
        kr.GroupSpec.from_dict(line)
    answer = assign_batch(pa.RecordBatch.from_pylist([line]))
    assert answer.to_pylist()[0]["error"] == str(raised.value)


def test_a_list_that_lies_about_its_length_is_read_as_it_is() -> None:
    class Liar(tuple[kr.Topic, ...]):
        def __len__(self) -> int:
            return 10**12

    group = kr.GroupSpec("g", Liar((kr.Topic("t", 2),)), (kr.Member("a", ("t",)),), "range")
    assert len(kr.assign(group)["a"]) == 2


def test_a_switch_to_the_present_assignor_is_not_affected_in_bulk() -> None:
    """The other changes of the list are planned; an eager group is told how its bounce ends."""
    lines = [json.loads(line) for line in captured_lines() if "error" not in json.loads(line)]
    said = 'switch-assignor=range: "range" is the group\'s assignor already'
    groups = [one for one in lines if one["assignor"] in ("range", "sticky")]
    changes = ["switch-assignor=range", "add-members=1"]
    rows = plan_batch([kr.GroupSpec.from_dict(one) for one in groups], changes=changes).to_pylist()
    for one, row in zip(groups, rows, strict=True):
        is_there = one["assignor"] == "range"
        expected = kr.plan(kr.GroupSpec.from_dict(one), None, changes[is_there:]).figures()
        assert row["not_affected"] == (said if is_there else None)
        assert row["moves"] == expected.moves
    (alone,) = plan_batch([kr.GroupSpec.from_dict(groups[0])], changes=changes[:1]).to_pylist()
    assert (alone["not_affected"], alone["moves"], alone["error"]) == (said, None, None)
    eager = next(one for one in lines if one["assignor"] == "cooperative-sticky")
    group = kr.GroupSpec.from_dict(eager | {"rebalance_protocol": "eager"})
    (row,) = plan_batch([group], changes=["switch-assignor=cooperative-sticky"]).to_pylist()
    assert "`compare` has the rolling bounce" in row["error"]
