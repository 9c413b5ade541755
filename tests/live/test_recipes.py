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

pytest.importorskip("aiokafka", reason="aiokafka is not installed: pip install -e '.[aiokafka]'")
pytest.importorskip("confluent_kafka", reason="no confluent-kafka: pip install -e '.[confluent]'")

from kafka import KafkaAdminClient

from kafka_rebalance.assignors.registry import KAFKAS, protocol_name
from kafka_rebalance.notes.switches import copy_commands
from kafka_rebalance.plans.clients import (
    AIOKAFKA,
    JAVA,
    KAFKA_PYTHON,
    LIBRDKAFKA,
    ClientLibrary,
    recipe,
)
from tests.real_groups.librdkafka_members import LibrdkafkaMembers
from tests.support.live_members import JavaMembers, await_stable
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


@pytest.mark.parametrize("old", ["range", "kafka-python/range", "kafka-python/sticky"])
def test_kafka_pythons_settings_take_a_group_over_in_two_bounces(old: str) -> None:
    """Members change to the cooperative plug-in one by one, with the printed settings."""
    made = recipe(KAFKA_PYTHON, old, "cooperative-sticky")
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
                members.add("kafka-python", "g", f"{name}-0", [both[1]], ["t"])
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
    assert set(protocols[:switched]) == {protocol_name(old)}
    assert set(protocols[switched:]) == {"cooperative-sticky"}


def test_members_of_the_other_libraries_switch_as_printed(tmp_path: Path) -> None:
    """Members of librdkafka and aiokafka all stop, then start; Java's are restarted in turn."""
    with Broker() as broker:
        server = broker.bootstrap_server
        with KafkaAdminClient(bootstrap_servers=server) as admin:
            admin.create_topics({"t": {"num_partitions": 6, "replication_factor": 1}})
        _switch_librdkafka(server, *_values(LIBRDKAFKA, "cooperative-sticky", "stop all"))
        _switch_aiokafka(server)
        _switch_java(server, _values(JAVA, "cooperative-sticky", "rolling"), tmp_path / "log")
        used = [(group, value.protocol) for group, value in generations(server)]
    for group, new in (
        ("rd", "cooperative-sticky"),
        ("aio", "sticky"),
        ("j", "cooperative-sticky"),
    ):
        protocols = [protocol for name, protocol in used if name == group]
        switched = protocols.index(new)
        assert switched > 0
        assert set(protocols[:switched]) == {"range"}
        assert set(protocols[switched:]) == {new}


def _values(client: ClientLibrary, new: str, way: str) -> list[str]:
    """Returns the values of the printed settings, for a switch from range."""
    made = recipe(client, "range", new)
    assert made.way == way
    assert all(text.startswith("partition.assignment.strategy=") for text in made.settings)
    return [text.partition("=")[2] for text in made.settings]


def _switch_librdkafka(server: str, new: str) -> None:
    for assignor in ("range", new):
        with LibrdkafkaMembers(server) as members:
            for name in ("rd-a", "rd-b"):
                members.add("rd", name, assignor, ["t"])
            await_stable(server, {"rd": 2})


def _switch_aiokafka(server: str) -> None:
    from kafka_rebalance.clients.aiokafka import Range

    made = recipe(AIOKAFKA, "range", "sticky")
    assert made.way == "stop all"
    names: dict[str, Any] = {}
    exec(made.needs or "", names)
    (new,) = (eval(text.partition("=")[2], names) for text in made.settings)
    for strategy in ([Range], [*new]):
        with PlugInMembers(server) as members:
            for name in ("aio-a", "aio-b"):
                members.add("aiokafka", "aio", name, strategy, ["t"])
            await_stable(server, {"aio": 2})
            assert members.failures() == {}


def _switch_java(server: str, values: list[str], log: Path) -> None:
    def member(name: str, value: str) -> dict[str, Any]:
        settings = {"partition.assignment.strategy": value}
        common = {"group_id": "j", "assignors": ["range"], "topics": ["t"], "configs": settings}
        return {"client_id": name, **common}

    with JavaMembers(server, log) as members:
        old = "org.apache.kafka.clients.consumer.RangeAssignor"
        members.tell(add=[member(name, old) for name in ("j-a", "j-b")])
        for value in values:
            for name in ("j-a", "j-b"):
                members.tell(close=[name])
                members.tell(add=[member(name, value)])


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
