# SPDX-License-Identifier: Apache-2.0
"""The classes behind Kafka's own commands work with `serve`."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")

from kafka_rebalance.testing import RunningBroker
from tests.support.broker import LIB_CONFIGS, LIB_STREAMS, java, missing_tools
from tests.support.waiting import FAR_S
from tests.test_served_broker_groups import members

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.live
TOOLS = "org.apache.kafka.tools"


def command(main: str, broker: RunningBroker, *arguments: str, lines: str = "") -> str:
    """Returns what a command prints; kafka-tools needs the clients of its own version first."""
    if missing := missing_tools():
        pytest.skip(missing)
    name = main if main.startswith("kafka.") else f"{TOOLS}.{main}"
    words = (name, "--bootstrap-server", broker.address, *arguments)
    ran = subprocess.run(
        java(*words, log="error", first=(LIB_STREAMS, LIB_CONFIGS)),
        input=lines,
        capture_output=True,
        text=True,
        timeout=FAR_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Error" not in ran.stdout, ran.stdout  # some commands end with 0 all the same
    return ran.stdout


def rows(printed: str) -> list[list[str]]:
    """Returns the words of each line."""
    return [line.split() for line in printed.splitlines()]


def test_kafkas_commands_produce_consume_and_describe(tmp_path: Path) -> None:
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
            assert [protocol, "orders", "0", "3", "3", "0"] in [one[:6] for one in rows(described)]
        assert "PartitionCount: 1" in command("TopicCommand", broker, "--describe", *orders)
        deleted = {"topic": "orders", "partition": 0, "offset": 2}
        (tmp_path / "offsets.json").write_text(json.dumps({"partitions": [deleted], "version": 1}))
        path = str(tmp_path / "offsets.json")
        assert "low_watermark: 2" in command(
            "DeleteRecordsCommand", broker, "--offset-json-file", path
        )
        assert "orders:0:2" in command("GetOffsetShell", broker, *orders, "--time", "-2")


def test_kafka_share_groups_and_its_consumer() -> None:
    groups, orders = "consumer.group.ShareGroupCommand", ("--topic", "orders")
    with RunningBroker({"orders": 1}) as broker:
        broker.configure("s", {"share.auto.offset.reset": "earliest"})
        broker.produce("orders", b"a", b"b", b"c")
        bounds = ("--max-messages", "3", "--timeout-ms", "30000")
        read = command("consumer.ConsoleShareConsumer", broker, *orders, "--group", "s", *bounds)
        assert read.split() == ["a", "b", "c"]
        assert rows(command(groups, broker, "--list", "--state"))[1:] == [["s", "Empty"]]
        described = command(groups, broker, "--describe", "--group", "s")
        assert ["s", "orders", "0", "3", "0"] in rows(described)
        reset = ("--reset-offsets", "--group", "s", *orders, "--to-earliest", "--execute")
        assert ["s", "orders", "0", "0"] in rows(command(groups, broker, *reset))
        described = command(groups, broker, "--describe", "--group", "s")
        assert ["s", "orders", "0", "0", "3"] in rows(described)
        deleted = command(groups, broker, "--delete-offsets", "--group", "s", *orders)
        assert ["orders", "Successful"] in rows(deleted)
        assert "successful" in command(groups, broker, "--delete", "--group", "s")
        assert rows(command(groups, broker, "--list")) == []


def test_kafka_consumer_groups_changes_offsets() -> None:
    groups, orders = "consumer.group.ConsumerGroupCommand", ("--topic", "orders")
    with RunningBroker({"orders": 1}) as broker:
        broker.produce("orders", b"a", b"b", b"c")
        group = ("--group", "g")
        reset = (*group, *orders, "--reset-offsets", "--to-offset", "2", "--execute")
        assert ["g", "orders", "0", "2"] in rows(command(groups, broker, *reset))
        listed = rows(command(groups, broker, "--list", "--state", "--type"))
        assert ["g", "Classic", "Empty"] in listed
        described = command(groups, broker, "--describe", *group)
        assert ["g", "orders", "0", "2", "3", "1"] in [one[:6] for one in rows(described)]
        assert "Empty" in command(groups, broker, "--describe", "--all-groups", "--state")
        deleted = command(groups, broker, "--delete-offsets", *group, *orders)
        assert ["orders", "0", "Successful"] in rows(deleted)


def test_kafka_configs_changes_settings_of_groups() -> None:
    configs, groups = "kafka.admin.ConfigCommand", ("--entity-type", "groups")
    if not LIB_CONFIGS.exists():
        pytest.skip(f"no jars in {LIB_CONFIGS}: run `make judges`")
    with RunningBroker({"orders": 1}) as broker:
        name, value = "consumer.session.timeout.ms", "46000"
        one = (*groups, "--entity-name", "g")
        command(configs, broker, "--alter", *one, "--add-config", f"{name}={value}")
        assert broker._server.group_configs.value("g", name) == 46_000
        assert f"{name}={value}" in command(configs, broker, "--describe", *groups)
        assert f"{name}={value}" in command(configs, broker, "--describe", *one, "--all")
        command(configs, broker, "--alter", *one, "--delete-config", name)
        assert name not in command(configs, broker, "--describe", *one)


def test_kafka_topics_and_configs_change_settings_of_topics() -> None:
    orders, configs = ("--topic", "orders"), "kafka.admin.ConfigCommand"
    topic = ("--entity-type", "topics", "--entity-name", "orders")
    with RunningBroker({}) as broker:
        settings = ("--config", "retention.ms=5", "--config", "cleanup.policy=compact")
        command("TopicCommand", broker, "--create", *orders, "--partitions", "2", *settings)
        described = command("TopicCommand", broker, "--describe", *orders)
        assert "Configs: cleanup.policy=compact,retention.ms=5" in described
        if not LIB_CONFIGS.exists():
            pytest.skip(f"no jars in {LIB_CONFIGS}: run `make judges`")
        changes = ("--add-config", "segment.ms=7", "--delete-config", "cleanup.policy")
        command(configs, broker, "--alter", *topic, *changes)
        described = command(configs, broker, "--describe", *topic)
        assert "segment.ms=7" in described
        assert "cleanup.policy" not in described
        assert "cleanup.policy=delete" in command(configs, broker, "--describe", *topic, "--all")


def test_kafka_streams_groups_describes_an_application(tmp_path: Path) -> None:
    groups = "streams.StreamsGroupCommand"
    with (
        RunningBroker({"orders": 2}) as broker,
        members(broker, tmp_path / "log", LIB_STREAMS) as java_members,
    ):
        app = {"kind": "streams", "group_id": "app", "topics": ["orders"], "repartitioned": []}
        java_members.send(add=[{**app, "name": "a", "state_dir": str(tmp_path / "a")}])
        broker.wait_until_stable("app", members=1, partitions=2)
        broker.produce("orders", b"1", key=b"k")
        assert ["app", "Stable"] in rows(command(groups, broker, "--list", "--state"))
        described = rows(command(groups, broker, "--describe", "--group", "app", "--members"))
        assert any(one[:1] == ["app"] for one in described), described
        assert "orders" in command(groups, broker, "--describe", "--group", "app")
        java_members.send(close=["a"])
