# SPDX-License-Identifier: Apache-2.0
"""The scenario: a group of two grows to four, a member is killed, a static member restarts.

In each phase, the group settles long before the next one begins, so each event is in one phase.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.member.config import ConsumerConfig
from kafka_rebalance.simulator import Happening, Kind, MemberPlan, Scenario, TopicPlan

ASSIGNORS = ("range", "cooperative-sticky")
POLL_MS = 100
HEARTBEAT_MS = 1_000
SESSION_MS = 6_500
"""With this timeout, a session ends between two heartbeats of the other members. If it ended at a
heartbeat, a few ms would decide which member first learns of the rebalance."""

INITIAL_DELAY_MS = 3_000
"""Kafka's default; c1 must join within this time, also on a slow machine."""

TOPICS = {"orders": 12, "payments": 3}
STATIC = "c2"


@dataclass(frozen=True)
class Phase:
    """A part of the scenario, as a half-open interval. A quiet phase has no rebalance."""

    title: str
    from_ms: int
    until_ms: int
    is_quiet: bool = False


# Generations begin at about 6, 11 and 18 s, and members then send heartbeats every second. So a
# start at half a second is between two heartbeats.
STARTS = {"c0": 0, "c1": 1_000, "c2": 10_500, "c3": 17_500}
KILL_MS = 23_500  # kills c0, the leader; its session times out about 6 s later
BOUNCE_MS = (35_000, 37_000)
END_MS = 41_000

PHASES = (
    Phase("c0 and c1 start", 0, STARTS["c2"]),
    Phase(f"c2 starts, with group.instance.id={STATIC}", STARTS["c2"], STARTS["c3"]),
    Phase("c3 starts", STARTS["c3"], KILL_MS),
    Phase("c0 is killed", KILL_MS, BOUNCE_MS[0]),
    Phase(f"{STATIC} closes, and starts again 2 s later", BOUNCE_MS[0], END_MS, is_quiet=True),
)


def scenario(assignor: str) -> Scenario:
    """Returns the scenario with the settings of both sides."""
    consumer = ConsumerConfig(
        group_id=f"reality-{assignor}",
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        partition_assignment_strategy=(assignor,),
    )
    return Scenario(
        title=assignor,
        topics={name: TopicPlan(partitions=count) for name, count in TOPICS.items()},
        members=tuple(_member(name, consumer) for name in STARTS),
        happenings=(
            Happening(at_ms=KILL_MS, kind=Kind.KILL, member="c0"),
            Happening(at_ms=BOUNCE_MS[0], kind=Kind.STOP, member=STATIC),
            Happening(at_ms=BOUNCE_MS[1], kind=Kind.START, member=STATIC),
        ),
        until_ms=END_MS,
        group_id=consumer.group_id,
        broker=CoordinatorConfig(group_initial_rebalance_delay_ms=INITIAL_DELAY_MS),
    )


def _member(name: str, consumer: ConsumerConfig) -> MemberPlan:
    if name == STATIC:
        consumer = replace(consumer, group_instance_id=name)
    return MemberPlan(name=name, config=consumer, topics=tuple(TOPICS), start_ms=STARTS[name])
