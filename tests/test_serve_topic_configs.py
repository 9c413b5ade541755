# SPDX-License-Identifier: Apache-2.0
"""Settings of topics: made, changed, described; two of them have an effect."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")
pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("confluent_kafka", reason="no confluent-kafka: pip install -e '.[confluent]'")

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin import ConfigResource as Resource
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import ConfigResource, NewTopic
from kafka.errors import InvalidConfigurationError

from kafka_rebalance.testing import RunningBroker
from tests.support.served_broker import connection

if TYPE_CHECKING:
    from tests.parity.wire import Connection

SET, DELETE, APPEND, SUBTRACT = range(4)


def alter(one: Connection, *changes: tuple[str, int, str | None], topic: str = "t") -> str:
    configs = [dict(zip(("name", "config_operation", "value"), c, strict=True)) for c in changes]
    resource = {"resource_type": 2, "resource_name": topic, "configs": configs}
    answer = one.ask("incremental_alter_configs", 1, resources=[resource], validate_only=False)
    return str(answer.responses[0].error_code.name)


def described(one: Connection, *names: str, topic: str = "t") -> dict[str, tuple[Any, ...]]:
    resource = {"resource_type": 2, "resource_name": topic, "configuration_keys": names or None}
    asked = {"include_synonyms": False, "include_documentation": False}
    (found,) = one.ask("describe_configs", 4, resources=[resource], **asked).results
    assert found.error_code.name == ("none" if topic == "t" else "unknown_topic_or_partition")
    return {c.name: (c.value, c.config_source, c.config_type) for c in found.configs}


def test_settings_of_a_topic_are_changed_and_described() -> None:
    policy, ratio, switch = "cleanup.policy", "min.cleanable.dirty.ratio", "preallocate"
    with RunningBroker({"t": 1}) as broker, connection(broker) as one:
        assert len(described(one)) == 37
        assert described(one, "retention.ms") == {"retention.ms": ("604800000", 5, 5)}
        assert alter(one, (policy, APPEND, "compact"), (ratio, SET, "0.1")) == "none"
        assert alter(one, (switch, SET, "TRUE"), ("retention.ms", SET, "-1")) == "none"
        assert described(one, policy, ratio, switch, "retention.ms") == {
            policy: ("delete,compact", 1, 7),
            ratio: ("0.1", 1, 6),
            switch: ("true", 1, 1),
            "retention.ms": ("-1", 1, 5),
        }
        assert alter(one, (policy, SUBTRACT, "delete"), (ratio, DELETE, None)) == "none"
        assert described(one, policy, ratio) == {policy: ("compact", 1, 7), ratio: ("0.5", 5, 6)}
        resource = {
            "resource_type": 2,
            "resource_name": "t",
            "configs": [{"name": ratio, "value": "1"}],
        }
        asked = {"resources": [resource], "validate_only": False}
        (answer,) = one.ask("alter_configs", 2, **asked).responses
        assert answer.error_code.name == "none"
        assert [name for name, (_, source, _) in described(one).items() if source == 1] == [ratio]
        broker.grow("t", 2)
        assert described(one, ratio)[ratio][0] == "1.0"
        one.ask("delete_topics", 5, topic_names=["t"], timeout=1)
        broker.add_topic("t", 1, {policy: "compact"})
        assert described(one, policy, ratio) == {policy: ("compact", 1, 7), ratio: ("0.5", 5, 6)}
        assert described(one, topic="no") == {}


@pytest.mark.parametrize(
    ("name", "operation", "value", "error"),
    [
        ("no.such", SET, "1", "invalid_config"),
        ("retention.ms", SET, "-2", "invalid_config"),
        ("retention.ms", SET, "1_0", "invalid_config"),
        ("retention.ms", SET, None, "invalid_request"),
        ("retention.ms", APPEND, "1", "invalid_config"),
        ("cleanup.policy", SET, "compact,none", "invalid_config"),
        ("message.timestamp.type", SET, "now", "invalid_config"),
        ("preallocate", SET, "1", "invalid_config"),
        ("min.cleanable.dirty.ratio", SET, "nan", "invalid_config"),
        ("min.cleanable.dirty.ratio", 4, "1", "invalid_request"),
    ],
)
def test_a_wrong_change_is_refused(
    name: str, operation: int, value: str | None, error: str
) -> None:
    with RunningBroker({"t": 1}) as broker, connection(broker) as one:
        before = described(one)
        assert alter(one, ("segment.ms", SET, "5"), (name, operation, value)) == error
        assert described(one) == before
        assert alter(one, ("segment.ms", SET, "5"), topic="no") == "unknown_topic_or_partition"
        if operation == SET and value is not None:
            with pytest.raises(kr.GroupError, match=f"{name}: "):
                broker.add_topic("u", 1, {name: value})


def test_admin_clients_make_and_describe_topics_with_settings() -> None:
    with RunningBroker({}) as broker:
        with closing(KafkaAdminClient(bootstrap_servers=broker.address)) as admin:
            admin.create_topics([NewTopic("t", 1, 1, topic_configs={"retention.ms": "5"})])
            found = admin.describe_configs([ConfigResource("TOPIC", "t")], config_filter="all")
            assert found["topic"]["t"]["retention.ms"]["value"] == "5"
            with pytest.raises(InvalidConfigurationError, match="no such setting"):
                admin.create_topics([NewTopic("u", 1, 1, topic_configs={"retention": "5"})])
        made = AdminClient({"bootstrap.servers": broker.address})
        asked = Resource(Resource.Type.TOPIC, "t")
        entries = made.describe_configs([asked])[asked].result(10)
        assert (entries["retention.ms"].value, entries["retention.ms"].is_default) == ("5", False)
        assert entries["segment.ms"].is_default


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_topic_has_a_largest_batch_and_the_time_of_the_append(codec: str) -> None:
    with RunningBroker({}, stopped_clock=True) as broker:
        settings = {"max.message.bytes": "2000", "message.timestamp.type": "LogAppendTime"}
        broker.add_topic("t", 1, settings)
        broker.add_topic("large", 1, {"max.message.bytes": "3000000"})
        broker.advance(1_000_000)
        delivered: list[Any] = []
        where = {"bootstrap.servers": broker.address, "message.max.bytes": 3_000_000}
        producer = Producer({**where, "compression.type": codec})
        values = {"small": b"v" * 500, "large": bytes(range(256)) * 8_000}
        for topic, size in ("t", "small"), ("t", "large"), ("large", "large"):
            producer.produce(
                topic, values[size], timestamp=5, on_delivery=lambda *told: delivered.append(told)
            )
            producer.flush(10)
        codes = [None if error is None else error.name() for error, _ in delivered]
        assert codes == [None, "MSG_SIZE_TOO_LARGE", None]
        assert delivered[0][1].timestamp() == (2, 1_000_000)
        assert [one.timestamp for one in broker.records("t")] == [1_000_000]
        with closing(KafkaConsumer(bootstrap_servers=broker.address)) as consumer:
            consumer.assign([TopicPartition("t", 0)])
            consumer.seek_to_beginning()
            (read,) = next(iter(consumer.poll(10_000).values()))
            assert (read.timestamp, read.timestamp_type) == (1_000_000, 1)


def test_a_compacted_topic_refuses_records_without_a_key() -> None:
    with RunningBroker({}) as broker:
        broker.add_topic("t", 1, {"cleanup.policy": "compact"})
        delivered: list[str | None] = []
        producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 1000})
        for key in (b"k", None, None):
            producer.produce(
                "t",
                b"v",
                key=key,
                on_delivery=lambda error, _: delivered.append(error and error.name()),
            )
        producer.flush(10)
        assert delivered == ["_INVALID_DIFFERENT_RECORD", "INVALID_RECORD", "INVALID_RECORD"]
        assert broker.records("t") == []
