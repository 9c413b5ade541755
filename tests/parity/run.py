# SPDX-License-Identifier: Apache-2.0
"""Plays scenarios on a real broker and on our coordinator; reports the differences."""

from __future__ import annotations

import concurrent.futures
import itertools
import json
import uuid
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from . import cluster
from .compare import END, Difference, differences, play, unexplained
from .driver_player import DriverPlayer
from .wire_player import WirePlayer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .cast import Observation
    from .scenarios import Scenario

AT_ONCE = 8
"""The number of scenarios that a broker plays in parallel; they mostly wait."""

ATTEMPTS = 4
LATEST_MS = 200.0
"""A run with waits is repeated if a step was later than this: a deadline can be 250 ms away."""


@dataclass(frozen=True)
class Result:
    """One scenario, played by our coordinator and by the broker."""

    scenario: Scenario
    steps: int
    differences: tuple[Difference, ...]
    lag_ms: float
    attempts: int
    ours: list[Observation]
    broker: list[Observation]

    @property
    def agrees(self) -> bool:
        return not unexplained(self.differences)

    def __str__(self) -> str:
        count = len(unexplained(self.differences))
        verdict = "ok  " if not count else "DIFF"
        late = f", attempt {self.attempts}" if self.attempts > 1 else ""
        if _late(self.scenario, self.lag_ms):
            late += f", {self.lag_ms:.0f} ms late"
        explained = len(self.differences) - count
        known = f", {explained} explained" if explained else ""
        lines = [f"{verdict} {self.scenario.name}: {self.steps} steps{known}{late}"]
        for one in self.differences:
            mark = f"explained: {one.accepted.because}" if one.accepted else "DIFFERS"
            at = f"step {one.step.number}, {one.step.text}" if one.step.number else one.step.text
            lines += [
                f"     {at}: {one.path}",
                f"       ours {json.dumps(one.ours)}, broker {json.dumps(one.broker)} ({mark})",
            ]
        return "\n".join(lines)


def results(
    scenarios: Sequence[Scenario],
    ours: Sequence[str],
    bootstrap_server: str,
    at_once: int = AT_ONCE,
) -> Iterator[Result]:
    """Yields the results in the order of `scenarios`, each as soon as it is known."""
    host, port = bootstrap_server.rsplit(":", 1)
    with DriverPlayer(ours) as driver:
        said = [play(scenario, driver) for scenario in scenarios]
    cluster.prepare(host, int(port))
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for result in pool.map(partial(_judge, host, int(port)), scenarios, said):
            if result.agrees:
                yield result
                continue
            # On a busy machine every attempt can be late, so a difference is played again alone.
            pool.shutdown()
            yield _judge(host, int(port), result.scenario, result.ours)


def record(
    scenarios: Sequence[Scenario], bootstrap_server: str, at_once: int = AT_ONCE
) -> Iterator[list[Observation]]:
    """Plays only on the broker; yields the observations in the order of `scenarios`."""
    host, port = bootstrap_server.rsplit(":", 1)
    cluster.prepare(host, int(port))
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for seen, _ in pool.map(partial(_play_wire, host, int(port)), scenarios):
            yield seen


def _judge(host: str, port: int, scenario: Scenario, ours: list[Observation]) -> Result:
    for attempt in itertools.count(1):
        broker, lag_ms = _play_wire(host, port, scenario, ours)
        found = tuple(
            difference
            for step, one, other in zip((*scenario.steps, END), ours, broker, strict=False)
            for difference in differences(step, one, other)
        )
        result = Result(scenario, len(scenario.steps), found, lag_ms, attempt, ours, broker)
        if attempt == ATTEMPTS or not (_late(scenario, lag_ms) or _unlucky(result)):
            return result
    raise AssertionError("not reached")


def _late(scenario: Scenario, lag_ms: float) -> bool:
    return lag_ms > LATEST_MS and any(step.operation == "advance" for step in scenario.steps)


def _unlucky(result: Result) -> bool:
    """Returns whether a scenario with sweeps differs: a sweep can come at a wrong time."""
    return result.scenario.needs == "sweeps" and not result.agrees


def _play_wire(
    host: str, port: int, scenario: Scenario, wanted: list[Observation] | None = None
) -> tuple[list[Observation], float]:
    if scenario.needs == "moves":
        cluster.prepare(host, port)  # an earlier scenario may have moved the coordinator
    prefix = f"{scenario.name}-{uuid.uuid4().hex[:8]}"
    with WirePlayer(host, port, prefix, scenario.doomed) as player:
        return play(scenario, player, wanted), player.lag_ms


def show(scenario: Scenario, seen: list[Observation]) -> str:
    """Formats a run for people."""
    lines = [f"== {scenario.name}"]
    for step, shown in zip((*scenario.steps, END), seen, strict=False):
        lines.append(f"{step.number:3} {step.text}")
        parts: dict[str, Any] = {**shown["answered"], **shown["groups"]}
        if shown["answer"]:
            parts = {"answer": shown["answer"], **parts}
        lines += [f"      {name}: {json.dumps(value)}" for name, value in parts.items()]
    return "\n".join(lines)


def summary(found: Sequence[Result]) -> str:
    """Returns the last line of the report: the numbers of scenarios, steps and differences."""
    every = [difference for result in found for difference in result.differences]
    count = len(unexplained(every))
    verdict = "the broker and ours agree" if not count else "the broker and ours differ"
    return (
        f"{len(found)} scenarios, {sum(result.steps for result in found)} steps: {verdict}, "
        f"{count} difference{'' if count == 1 else 's'} ({len(every) - count} explained)"
    )
