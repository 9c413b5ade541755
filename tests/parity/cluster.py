# SPDX-License-Identifier: Apache-2.0
"""Prepares a broker for scenarios, and moves the group coordinator from one node to another.

The coordinator of a group is the leader of its partition of the offsets topic.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from .wire import Connection, WireError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kio.schema.errors import ErrorCode

TOPICS = ("t", "u")
PARTITIONS = 2
OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"

SOME_NAMES = 64
"""With this many group names, every partition of the offsets topic gets a group."""

READY_TIMEOUT_S = 30.0
STEP_S = 0.02
NOT_YET = {
    "coordinator_not_available",
    "coordinator_load_in_progress",
    "not_coordinator",
    "concurrent_transactions",
    "unknown_topic_or_partition",
    "leader_not_available",
}


def prepare(host: str, port: int) -> None:
    """Makes the topics, moves all coordinators to this node, and waits until they are loaded.

    Kafka makes its internal topics at the first FindCoordinator request.
    """
    with Connection(host, port, "parity") as broker:
        create_topics(broker, TOPICS)
        for key_type in (0, 1):
            until_ready(partial(_coordinator, broker, key_type))
        nodes = {address: node for node, address in addresses(broker).items()}
        for topic in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC) if len(nodes) > 1 else ():
            move(broker, nodes[host, port], topic)
        load_groups(broker)
        # The first producer ids take long, so they are requested before a scenario's times count.
        for number in range(SOME_NAMES // 8):
            until_ready(partial(_producer_id, broker, f"ready-{number}"))


def load_groups(broker: Connection) -> None:
    """Waits until the node has loaded every partition of the offsets topic."""
    for number in range(SOME_NAMES):
        until_ready(partial(described, broker, f"ready-{number}"))


def create_topics(broker: Connection, names: Iterable[str]) -> None:
    topics = [
        {"name": name, "num_partitions": PARTITIONS, "replication_factor": 1,
         "assignments": [], "configs": []}
        for name in names
    ]  # fmt: skip
    for topic in broker.ask("create_topics", 7, topics=topics, timeout=10_000).topics:
        if topic.error_code.name != "topic_already_exists":
            must(topic.error_code, topic.name)
    for name in names:
        until_ready(partial(topic_of, broker, name))


def described(broker: Connection, group: str) -> Any:
    """Describes a group in version 2, in which a missing group is `Dead` and not an error."""
    return broker.ask("describe_groups", 2, groups=[group]).groups[0]


def topic_of(broker: Connection, name: str) -> Any:
    """Returns the topic in the cluster's metadata."""
    return _metadata(broker, name).topics[0]


def addresses(broker: Connection) -> dict[int, tuple[str, int]]:
    """Returns node id -> host and port."""
    nodes = _metadata(broker, OFFSETS_TOPIC).brokers
    return {node.node_id: (node.host, node.port) for node in nodes}


def leaders(broker: Connection, topic: str = OFFSETS_TOPIC) -> set[int]:
    """Returns the ids of the nodes that lead the topic's partitions."""
    return {one.leader_id for one in topic_of(broker, topic).partitions}


def move(broker: Connection, node: int, topic: str = OFFSETS_TOPIC) -> None:
    """Moves every partition of the topic to `node`; with the offsets topic, all groups move."""
    partitions = [one.partition_index for one in topic_of(broker, topic).partitions]
    answer = broker.ask(
        "alter_partition_reassignments", 0, timeout=10_000,
        topics=[{
            "name": topic,
            "partitions": [{"partition_index": p, "replicas": [node]} for p in partitions],
        }],
    )  # fmt: skip
    must(answer.error_code, topic)
    for one in answer.responses[0].partitions:
        must(one.error_code, f"{topic}-{one.partition_index}")
    wait(lambda: leaders(broker, topic) == {node}, f"{topic} did not move")


def until_ready(ask: Callable[[], Any]) -> Any:
    """Repeats the request while its error is one of `NOT_YET`; raises on any other error."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while True:
        answer = ask()
        if answer.error_code.name not in NOT_YET:
            must(answer.error_code, type(answer).__name__)
            return answer
        if time.monotonic() > deadline:
            raise WireError(f"{answer.error_code.name}, {READY_TIMEOUT_S:.0f} s long")
        time.sleep(STEP_S)


def wait(done: Callable[[], bool], what: str) -> None:
    """Calls `done` until it returns true; after the timeout, raises an error with text `what`."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while not done():
        if time.monotonic() > deadline:
            raise WireError(f"{what}, {READY_TIMEOUT_S:.0f} s long")
        time.sleep(STEP_S)


def must(code: ErrorCode, what: str) -> None:
    if code.value:
        raise WireError(f"{what}: {code.name}")


def _coordinator(broker: Connection, key_type: int) -> Any:
    asked = broker.ask("find_coordinator", 4, key_type=key_type, coordinator_keys=["ready-0"])
    return asked.coordinators[0]


def _producer_id(broker: Connection, name: str) -> Any:
    return broker.ask("init_producer_id", 4, transactional_id=name, transaction_timeout=60_000)


def _metadata(broker: Connection, topic: str) -> Any:
    return broker.ask("metadata", 4, topics=[{"name": topic}], allow_auto_topic_creation=False)
