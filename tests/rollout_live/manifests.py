# SPDX-License-Identifier: Apache-2.0
"""Generates manifests with short times, and the groups whose pods they describe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from kafka_rebalance import GroupSpec, Member, Topic
from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.member.config import LIBRDKAFKA, ConsumerConfig
from kafka_rebalance.rollout import Assumed

if TYPE_CHECKING:
    from random import Random

SESSION_MS, HEARTBEAT_MS = 6_000, 1_000
BROKER = CoordinatorConfig(
    group_initial_rebalance_delay_ms=100,  # as tests.support.broker sets it
    group_consumer_session_timeout_ms=SESSION_MS,
    group_consumer_heartbeat_interval_ms=HEARTBEAT_MS,
)
_CLASSIC = ("range", "sticky", "cooperative-sticky")


@dataclass(frozen=True)
class Case:
    """A manifest as text, its group, the settings of the members, and what is assumed."""

    manifest: str
    group: GroupSpec
    config: ConsumerConfig
    assumed: Assumed

    def __str__(self) -> str:
        *_, manifest = yaml.safe_load_all(self.manifest)
        spec = manifest["spec"]
        strategy = spec.get("strategy") or spec.get("updateStrategy") or {}
        rolls = strategy.get("rollingUpdate", strategy.get("type", ""))
        policy = spec.get("podManagementPolicy", "Deployment")
        kind = "static" if self.group.members[0].group_instance_id else "dynamic"
        return (
            f"{policy}, {spec['replicas']} pods, {rolls}, {self.group.assignor}, {kind}, "
            f"{self.assumed.on_sigterm}"
        )


def case(random: Random, number: int) -> Case:
    """Draws a case; of four, each has another pair of protocol and membership."""
    is_classic, is_static = number % 2 == 0, number // 2 % 2 == 0
    kind = random.choice(("Deployment", "StatefulSet"))
    replicas, name = random.randint(2, 4), f"app{number}"
    container: dict[str, Any] = {"name": "app"}
    if random.random() < 0.7:
        container["readinessProbe"] = {
            "periodSeconds": random.randint(1, 2),
            "initialDelaySeconds": random.randint(0, 2),
        }
    if random.random() < 0.3:
        container["lifecycle"] = {"preStop": {"exec": {"command": ["sleep", "1"]}}}
    pod = {"terminationGracePeriodSeconds": random.randint(2, 4), "containers": [container]}
    spec = {
        "replicas": replicas,
        "minReadySeconds": random.randint(0, 1),
        "template": {"spec": pod},
        **(_stateful(random) if kind == "StatefulSet" else _deployment(random)),
    }
    manifest = {"kind": kind, "metadata": {"name": name}, "spec": spec}
    topics = tuple(Topic(f"{name}.{x}", random.randint(3, 9)) for x in "ab")
    assignor = random.choice(_CLASSIC) if is_classic else "consumer/uniform"
    members = tuple(
        Member(
            f"{name}-{pod}",
            tuple(one.name for one in topics),
            group_instance_id=f"{name}-{pod}" if is_static else None,
        )
        for pod in range(replicas)
    )
    config = ConsumerConfig(session_timeout_ms=SESSION_MS, heartbeat_interval_ms=HEARTBEAT_MS)
    if not is_classic:
        library = "java" if is_static else LIBRDKAFKA
        config = ConsumerConfig(group_protocol="consumer", client_library=library)
    assumed = Assumed(
        pod_start_ms=500,
        start_up_ms=random.choice((1_000, 2_500)),
        shut_down_ms=300,
        on_sigterm=random.choice(("closes", "closes", "dies")),
    )
    group = GroupSpec(name, topics, members, assignor)
    return Case(yaml.safe_dump_all([{"kind": "Service"}, manifest]), group, config, assumed)


def _deployment(random: Random) -> dict[str, Any]:
    if random.random() < 0.2:
        return {"strategy": {"type": "Recreate"}}
    surge = random.choice((0, 1, "50%", "100%"))
    unavailable = random.choice((0, 1, "25%", "50%"))
    return {"strategy": {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}}


def _stateful(random: Random) -> dict[str, Any]:
    rolling = {"maxUnavailable": random.choice((1, 1, 2, "50%")), "partition": random.randint(0, 1)}
    return {
        "podManagementPolicy": random.choice(("OrderedReady", "Parallel")),
        "updateStrategy": {"rollingUpdate": rolling},
    }
