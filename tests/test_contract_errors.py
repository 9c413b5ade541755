# SPDX-License-Identifier: Apache-2.0
"""For bad values in a line, both engines report one message, with the path of the field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.contract_lines import (
    ABSENT,
    LIMIT,
    MAX,
    MEMBER,
    OWNED,
    VALID,
    Path,
    as_bytes,
    error_of_both,
    error_text,
    reference_answer,
    rust_answer,
    valid_line_with,
    written_path,
)


def test_the_valid_line_is_valid() -> None:
    assert not rust_answer(as_bytes(VALID)).is_error
    assert rust_answer(as_bytes(VALID)) == reference_answer(as_bytes(VALID))


# One field at a time ------------------------------------------------------------------------------

OBJECTS: list[Path] = [("topics", 0), ("topics", 1), MEMBER, (*OWNED, 0)]
LISTS: list[Path] = [("topics",), ("members",), (*MEMBER, "topics"), OWNED]
LISTS += [("topics", 0, "racks"), (*OWNED, 0, "partitions")]
STRINGS: list[Path] = [("group_id",), ("assignor",), ("topics", 0, "name")]
STRINGS += [(*MEMBER, name) for name in ("member_id", "group_instance_id", "client_id")]
STRINGS += [(*MEMBER, "client_host"), (*MEMBER, "rack_id"), (*MEMBER, "topics", 1)]
STRINGS += [("leader_library",), ("leader",), ("rebalance_protocol",), (*MEMBER, "client_library")]
STRINGS += [(*OWNED, 0, "topic"), ("topics", 0, "racks", 0, 1)]
NUMBERS: dict[Path, tuple[str, int]] = {
    ("generation_id",): ("generation", -(2**31)),
    ("topics", 0, "partitions"): ("count", 0),
    (*MEMBER, "generation_id"): ("generation", -(2**31)),
    (*OWNED, 0, "partitions", 1): ("partition", 0),
}
REQUIRED: list[Path] = [("group_id",), ("topics",), ("members",), ("topics", 0, "name")]
REQUIRED += [("topics", 0, "partitions"), (*MEMBER, "member_id"), (*MEMBER, "topics")]
REQUIRED += [(*OWNED, 0, "topic"), (*OWNED, 0, "partitions")]
OPTIONAL: list[Path] = [("generation_id",), ("topics", 0, "racks"), OWNED]
OPTIONAL += [(*MEMBER, name) for name in ("group_instance_id", "client_id", "client_host")]
OPTIONAL += [(*MEMBER, "generation_id"), (*MEMBER, "rack_id"), (*MEMBER, "client_library")]
OPTIONAL += [("leader_library",), ("leader",)]

KINDS: dict[str, Any] = {
    "a boolean": True,
    "a string": "x",
    "a number": 7,
    "a number that is not whole": 1.5,
    "an object": {"partitions": 1},
    "a list": [1],
}


def _wrong_types() -> list[tuple[Path, Any, str]]:
    cases = []
    for noun, kind, paths in (
        ("an object", "an object", OBJECTS),
        ("a list", "a list", LISTS),
        ("a string", "a string", STRINGS),
    ):
        for path in paths:
            for got, value in KINDS.items():
                if got != kind:
                    cases.append((path, value, f"{got} is not {noun}"))
    for path, (noun, _) in NUMBERS.items():
        for got, value in KINDS.items():
            if got != "a number":
                cases.append((path, value, f"{got} is not a {noun}"))
    return cases


@pytest.mark.parametrize(("path", "value", "problem"), _wrong_types())
def test_wrong_types(path: Path, value: Any, problem: str) -> None:
    assert (
        error_of_both(as_bytes(valid_line_with(path, value))) == f"{written_path(path)}: {problem}"
    )


@pytest.mark.parametrize("path", REQUIRED, ids=written_path)
@pytest.mark.parametrize("value", [ABSENT, None], ids=["absent", "null"])
def test_missing(path: Path, value: Any) -> None:
    assert error_of_both(as_bytes(valid_line_with(path, value))) == f"{written_path(path)}: missing"


@pytest.mark.parametrize("path", OPTIONAL, ids=written_path)
@pytest.mark.parametrize("value", [ABSENT, None], ids=["absent", "null"])
def test_absent_and_null_are_the_same(path: Path, value: Any) -> None:
    line = as_bytes(valid_line_with(path, value))
    assert not rust_answer(line).is_error
    assert (
        rust_answer(line)
        == reference_answer(line)
        == rust_answer(as_bytes(valid_line_with(path, None)))
    )


@pytest.mark.parametrize(
    ("path", "noun"),
    [
        (("topics", 1), "an object"),
        (("members", 1), "an object"),
        ((*OWNED, 0), "an object"),
        ((*MEMBER, "topics", 0), "a string"),
        ((*OWNED, 0, "partitions", 0), "a partition"),
    ],
)
def test_null_entries(path: Path, noun: str) -> None:
    assert (
        error_of_both(as_bytes(valid_line_with(path, None)))
        == f"{written_path(path)}: null is not {noun}"
    )


@pytest.mark.parametrize(("path", "bounds"), NUMBERS.items())
@pytest.mark.parametrize("value", [-1, MAX + 1, -(2**31) - 1, 2**63, 2**64 - 1, -(2**63)])
def test_numbers_out_of_range_are_reported_with_their_bounds(
    path: Path, bounds: tuple[str, int], value: int
) -> None:
    noun, least = bounds
    line = as_bytes(valid_line_with(path, value))
    if value >= least and value <= MAX:
        assert not rust_answer(line).is_error
        assert rust_answer(line) == reference_answer(line)
    else:
        expected = f"{written_path(path)}: {value} is not a {noun} from {least} to {MAX}"
        assert error_of_both(line) == expected


@pytest.mark.parametrize("path", NUMBERS, ids=written_path)
@pytest.mark.parametrize("text", ["1.0", "1e1", "-0", "-0.0", "1E400", str(2**64), "-" + "9" * 30])
def test_numbers_that_are_not_64_bit_integers(path: Path, text: str) -> None:
    line = as_bytes(valid_line_with(path, "HERE")).replace(b'"HERE"', text.encode())
    if text == "1E400":
        assert error_text(rust_answer(line)).startswith("line 1: not JSON: ")
        assert error_text(reference_answer(line)).startswith("line 1: not JSON: ")
    else:
        noun = NUMBERS[path][0]
        problem = f"a number that is not whole is not a {noun}"
        assert error_of_both(line) == f"{written_path(path)}: {problem}"


# Values that make no valid group ------------------------------------------------------------------

MEANING: dict[str, tuple[Path, Any, str]] = {
    "more racks than partitions": (
        ("topics", 0, "racks"),
        [[]] * 4,
        (
            "topics[0].racks: 4 entries for 3 partitions; "
            "give one list of replica racks for each partition, or none at all"
        ),
    ),
    "fewer racks than partitions": (
        ("topics", 0, "racks"),
        [],
        (
            "topics[0].racks: 0 entries for 3 partitions; "
            "give one list of replica racks for each partition, or none at all"
        ),
    ),
    "a topic twice": (
        ("topics", 1, "name"),
        "t",
        'topics[1].name: "t" is already the name of topics[0]',
    ),
    "a member twice": (
        ("members", 1, "member_id"),
        "m0",
        'members[1].member_id: "m0" is already the id of members[0]',
    ),
    "no members": (("members",), [], "members: empty; a leader is always a member itself"),
    "an unknown assignor": (
        ("assignor",),
        'no "such"\n',
        (
            r'assignor: "no \"such\"\n" is not known; '
            "known are range, roundrobin, sticky, cooperative-sticky, "
            "librdkafka/range, librdkafka/roundrobin, librdkafka/cooperative-sticky, "
            "balanced, weighted, consumer/uniform, consumer/range, consumer/balanced, "
            "share/simple, streams/sticky"
        ),
    ),
    "no assignor": (
        ("assignor",),
        ABSENT,
        "assignor: missing; name one, in the group or in the call",
    ),
    "too many partitions": (
        ("topics", 1, "partitions"),
        LIMIT,
        (
            "topics: 1003 partitions in all, more than the limit of 1000; "
            "raise max_partitions if that is meant"
        ),
    ),
    "far too many partitions": (
        ("topics", 1, "partitions"),
        MAX,
        (
            "topics: 2147483650 partitions in all, more than the limit of 1000; "
            "raise max_partitions if that is meant"
        ),
    ),
}


@pytest.mark.parametrize("name", MEANING)
def test_values_that_make_no_group(name: str) -> None:
    path, value, expected = MEANING[name]
    assert error_of_both(as_bytes(valid_line_with(path, value))) == expected


def test_the_limit_itself_is_allowed() -> None:
    line = as_bytes(valid_line_with(("topics", 1, "partitions"), LIMIT - 3))
    assert not rust_answer(line).is_error
    assert rust_answer(line) == reference_answer(line)


@pytest.mark.parametrize("name", ['"', "\\", "\n\t\x00\x1f\x7f", "é主😀\u2028", "/"])
def test_names_are_quoted_alike(name: str) -> None:
    line = valid_line_with(("topics", 0, "name"), name)
    line["topics"][1]["name"] = name
    quoted = json.dumps(name, ensure_ascii=False)
    expected = f"topics[1].name: {quoted} is already the name of topics[0]"
    assert error_of_both(as_bytes(line)) == expected


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*OWNED, 0, "partitions"), [0, 2, 3, 99]),  # the topic has only 3 partitions
        ((*OWNED, 0, "topic"), "gone"),
        ((*OWNED, 0, "partitions"), [0, 0]),
        ((*MEMBER, "topics"), ["u"]),  # the member owns partitions of a topic it unsubscribed from
        ((*MEMBER, "topics"), []),
        ((*MEMBER, "topics"), ["t", "t", "nowhere"]),
        (("topics",), []),
        (("topics", 1, "partitions"), 0),
        (("group_id",), ""),
        ((*MEMBER, "generation_id"), -(2**31)),
        (("unknown",), {"anything": [1.5]}),
    ],
)
def test_strange_values_that_are_no_errors(path: Path, value: Any) -> None:
    line = as_bytes(valid_line_with(path, value))
    assert not rust_answer(line).is_error
    assert rust_answer(line) == reference_answer(line)
