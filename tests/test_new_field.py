# SPDX-License-Identifier: Apache-2.0
"""A new field of a member is one attribute and one line of the table: this test adds both."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest

import kafka_rebalance as kr
import kafka_rebalance._core as _core
from kafka_rebalance.bulk import batch
from kafka_rebalance.errors import SchemaError
from kafka_rebalance.group import contract, spec
from kafka_rebalance.group import group_fields as fields
from kafka_rebalance.group.field_types import Field, List, Whole
from kafka_rebalance.group.group_fields import FIELDS
from tests.support.contributing import check_steps, two_members

UNCHANGED, LINE = fields.GROUP, two_members(4, "range").to_dict()


@dataclass(frozen=True, slots=True)
class WeighedMember(kr.Member):
    """A member with one optional field more."""

    weight: int | None = None


@pytest.fixture
def _line(monkeypatch: pytest.MonkeyPatch) -> None:
    added = (*fields.MEMBER.fields, Field("weight", Whole("weight", 1, 9)))
    member = replace(fields.MEMBER, fields=added, of=WeighedMember)
    listed = [
        one._replace(kind=List(member)) if one.name == "members" else one
        for one in fields.GROUP.fields
    ]
    group = replace(fields.GROUP, fields=tuple(listed))
    monkeypatch.setattr(contract, "GROUP", group)
    monkeypatch.setattr(spec, "GROUP", group)
    monkeypatch.setattr(fields, "GROUP", group)
    monkeypatch.setattr(fields, "_TYPES", _core.FieldTypes(group.exact_fields()))


def _group(weight: Any) -> dict[str, Any]:
    first, second = LINE["members"]
    return LINE | {"members": [first, second | {"weight": weight}]}


@pytest.mark.usefixtures("_line")
def test_a_line_of_the_table_is_enough_to_read_check_plan_and_write() -> None:
    group = kr.GroupSpec(**contract.read(_group(7)))  # the core reads the field after step 3
    assert [getattr(member, "weight", 0) for member in group.members] == [None, 7]
    assert json.loads(group.to_json()) == _group(7)
    planned = kr.plan(group)
    assert planned.settled
    assert [getattr(member, "weight", 0) for member in planned.final.members] == [None, 7]


@pytest.mark.usefixtures("_line")
@pytest.mark.parametrize(
    ("weight", "problem"),
    [
        ("7", "members[1].weight: a string is not a weight"),
        (10, "members[1].weight: 10 is not a weight from 1 to 9"),
    ],
)
def test_the_line_has_the_bounds_of_lines_and_of_objects(weight: Any, problem: str) -> None:
    with pytest.raises(kr.GroupError) as refused:
        kr.GroupSpec(**contract.read(_group(weight)))
    assert str(refused.value) == problem
    with pytest.raises(kr.GroupError) as refused:
        kr.GroupSpec("g", (kr.Topic("t", 1),), (_weighed(None), _weighed(weight)))
    assert str(refused.value).startswith(problem)


def _weighed(weight: Any) -> kr.Member:
    return WeighedMember(f"m{weight}", ("t",), weight=weight)


@pytest.mark.usefixtures("_line")
def test_the_line_is_a_column_of_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = pytest.importorskip("kafka_rebalance.spark.schema", reason="no pyspark")
    monkeypatch.setattr(schema, "GROUP", UNCHANGED)
    monkeypatch.setattr(batch, "GROUP", UNCHANGED)
    without = schema.contract()
    monkeypatch.setattr(schema, "GROUP", fields.GROUP)
    monkeypatch.setattr(batch, "GROUP", fields.GROUP)
    for of in ("input", "all", "recorded"):
        assert "weight: int" in schema.as_text(schema.contract(of))
    assert "members.weight" in schema.leaf_paths(set())
    schema.check(schema.contract())
    schema.check(without)
    number = '"name":"weight","nullable":true,"type":"integer"'
    text = schema.contract().json().replace(number, number.replace("integer", "string"))
    with pytest.raises(SchemaError, match=r"^members\[\]\.weight: string in place of int"):
        schema.check(type(without).fromJson(json.loads(text)))


def test_every_field_of_the_table_may_be_misspelt() -> None:
    known = {f"{at}[].{name}" if at else name for at in FIELDS for name in FIELDS[at]}
    listed = {path.removesuffix("[]") for path, _ in fields.rows()}
    assert {path for path in listed - known if not path.startswith("subtopologies")} == set()


def test_the_steps_name_only_what_is_there() -> None:
    check_steps("Add a field of a group", steps=4, files=5)
