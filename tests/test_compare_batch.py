# SPDX-License-Identifier: Apache-2.0
"""Rust's `compare` agrees with Python's: figures, recommendation and reason."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import fields, replace
from typing import Any

import pyarrow as pa
import pytest

import kafka_rebalance as kr
from kafka_rebalance import _core
from kafka_rebalance.assignors.registry import OURS, planned_names
from kafka_rebalance.bulk import compare_batch
from kafka_rebalance.group import MAX_PARTITIONS
from kafka_rebalance.plans.affected import is_idle
from kafka_rebalance.plans.rebalance_plan import parse_changes
from tests.support.generate import generate
from tests.support.generate_changes import changes as draw_changes
from tests.support.generate_changes import with_client_ids, with_protocol
from tests.test_batch import VECTORS
from tests.test_plans import batch_of


def _expected(group: kr.GroupSpec, changes: list[str]) -> Any:
    try:
        found = kr.compare(group, changes)
        return None if is_idle(group, parse_changes(changes)) else found
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


def _check(row: dict[str, Any], expected: kr.Comparison) -> None:
    assert (row["recommended"], row["reason"]) == (expected.recommended, expected.reason)
    kinds = [one.pop("error_kind") for one in row["candidates"]]
    assert kinds == [one.error_kind for one in expected.candidates]
    nothing = dict.fromkeys(one.name for one in fields(kr.Figures))
    assert row["candidates"] == [{**nothing, **one.to_dict()} for one in expected.candidates]
    assert row["assignor"] == expected.group.assignor


LIBRARIES = ("java", "librdkafka", "kafka-python", "aiokafka", "python", "a-library-of-tomorrow")


def _with_libraries(rng: random.Random, group: kr.GroupSpec) -> kr.GroupSpec:
    """Chooses random libraries for members and leader in half of the groups, as their bytes would
    show.
    """
    drawn = rng.choices((None, *LIBRARIES), k=rng.choice((1, 1, 2, 3)))
    members = tuple(replace(one, client_library=rng.choice(drawn)) for one in group.members)
    return replace(group, members=members, leader_library=rng.choice((None, *LIBRARIES)))


@pytest.mark.soak
def test_libraries_count_as_in_the_comparison_of_one_group(first_seed: int) -> None:
    rng = random.Random(first_seed)
    counts: Counter[str] = Counter()
    listed = [name for name in planned_names() if name not in OURS]  # by members of any library
    for case in generate(first_seed, 120, listed, lambda _: {}):
        group = kr.GroupSpec.from_dict(_with_clients(rng, with_client_ids(rng, case)))
        group = _with_libraries(rng, group)
        try:
            expected = kr.compare(group)
        except kr.GroupError:
            continue
        assert kr.compare(group, engine="reference") == replace(expected, engine="reference")
        lines = pa.record_batch([pa.array([group.to_json().encode()])], ["line"])
        for answers in (
            compare_batch([group], threads=1),
            pa.record_batch(_core.compare_batch(lines, [], MAX_PARTITIONS, 1, "lines")),
        ):
            (row,) = answers.to_pylist()
            _check(row, expected)
        bare = tuple(replace(one, client_library=None) for one in group.members)
        without = kr.compare(replace(group, members=bare))
        counts["members"] += without.recommended != expected.recommended
        without = kr.compare(replace(group, leader_library=None))
        counts["leader"] += len(without.candidates) != len(expected.candidates)
        counts["nobody"] += expected.recommended is None
        counts["better"] += "would do better" in expected.reason
        counts["all"] += 1
    assert counts["all"] > 60, counts
    assert min(counts["members"], counts["leader"], counts["better"]) > 0, counts


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
        (row,) = compare_batch(batch_of([case]), changes, threads=1).to_pylist()
        if expected is None:
            assert row["not_affected"] is not None
        elif isinstance(expected, str):
            assert row["error"] == expected
            errors += 1
        else:
            _check(row, expected)
            recommended[row["recommended"]] += 1
            reasons[" ".join(row["reason"].split()[1:3])] += 1
    assert set(recommended) >= {"range", "roundrobin", "sticky", "cooperative-sticky"}
    assert len(reasons) >= 5, reasons
    assert errors


def test_candidates_of_a_group_that_the_broker_assigns_have_the_kinds_of_their_errors() -> None:
    lines = (VECTORS / "never_ends_smallest.jsonl").read_text(encoding="utf-8").splitlines()
    case = json.loads(lines[0]) | {"assignor": "consumer/uniform"}
    for topic, last in zip(case["topics"], "gwAQ", strict=True):
        topic["topic_id"] = f"AAAAAAAAAAEAAAAAAAAAA{last}"
    group = kr.GroupSpec.from_dict(case)
    (row,) = compare_batch([group]).to_pylist()
    kinds = {one["assignor"]: one["error_kind"] for one in row["candidates"] if one["error"]}
    assert kinds == dict.fromkeys(("sticky", "cooperative-sticky"), "never-ends")
    _check(row, kr.compare(group))


def test_an_empty_batch_has_an_empty_answer() -> None:
    empty = pa.RecordBatch.from_pylist([], schema=batch_of([]).schema)
    assert compare_batch(empty, []).num_rows == 0
