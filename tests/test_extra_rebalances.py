# SPDX-License-Identifier: Apache-2.0
"""kafka-python joins again after a rebalance that ended between two polls; texts report it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock, MagicMock

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.plans.changes import change_from_text
from kafka_rebalance.report.plans.extra_rebalances import extra_rebalances_note

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("aiokafka", reason="aiokafka is not installed: pip install -e '.[aiokafka]'")

from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import KafkaTimeoutError

from tests.support.client_members import KafkaPython

if TYPE_CHECKING:
    from pathlib import Path

SENTENCE = "The number of rebalances is a lower bound: if one ends between two polls of a kafka-pyt"


@pytest.mark.parametrize("is_done", [True, False])
def test_a_join_that_ended_between_two_polls_is_dropped(is_done: bool) -> None:
    """The poll before timed out while its join was under way; this poll joins again if it ended."""
    member = KafkaPython("m", [RangePartitionAssignor], ["t"], [kr.Topic("t", 2)])
    coordinator: Any = member._coordinator
    coordinator.ensure_coordinator_ready_async = AsyncMock(return_value=True)
    coordinator._join_task, coordinator.rejoining = SimpleNamespace(is_done=is_done), True
    joins = MagicMock()
    manager = coordinator._manager
    manager.call_soon, manager.wait_for = joins, AsyncMock(side_effect=KafkaTimeoutError)
    assert asyncio.run(coordinator.join_group_async(timeout_ms=50)) is False
    assert joins.call_args_list == [((coordinator._do_join_and_sync_async,),)] * is_done


def said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], library: str | None, *command: str
) -> str:
    owned = tuple(kr.TopicPartition("t", p) for p in range(4))
    member = kr.Member(
        "c-1",
        ("t",),
        client_id="c",
        owned_partitions=owned,
        subscription_version=0,
        client_library=library,
    )
    group = kr.GroupSpec("g", (kr.Topic("t", 4),), (member,), "range", leader_library=library)
    file = tmp_path / "g.jsonl"
    file.write_text(f"{group.to_json()}\n", encoding="utf-8")
    assert main([command[0], str(file), *command[1:]]) == 0
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("command", ["plan", "compare"])
@pytest.mark.parametrize(
    ("library", "is_reported"),
    [("kafka-python", True), ("python", True), ("aiokafka", False), ("java", False), (None, False)],
)
def test_the_number_of_rebalances_is_called_a_lower_bound(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    library: str | None,
    is_reported: bool,
) -> None:
    text = said(tmp_path, capsys, library, command, "--add-members", "1")
    assert (SENTENCE in text) == is_reported


@pytest.mark.parametrize(
    ("assignor", "library", "change", "is_reported"),
    [
        ("cooperative-sticky", "librdkafka", "partitions t=6", True),
        ("librdkafka/cooperative-sticky", "librdkafka", "partitions t=6", True),
        ("cooperative-sticky", "librdkafka", "add-members=1", False),
        ("range", "librdkafka", "partitions t=6", False),
        ("cooperative-sticky", "java", "partitions t=6", False),
    ],
)
def test_growth_may_take_one_more_rebalance_with_librdkafka(
    assignor: str, library: str, change: str, is_reported: bool
) -> None:
    member = kr.Member("c-1", ("t",), client_library=library)
    group = kr.GroupSpec("g", (kr.Topic("t", 4),), (member,), assignor)
    note = extra_rebalances_note(group, [change_from_text(change)])
    assert (note is not None) == is_reported
    assert note is None or "each member of librdkafka joins again" in note


def test_no_rebalance_has_no_bound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(tmp_path, capsys, "kafka-python", "plan", "--bounce-members", "c-1,static")
    assert "0 rebalances" in text
    assert SENTENCE not in text
