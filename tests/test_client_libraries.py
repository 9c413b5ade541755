# SPDX-License-Identifier: Apache-2.0
"""The library of each real member is recognised by the bytes that it sends to our coordinator."""

from __future__ import annotations

import logging

import pytest

pytest.importorskip("kio", reason="no kio: pip install -e '.[serve]'")
pytest.importorskip("kafka", reason="no kafka-python: pip install -e '.[kafka]'")
pytest.importorskip("aiokafka", reason="no aiokafka: pip install -e '.[aiokafka]'")
pytest.importorskip("confluent_kafka", reason="no confluent-kafka: pip install -e '.[confluent]'")

from kafka_rebalance.wire import consumer_protocol as wire
from kafka_rebalance.wire.sent_members import client_library, leader_library
from tools import sent_subscriptions

PYTHON = ("kafka-python", "aiokafka")


@pytest.fixture(scope="module")
def sent() -> list[sent_subscriptions.Sent]:
    for library in ("kafka", "aiokafka"):
        logging.getLogger(library).setLevel(logging.CRITICAL)
    return sent_subscriptions.sent_by_python_clients()


@pytest.mark.soak
def test_every_member_is_recognised(sent: list[sent_subscriptions.Sent]) -> None:
    """With a user's own client id, most Python members are "python", and none is another library.

    cooperative-sticky distinguishes kafka-python from aiokafka, and so does sticky once a member
    rejoined.
    """
    found = {
        (one.library, one.assignor): client_library(one.subscription, one.assignor, "orders-1")
        for one in sent
    }
    assert len(found) == 4 + 3 + 3
    for (library, assignor), name in found.items():
        if library not in PYTHON or assignor == "cooperative-sticky":
            assert name == library
        elif assignor == "sticky":
            assert name in ("python", library)
        else:
            assert name == "python"
    for one in sent:
        if one.library in PYTHON:
            client_id = f"{one.library}-1.0"
            named = client_library(one.subscription, one.assignor, client_id)
            assert named == one.library


@pytest.mark.parametrize(
    ("assignor", "version", "library"),
    [
        ("stream", 3, "java"),
        ("stream", 1, "java"),  # before Kafka 2.4
        ("of-our-own", 3, None),
        ("range", 3, "librdkafka"),
    ],
)
def test_user_data_of_custom_assignors(assignor: str, version: int, library: str | None) -> None:
    """Members of Kafka Streams send user data, as librdkafka's do, but librdkafka has no assignor
    "stream".
    """
    task_info = bytes.fromhex("0000000b0000000b") + bytes(16)  # the version used, and the newest
    subscription = wire.Subscription(("orders",), task_info, version=version)
    assert client_library(subscription, assignor, "orders-StreamThread-1-consumer") == library


def test_every_leader_is_recognised(sent: list[sent_subscriptions.Sent]) -> None:
    for names in {(one.library, one.assignor) for one in sent}:
        group = [one for one in sent if (one.library, one.assignor) == names]
        found = leader_library(
            [one.assignment for one in group], [one.subscription.version for one in group]
        )
        assert found == ("python" if names[0] in PYTHON else names[0])


def test_the_page_has_these_bytes(sent: list[sent_subscriptions.Sent]) -> None:
    """If the page is not current, run `python -m tools.sent_subscriptions --java`."""
    page = sent_subscriptions.PAGE.read_text(encoding="utf-8").splitlines()
    for row in sent_subscriptions.rows(sent):
        assert f"| {' | '.join(row)} |" in page
