# SPDX-License-Identifier: Apache-2.0
"""Turns contract lines (JSON descriptions of groups) into topics and members' bytes for the probe.

A member's subscription is encoded from its fields, as its library encodes it. A line can also
contain the bytes of every member's subscription, in hexadecimal, as `subscription`; they are then
used unchanged.
"""

from itertools import groupby
from typing import Any, NamedTuple

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.contract import parse
from kafka_rebalance.group.model import Member
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.wire import consumer_protocol as wire
from kafka_rebalance.wire.classic_groups import JoinedMember

from .cluster import ServedTopic
from .frames import subscription

_NO_GENERATION = -1


class ProbeCase(NamedTuple):
    """A made-up group. `assignor` can name a library (`librdkafka/range`); members list `range`."""

    group_id: str
    assignor: str
    topics: tuple[ServedTopic, ...]
    members: tuple[JoinedMember, ...]

    @property
    def protocol(self) -> str:
        return self.assignor.rpartition("/")[2]

    def subscribed(self) -> set[str]:
        """Returns the existing topics to which a member subscribes."""
        wanted = {t for one in self.members for t in wire.decode_subscription(one.metadata).topics}
        return wanted & {topic.name for topic in self.topics}


def probe_case(line: str | bytes, assignor: str | None = None) -> ProbeCase:
    """Returns a line's case; `assignor` replaces the line's own. Errors: GroupError, WireError."""
    value = parse(line)
    sent = _subscriptions(value)
    if sent:
        # Members have `subscription` in place of `topics`; GroupSpec checks their other fields.
        ids = [{**one, "topics": []} for one in value["members"]]
        value = {**value, "members": ids}
    group = GroupSpec.from_dict(value)
    name = assignor or group.assignor
    if name is None:
        raise GroupError("assignor", "missing; name one for all lines with --assignor")
    metadata = sent or [subscription_bytes(one, name) for one in group.members]
    members = tuple(
        JoinedMember(one.member_id, one.group_instance_id, data)
        for one, data in zip(group.members, metadata, strict=True)
    )
    topics = tuple(ServedTopic(one.name, one.partitions, one.racks) for one in group.topics)
    return ProbeCase(group.group_id, name, topics, members)


def _subscriptions(value: Any) -> list[bytes]:
    members = value.get("members") if isinstance(value, dict) else None
    if not isinstance(members, list) or not members or not isinstance(members[0], dict):
        return []
    if "subscription" not in members[0]:
        return []
    found = []
    for at, one in enumerate(members):
        text: Any = one.get("subscription") if isinstance(one, dict) else None
        try:
            found.append(bytes.fromhex(text))
        except (TypeError, ValueError):  # not a string, or not hexadecimal
            problem = "not bytes in hexadecimal; either all members have it or none"
            raise GroupError(f"members[{at}].subscription", problem) from None
    return found


def subscription_bytes(member: Member, assignor: str) -> bytes:
    """Returns the bytes that the member's library sends for this assignor.

    Java's newest client sorts topics and partitions. For other clients, the bytes are in the order
    of the member's fields.
    """
    library, _, protocol = assignor.rpartition("/")
    user_data = _user_data(member, protocol)
    # Eager sticky members report their owned partitions only in the user data.
    owned = () if protocol == "sticky" else member.owned_partitions
    if member.subscription_version is None and not library:
        sorted_as_java = wire.Subscription(
            member.topics, user_data, owned, member.generation_id, member.rack_id
        )
        return wire.encode_subscription(sorted_as_java)
    runs = groupby(owned, key=lambda tp: tp.topic)
    fields = {
        "topics": member.topics,
        "user_data": user_data,
        "owned_partitions": [
            {"topic": topic, "partitions": [tp.partition for tp in run]} for topic, run in runs
        ],
        "generation_id": _or_none(member.generation_id),
        "rack_id": member.rack_id,
    }
    return subscription(member.version, fields)


def _user_data(member: Member, protocol: str) -> bytes | None:
    generation = member.user_data_generation_id
    if generation is None:
        generation = _or_none(member.generation_id)
    if protocol == "cooperative-sticky":
        return None if member.user_data else wire.encode_cooperative_user_data(generation)
    if protocol != "sticky" or member.user_data == "none":
        return None
    if not member.owned_partitions and generation < 0:
        return None
    written = _NO_GENERATION if member.user_data == "partitions" else generation
    return wire.encode_sticky_user_data(member.owned_partitions, written)


def _or_none(generation: int | None) -> int:
    return _NO_GENERATION if generation is None else generation
