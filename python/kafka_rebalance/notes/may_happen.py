# SPDX-License-Identifier: Apache-2.0
"""Notes on events that can happen in a plan's rebalances but that the plan does not play.

A member that revokes partitions joins again at once. If this happens before a slower member has
received its assignment of the new generation, the slower member joins with its claims of the
previous generation. It then revokes one generation later, and joins once more. This can happen only
if two members revoke in one generation.

After a topic is deleted, automatic commits delay the rebalance. Before a member joins, it commits
its positions. The broker refuses the positions in a deleted topic with UNKNOWN_TOPIC_OR_PARTITION.
Java then repeats the commit until `max.poll.interval.ms` is over, kafka-python while its poll
lasts, at most for this interval, and aiokafka without end. The leader notices the deletion first;
the other members learn of the rebalance only when the leader joins, after its wait. So their own
waits follow the leader's. Other clients join in seconds.

Source   ConsumerCoordinator.onJoinComplete, ConsumerCoordinator.onJoinPrepare, ClassicGroup (Kafka
         4.4.0: SyncGroup is answered with REBALANCE_IN_PROGRESS); kafka-python 3.0.12
         (ConsumerCoordinator._on_join_prepare_async; docs/clients.md); aiokafka 0.14.0
         (GroupCoordinator.commit_offsets); all clients: tests/live/test_topic_changes.py.
"""

from collections.abc import Iterator
from itertools import chain

from kafka_rebalance.assignors.registry import SERVER_SIDE
from kafka_rebalance.group.spec import first_of
from kafka_rebalance.plans.changes.topics import AddPartitions, RemoveTopics, Resubscribe
from kafka_rebalance.plans.clients import AIOKAFKA, JAVA, KAFKA_PYTHON, clients_for
from kafka_rebalance.plans.rebalance_plan import RebalancePlan
from kafka_rebalance.plans.rounds import Step

from .findings import Note


def may_happen(plan: RebalancePlan) -> tuple[Note, ...]:
    """Returns the notes on a plan; none if no leader assigns in any of the plan's rebalances."""
    is_led = any(one.kind != "broker" for one in plan.rounds)
    return tuple(_of(plan)) if is_led else ()


def _of(plan: RebalancePlan) -> Iterator[Note]:
    cooperative = [one for one in plan.rounds if one.kind == "cooperative"]
    if any(sum(map(bool, one.revoked.counts())) > 1 for one in cooperative):
        yield Note(
            "missed",
            "One rebalance more is possible: if one member that revokes is slower than another, it "
            "misses this generation, and revokes in the next one.",
        )
    runs = [clients_for(member, plan.group.group_id) for member in plan.group.members]
    of_python = [one for one in runs if KAFKA_PYTHON in one and JAVA not in one]
    by_bytes = all(member.client_library == "java" for member in plan.group.members)
    if not of_python and any(KAFKA_PYTHON in one for one in runs) and by_bytes:
        yield Note(
            "plug-ins",
            "If these members run kafka-python with this project's plug-ins, which send Java's "
            "bytes, the number of rebalances is a lower bound: a rebalance that ends between two "
            "polls of the leader is followed by another one.",
        )
    subscribes = any(isinstance(one, Resubscribe) for one in plan.changes) and len(runs) > 1
    if of_python and (subscribes or any(isinstance(one, AddPartitions) for one in plan.changes)):
        yield Note(
            "poll hangs",
            "kafka-python (3.0.12) sometimes hangs in poll() after subscribe() in a group of two "
            "or more members, or after a topic has grown (docs/clients.md): if the group does not "
            "become stable, restart its members of kafka-python.",
        )


_MOST_NAMED = 6
_TIMES = {2: "up to two times "}
_CLIENTS = {"java": JAVA, "aiokafka": AIOKAFKA, "kafka_python": KAFKA_PYTHON}
"""The clients that repeat the commit; a member that may run several of them is taken to run the
first.
"""
_COMMITS = {
    "java": "With automatic commits (enable.auto.commit, the default), a Java member that holds "
    "partitions there commits them in vain until {times}max.poll.interval.ms (5 minutes by "
    "default) has passed, and only then joins: {who}. Under an eager assignor, members that wait "
    "read nothing. A member that waits longer than the others is removed and returns under a new "
    "id, in rebalances that are not planned here.",
    "aiokafka": "With automatic commits (enable_auto_commit, the default), aiokafka (0.14.0) "
    "commits there without end, until it restarts: {who}.",
    "kafka_python": "With automatic commits (enable_auto_commit, the default), kafka-python "
    "(3.0.12) commits there as long as its poll may last (timeout_ms; a loop over the consumer has "
    "no limit), at most for max_poll_interval_ms (5 minutes by default), the leader first: {who}.",
}


def commit_waits(plan: RebalancePlan) -> Iterator[Note]:
    """Yields a note if members delay rebalances of the plan because they repeat a commit to a
    deleted topic.

    Java members wait at most `intervals` times `max.poll.interval.ms`: 2 times if the leader and
    another member may wait; 0 times without a Java member.
    """
    topics, intervals = dict[str, None](), 0
    waiting: dict[str, dict[str, None]] = {name: {} for name in _CLIENTS}
    for step in plan.steps:
        gone, there, held = _deleted(plan, step), set[str](), set[str]()
        for member in step.before.members if gone else ():
            if not (of_member := gone.intersection(tp.topic for tp in member.owned_partitions)):
                continue
            clients = clients_for(member, plan.group.group_id)
            runs = [name for name, client in _CLIENTS.items() if client in clients]
            for name in runs[:1]:
                waiting[name][member.member_id] = None
            there |= {member.member_id} & waiting["java"].keys()
            held |= of_member
        leads = plan.group.leader is None or plan.group.leader in there
        intervals = max(intervals, 1 + leads if len(there) > 1 else len(there))
        topics |= dict.fromkeys(sorted(held))
    found = {name: [*ids] for name, ids in waiting.items()}
    if any(found.values()):
        text = f"WARNING: deleting {first_of([*topics], _MOST_NAMED)} can stop this group."
        for name, ids in found.items():
            who, times = first_of(ids, _MOST_NAMED), _TIMES.get(intervals, "")
            text += f" {_COMMITS[name].format(who=who, times=times)}" if ids else ""
        text += " To avoid it, first let the members unsubscribe, then delete."
        detail = {"topics": [*topics], **found, "intervals": intervals}
        yield Note("commit waits", text, (*chain(*found.values()),), detail=detail)


def _deleted(plan: RebalancePlan, step: Step) -> set[str]:
    deletions = [one for one in plan.changes if isinstance(one, RemoveTopics)]
    if not deletions or not step.rounds or step.before.assignor in SERVER_SIDE:
        return set()
    return {name for one in deletions if str(one) == step.cause for name in one.topics}
