# SPDX-License-Identifier: Apache-2.0
"""Notes on events that can happen in a plan's rebalances but that the plan does not play.

A member that revokes partitions joins again at once. A slower member that has not yet received its
assignment of this generation then joins with the claims of the previous generation. It revokes one
generation later, and joins once more. This needs two members that revoke in one generation.

Source   ConsumerCoordinator.onJoinComplete, ClassicGroup (Kafka 4.4.0: SyncGroup is answered with
         REBALANCE_IN_PROGRESS); kafka-python 3.0.12: docs/clients.md.
"""

from collections.abc import Iterator

from kafka_rebalance.plans.changes.topics import AddPartitions, Resubscribe
from kafka_rebalance.plans.clients import JAVA, KAFKA_PYTHON, clients_for
from kafka_rebalance.plans.rebalance_plan import RebalancePlan

from .note import Note


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
