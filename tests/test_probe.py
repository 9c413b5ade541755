# SPDX-License-Identifier: Apache-2.0
"""`probe`: real clients lead made-up groups, and answer as their library's assignors do.

The expected answers do not come from the probe: they are recorded answers of librdkafka, those of
the installed libraries' classes, and for Java those of our assignors, which other tests compare
with Kafka's classes.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import re
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.wire import (
    by_topic,
    decode_cooperative_user_data,
    decode_sticky_user_data,
    decode_subscription,
)

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")

from kafka_rebalance.serve.probe_cases import probe_case
from kafka_rebalance.serve.probed_client import ProbedClient
from tests.support.broker import java, missing_tools
from tests.support.generate import generate
from tests.support.generate_sent import by_bytes, group_of

VECTORS = Path(__file__).resolve().parent / "vectors"
Case = dict[str, Any]


def led(cases: Iterable[Case], **client: Any) -> list[dict[str, Any]]:
    """Returns the results of a client that leads the cases; all cases have one assignor."""
    made = [probe_case(json.dumps(case)) for case in cases]

    async def results() -> list[dict[str, Any]]:
        async with ProbedClient(made[0].protocol, **client) as probed:
            return [result async for result in probed.results(made)]

    return asyncio.run(results())


def ours(case: Case) -> dict[str, Any]:
    try:
        assigned = kr.assign(group_of(case), case["assignor"])
        return {"assignment": {m: [list(tp) for tp in owned] for m, owned in assigned.items()}}
    except kr.GroupError as error:
        return {"error": str(error)}


def on_the_wire(assignment: dict[str, Any]) -> dict[str, dict[str, list[int]]]:
    """Returns an assignment as Java and Python send it: by topic, in order of first appearance."""
    return {member: by_topic(map(tuple, owned)) for member, owned in assignment.items()}


# librdkafka ---------------------------------------------------------------------------------------


def vectors(assignor: str) -> list[tuple[Case, dict[str, Any]]]:
    file = VECTORS / f"librdkafka-{assignor}.jsonl.gz"
    lines = gzip.decompress(file.read_bytes()).decode().splitlines()
    return [(found["case"], found["expected"]) for found in map(json.loads, lines)]


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
def test_librdkafka_answers_as_it_was_recorded(assignor: str) -> None:
    """Uses every fifth vector. A run by hand over all 1,517 had equal lists and the 21 crashes."""
    pytest.importorskip("confluent_kafka", reason="it is not installed")
    chosen = [(case, one) for case, one in vectors(assignor) if "error" not in one][::5]
    results = led((case for case, _ in chosen), library="confluent-kafka")
    assert len(results) >= 40
    for (case, expected), result in zip(chosen, results, strict=True):
        assert result["group_id"] == case["group_id"]
        assert result["assignment"] == expected["assignment"]


def test_a_group_that_kills_its_leader_is_an_error_and_harms_no_other() -> None:
    pytest.importorskip("confluent_kafka", reason="it is not installed")
    recorded = vectors("cooperative-sticky")
    deadly = [case for case, expected in recorded if "error" in expected][:2]
    harmless = [(case, expected) for case, expected in recorded if "error" not in expected][:6]
    cases = [case for case, _ in harmless]
    results = led([*cases[:3], *deadly, *cases[3:]], library="confluent-kafka")
    died = [one["error"] for one in (results.pop(3), results.pop(3))]
    for text in died:
        assert re.match("the client's process ended with signal SIG(SEGV|ABRT)", text)
    assert [one["assignment"] for one in results] == [one["assignment"] for _, one in harmless]


# The Python libraries -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("library", "package", "assignor"),
    [
        ("kafka-python", "kafka", "range"),
        ("kafka-python", "kafka", "roundrobin"),
        ("aiokafka", "aiokafka", "range"),
        ("aiokafka", "aiokafka", "roundrobin"),
    ],
)
def test_a_python_library_answers_as_its_own_class(
    library: str, package: str, assignor: str
) -> None:
    pytest.importorskip(package, reason=f"{library} is not installed")
    drawn = generate(20, 300, (assignor,), lambda _: {})
    # kafka-python refuses subscriptions to names that are not legal in Kafka.
    legal = re.compile(r"[a-zA-Z0-9._-]+")
    cases = [
        {**case, "assignor": f"{library}/{assignor}"}
        for case in drawn
        if all(legal.fullmatch(t) for member in case["members"] for t in member["topics"])
    ]
    # Groups on which the library's class raises an error are left out: it would end the consumer.
    cases = [case for case in cases if "error" not in ours(case)][:40]
    assert len(cases) == 40
    for case, result in zip(cases, led(cases, library=library), strict=True):
        expected = ours(case)
        assert on_the_wire(result["assignment"]) == on_the_wire(expected["assignment"])


# Java ---------------------------------------------------------------------------------------------


def java_command(assignor: str) -> str:
    """Returns a command that starts four consumers with our Java program `Consumers`.

    The program reads the description of the consumers from its standard input.
    """
    configs = {"metadata.max.age.ms": "20", "retry.backoff.ms": "1", "retry.backoff.max.ms": "1"}
    members = [
        {
            "client_id": f"probe-{number}",
            "group_id": f"probe-{number}",
            "assignors": [assignor],
            "topics": ["kafka-rebalance-probe"],
            "configs": {**configs, "session.timeout.ms": "30000"},
        }
        for number in range(4)
    ]
    line = shlex.quote(json.dumps({"wait": False, "add": members}))
    program = shlex.join(java("kafkarebalance.Consumers", "{address}", log="off"))
    return shlex.join(["sh", "-c", f"(echo {line}; cat) | {program}"])


def newest_generation(case: Case) -> int:
    """Returns the newest generation in a group, by which the groups are sorted.

    Java's sticky assignors remember the newest generation that they have seen, so a later group
    must not be older, as in a real consumer's life.
    """
    found = [-1]
    for member in case["members"]:
        sent = decode_subscription(bytes.fromhex(member["subscription"]))
        data = sent.user_data or b""
        if case["assignor"] == "sticky":
            found.append(_or_none(decode_sticky_user_data(data).generation_id))
        elif case["assignor"] == "cooperative-sticky" and sent.version < 2:
            found.append(decode_cooperative_user_data(data))
        else:
            found.append(_or_none(sent.generation_id))
    return max(found)


def _or_none(generation: int | None) -> int:
    return -1 if generation is None else generation


@pytest.mark.live
@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky"])
def test_java_through_the_probe_equals_our_assignors(assignor: str) -> None:
    """Members send bytes of every version and library; groups on which Java throws are left out."""
    missing = missing_tools()
    if missing:
        pytest.skip(missing)
    rng = random.Random(20)
    drawn = (by_bytes(case, rng) for case in generate(20, 140, (assignor,), ours))
    cases = [(case, expected) for case in drawn if "error" not in (expected := ours(case))][:100]
    cases.sort(key=lambda one: newest_generation(one[0]))
    assert len(cases) == 100
    results = led((case for case, _ in cases), command=java_command(assignor))
    for (_, expected), result in zip(cases, results, strict=True):
        assert on_the_wire(result["assignment"]) == on_the_wire(expected["assignment"])


# Cases and the command ----------------------------------------------------------------------------


def test_members_are_written_as_their_library_writes_them() -> None:
    """`wire.sent_member` reads a contract member back from the bytes, in every version."""
    topics = (kr.Topic("b", 2), kr.Topic("a", 2))
    owned = (kr.TopicPartition("b", 1), kr.TopicPartition("a", 0))
    for version in (None, 0, 1, 2, 3):
        member = kr.Member("m", ("b", "a"), None, owned_partitions=owned, generation_id=4)
        sent = kr.Member(
            "m", ("b", "a"), owned_partitions=owned, generation_id=4, subscription_version=version
        )
        line = kr.GroupSpec("g", topics, (sent,), assignor="cooperative-sticky").to_json()
        read = decode_subscription(probe_case(line).members[0].metadata)
        assert read.version == (3 if version is None else version)
        assert read.topics == (("a", "b") if version is None else member.topics)
        kept = () if version == 0 else owned[::-1] if version is None else owned
        assert read.owned_partitions == kept
        assert read.user_data == (4).to_bytes(4, "big")


def test_the_command_answers_each_line_in_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("aiokafka", reason="it is not installed")
    topic = {"name": "t", "partitions": 3}
    members = [{"member_id": "b", "topics": ["t"]}, {"member_id": "a", "topics": ["t"]}]
    group = {"group_id": "g", "topics": [topic], "members": members}
    lines = [
        json.dumps({**group, "assignor": "range"}),
        json.dumps({**group, "assignor": "range", "topics": 3}),
        json.dumps({**group, "assignor": "roundrobin"}),
        json.dumps({**group, "assignor": "range", "members": []}),
        json.dumps(group),
    ]
    file = tmp_path / "groups.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    assert main(["probe", str(file), "--client", "aiokafka"]) == 3
    out, err = capsys.readouterr()
    first, second, third, *rest = map(json.loads, out.splitlines())
    assert first["assignment"] == {"b": [["t", 2]], "a": [["t", 0], ["t", 1]]}
    assert "topics" in second["error"]
    assert third["assignment"] == {"b": [["t", 1]], "a": [["t", 0], ["t", 2]]}
    assert rest[0]["error"] == "members: empty; a leader is always a member itself"
    assert rest[1]["error"].startswith("assignor: missing")
    assert re.fullmatch(r"5 groups, 3 errors, \d+ a minute\n", err)


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (
            shlex.join([sys.executable, "-c", "raise SystemExit('no such client')"]),
            "the client's process ended with exit code 1: no such client",
        ),
        (
            "/no/such/client {address}",
            "/no/such/client cannot be started: No such file or directory",
        ),
    ],
)
def test_a_command_that_cannot_run_is_an_error(
    command: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "groups.jsonl"
    group = {"group_id": "g", "assignor": "range", "topics": []}
    member = {"member_id": "m", "topics": ["t"]}
    file.write_text(json.dumps({**group, "members": [member]}), encoding="utf-8")
    assert main(["probe", str(file), "--command", command]) == 2
    assert f"--command: {problem}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ('"x', '"x cannot be split into words as a shell does: No closing quotation'),
        ("", "empty; give a program and its arguments"),
        (" ", "empty; give a program and its arguments"),
        ("'' x", "empty; give a program and its arguments"),
    ],
)
def test_a_command_that_is_none_is_wrong_usage(
    command: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["probe", "no-such-file", "--command", command])
    assert ended.value.code == 2
    assert f"argument --command: {problem}" in capsys.readouterr().err
