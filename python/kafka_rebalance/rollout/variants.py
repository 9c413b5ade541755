# SPDX-License-Identifier: Apache-2.0
"""The settings with which a deploy may cost less, each with the lines to change."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from random import Random

from kafka_rebalance.frozen import Frozen
from kafka_rebalance.member.config import ConsumerConfig
from kafka_rebalance.simulator.scenario import Scenario

from .controllers import CLOSES, Assumed, roll
from .manifests import ROLLING, STATEFUL_SET, Workload

_STEP_MS = 15_000  # longer session timeouts are multiples of this
_MOST_SESSION_MS = 60_000  # default of group.consumer.max.session.timeout.ms


class Variant(Frozen):
    """A group's scenario without the deploy, the workload, and the facts assumed about its pods."""

    name: str
    lines: tuple[str, ...]
    scenario: Scenario
    workload: Workload
    assumed: Assumed

    @property
    def config(self) -> ConsumerConfig:
        config = self.scenario.members[0].config
        assert isinstance(config, ConsumerConfig)
        return config

    @property
    def session_ms(self) -> int:
        broker_ms = self.scenario.broker.group_consumer_session_timeout_ms
        return self.config.session_timeout_ms if self.config.is_classic else broker_ms


def variants(now: Variant, most: int) -> Iterator[Variant]:
    """Yields the deploy with its present settings, then with others; `most` limits their total
    number.
    """
    return islice((now, *_closing(now), *_ids(now), *_kinds(now), *_pods(now)), most)


def _closing(now: Variant) -> Iterator[Variant]:
    if not any(end.is_killed for end in roll(now.workload, now.assumed, Random(0)).ends.values()):
        return
    lines = ["on SIGTERM: close() the consumers (a shell as entry point must exec the program)"]
    workload, needs_ms = now.workload, now.workload.pre_stop_ms + now.assumed.shut_down_ms
    if needs_ms > workload.grace_ms:
        seconds = needs_ms // 1000 + 5
        lines.append(f"spec.template.spec.terminationGracePeriodSeconds: {seconds}")
        workload = replace(workload, grace_ms=1000 * seconds)
    assumed = replace(now.assumed, on_sigterm=CLOSES)
    yield replace(now, name="closes", lines=tuple(lines), workload=workload, assumed=assumed)


def _ids(now: Variant) -> Iterator[Variant]:
    """Yields the deploy with static members whose sessions outlast a restart; for a Deployment
    whose members are static, also with dynamic members.
    """
    static = {one.config.group_instance_id is not None for one in now.scenario.members}
    lines, workload, scenario = list[str](), now.workload, now.scenario
    if not workload.is_stateful:
        lines.append("kind: StatefulSet (the pods of a Deployment have new names each time)")
        workload = replace(workload, kind=STATEFUL_SET, strategy=ROLLING, max_unavailable=1)
    if lines or False in static:
        thread = "" if len(scenario.members) == workload.replicas else "-<thread>"
        lines.append("env: {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}")
        lines.append(f"group.instance.id=$(POD_NAME){thread}")
        scenario = scenario.with_static_members()
    away_ms = roll(workload, now.assumed, Random(0)).restart_ms
    needs_ms = away_ms * 5 // 4 + scenario.heartbeat_interval_ms  # some restarts take longer
    if now.session_ms < needs_ms:
        scenario, line = _with_session(scenario, -(-needs_ms // _STEP_MS) * _STEP_MS)
        lines.append(line)
    if lines:
        name = "static" if len(lines) > 1 else "longer session"
        yield replace(now, name=name, lines=tuple(lines), scenario=scenario, workload=workload)
    if True in static and not now.workload.is_stateful:
        scenario = now.scenario.with_dynamic_members()
        yield replace(now, name="dynamic", lines=("no group.instance.id",), scenario=scenario)


def _with_session(scenario: Scenario, ms: int) -> tuple[Scenario, str]:
    if scenario.has_consumer_protocol:
        more = ", group.consumer.max.session.timeout.ms of the brokers" * (ms > _MOST_SESSION_MS)
        line = f"consumer.session.timeout.ms={ms} of the group (kafka-configs --group){more}"
        broker = replace(scenario.broker, group_consumer_session_timeout_ms=ms)
        return replace(scenario, broker=broker), line
    longer = scenario.with_members(lambda config, _: replace(config, session_timeout_ms=ms))
    return longer, f"session.timeout.ms={ms}"


def _kinds(now: Variant) -> Iterator[Variant]:
    if not now.config.is_classic:
        return
    if now.config.rebalance_protocol().name == "EAGER":
        how = "compare --assignors cooperative-sticky"
        line = f"partition.assignment.strategy=cooperative-sticky ({how} shows how)"
        scenario = now.scenario.with_protocol(eager=False)
        yield replace(now, name="cooperative", lines=(line,), scenario=scenario)
    line = "group.protocol=consumer (plan --switch-protocol shows how)"
    scenario = now.scenario.with_consumer_protocol()
    yield replace(now, name="consumer protocol", lines=(line,), scenario=scenario)


def _pods(now: Variant) -> Iterator[Variant]:
    """Yields deploys that replace another number of pods at a time: all, or one."""
    was, replicas = now.workload, now.workload.replicas
    others = {
        "surge": replace(was, strategy=ROLLING, max_surge=replicas, max_unavailable=0),
        "one by one": replace(was, strategy=ROLLING, max_surge=0, max_unavailable=1),
    }
    lines = {
        "surge": ("spec.strategy.rollingUpdate: {maxSurge: 100%, maxUnavailable: 0}",),
        "one by one": ("spec.strategy.rollingUpdate: {maxSurge: 0, maxUnavailable: 1}",),
        "all at once": ("podManagementPolicy: Parallel", "rollingUpdate.maxUnavailable: 100%"),
    }
    if was.is_stateful:
        others = {"all at once": replace(was, is_parallel=True, max_unavailable=replicas)}
    for name, workload in others.items():
        if workload != was and replicas > 1:
            yield replace(now, name=name, lines=lines[name], workload=workload)
