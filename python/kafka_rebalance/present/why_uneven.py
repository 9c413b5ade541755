# SPDX-License-Identifier: Apache-2.0
"""Explains, from its assignor's rule, why a group is less even than it could be.

    why_uneven: group, its present assignment, the plan of its next rebalance -> a clause, or None

1. The next rebalance makes the group more even: for the present members and topics, the assignor
   returns another answer. If partitions move and the balance stays, this is not the cause.
2. Range divides each topic separately: each subscriber gets its share of the topic, or one
   partition more. The additional partitions add up, because the first members of the order get them
   in every topic.
3. Members subscribe to different topics. Round-robin then passes over members without counting, and
   the sticky assignors move partitions one by one until no single move helps.

No cause is named for other assignors, or if the partitions do not fit these rules.

Source   RangeAssignor, RoundRobinAssignor, AbstractStickyAssignor (Kafka 4.4.0).
"""

from collections import Counter

from kafka_rebalance.assignors.registry import protocol_name
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.rebalance_plan import RebalancePlan

_ONE_BY_ONE = "moves partitions one by one, as long as a single move helps"
_OF_SUBSCRIPTIONS = {
    "roundrobin": "passes over members without a topic, and counts nobody's partitions",
    "sticky": _ONE_BY_ONE,
    "cooperative-sticky": _ONE_BY_ONE,
}


def why_uneven(group: GroupSpec, assignment: Assignment, plan: RebalancePlan) -> str | None:
    """Returns the cause as a clause, or None; `plan` is the plan of the next rebalance."""
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
