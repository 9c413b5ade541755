# SPDX-License-Identifier: Apache-2.0
"""Computes the data that a group's members send after a change to another assignor.

1. If old and new assignor have one protocol name (range, librdkafka/range), members send the same
   data as before, and keep their rebalance protocol.
2. Otherwise, they list only the new assignor and send the data that Kafka's newest client sends, as
   this project's plug-ins do. A rack stays unknown if the member's old version did not send it.
3. Only librdkafka's leaders read the subscription version. A change of assignor keeps the clients,
   so versions 1 to 3 remain under librdkafka's assignors. Clients of version 0 have no cooperative
   assignor; those of the Python libraries get one with the plug-in.
4. A member with a plug-in sends Java's bytes. After a restart with a Python library's own class, it
   no longer does: the library "java", which its bytes showed, is dropped, and its library is
   unknown.

Source   the table of real clients in docs/plans.md; librdkafka 2.16. Mirror: `Draft::run_by`.
"""

from dataclasses import replace

from kafka_rebalance.assignors.python_libraries import PYTHON_LIBRARIES
from kafka_rebalance.assignors.registry import library_of, protocol_name
from kafka_rebalance.group.model import NEWEST_SUBSCRIPTION, Member
from kafka_rebalance.group.spec import GroupSpec


def run_by(group: GroupSpec, assignor: str) -> GroupSpec:
    """Returns the group with this assignor, and with the data that its members then send."""
    if assignor == group.assignor:
        return group
    # 1.
    if group.assignor is None or protocol_name(group.assignor) == protocol_name(assignor):
        return group.edited(assignor=assignor, rebalance_protocol=group.rebalance_protocol)
    members = tuple(sends_under(member, assignor) for member in group.members)
    return group.edited(assignor=assignor, members=members)


def restarted_with(group: GroupSpec, assignor: str) -> GroupSpec:
    """Returns the group after all members have restarted with this assignor."""
    after = run_by(group, assignor)
    if assignor == group.assignor:
        return after
    return after.edited(members=tuple(_restarted(one, assignor) for one in after.members))


def restarted_as(member: Member, assignor: str) -> Member:
    """Returns the member after it has restarted with this assignor."""
    return _restarted(sends_under(member, assignor), assignor)


def _restarted(member: Member, assignor: str) -> Member:
    # 4.
    if assignor in PYTHON_LIBRARIES and member.client_library == "java":
        return replace(member, client_library=None)
    return member


def sends_under(member: Member, assignor: str) -> Member:
    """Returns the member with the data that it sends under an assignor that is new to the group."""
    version = member.subscription_version or None
    return replace(
        member,
        # 2.
        rack_id=member.rack_id if member.version >= NEWEST_SUBSCRIPTION else None,
        user_data=None,
        user_data_generation_id=None,
        # 3.
        subscription_version=version if library_of(assignor) == "librdkafka" else None,
    )
