# SPDX-License-Identifier: Apache-2.0
"""The settings and commands that `compare` prints work unchanged with real clients."""

from __future__ import annotations

import json
import shlex
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.broker import Broker, java, missing_tools

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")

from kafka import KafkaAdminClient

from kafka_rebalance.assignors.registry import KAFKAS
from kafka_rebalance.plans.clients import JAVA, KAFKA_PYTHON, recipe
from kafka_rebalance.report.plans.compare import copy_commands
from tests.support.live_members import await_stable
from tests.support.plug_in_members import PlugInMembers, generations

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.live

TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


@pytest.fixture(autouse=True, scope="module")
def tools() -> None:
    missing = missing_tools()
    if missing:
        pytest.skip(missing)


def test_javas_settings_construct_javas_consumers() -> None:
    """Java accepts every printed line of settings, from every assignor to every other."""
    names = KAFKAS
    wanted: list[list[str]] = []
    texts: list[str] = []
    for old in names:
        for new in {*names} - {old}:
            made = recipe(JAVA, old, new)
            texts += made.settings
            wanted += [[new, old], [new]]
    lines = "".join(f"{json.dumps(text)}\n" for text in texts)
    short = json.dumps("partition.assignment.strategy=cooperative-sticky,range")
    run = subprocess.run(
        java("kafkarebalance.Settings", log="error"),
        input=f"{lines}{short}\n",
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    *answers, refused = map(json.loads, run.stdout.splitlines())
    assert answers == [{"assignors": one} for one in wanted]
    assert "cooperative-sticky" in refused["error"]


def test_kafka_pythons_settings_take_a_group_over_in_two_bounces() -> None:
    """Members change from range to cooperative-sticky one by one, with the printed settings."""
    made = recipe(KAFKA_PYTHON, "range", "cooperative-sticky")
    assert made.way == "rolling"
    names: dict[str, Any] = {}
    exec(made.needs or "", names)
    both, new = (eval(text.partition("=")[2], names) for text in made.settings)
    with Broker() as broker:
        server = broker.bootstrap_server
        with KafkaAdminClient(bootstrap_servers=server) as admin:
            admin.create_topics({"t": {"num_partitions": 6, "replication_factor": 1}})
        with PlugInMembers(server) as members:
            for name in ("a", "b"):
                members.add("kafka-python", "g", f"{name}-0", [names["Range"]], ["t"])
            await_stable(server, {"g": 2})
            for bounce, strategy in ((1, both), (2, new)):
                for name in ("a", "b"):
                    members.stop(f"{name}-{bounce - 1}")
                    members.add("kafka-python", "g", f"{name}-{bounce}", strategy, ["t"])
                    await_stable(server, {"g": 2})
            assert members.failures() == {}
        protocols = [value.protocol for group, value in generations(server) if group == "g"]
    switched = protocols.index("cooperative-sticky")
    assert switched > 0
    assert set(protocols[:switched]) == {"range"}
    assert set(protocols[switched:]) == {"cooperative-sticky"}


def test_the_commands_copy_a_groups_offsets(tmp_path: Path) -> None:
    """The printed commands run unchanged, except for the names of the script and the server."""
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.structs import OffsetAndMetadata

    with Broker() as broker:
        server = broker.bootstrap_server
        with KafkaAdminClient(bootstrap_servers=server) as admin:
            admin.create_topics({"t": {"num_partitions": 3, "replication_factor": 1}})
        offsets = {TopicPartition("t", p): p + 1 for p in range(3)}
        # The command lowers offsets above a partition's end, so each partition needs records.
        with KafkaProducer(bootstrap_servers=server) as producer:
            for tp in [*offsets] * 5:
                producer.send(tp.topic, b"", partition=tp.partition)
            producer.flush()
        old = KafkaConsumer(bootstrap_servers=server, group_id="orders", enable_auto_commit=False)
        old.commit({tp: OffsetAndMetadata(at, "", -1) for tp, at in offsets.items()})
        old.close()
        for text in copy_commands("orders"):
            words, _, target = text.partition(" > ")
            script, *arguments = shlex.split(words.replace("HOST:9092", server))
            assert script == "kafka-consumer-groups.sh"
            run = subprocess.run(
                java(TOOL, *arguments),
                capture_output=True,
                cwd=tmp_path,
                encoding="utf-8",
                check=True,
            )
            assert "Error" not in run.stdout
            if target:
                (tmp_path / target).write_text(run.stdout, encoding="utf-8")
        new = KafkaConsumer(bootstrap_servers=server, group_id="orders-2", enable_auto_commit=False)
        assert {tp: new.committed(tp) for tp in offsets} == offsets
        new.close()
