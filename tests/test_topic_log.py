# SPDX-License-Identifier: Apache-2.0
"""Readers of logs, tested without a broker: settings, secrets, the choice of the client."""

from __future__ import annotations

import importlib.util
import pickle
from typing import TYPE_CHECKING

import pytest

from kafka_rebalance.errors import MissingExtra
from kafka_rebalance.live import ClusterError
from kafka_rebalance.live.log_records import (
    BATCH_BYTES,
    IdleLimit,
    RecordColumns,
    cluster_errors,
    without_secrets,
)
from kafka_rebalance.live.topic_log import KafkaPythonLog, open_log

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = {
    "bootstrap.servers": "b:9092",
    "sasl.username": "reader",
    "sasl.password": "tops3cret",
    "ssl.key.pem": "",
}


def test_a_short_secret_is_masked_as_a_word_only() -> None:
    """As part of words, the masks of a password `b` would show the password."""
    short = {"sasl.password": "b"}
    told = without_secrets("the broker takes no SASL, but b is the password", short)
    assert told == "the broker takes no SASL, but *** is the password"


def test_secrets_are_taken_out_of_errors() -> None:
    assert without_secrets("b:9092 reader tops3cret", SETTINGS) == "b:9092 reader ***"
    with pytest.raises(ClusterError) as caught, cluster_errors(SETTINGS):
        raise ValueError("no login for reader with tops3cret")
    assert str(caught.value) == "b:9092: ValueError: no login for reader with ***"
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_settings_that_kafka_python_lacks_are_named() -> None:
    pytest.importorskip("kafka", reason="no kafka-python: pip install -e '.[kafka]'")
    settings = {**SETTINGS, "queued.max.messages.kbytes": "1"}
    log = KafkaPythonLog(settings, "t", 1.0)
    with pytest.raises(ClusterError) as caught:
        log.bounds()
    assert "kafka.ssl.key.pem: not a setting that kafka-python takes" in str(caught.value)
    assert "tops3cret" not in str(caught.value)


def test_the_client_is_the_first_one_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    installed: set[str] = set()
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: name if name in installed else None
    )
    with pytest.raises(MissingExtra, match=r"pip install '\.\[kafka\]'"):
        open_log(SETTINGS, "t")
    installed.add("kafka")
    with pytest.raises(MissingExtra):
        open_log(SETTINGS, "t", client="confluent-kafka")
    pytest.importorskip("kafka", reason="no kafka-python: pip install -e '.[kafka]'")
    assert isinstance(open_log(SETTINGS, "t"), KafkaPythonLog)


def test_records_become_the_columns_of_sparks_own_source() -> None:
    columns = RecordColumns("t", 3)
    assert not columns
    columns.append(b"k", None, 7, 1_795_319_085_565, 1)
    columns.append(None, b"v", 9, 2**62, -1)  # far later than the year 9999
    first, second = columns.batch().to_pylist()
    assert (first["key"], first["value"], first["topic"]) == (b"k", None, "t")
    assert (first["partition"], first["offset"], first["timestampType"]) == (3, 7, 1)
    assert first["timestamp"].timestamp() == 1_795_319_085.565
    assert second["timestamp"].year == 9999
    assert not columns
    columns.append(b"", b"x" * BATCH_BYTES, 0, 0, 0)
    assert columns.is_full


def test_a_range_that_stands_still_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    idle = IdleLimit(10, 4, 50)
    for position in (5, 6):
        clock[0] += 9
        idle.check(position)
    clock[0] += 9
    idle.check(6)
    clock[0] += 9
    with pytest.raises(ClusterError, match="partition 4: nothing after offset 6 for 10 s, 50 is"):
        idle.check(6)


# Options of the data source -----------------------------------------------------------------------


def test_options_are_checked_before_anything_runs() -> None:
    pytest.importorskip("pyspark", reason="no pyspark: pip install -e '.[spark]'")
    from kafka_rebalance.spark.kafka_records import _checked

    named = _checked("b:9092", {"KAFKA.Client.Id": "me", "maxoffsetspertrigger": "5"})
    assert named["kafka.bootstrap.servers"] == "b:9092"
    for option, value, problem in (
        ("startingOffsets", "latest", "startingOffsets does not exist; there are topic, client"),
        ("maxOffsetsPerTrigger", "0", "maxOffsetsPerTrigger: 0 is not a whole number above 0"),
        ("client", "java", "client: java is none of confluent-kafka, kafka-python"),
    ):
        with pytest.raises(ValueError, match=problem):
            _checked("b:9092", {option: value})


def test_no_text_of_the_source_shows_a_secret(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="no pyspark: pip install -e '.[spark]'")
    from kafka_rebalance.spark.kafka_records import OffsetRange, _source

    file = tmp_path / "client.properties"
    file.write_text("# ours\n\nkafka.sasl.password = tops3cret\n", encoding="utf-8")
    source = _source({"kafka.sasl.password": "tops3cret", "optionsFile": str(file)})
    assert "tops3cret" not in repr(source)
    assert repr(pickle.loads(pickle.dumps(source))) == repr(source)
    assert repr(OffsetRange(3, 5, 9)) == "OffsetRange(partition=3, start=5, end=9)"
    file.write_text("sasl.password=tops3cret\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"client\.properties:1: not a line kafka\.NAME=VALUE"):
        source.open()
