# SPDX-License-Identifier: Apache-2.0
"""Recognises a group's rebalance protocol by the subscriptions that its members sent last.

    subscribed_protocol: assignor, members with what they sent -> "eager", "cooperative", or None

An eager member revokes all partitions before it joins, so it claims none; a cooperative member
claims those that it keeps. But a member without partitions claims none either, whatever it lists.

Source   ConsumerCoordinator.metadata (Kafka 4.4.0) sends the generation, and the partitions that
         are still owned; onJoinPrepare of an eager member revokes all of them before. The
         generation is -1 until the first assignment (AbstractCoordinator.Generation.NO_GENERATION).
"""

from collections.abc import Sequence

from kafka_rebalance.group.model import Member, RebalanceProtocolName
from kafka_rebalance.notes.listed import is_cooperative, may_mix


def subscribed_protocol(
    group_id: str, assignor: str, sent: Sequence[Member], assigned: int
) -> RebalanceProtocolName | None:
    """Returns the rebalance protocol that the members' last subscriptions show; None if unclear.

    `sent` are the members with what they sent, `assigned` is the number of partitions that they
    were then assigned. A member *rejoined* if it sent a generation: it had been assigned before.

    1. None under an eager assignor, and without members whose client allows mixed lists.
    2. "cooperative" if each member whose client allows mixed lists rejoined and claims partitions.
       If only some claim, the other members are eager (in a switch, between its two bounces), idle,
       or new: a new Java member with Kafka's default list, range and cooperative-sticky, is eager.
       So the answer is then None.
    3. "eager" if a member rejoined, no member claims partitions, every client allows mixed lists,
       and the members that rejoined had partitions that they could claim: a dynamic member is new,
       so that a join caused the rebalance; and there are more partitions than members, so that
       nobody is idle. Otherwise cooperative members may have been idle until then, because the
       owners left, or because a topic was created late.

    Rule 3 is wrong in these rebalances, which have a new member too:

    - a topic was created, or all earlier owners left;
    - the members that rejoined changed their subscriptions, and had revoked all partitions of the
      topics that they left;
    - the new member is the first of a switch's second bounce: it lists cooperative assignors alone,
      while the others are still eager.
    """
    # 1.
    mixing = [member for member in sent if may_mix(member, group_id)]
    if not mixing or not is_cooperative(assignor):
        return None
    # 2.
    if any(one.owned_partitions for one in mixing):
        return "cooperative" if all(one.owned_partitions for one in mixing) else None
    # 3.
    rejoined = any(map(_rejoined, mixing))
    is_join = any(not _rejoined(one) and one.group_instance_id is None for one in mixing)
    settled = len(mixing) == len(sent) < assigned
    return "eager" if rejoined and is_join and settled else None


def _rejoined(sent: Member) -> bool:
    return sent.generation_id is not None and sent.generation_id >= 0
