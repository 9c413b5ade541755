# SPDX-License-Identifier: Apache-2.0
"""Plays a change of the brokers' assignor of a consumer group (KIP-848): one rolling bounce.

1. A dynamic member leaves, and comes back with the new `group.remote.assignor`. A static member
   keeps its place.
2. The broker takes the assignor that most members name; if no member names one, the first of
   `group.consumer.assignors` (default: uniform, range).
3. A member that leaves or joins, or another assignor, is a new group epoch with a target.
4. In a tie, uniform assigns. But if only two members name an assignor, and not the same one, each
   heartbeat counts its own member's name first, and the targets change in turns. How many depends
   on the time, so the counts are lower bounds.

Brokers do not show the names. Members of a group that runs uniform are taken to name none, those of
another group to name its assignor.

Source   ConsumerGroup.computePreferredServerAssignor; GroupMetadataManager:
         hasMemberSubscriptionChanged (Kafka 4.4.0).
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from kafka_rebalance.assignors import consumer
from kafka_rebalance.assignors.registry import Engine
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.broker_rounds import play_by_broker
from kafka_rebalance.plans.changes import BounceMembers
from kafka_rebalance.plans.changes.made_up import MadeUp

from .rounds import MOST_MEMBERS, Bounce, at_least

BROKERS_DEFAULT = consumer.uniform.NAME
"""The assignor of groups of which no member names one, with the brokers' default settings."""


def remote_bounce(group: GroupSpec, new: str, engine: Engine) -> Bounce:
    """Returns the rolling bounce of a consumer group to the brokers' assignor `new`, as played.

    Errors   those of `assign`.
    """
    old = group.assignor or BROKERS_DEFAULT
    if len(group.members) > MOST_MEMBERS:
        return at_least(group, (new,))
    names = None if old == BROKERS_DEFAULT else old
    named = {member.member_id: names for member in group.members}
    ids = MadeUp(f"{group.group_id}/{new}")
    runs, takes_over, in_turns = old, None, False
    rebalances = moves = 0
    for member in group.members:
        for event in BounceMembers(member.member_id).events(group):
            # 1.
            edited = event.edit(group, ids)
            named |= dict.fromkeys(edited.renamed, new)
            # 2.
            named = {one.member_id: named[one.member_id] for one in edited.group.members}
            counts = Counter(name for name in named.values() if name is not None)
            before, runs = runs, _most_named(counts)
            # 4.
            in_turns |= len(counts) == 2 and set(counts.values()) == {1}
            if before != runs:
                how = "is back" if edited.renamed else "leaves"
                takes_over = f"{member.group_instance_id or member.member_id} {how}"
            group = edited.group.edited(assignor=runs)
            # 3.
            if edited.rebalances or before != runs:
                played = play_by_broker(
                    _newest_last(group, edited.renamed), eager=(), engine=engine
                )
                rebalances += len(played.rounds)
                moves += sum(one.moves for one in played.rounds)
                group = played.group
    exact = not in_turns
    return Bounce((new,), len(named), rebalances, moves if exact else None, exact, takes_over)


def _most_named(counts: Mapping[str, int]) -> str:
    """Returns the assignor that most members name; in a tie, uniform."""
    most = [name for name, count in counts.items() if count == max(counts.values())]
    return most[0] if len(most) == 1 else BROKERS_DEFAULT


def _newest_last(group: GroupSpec, back: Iterable[str]) -> GroupSpec:
    back = set(back)
    return group.edited(members=tuple(sorted(group.members, key=lambda m: m.member_id in back)))
