"""What `compare` prints, as it stands: settings of Kafka's own consumer, and Kafka's commands."""

from __future__ import annotations

import json
import shlex
import subprocess
from typing import TYPE_CHECKING

import pytest

from broker import Broker, java, missing_tools

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")

import kafka_rebalance as kr
from kafka_rebalance.plans.clients import JAVA, recipe
from kafka_rebalance.report.compare import copy_commands

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
    """Every line that may be printed, from every assignor to every other (friction 2)."""
    names = kr.assignor_names()
    wanted, texts = [], []
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


def test_the_commands_copy_a_groups_offsets(tmp_path: Path) -> None:
    """Run as they are printed, but for the script's name and the server's."""
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.structs import OffsetAndMetadata

    with Broker() as broker:
        server = broker.bootstrap_server
        with KafkaAdminClient(bootstrap_servers=server) as admin:
            admin.create_topics({"t": {"num_partitions": 3, "replication_factor": 1}})
        offsets = {TopicPartition("t", p): p + 1 for p in range(3)}
        # The command keeps offsets within what a partition has.
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
