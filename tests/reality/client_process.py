# SPDX-License-Identifier: Apache-2.0
"""One real consumer in its own process: Kafka's in a JVM, or librdkafka's in a Python.

Both programs read and write lines of one form; see OneConsumer.java.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from kafka_rebalance.member.config import JAVA, LIBRDKAFKA, ConsumerConfig
from tests.support.broker import java
from tests.support.processes import wait_or_kill

from .played import CALLBACKS, Event, name_of
from .scenario import POLL_MS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kafka_rebalance.simulator import MemberPlan

    Heard = Callable[["ClientProcess", dict[str, Any]], None]

CLIENTS = (JAVA, LIBRDKAFKA)

READY_TIMEOUT_S = 90.0
CLOSE_TIMEOUT_S = 15.0

CLASSES = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}

REFUSED = ("session_timeout_ms", "heartbeat_interval_ms", "partition_assignment_strategy")
"""The settings that a consumer refuses with group.protocol=consumer."""

ONLY_JAVA = ("request_timeout_ms",)
"""The settings that librdkafka's consumers lack."""


class RealityError(RuntimeError):
    """A consumer did not start, did not end well, or has an unexpected member id."""


class ClientProcess:
    """A process with one consumer, which waits for `tell("start")`; its log goes to `log`.

    `heard` is called with each line, in a thread of the process. If `waits`, the consumer returns
    from its callback of revoked partitions at `tell("go")`; only cooperative ones may wait.
    """

    def __init__(
        self,
        plan: MemberPlan,
        group_id: str,
        server: str,
        log: Path,
        heard: Heard,
        *,
        waits: bool = True,
    ) -> None:
        self.name = plan.name
        assert isinstance(plan.config, ConsumerConfig)
        self._is_classic = plan.config.is_classic
        is_cooperative = "cooperative-sticky" in plan.config.partition_assignment_strategy
        self.waits = waits and self._is_classic and is_cooperative
        self.lines: list[dict[str, Any]] = []
        self._log, self._heard = log, heard
        self._ready = threading.Event()
        self._is_killed = False
        configs = _configs(plan.name, plan.config)
        configs |= {"bootstrap.servers": server, "group.id": group_id}
        description = {
            "topics": plan.topics,
            "poll_ms": POLL_MS,
            "waits": self.waits,
            "configs": configs,
        }
        with log.open("wb") as stderr:
            self._process = subprocess.Popen(
                _program(plan.config.client_library, json.dumps(description)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            if line.endswith("\n"):  # a killed program can leave half a line
                self.lines.append(json.loads(line))
                self._ready.set()
                self._heard(self, self.lines[-1])
        self._ready.set()

    def await_ready(self) -> None:
        if not self._ready.wait(READY_TIMEOUT_S) or not self.lines:
            raise RealityError(f"{self.name} did not start:\n{self._last_words()}")

    def tell(self, word: str) -> None:
        """Sends a command; if the program has ended, does nothing."""
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(word + "\n")
            self._process.stdin.flush()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._is_killed = True
        self._process.kill()

    def must_have_ended_well(self) -> None:
        if self._process.returncode and not self._is_killed:
            raise RealityError(f"{self.name} did not end well:\n{self._last_words()}")

    def _last_words(self) -> str:
        return self._log.read_text(errors="replace")[-2000:]

    def wait(self, deadline: float) -> None:
        """Waits until the program has ended; kills it after the deadline."""
        wait_or_kill(self._process, max(0.0, deadline - time.monotonic()))
        self._reader.join(CLOSE_TIMEOUT_S)
        for stream in (self._process.stdin, self._process.stdout):
            assert stream
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    def lags(self) -> list[tuple[int, int]]:
        """Returns (time, largest delay of a poll since the line before) of each line, in ms."""
        return [(line["at_ms"], max(0, line["gap_ms"] - POLL_MS)) for line in self.lines]

    @property
    def answer_ms(self) -> int:
        """Returns the longest response time of a heartbeat; 0 for a librdkafka client."""
        longest: int = max(line.get("answer_ms", 0) for line in self.lines)
        return longest

    @property
    def member_id(self) -> str:
        """Returns the consumer's member id during its callbacks."""
        return next((one["member_id"] for one in self.lines if one.get("member_id")), "")

    def events(self, started_ms: int) -> list[Event]:
        """Returns the consumer's callbacks, with times from the start of the scenario."""
        found, joining_ms = [], 0
        for line in self.lines:
            if line["event"] not in CALLBACKS:
                continue
            is_named = self._is_classic and line["member_id"]
            if is_named and name_of(line["member_id"]) != self.name:
                raise RealityError(f"{self.name} is {line['member_id']!r}")
            at_ms, joined_ms = line["at_ms"] - started_ms, None
            # `joining_ms`, a sum, now includes this rebalance.
            if line["event"] == "assigned" and "joining_ms" in line:
                joined_ms = at_ms - (line["joining_ms"] - joining_ms)
                joining_ms = line["joining_ms"]
            found.append(
                Event(
                    at_ms,
                    self.name,
                    line["event"],
                    tuple(line["partitions"]),
                    line["generation_id"],
                    joined_ms,
                )
            )
        return found


def _program(library: str, description: str) -> list[str]:
    if library == JAVA:
        return java("kafkarebalance.OneConsumer", description, log="info")
    return [sys.executable, "-m", "tests.reality.one_librdkafka", description]


def _configs(name: str, consumer: ConsumerConfig) -> dict[str, str]:
    """Returns the consumer's settings; the fields of our settings have Kafka's names."""
    configs = {"client.id": name, "auto.offset.reset": "earliest"}
    left_out: tuple[str, ...] = ("client_library",)
    if consumer.client_library == JAVA:
        configs["metrics.sample.window.ms"] = "600000"  # metrics of the whole run
    else:
        left_out += ONLY_JAVA
    if not consumer.is_classic:
        left_out += REFUSED
    for one in fields(consumer):
        value = getattr(consumer, one.name)
        if one.name in left_out:
            continue
        if one.name == "partition_assignment_strategy":
            value = ",".join(CLASSES[assignor] for assignor in value)
        if value is not None:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            configs[one.name.replace("_", ".")] = text
    return configs
