# SPDX-License-Identifier: Apache-2.0
"""Plays a day of a group under KEDA's rule and under `choose`: `python -m tools.scale_day`.

docs/scaling.toml is the scenario. Members read with a fixed capacity; each step is the
plan of the group as it then is; its partitions stop for the seconds that the simulator finds for a
step between these two counts. Between both rules and the group stands one autoscaler, with the
defaults of Kubernetes. Writes the table of docs/scaling.md.

Source   KEDA's scaler apache-kafka 2.18: total lag / lagThreshold, at most one replica a partition;
         with ensureEvenDistributionOfPartitions, the next divisor. `cooldownPeriod` concerns only
         the step to 0 replicas, which `least = 1` rules out. HorizontalPodAutoscaler
         (autoscaling/v2): ceil(metric / target), tolerance, stabilization windows and policies.
"""

from __future__ import annotations

import argparse
import math
import tomllib
from collections import deque
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from kafka_rebalance import (
    AddMembers,
    GroupSpec,
    Member,
    RemoveMembers,
    Topic,
    TopicPartition,
    assign,
    plan,
)
from kafka_rebalance.plans import plans_by_leader
from kafka_rebalance.scaling import choose, counts
from kafka_rebalance.simulator.timing import timed
from tests.support.imports import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_rebalance.assignors import Engine
    from kafka_rebalance.plans import LedPlan
    from kafka_rebalance.plans.changes import Change

    Rule = Callable[["Day"], float]

PAGE = ROOT / "docs" / "scaling.md"
SCENARIO = PAGE.with_suffix(".toml")
_BEGIN, _END = "<!-- generated: day -->\n", "<!-- end -->"
_DAY_S = 86_400
_HEADS = (
    "load", "rule", "steps", "rebalances", "moves", "unread partition-s", "backlog: mean", "most",
    "member-hours",
)  # fmt: skip


@dataclass
class Day:
    """The group and its backlog by partition, and what the day has cost so far."""

    scenario: dict[str, Any]
    curve: list[list[float]]
    group: GroupSpec
    now_s: int = 0
    lag: list[float] = field(default_factory=list)
    stopped_until: list[float] = field(default_factory=list)
    recent: deque[list[float]] = field(default_factory=deque)
    steps: int = 0
    rebalances: int = 0
    moves: int = 0
    unread_s: float = 0.0
    backlog: float = 0.0
    most: float = 0.0
    member_s: float = 0.0

    def __post_init__(self) -> None:
        partitions, skew = self.scenario["partitions"], self.scenario["skew"]
        weights = [(p + 1) ** -skew for p in range(partitions)]
        self.shares = [weight / sum(weights) for weight in weights]
        self.lag, self.stopped_until = [0.0] * partitions, [0.0] * partitions
        self.recent = deque(maxlen=self.scenario["scale"]["rate_over_s"] // self.step_s)

    @property
    def step_s(self) -> int:
        return int(self.scenario["step_s"])

    @property
    def members(self) -> int:
        return len(self.group.members)

    def pass_time(self) -> None:
        """Lets `step_s` seconds pass: records arrive, and each member reads the longest lags."""
        rate = _rate(self.curve, self.now_s / 3600)
        arrived = [rate * share for share in self.shares]
        self.recent.append(arrived)
        for p, each in enumerate(arrived):
            self.lag[p] += each * self.step_s
        for member in self.group.members:
            room = self.scenario["capacity"] * self.step_s
            held = [tp.partition for tp in member.owned_partitions]
            read = [p for p in held if self.stopped_until[p] <= self.now_s]
            for p in sorted(read, key=self.lag.__getitem__, reverse=True):
                took = min(room, self.lag[p])
                self.lag[p] -= took
                room -= took
        waiting = sum(self.lag)
        self.backlog += waiting * self.step_s
        self.most = max(self.most, waiting)
        self.member_s += self.members * self.step_s
        self.now_s += self.step_s

    def scale_to(self, members: int) -> None:
        """Lets members join or leave; the partitions that stop are read again after a while."""
        more = members - self.members
        if not more:
            return
        change = AddMembers(more) if more > 0 else RemoveMembers(count=-more)
        played = plan(self.group, None, [change])
        stopped = played.unavailable
        each_s = _stop_s(SCENARIO.read_text("utf-8"), self.members, members)
        for tp in stopped:
            self.stopped_until[tp.partition] = self.now_s + each_s
        self.steps += 1
        self.rebalances += len(played.rounds)
        self.moves += played.moves
        self.unread_s += each_s * len(stopped)
        self.group = played.final

    def row(self) -> list[str]:
        return [
            f"{self.steps}",
            f"{self.rebalances}",
            f"{self.moves:,}",
            f"{self.unread_s:,.0f}",
            f"{self.backlog / _DAY_S:,.0f}",
            f"{self.most:,.0f}",
            f"{self.member_s / 3600:,.0f}",
        ]


def formed(scenario: dict[str, Any], members: int) -> GroupSpec:
    """Returns a group whose members own what the assignor gave them."""
    group = GroupSpec(
        "orders",
        topics=(Topic("orders", scenario["partitions"]),),
        members=tuple(
            Member(f"orders-{n}-{n:08x}-0000-4000-8000-{n:012x}", ("orders",))
            for n in range(members)
        ),
        assignor=scenario["assignor"],
    )
    return group.owning(assign(group), generation_id=1)


@cache
def _stop_s(text: str, now: int, then: int) -> float:
    """Returns how long a partition that stops is not read, in a step between these counts."""
    group = formed(tomllib.loads(text), now)
    change = AddMembers(then - now) if then > now else RemoveMembers(count=now - then)
    stopped = len(plan(group, None, [change]).unavailable)
    unread = timed(group, [change], group.assignor or "").unread.median
    return (unread or 0) / 1000 / max(1, stopped)


def _rate(curve: list[list[float]], hour: float) -> float:
    for (start, low), (end, high) in pairwise(curve):
        if start <= hour <= end:
            return low + (high - low) * (hour - start) / (end - start)
    raise ValueError(hour)


def by_lag(threshold: int, *, is_even: bool = False) -> Rule:
    """Returns KEDA's rule, as a metric in replicas."""

    def metric(day: Day) -> float:
        partitions = day.scenario["partitions"]
        replicas = min(sum(day.lag) / threshold, partitions)
        if not is_even:
            return float(replicas)
        divisors = (n for n in range(1, partitions + 1) if partitions % n == 0)
        return next((n for n in divisors if n >= replicas), partitions)

    return metric


def by_choice(member_share: float) -> Rule:
    """Returns the rule of `choose`; an answer is kept for `cache_s`."""
    kept = (-math.inf, 0)

    def metric(day: Day) -> int:
        nonlocal kept
        settings = day.scenario["scale"]
        if day.now_s - kept[0] >= settings["cache_s"]:
            kept = (day.now_s, _chosen(day, member_share))
        return kept[1]

    return metric


@cache
def _plans(group: GroupSpec, changes: tuple[Change, ...], engine: Engine) -> tuple[LedPlan, ...]:
    return plans_by_leader(group, changes, engine=engine)


def _chosen(day: Day, member_share: float) -> int:
    rates = [sum(each) / len(day.recent) for each in zip(*day.recent, strict=True)]
    tps = [TopicPartition("orders", p) for p in range(len(rates))]
    document = choose(
        day.group,
        range(day.scenario["hpa"]["least"], day.scenario["hpa"]["most"] + 1),
        rate=dict(zip(tps, rates, strict=True)),
        lag=dict(zip(tps, day.lag, strict=True)),
        capacity=day.scenario["capacity"],
        horizon_s=day.scenario["scale"]["horizon_s"],
        member_share=member_share,
        tolerance=day.scenario["hpa"]["tolerance"],
    )
    return int(document["replicas"])


def play(scenario: dict[str, Any], curve: list[list[float]], rule: Rule) -> Day:
    """Plays a day: a decision every `sync_s`, whose new members join `pod_start_s` later."""
    hpa, day = scenario["hpa"], Day(scenario, curve, formed(scenario, scenario["members"]))
    wanted: deque[int] = deque(maxlen=hpa["down_window_s"] // hpa["sync_s"])
    replicas, joins = day.members, deque[tuple[int, int]]()
    while day.now_s < _DAY_S:
        day.pass_time()
        if day.now_s % hpa["sync_s"] == 0:
            metric = rule(day)
            is_near = abs(metric / replicas - 1) <= hpa["tolerance"]
            wanted.append(replicas if is_near else math.ceil(metric))
            up = max(2 * replicas, replicas + hpa["up_pods"])
            target = wanted[-1] if wanted[-1] > replicas else min(replicas, max(wanted))
            target = max(hpa["least"], min(hpa["most"], up, target))
            if target != replicas:
                late_s = scenario["pod_start_s"] if target > replicas else 0
                joins.append((day.now_s + late_s, target))
                replicas = target
        while joins and joins[0][0] <= day.now_s:
            day.scale_to(joins.popleft()[1])
    return day


def table(scenario: dict[str, Any], curves: list[str], wanted: str = "") -> str:
    keda, rules = scenario["keda"], dict[str, "Callable[[], Rule]"]()
    for threshold in keda["lag_thresholds"]:
        rules[f"KEDA, lagThreshold {threshold:,}"] = lambda n=threshold: by_lag(n)  # type: ignore[misc]
    even = keda["even_threshold"]
    rules[f"KEDA, {even:,}, even distribution"] = lambda: by_lag(even, is_even=True)
    for share in scenario["scale"]["member_shares"]:
        rules[f"`choose`, member_share {share}"] = lambda n=share: by_choice(n)  # type: ignore[misc]
    rules = {name: rule for name, rule in rules.items() if wanted in name}
    lines = [f"| {' | '.join(_HEADS)} |", f"| --- | --- |{' ---: |' * (len(_HEADS) - 2)}"]
    for curve in curves:
        for name, rule in rules.items():
            cells = play(scenario, scenario["curves"][curve], rule()).row()
            lines.append(f"| {curve} | {name} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def main() -> None:
    # The plans of a group do not depend on its load: the same ones are needed each minute.
    vars(counts)["plans_by_leader"] = lambda group, changes, *, engine: _plans(
        group, tuple(changes), engine
    )
    parser = argparse.ArgumentParser(prog="python -m tools.scale_day")
    parser.add_argument("--curves", help="only these, separated by commas; the page stays")
    parser.add_argument("--rules", default="", help="only those whose name contains this text")
    arguments = parser.parse_args()
    scenario = tomllib.loads(SCENARIO.read_text("utf-8"))
    if arguments.curves or arguments.rules:
        table(
            scenario, (arguments.curves or ",".join(scenario["curves"])).split(","), arguments.rules
        )
        return
    before, _, rest = PAGE.read_text("utf-8").partition(_BEGIN)
    whole = table(scenario, list(scenario["curves"]))
    PAGE.write_text(before + _BEGIN + whole + _END + rest.partition(_END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
