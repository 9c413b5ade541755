# SPDX-License-Identifier: Apache-2.0
"""A line that is not a JSON object is an error; other lines are still answered."""

from __future__ import annotations

import json

import pytest

import kafka_rebalance as kr
from kafka_rebalance.bulk.lines import assign_lines
from tests.support import contract_lines as lines


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b" ",
        b"{",
        b"nonsense",
        b'{"group_id": "g",}',
        b"{'group_id': 'g'}",
        b'{"group_id": "g"} {}',
        b"\xef\xbb\xbf{}",
        b'{"group_id": "\n"}',
        b'{"group_id": NaN}',
        b'{"group_id": Infinity}',
        b'{"group_id": -Infinity}',
        b'{"group_id": 01}',
        b'{"group_id": "g", "x": 1e999}',
        rb'{"group_id": "\ud800"}',
        rb'{"group_id": "\udc00x"}',
        rb'{"group_id": "g", "x": "\ud800\ud800"}',
        rb'{"group_id": "g", "\udfff": 1}',
        rb'{"x": "\uD83D", "x": 1}',
        b"[" * 100_000,
    ],
)
def test_no_json(line: bytes) -> None:
    """Only the beginning of the error is compared: the rest is from each engine's own parser."""
    for answer in (lines.rust_answer(line), lines.reference_answer(line)):
        assert lines.error_text(answer).startswith("line 1: not JSON: ")
        assert json.loads(answer.line)["group_id"] is None
    with pytest.raises(kr.GroupError, match=r"^line: not JSON: "):
        kr.GroupSpec.from_json(line)


@pytest.mark.parametrize("line", [b"\xff", b'{"group_id": "\xe9"}', b'"\xed\xa0\x80"', b"\xc0\x80"])
def test_no_utf8(line: bytes) -> None:
    for answer in (lines.rust_answer(line), lines.reference_answer(line)):
        assert lines.error_text(answer).startswith("line 1: not UTF-8: ")
    with pytest.raises(kr.GroupError, match=r"^line: not UTF-8: "):
        kr.GroupSpec.from_json(line)


@pytest.mark.parametrize("escaped", [r"\ud83d\ude00", r"\\ud800", r"\\\ud83d\ude00", r"\u00e9"])
def test_whole_pairs_and_escaped_backslashes_are_text(escaped: str) -> None:
    line = lines.as_bytes(lines.valid_line_with(("group_id",), "HERE")).replace(
        b"HERE", escaped.encode()
    )
    assert not lines.rust_answer(line).is_error
    assert lines.rust_answer(line) == lines.reference_answer(line)
    assert kr.GroupSpec.from_json(line).group_id == json.loads(f'"{escaped}"')


@pytest.mark.parametrize(
    ("line", "kind"),
    [(b"1", "a number"), (b"[]", "a list"), (b"null", "null"), (b'"x"', "a string")],
)
def test_no_object(line: bytes, kind: str) -> None:
    assert lines.error_of_both(line) == f"line 1: {kind} is not an object"


def test_surrogates_in_python_objects() -> None:
    with pytest.raises(kr.GroupError) as raised:
        kr.GroupSpec.from_dict(lines.valid_line_with(("topics", 0, "name"), "\ud800"))
    assert str(raised.value) == "topics[0].name: half of a surrogate pair is not text"
    with pytest.raises(kr.GroupError, match=r"^line: not UTF-8"):
        kr.GroupSpec.from_json('"\ud800"')


def test_an_error_line_stays_that_error() -> None:
    line = b'{"group_id": "g", "error": "members: the coordinator is loading"}'
    assert lines.error_of_both(line) == "members: the coordinator is loading"
    assert lines.error_of_both(b'{"group_id": "g", "error": "gone"}') == "error: gone"


# In bulk ------------------------------------------------------------------------------------------


def test_a_bad_line_harms_no_other_and_is_named_by_its_number() -> None:
    good = lines.as_bytes(lines.VALID)
    given = [good, b"{", good, rb'{"group_id": "\ud800"}', b'{"group_id": "x"}', b"3", good]
    rust = assign_lines(given, first=10, threads=2)
    python = assign_lines(given, first=10, engine="reference")
    assert [a.is_error for a in rust] == [a.is_error for a in python]
    assert [a.is_error for a in rust] == [False, True, False, True, True, True, False]
    assert rust[0] == rust[2] == rust[6] == python[0]
    assert lines.error_text(rust[1]).startswith("line 11: not JSON: ")
    assert lines.error_text(python[3]).startswith("line 13: not JSON: ")
    assert rust[4] == python[4] == (b'{"group_id":"x","error":"topics: missing"}', True)
    assert (
        rust[5]
        == python[5]
        == (b'{"group_id":null,"error":"line 15: a number is not an object"}', True)
    )
