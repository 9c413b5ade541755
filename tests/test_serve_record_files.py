# SPDX-License-Identifier: Apache-2.0
"""`serve --log-dir` also keeps records: a kill loses none that its producer got an answer for."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")
pytest.importorskip("confluent_kafka", reason="no confluent-kafka: pip install -e '.[confluent]'")

import confluent_kafka
from confluent_kafka.admin import AdminClient

from kafka_rebalance.serve.record_log import FILE
from kafka_rebalance.testing import RunningBroker
from tests.support.served_broker import running
from tests.support.waiting import FAR_S

if TYPE_CHECKING:
    from pathlib import Path

TOPIC = "orders"


def values(broker: RunningBroker) -> list[tuple[int, int, bytes | None]]:
    return [(one.partition, one.offset, one.value) for one in broker.records(TOPIC)]


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_kill_loses_no_record_whose_producer_was_answered(tmp_path: Path, codec: str) -> None:
    """Kills the process while an idempotent producer of librdkafka sends; it then goes on."""
    acked: dict[bytes, tuple[int, int]] = {}

    def delivered(error: object, message: confluent_kafka.Message) -> None:
        if error is None:
            acked[message.value()] = message.partition(), message.offset()

    for kill in range(3):
        before = len(acked)
        with running("--topic", f"{TOPIC}=3", "--log-dir", str(tmp_path)) as (process, host, port):
            producer = confluent_kafka.Producer(
                {
                    "bootstrap.servers": f"{host}:{port}",
                    "enable.idempotence": True,
                    "compression.type": codec,
                    "linger.ms": 0,
                    "message.timeout.ms": 5_000,
                }
            )
            for n in count():
                while len(producer) > 2_000:
                    producer.poll(0.1)
                value = b"%d.%d" % (kill, n)
                producer.produce(TOPIC, value, partition=n % 3, on_delivery=delivered)
                producer.poll(0)
                if len(acked) > before + 5_000:
                    break
            process.kill()
            process.wait(FAR_S)
            producer.purge()
            producer.flush(FAR_S)
    assert len(acked) > 15_000
    with RunningBroker({TOPIC: 3}, log_dir=tmp_path) as broker:
        found = {(partition, offset): value for partition, offset, value in values(broker)}
    assert {place: found.get(place) for place in acked.values()} == {
        place: value for value, place in acked.items()
    }


def test_a_torn_batch_is_cut_off_and_the_next_has_its_offset(tmp_path: Path) -> None:
    with RunningBroker({TOPIC: 1}, log_dir=tmp_path) as broker:
        broker.produce(TOPIC, b"apples", b"pears")
        broker.produce(TOPIC, b"plums")
    file = tmp_path / f"{TOPIC}-0" / FILE
    whole = file.read_bytes()
    for cut in (1, 20, 60):
        file.write_bytes(whole[:-cut])
        with RunningBroker({TOPIC: 1}, log_dir=tmp_path) as broker:
            assert broker.recovered[1] > 0
            assert values(broker) == [(0, 0, b"apples"), (0, 1, b"pears")]
            broker.produce(TOPIC, b"figs")
        with RunningBroker({TOPIC: 1}, log_dir=tmp_path) as broker:
            assert broker.recovered == (0, 0)
            assert values(broker)[2:] == [(0, 2, b"figs")]


def test_an_open_transaction_is_aborted_and_a_committed_one_is_not(tmp_path: Path) -> None:
    with RunningBroker({TOPIC: 1}, log_dir=tmp_path) as broker:
        where = {"bootstrap.servers": broker.address}
        for name, ends in (("done", True), ("open", False)):
            producer = confluent_kafka.Producer({**where, "transactional.id": name})
            producer.init_transactions(FAR_S)
            producer.begin_transaction()
            producer.produce(TOPIC, name.encode())
            producer.flush(FAR_S)
            if ends:
                producer.commit_transaction(FAR_S)
    with RunningBroker({TOPIC: 1}, log_dir=tmp_path) as broker:
        where = {"bootstrap.servers": broker.address}
        after = confluent_kafka.Producer({**where, "transactional.id": "after"})
        after.init_transactions(FAR_S)
        after.begin_transaction()
        after.produce(TOPIC, b"after")
        after.commit_transaction(FAR_S)
        consumer = confluent_kafka.Consumer(
            {**where, "group.id": "g", "isolation.level": "read_committed"}
        )
        consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
        seen = [consumer.poll(FAR_S).value() for _ in range(2)]
        consumer.close()
        assert seen == [b"done", b"after"]
        assert [value for _, _, value in values(broker)] == [b"done", b"open", b"after"]


def test_a_deleted_topic_has_no_records_after_a_restart(tmp_path: Path) -> None:
    with RunningBroker({TOPIC: 1, "kept": 1}, log_dir=tmp_path) as broker:
        broker.produce(TOPIC, b"apples")
        broker.produce("kept", b"pears")
        admin = AdminClient({"bootstrap.servers": broker.address})
        admin.delete_topics([TOPIC])[TOPIC].result(FAR_S)
    with RunningBroker({TOPIC: 1, "kept": 1}, log_dir=tmp_path) as broker:
        assert values(broker) == []
        assert [one.value for one in broker.records("kept")] == [b"pears"]


def test_a_disk_that_fails_refuses_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RunningBroker({TOPIC: 1}, log_dir=tmp_path) as broker:
        monkeypatch.setattr("pathlib.Path.mkdir", _full)
        failed: list[object] = []
        config = {"bootstrap.servers": broker.address, "retries": 0}
        producer = confluent_kafka.Producer(config)
        producer.produce(TOPIC, b"apples", on_delivery=lambda error, _: failed.append(error))
        producer.flush(FAR_S)
        assert [error.name() for error in failed] == ["KAFKA_STORAGE_ERROR"]  # type: ignore[attr-defined]
        monkeypatch.undo()
        assert values(broker) == []


def _full(*_: object, **__: object) -> None:
    raise OSError("no space")
