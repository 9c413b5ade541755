# SPDX-License-Identifier: Apache-2.0
"""Findings on readers: far from a replica, with too much load, or less even than possible.

The load of a member is the sum of the weights of its partitions, divided by its capacity. The
assignor `weighted`, without a budget, decides whether moves are worth it: for a gain of less than a
tenth, it takes no partition from its owner.

Source   RangeAssignor, RoundRobinAssignor, AbstractStickyAssignor (Kafka 4.4.0).
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from kafka_rebalance.assignors.assigning import assign
from kafka_rebalance.assignors.registry import WEIGHTED, Engine, protocol_name, shares_partitions
from kafka_rebalance.group.model import Topic, TopicPartition
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec, counted
from kafka_rebalance.notes.findings import Note
from kafka_rebalance.plans.figures import Reader
from kafka_rebalance.plans.rebalance_plan import RebalancePlan


def leaderless_finding(partitions: Iterable[TopicPartition]) -> Iterator[Note]:
    """Yields a finding if `partitions`, for which no leader answers, are not empty."""
    if named := tuple(partitions):
        text = "no leader answers, so no member can read here, and the lag is unknown"
        yield Note("leaderless", text, partitions=named)


def far_finding(
    topics: Iterable[Topic], readers: Iterable[Reader], ask: str | None = None
) -> Iterator[Note]:
    """Yields a finding on the partitions that have no replica in their reader's rack, as far as
    racks are known.
    """
    racks = {topic.name: topic.racks or () for topic in topics}
    far: list[tuple[str, TopicPartition]] = []
    for member_id, rack, partitions in readers:
        for tp in partitions if rack is not None else ():
            replicas = racks.get(tp.topic, ())[tp.partition : tp.partition + 1]
            known = {one for replica in replicas for one in replica if one is not None}
            if known and rack not in known:
                far.append((member_id, tp))
    if far:
        ids = tuple(dict.fromkeys(member_id for member_id, _ in far))
        text = "no replica is in the rack of the member that reads here"
        yield Note("across racks", text, ids, tuple(tp for _, tp in far), ask)


def has_weights(group: GroupSpec) -> bool:
    return any(weight is not None for topic in group.topics for weight in topic.weights or ())


def overloaded(group: GroupSpec, assignment: Assignment, engine: Engine) -> Iterator[Note]:
    """Yields a finding if the fullest member's load would be smaller after a rebalance by
    `weighted`.
    """
    if (
        not has_weights(group)
        or group.subtopologies is not None
        or shares_partitions(group.assignor)
    ):
        return
    from kafka_rebalance.assignors.balance.weights import loads_of

    answer = assign(group, f"{WEIGHTED}?budget=none", engine=engine)
    loads = loads_of(group)
    reader = {tp: who for who, owned in answer.items() for tp in owned}
    moves = sum(reader.get(tp) != who for who, owned in assignment.items() for tp in owned)
    (fullest, now), (_, then) = loads.fullest(group, assignment), loads.fullest(group, answer)
    if moves and then < now:
        text = f"the fullest member carries {now:.3g} times the mean load; "
        text += f"{counted(moves, 'move')} would bring it to {then:.3g}"
        detail = {"of_mean": round(now, 3), "moves": moves, "then": round(then, 3)}
        ask = f"plan --assignor {WEIGHTED} --budget none"
        yield Note("overloaded", text, (fullest,), ask=ask, detail=detail)


_ONE_BY_ONE = "moves partitions one by one, as long as a single move helps"
_OF_SUBSCRIPTIONS = {
    "roundrobin": "passes over members without a topic, and counts nobody's partitions",
    "sticky": _ONE_BY_ONE,
    "cooperative-sticky": _ONE_BY_ONE,
}


def why_uneven(group: GroupSpec, assignment: Assignment, plan: RebalancePlan) -> str | None:
    """Returns a clause with the reason, by the assignor's rule, why the group is not more even.

    `plan` is the plan of the next rebalance. Returns None for other assignors, or if the partitions
    do not fit these rules:

    1. The next rebalance makes the group more even: for the present members and topics, its
       assignor has another answer. If partitions move without more balance, this is not the cause.
    2. Range divides each topic separately: each subscriber gets its share of the topic, or one
       partition more. The additional partitions add up, because the members that come first in the
       order get them in every topic.
    3. Members subscribe to different topics. Round-robin then passes over members without counting
       their partitions, and the sticky assignors move partitions one by one until no single move
       helps.
    """
    assignor, following = plan.assignor, plan.figures()
    # 1.
    if following.balance_after.stddev < assignment.balance.stddev:
        then = following.balance_after.least_to_most
        return f"the owners are not what {assignor} answers now: the next rebalance makes it {then}"
    rule = protocol_name(assignor)
    different = len({frozenset(member.topics) for member in group.members}) > 1
    # 2.
    if rule == "range":
        return _of_range(group, assignor, assignment, different=different)
    # 3.
    if different and rule in _OF_SUBSCRIPTIONS:
        return f"members subscribe to different topics, and {assignor} {_OF_SUBSCRIPTIONS[rule]}"
    return None


def _of_range(
    group: GroupSpec, assignor: str, assignment: Assignment, *, different: bool
) -> str | None:
    from kafka_rebalance.assignors.classic.range import topic_shares

    held = {m: Counter(topic for topic, _ in owned) for m, owned in assignment.items()}
    topics, in_order = 0, True
    for topic in topic_shares(group):
        over = [held[one.member_id][topic.name] - topic.share for one in topic.subscribers]
        if not {*over} <= {0, 1}:
            return None
        topics += 1 in over
        in_order = in_order and over == sorted(over, reverse=True)
    parts = [f"{assignor} shares out each topic by itself"]
    if topics:
        which = "one topic" if topics == 1 else f"each of {topics} topics"
        who = "the first members by id (static ones first)" if in_order else "some members"
        parts.append(f"{who} have one partition more of {which}")
    if different:
        parts.append("members subscribe to different topics")
    return ", and ".join(parts)
