# SPDX-License-Identifier: Apache-2.0
"""`check --settings`: the forms of files, their places, bad files, and hostile values."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance.cli import FINDINGS_FAIL, USAGE, main
from kafka_rebalance.errors import GroupError
from kafka_rebalance.settings.clients import Client, Library
from kafka_rebalance.settings.files import judge, read_clients
from kafka_rebalance.settings.rule import Surroundings
from kafka_rebalance.settings.rules import RULES
from tests.support.imports import ROOT

if TYPE_CHECKING:
    from pathlib import Path

JAVA = """\
# a comment
group.id=orders
max.poll.interval.ms: 30000
session.timeout.ms 8000
"""
YAML = """\
group.id: orders
session.timeout.ms: 50000
max.poll.interval.ms: 40000
---
group.id: other
session.timeout.ms: 45000
max.poll.interval.ms: 40000
"""


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    return main(["check", "--settings", *arguments]), capsys.readouterr().out


def problems(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[tuple[Any, ...]]:
    answer = json.loads(run(capsys, *arguments, "--json")[1])
    keys = ("kind", "file", "line", "fails")
    return [tuple(one.get(key) for key in keys) for one in answer["problems"]]


def test_each_form_of_file_has_its_library_and_its_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.properties").write_text(JAVA, "utf-8")
    (tmp_path / "b.yaml").write_text(YAML, "utf-8")
    listed = [{"session_timeout_ms": 5000, "heartbeat_interval_ms": 1000}, {"group_id": "g"}]
    (tmp_path / "c.json").write_text(json.dumps(listed, indent=1), "utf-8")
    found = problems(capsys, "a.properties", "b.yaml", "c.json", "--processing", "35s")
    assert {one for one in found if one[3]} == {
        ("poll-interval", "a.properties", 3, True),
        ("poll-below-session", "b.yaml", 3, True),
        ("poll-below-session", "b.yaml", 7, True),
        ("session-refused", "c.json", 3, True),
    }
    libraries = [
        one.library if isinstance(one, Client) else None
        for file in ("a.properties", "b.yaml", "c.json")
        for one in read_clients(file)
    ]
    assert libraries == ["java", *["librdkafka"] * 2, *["kafka-python"] * 2]
    assert ("rebalance-timeout", "c.json", 3, False) in problems(
        capsys, "c.json", "--client", "aiokafka", "--processing", "35s"
    )


def test_the_assumed_library_is_said_and_a_name_of_librdkafka_alone_shows_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "max.poll.interval.ms=5000\nsession.timeout.ms=10000\n"
    for name, more in (("a", ""), ("b", "sasl.username=u\n"), ("c", "debug=cgrp\n")):
        (tmp_path / f"{name}.properties").write_text(text + more, "utf-8")
    files = ["a.properties", "b.properties", "c.properties"]
    assert main(["check", "--settings", *files]) == FINDINGS_FAIL
    shown = capsys.readouterr()
    assert shown.out.count("poll-below-session: ") == 2
    assert shown.err.splitlines() == [
        "kafka-rebalance: a.properties: read as settings of java; --client names another library",
        (
            "kafka-rebalance: b.properties and 1 more: read as settings of librdkafka; --client "
            "names another library"
        ),
    ]
    main(["check", "--settings", *files, "--client", "java"])
    shown = capsys.readouterr()
    assert "poll-below-session" not in shown.out
    assert not shown.err


@pytest.mark.parametrize(
    ("name", "text", "library"),
    [
        ("a.properties", "group.id=g\ndebug=cgrp\n", "librdkafka"),
        # Spring Boot has a key `debug`, too; librdkafka has no deserializers.
        ("a.properties", "group.id=g\ndebug=true\nkey.deserializer=C\n", "java"),
        ("a.yaml", "group_id: g\nlog_level: 7\n", "kafka-python"),
        ("a.yaml", "group.id: g\nmax.poll.records: 7\n", "librdkafka"),
    ],
)
def test_names_of_one_library_alone_show_it_in_properties(
    tmp_path: Path, name: str, text: str, library: str
) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    (found,) = read_clients(str(tmp_path / name))
    assert isinstance(found, Client)
    assert found.library == library


def test_a_bad_document_does_not_lose_the_good_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.yaml").write_text(f"- 1\n---\n{YAML}---\nx: [\n", "utf-8")
    code, out = run(capsys, "a.yaml")
    assert code == FINDINGS_FAIL
    assert "a.yaml, documents[0]: error: a list is not a mapping of settings" in out
    assert out.count("poll-below-session: ") == 2
    assert "a.yaml, documents[3]: error: is not YAML at line" in out
    nested = '{"consumer": {"group.id": "g"}}'
    for name, text in (("b.json", "{"), ("c.json", nested), ("e.md", "# A page\nof words\n")):
        (tmp_path / name).write_text(text, "utf-8")
        (one,) = read_clients(name)
        assert isinstance(one, GroupError)
    (tmp_path / "d.properties").write_bytes(b"\xff")
    code, out = run(capsys, "d.properties", "a.yaml")
    assert code == FINDINGS_FAIL
    assert "d.properties: error: is not text in UTF-8" in out
    assert out.count("poll-below-session: ") == 2


def test_values_from_strangers_reach_no_runner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = "##[error]\\n::error::x\\u001b[2J" + "y" * 10_000
    (tmp_path / "a.properties").write_text(f"group.instance.id={hostile}\n", "utf-8")
    for form in ("text", "github", "sarif", "json"):
        code, out = run(capsys, "a.properties", "--format", form)
        assert code == FINDINGS_FAIL
        assert "##[" not in out
        assert "\x1b" not in out
        assert not any(line.startswith("::error::") for line in out.splitlines())
        assert len(out) < 10_000


def test_secrets_are_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret = "hunter2"
    lines = [f"sasl.jaas.config={secret}", f"sesion.timeout.ms={secret}", "group.protocol=x"]
    (tmp_path / "a.properties").write_text("\n".join(lines), "utf-8")
    code, out = run(capsys, "a.properties", "--json")
    assert code == FINDINGS_FAIL
    assert secret not in out


def test_sarif_shows_the_line_and_a_baseline_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.properties").write_text(JAVA, "utf-8")
    _, out = run(capsys, "a.properties", "--processing", "35s", "--format", "sarif")
    results = json.loads(out)["runs"][0]["results"]
    (place,) = [
        one["locations"][0]["physicalLocation"]
        for one in results
        if one["ruleId"] == "poll-interval"
    ]
    assert place == {"artifactLocation": {"uri": "a.properties"}, "region": {"startLine": 3}}
    (tmp_path / "known.json").write_text(run(capsys, "a.properties", "--json")[1], "utf-8")
    every = ("a.properties", "--fail-on", "info", "--baseline", "known.json")
    assert run(capsys, *every)[0] == 0
    assert run(capsys, *every, "--processing", "35s")[0] == FINDINGS_FAIL
    assert run(capsys, "a.properties", "--fail-on", "short-session")[0] == FINDINGS_FAIL


def test_the_brokers_settings_and_toml_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.properties").write_text(JAVA, "utf-8")
    (tmp_path / "server.properties").write_text("group.min.session.timeout.ms=9000\n", "utf-8")
    table = 'settings = ["a.properties"]\nbroker-settings = "server.properties"\n'
    (tmp_path / "pyproject.toml").write_text(f"[tool.kafka-rebalance]\n{table}", "utf-8")
    assert main(["check"]) == FINDINGS_FAIL
    assert "group.min.session.timeout.ms 9000" in capsys.readouterr().out
    (tmp_path / "server.properties").write_text("group.min.session.timeout.ms=x\n", "utf-8")
    assert main(["check"]) == USAGE


@pytest.mark.parametrize(
    "arguments",
    [
        ["a.properties", "--processing", "45"],
        ["a.properties", "--restart", "soon"],
        ["a.properties", "--fail-on", "nothing"],
        ["missing.properties"],
    ],
)
def test_wrong_usage(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.properties").write_text(JAVA, "utf-8")
    assert main(["check", "--settings", *arguments]) == USAGE


def test_settings_are_not_judged_beside_groups() -> None:
    with pytest.raises(SystemExit, match=str(USAGE)):
        main(["check", "groups.jsonl", "--settings", "a.properties"])


def test_no_name_of_a_python_client_looks_misspelt() -> None:
    kafka = pytest.importorskip("kafka")
    aiokafka = pytest.importorskip("aiokafka")
    names: dict[Library, list[str]] = {
        "kafka-python": [*kafka.KafkaConsumer.DEFAULT_CONFIG],
        "aiokafka": [*inspect.signature(aiokafka.AIOKafkaConsumer.__init__).parameters],
    }
    for library, each in names.items():
        client = Client.of(library, dict.fromkeys(each))
        found = [one.rule.id for one in judge([client], Surroundings())]
        assert "refused-name" not in found, library


def test_every_rule_has_its_place_in_the_page() -> None:
    text = (ROOT / "docs" / "settings.md").read_text("utf-8")
    assert [one.id for one in RULES if f"\n## {one.id}\n" not in text] == []
