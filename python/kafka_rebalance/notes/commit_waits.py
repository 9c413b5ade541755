# SPDX-License-Identifier: Apache-2.0
"""Finds members whose automatic commits delay the rebalance after a topic is deleted.

Before a member joins, it commits its positions. The broker refuses the positions in a deleted topic
with UNKNOWN_TOPIC_OR_PARTITION. Java then repeats the commit until `max.poll.interval.ms` is over,
kafka-python while its poll lasts, at most for this interval, and aiokafka without end. The leader
notices the deletion first; the other members learn of the rebalance when the leader joins. So their
waits begin after the leader's wait. Other clients join in seconds.

Source   ConsumerCoordinator.onJoinPrepare (Kafka 4.4.0); kafka-python 3.0.12
         (ConsumerCoordinator._on_join_prepare_async); aiokafka 0.14.0
         (GroupCoordinator.commit_offsets); all clients: tests/live/test_topic_changes.py.
"""

from collections.abc import Iterator, Sequence

from kafka_rebalance.assignors.registry import SERVER_SIDE
from kafka_rebalance.group.model import Member
from kafka_rebalance.group.spec import first_of
from kafka_rebalance.plans.changes.topics import RemoveTopics
from kafka_rebalance.plans.clients import AIOKAFKA, JAVA, KAFKA_PYTHON, clients_for
from kafka_rebalance.plans.rebalance_plan import RebalancePlan
from kafka_rebalance.plans.rounds import Step

from .note import Note

_MOST_NAMED = 6
_TIMES = {1: "", 2: "up to two times "}


def commit_waits(plan: RebalancePlan) -> Iterator[Note]:
    """Yields a note if members delay rebalances of the plan.

    Java members wait at most `intervals` times `max.poll.interval.ms`: 2 times if the leader and
    another member may wait; 0 times without a Java member.
    """
    topics: dict[str, None] = {}
    java: dict[str, None] = {}
    aiokafka: dict[str, None] = {}
    kafka_python: dict[str, None] = {}
    intervals = 0
    for step in plan.steps:
        if not (gone := _deleted(plan, step)):
            continue
        holders = [one for one in step.before.members if _holds(one, gone)]
        for member in holders:
            clients = clients_for(member, plan.group.group_id)
            if JAVA in clients:
                java[member.member_id] = None
            elif AIOKAFKA in clients:
                aiokafka[member.member_id] = None
            elif KAFKA_PYTHON in clients:
                kafka_python[member.member_id] = None
        there = {one.member_id for one in holders} & java.keys()
        leads = plan.group.leader is None or plan.group.leader in there
        intervals = max(intervals, 1 + leads if len(there) > 1 else len(there))
        held = {tp.topic for one in holders for tp in one.owned_partitions}
        topics |= dict.fromkeys(sorted(gone & held))
    if waiting := (*java, *aiokafka, *kafka_python):
        found = {"java": [*java], "aiokafka": [*aiokafka], "kafka_python": [*kafka_python]}
        text = _text([*topics], **found, intervals=intervals)
        detail = {"topics": [*topics], **found, "intervals": intervals}
        yield Note("commit waits", text, waiting, detail=detail)


def _text(
    topics: Sequence[str],
    *,
    java: Sequence[str],
    aiokafka: Sequence[str],
    kafka_python: Sequence[str],
    intervals: int,
) -> str:
    text = f"WARNING: deleting {first_of(topics, _MOST_NAMED)} can stop this group."
    if java:
        text += (
            f" With automatic commits (enable.auto.commit, the default), a Java member that holds "
            f"partitions there commits them in vain until {_TIMES[intervals]}"
            "max.poll.interval.ms (5 minutes by default) has passed, and only then joins: "
            f"{first_of(java, _MOST_NAMED)}. Under an eager assignor, "
            "members that wait read nothing. A member that waits longer than the others is removed "
            "and returns under a new id, in rebalances that are not planned here."
        )
    if aiokafka:
        text += (
            " With automatic commits (enable_auto_commit, the default), aiokafka (0.14.0) commits "
            f"there without end, until it restarts: {first_of(aiokafka, _MOST_NAMED)}."
        )
    if kafka_python:
        text += (
            " With automatic commits (enable_auto_commit, the default), kafka-python (3.0.12) "
            "commits there as long as its poll may last (timeout_ms; a loop over the consumer has "
            "no limit), at most for max_poll_interval_ms (5 minutes by default), the leader first: "
            f"{first_of(kafka_python, _MOST_NAMED)}."
        )
    return f"{text} To avoid it, first let the members unsubscribe, then delete."


def _deleted(plan: RebalancePlan, step: Step) -> set[str]:
    deletions = [one for one in plan.changes if isinstance(one, RemoveTopics)]
    if not deletions or not step.rounds or step.before.assignor in SERVER_SIDE:
        return set()
    return {name for one in deletions if str(one) == step.cause for name in one.topics}


def _holds(member: Member, topics: set[str]) -> bool:
    return any(tp.topic in topics for tp in member.owned_partitions)
