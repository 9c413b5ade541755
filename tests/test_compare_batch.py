# SPDX-License-Identifier: Apache-2.0
"""Rust's `compare` agrees with Python's: figures, recommendation and reason."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa

import kafka_rebalance as kr
from kafka_rebalance.assignors.registry import planned_names
from tests.support.generate import generate
from tests.support.generate_changes import changes as draw_changes
from tests.support.generate_changes import with_client_ids, with_protocol
from tests.test_plans import batch_of


def _expected(group: kr.GroupSpec, changes: list[str]) -> Any:
    try:
        return kr.compare(group, changes)
    except kr.NotAffected:
        return None
    except kr.GroupError as error:
        return str(error)


def _with_clients(rng: random.Random, case: dict[str, Any]) -> dict[str, Any]:
    """Sets client ids in 40% of the groups; these ids reveal the client library."""
    number = rng.randrange(1, 99)
    names = ["kafka-python-3.0.12", "aiokafka-0.14.0", "rdkafka", f"consumer-{case['group_id']}-"]
    drawn = rng.choice(names)
    if rng.random() < 0.6:
        return case
    members = [
        {**one, "client_id": f"{drawn}{number + i}" if drawn.endswith("-") else drawn}
        for i, one in enumerate(case["members"])
    ]
    return {**case, "members": members}


def test_random_groups_equal_the_comparison_of_one_group() -> None:
    rng = random.Random(77)
    drawn = generate(77, 800, planned_names(), lambda _: {})
    cases = [_with_clients(rng, with_client_ids(rng, case)) for case in drawn]
    protocols = random.Random("protocols/77")
    cases = [with_protocol(protocols, case) for case in cases]
    reasons: Counter[str] = Counter()
    recommended: Counter[str | None] = Counter()
    errors = 0
    for case in cases:
        group = kr.GroupSpec.from_dict(case)
        changes = draw_changes(rng, group)
        expected = _expected(group, changes)
        (row,) = kr.compare_batch(batch_of([case]), changes, threads=1).to_pylist()
        if expected is None:
            assert row["not_affected"] is not None
        elif isinstance(expected, str):
            assert row["error"] == expected
            errors += 1
        else:
            assert (row["recommended"], row["reason"]) == (expected.recommended, expected.reason)
            for one in row["candidates"]:
                one.pop("error_kind")
            nothing = dict.fromkeys(kr.Figures.__slots__)
            assert row["candidates"] == [
                {**nothing, **one.to_dict()} for one in expected.candidates
            ]
            assert row["assignor"] == group.assignor
            recommended[row["recommended"]] += 1
            reasons[" ".join(row["reason"].split()[1:3])] += 1
    assert set(recommended) >= {"range", "roundrobin", "sticky", "cooperative-sticky"}
    assert len(reasons) >= 5, reasons
    assert errors


def test_an_empty_batch_has_an_empty_answer() -> None:
    empty = pa.RecordBatch.from_pylist([], schema=batch_of([]).schema)
    assert kr.compare_batch(empty, []).num_rows == 0
