# SPDX-License-Identifier: Apache-2.0
"""`GroupSpec.from_json` and `from_dict` in the core read the lines that `contract.py` reads, and
report its errors.
"""

from __future__ import annotations

import copy
import json
import pickle
import random
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance import GroupSpec, _core
from kafka_rebalance.group import contract
from tests.support.contract_lines import LIMIT, MAX, VALID, VALID_STREAMS, as_bytes

pytestmark = pytest.mark.filterwarnings("ignore:.* not a field of the contract")

WRONG: tuple[object, ...] = (
    None, True, False, -1, 0, 1, 3, 4, MAX, MAX + 1, -(2**31) - 1, 2**63, 2**64, 10**40, 1.5, -0.0,
    1e400, "", "t", "none", "partitions", "a\u0000b", "é\U0001f600", "\ud800", [], ["t"], [None],
    [[0]], {}, {"topic": "t"}, {"name": "v", "partitions": 1},
)  # fmt: skip
SECOND = ("null", "0", "1", "1.5", '"t"', '"m0"', "[]", "{}", json.dumps(VALID["topics"]))
NUMBERS = (
    ("topics", 0, "partitions"), ("topics", 0, "initialized", 0), ("generation_id",),
    ("members", 1, "generation_id"), ("members", 1, "subscription_version"),
    ("members", 1, "owned_partitions", 0, "partitions", 0), ("unknown",),
)  # fmt: skip
DELETED = {"topic": "gone", "partitions": [0], "topic_id": "AAAAAAAAAAEAAAAAAAAAAg"}


def read_by_reference(line: str | bytes, limit: int = LIMIT) -> GroupSpec:
    return GroupSpec(**contract.read(contract.parse(line)), max_partitions=limit)


def read_fields(fields: Any) -> GroupSpec:
    return GroupSpec(**contract.read(fields), max_partitions=LIMIT)


def from_dict(fields: Any) -> GroupSpec:
    return GroupSpec.from_dict(fields, max_partitions=LIMIT)


def typed(value: object) -> object:
    """Returns all values of a group, each with its exact type."""
    if is_dataclass(value):
        listed = (field.name for field in fields(value) if field.name != "_interned")
        return type(value), [(name, typed(getattr(value, name))) for name in listed]
    if isinstance(value, tuple):
        return type(value), [typed(one) for one in value]
    return type(value), value


def outcome(read: Any, line: Any) -> object:
    try:
        return typed(read(line))
    except kr.GroupError as error:
        return error.path, error.problem


def from_json(line: str | bytes) -> GroupSpec:
    return GroupSpec.from_json(line, max_partitions=LIMIT)


def rich_line() -> dict[str, Any]:
    """Returns a line with every field outside streams groups."""
    line = copy.deepcopy(VALID)
    line["topics"][0] |= {"topic_id": "AAAAAAAAAAEAAAAAAAAAAQ", "initialized": [0, 2]}
    line["members"][1] |= {
        "subscription_version": 3,
        "user_data": "partitions",
        "user_data_generation_id": 2,
        "owned_partitions": [
            {"topic": "t", "partitions": [1], "topic_id": "AAAAAAAAAAEAAAAAAAAAAQ"}
        ],
    }
    return line


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yields each container in a parsed line, with a key or an index of one of its values."""
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


def changed(rng: random.Random, line: dict[str, Any]) -> None:
    """Changes a value of the line, removes it, adds a second one, or adds a field."""
    container, key = rng.choice(list(places(line)))
    kind = rng.random()
    if kind < 0.2:
        del container[key]
    elif kind < 0.4 and isinstance(container, list):
        container.insert(rng.randrange(len(container) + 1), copy.deepcopy(container[key]))
    elif kind < 0.5 and isinstance(container, dict):
        names = ("racks", "topic_id", "initialized", "user_data", "process_id", "x")
        name = rng.choice((*names, "streams", "owned_topics"))
        container[name] = copy.deepcopy(rng.choice(WRONG))
    elif kind < 0.55:
        line["members"] = [{"member_id": "m", "topics": [], "owned_partitions": [DELETED]}]
    else:
        container[key] = copy.deepcopy(rng.choice(WRONG))


@pytest.mark.parametrize("seed", range(20))
def test_changed_lines_are_read_alike(seed: int) -> None:
    rng = random.Random(seed)
    outcomes = []
    for _ in range(200):
        line = rich_line() if rng.random() < 0.8 else copy.deepcopy(VALID_STREAMS)
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            changed(rng, line)
        text = json.dumps(line, ensure_ascii=rng.random() < 0.5)
        if rng.random() < 0.1:
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice(("", "0", '"', "\\", ",", "é")) + text[at + 1 :]
        sent = text if rng.random() < 0.3 else text.encode("utf-8", "surrogatepass")
        outcomes.append(outcome(from_json, sent))
        assert outcomes[-1] == outcome(read_by_reference, sent), text
        assert outcome(from_dict, line) == outcome(read_fields, line), text
    groups = sum(one[0] is GroupSpec for one in outcomes if isinstance(one, tuple))
    assert 20 < groups < 180  # right lines and wrong ones


def with_second_fields(rng: random.Random, value: Any) -> str:
    """Writes a value; some fields of its objects occur twice, the second time with other values."""
    if isinstance(value, list):
        return f"[{', '.join(with_second_fields(rng, one) for one in value)}]"
    if not isinstance(value, dict):
        return json.dumps(value)
    written = []
    for name, one in value.items():
        written.append(f"{json.dumps(name)}: {with_second_fields(rng, one)}")
        if rng.random() < 0.15:
            escaped = "".join(f"\\u{ord(letter):04x}" for letter in name)
            second = f'"{rng.choice((name, escaped))}": {rng.choice(SECOND)}'
            written.insert(rng.randrange(len(written) + 1), second)
    return f"{{{', '.join(written)}}}"


@pytest.mark.parametrize("seed", range(10))
def test_the_last_of_two_equal_fields_counts(seed: int) -> None:
    rng = random.Random(seed)
    sent = [with_second_fields(rng, rich_line()) for _ in range(100)]
    outcomes = [outcome(from_json, line) for line in sent]
    assert outcomes == [outcome(read_by_reference, line) for line in sent]
    assert 10 < sum(one[0] is GroupSpec for one in outcomes if isinstance(one, tuple)) < 90


@pytest.mark.parametrize("path", NUMBERS)
@pytest.mark.parametrize(
    "number", ["-0", "-0.0", "1.0", "1e0", "2147483647.0", "9223372036854775808"]
)
def test_numbers_are_whole_if_the_reference_says_so(
    path: tuple[str | int, ...], number: str
) -> None:
    line = rich_line()
    container: Any = line
    for key in path[:-1]:
        container = container[key]
    container[path[-1]] = "HERE"
    sent = json.dumps(line).replace('"HERE"', number)
    assert outcome(from_json, sent) == outcome(read_by_reference, sent)


def test_the_core_reads_right_lines_itself() -> None:
    for line in (as_bytes(VALID), as_bytes(rich_line()), json.dumps(VALID)):
        assert _core.read_line(line, LIMIT) is not None
        assert outcome(from_json, line) == outcome(read_by_reference, line)
    for wrong in (b"{", b"\xff", as_bytes(VALID_STREAMS), as_bytes(VALID | {"members": []}), 5):
        assert _core.read_line(wrong, LIMIT) is None
    assert _core.read_line(as_bytes(VALID), "no number") is None


def test_a_group_of_the_core_answers_as_a_group_of_the_reference() -> None:
    for assignor in ("range", "roundrobin", "sticky", "cooperative-sticky"):
        line = as_bytes(rich_line() | {"assignor": assignor})
        read, reference = GroupSpec.from_json(line), read_by_reference(line)
        assert kr.assign(read) == kr.assign(reference, engine="reference")
        assert kr.plan(read, changes=["add-members=1"]).figures() == (
            kr.plan(reference, changes=["add-members=1"], engine="reference").figures()
        )
        assert hash(read) == hash(reference)


def test_a_subclass_runs_its_own_constructor() -> None:
    class Loud(GroupSpec):
        def __post_init__(self, max_partitions: int) -> None:
            raise ValueError("constructed")

    with pytest.raises(ValueError, match="constructed"):
        Loud.from_json(as_bytes(VALID))


# TopicPartitions ----------------------------------------------------------------------------------


def answered() -> kr.Assignment:
    topics = (kr.Topic("t", 700), kr.Topic("ü", 3))
    members = tuple(kr.Member(f"m{n}", ("t", "ü")) for n in range(3))
    return kr.assign(kr.GroupSpec("g", topics, members), "range")


def by_constructor(answer: kr.Assignment) -> dict[str, tuple[kr.TopicPartition, ...]]:
    return {
        member_id: tuple(
            kr.TopicPartition(answer.topics[answer.topic_ids[i]], answer.partitions[i])
            for i in range(answer.offsets[m], answer.offsets[m + 1])
        )
        for m, member_id in enumerate(answer.member_ids)
    }


@pytest.mark.parametrize("whole", [False, True])
def test_partitions_are_those_that_the_class_makes(whole: bool) -> None:
    answer = answered()
    made: Mapping[str, tuple[kr.TopicPartition, ...]]
    made = dict(answer.items()) if whole else {one: answer[one] for one in answer}
    expected = by_constructor(answer)
    assert typed(tuple(made.values())) == typed(tuple(expected.values()))
    for mine, theirs in zip(made.values(), expected.values(), strict=True):
        assert [hash(tp) for tp in mine] == [hash(tp) for tp in theirs]
        assert repr(mine) == repr(theirs)
        assert set(mine) == set(theirs)
        assert [tp._replace(partition=1) for tp in mine] == [(tp.topic, 1) for tp in theirs]


def test_an_assignment_keeps_what_it_made_in_the_order_of_members() -> None:
    answer = answered()
    last, first = answer["m2"], answer["m0"]
    assert answer["m2"] is last
    assert list(answer.items()) == [("m0", first), ("m1", answer["m1"]), ("m2", last)]
    assert list(answer.values()) == [first, answer["m1"], last]
    assert answer["m1"] is answer["m1"]
    with pytest.raises(KeyError):
        answer["m3"]


def test_answers_for_one_group_share_their_partitions() -> None:
    topics, members = (kr.Topic("t", 700),), (kr.Member("m0", ("t",)), kr.Member("m1", ("t",)))
    group = kr.GroupSpec("g", topics, members)
    single, whole = kr.assign(group, "range"), kr.assign(group, "roundrobin")
    shared = {id(tp) for member_id in single for tp in single[member_id]}
    assert {id(tp) for owned in whole.values() for tp in owned} == shared
    assert typed(tuple(whole.values())) == typed(tuple(by_constructor(whole).values()))
    assert pickle.loads(pickle.dumps(whole)) == whole


def test_claims_of_partitions_that_do_not_exist_take_no_room() -> None:
    ghost = (kr.TopicPartition("t", MAX), kr.TopicPartition("gone", MAX))
    members = (kr.Member("m0", ("t",), owned_partitions=ghost, generation_id=1),)
    group = kr.GroupSpec("g", (kr.Topic("t", 2),), members)
    for assignor in ("sticky", "cooperative-sticky"):
        answer = kr.assign(group, assignor)
        assert answer == kr.assign(group, assignor, engine="reference")
        assert typed(tuple(answer.values())) == typed(tuple(by_constructor(answer).values()))
