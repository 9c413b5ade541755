# SPDX-License-Identifier: Apache-2.0
"""Notes on plans of broker-assigned groups, and on switches to or from their protocols.

Source   GroupMetadataManager, CurrentAssignmentBuilder, StickyTaskAssignor, AssignmentRefiner,
         GroupCoordinatorConfig (Kafka 4.4.0), KIP-848, KIP-1071. Libraries: Kafka 4.0's upgrade
         notes; librdkafka's changelog, 2.12.0; kafka-python's issue 3000, release 3.0.12; aiokafka.
"""

from collections.abc import Iterator
from itertools import islice

from kafka_rebalance.assignors.registry import (
    PLUG_IN,
    SERVER_SIDE,
    assigns_tasks,
    shares_partitions,
)
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import GroupSpec, counted, first_of
from kafka_rebalance.plans.broker_rounds import joined_together
from kafka_rebalance.plans.changes.assignor import SwitchAssignor
from kafka_rebalance.plans.changes.bounces import AWAY_MS, BounceMembers
from kafka_rebalance.plans.changes.change import Change
from kafka_rebalance.plans.changes.protocol import SwitchProtocol, copies_user_data
from kafka_rebalance.plans.clients import lacks_consumer_protocol, library_evidence
from kafka_rebalance.plans.rebalance_plan import RebalancePlan

from .consumer_protocol import doctor_notes
from .findings import Note, PlanKind
from .other_courses import OtherPause, other_order, other_pause

HAS = {"java": "Kafka's Java client has it from 4.0 on", "librdkafka": "librdkafka from 2.12.0 on"}


def broker_notes(plan: RebalancePlan) -> tuple[Note, ...]:
    """Returns the notes on the broker's rebalances and, for any group, on switches and restarts."""
    switches = [one for one in plan.changes if isinstance(one, SwitchProtocol)]
    found = [*_switch(plan, switches[-1])] if switches else []
    names = {one.assignor for one in plan.rounds}
    if any(map(assigns_tasks, names)):
        found += _of_streams(plan)
    elif any(map(shares_partitions, names)):
        found += _of_shares(plan)
    elif any(name in SERVER_SIDE for name in names):
        found += _of_consumers(plan)
    if PLUG_IN in names:
        found.append(Note("jar", _JAR))
    found += (*_order(plan), *_pause(plan))
    if plan.topic_ids_guessed and len(plan.group.members) > 1:
        found.append(Note("new topics", _NEW_TOPICS))
    return tuple(found)


_JAR = (
    "balanced is this project's plug-in: all brokers need its jar and its class in "
    "group.consumer.assignors before a group has it. If a broker without them becomes the "
    "coordinator of the group, the group's consumers end. docs/balance-broker.md has the steps."
)
_NEW_TOPICS = (
    "Assumed: all members read the new topics from one target on, as members do whose pattern the "
    "broker resolves, or who subscribed before the topics were there. Of members that subscribe "
    "one after another, each makes a group epoch of its own."
)


def _pause(plan: RebalancePlan) -> Iterator[Note]:
    """Yields a note if members restart and may return earlier or later than planned, with other
    figures.
    """
    if (other := other_pause(plan)) is None:
        return
    if other.chance is None:
        away = f"Assumed: restarted members are away for {AWAY_MS / 1000:g} s"
    else:
        away = f"The chance of the plan's course is {other.chance:.0%} at each restart"
    if plan.group.assignor in SERVER_SIDE:
        why = (
            "When a member leaves, the broker computes no target; the next heartbeat of any member "
            "does, at most 5 s later. A member that is back before it usually has again what it had"
        )
        if assigns_tasks(plan.group.assignor):
            why += "; a task of a streams group can then end elsewhere than in this plan"
    else:
        why = (
            "When a member leaves, the others join again at their next heartbeats, at most 3 s "
            "later. A member that is back before the last of them is part of the same rebalance"
        )
    yield Note(
        "pause",
        f"{away} (bounce-members: away=). {why}. {other_course(plan, other)}.",
        detail={"other": other._asdict()},
    )


def other_course(plan: RebalancePlan, other: OtherPause) -> str:
    """Returns a sentence (without the period) with the figures of the course that the plan does not
    play.
    """
    by_broker = plan.group.assignor in SERVER_SIDE
    what = "another member's heartbeat" if by_broker else "all others have joined again"
    when = "are back before" if other.is_sooner else "come back after"
    return (
        f"If all restarted members {when} {what}: "
        f"{counted(other.rebalances, 'rebalance')}, {counted(other.moves, 'move')}, and "
        f"{_end(other.elsewhere)} elsewhere than in this plan"
    )


def _end(number: int, what: str = "partition") -> str:
    return f"1 {what} ends" if number == 1 else f"{number} {what}s end"


def _order(plan: RebalancePlan) -> Iterator[Note]:
    if (found := other_order(plan)) is None:
        return
    ends = _end(found.elsewhere, "task" if assigns_tasks(plan.group.assignor) else "partition")
    where = "In the other order" if found.orders == 1 else f"In one of {found.orders} other orders"
    yield Note(
        "order",
        f"The members leave in the order of the changes; members that stop together choose none. "
        f"{where}, {ends} elsewhere, with {found.moves} moves.",
    )


def _of_consumers(plan: RebalancePlan) -> Iterator[Note]:
    by_broker = [one for one in plan.rounds if one.kind == "broker"]
    if any(one.moves for one in by_broker):
        yield Note("stops", _OF_CONSUMERS["stops"])
    if any(member.generation_id is None for one in by_broker for member in one.group.members):
        text = _OF_CONSUMERS["interval"]
        if any(len(step.rounds) > 1 and step.rounds[0].kind == "broker" for step in plan.steps):
            text += f" Here each member has its own target; {_together(plan)}."
        yield Note("interval", text)
    switched = [_before(plan, one) for one in plan.changes if isinstance(one, SwitchAssignor)]
    if any(one.assignor in SERVER_SIDE and _has_pair(one) for one in switched):
        yield Note("tie", _OF_CONSUMERS["tie"])


_OF_CONSUMERS: dict[PlanKind, str] = {
    "stops": "Members of the consumer protocol read on what they keep. A partition that moves "
    "stops when its owner revokes it, at this member's next heartbeat, until the heartbeat of its "
    "new owner: at most 5 s (group.consumer.heartbeat.interval.ms), half of that on average, plus "
    "the next poll() and the callbacks of both members.",
    "interval": "A member that joins within 1 s of the last target "
    "(group.consumer.assignment.interval.ms) gets nothing until anybody's next heartbeat after "
    "that.",
    "tie": "While only two members name an assignor (group.remote.assignor), and each another "
    "one, the broker computes new targets with both in turns, at their heartbeats, until the next "
    "member changes: do not stop there.",
}


def _has_pair(group: GroupSpec) -> bool:
    """Returns whether the group has only two members at some moment of a rolling change."""
    a_dynamic = any(member.group_instance_id is None for member in group.members)
    return len(group.members) == 2 or (len(group.members) == 3 and a_dynamic)


def _together(plan: RebalancePlan) -> str:
    """Returns a clause: how the plan's end differs if the new members of a step join within one
    assignment interval.
    """
    others = 0
    for step in plan.steps:
        if len(step.rounds) > 1 and step.rounds[0].kind == "broker":
            after = joined_together(step.before, plan.engine)
            given = {(m.member_id, tp) for m in step.after.members for tp in m.owned_partitions}
            others += sum(
                (m.member_id, tp) not in given for m in after.members for tp in m.owned_partitions
            )
    if not others:
        return "if they join within this time, the end is the same"
    return f"if they join within this time and share one, {_end(others)} at another member"


def _before(plan: RebalancePlan, change: Change) -> GroupSpec:
    group, steps = plan.group, 0
    for one in plan.changes:
        if one is change:
            break
        steps += len(one.events(group))
        group = plan.steps[steps - 1].after
    return group


def _of_shares(plan: RebalancePlan) -> Iterator[Note]:
    yield Note(
        "stops",
        "Nobody waits in a share group: a member has its target at its next heartbeat, at most 5 s "
        "later (group.share.heartbeat.interval.ms). Partitions that were never read are handed out "
        "after their share state is initialised: one heartbeat and one group epoch later.",
    )
    read = {topic for member in plan.final.members for topic in member.topics}
    owned = {tp.topic for member in plan.final.members for tp in member.owned_partitions}
    if left := sorted(owned - read):
        yield Note(
            "ignored", f"{', '.join(left)}: nobody subscribes, yet it stays in the target for good."
        )


def _of_streams(plan: RebalancePlan) -> Iterator[Note]:
    joins = any(m.generation_id is None for one in plan.rounds for m in one.group.members)
    stateful = {one.subtopology_id for one in plan.group.subtopologies or () if one.stateful}
    gained = [tp for one in plan.rounds for owned in one.gained.values() for tp in owned]
    there: dict[PlanKind, bool] = {
        "tasks": True,
        "stops": any(one.moves or (one.standby and one.standby.moves) for one in plan.rounds),
        "interval": joins,
        "delay": joins,
        "warm-up": any(tp.topic in stateful for tp in gained),
    }
    yield from (Note(kind, text) for kind, text in _OF_STREAMS.items() if there[kind])
    yield from _standby_places(plan.final)
    if any(isinstance(one, BounceMembers) for one in plan.changes):
        yield from _threads(plan.group)


_OF_STREAMS: dict[PlanKind, str] = {
    "tasks": "A partition of this plan is a task: 0[1] is task 0_1, the second of subtopology 0. "
    "The figures count active tasks.",
    "stops": "Members run on with the tasks that they keep. A task that moves stops when its "
    "owner closes it, until the heartbeat of its new owner: at most 5 s "
    "(group.streams.heartbeat.interval.ms), half of that on average, plus the time in which the "
    "new owner restores its state.",
    "interval": "A member that joins within 1 s of the last target "
    "(group.streams.assignment.interval.ms) gets nothing until anybody's next heartbeat after "
    "that. A target depends on the tasks that members have when it is computed: members that join "
    "before the group is stable may get others.",
    "delay": "Only a group that was empty waits 3 s before its first target "
    "(group.streams.initial.rebalance.delay.ms): members that join later do not.",
    "warm-up": "Kafka 4.4 assigns no warm-up tasks, whatever group.streams.num.warmup.replicas "
    "is: a stateful task moves at once, and its new owner restores the state first, unless it had "
    "a standby task.",
}


def _threads(group: GroupSpec) -> Iterator[Note]:
    by_process = dict[str, list[str]]()
    for member in group.members:
        if member.streams is not None:
            by_process.setdefault(member.streams.process_id, []).append(member.member_id)
    shared = ((process_id, ids) for process_id, ids in by_process.items() if len(ids) > 1)
    for process_id, ids in islice(shared, 1):
        yield Note(
            "threads",
            "A member is a thread, and bounce-members restarts each thread alone. A process that "
            f"restarts takes all its threads with it: {', '.join(ids)} are process {process_id}. "
            "No change plays that at once: --bounce-members for each of these restarts them one "
            "after another, and the group is stable after each stop and each start.",
        )


def _standby_places(group: GroupSpec) -> Iterator[Note]:
    processes = {member.streams.process_id for member in group.members if member.streams}
    replicas = group.num_standby_replicas or 0
    if (
        replicas
        and len(processes) <= replicas
        and any(s.stateful for s in group.subtopologies or ())
    ):
        there = "1 process" if len(processes) == 1 else f"{len(processes)} processes"
        yield Note(
            "same place",
            f"num.standby.replicas is {replicas}, but there are only {there}: the owner of a task "
            "and its standby replicas are always in different processes, so some are missing.",
        )


_POLICY = "The brokers need group.consumer.migration.policy=bidirectional (the default) or"


def _switch(plan: RebalancePlan, change: SwitchProtocol) -> Iterator[Note]:
    if change.protocol == "consumer":
        group = _before(plan, change)
        yield from _libraries(group)
        libraries = [library_evidence(one, group.group_id) or ("", "") for one in group.members]
        yield from doctor_notes(plan, {library for library, _ in libraries})
        if copies_user_data(group) and group.members[0].group_instance_id is not None:
            yield Note(
                "blocks",
                "If a member joined more than once before the last assignment, this assignment has "
                "user data, and the broker refuses to convert the group. Stop all members "
                "then, and start them with group.protocol=consumer.",
            )
        yield Note(
            "policy",
            f"{_POLICY} upgrade, and Kafka 4.0 or newer. The way back is switch-protocol=classic.",
        )
        yield Note(
            "first join",
            "The first member must not come while the group forms (the 3 s of "
            "group.initial.rebalance.delay.ms): the broker refuses it then, and the Java client "
            "ends.",
        )
    else:
        stays = "Else the group stays one of the consumer protocol, with classic members."
        yield Note("policy", f"{_POLICY} downgrade. {stays}")
    moved = tuple(_moved(plan))
    family = "the broker" if change.protocol == "consumer" else "the leader"
    text = (
        f"Afterwards {family} assigns: {plan.final.assignor}. "
        f"{len(moved)} of {len(plan.after.partitions)} partitions end at another member."
    )
    if change.protocol == "consumer":
        text += (
            " Remove partition.assignment.strategy, session.timeout.ms and heartbeat.interval.ms: "
            "clients with group.protocol=consumer refuse them. Racks are ignored."
        )
    else:
        text += " Remove group.remote.assignor: clients with group.protocol=classic refuse it."
    detail = {"moved": [[str(tp), before, after] for tp, before, after in moved]}
    yield Note("owners", text, partitions=tuple(tp for tp, _, _ in moved), detail=detail)


def _libraries(group: GroupSpec) -> Iterator[Note]:
    found: dict[tuple[str, str | None], list[str]] = {}
    for member in group.members:
        library, _ = library_evidence(member, group.group_id) or ("", "")
        key = library, lacks_consumer_protocol(member, group.group_id)
        found.setdefault(key, []).append(member.group_instance_id or member.member_id)
    for (library, lacking), members in found.items():
        who = first_of(members, 3)
        if lacking is not None:
            restarts, these = "these restarts need", "these members"
            if len(members) == 1:
                restarts, these = "this restart needs", "this member"
            yield Note(
                "blocks",
                f"{who}: {lacking}, so {restarts} another client: until then the group works on "
                "with both protocols, and each target stops an eager classic member wholly. Either "
                f"move {these} to another client first, or leave the whole group classic.",
            )
        else:
            known = HAS.get(library, f"{HAS['java']}; {HAS['librdkafka']}")
            yield Note("unknown", f"{who}: the version is not known; {known}.")


def _moved(plan: RebalancePlan) -> Iterator[tuple[TopicPartition, str | None, str | None]]:
    """Yields (partition, owner before the plan, owner after it) for each partition whose owner
    changes; a member that restarted is named by the id that it had before.
    """
    origins = plan.steps[-1].origins
    before = {tp: member for member, owned in plan.before.items() for tp in owned}
    after = {
        tp: origins.get(member, member) for member, owned in plan.after.items() for tp in owned
    }
    for tp in sorted(before.keys() | after.keys()):
        if before.get(tp) != after.get(tp):
            yield tp, before.get(tp), after.get(tp)
