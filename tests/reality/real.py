# SPDX-License-Identifier: Apache-2.0
"""The real side: Kafka's own consumers, each in its own JVM, act at the scenario's times.

All JVMs have started before the first consumer subscribes, because the simulator does not simulate
the start of a JVM.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
import uuid
from base64 import urlsafe_b64encode
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from kafka_rebalance.member import ConsumerConfig
from kafka_rebalance.simulator import Kind
from tests.support.broker import java

from .played import CALLBACKS, KILLED, Event, Played, name_of
from .scenario import POLL_MS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from kafka_rebalance.simulator import MemberPlan, Scenario

READY_TIMEOUT_S = 90.0
CLOSE_TIMEOUT_S = 15.0

SLEEP_MS = 10

OVERTAKEN = "SyncGroup failed: The group began another rebalance"
"""The text that a consumer logs when its SyncGroup is answered with REBALANCE_IN_PROGRESS."""

CLASSES = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}

REFUSED = ("session_timeout_ms", "heartbeat_interval_ms", "partition_assignment_strategy")
"""The settings that a consumer refuses with group.protocol=consumer."""


class RealityError(RuntimeError):
    """A consumer did not start, did not end well, or has an unexpected member id."""


def prepare(server: str, scenarios: Sequence[Scenario]) -> None:
    """Creates the topics, and waits for the groups' coordinator.

    Kafka creates the coordinator's own topic at the first request for a group.
    """
    from kafka import KafkaAdminClient
    from kafka.errors import KafkaError

    topics = {name: plan for one in scenarios for name, plan in one.topics.items()}
    deadline = time.monotonic() + READY_TIMEOUT_S
    with KafkaAdminClient(bootstrap_servers=server) as admin:
        admin.create_topics(
            {
                name: {"num_partitions": plan.partitions, "replication_factor": 1}
                for name, plan in topics.items()
            },
            wait_for_metadata=True,
        )
        for scenario in scenarios:
            while True:
                try:
                    admin.describe_groups([scenario.group_id])
                    break
                except KafkaError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.2)


def play(scenario: Scenario, server: str, directory: Path) -> Played:
    """Plays the scenario in real time; the JVMs' logs go to `directory`.

    Each attempt has its own group, so that it does not see the state of an earlier attempt.
    """
    todo = sorted(
        [
            *((one.start_ms, Kind.START, one.name) for one in scenario.members),
            *((one.at_ms, one.kind, one.member) for one in scenario.happenings),
        ],
        key=lambda one: one[0],
    )
    plans = {one.name: one for one in scenario.members}
    group_id = f"{scenario.group_id}-{uuid.uuid4().hex[:8]}"
    jvms: list[_Jvm] = []
    killed: list[tuple[int, str]] = []
    up: dict[str, _Jvm] = {}
    sleeper = _Sleeper()
    try:
        for name in (name for _, kind, name in todo if kind is Kind.START):
            log = directory / f"{group_id}-{len(jvms)}.log"
            jvms.append(_Jvm(plans[name], group_id, server, log))
        waiting = list(jvms)
        for jvm in jvms:
            jvm.await_ready()
        started_ms = _now_ms()
        sleeper.start()
        for at_ms, kind, name in todo:
            _sleep_until(started_ms + at_ms)
            match kind:
                case Kind.START:
                    up[name] = waiting.pop(0)
                    up[name].tell("start")
                case Kind.STOP:
                    up.pop(name).tell("close")
                case Kind.KILL:
                    killed.append((_now_ms(), name))
                    up.pop(name).kill()
                case _:
                    raise ValueError(f"{kind} is not for real consumers")
        _sleep_until(started_ms + scenario.until_ms)
    finally:
        sleeper.ended.set()
        for jvm in jvms:
            jvm.tell("close")
        deadline = time.monotonic() + CLOSE_TIMEOUT_S
        for jvm in jvms:
            jvm.wait(deadline)
    for jvm in jvms:
        jvm.must_have_ended_well()
    events = [event for jvm in jvms for event in jvm.events(started_ms)]
    events += [Event(at_ms - started_ms, name, KILLED) for at_ms, name in killed]
    events.sort(key=lambda one: one.at_ms)
    lags = [*sleeper.lags, *(lag for jvm in jvms for lag in jvm.lags())]
    return Played(
        events=tuple(one for one in events if one.at_ms < scenario.until_ms),
        answer_ms=max(line["answer_ms"] for jvm in jvms for line in jvm.lines),
        lags=tuple((at_ms - started_ms, late_ms) for at_ms, late_ms in lags),
        overtaken=tuple(jvm.name for jvm in jvms if jvm.was_overtaken()),
        member_ids={
            name: tuple(jvm.member_id for jvm in jvms if jvm.name == name) for name in plans
        },
    )


def topic_ids(server: str, topics: Iterable[str]) -> dict[str, str]:
    """Returns the ids of topics, as Kafka writes them."""
    from kafka import KafkaAdminClient

    with KafkaAdminClient(bootstrap_servers=server) as admin:
        found = admin.describe_topics(list(topics))
    return {one["name"]: _written(uuid.UUID(str(one["topic_id"]))) for one in found}


def _written(topic_id: uuid.UUID) -> str:
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


class _Sleeper(threading.Thread):
    """Measures how late this machine's timers are: sleeps, and records how late it wakes up."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.lags: list[tuple[int, int]] = []

    def run(self) -> None:
        while not self.ended.is_set():
            before_ms = _now_ms()
            time.sleep(SLEEP_MS / 1000)
            late_ms = _now_ms() - before_ms - SLEEP_MS
            if late_ms > 1:
                self.lags.append((before_ms, late_ms))


class _Jvm:
    """A JVM that runs the program kafkarebalance.OneConsumer."""

    def __init__(self, plan: MemberPlan, group_id: str, server: str, log: Path) -> None:
        self.name = plan.name
        assert isinstance(plan.config, ConsumerConfig)
        self._is_classic = plan.config.is_classic
        self.lines: list[dict[str, Any]] = []
        self._log = log
        self._ready = threading.Event()
        self._is_killed = False
        description = {
            "topics": plan.topics,
            "poll_ms": POLL_MS,
            "configs": {
                **_configs(plan),
                "bootstrap.servers": server,
                "group.id": group_id,
            },
        }
        with log.open("wb") as stderr:
            self._process = subprocess.Popen(
                java("kafkarebalance.OneConsumer", json.dumps(description), log="info"),
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
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(CLOSE_TIMEOUT_S)
        for stream in (self._process.stdin, self._process.stdout):
            assert stream
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    def lags(self) -> list[tuple[int, int]]:
        """Returns (time, largest delay of a poll since the line before) of each line, in ms."""
        return [(line["at_ms"], max(0, line["gap_ms"] - POLL_MS)) for line in self.lines]

    @property
    def member_id(self) -> str:
        """Returns the id that the consumer had in its callbacks."""
        return next((one["member_id"] for one in self.lines if one.get("member_id")), "")

    def was_overtaken(self) -> bool:
        """Returns whether its log shows that another member joined again before its SyncGroup."""
        return OVERTAKEN in self._log.read_text(errors="replace")

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
            if line["event"] == "assigned":  # `joining_ms`, a sum, now includes this rebalance
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


def _configs(plan: MemberPlan) -> dict[str, str]:
    """Returns the Java consumer's settings; the fields of our settings have Kafka's names."""
    consumer = plan.config
    assert isinstance(consumer, ConsumerConfig)
    configs = {
        "client.id": plan.name,
        "auto.offset.reset": "earliest",
        "metrics.sample.window.ms": "600000",  # metrics of the whole run
    }
    for one in fields(consumer):
        value = getattr(consumer, one.name)
        if not consumer.is_classic and one.name in REFUSED:
            continue
        if one.name == "partition_assignment_strategy":
            value = ",".join(CLASSES[assignor] for assignor in value)
        if value is not None:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            configs[one.name.replace("_", ".")] = text
    return configs


def _now_ms() -> int:
    """Returns the time of the wall clock, which the JVMs use."""
    return time.time_ns() // 1_000_000


def _sleep_until(at_ms: int) -> None:
    time.sleep(max(0, at_ms - _now_ms()) / 1000)
