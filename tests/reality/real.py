# SPDX-License-Identifier: Apache-2.0
"""The real side: real consumers, each in its own process, act at the scenario's times.

All processes have started before the first consumer subscribes, because the simulator does not
simulate the start of a process.
"""

from __future__ import annotations

import threading
import time
import uuid
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Any

from kafka_rebalance.simulator import Kind

from .client_process import CLOSE_TIMEOUT_S, READY_TIMEOUT_S, ClientProcess
from .played import CALLBACKS, KILLED, Event, Played

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from kafka_rebalance.simulator import Scenario

SLEEP_MS = 10


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
    """Plays the scenario in real time, in a new group; the consumers' logs go to `directory`."""
    todo = _todo(scenario)
    plans = {one.name: one for one in scenario.members}
    group_id = f"{scenario.group_id}-{uuid.uuid4().hex[:8]}"
    processes: list[ClientProcess] = []
    killed: list[tuple[int, str]] = []
    up: dict[str, ClientProcess] = {}
    together = _Together(up)
    sleeper = _Sleeper()
    try:
        for name in (name for _, kind, name in todo if kind is Kind.START):
            log = directory / f"{group_id}-{len(processes)}.log"
            processes.append(ClientProcess(plans[name], group_id, server, log, together.heard))
        waiting = list(processes)
        for one in processes:
            one.await_ready()
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
        up.clear()
        _close(processes)
    for one in processes:
        one.must_have_ended_well()
    events = [event for one in processes for event in one.events(started_ms)]
    events += [Event(at_ms - started_ms, name, KILLED) for at_ms, name in killed]
    events.sort(key=lambda event: event.at_ms)
    lags = [*sleeper.lags, *(lag for one in processes for lag in one.lags())]
    return Played(
        events=tuple(event for event in events if event.at_ms < scenario.until_ms),
        answer_ms=max(one.answer_ms for one in processes),
        lags=tuple((at_ms - started_ms, late_ms) for at_ms, late_ms in lags),
        member_ids={
            name: tuple(one.member_id for one in processes if one.name == name) for name in plans
        },
    )


def _todo(scenario: Scenario) -> list[tuple[int, Kind, str]]:
    """Returns time, kind and member of all starts and events, in the order of time."""
    starts = [(one.start_ms, Kind.START, one.name) for one in scenario.members]
    events = [(one.at_ms, one.kind, one.member) for one in scenario.happenings]
    return sorted([*starts, *events], key=lambda one: one[0])


def _close(processes: Sequence[ClientProcess]) -> None:
    """Lets all consumers close at the same time, and waits for them."""
    for one in processes:
        one.tell("close")
    deadline = time.monotonic() + CLOSE_TIMEOUT_S
    for one in processes:
        one.wait(deadline)


def topic_ids(server: str, topics: Iterable[str]) -> dict[str, str]:
    """Returns the ids of topics, as Kafka writes them."""
    from kafka import KafkaAdminClient

    with KafkaAdminClient(bootstrap_servers=server) as admin:
        found = admin.describe_topics(list(topics))
    return {one["name"]: _written(uuid.UUID(str(one["topic_id"]))) for one in found}


def _written(topic_id: uuid.UUID) -> str:
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


class _Together:
    """Lets a cooperative consumer join again only after all others have its generation, too.

    Without this, a consumer that revokes partitions joins again within a few ms, and the SyncGroup
    of a slower one fails: the speed of the machine would decide who gets which generation. So the
    callback of revoked partitions waits until every consumer has called back for its generation.
    """

    def __init__(self, up: Mapping[str, ClientProcess]) -> None:
        self._up = up
        self._lock = threading.Lock()
        self._generations: dict[ClientProcess, int] = {}
        self._waiting: list[ClientProcess] = []

    def heard(self, process: ClientProcess, line: dict[str, Any]) -> None:
        """Takes a line of a consumer, and lets those go on whose generation all have."""
        with self._lock:
            up = list(self._up.values())
            if line["event"] not in CALLBACKS or not process.waits or process not in up:
                return
            self._generations[process] = line["generation_id"]
            if line["event"] == "revoked":
                self._waiting.append(process)
            oldest = min(self._generations.get(one, -1) for one in up)
            for one in [one for one in self._waiting if self._generations[one] <= oldest]:
                self._waiting.remove(one)
                one.tell("go")


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


def _now_ms() -> int:
    """Returns the time of the wall clock, which the consumers use."""
    return time.time_ns() // 1_000_000


def _sleep_until(at_ms: int) -> None:
    time.sleep(max(0, at_ms - _now_ms()) / 1000)
