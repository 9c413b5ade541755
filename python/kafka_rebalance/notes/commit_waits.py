# SPDX-License-Identifier: Apache-2.0
"""Finds members whose automatic commits delay the rebalance after a topic is deleted.

Before a member joins, it commits the positions of its partitions. The broker refuses those of a
deleted topic with UNKNOWN_TOPIC_OR_PARTITION, which these clients take for a passing error:

    Java       commits again until `max.poll.interval.ms` is over, then joins
    aiokafka   commits again without end

A member does so only if it commits automatically, which a contract line does not show, and if it
holds a partition of the deleted topic. The leader notices the deletion first, and the others learn
of the rebalance when the leader joins. So if the leader waits too, the waits follow each other.
librdkafka, kafka-python and the members of consumer groups (KIP-848) join within seconds.

Source   ConsumerCoordinator.onJoinPrepare (Kafka 4.4.0); aiokafka 0.14.0
         (GroupCoordinator.commit_offsets); all clients: tests/live/test_topic_changes.py.
"""

from dataclasses import asdict, dataclass
from typing import Any

from kafka_rebalance.assignors.registry import SERVER_SIDE
from kafka_rebalance.group.model import Member
from kafka_rebalance.plans.changes import RemoveTopics
from kafka_rebalance.plans.clients import AIOKAFKA, JAVA, clients_for
from kafka_rebalance.plans.rebalance_plan import RebalancePlan
from kafka_rebalance.plans.rounds import Step


@dataclass(frozen=True, slots=True)
class CommitWaits:
    """The members that hold partitions of deleted `topics`, and may run Java, or else aiokafka.

    `intervals` is the most times `max.poll.interval.ms` that the waits of Java members take: 2 if
    the leader may wait, and another member too; 0 without a Java member.
    """

    topics: tuple[str, ...]
    java: tuple[str, ...]
    aiokafka: tuple[str, ...]
    intervals: int

    def to_dict(self) -> dict[str, Any]:
        return {name: list(v) if name != "intervals" else v for name, v in asdict(self).items()}


def commit_waits(plan: RebalancePlan) -> CommitWaits | None:
    """Returns the members that delay rebalances of the plan; None if there is none."""
    topics: dict[str, None] = {}
    java: dict[str, None] = {}
    aiokafka: dict[str, None] = {}
    intervals = 0
    for step in plan.steps:
        gone = _deleted(plan, step)
        holders = [one for one in step.before.members if _holds(one, gone)]
        for member in holders:
            clients = clients_for(member, plan.group.group_id)
            if JAVA in clients:
                java[member.member_id] = None
            elif AIOKAFKA in clients:
                aiokafka[member.member_id] = None
        waiting = {one.member_id for one in holders} & java.keys()
        leads = plan.group.leader is None or plan.group.leader in waiting
        intervals = max(intervals, 1 + leads if len(waiting) > 1 else len(waiting))
        held = {tp.topic for one in holders for tp in one.owned_partitions}
        topics |= dict.fromkeys(sorted(gone & held))
    if not java and not aiokafka:
        return None
    return CommitWaits(tuple(topics), tuple(java), tuple(aiokafka), intervals)


def _deleted(plan: RebalancePlan, step: Step) -> set[str]:
    """Returns the topics that the step's event deletes, in a group that a leader assigns."""
    if not step.rounds or step.before.assignor in SERVER_SIDE:
        return set()
    deletions = [one for one in plan.changes if isinstance(one, RemoveTopics)]
    return {name for one in deletions if str(one) == step.cause for name in one.topics}


def _holds(member: Member, topics: set[str]) -> bool:
    return any(tp.topic in topics for tp in member.owned_partitions)
