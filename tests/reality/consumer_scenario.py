# SPDX-License-Identifier: Apache-2.0
"""The scenario of the consumer protocol (KIP-848): members join, one is killed, one comes back.

c3 joins half a second after c2, so within the second in which no new target is computed. In each
phase, the group settles before the next one begins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.member.config import ConsumerConfig
from kafka_rebalance.simulator import Costs, Happening, Kind, MemberPlan, Scenario, TopicPlan

from .scenario import POLL_MS, TOPICS

if TYPE_CHECKING:
    from collections.abc import Mapping

HEARTBEAT_MS = 2_000
SESSION_MS = 6_500
STATIC = "c2"

STARTS = {"c0": 0, "c1": 4_300, "c2": 10_900, "c3": 11_400}
KILL_MS = 20_700
BOUNCE_MS = (33_300, 35_300)
LEAVE_MS = 40_300
END_MS = 48_000

BROKER = {
    "group.consumer.min.heartbeat.interval.ms": str(HEARTBEAT_MS),
    "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_MS),
    "group.consumer.min.session.timeout.ms": str(SESSION_MS),
    "group.consumer.session.timeout.ms": str(SESSION_MS),
}


@dataclass(frozen=True)
class Phase:
    """A part of the scenario, as a half-open interval.

    `heartbeats` is how many heartbeats, one after the other, can lie between the event and the last
    callback: of the member that starts the target, of one that gives up partitions, and of one that
    gains them.
    """

    title: str
    from_ms: int
    until_ms: int
    heartbeats: int


PHASES = (
    Phase("c0 starts", 0, STARTS["c1"], 0),
    Phase("c1 starts", STARTS["c1"], STARTS["c2"], 2),
    Phase(
        f"c2 starts, with group.instance.id={STATIC}; c3 starts half a second later",
        STARTS["c2"],
        KILL_MS,
        3,
    ),
    Phase("c0 is killed", KILL_MS, BOUNCE_MS[0], 3),
    Phase(f"{STATIC} closes, and starts again 2 s later", BOUNCE_MS[0], LEAVE_MS, 0),
    Phase("c1 closes", LEAVE_MS, END_MS, 2),
)


def scenario(
    client: str,
    topic_ids: Mapping[str, str] | None = None,
    member_ids: Mapping[str, tuple[str, ...]] | None = None,
) -> Scenario:
    """Returns the scenario with consumers of one library.

    Ids of topics and members decide which member wins a tie.
    """
    consumer = ConsumerConfig(
        group_id="reality-consumer", group_protocol="consumer", client_library=client
    )
    given = topic_ids or {}
    return Scenario(
        title="group.protocol=consumer",
        topics={
            name: TopicPlan(partitions=count, topic_id=given.get(name))
            for name, count in TOPICS.items()
        },
        members=tuple(
            MemberPlan(
                name=name,
                config=replace(consumer, group_instance_id=name) if name == STATIC else consumer,
                topics=tuple(TOPICS),
                start_ms=at_ms,
                work=Costs(process_ms=POLL_MS),
                member_ids=(member_ids or {}).get(name, ()),
            )
            for name, at_ms in STARTS.items()
        ),
        happenings=(
            Happening(at_ms=KILL_MS, kind=Kind.KILL, member="c0"),
            Happening(at_ms=BOUNCE_MS[0], kind=Kind.STOP, member=STATIC),
            Happening(at_ms=BOUNCE_MS[1], kind=Kind.START, member=STATIC),
            Happening(at_ms=LEAVE_MS, kind=Kind.STOP, member="c1"),
        ),
        until_ms=END_MS,
        group_id=consumer.group_id,
        broker=CoordinatorConfig(
            group_consumer_heartbeat_interval_ms=HEARTBEAT_MS,
            group_consumer_session_timeout_ms=SESSION_MS,
        ),
    )
