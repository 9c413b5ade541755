# SPDX-License-Identifier: Apache-2.0
"""Answers and errors computed directly from records equal those computed from contract rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kafka_rebalance import _core
from tests.test_records import captured, drawn, inventory

_MANY = 2**31 - 1
VERBS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "assign": (_core.assign_batch, (None, _MANY, 2)),
    "assign by another assignor": (_core.assign_batch, ("sticky", _MANY, 1)),
    "owners": (_core.owners_batch, (None, _MANY, 1)),
    "plan": (_core.plan_batch, (None, ["add-members=1"], _MANY, 2)),
    "compare": (_core.compare_batch, (["remove-member=m0"], _MANY, 1)),
}


def damaged(rng: random.Random, value: bytes) -> bytes:
    """Replaces up to three bytes, so that a name may not be UTF-8, or a number may be wrong."""
    data = bytearray(value)
    for _ in range(rng.choice((0, 0, 1, 3))):
        data[rng.randrange(len(data))] = rng.choice((0xED, 0xFF, 0x80, 0, 1, rng.randrange(256)))
    return bytes(data)


def batch(records: list[tuple[bytes, bytes | None]]) -> pa.RecordBatch:
    keys, values = zip(*records, strict=True)
    return pa.record_batch(
        {"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())}
    )


@pytest.fixture(scope="module")
def records() -> pa.RecordBatch:
    rng = random.Random(29)
    found = [(key, damaged(rng, value)) for key, value in (drawn(rng) for _ in range(6_000))]
    return batch([*captured(), *found])


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("assume_assigned", [False, True])
def test_answers_equal_those_of_contract_rows(
    records: pa.RecordBatch, verb: str, *, assume_assigned: bool
) -> None:
    answer, arguments = VERBS[verb]
    topics = inventory(assume_assigned=assume_assigned)
    rows = pa.record_batch(_core.groups_from_records(records, topics))
    with_members = pc.greater(pc.list_value_length(rows["members"]), 0)
    consumers = pc.and_(pc.equal(rows["kind"], "consumer"), with_members)
    rows = rows.filter(pc.or_kleene(pc.is_valid(rows["error"]), consumers))
    expected = pa.record_batch(answer(rows, *arguments))
    found = pa.record_batch(answer(records, *arguments, topics))
    assert found.to_pylist() == expected.to_pylist()
    answered = expected["error"].null_count
    assert 1_500 < answered < len(expected) - 500  # there are answers as well as errors


def test_an_owner_of_every_partition_is_that_of_the_assignment(records: pa.RecordBatch) -> None:
    """Assignments and lists of owners agree, if the assignment has no anomalies."""
    topics = inventory()
    (assign, arguments), (owners, _) = VERBS["assign"], VERBS["owners"]
    nested = pa.record_batch(assign(records, *arguments, topics)).to_pylist()
    flat = pa.record_batch(owners(records, *arguments, topics)).to_pylist()
    compared = 0
    for one, other in zip(nested, flat, strict=True):
        assert one["error"] == other["error"]
        if one["error"] is not None:
            assert (other["owners"], other["members"], other["topics"]) == (None, None, None)
            continue
        partitions = [(t["name"], p) for t in other["topics"] for p in range(t["partitions"])]
        owner = {
            (run["topic"], p): member["member_id"]
            for member in one["assignment"]
            for run in member["partitions"]
            for p in run["partitions"]
        }
        if one["anomalies"] is not None:  # such as a partition with two owners
            continue
        names = [None if m is None else other["members"][m] for m in other["owners"]]
        assert names == [owner.get(partition) for partition in partitions]
        compared += len(owner)
    assert compared > 5_000


def test_a_shared_partition_has_no_single_owner() -> None:
    """A list of owners is refused for share groups: four members share two partitions."""
    topic = {"name": "t", "partitions": 2, "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ"}
    members = [{"member_id": name, "topics": ["t"]} for name in "abcd"]
    row = {"group_id": "g", "assignor": "share/simple", "topics": [topic], "members": members}
    groups = pa.RecordBatch.from_pylist([row])
    [nested] = pa.record_batch(_core.assign_batch(groups, None, _MANY, 1)).to_pylist()
    assert all(member["partitions"] for member in nested["assignment"])
    [flat] = pa.record_batch(_core.owners_batch(groups, None, _MANY, 1)).to_pylist()
    assert flat["owners"] is None
    assert flat["error"].startswith('assignor: "share/simple" shares partitions')
