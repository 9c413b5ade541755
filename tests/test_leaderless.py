# SPDX-License-Identifier: Apache-2.0
"""Partitions without a leader: lags of other partitions are read, and plans report the leaderless
ones.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from kafka_rebalance import TopicPartition
from kafka_rebalance.cli import main
from kafka_rebalance.live import committed_offsets, group_lags
from kafka_rebalance.live.described_topics import DescribedTopics

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

errors = pytest.importorskip("kafka.errors", reason="no kafka-python: pip install -e '.[kafka]'")

LEADERS = {0: 7, 1: -1, 2: 8, 3: 9}
"""The leaders of the partitions of `t`: broker 8 does not answer, -1 means no leader."""


class _Offset(NamedTuple):
    offset: int


class _Admin:
    """An admin client. The group has committed 10 for each partition except partition 3; each
    partition ends at 15.
    """

    def __init__(self, error: Exception) -> None:
        self._error = error

    def list_group_offsets(self, asked: dict[str, list[Any]]) -> dict[str, Any]:
        return {
            group: {tp: _Offset(-1 if tp.partition == 3 else 10) for tp in tps}
            for group, tps in asked.items()
        }

    def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
        partitions = [{"partition_index": p, "leader_id": node} for p, node in LEADERS.items()]
        return [{"name": name, "partitions": partitions} for name in names]

    def list_partition_offsets(self, wanted: dict[Any, Any], _: Any) -> dict[Any, _Offset]:
        leaders = {LEADERS[tp.partition] for tp in wanted}
        if -1 in leaders:
            raise errors.UnknownBrokerIdError(-1)
        if 8 in leaders:
            raise self._error
        return dict.fromkeys(wanted, _Offset(15))


def _lags(monkeypatch: pytest.MonkeyPatch, error: Exception) -> tuple[Any, list[TopicPartition]]:
    @contextmanager
    def client(*_: object) -> Iterator[_Admin]:
        yield _Admin(error)

    monkeypatch.setattr(committed_offsets, "admin_client", client)
    leaderless: list[TopicPartition] = []
    asked = {"g": [TopicPartition("t", p) for p in (*LEADERS, 9)]}
    return group_lags("b:9092", asked, on_leaderless=leaderless.append), leaderless


def test_the_lags_of_partitions_with_a_leader_that_answers_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lags, leaderless = _lags(monkeypatch, errors.KafkaConnectionError("refused"))
    assert lags == {"g": {TopicPartition("t", 0): 5}}
    assert leaderless == [TopicPartition("t", 1), TopicPartition("t", 2)]


def test_another_error_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(errors.TopicAuthorizationFailedError):
        _lags(monkeypatch, errors.TopicAuthorizationFailedError("t"))


def test_a_snapshot_notes_them() -> None:
    topics = DescribedTopics(_Admin(errors.UnknownError()))
    topics.racks = {7: "a"}
    metadata = _Admin(errors.UnknownError()).describe_topics(["t"])[0] | {"error_code": 0}
    for partition in metadata["partitions"]:
        partition["replica_nodes"] = [7]
    topic = topics.topic(metadata)
    assert topic is not None
    assert topic["leaderless"] == [1]
    metadata["partitions"] = [metadata["partitions"][0]]
    assert "leaderless" not in (topics.topic(metadata) or {})


# Plans --------------------------------------------------------------------------------------------


def _line(group_id: str, **topic: Any) -> dict[str, Any]:
    members = [
        {
            "member_id": f"m{n}",
            "topics": ["t"],
            "rack_id": "a",
            "owned_partitions": [{"topic": "t", "partitions": [n]}],
            "generation_id": 1,
        }
        for n in range(2)
    ]
    topics = [{"name": "t", "partitions": 2, **topic}]
    return {"group_id": group_id, "assignor": "range", "topics": topics, "members": members}


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(lines: list[dict[str, Any]], *options: str) -> tuple[int, str, str]:
        file = tmp_path / "groups.jsonl"
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        code = main([options[0], str(file), *options[1:]])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.mark.parametrize("command", ["plan", "compare"])
def test_a_plan_names_partitions_without_a_leader(run: Any, command: str) -> None:
    sentence = (
        "kafka-rebalance: g reads 1 partition without a leader: t-1. Kafka assigns it, but no "
        "member can read it until a replica is back\n"
    )
    for options in ((), ("--json",)):
        code, _, told = run([_line("g", leaderless=[1])], command, "--add-members", "1", *options)
        assert (code, told) == (0, sentence)
    both = [_line("g", leaderless=[1]), _line("h", leaderless=[0, 1]), _line("i")]
    _, _, told = run(both, command)
    assert "2 groups read 2 partitions without a leader: t[0-1]. Kafka assigns them" in told
    _, _, told = run(both, command, "--group", "i")
    assert told == ""


def test_describe_finds_them_in_a_file(run: Any) -> None:
    code, out, _ = run([_line("g", leaderless=[1]), _line("h")], "describe", "--json")
    lost, whole = (
        {one["kind"]: one for one in json.loads(g)["findings"]} for g in out.splitlines()
    )
    assert (code, lost["leaderless"]["partitions"]) == (0, ["t-1"])
    assert "leaderless" not in whole
    _, table, _ = run([_line("g", leaderless=[1]), _line("h")], "describe")
    assert "leaderless" in table
    assert "lag" not in table


@pytest.mark.parametrize("noted", ["1", [True, "1"], {"1": 1}, None, []])
def test_a_note_of_another_form_is_ignored(run: Any, noted: Any) -> None:
    code, _, told = run([_line("g", leaderless=noted)], "plan")
    assert (code, told) == (0, "")


def test_a_rack_that_is_lost_already_has_no_name_in_metadata(run: Any) -> None:
    """Then the members in that rack are removed, or nothing is left to plan."""
    none = 'remove-rack=b: no member and no replica is in rack "b"'
    known = [_line("g", racks=[["a"], ["a"]])]
    unknown = [_line("g", racks=[["a", None], [None]])]
    code, _, told = run(known, "plan", "--remove-rack", "b")
    assert (code, told.splitlines()[0]) == (3, f"g: {none}")
    _, _, told = run(unknown, "plan", "--remove-rack", "b")
    assert told.startswith(f"g: {none}; the racks of 2 replicas are unknown, as those of brokers ")
    assert "with --remove-member, or plan the next rebalance without a change" in told
    _, _, told = run([*unknown, _line("h", racks=[["a"], [None]])], "plan", "--remove-rack", "b")
    assert "the racks of 2 replicas are unknown" in told
    _, _, told = run(unknown, "plan", "--remove-client", "b")
    assert "replicas are unknown" not in told
