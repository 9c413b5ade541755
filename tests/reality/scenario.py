# SPDX-License-Identifier: Apache-2.0
"""What is played twice: a group of two grows to four, one is killed, a static one is bounced.

Each phase is over well before the next begins, so what happens in it belongs to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kafka_rebalance.coordinator import CoordinatorConfig
from kafka_rebalance.member import ConsumerConfig
from kafka_rebalance.simulator import Happening, Kind, MemberPlan, Scenario, TopicPlan

ASSIGNORS = ("range", "cooperative-sticky")
POLL_MS = 100
HEARTBEAT_MS = 1_000
SESSION_MS = 6_500
"""It ends between two heartbeats of the others; else ms would decide which of them tells them."""

INITIAL_DELAY_MS = 3_000
"""Kafka's default: c1 has to come within it, also where the machine is slow."""

TOPICS = {"orders": 12, "payments": 3}
STATIC = "c2"


@dataclass(frozen=True)
class Phase:
    """Half-open: it lasts until the next one begins. A quiet one has no rebalance."""

    title: str
    from_ms: int
    until_ms: int
    is_quiet: bool = False


# Heartbeats count from the generation before, which comes at about 6.0, 11.0 and 18.0 s: half a
# second is between two of them as well.
STARTS = {"c0": 0, "c1": 1_000, "c2": 10_500, "c3": 17_500}
KILL_MS = 23_500  # of c0, the leader: missed 5.5 to 7.5 s later
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
    """Both sides read all settings from here."""
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
