# SPDX-License-Identifier: Apache-2.0
"""Java's own consumers, of the newest version and of 3.9, with the interface of `served_consumers`.

All consumers of a version live in one JVM, which runs `kafkarebalance.ServedConsumers` and ends
with this process.
"""

from __future__ import annotations

import functools
import itertools
import json
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any, ClassVar

from tests.support.broker import LIB, java, missing_tools
from tests.support.served_consumers import GROUP, HEARTBEAT_MS, POLL_S, TOPIC, Consumer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

OLD_LIB = LIB.parent / "lib-old"
"""The directory of the old kafka-clients."""

_names = itertools.count()


def missing_java() -> str | None:
    """Returns how to install a missing tool, or None if all Java consumers can run."""
    old = next(OLD_LIB.glob("kafka-clients-3.9*.jar"), None)
    return missing_tools() or (None if old else f"no jar in {OLD_LIB}: run `make judges`")


class _Jvm:
    """One JVM; each question is a line, and each answer is a line."""

    def __init__(self, first: tuple[Path, ...]) -> None:
        self._process = subprocess.Popen(
            java("kafkarebalance.ServedConsumers", log="off", first=first),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C must not reach the consumers
        )
        self._lock = threading.Lock()

    def ask(self, **question: Any) -> Any:
        """Returns the answer. Errors: RuntimeError."""
        assert self._process.stdin
        assert self._process.stdout
        with self._lock:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            answer = json.loads(self._process.stdout.readline() or '{"error": "the JVM ended"}')
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["answer"]


@functools.cache
def _jvm(first: tuple[Path, ...]) -> _Jvm:
    return _Jvm(first)


def jar_of(kind: type[Java]) -> str:
    """Returns the name of the jar from which these consumers come."""
    return str(_jvm(kind.first).ask(ask="jar")).rpartition("/")[2]


def java_produces(
    kind: type[Java], topic: str, partition: int, values: Sequence[str], end: str, **configs: str
) -> None:
    """Produces with the clients of `kind`; `end` is "commit" or "abort", or else empty."""
    named = {name.replace("_", "."): value for name, value in configs.items()}
    more = {"topic": topic, "partition": partition, "values": list(values), "end": end}
    _jvm(kind.first).ask(ask="produce", configs=named, **more)


class Java(Consumer):
    """A consumer of the newest kafka-clients, with Java's range assignor."""

    assignor = "RangeAssignor"
    first: ClassVar[tuple[Path, ...]] = ()

    def open(self) -> None:
        self._name = f"{self.client_id}-{next(_names)}"
        configs = {
            "bootstrap.servers": self.address,
            "group.id": GROUP,
            "client.id": self.client_id,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": self.isolation,
            **self.protocol(),
        }
        if self.instance_id is not None:
            configs["group.instance.id"] = self.instance_id
        self._ask("open", topic=TOPIC, configs=configs)

    def protocol(self) -> dict[str, Any]:
        """Returns the settings of the group protocol."""
        strategy = f"org.apache.kafka.clients.consumer.{self.assignor}"
        return {
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "partition.assignment.strategy": strategy,
        }

    def _ask(self, question: str, **more: Any) -> Any:
        return _jvm(self.first).ask(name=self._name, ask=question, **more)

    def poll(self) -> None:
        time.sleep(POLL_S)  # the consumer polls in the JVM

    def shut(self) -> None:
        self._ask("close")

    def assignment(self) -> set[int]:
        return set(self._ask("assignment"))

    def do_commit(self, partition: int, offset: int) -> None:
        self._ask("commit", partition=partition, offset=offset)

    def last_committed(self, partition: int) -> int:
        return int(self._ask("committed", partition=partition))

    @property
    def received(self) -> list[tuple[int, int, str]]:
        return [(one[0], one[1], one[2]) for one in self.run(lambda: self._ask("received"))]


class JavaCooperative(Java):
    assignor = "CooperativeStickyAssignor"


class OldJava(Java):
    """A consumer of kafka-clients 3.9."""

    first = (OLD_LIB,)


class OldJavaCooperative(OldJava):
    assignor = "CooperativeStickyAssignor"


class JavaByBroker(Java):
    """A member of a consumer group (KIP-848), whose broker assigns."""

    def protocol(self) -> dict[str, Any]:
        return {"group.protocol": "consumer"}


class OldJavaByBroker(JavaByBroker):
    first = (OLD_LIB,)


JAVA_CONSUMERS: tuple[type[Consumer], ...] = (
    Java,
    JavaCooperative,
    JavaByBroker,
    OldJava,
    OldJavaCooperative,
    OldJavaByBroker,
)
