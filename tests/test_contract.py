# SPDX-License-Identifier: Apache-2.0
"""Bad lines: the exact words, the same from Python and from Rust; and lines that are none."""

from __future__ import annotations

import copy
import json
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kafka_rebalance as kr
from kafka_rebalance.bulk.lines import LineAnswer, assign_lines
from kafka_rebalance.group import contract

LIMIT = 1_000
MAX = 2**31 - 1

VALID: dict[str, Any] = {
    "group_id": "g",
    "generation_id": 3,
    "assignor": "cooperative-sticky",
    "topics": [
        {"name": "t", "partitions": 3, "racks": [["a", "b"], None, [None]]},
        {"name": "u", "partitions": 1},
    ],
    "members": [
        {
            "member_id": "m0",
            "group_instance_id": "i0",
            "client_id": "c",
            "client_host": "/h",
            "topics": ["t", "u"],
            "owned_partitions": [{"topic": "t", "partitions": [0, 2]}],
            "generation_id": 3,
            "rack_id": "a",
        },
        {"member_id": "m1", "group_instance_id": "i1", "topics": ["t"]},
    ],
}
ABSENT = object()


def _rust(line: bytes, limit: int = LIMIT) -> LineAnswer:
    return assign_lines([line], max_partitions=limit, threads=1)[0]


def _python(line: bytes, limit: int = LIMIT) -> LineAnswer:
    return assign_lines([line], max_partitions=limit, engine="reference")[0]


def _error(answer: LineAnswer) -> str:
    assert answer.is_error, answer
    return cast("str", json.loads(answer.line)["error"])


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _with(path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    """VALID with one place changed, or left out."""
    line: Any = copy.deepcopy(VALID)
    at = line
    for step in path[:-1]:
        at = at[step]
    if value is ABSENT:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return cast("dict[str, Any]", line)


def _name(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)[1:]


def _both(line: bytes, limit: int = LIMIT) -> str:
    """The text of the error that both give, and that `from_json` or `assign` raises."""
    rust, python = _rust(line, limit), _python(line, limit)
    assert rust == python
    with pytest.raises(kr.GroupError) as raised:
        kr.assign(kr.GroupSpec.from_json(line, max_partitions=limit))
    text = _error(rust)
    assert str(raised.value) == text.replace("line 1: ", "line: ", 1)
    return text


def test_the_valid_line_is_valid() -> None:
    assert not _rust(_dump(VALID)).is_error
    assert _rust(_dump(VALID)) == _python(_dump(VALID))


# One field at a time ------------------------------------------------------------------------------

Path = tuple[str | int, ...]
MEMBER: Path = ("members", 0)
OWNED: Path = (*MEMBER, "owned_partitions")

OBJECTS: list[Path] = [("topics", 0), ("topics", 1), MEMBER, (*OWNED, 0)]
LISTS: list[Path] = [("topics",), ("members",), (*MEMBER, "topics"), OWNED]
LISTS += [("topics", 0, "racks"), (*OWNED, 0, "partitions")]
STRINGS: list[Path] = [("group_id",), ("assignor",), ("topics", 0, "name")]
STRINGS += [(*MEMBER, name) for name in ("member_id", "group_instance_id", "client_id")]
STRINGS += [(*MEMBER, "client_host"), (*MEMBER, "rack_id"), (*MEMBER, "topics", 1)]
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
OPTIONAL += [(*MEMBER, "generation_id"), (*MEMBER, "rack_id")]

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
    assert _both(_dump(_with(path, value))) == f"{_name(path)}: {problem}"


@pytest.mark.parametrize("path", REQUIRED, ids=_name)
@pytest.mark.parametrize("value", [ABSENT, None], ids=["absent", "null"])
def test_missing(path: Path, value: Any) -> None:
    assert _both(_dump(_with(path, value))) == f"{_name(path)}: missing"


@pytest.mark.parametrize("path", OPTIONAL, ids=_name)
@pytest.mark.parametrize("value", [ABSENT, None], ids=["absent", "null"])
def test_absent_and_null_are_the_same(path: Path, value: Any) -> None:
    line = _dump(_with(path, value))
    assert not _rust(line).is_error
    assert _rust(line) == _python(line) == _rust(_dump(_with(path, None)))


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
    assert _both(_dump(_with(path, None))) == f"{_name(path)}: null is not {noun}"


@pytest.mark.parametrize(("path", "bounds"), NUMBERS.items())
@pytest.mark.parametrize("value", [-1, MAX + 1, -(2**31) - 1, 2**63, 2**64 - 1, -(2**63)])
def test_numbers_out_of_range(path: Path, bounds: tuple[str, int], value: int) -> None:
    noun, least = bounds
    line = _dump(_with(path, value))
    if value >= least and value <= MAX:
        assert not _rust(line).is_error
        assert _rust(line) == _python(line)
    else:
        expected = f"{_name(path)}: {value} is not a {noun} from {least} to {MAX}"
        assert _both(line) == expected


@pytest.mark.parametrize("path", NUMBERS, ids=_name)
@pytest.mark.parametrize("text", ["1.0", "1e1", "-0", "-0.0", "1E400", str(2**64), "-" + "9" * 30])
def test_numbers_that_are_not_64_bit_integers(path: Path, text: str) -> None:
    line = _dump(_with(path, "HERE")).replace(b'"HERE"', text.encode())
    if text == "1E400":
        assert _error(_rust(line)).startswith("line 1: not JSON: ")
        assert _error(_python(line)).startswith("line 1: not JSON: ")
    else:
        noun = NUMBERS[path][0]
        problem = f"a number that is not whole is not a {noun}"
        assert _both(line) == f"{_name(path)}: {problem}"


# What the values mean -----------------------------------------------------------------------------

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
            "known are range, roundrobin, sticky, cooperative-sticky"
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
    assert _both(_dump(_with(path, value))) == expected


def test_the_limit_itself_is_allowed() -> None:
    line = _dump(_with(("topics", 1, "partitions"), LIMIT - 3))
    assert not _rust(line).is_error
    assert _rust(line) == _python(line)


@pytest.mark.parametrize("name", ['"', "\\", "\n\t\x00\x1f\x7f", "é主😀\u2028", "/"])
def test_names_are_quoted_alike(name: str) -> None:
    line = _with(("topics", 0, "name"), name)
    line["topics"][1]["name"] = name
    quoted = json.dumps(name, ensure_ascii=False)
    expected = f"topics[1].name: {quoted} is already the name of topics[0]"
    assert _both(_dump(line)) == expected


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*OWNED, 0, "partitions"), [0, 2, 3, 99]),  # the topic has only three
        ((*OWNED, 0, "topic"), "gone"),
        ((*OWNED, 0, "partitions"), [0, 0]),
        ((*MEMBER, "topics"), ["u"]),  # owns a topic that it no longer subscribes to
        ((*MEMBER, "topics"), []),
        ((*MEMBER, "topics"), ["t", "t", "nowhere"]),
        (("topics",), []),
        (("topics", 1, "partitions"), 0),
        (("group_id",), ""),
        ((*MEMBER, "generation_id"), -(2**31)),
        (("unknown",), {"anything": [1.5]}),
    ],
)
def test_odd_but_no_error(path: Path, value: Any) -> None:
    line = _dump(_with(path, value))
    assert not _rust(line).is_error
    assert _rust(line) == _python(line)


# No JSON ------------------------------------------------------------------------------------------


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
    """The words after "not JSON:" are each parser's own."""
    for answer in (_rust(line), _python(line)):
        assert _error(answer).startswith("line 1: not JSON: ")
        assert json.loads(answer.line)["group_id"] is None
    with pytest.raises(kr.GroupError, match=r"^line: not JSON: "):
        kr.GroupSpec.from_json(line)


@pytest.mark.parametrize("line", [b"\xff", b'{"group_id": "\xe9"}', b'"\xed\xa0\x80"', b"\xc0\x80"])
def test_no_utf8(line: bytes) -> None:
    for answer in (_rust(line), _python(line)):
        assert _error(answer).startswith("line 1: not UTF-8: ")
    with pytest.raises(kr.GroupError, match=r"^line: not UTF-8: "):
        kr.GroupSpec.from_json(line)


@pytest.mark.parametrize("escaped", [r"\ud83d\ude00", r"\\ud800", r"\\\ud83d\ude00", r"\u00e9"])
def test_whole_pairs_and_escaped_backslashes_are_text(escaped: str) -> None:
    line = _dump(_with(("group_id",), "HERE")).replace(b"HERE", escaped.encode())
    assert not _rust(line).is_error
    assert _rust(line) == _python(line)
    assert kr.GroupSpec.from_json(line).group_id == json.loads(f'"{escaped}"')


@pytest.mark.parametrize(
    ("line", "kind"),
    [(b"1", "a number"), (b"[]", "a list"), (b"null", "null"), (b'"x"', "a string")],
)
def test_no_object(line: bytes, kind: str) -> None:
    assert _both(line) == f"line 1: {kind} is not an object"


def test_surrogates_in_python_objects() -> None:
    with pytest.raises(kr.GroupError) as raised:
        kr.GroupSpec.from_dict(_with(("topics", 0, "name"), "\ud800"))
    assert str(raised.value) == "topics[0].name: half of a surrogate pair is not text"
    with pytest.raises(kr.GroupError, match=r"^line: not UTF-8"):
        kr.GroupSpec.from_json('"\ud800"')


def test_an_error_line_stays_that_error() -> None:
    line = b'{"group_id": "g", "error": "members: the coordinator is loading"}'
    assert _both(line) == "members: the coordinator is loading"
    assert _both(b'{"group_id": "g", "error": "gone"}') == "error: gone"


# In bulk ------------------------------------------------------------------------------------------


def test_a_bad_line_harms_no_other_and_is_named_by_its_number() -> None:
    good = _dump(VALID)
    lines = [good, b"{", good, rb'{"group_id": "\ud800"}', b'{"group_id": "x"}', b"3", good]
    rust = assign_lines(lines, first=10, threads=2)
    python = assign_lines(lines, first=10, engine="reference")
    assert [a.is_error for a in rust] == [a.is_error for a in python]
    assert [a.is_error for a in rust] == [False, True, False, True, True, True, False]
    assert rust[0] == rust[2] == rust[6] == python[0]
    assert _error(rust[1]).startswith("line 11: not JSON: ")
    assert _error(python[3]).startswith("line 13: not JSON: ")
    assert rust[4] == python[4] == (b'{"group_id":"x","error":"topics: missing"}', True)
    assert (
        rust[5]
        == python[5]
        == (b'{"group_id":null,"error":"line 15: a number is not an object"}', True)
    )


# Generated ----------------------------------------------------------------------------------------

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
    """Every path of a value but the top."""
    inner: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [path for step, item in inner for path in [(*at, step), *_places(item, (*at, step))]]


@settings(max_examples=500)
@given(st.data(), st.sampled_from(["range", "roundrobin", "sticky", "cooperative-sticky"]))
def test_mutated_lines_fare_alike(data: st.DataObject, assignor: str) -> None:
    line: Any = _with(("assignor",), assignor)
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
            break
    line_bytes = _dump(line)
    assert _rust(line_bytes) == _python(line_bytes)


CHANGES = st.tuples(st.integers(0, len(_dump(VALID)) - 1), st.binary(max_size=2))


@settings(max_examples=1_000)
@given(st.lists(CHANGES, min_size=1, max_size=3))
def test_mutated_bytes_fare_alike(changes: list[tuple[int, bytes]]) -> None:
    line = bytearray(_dump(VALID))
    for at, new in changes:
        line[at : at + 1] = new
    rust, python = _rust(bytes(line)), _python(bytes(line))
    assert rust.is_error == python.is_error
    texts = [_error(answer) if answer.is_error else "" for answer in (rust, python)]
    own_words = ("line 1: not JSON: ", "line 1: not UTF-8: ")
    if texts[0].startswith(own_words):
        assert texts[1].startswith(texts[0][: len("line 1: not ")])
    else:
        assert rust == python


def test_result_lines_are_the_dumps_of_the_answer() -> None:
    for assignor in ("range", "roundrobin", "sticky", "cooperative-sticky"):
        line = _with(("members", 1, "member_id"), 'é"\\\x01😀')
        line["topics"][0]["name"] = "t\u2028\n"
        line["members"][0]["topics"] = line["members"][1]["topics"] = ["t\u2028\n", "u"]
        line["assignor"] = assignor
        result = kr.assign(kr.GroupSpec.from_dict(line))
        answer: dict[str, Any] = {"group_id": "g", "assignor": assignor}
        answer["assignment"] = result.to_dict()
        if result.anomalies:
            answer["anomalies"] = [anomaly.to_dict() for anomaly in result.anomalies]
        assert _rust(_dump(line)) == (contract.dumps(answer).encode(), False)


@pytest.mark.parametrize("engine", ["rust", "reference"])
def test_an_assignor_for_all_lines_goes_before_their_own(engine: Any) -> None:
    answer = assign_lines([_dump(VALID)], "range", engine=engine)[0]
    assert json.loads(answer.line)["assignor"] == "range"
