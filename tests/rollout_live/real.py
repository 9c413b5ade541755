# SPDX-License-Identifier: Apache-2.0
"""Plays a deploy with real consumers, each in a process, and measures what the forecast names."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.live import group_lags
from kafka_rebalance.simulator import Absence, Kind, Rebalance, Run, stops, totals
from kafka_rebalance.simulator.intervals import Holds
from tests.prediction.log import OffsetsLog
from tests.reality.client_process import CLOSE_TIMEOUT_S, ClientProcess
from tests.reality.played import KILLED, Event

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kafka_rebalance.simulator import Scenario

RATE = 20
"""Records a second of each partition."""
_TARGET_KEY = (6).to_bytes(2)
_TICK_S, _EARLY_S = 0.1, 2.0


class Log(OffsetsLog):
    """Also keeps the epochs of the targets of consumer groups, with their times."""

    def __init__(self, bootstrap_server: str) -> None:
        super().__init__(bootstrap_server)
        self.targets: dict[str, list[tuple[int, int]]] = defaultdict(list)

    def _keep(self, record: Any) -> None:
        super()._keep(record)
        if record.key and record.key[:2] == _TARGET_KEY and record.value:
            epoch = int.from_bytes(record.value[2:6])
            self.targets[record.key[4:].decode()].append((record.timestamp, epoch))


@dataclass
class Stage:
    """A running deploy: its processes, its events, and what killed members had not committed."""

    scenario: Scenario
    server: str
    directory: Path
    started_ms: int = 0
    processes: list[ClientProcess] = field(default_factory=list)
    waiting: dict[str, list[ClientProcess]] = field(default_factory=lambda: defaultdict(list))
    up: dict[str, ClientProcess] = field(default_factory=dict)
    killed: list[Event] = field(default_factory=list)
    down: dict[str, int] = field(default_factory=dict)
    absences: list[Absence] = field(default_factory=list)
    twice: list[int] = field(default_factory=list)
    helpers: list[threading.Thread] = field(default_factory=list)

    def process(self, name: str) -> ClientProcess:
        plan = next(one for one in self.scenario.members if one.name == name)
        log = self.directory / f"{self.scenario.group_id}-{len(self.processes)}.log"
        one = ClientProcess(
            plan, self.scenario.group_id, self.server, log, lambda *_: None, waits=False
        )
        self.processes.append(one)
        return one

    def do(self, at_ms: int, kind: Kind, name: str) -> None:
        now_ms = self.now_ms()
        if kind is Kind.START:
            if name in self.up and self.up[name].is_running:
                return
            self.up[name] = self.waiting[name].pop(0) if self.waiting[name] else self.process(name)
            self.up[name].tell("start")
            if name in self.down:
                self.absences.append(Absence(name, self.down.pop(name), now_ms))
            return
        self.down[name] = now_ms
        if kind is Kind.STOP:
            self.up.pop(name).tell("close")
            return
        one = self.up.pop(name)
        one.kill()
        self.killed.append(Event(now_ms, name, KILLED))
        self.helpers.append(threading.Thread(target=self._count_twice, args=[one]))
        self.helpers[-1].start()

    def _count_twice(self, process: ClientProcess) -> None:
        """Counts the records of the killed process's partitions since its last commit."""
        held = _held(process.events(self.started_ms))
        killed_ms = self.now_ms()
        partitions = [TopicPartition(t, int(p)) for t, _, p in (x.rpartition("-") for x in held)]
        group_id = self.scenario.group_id
        lags = group_lags(self.server, {group_id: partitions}).get(group_id, {})
        later_ms = self.now_ms() - killed_ms  # records that arrived since the kill
        self.twice += [max(0, round(lag / RATE * 1000) - later_ms) for lag in lags.values()]

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 - self.started_ms


def _held(events: list[Event]) -> set[str]:
    held: set[str] = set()
    for one in events:
        held = held | {*one.partitions} if one.kind == "assigned" else held - {*one.partitions}
    return held


def play(
    scenario: Scenario,
    server: str,
    directory: Path,
    log: Log,
    begin_ms: int,
    *,
    before: Callable[[], None],
    at_rest: Callable[[], None],
) -> dict[str, Any]:
    """Plays the scenario with real consumers; returns the figures of a forecast, and how many gaps
    and generations there were and how late this machine was. Calls `before` shortly before
    the deploy, and `at_rest` at the end.
    """
    todo: list[tuple[int, Kind, str]] = [
        *((one.start_ms, Kind.START, one.name) for one in scenario.members),
        *((one.at_ms, one.kind, one.member) for one in scenario.happenings),
    ]
    todo.sort(key=lambda one: one[0])
    stage = Stage(scenario, server, directory)
    starts = [name for _, kind, name in todo if kind is Kind.START]
    for name in dict.fromkeys(starts):
        for _ in range(min(2, starts.count(name))):
            stage.waiting[name].append(stage.process(name))
    ended = threading.Event()
    producer = threading.Thread(target=_produce, args=[scenario, server, ended], daemon=True)
    producer.start()
    try:
        for one in stage.processes:
            one.await_ready()
        stage.started_ms = time.time_ns() // 1_000_000
        early = threading.Timer(begin_ms / 1000 - _EARLY_S, before)
        early.start()
        stage.helpers.append(early)
        late_ms = 0
        for at_ms, kind, name in todo:
            time.sleep(max(0, at_ms - stage.now_ms()) / 1000)
            late_ms = max(late_ms, stage.now_ms() - at_ms)
            stage.do(at_ms, kind, name)
        time.sleep(max(0, scenario.until_ms - stage.now_ms()) / 1000)
        is_over_ms = stage.now_ms()
        at_rest()
    finally:
        ended.set()
        producer.join(CLOSE_TIMEOUT_S)
        for one in stage.processes:
            one.tell("close")
        deadline = time.monotonic() + CLOSE_TIMEOUT_S
        for one in stage.processes:
            one.wait(deadline)
        for thread in stage.helpers:
            thread.join(CLOSE_TIMEOUT_S)
    events = [each for one in stage.processes for each in one.events(stage.started_ms)]
    events = sorted([*events, *stage.killed], key=lambda each: each.at_ms)
    events = [each for each in events if each.at_ms < is_over_ms]
    late_ms = max([late_ms, *(late for one in stage.processes for _, late in one.lags())])
    return _figures(stage, events, log, begin_ms, is_over_ms) | {"late_ms": late_ms}


def _figures(
    stage: Stage, events: list[Event], log: Log, begin_ms: int, until_ms: int
) -> dict[str, Any]:
    scenario = stage.scenario
    holds, held, empty = Holds(), defaultdict[str, set[str]](set), list[tuple[str, int]]()
    for name, topic in scenario.topics.items():
        for number in range(topic.partitions):
            holds.appear(f"{name}-{number}", 0)
    for one in events:
        gone = held[one.member] if one.kind == KILLED else {*one.partitions}
        for partition in sorted(gone):
            if one.kind == "assigned":
                holds.take(partition, one.member, one.generation_id, one.at_ms)
            else:
                holds.give(partition, one.member, one.at_ms)
        held[one.member] = (
            held[one.member] | gone if one.kind == "assigned" else held[one.member] - gone
        )
        if one.kind == "assigned" and not held[one.member]:
            empty.append((one.member, one.at_ms))
    whole = holds.finish(until_ms)
    formed = max(one.at_ms for one in events if one.kind == "assigned" and one.at_ms < begin_ms)
    last = max([begin_ms, *(one.at_ms for one in events if one.kind != KILLED)])
    rounds = _rounds(log, scenario, stage.started_ms + begin_ms, stage.started_ms + until_ms)
    later = (
        [Rebalance(2, [""], begin_ms, rounds=rounds, to_ms=max(last, begin_ms))] if rounds else []
    )
    run = Run(
        title="", until_ms=until_ms, held="partition", assumed="", crashed={}, events=0,
        members=tuple(one.name for one in scenario.members), happenings=scenario.happenings,
        holds=tuple(whole), gaps=tuple(holds.gaps(whole, until_ms)),
        rebalances=(Rebalance(1, ["start"], 0, rounds=1, to_ms=formed), *later),
        absences=tuple(stage.absences), empty_handed=tuple(empty),
    )  # fmt: skip
    sums = totals(run)
    stopped = [one for one in stops(run) if one.from_ms >= begin_ms]
    return {
        "rebalances": sums.rounds,
        "moves": sums.moves,
        "unread_ms": sums.unavailable_ms,
        "longest_ms": sums.longest_gap_ms,
        "stopped": len({one.member for one in stopped}),
        "longest_stop_ms": max((one.to_ms - one.from_ms for one in stopped), default=0),
        "twice_ms": sum(stage.twice),
        "takes_ms": None if sums.settled_ms is None else max(0, sums.settled_ms - begin_ms),
        "gaps": sum(one.from_ms >= begin_ms for one in run.gaps),
    }


def _rounds(log: Log, scenario: Scenario, from_ms: int, to_ms: int) -> int:
    """Returns how many generations with members, or targets, the deploy had."""
    group_id = scenario.group_id
    if scenario.has_consumer_protocol:
        return sum(from_ms <= at < to_ms for at, _ in log.targets[group_id])
    records = log.of(group_id)
    before = [one.generation_id for one in records if one.timestamp_ms < from_ms]
    after = [one for one in records if from_ms <= one.timestamp_ms < to_ms]
    empty = {one.generation_id for one in after if not one.value.members}
    newest = max((one.generation_id for one in after), default=max(before))
    return newest - max(before) - len(empty - {*before})


def _produce(scenario: Scenario, server: str, ended: threading.Event) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": server, "linger.ms": 5})
    places = [(name, n) for name, one in scenario.topics.items() for n in range(one.partitions)]
    began, sent = time.monotonic(), 0
    while not ended.wait(_TICK_S):
        due = int((time.monotonic() - began) * RATE)
        for _ in range(due - sent):
            for name, number in places:
                producer.produce(name, b"x", partition=number)
        sent = due
        producer.poll(0)
    producer.flush(5)
