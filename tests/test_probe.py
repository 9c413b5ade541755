# SPDX-License-Identifier: Apache-2.0
"""`probe`: real clients lead made-up groups, and answer as their library's assignors do.

The judges are independent of the probe: recorded answers of librdkafka, the installed libraries'
own classes, and Java's in tools/oracle. Generated groups judge our `librdkafka/*` as well.
"""

from __future__ import annotations

import gzip
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.wire.consumer_protocol import decode_subscription

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")

from kafka_rebalance.serve.probe_cases import probe_case
from tests.support.broker import missing_tools
from tests.support.generate import generate
from tests.support.oracle import JAR
from tests.support.probed import Case, led, on_the_wire, ours
from tools import differential_probe

pytestmark = pytest.mark.process
VECTORS = Path(__file__).resolve().parent / "vectors"

# librdkafka ---------------------------------------------------------------------------------------


def vectors(assignor: str) -> list[tuple[Case, dict[str, Any]]]:
    file = VECTORS / f"librdkafka-{assignor}.jsonl.gz"
    lines = gzip.decompress(file.read_bytes()).decode().splitlines()
    return [(found["case"], found["expected"]) for found in map(json.loads, lines)]


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
def test_librdkafka_answers_as_it_was_recorded(assignor: str) -> None:
    """Uses every fifth vector. A manual run over all 1,517 vectors had equal lists and the 21
    crashes.
    """
    pytest.importorskip(
        "confluent_kafka", reason="no confluent-kafka: pip install -e '.[confluent]'"
    )
    chosen = [(case, one) for case, one in vectors(assignor) if "error" not in one][::5]
    results = led((case for case, _ in chosen), library="confluent-kafka")
    assert len(results) >= 40
    for (case, expected), result in zip(chosen, results, strict=True):
        assert result["group_id"] == case["group_id"]
        assert result["assignment"] == expected["assignment"]


def test_a_group_that_kills_its_leader_is_an_error_and_harms_no_other() -> None:
    pytest.importorskip(
        "confluent_kafka", reason="no confluent-kafka: pip install -e '.[confluent]'"
    )
    recorded = vectors("cooperative-sticky")
    deadly = [case for case, expected in recorded if "error" in expected][:2]
    harmless = [(case, expected) for case, expected in recorded if "error" not in expected][:6]
    cases = [case for case, _ in harmless]
    results = led([*cases[:3], *deadly, *cases[3:]], library="confluent-kafka")
    died = [one["error"] for one in (results.pop(3), results.pop(3))]
    for text in died:
        assert re.match("the client's process ended with signal SIG(SEGV|ABRT)", text)
    assert [one["assignment"] for one in results] == [one["assignment"] for _, one in harmless]


@pytest.mark.parametrize(
    ("dialect", "count"),
    [(dialect, 333 + ("range" in dialect)) for dialect in differential_probe.DIALECTS],
)
def test_generated_groups_get_librdkafkas_answers(dialect: str, count: int) -> None:
    """1,000 groups in all, in both engines; `tools/differential_probe.py` leads more."""
    pytest.importorskip(
        "confluent_kafka", reason="no confluent-kafka: pip install -e '.[confluent]'"
    )
    found = list(differential_probe.compare("confluent-kafka", dialect, seed=20, count=count))
    assert len(found) == count
    assert [what for _, _, what in found if what is not None] == []
    deaths = sum("error" in result for _, result, _ in found)
    assert (deaths > 0) is ("cooperative" in dialect)


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
    pytest.importorskip(package, reason=f"no {library}: pip install -e '.[{package}]'")
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


@pytest.mark.live
@pytest.mark.parametrize("assignor", differential_probe.ASSIGNORS)
def test_java_through_the_probe_equals_javas_classes(assignor: str) -> None:
    """Members send bytes of every version and library; a group on which Java throws is left out."""
    missing = missing_tools() or (None if JAR.is_file() else "no oracle: run `make judges`")
    if missing:
        pytest.skip(missing)
    found = list(differential_probe.compare("java", assignor, seed=20, count=100))
    assert len(found) == 100
    assert [what for _, _, what in found if what is not None] == []


# Cases and the command ----------------------------------------------------------------------------


def test_members_are_written_as_their_library_writes_them() -> None:
    """A decoded subscription contains what a library of its version sends."""
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
    pytest.importorskip("aiokafka", reason="no aiokafka: pip install -e '.[aiokafka]'")
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
