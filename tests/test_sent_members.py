# SPDX-License-Identifier: Apache-2.0
"""Members' bytes of every version and library are decoded as Kafka's assignors decode them."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.assignors import CooperativeSticky
from kafka_rebalance.cli import main
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.live.classic_groups import described_line
from kafka_rebalance.member.subscriber import assignments
from kafka_rebalance.wire import consumer_protocol as wire
from kafka_rebalance.wire.classic_groups import JoinedMember
from kafka_rebalance.wire.consumer_protocol import AssignmentData, Subscription
from kafka_rebalance.wire.sent_members import leader_library, sent_member
from tests.support.generate_sent import group_of
from tools.check_vectors import agrees
from tools.differential import difference

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine
    from tests.support.oracle import Oracle


def _owned(*partitions: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition("t", p) for p in partitions)


def _of_version(version: int, owned: tuple[TopicPartition, ...], generation: int) -> Subscription:
    """Makes a Java client's subscription of this version, without user data."""
    return Subscription(
        ("t",),
        owned_partitions=owned if version >= 1 else (),
        generation_id=generation if version >= 2 else None,
        version=version,
    )


def _group(assignor: str, *members: tuple[str, Subscription]) -> kr.GroupSpec:
    seen = tuple(sent_member(member_id, sent, assignor) for member_id, sent in members)
    return kr.GroupSpec("g", (kr.Topic("t", 4),), seen)


def _sticky(version: int, owned: tuple[TopicPartition, ...], generation: int) -> Subscription:
    sent = _of_version(version, (), generation)
    return Subscription(
        sent.topics,
        wire.encode_sticky_user_data(owned, generation),
        generation_id=sent.generation_id,
        version=version,
    )


def _cooperative(version: int, owned: tuple[TopicPartition, ...], generation: int) -> Subscription:
    sent = _of_version(version, owned, generation)
    return Subscription(
        sent.topics,
        wire.encode_cooperative_user_data(generation),
        sent.owned_partitions,
        sent.generation_id,
        version=version,
    )


def test_a_generation_in_user_data_alone(engine: Engine) -> None:
    """Version 1 has no field for the generation; in the user data, a sends 7 and b sends 3."""
    for assignor, sent in (("sticky", _sticky), ("cooperative-sticky", _cooperative)):
        group = _group(
            assignor, ("a", sent(1, _owned(0, 1, 2, 3), 7)), ("b", sent(1, _owned(0, 1), 3))
        )
        answer = kr.assign(group, assignor, engine=engine)
        assert answer.to_dict() == {"a": [["t", 2], ["t", 3]], "b": [["t", 0], ["t", 1]]}


def test_members_of_mixed_versions(engine: Engine) -> None:
    group = _group(
        "cooperative-sticky",
        ("m0", _cooperative(3, _owned(0, 2), 4)),
        ("m1", _cooperative(1, _owned(1, 2, 3), 4)),
    )
    answer = kr.assign(group, "cooperative-sticky", engine=engine)
    assert answer.to_dict() == {"m0": [["t", 0]], "m1": [["t", 1], ["t", 3]]}


@pytest.mark.parametrize("version", [0, 1, 2, 3])
@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_the_contract_says_what_was_sent(version: int, assignor: str) -> None:
    sent = _sticky if assignor == "sticky" else _cooperative
    group = _group(assignor, ("a", sent(version, _owned(3, 0), 7)))
    assert kr.GroupSpec.from_json(group.to_json()) == group


def test_a_line_without_the_new_fields_is_the_newest_java_client() -> None:
    line = '{"group_id":"g","topics":[],"members":[{"member_id":"a","topics":["t"],"rack_id":"r"}]}'
    member = kr.GroupSpec.from_json(line).members[0]
    assert (member.version, member.rack, member.user_data) == (3, "r", None)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"subscription_version": 4}, "4 is not a subscription version from 0 to 3"),
        ({"subscription_version": "1"}, "a string is not a subscription version"),
        ({"user_data": "v1"}, '"v1" is not "none" or "partitions"'),
        (
            {"user_data_generation_id": 2**31},
            "2147483648 is not a generation from -2147483648 to 2147483647",
        ),
    ],
)
def test_wrong_fields_are_named(fields: dict[str, Any], problem: str) -> None:
    from kafka_rebalance.bulk.lines import assign_lines
    from kafka_rebalance.group.contract import dumps

    line = {
        "group_id": "g",
        "topics": [],
        "members": [{"member_id": "a", "topics": []} | fields],
    }
    message = f"members[0].{next(iter(fields))}: {problem}"
    with pytest.raises(kr.GroupError) as raised:
        kr.GroupSpec.from_dict(line)
    assert str(raised.value) == message
    for engine in ("rust", "reference"):
        (answer,) = assign_lines([dumps(line).encode()], assignor="range", engine=engine)
        assert message.replace('"', '\\"') in answer.line.decode()


def test_a_leading_consumer_reads_members_bytes_in_the_same_way() -> None:
    """The simulated leader decodes subscriptions of mixed versions as a real leader does."""
    joined = [
        JoinedMember("m0", None, wire.encode_subscription(_cooperative(3, _owned(0, 2), 4))),
        JoinedMember("m1", None, wire.encode_subscription(_cooperative(1, _owned(1, 2, 3), 4))),
    ]
    answers = dict(assignments(CooperativeSticky(), joined, {"t": kr.Topic("t", 4)}))
    given = {m: wire.decode_assignment(data).partitions for m, data in answers.items()}
    assert given == {"m0": _owned(0), "m1": _owned(1, 3)}


def test_user_data_that_nobody_reads_is_no_claim() -> None:
    """kafka-python's sticky user data begin with a version, so Java cannot decode them."""
    data = struct.pack(">h", 1) + wire.encode_sticky_user_data(_owned(0), 3)
    member = sent_member("a", Subscription(("t",), data, version=0), "sticky")
    assert (member.owned_partitions, member.user_data) == ((), "none")


def test_user_data_without_a_generation() -> None:
    data = wire.encode_sticky_user_data(_owned(0), -1)
    member = sent_member("a", Subscription(("t",), data, version=0), "sticky")
    assert (member.owned_partitions, member.user_data) == (_owned(0), "partitions")


# Bytes against Kafka's classes ----------------------------------------------------------------


@pytest.mark.oracle
def test_mixed_versions_by_bytes(oracle: Oracle) -> None:
    """Java, the reference and Rust agree on members of mixed versions that are given as bytes."""
    cases: list[list[tuple[str, int, tuple[TopicPartition, ...], int]]] = [
        [("a", 1, _owned(0, 1, 2, 3), 7), ("b", 1, _owned(0, 1), 3)],
        [("m0", 3, _owned(0, 2), 4), ("m1", 1, _owned(1, 2, 3), 4)],
    ]
    for assignor, sent in (("sticky", _sticky), ("cooperative-sticky", _cooperative)):
        for members in cases:
            case = {
                "group_id": "g",
                "assignor": assignor,
                "topics": [{"name": "t", "partitions": 4}],
                "members": [
                    {
                        "member_id": member_id,
                        "subscription": wire.encode_subscription(
                            sent(version, owned, generation)
                        ).hex(),
                    }
                    for member_id, version, owned, generation in members
                ],
            }
            answers: dict[str, dict[str, Any]] = {"oracle": oracle.ask(case)}
            for engine in BOTH:
                answer = kr.assign(group_of(case), assignor, engine=engine)
                answers[engine] = {"assignment": answer.to_dict()}
            assert difference(answers) is None


BOTH: tuple[Engine, ...] = ("reference", "rust")
SENT = Path(__file__).resolve().parent / "vectors" / "sent.jsonl.gz"


def test_members_as_bytes(engine: Engine) -> None:
    """For members' bytes of all versions, our answers equal stored answers of Java."""
    vectors = [json.loads(line) for line in gzip.decompress(SENT.read_bytes()).splitlines()]
    for vector in vectors:
        case = vector["case"]
        try:
            answer = kr.assign(group_of(case), case["assignor"], engine=engine)
            got: dict[str, Any] = {"assignment": answer.to_dict()}
        except kr.GroupError as error:
            got = {"error": str(error)}
        assert agrees(vector["expected"], got), case["group_id"]


# A live group's description -------------------------------------------------------------------


def _described(
    member_id: str, sent: Subscription, given: AssignmentData | None, client_id: str = "app"
) -> SimpleNamespace:
    return SimpleNamespace(
        member_id=member_id,
        group_instance_id=None,
        client_id=client_id,
        client_host="/127.0.0.1",
        member_metadata=wire.encode_subscription(sent),
        member_assignment=b"" if given is None else wire.encode_assignment(given),
    )


def test_a_snapshot_keeps_what_each_member_sends() -> None:
    """One member uses Java, one kafka-python, and one aiokafka, which sends no generation."""
    given = AssignmentData(_owned(0), version=3)
    members = [
        _described("j", _sticky(3, _owned(0), 4), given),
        _described("a", _sticky(0, _owned(1), -1), given, "aiokafka-0.14.0"),
        _described("k", Subscription(("t",), b"", version=0), None, "kafka-python-3.0.12"),
    ]
    group = SimpleNamespace(group_id="g", protocol_data="sticky", members=members)
    line = described_line(group)
    java, aiokafka, kafka_python = line["members"]
    assert line["generation_id"] == 5
    assert "subscription_version" not in java
    assert (aiokafka["subscription_version"], aiokafka["user_data"]) == (0, "partitions")
    assert (kafka_python["subscription_version"], kafka_python["user_data"]) == (0, "none")
    # The new member is like member a, so it sends what a sends.
    spec = kr.GroupSpec.from_dict(line | {"topics": [{"name": "t", "partitions": 3}]})
    played = kr.plan(spec, "sticky", ["add-members=1,like=a"])
    assert [m.generation_id for m in played.final.members] == [6, 6, 6, 6]
    assert [m.user_data for m in played.final.members] == [None, "partitions", "none", "partitions"]


def test_the_assignments_tell_whose_assignor_led() -> None:
    none, empty = AssignmentData(_owned(0), None), AssignmentData(_owned(0), b"", version=0)
    echoed = AssignmentData(_owned(0), b"\0\0\0\0", version=0)
    assert leader_library([none, None], [3, 3]) == "java"
    assert leader_library([empty, empty], [0, 0]) == "python"
    cooperative = AssignmentData(_owned(0), b"", version=1)
    assert leader_library([cooperative], [1]) == "python"
    assert leader_library([empty, echoed], [3, 1]) == "librdkafka"
    null = AssignmentData(_owned(0), None, version=0)
    assert leader_library([null], [3]) == "librdkafka"
    assert leader_library([empty, empty], [3, 3]) == "librdkafka"  # all send empty user data
    assert leader_library([None], [3]) is None


@pytest.mark.parametrize("command", ["plan", "compare"])
def test_plans_say_whose_answer_they_are(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If librdkafka led the group, the output names librdkafka's assignor."""
    member = kr.Member("a", ("t",), owned_partitions=_owned(0), generation_id=1)
    topics = (kr.Topic("t", 1),)
    for library, told in (("librdkafka", True), ("java", False), (None, False)):
        group = kr.GroupSpec("g", topics, (member,), "range", leader_library=library)
        file = tmp_path / "group.jsonl"
        file.write_text(group.to_json() + "\n", encoding="utf-8")
        assert main([command, str(file)]) == 0
        assert ("librdkafka/range" in capsys.readouterr().out) is told


@pytest.mark.parametrize(
    ("listed", "client_id", "protocol"),
    [
        ("kafka-rebalance/weighted", "app", "cooperative"),
        ("kafka-rebalance/weighted-eager", "app", "eager"),
    ],
)
def test_a_group_of_our_own_assignor_is_read_by_its_name_in_join_group(
    listed: str, client_id: str, protocol: str
) -> None:
    """A plan of it is cooperative or eager, as its members are."""
    given = [AssignmentData(_owned(0, 1), version=3), AssignmentData(_owned(2), version=3)]
    members = [_described(f"m{n}", _sticky(3, (), 4), g, client_id) for n, g in enumerate(given)]
    group = SimpleNamespace(group_id="g", protocol_data=listed, members=members)
    line = described_line(group) | {"topics": [{"name": "t", "partitions": 3}]}
    spec = kr.GroupSpec.from_dict(line)
    assert spec.assignor == "weighted"
    planned = kr.plan(spec, None, [kr.AddMembers(1)])
    assert {one.kind for one in planned.rounds} == {protocol}
    assert len({*planned.before["m0"]} - {*planned.after["m0"]}) <= 1  # it claims what it had
