# SPDX-License-Identifier: Apache-2.0
"""Checks `assign_batch` against vectors whose groups are rows of one Arrow batch."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from kafka_rebalance.bulk import assign_batch


def columns_answer(vectors: list[dict[str, Any]]) -> None:
    """Asserts that each row has the vector's answer, in its order, or the error kind "throws"."""
    rows = pa.RecordBatch.from_pylist([one["case"] for one in vectors])
    for vector, answer in zip(vectors, assign_batch(rows).to_pylist(), strict=True):
        expected = vector["expected"]
        if "error" in expected:
            assert answer["error_kind"] == "throws"
            continue
        assert _by_member(answer["assignment"]) == expected["assignment"]
        assert _by_member(answer["standby"]) == expected.get("standby")


def _by_member(column: list[dict[str, Any]] | None) -> dict[str, Any] | None:
    """Returns a column of an answer in the form of a line; None for null."""
    if column is None:
        return None
    return {
        one["member_id"]: [
            [run["topic"], p] for run in one["partitions"] for p in run["partitions"]
        ]
        for one in column
    }
