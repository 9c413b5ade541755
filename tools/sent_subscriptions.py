# SPDX-License-Identifier: Apache-2.0
"""Writes the table of docs/plans.md that shows how each library's bytes look.

    python -m tools.sent_subscriptions [--java]

Two real consumers of each library and assignor live in a group of their own on this project's
coordinator: one without a rack, one with `client.rack`. Both join the first generation, for which
the coordinator waits: a member that joins again may send user data. The table shows the bytes that
the consumer without a rack sent and received. Without `--java`, the rows of Java stay as they are.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import re
import sys
import tempfile
import threading
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka_rebalance.testing import RunningBroker
from kafka_rebalance.wire import consumer_protocol as wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

PAGE = Path(__file__).resolve().parent.parent / "docs" / "plans.md"
BLOCK = re.compile(
    r"(<!-- written by tools\.sent_subscriptions -->\n).*?(<!-- end -->\n)", re.DOTALL
)
COLUMNS = (
    "library", "assignor", "version", "topics", "user data", "no rack", "assigned", "user data",
)  # fmt: skip
RACK = "a"
TOPICS = ("f", "d", "b", "e", "a", "c")
PATIENCE_S = 60.0
FIRST_GENERATION_MS = 6_000
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
PYTHON_CLASSES = {
    "range": "range.RangePartitionAssignor",
    "roundrobin": "roundrobin.RoundRobinPartitionAssignor",
    "sticky": "sticky.sticky_assignor.StickyPartitionAssignor",
    "cooperative-sticky": "cooperative_sticky.CooperativeStickyAssignor",
}


class Sent(NamedTuple):
    """The bytes of one member: its subscription, and the assignment that it received."""

    library: str
    assignor: str
    client_id: str
    subscription: wire.Subscription
    assignment: wire.AssignmentData | None


def python_class(package: str, assignor: str) -> Any:
    module, _, name = PYTHON_CLASSES[assignor].rpartition(".")
    return getattr(__import__(f"{package}.coordinator.assignors.{module}", fromlist=[name]), name)


def _settings(address: str, group_id: str, rack: str | None) -> dict[str, Any]:
    return {
        "bootstrap_servers": address,
        "group_id": group_id,
        "client_id": group_id,
        "heartbeat_interval_ms": 200,
        "enable_auto_commit": False,
        **({} if rack is None else {"client_rack": rack}),
    }


def _kafka_python(settings: dict[str, Any], assignor: str, ended: threading.Event) -> None:
    from kafka import KafkaConsumer

    strategy = [python_class("kafka", assignor)]
    consumer = KafkaConsumer(*TOPICS, partition_assignment_strategy=strategy, **settings)
    while not ended.is_set():
        consumer.poll(timeout_ms=100)
    consumer.close()


def _aiokafka(settings: dict[str, Any], assignor: str, ended: threading.Event) -> None:
    from aiokafka import AIOKafkaConsumer

    async def live() -> None:
        # The sticky class keeps its state on the class, so each member needs a class of its own.
        strategy = (type("Own", (python_class("aiokafka", assignor),), {}),)
        consumer = AIOKafkaConsumer(*TOPICS, partition_assignment_strategy=strategy, **settings)
        await consumer.start()
        while not ended.is_set():
            await consumer.getmany(timeout_ms=100)
        await consumer.stop()

    asyncio.run(live())


def _librdkafka(settings: dict[str, Any], assignor: str, ended: threading.Event) -> None:
    from confluent_kafka import Consumer

    configs = {
        "bootstrap.servers" if name == "bootstrap_servers" else name.replace("_", "."): value
        for name, value in settings.items()
    }
    consumer = Consumer(configs | {"partition.assignment.strategy": assignor})
    consumer.subscribe(list(TOPICS))
    while not ended.is_set():
        consumer.poll(0.1)
    consumer.close()


LIBRARIES: Mapping[str, tuple[Callable[..., None], tuple[str, ...]]] = {
    "kafka-python": (_kafka_python, ASSIGNORS),
    "aiokafka": (_aiokafka, ASSIGNORS[:3]),
    "librdkafka": (_librdkafka, ("range", "roundrobin", "cooperative-sticky")),
}


def sent_by_python_clients() -> list[Sent]:
    """Returns the bytes that members of all libraries in LIBRARIES sent."""
    ended = threading.Event()
    groups = {
        f"{library}.{assignor}": (library, assignor)
        for library, (_, assignors) in LIBRARIES.items()
        for assignor in assignors
    }
    with RunningBroker(dict.fromkeys(TOPICS, 2), initial_delay_ms=FIRST_GENERATION_MS) as broker:
        threads = [
            threading.Thread(
                target=LIBRARIES[library][0],
                args=(_settings(broker.address, group_id, rack), assignor, ended),
                daemon=True,
            )
            for group_id, (library, assignor) in groups.items()
            for rack in (None, RACK)
        ]
        for thread in threads:
            thread.start()
        try:
            return [one for found in _settled(broker.address, groups) for one in found]
        finally:
            ended.set()
            for thread in threads:
                thread.join(10)


def sent_by_java() -> list[Sent]:
    """Returns the bytes that members of Kafka's own client sent; needs the jars of tools/broker."""
    from tests.support.live_members import JavaMembers

    groups = {f"java.{assignor}": ("java", assignor) for assignor in ASSIGNORS}
    with (
        RunningBroker(dict.fromkeys(TOPICS, 2), initial_delay_ms=FIRST_GENERATION_MS) as broker,
        tempfile.TemporaryDirectory() as directory,
        JavaMembers(broker.address, Path(directory, "java.log")) as java,
    ):
        members = [
            {
                "name": f"{group_id}.{rack}",
                "group_id": group_id,
                "client_id": group_id,
                "group_instance_id": None,
                "client_rack": rack,
                "assignors": [assignor],
                "topics": TOPICS,
                "configs": {"group.protocol": "classic", "heartbeat.interval.ms": "200"},
            }
            for group_id, (_, assignor) in groups.items()
            for rack in (None, RACK)
        ]
        java.send(wait=False, add=members)
        return [one for found in _settled(broker.address, groups) for one in found]


def _settled(address: str, groups: Mapping[str, tuple[str, str]]) -> Iterator[list[Sent]]:
    """Yields the bytes that each group's two members sent, as soon as both own partitions."""
    from kafka import KafkaAdminClient

    with KafkaAdminClient(bootstrap_servers=address) as admin:
        # As in `live/consumer_groups.py`: the client would decode the members' bytes by itself.
        admin._describe_groups_process_response = lambda response: {
            group.group_id: group for group in response.groups
        }
        for group_id, names in groups.items():
            deadline = time.monotonic() + PATIENCE_S
            while True:
                described = admin.describe_groups([group_id])[group_id]
                members = described.members if described.group_state == "Stable" else []
                if len(members) == 2 and all(len(one.member_assignment) > 12 for one in members):
                    break
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{group_id} has not settled")
                time.sleep(0.3)
            yield [
                Sent(
                    *names,
                    member.client_id,
                    wire.decode_subscription(member.member_metadata),
                    wire.decode_assignment(member.member_assignment),
                )
                for member in members
            ]


def rows(sent: list[Sent]) -> Iterator[tuple[str, ...]]:
    """Yields a row for each library and assignor."""
    for names in dict.fromkeys((one.library, one.assignor) for one in sent):
        both = [one for one in sent if (one.library, one.assignor) == names]
        without = next(one for one in both if not one.subscription.rack_id)
        subscription, assignment = without.subscription, without.assignment
        assert assignment is not None
        yield (
            *names,
            str(subscription.version),
            "sorted" if list(subscription.topics) == sorted(TOPICS) else "not sorted",
            _bytes(subscription.user_data),
            "" if subscription.version < 3 else "null" if subscription.rack_id is None else "empty",
            f"version {assignment.version}",
            _bytes(assignment.user_data),
        )


def _bytes(data: bytes | None) -> str:
    return "null" if data is None else f"{len(data)} bytes"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.sent_subscriptions")
    parser.add_argument("--java", action="store_true", help="run Java's clients too")
    java = parser.parse_args().java
    logging.disable(logging.CRITICAL)
    sent = (sent_by_java() if java else []) + sent_by_python_clients()
    text = PAGE.read_text(encoding="utf-8")
    old = [line for line in BLOCK.search(text)[0].splitlines() if line.startswith("| java")]  # type: ignore[index]
    lines = [] if java else old
    lines += [f"| {' | '.join(row)} |" for row in rows(sent)]
    packages = ("kafka-python", "aiokafka", "confluent-kafka")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    head = [f"| {' | '.join(COLUMNS)} |", f"|{' --- |' * len(COLUMNS)}"]
    made = "\n".join([f"Java 4.4.0, {versions}:", "", *head, *lines, ""])
    PAGE.write_text(BLOCK.sub(lambda found: f"{found[1]}{made}{found[2]}", text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
