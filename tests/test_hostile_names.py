# SPDX-License-Identifier: Apache-2.0
"""Names are data: none reaches a terminal or a page as a control character or a line."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.clients.leader import log
from kafka_rebalance.errors import GroupError, shown
from kafka_rebalance.group.model import shell_option
from kafka_rebalance.live.broker_groups import DESCRIBE_APIS
from kafka_rebalance.live.other_groups import connect_group
from kafka_rebalance.present.broker_assigned import AssignedByBroker, StreamsGroupWithLag
from kafka_rebalance.report.groups.other_groups import (
    print_assigned_by_broker,
    print_connect_group,
    print_streams_group,
)
from kafka_rebalance.report.text.tables import table_lines, text_width
from kafka_rebalance.report.text.terminal import shown_streams
from kafka_rebalance.testing import RunningBroker
from kafka_rebalance.wire import consumer_protocol as wire
from kafka_rebalance.wire.connect_protocol import (
    ConnectAssignment,
    ConnectMetadata,
    encode_connect_assignment,
    encode_connect_metadata,
)
from kafka_rebalance.wire.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from tests.support.hostile_listeners import broker_commands
from tests.support.hostile_names import PIECES, check, dangerous, hostile_group, names
from tests.support.live_members import join_by_hand
from tests.support.streams_descriptions import GROUP as STREAMS
from tests.support.terminal import open_terminal, read_terminal
from tests.support.waiting import FAR_S
from tests.test_describe_assigned_by_broker import MODERN
from tests.test_history import records_of

SEEDS = range(3)
NO_FILE = "no-\u202e-\x1b[2J\nFORGED-file"
NO_NAME = "\x1b[2J\u202e"
COMMANDS = [
    ["describe", "FILE"],
    ["plan", "FILE"],
    ["plan", "FILE", "--remove-rack"],
    ["compare", "FILE", "--add-members", "1"],
    ["assign", "FILE"],
    ["describe", "FILE", "--json"],
    ["describe", "FILE", "ONE"],
    ["plan", "FILE", "ONE", "--add-members", "1", "--how-long", "--all"],
    ["plan", "FILE", "ONE", "--remove-member"],
    ["plan", "FILE", "ONE", "--switch-assignor", "range"],
    ["plan", "FILE", "ONE", "--switch-protocol", "consumer/uniform"],
    ["plan", "FILE", "ONE", "--remove-rack", "--json"],
    ["compare", "FILE", "ONE", "--remove-rack"],
    ["scale", "FILE"],
    ["scale", "FILE", "ONE", "--members", "0,1..5"],
    ["rollout", "MANIFEST", "FILE", "ONE", "--replicas", "MEMBERS"],
    ["explain", "PARTITION", "FILE", "ONE", "--bounce-members"],
    ["simulate", "--from", "FILE", "ONE", "--bounce-members"],
    ["simulate", "--from", "FILE", "ONE", "--add-members", "1", "--seeds", "2"],
    ["simulate", "--from", "FILE", "ONE", "--add-members", "1", "--trace"],
    ["describe", "FILE", "--group", "not there"],
    ["assign", "BAD"],
    ["plan", "BAD"],
    ["plan", "FILE", "--samples", NO_NAME],
    ["simulate", NO_NAME],
    ["describe", NO_FILE],
    ["serve", "--topic", NO_NAME],
]
CODES = {"BAD": 3, "--remove-member": 3, "not there": 3, NO_FILE: 2, NO_NAME: 2}
"""The last word of a command -> its exit code; that of the other commands is 0."""


def _file(tmp_path: Path, seed: int) -> tuple[str, list[kr.GroupSpec]]:
    given = names(seed)
    groups = [hostile_group(given) for _ in range(5)]
    path = tmp_path / "a \x1b[2J\u202ename's.jsonl"
    path.write_text("".join(f"{one.to_json()}\n" for one in groups), encoding="utf-8")
    return str(path), groups


def _words(command: list[str], file: str, one: kr.GroupSpec) -> list[str]:
    member = one.members[1]
    known = {
        "FILE": file,
        "BAD": f"{file}.bad",
        "ONE": f"--group={one.group_id}",
        "--remove-rack": f"--remove-rack={member.rack_id}",
        "--remove-member": f"--remove-member={member.client_id}",
        "MANIFEST": f"{file}.yaml",
        "MEMBERS": str(len(one.members)),
        "PARTITION": f"{one.topics[1].name}-0",
    }
    return [known.get(word, word) for word in command]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_command(tmp_path: Path, capfd: pytest.CaptureFixture[str], seed: int) -> None:
    file, groups = _file(tmp_path, seed)
    bad = [{**json.loads(one.to_json()), "topics": [{"name": one.group_id}]} for one in groups]
    text = "".join(f"{json.dumps(one)}\n" for one in bad)
    Path(f"{file}.bad").write_text(text + "\x1b[2J\u202e\n", encoding="utf-8")
    pod: dict[str, object] = {"spec": {"template": {"spec": {"containers": [{}]}}}}
    manifest = {"kind": "Deployment", "metadata": {"name": groups[0].group_id}, **pod}
    Path(f"{file}.yaml").write_text(json.dumps(manifest), encoding="utf-8")
    for command in COMMANDS:
        one = groups[seed]
        try:
            code = main(_words(command, file, one))
        except SystemExit as ended:
            code = int(str(ended.code))
        seen = capfd.readouterr()
        assert code == CODES.get(command[-1], 0), (command, seen.err)
        assert seen.out or seen.err
        check(seen.out)
        check(seen.err)
        assert "Traceback" not in seen.err
        if command == ["assign", "FILE"]:
            answers = [json.loads(line) for line in seen.out.splitlines()]
            assert [answer["group_id"] for answer in answers] == [one.group_id for one in groups]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_command_that_reads_a_broker(capfd: pytest.CaptureFixture[str], seed: int) -> None:
    """The broker's group has a hostile id, and a member that subscribes to hostile topics."""
    group_id, topic = islice(names(seed), 10, 12)
    subscription = wire.encode_subscription(wire.Subscription(("t", topic)))
    given = wire.encode_assignment(wire.AssignmentData((kr.TopicPartition("t", 0),)))
    with RunningBroker({"t": 2, "__consumer_offsets": 4}) as broker:
        join_by_hand(broker.address, group_id, subscription, assignment=given)
        server = ["--bootstrap-server", broker.address, "--timeout", "5"]
        for words in broker_commands().values():
            asked = [f"--group={group_id}" if word == "g" else word for word in words]
            main([*(word for word in asked if word != "--group"), *server])
            seen = capfd.readouterr()
            assert seen.out or seen.err
            check(seen.out)
            check(seen.err)
            assert "Traceback" not in seen.err


def test_the_scripts_of_connect_and_the_traces(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given = list(islice(names(1), 40))
    workers = [{"id": one} for one in given]
    rounds = [
        {"time_ms": n, "workers": workers[n : n + 3], "config": {given[9]: 2}} for n in range(3)
    ]
    script = {"assignor": "connect/incremental", "id": given[20], "rounds": rounds}
    broken = {**script, "rounds": [{"time_ms": given[30]}]}
    path = tmp_path / "scripts.jsonl"
    path.write_text(f"{json.dumps(script)}\n{json.dumps(broken)}\n", encoding="utf-8")
    assert main(["connect", str(path)]) == 3
    (tmp_path / "trace").write_text("wh\x1b[2Jat\n", encoding="utf-8")
    assert main(["coordinator", str(tmp_path / "trace")]) in (2, 3)
    seen = capfd.readouterr()
    check(seen.out)
    check(seen.err)


def test_the_histories_of_such_groups(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    known: dict[str, str] = {}
    given = names(2)

    def renamed(name: str) -> str:
        return known.setdefault(name, next(given))

    def value_of(value: Any) -> Any:
        if not isinstance(value, GroupMetadataValue):
            return value
        members = tuple(
            replace(
                one,
                member_id=renamed(one.member_id),
                client_id=renamed(one.client_id),
                client_host=renamed(one.client_host),
            )
            for one in value.members
        )
        leader = None if value.leader is None else renamed(value.leader)
        return replace(value, members=members, leader=leader)

    lines = []
    for one in records_of("2.4.1"):
        key = decode_key(one.key)
        if not isinstance(key, GroupMetadataKey):
            continue
        value = value_of(decode_value(key, one.value))
        fields = {**one._asdict(), "key": encode_key(replace(key, group_id=renamed(key.group_id)))}
        fields["value"] = None if value is None else encode_value(value)
        for name in ("key", "value"):
            found = fields[name]
            fields[name] = None if found is None else base64.b64encode(found).decode()
        fields["timestamp"] = fields.pop("timestamp_ms")
        lines.append(json.dumps(fields))
    path = tmp_path / "records.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    page = tmp_path / "history.html"
    for words in ([], ["--what-if"], [f"--group={known['billing']}"], ["--json"]):
        assert main(["history", str(path), *words]) == 0
        seen = capfd.readouterr()
        check(seen.out)
        check(seen.err)
    assert main(["history", str(path), "--output", str(page)]) == 0
    assert dangerous(page.read_text(encoding="utf-8")) == []


def _metadata(url: str) -> bytes:
    return encode_connect_metadata(ConnectMetadata(url=url, config_offset=1, version=2))


def test_live_groups_of_every_other_kind(capfd: pytest.CaptureFixture[str]) -> None:
    given = names(3)
    modern: Any
    (modern,) = DESCRIBE_APIS["consumer"].read(1, MODERN)
    members = tuple(
        replace(one, member_id=next(given), client_id=next(given), client_host=next(given))
        for one in modern.members
    )
    group = replace(modern, group_id=next(given), members=members)
    streams = replace(
        STREAMS,
        group_id=next(given),
        members=tuple(
            replace(one, client_id=next(given), process_id=next(given)) for one in STREAMS.members
        ),
    )
    urls = [f"http://{next(given)}/" for _ in range(2)]
    workers = [
        SimpleNamespace(
            member_id=next(given),
            client_id=next(given),
            client_host=next(given),
            member_metadata=_metadata(url),
            member_assignment=encode_connect_assignment(
                ConnectAssignment(leader="w", leader_url=url, connectors=(next(given),), version=2)
            ),
        )
        for url in urls
    ]
    described: Any = SimpleNamespace(
        error_code=0,
        group_id=next(given),
        group_state="Stable",
        protocol_data="sessioned",
        members=workers,
    )
    with shown_streams():
        print_assigned_by_broker(AssignedByBroker(group), "--group x", everything=True)
        print_streams_group(StreamsGroupWithLag(streams, {}, ()), "--group x", everything=True)
        print_connect_group(connect_group(described), everything=True)
    check(capfd.readouterr().out)


@pytest.mark.parametrize("seed", SEEDS)
def test_pages_and_notebooks(tmp_path: Path, capfd: pytest.CaptureFixture[str], seed: int) -> None:
    file, groups = _file(tmp_path, seed)
    for one in groups:
        select = f"--group={one.group_id}"
        page = tmp_path / "page.html"
        assert main(["plan", file, select, "--output", str(page), "--add-members", "1"]) == 0
        words = ["simulate", "--from", file, select, "--output"]
        assert main([*words, str(tmp_path / "run.html"), "--bounce-members"]) == 0
        for name in ("page.html", "run.html"):
            html = (tmp_path / name).read_text(encoding="utf-8")
            assert dangerous(html) == []
            assert html.count("<script>") == (name == "page.html")  # its own
        planned = kr.plan(one, None, ["add-members=1"])
        tables = (one, kr.assign(one), planned, planned.rounds[0], kr.describe(one))
        for table in (*tables, kr.compare(one)):
            assert dangerous(table._repr_html_()) == []
            assert dangerous(repr(table)) == []
    seen = capfd.readouterr()
    check(seen.out)
    check(seen.err)


@pytest.mark.parametrize("seed", SEEDS)
def test_copied_commands_have_the_exact_names(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], seed: int
) -> None:
    """bash reads the commands in a report as the words that were meant; NUL is in no argument."""
    file, groups = _file(tmp_path, seed)
    for one in groups:
        assert main(["describe", file, f"--group={one.group_id}"]) == 0
        out = capfd.readouterr().out
        commands = [line.strip() for line in out.splitlines() if line.startswith("  kafka-")]
        assert commands or "This shows more" not in out
        commands.append(f"kafka-rebalance plan {shell_option('--group', one.group_id)}")
        for command in commands:
            script = f"kafka-rebalance() {{ printf '%s\\0' \"$@\"; }}; {command}"
            ran = subprocess.run(
                ["bash", "-c", script], capture_output=True, check=True, timeout=FAR_S
            )
            words = ran.stdout.decode().split("\0")
            if "\0" not in one.group_id:
                assert {one.group_id, f"--group={one.group_id}"} & set(words)


def test_a_hint_with_a_client_id_is_a_word_of_a_shell(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    topic = kr.Topic("t", 1)
    group = kr.GroupSpec("g", (topic,), (kr.Member("m", ("t",), client_id="-a b"),), "range")
    (tmp_path / "g.jsonl").write_text(group.to_json(), encoding="utf-8")
    assert main(["plan", f"{tmp_path}/g.jsonl", "--remove-member=-a b"]) == 3
    assert "it is a client_id: --remove-client='-a b'" in capfd.readouterr().err


@pytest.mark.parametrize("columns", [30, 60, 100])
def test_tables_have_the_width_that_they_take(columns: int) -> None:
    """Wide letters take two columns of a terminal and combining marks none."""
    rows = [[name, str(n), name] for n, name in enumerate(islice(names(4), 60))]
    lines = list(table_lines(["name", "number", "again"], rows, columns, left=(2,)))
    check("\n".join(lines))
    assert max(map(text_width, lines)) <= columns
    assert text_width("主题") == 4
    assert text_width("e\u0301") == 1


def test_lines_of_the_plug_ins_log(caplog: pytest.LogCaptureFixture) -> None:
    log.error("group %s: %s", "".join(PIECES), GroupError("line", "\nFORGED"))
    check(caplog.text)
    assert len(caplog.text.splitlines()) == 1


def test_a_line_of_json_keeps_its_value() -> None:
    line = json.dumps({"name": "".join(PIECES)}, ensure_ascii=False)
    assert dangerous(shown(line)) == []
    assert json.loads(shown(line)) == json.loads(line)


def test_on_a_terminal_only_the_commands_own_emphasis_is_left(tmp_path: Path) -> None:
    file, groups = _file(tmp_path, 0)
    for words in (["describe", file], ["assign", file], ["plan", f"{file}\x1b[31m"]):
        reader, terminal = open_terminal(80)
        ran = subprocess.run(
            [sys.executable, "-m", "kafka_rebalance", *words],
            env={**os.environ, "TERM": "xterm"},
            stdout=terminal,
            stderr=terminal,
            timeout=FAR_S,
            check=False,
        )
        os.close(terminal)
        assert ran.returncode in (0, 2)
        seen = re.sub("\x1b\\[(1|31|0)m|\r\x1b\\[K|\r[^\n]*%", "", read_terminal(reader))
        check(seen)
    assert groups


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_failure(tmp_path: Path, closed: str) -> None:
    group = kr.GroupSpec("g", (kr.Topic("t", 2),), (kr.Member("m", ("t",)),), "range")
    good, bad = tmp_path / "g.jsonl", tmp_path / "bad.jsonl"
    good.write_text(group.to_json(), encoding="utf-8")
    bad.write_text(f"{group.to_json()}\n{{}}\n", encoding="utf-8")
    run = f"{sys.executable} -m kafka_rebalance"
    expected = {
        f"describe {good}": 0,
        f"plan {bad}": 3,
        f"assign {bad}": 3,
        f"simulate --from {good} --bounce-members": 0,
        "--version": 0,
        "plan --nope": 2,
        "plan no-file": 2,
    }
    for words, code in expected.items():
        ran = subprocess.run(
            f"{run} {words} {closed}", shell=True, capture_output=True, timeout=FAR_S, check=False
        )
        assert ran.returncode == code, (words, ran.stderr)
        assert b"Traceback" not in ran.stdout + ran.stderr
