# SPDX-License-Identifier: Apache-2.0
"""The classes behind Kafka's own commands work with `serve`."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")

from kafka_rebalance.testing import RunningBroker
from tests.support.broker import LIB_STREAMS, java, missing_tools
from tests.support.waiting import FAR_S

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.live
TOOLS = "org.apache.kafka.tools"


def command(main: str, broker: RunningBroker, *arguments: str, lines: str = "") -> str:
    """Returns what a command prints; kafka-tools needs the clients of its own version first."""
    words = (f"{TOOLS}.{main}", "--bootstrap-server", broker.address, *arguments)
    ran = subprocess.run(
        java(*words, log="error", first=(LIB_STREAMS,)),
        input=lines,
        capture_output=True,
        text=True,
        timeout=FAR_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_kafkas_commands_produce_consume_and_describe(tmp_path: Path) -> None:
    if missing := missing_tools():
        pytest.skip(missing)
    orders = ("--topic", "orders")
    with RunningBroker({"orders": 1}) as broker:
        command("ConsoleProducer", broker, *orders, lines="a\nb\nc\n")
        for protocol in ("classic", "consumer"):
            options = ("--group", protocol, "--command-property", f"group.protocol={protocol}")
            bounds = ("--from-beginning", "--max-messages", "3", "--timeout-ms", "30000")
            read = command("consumer.ConsoleConsumer", broker, *orders, *options, *bounds)
            assert read.split() == ["a", "b", "c"]
            described = command(
                "consumer.group.ConsumerGroupCommand", broker, "--describe", "--group", protocol
            )
            assert [protocol, "orders", "0", "3", "3", "0"] in [
                line.split()[:6] for line in described.splitlines()
            ]
        assert "PartitionCount: 1" in command("TopicCommand", broker, "--describe", *orders)
        deleted = {"topic": "orders", "partition": 0, "offset": 2}
        (tmp_path / "offsets.json").write_text(json.dumps({"partitions": [deleted], "version": 1}))
        path = str(tmp_path / "offsets.json")
        assert "low_watermark: 2" in command(
            "DeleteRecordsCommand", broker, "--offset-json-file", path
        )
        assert "orders:0:2" in command("GetOffsetShell", broker, *orders, "--time", "-2")
