# SPDX-License-Identifier: Apache-2.0
"""Opens a Kafka log with the client that is installed: confluent-kafka, else kafka-python.

log = open_log({"bootstrap.servers": "broker:9092"}, "__consumer_offsets")
for partition, bounds in log.bounds().items():
    for batch in log.records(partition, bounds.earliest, bounds.last_stable):
        ...
"""

import importlib.util
from collections.abc import Mapping

from kafka_rebalance.errors import MissingExtra

from .confluent_log import ConfluentLog
from .kafka_python_log import KafkaPythonLog
from .log_records import IDLE_S, TopicLog

CLIENTS = {"confluent-kafka": "confluent_kafka", "kafka-python": "kafka"}
"""The clients by name, each with the name of its module; the first one is preferred."""


def open_log(
    settings: Mapping[str, str], topic: str, *, client: str | None = None, idle_s: float = IDLE_S
) -> TopicLog:
    """Returns the log of a topic, read by `client` or the first installed one of CLIENTS."""
    names = [client] if client else list(CLIENTS)
    installed = [name for name in names if importlib.util.find_spec(CLIENTS[name])]
    if not installed:
        raise MissingExtra("reading a topic", "kafka")
    reader = ConfluentLog if installed[0] == "confluent-kafka" else KafkaPythonLog
    return reader(settings, topic, idle_s)
