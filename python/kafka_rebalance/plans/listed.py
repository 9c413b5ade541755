# SPDX-License-Identifier: Apache-2.0
"""Tells whether a cooperative group's members list an eager assignor too, and so are eager.

A member is eager unless all assignors of its list are cooperative. Brokers show the selected
assignor only. So a group's line has `rebalance_protocol`, which a person sets, or a snapshot if the
members' last subscriptions show it (`seen_protocol`). Without it, rounds are planned as for members
with cooperative assignors alone. In a change to such an assignor, members list both between the two
rolling bounces; `switch.py` knows those lists, and plays them.

Source   ConsumerCoordinator (Kafka 4.4.0) uses the highest protocol that all listed assignors
         support; kafka-python 3.0.12 too (ConsumerCoordinator._validate_rebalance_protocol).
"""

from collections.abc import Sequence

from kafka_rebalance.assignors import RebalanceProtocol
from kafka_rebalance.assignors.registry import SERVER_SIDE, is_known
from kafka_rebalance.group.model import Member, RebalanceProtocolName
from kafka_rebalance.group.spec import GroupSpec

from .clients import JAVA, KAFKA_PYTHON, client_of
from .rounds import protocol_of


def may_list_eager(group: GroupSpec, assignor: str | None) -> bool:
    """Returns whether a plan of this group's rounds depends on lists that are not known.

    A member counts if its bytes are Java's, which our plug-ins of the Python libraries send too, or
    if its client id is Java's and no bytes are known. Other clients refuse mixed lists.
    """
    if group.rebalance_protocol is not None or not _is_cooperative(assignor):
        return False
    return any(_may_mix(member, group.group_id) for member in group.members)


def seen_protocol(
    group_id: str, assignor: str, sent: Sequence[Member], assigned: int
) -> RebalanceProtocolName | None:
    """Returns the rebalance protocol that the members' last subscriptions show; None if unclear.

    `sent` are the members with what they sent, `assigned` is the number of partitions that they
    were then assigned. A member *rejoined* if it sent a generation: it had been assigned before.

    1. None under an eager assignor, and without members whose client allows mixed lists.
    2. "cooperative" if at least one member claims partitions, and each that rejoined does. If only
       some claim, the others are either eager (in a switch, between its two bounces), or were
       idle: None.
    3. "eager" if a member rejoined, no member claims partitions, every client allows mixed lists,
       and the members that rejoined had partitions that they could claim: a dynamic member is new,
       so that a join caused the rebalance; and there are more partitions than members, so that
       nobody is idle. Otherwise cooperative members may have been idle until then, because the
       owners left, or because a topic was created late.

    Rule 3 is wrong only if such an event and a join came in one rebalance.

    Source   ConsumerCoordinator.metadata sends the generation, and the partitions that are still
             owned; onJoinPrepare of an eager member revokes all of them before. The generation is
             -1 until the first assignment (AbstractCoordinator.Generation.NO_GENERATION).
    """
    # 1.
    mixing = [member for member in sent if _may_mix(member, group_id)]
    if not mixing or not _is_cooperative(assignor):
        return None
    # 2.
    claim = [bool(one.owned_partitions) for one in mixing if _rejoined(one)]
    if any(claim):
        return "cooperative" if all(claim) else None
    # 3.
    is_join = any(not _rejoined(one) and one.group_instance_id is None for one in sent)
    settled = len(mixing) == len(sent) < assigned
    return "eager" if claim and is_join and settled else None


def _rejoined(sent: Member) -> bool:
    """Returns whether a member had been assigned before; kafka-python's own class shows claims."""
    generation_id = sent.generation_id
    return bool(sent.owned_partitions) or (generation_id is not None and generation_id >= 0)


def _is_cooperative(assignor: str | None) -> bool:
    if assignor is None or assignor in SERVER_SIDE or not is_known(assignor):  # such as `stream`
        return False
    return protocol_of(assignor) is RebalanceProtocol.COOPERATIVE


def _may_mix(member: Member, group_id: str) -> bool:
    client = client_of(member, group_id)
    if member.client_library is None:
        return client is JAVA
    return member.client_library == "java" and client in (None, JAVA, KAFKA_PYTHON)
