# SPDX-License-Identifier: Apache-2.0
"""A snapshot reports which groups it misses because a broker is down, and does not exit with 0."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.live import consumer_groups, raw_requests, snapshot_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

errors = pytest.importorskip("kafka.errors", reason="no kafka-python: pip install -e '.[kafka]'")


class _Admin:
    """An admin client of three brokers: brokers in `down` fail, those in `fenced` are known as
    down.

    Broker n leads the partitions n and n + 3 of `__consumer_offsets`.
    """

    def __init__(self, down: tuple[int, ...], fenced: tuple[int, ...] = ()) -> None:
        self._down, self._fenced = down, fenced

    def describe_cluster(self) -> dict[str, Any]:
        return {
            "brokers": [
                {"broker_id": n, "rack": None, "is_fenced": n in self._fenced} for n in range(3)
            ]
        }

    def list_groups(self, broker_ids: list[int]) -> list[dict[str, str]]:
        if broker_ids[0] in self._down:
            raise errors.KafkaConnectionError("refused")
        group = {"group_type": "classic", "protocol_type": "consumer", "group_state": "Empty"}
        return [{"group_id": f"of-{broker_ids[0]}", **group}]

    def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
        assert names == ["__consumer_offsets"]
        partitions = [
            {"partition_index": n, "leader_id": -1 if n % 3 in self._fenced else n % 3}
            for n in range(6)
        ]
        return [{"name": names[0], "error_code": 0, "partitions": partitions}]


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Any:
    def connect(*args: Any) -> None:
        @contextmanager
        def client(*_: object) -> Iterator[_Admin]:
            yield _Admin(*args)

        monkeypatch.setattr(raw_requests, "RETRY_S", 0.0)
        monkeypatch.setattr(consumer_groups, "admin_client", client)

    return connect


def test_a_broker_that_does_not_answer_is_named(connect: Any) -> None:
    connect((1,))
    left_out: list[str] = []
    lines = list(
        snapshot_lines("b:9092", on_left_out=lambda group_id, _: left_out.append(group_id))
    )
    problem = "broker 1 does not list its groups (KafkaConnectionError), so they are missing"
    assert lines == [{"group_id": None, "error": f"brokers: {problem}"}]
    assert left_out == ["of-0", "of-2"]


def test_partitions_without_a_leader_are_named(connect: Any) -> None:
    connect((), (2,))
    problem = (
        "2 of 6 partitions of __consumer_offsets (2, 5) have no live leader, so the groups of "
        "these partitions are missing"
    )
    assert [one["error"] for one in snapshot_lines("b:9092")] == [f"brokers: {problem}"]
    reported: list[tuple[str, str]] = []
    assert list(kr.snapshot("b:9092", on_left_out=lambda *why: reported.append(why))) == []
    assert reported[0] == ("*", f"brokers: {problem}")
    with pytest.raises(kr.GroupError, match=r"^brokers: 2 of 6 partitions") as raised:
        next(kr.snapshot("b:9092"))
    assert raised.value.__notes__ == ["group_id: null"]
    (named,) = snapshot_lines("b:9092", ["lost"])
    assert named["group_id"] == "lost"
    assert named["error"].endswith(f"no such group, or no permission Describe on it; {problem}")
    (found,) = snapshot_lines("b:9092", ["of-0"])
    assert found["error"] == "state: Empty, it has no members"


def test_the_command_counts_it(connect: Any, capsys: pytest.CaptureFixture[str]) -> None:
    connect((), (2,))
    assert main(["snapshot", "--bootstrap-server", "b:9092"]) == 3
    said = capsys.readouterr()
    assert "(2, 5) have no live leader" in said.out
    assert "kafka-rebalance: brokers: 2 of 6 partitions of __consumer_offsets" in said.err
    assert (
        "wrote no group. 0 lines with an error, 2 groups left out; others are missing" in said.err
    )
    assert main(["plan", "--bootstrap-server", "b:9092"]) == 3
    assert capsys.readouterr().err.startswith("brokers: 2 of 6 partitions")


def test_a_cluster_without_an_answer_is_an_error(connect: Any) -> None:
    connect((0, 1, 2))
    with pytest.raises(errors.KafkaConnectionError):
        list(snapshot_lines("b:9092"))
