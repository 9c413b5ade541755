# SPDX-License-Identifier: Apache-2.0
"""Our hash table and sort orders equal those that a JVM printed, and obey general laws."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_rebalance import Member
from kafka_rebalance.group.model import static_first
from kafka_rebalance.java.hash_table import HashTable
from kafka_rebalance.java.order import (
    by_name,
    copied_slots,
    java_grouping_order,
    java_hash_order,
    name_key,
    partition_hash,
    string_hash,
)

FROZEN = Path(__file__).resolve().parent / "vectors" / "hash_orders.jsonl"
CASES: list[dict[str, Any]] = [
    json.loads(line) for line in FROZEN.read_text(encoding="utf-8").splitlines()
]


def _run(case: dict[str, Any]) -> list[str]:
    """Returns the keys after operations: `+` put, `?` computeIfAbsent, `-` remove, `=` copy."""
    operations = case["operations"]
    copy = operations[0][0] == "="
    table = HashTable[str](copied_slots(len(operations))) if copy else HashTable[str]()
    for operation in operations:
        kind, key = operation[0], operation[1:]
        if case["id"].endswith("partitions"):
            topic, _, partition = key.rpartition("-")
            key_hash = partition_hash(topic, int(partition))
        else:
            key_hash = string_hash(key)
        if kind == "-":
            table.remove(key)
        elif kind == "?":
            table.compute_if_absent(key, key_hash, name_key(key))
        else:
            table.put(key, key_hash, name_key(key))
    return table.keys()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_table_is_the_jvms(case: dict[str, Any]) -> None:
    assert _run(case) == case["order"]


def test_the_frozen_cases_reach_every_corner() -> None:
    kinds = {operation[0] for case in CASES for operation in case["operations"]}
    assert kinds == {"+", "?", "-", "="}
    trees = [case for case in CASES if "colliding" in case["id"] and len(case["order"]) > 12]
    assert len(trees) > 10
    assert len({case["id"] for case in CASES}) == len(CASES)


@pytest.mark.parametrize(
    ("kind", "order"), [("+", java_hash_order), ("?", java_grouping_order)], ids=["put", "group"]
)
def test_the_two_orders_are_the_jvms(kind: str, order: Any) -> None:
    checked = 0
    for case in CASES:
        if {op[0] for op in case["operations"]} == {kind} and "partitions" not in case["id"]:
            assert order([op[1:] for op in case["operations"]]) == case["order"], case["id"]
            checked += 1
    assert checked > 30


# Values of java.lang.String.hashCode and TopicPartition.hashCode, printed by a JVM.
STRING_HASHES = {
    "": 0,
    "a": 97,
    "AaAa": 2031744,
    "BBBB": 2031744,
    "polygenelubricants": 0x80000000,
    "é主": 27250,
    "😀": 1772899,
}


@pytest.mark.parametrize(("text", "expected"), STRING_HASHES.items())
def test_string_hash(text: str, expected: int) -> None:
    assert string_hash(text) == expected


def test_partition_hash() -> None:
    assert partition_hash("", 0) == 961
    assert partition_hash("a", 2) == 31 * 33 + 97
    assert partition_hash("polygenelubricants", 0) == 0x80000000 + 961
    assert partition_hash("t", 2**31 - 1) == (31 * (31 + 2**31 - 1) + 116) & 0xFFFFFFFF


NAMES = st.text(st.sampled_from("abAB.\ud7ff\ue000\uffff\U00010000\U0010ffff"), max_size=4)


@given(st.lists(NAMES))
def test_names_compare_by_utf16_unit(names: list[str]) -> None:
    def units(name: str) -> list[int]:
        data = name.encode("utf-16-le")
        return [data[i] | data[i + 1] << 8 for i in range(0, len(data), 2)]

    assert by_name(names) == sorted(names, key=units)


@given(st.lists(NAMES, unique=True), st.data())
def test_static_members_come_first(names: list[str], data: st.DataObject) -> None:
    members = [
        Member(name, (), group_instance_id=f"i{n}" if data.draw(st.booleans()) else None)
        for n, name in enumerate(names)
    ]
    ordered = static_first(data.draw(st.permutations(members)))
    static = [member for member in ordered if member.group_instance_id is not None]
    dynamic = [member for member in ordered if member.group_instance_id is None]
    assert ordered == static + dynamic
    assert [m.group_instance_id for m in static] == by_name(
        m.group_instance_id for m in static if m.group_instance_id is not None
    )
    assert [m.member_id for m in dynamic] == by_name(m.member_id for m in dynamic)
    assert {m.member_id for m in ordered} == set(names)


@given(st.lists(NAMES))
def test_hash_orders_lose_nothing_and_ignore_repeats(names: list[str]) -> None:
    assert sorted(java_hash_order(names)) == sorted(set(names))
    assert java_hash_order(names) == java_hash_order(list(dict.fromkeys(names)))
    assert sorted(java_grouping_order(names)) == sorted(set(names))
