# SPDX-License-Identifier: Apache-2.0
"""The options of `history` that exclude each other, and its exit codes."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from kafka_rebalance.cli import main
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.wire.consumer_protocol import (
    AssignmentData,
    Subscription,
    encode_assignment,
    encode_subscription,
)
from kafka_rebalance.wire.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_value,
)
from tests.test_history import VECTORS

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_rebalance.wire.group_records import Key, Value

RECORDS = str(VECTORS / "kafka-2.4.1" / "records.jsonl.gz")


def _file(directory: Path, *records: tuple[Key, Value | None]) -> str:
    lines = []
    for offset, (key, value) in enumerate(records):
        data = None if value is None else base64.b64encode(encode_value(value)).decode()
        fields = {
            "partition": 0,
            "offset": offset,
            "timestamp": 1_700_000_000_000 + offset,
            "key": base64.b64encode(encode_key(key)).decode(),
            "value": data,
        }
        lines.append(json.dumps(fields) + "\n")
    path = directory / "records.jsonl"
    path.write_text("".join(lines), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("--replay --what-if", "argument --what-if: not allowed with argument --replay"),
        ("--patterns --replay", "argument --replay: not allowed with argument --patterns"),
        ("--what-if --patterns", "argument --patterns: not allowed with argument --what-if"),
        ("--replay --output x.html", "--output: not with --replay or --what-if, which draw no"),
        ("--what-if --output x.html", "--output: not with --replay or --what-if, which draw no"),
        ("--topics t.jsonl", "--topics: only --replay and --what-if read it; add one of them"),
        ("--patterns --topics t.jsonl", "--topics: only --replay and --what-if read it"),
        ("--all --json", "--all: not with --replay, --what-if, --patterns or --json"),
        ("--all --replay", "--all: not with --replay, --what-if, --patterns or --json"),
        ("--all --what-if", "--all: not with --replay, --what-if, --patterns or --json"),
        ("--all --patterns", "--all: not with --replay, --what-if, --patterns or --json"),
        ("--broker-log b.log --replay", "--broker-log: not with --replay, which reads no causes"),
        ("--bootstrap-server h:1", "give either FILE, with records of __consumer_offsets, or"),
        ("--timeout 3", "--timeout: only --bootstrap-server reads it; add it"),
        ("--command-config c", "--command-config: only --bootstrap-server reads it; add it"),
    ],
)
def test_no_option_is_ignored_silently(
    options: str,
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as raised:
        main(["history", RECORDS, *options.split()])
    assert raised.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert problem in printed.err
    assert list(tmp_path.iterdir()) == []


def test_neither_files_nor_a_cluster_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["history"])
    assert raised.value.code == 2
    assert "give either FILE" in capsys.readouterr().err


def _generation(group_id: str, partition: int) -> tuple[Key, Value]:
    """Returns a generation whose one member owns this partition."""
    sent = encode_subscription(Subscription(("t",)))
    given = encode_assignment(AssignmentData((TopicPartition("t", partition),)))
    member = MemberMetadata("m", None, "c", "/h", 60_000, 10_000, sent, given)
    return GroupMetadataKey(group_id), GroupMetadataValue(
        "consumer", 1, "range", "m", 1_700_000_000_000, (member,)
    )


def test_groups_that_cannot_be_played_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A group that cannot be played is reported and counted; the other group is played.

    The bad group owns partition 2**31 - 1, and no topic can be so large.
    """
    path = _file(tmp_path, _generation("bad", 2**31 - 1), _generation("good", 2))
    assert main(["history", path, "--what-if"]) == 3
    printed = capsys.readouterr()
    assert "kafka-rebalance: bad: " in printed.err
    assert "good" not in printed.err
    assert "Recorded: 1 rebalance, 1 move.\n" in printed.out
    assert ["range", "1", "3", "3", "0"] in [line.split() for line in printed.out.splitlines()]
    assert main(["history", path, "--what-if", "--json"]) == 3
    groups = [json.loads(line)["group_id"] for line in capsys.readouterr().out.splitlines()]
    assert set(groups) == {"good"}
    assert main(["history", path, "--what-if", "--group", "good"]) == 0


def test_rebalances_that_are_not_computed_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A difference is a result: exit code 0. An assignor that nobody knows leaves no result: 3."""
    key, value = _generation("g", 2)
    assert isinstance(value, GroupMetadataValue)
    (member,) = value.members
    nothing = replace(member, assignment=encode_assignment(AssignmentData(())))
    claimed = replace(
        nothing,
        subscription=encode_subscription(Subscription(("t",), None, (TopicPartition("t", 1),), 1)),
    )
    path = _file(tmp_path, (key, replace(value, members=(claimed,))))
    assert main(["history", path, "--replay"]) == 0
    assert "differs" in capsys.readouterr().out
    path = _file(tmp_path, (key, replace(value, protocol="our-own")))
    assert main(["history", path, "--replay"]) == 3
    assert "not computed: no assignor our-own is known" in capsys.readouterr().out


@pytest.mark.parametrize("options", ["", "--json", "--what-if", "--output x.html"])
def test_files_without_a_group_say_so(
    options: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    commit = OffsetCommitKey("g", "t", 0), OffsetCommitValue(1, -1, "", 1_700_000_000_000)
    problem = "no record of a group was found; give all records of __consumer_offsets"
    for records in ([], [commit]):
        path = _file(tmp_path, *records)
        assert main(["history", path, *options.split()]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert f"{path}: {problem}" in printed.err
    assert main(["history", path, path, *options.split()]) == 2
    assert f"2 files: {problem}" in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["records.jsonl"]


@pytest.mark.parametrize("options", ["", "--replay", "--what-if", "--patterns", "--output x.html"])
def test_an_absent_group_is_named_with_those_that_are_there(
    options: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    records = [_generation(f"g{n}", 0) for n in range(5)]
    for number, has in ((0, ""), (2, "; it has g0 and g1"), (5, "; it has g0, g1, g2 and others")):
        path = _file(tmp_path, *records[:number])
        error = f"group_id: no such group in the records of {path}{has}; give all records of "
        command = ["history", path, "--group", "nope", *options.split()]
        assert main(command) == 3
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith(f"nope: {error}__consumer_offsets; ")
    if not options.startswith("--output"):  # --output: not with --json
        assert main([*command, "--json"]) == 3
        line = json.loads(capsys.readouterr().out)
        assert line["group_id"] == "nope"
        assert line["error"].startswith(error)
