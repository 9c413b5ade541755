# SPDX-License-Identifier: Apache-2.0
"""Both engines return equal answers to mutated lines, mutated bytes and good lines."""

from __future__ import annotations

import copy
import json
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kafka_rebalance as kr
from kafka_rebalance.assignors.registry import KAFKAS
from kafka_rebalance.bulk.lines import assign_lines
from kafka_rebalance.group import contract
from tests.support.contract_lines import (
    VALID,
    VALID_STREAMS,
    Path,
    as_bytes,
    error_text,
    reference_answer,
    rust_answer,
    valid_line_with,
)

TEXTS = st.text(st.characters(codec="utf-8"), max_size=4) | st.sampled_from(
    ["t", "u", "m0", "m1", "i0"]
)
NUMBERS_OR_SO = (
    st.integers(-3, 6)
    | st.sampled_from([2**31, -(2**31) - 1, 2**63, 2**64, -(2**63) - 1, 1.0, -0.0, 1e300, 0.5])
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
)
JSONISH = st.recursive(
    st.none() | st.booleans() | TEXTS | NUMBERS_OR_SO,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


def _places(value: Any, at: Path = ()) -> list[Path]:
    """Returns the path of every value inside `value`."""
    inner: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [path for step, item in inner for path in [(*at, step), *_places(item, (*at, step))]]


@settings(max_examples=5 * settings().max_examples)
@given(st.data(), st.sampled_from([*KAFKAS, "streams/sticky"]))
def test_both_engines_answer_mutated_lines_alike(data: st.DataObject, assignor: str) -> None:
    line: Any = valid_line_with(("assignor",), assignor)
    if assignor == "streams/sticky":
        line = copy.deepcopy(VALID_STREAMS)
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(_places(line)))
        at = line
        for step in path[:-1]:
            at = at[step]
        change = data.draw(st.sampled_from(["replace", "remove", "repeat", "copy"]))
        if change == "remove":
            del at[path[-1]]
        elif change == "repeat" and isinstance(at, list):
            at.insert(0, at[cast("int", path[-1])])
        elif change == "copy":
            other: Any = line
            for step in data.draw(st.sampled_from(_places(line))):
                other = other[step]
            at[path[-1]] = copy.deepcopy(other)
        else:
            at[path[-1]] = data.draw(JSONISH)
        if not _places(line):
            break  # nothing is left to mutate
    line_bytes = as_bytes(line)
    assert rust_answer(line_bytes) == reference_answer(line_bytes)


CHANGES = st.tuples(st.integers(0, len(as_bytes(VALID)) - 1), st.binary(max_size=2))


@settings(max_examples=10 * settings().max_examples)
@given(st.lists(CHANGES, min_size=1, max_size=3))
def test_both_engines_answer_mutated_bytes_alike(changes: list[tuple[int, bytes]]) -> None:
    line = bytearray(as_bytes(VALID))
    for at, new in changes:
        line[at : at + 1] = new
    rust, python = rust_answer(bytes(line)), reference_answer(bytes(line))
    assert rust.is_error == python.is_error
    texts = [error_text(answer) if answer.is_error else "" for answer in (rust, python)]
    # For bad JSON or UTF-8, each parser has its own message, so only the beginning is compared.
    own_words = ("line 1: not JSON: ", "line 1: not UTF-8: ")
    if texts[0].startswith(own_words):
        assert texts[1].startswith(texts[0][: len("line 1: not ")])
    else:
        assert rust == python


def test_rust_writes_result_lines_as_python_does() -> None:
    for assignor in ("range", "roundrobin", "sticky", "cooperative-sticky"):
        line = valid_line_with(("members", 1, "member_id"), 'é"\\\x01😀')
        line["topics"][0]["name"] = "t\u2028\n"
        line["members"][0]["topics"] = line["members"][1]["topics"] = ["t\u2028\n", "u"]
        line["assignor"] = assignor
        result = kr.assign(kr.GroupSpec.from_dict(line))
        answer: dict[str, Any] = {"group_id": "g", "assignor": assignor}
        answer["assignment"] = result.to_dict()
        if result.anomalies:
            answer["anomalies"] = [anomaly.to_dict() for anomaly in result.anomalies]
        assert rust_answer(as_bytes(line)) == (contract.dumps(answer).encode(), False)


@pytest.mark.parametrize("engine", ["rust", "reference"])
def test_the_assignor_of_the_call_overrides_that_of_a_line(engine: Any) -> None:
    answer = assign_lines([as_bytes(VALID)], "range", engine=engine)[0]
    assert json.loads(answer.line)["assignor"] == "range"
