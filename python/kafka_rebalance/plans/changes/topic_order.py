# SPDX-License-Identifier: Apache-2.0
"""The order of the topics in the first subscription that a member sends.

kafka-python and aiokafka send a consumer's topics in the order of a Python set, which differs from
process to process. The sticky classes of both libraries compare the members' *lists*, so their
answers depend on this order; those of other assignors do not. Members of broker-assigned groups
send sorted topics.

A plan uses the order in the group's line or in the change; each draw (a run with other ids) has
its own (`MadeUp.listed`). These classes run in Python only, so there is no mirror in Rust.

Source   kafka-python 3.0.12, aiokafka 0.14.0 (SubscriptionState; _are_subscriptions_identical of
         the sticky class). Java uses a TreeSet; librdkafka and kafka-python's cooperative-sticky
         sort.
"""

from collections.abc import Collection
from dataclasses import replace

from kafka_rebalance.assignors.registry import SERVER_SIDE
from kafka_rebalance.group.model import Member
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.java.order import name_key
from kafka_rebalance.plans.clients import AIOKAFKA, KAFKA_PYTHON, clients_for

from .made_up import MadeUp

_COMPARE_LISTS = ("kafka-python/sticky", "aiokafka/sticky")
"""The assignors whose answers depend on the order of topics in a subscription."""


def newly_listed(group: GroupSpec, ids: MadeUp, who: Collection[str] | None = None) -> GroupSpec:
    """Returns the group after the members `who` (None: all) list their topics for the first time.

    With a leader, the order changes only for members whose library keeps a set, and only if the
    assignor reads it.
    """
    if group.assignor in SERVER_SIDE:
        return group.edited(
            members=tuple(
                replace(one, topics=tuple(sorted(one.topics, key=name_key)))
                if who is None or one.member_id in who
                else one
                for one in group.members
            )
        )
    if group.assignor not in _COMPARE_LISTS:
        return group
    new = {member.member_id for member in group.members} if who is None else who
    listed = [member for member in group.members if member.member_id not in new]
    changed: dict[str, Member] = {}
    for member in group.members:
        topics = tuple(dict.fromkeys(member.topics))
        if member.member_id not in new or len(topics) < 2 or not _lists_a_set(member, group):
            continue
        same = (other.topics for other in listed if {*other.topics} == {*topics})
        alike = tuple(dict.fromkeys(next(same, topics)))
        one = replace(member, topics=ids.listed(member.member_id, topics, alike))
        changed[member.member_id] = one
        listed.append(one)
    return group.edited(members=tuple(changed.get(m.member_id, m) for m in group.members))


def _lists_a_set(member: Member, group: GroupSpec) -> bool:
    """Returns whether the member may run a Python library's own class, which sorts no topics."""
    if member.client_library in ("java", "librdkafka"):
        return False
    return not {KAFKA_PYTHON, AIOKAFKA}.isdisjoint(clients_for(member, group.group_id))
