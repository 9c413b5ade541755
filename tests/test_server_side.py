# SPDX-License-Identifier: Apache-2.0
"""The brokers' assignors: their fields in contract lines, all interfaces, and errors."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.assignors.registry import PLUG_IN, SERVER_SIDE
from kafka_rebalance.bulk import assign_batch, compare_batch, plan_batch
from kafka_rebalance.bulk.batch import contract_schema
from kafka_rebalance.bulk.lines import assign_lines
from kafka_rebalance.cli import main
from kafka_rebalance.group.model import uuid_of
from kafka_rebalance.java.hash_map import uuid_hash
from tests.support import contract_lines
from tests.support.generate_server import topic_id
from tools import differential

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine

RECORDED = Path(__file__).resolve().parent / "data" / "modern_live_assigned.jsonl.gz"
VECTORS = Path(__file__).resolve().parent / "vectors"
A, B = topic_id("a"), topic_id("b")
IN_CORE = [name for name in SERVER_SIDE if name != PLUG_IN]
"""All but the plug-in `consumer/balanced`: see `test_balanced_in_brokers.py`."""


def _vectors(name: str) -> list[dict[str, Any]]:
    file = VECTORS / f"{name.replace('/', '-')}.jsonl.gz"
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _line(**fields: Any) -> dict[str, Any]:
    topics = [{"name": "a", "partitions": 4, "topic_id": A}]
    members = [{"member_id": "m", "topics": ["a"]}]
    return {"group_id": "g", "topics": topics, "members": members} | fields


def test_the_tool_knows_every_assignor_of_the_brokers() -> None:
    assert set(differential.SERVER_SIDE) == set(SERVER_SIDE)


# The contract -------------------------------------------------------------------------------------


def test_topic_ids_are_kafkas() -> None:
    """Uuid.METADATA_TOPIC_ID has the halves 0 and 1; Uuid.hashCode combines both halves."""
    assert uuid_of("AAAAAAAAAAAAAAAAAAAAAQ") == (0, 1)
    assert uuid_of("_____________________w") == (-1, -1)
    assert uuid_hash(uuid_of("AAAAAAAAAAAAAAAAAAAAAQ")) == 1
    assert uuid_hash((1 << 32, 0)) == 1


def _topic(name: str = "a", **fields: Any) -> dict[str, Any]:
    return {"name": name, "partitions": 1} | fields


def _owner(topic: str, owned_id: Any) -> dict[str, Any]:
    owned = {"topic": topic, "partitions": [0], "topic_id": owned_id}
    return {"member_id": "m", "topics": ["a"], "owned_partitions": [owned]}


OWNED = "members[0].owned_partitions[0].topic_id"
ELSEWHERE = 'is not the id that "a" has elsewhere; give a deleted topic another name'


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (
            {"topics": [_topic(topic_id="short")]},
            'topics[0].topic_id: "short" is not a topic id of 22 characters in base64',
        ),
        (
            {"topics": [_topic(topic_id=A), _topic("b", topic_id=A)]},
            f'topics[1].topic_id: "{A}" is already the id of topics[0]',
        ),
        ({"topics": [_topic(topic_id=7)]}, "topics[0].topic_id: a number is not a string"),
        (
            {"topics": [_topic(initialized=[0, 1])]},
            "topics[0].initialized[1]: 1 is not one of the topic's 1 partitions",
        ),
        ({"topics": [_topic(initialized="all")]}, "topics[0].initialized: a string is not a list"),
        (
            {"topics": [_topic(initialized=[-1])]},
            "topics[0].initialized[0]: -1 is not a partition from 0 to 2147483647",
        ),
        (
            {"members": [_owner("a", B)]},
            f'{OWNED}: "{B}" {ELSEWHERE}',
        ),
        (
            {"members": [_owner("gone", "?")]},
            f'{OWNED}: "?" is not a topic id of 22 characters in base64',
        ),
        ({"members": [_owner("gone", 1)]}, f"{OWNED}: a number is not a string"),
        (
            {"topics": [_topic(topic_id=A), _topic()], "members": [_owner("a", A)]},
            'topics[1].name: "a" is already the name of topics[0]',
        ),
        (
            {"topics": [_topic(topic_id=A)], "members": [_owner("gone", A)]},
            f'topics[1].topic_id: "{A}" is already the id of topics[0]',
        ),
    ],
)
def test_bad_fields_are_named_by_both_engines(change: dict[str, Any], error: str) -> None:
    line = json.dumps(_line(assignor="consumer/uniform") | change).encode()
    assert contract_lines.error_of_both(line) == error


def test_columns_name_bad_fields() -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="no pyarrow: pip install -e '.[arrow]'")
    line = _line(assignor="consumer/uniform", members=[_owner("a", B)])
    (answer,) = assign_batch(pyarrow.RecordBatch.from_pylist([line])).to_pylist()
    assert answer["error"].startswith(f'{OWNED}: "{B}" is not the id that "a" has elsewhere')


def test_a_line_keeps_its_new_fields() -> None:
    """A deleted topic that a member owns is added to the topics, with 0 partitions."""
    topics = [_topic(topic_id=A, initialized=[0]), _topic("b")]
    group = kr.GroupSpec.from_dict(_line(topics=topics, members=[_owner("gone", B)]))
    assert group.topics[0] == kr.Topic("a", 1, None, A, (0,))
    assert group.topics[2] == kr.Topic("gone", 0, None, B)
    assert kr.GroupSpec.from_json(group.to_json()) == group
    assert json.loads(group.to_json())["topics"][0] == topics[0]


def test_members_own_assignors_ignore_the_new_fields(engine: Engine) -> None:
    with_ids = _line(members=[_owner("gone", B)])
    without = _line(topics=[{"name": "a", "partitions": 4}])
    for name in ("range", "cooperative-sticky"):
        answers = [
            kr.assign(kr.GroupSpec.from_dict(line), name, engine=engine)
            for line in (with_ids, without)
        ]
        assert answers[0].to_dict() == answers[1].to_dict() == {"m": [["a", p] for p in range(4)]}


@pytest.mark.parametrize("name", [name for name in SERVER_SIDE if name != "streams/sticky"])
def test_ids_that_are_missing_are_named(name: str, engine: Engine) -> None:
    without = kr.GroupSpec.from_dict(_line(topics=[_topic()]))
    with pytest.raises(kr.GroupError) as raised:
        kr.assign(without, name, engine=engine)
    problem = f"missing; {name} reads it, and kafka-topics.sh --describe shows it"
    assert str(raised.value) == f"topics[0].topic_id: {problem}"
    member = {"member_id": "m", "topics": ["a"]}
    gone = member | {"owned_partitions": [{"topic": "gone", "partitions": [1]}]}
    with pytest.raises(kr.GroupError) as raised:
        kr.assign(kr.GroupSpec.from_dict(_line(members=[gone])), name, engine=engine)
    assert str(raised.value).startswith('members[0].owned_partitions: "gone" is not a topic of')


# Interfaces ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", IN_CORE)
def test_every_entrance_takes_the_name(
    name: str, engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vectors = [one for one in _vectors(name)[:40] if "error" not in one["expected"]]
    lines = [json.dumps(one["case"]).encode() for one in vectors]
    for one, answer in zip(vectors, assign_lines(lines, engine=engine), strict=True):
        given = json.loads(answer.line)
        assert {part: given.get(part) for part in one["expected"]} == one["expected"]
    group = kr.GroupSpec.from_dict(vectors[0]["case"])
    file = tmp_path / "group.jsonl"
    file.write_text(group.edited(assignor="range").to_json() + "\n", encoding="utf-8")
    assert main(["assign", str(file), "--assignor", name, "--engine", engine]) == 0
    written = json.loads(capsys.readouterr().out)
    expected = {"group_id": group.group_id, "assignor": name} | vectors[0]["expected"]
    assert {part: written.get(part) for part in expected} == expected


@pytest.mark.parametrize("name", IN_CORE)
def test_columns_take_the_name(name: str) -> None:
    pytest.importorskip("pyarrow", reason="no pyarrow: pip install -e '.[arrow]'")
    from tests.support.vector_columns import columns_answer

    columns_answer(_vectors(name))


def test_a_plan_of_tasks_needs_a_topology(engine: Engine) -> None:
    group = kr.GroupSpec.from_dict(_line(assignor="range"))
    problem = "subtopologies: missing; streams/sticky assigns their tasks"
    with pytest.raises(kr.GroupError) as raised:
        kr.plan(group, "streams/sticky", engine=engine)
    assert str(raised.value) == problem
    streams = kr.GroupSpec.from_dict(contract_lines.VALID_STREAMS)
    with pytest.raises(kr.GroupError, match='"range" assigns no tasks, as a streams group needs'):
        kr.plan(streams, "range", engine=engine)


@pytest.mark.parametrize("name", SERVER_SIDE)
def test_a_switch_of_assignor_does_not_switch_the_protocol(name: str, engine: Engine) -> None:
    group = kr.GroupSpec.from_dict(_line(assignor="range"))
    leads = f"switch-protocol={name} leads to it" if name.startswith("consumer/") else "groups only"
    with pytest.raises(kr.GroupError, match=leads):
        kr.plan(group, None, [f"switch-assignor={name}"], engine=engine)
    assert name not in [one.assignor for one in kr.compare(group, engine=engine).candidates]


@pytest.mark.parametrize("name", IN_CORE)
def test_plans_in_bulk_are_those_of_one_group(name: str) -> None:
    """The core refuses these groups, so Python plays them; the other rows are the core's."""
    pyarrow = pytest.importorskip("pyarrow", reason="no pyarrow: pip install -e '.[arrow]'")
    own_line = _line(assignor=name)
    if name == "streams/sticky":
        with gzip.open(RECORDED, "rt") as recorded:
            found = (one for one in map(json.loads, recorded) if name in one["what"])
            own_line = next(found)["before"]
    lines = [_line(assignor="range"), own_line, _line(assignor="nobody's")]
    rows = pyarrow.RecordBatch.from_pylist(lines, contract_schema())
    group = kr.GroupSpec.from_dict(lines[1])
    for changes in (["add-members=1"], ["remove-member=none"], []):
        led, own, bad = plan_batch(rows, changes=changes).to_pylist()
        assert (led["assignor"], own["assignor"]) == ("range", name)
        assert bad["error"].startswith('assignor: "nobody\'s" is not known')
        if changes == ["remove-member=none"]:
            assert own["not_affected"].startswith("remove-member=none: no member has the")
            assert own["error"] is own["moves"] is None
            continue
        figures = kr.plan(group, None, changes).figures().to_dict()
        assert {key: own[key] for key in figures} == figures
    most = len(group.members)
    _, own, _ = plan_batch(rows, changes=[f"remove-members={most}"]).to_pylist()
    assert (own["error_kind"], own["moves"]) == ("no-members", None)
    _, compared, _ = compare_batch(rows).to_pylist()
    expected = kr.compare(group)
    assert (compared["recommended"], compared["reason"]) == (expected.recommended, expected.reason)
    assert [one["assignor"] for one in compared["candidates"]] == [
        one.assignor for one in expected.candidates
    ]


def test_spark_takes_the_names_that_the_core_has() -> None:
    pytest.importorskip("pyspark", reason="no pyspark: pip install -e '.[spark]'")
    from kafka_rebalance.bulk import calls

    for name in IN_CORE:
        calls.known(name)


# Answers ------------------------------------------------------------------------------------------


def test_members_share_partitions_soundly(engine: Engine) -> None:
    """A partition that two members share, or that is not initialised yet, is not an anomaly."""
    members = [{"member_id": f"m{n}", "topics": ["a"]} for n in range(4)]
    topics = [{"name": "a", "partitions": 3, "topic_id": A, "initialized": [0, 2]}]
    group = kr.GroupSpec.from_dict(_line(topics=topics, members=members))
    answer = kr.assign(group, "share/simple", engine=engine)
    assert sorted(tp.partition for owned in answer.values() for tp in owned) == [0, 0, 2, 2]
    assert answer.anomalies == ()


def test_a_topic_that_nobody_wants_any_more_is_reported(engine: Engine) -> None:
    """If subscriptions differ, Kafka's share assignor lets a member keep a topic that it left."""
    owned = [{"topic": "b", "partitions": [0]}]
    members = [
        {"member_id": "m0", "topics": ["a"], "owned_partitions": owned},
        {"member_id": "m1", "topics": []},
    ]
    topics = [{"name": n, "partitions": 1, "topic_id": i} for n, i in (("a", A), ("b", B))]
    group = kr.GroupSpec.from_dict(_line(topics=topics, members=members))
    answer = kr.assign(group, "share/simple", engine=engine)
    assert kr.TopicPartition("b", 0) in answer["m0"]
    assert [(one.kind, one.topic, one.member_id) for one in answer.anomalies] == [
        ("unsubscribed", "b", "m0")
    ]
