# SPDX-License-Identifier: Apache-2.0
"""Finds out whether a cooperative group's members also list an eager assignor, and so are eager.

Brokers report only the selected assignor. A group's line may contain `rebalance_protocol`: a person
sets it, or a snapshot does if the members' last subscriptions show it (`live/classic_groups.py`).

Source   ConsumerCoordinator (Kafka 4.4.0) uses the highest protocol that all listed assignors
         support; kafka-python 3.0.12 too (ConsumerCoordinator._validate_rebalance_protocol).
"""

from collections.abc import Iterator

from kafka_rebalance.assignors.interface import RebalanceProtocol
from kafka_rebalance.assignors.registry import SERVER_SIDE, is_known, protocol_name, protocol_of
from kafka_rebalance.group.model import Member
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.clients import JAVA, KAFKA_PYTHON, client_of
from kafka_rebalance.plans.rounds import lists_eager

from .findings import Note

_COOPERATIVE_LISTS = (
    "Assumed: every member lists only cooperative assignors; brokers do not show the lists. "
    "A member that lists an eager one too (in a switch, after the first of two rolling bounces) "
    "is eager: at each rebalance it stops reading, and claims nothing. For such members, set "
    '"rebalance_protocol": "eager" in the line of the group; no value fits a group of which only '
    "some members list one."
)


def lists_notes(group: GroupSpec, assignor: str | None) -> Iterator[Note]:
    """Yields a note if members list, or may list, an eager assignor with this cooperative one."""
    if may_list_eager(group, assignor):
        yield Note("lists", _COOPERATIVE_LISTS)
        return
    if assignor is None or not is_known(assignor) or not lists_eager(group, assignor):
        return
    text = (
        f"The members are eager (rebalance_protocol): beside {protocol_name(assignor)}, they list "
        "an assignor that is eager only. So each rebalance leaves all partitions without a "
        "reader, and no member claims what it had. A rolling bounce of members that list the "
        "cooperative assignor alone ends this."
    )
    yield Note("eager", text)


def may_list_eager(group: GroupSpec, assignor: str | None) -> bool:
    """Returns whether the rounds of plans with this assignor depend on the members' lists of
    assignors, which are unknown.
    """
    if group.rebalance_protocol is not None or not is_cooperative(assignor):
        return False
    return any(may_mix(member, group.group_id) for member in group.members)


def is_cooperative(assignor: str | None) -> bool:
    """Returns whether members that list only this assignor are cooperative."""
    if assignor is None or assignor in SERVER_SIDE or not is_known(assignor):  # such as `stream`
        return False
    return protocol_of(assignor) is RebalanceProtocol.COOPERATIVE


def may_mix(member: Member, group_id: str) -> bool:
    """Returns whether a member's client allows eager and cooperative assignors in one list.

    Java allows it, and so does kafka-python with this project's plug-ins, which send Java's bytes.
    """
    client = client_of(member, group_id)
    if member.client_library is None:
        return client is JAVA
    return member.client_library == "java" and client in (None, JAVA, KAFKA_PYTHON)
