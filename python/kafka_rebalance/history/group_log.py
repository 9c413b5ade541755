# SPDX-License-Identifier: Apache-2.0
"""The records of one group as generations: members, their subscriptions, and the assignment.

A record is written when a rebalance completes. It contains each member's subscription for the
chosen protocol, byte for byte as sent, and the assignment that the leader returned.

Source   GroupMetadataValue.json of Kafka's group coordinator; `wire/group_records.py`.
"""

from contextlib import suppress
from functools import cached_property
from itertools import chain
from typing import Any

import kafka_rebalance._core as _core
from kafka_rebalance.errors import WireError
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.wire.consumer_protocol import (
    AssignmentData,
    Subscription,
    decode_assignment,
    decode_subscription,
)
from kafka_rebalance.wire.group_records import GroupMetadataKey, Key, OffsetsRecord
from kafka_rebalance.wire.sent_members import leader_library

CONSUMER, STREAM = "consumer", "stream"


class RecordedMember(Frozen):
    """A member of a group, as a record of the group describes it.

    `subscription` and `assignment` are both None if the bytes of one of them cannot be read, or if
    the group is not a consumer group; `assignment` is also None if the record contains none.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    subscription: Subscription | None
    assignment: AssignmentData | None

    @cached_property
    def topics(self) -> frozenset[str]:
        return frozenset(self.subscription.topics if self.subscription else ())

    @cached_property
    def claims(self) -> frozenset[TopicPartition]:
        """The partitions that the member reported as owned when it joined."""
        return frozenset(self.subscription.owned_partitions if self.subscription else ())

    @cached_property
    def assigned(self) -> frozenset[TopicPartition]:
        return frozenset(self.assignment.partitions if self.assignment else ())

    @property
    def identity(self) -> tuple[str, ...]:
        """The names that a process keeps when it restarts under a new member id."""
        if self.group_instance_id is not None:
            return (self.group_instance_id,)
        return (self.client_id, self.client_host)


class RecordedGeneration(Frozen):
    """A group's record. All members had joined at `joined_ms`; the leader answered at `written_ms`.

    For a broker-assigned group, see `group_epochs.py`. Only such a group has `metadata_hash`,
    the broker's hash of the topics; `settings`, a streams group's settings and topology epoch;
    `ready`, the partitions of a share group whose state is initialised; and `rewritten`, the ids of
    members whose own record was written again. `assignors` are those that may have computed the
    targets; `inputs` is None if the epoch had no targets.

    No record shows when the rebalance began. A record of version 0 or 1 lacks `joined_ms`, which is
    then `written_ms`.
    """

    group_id: str
    partition: int
    offset: int
    written_ms: int
    joined_ms: int
    protocol_type: str
    generation_id: int
    protocol: str | None
    leader: str | None
    members: tuple[RecordedMember, ...]
    group_type: str = "classic"
    metadata_hash: int = 0
    settings: tuple[tuple[str, str], ...] = ()
    ready: frozenset[TopicPartition] = frozenset()
    rewritten: tuple[str, ...] = ()
    assignors: tuple[str, ...] = ()
    inputs: Any = None  # an EpochInputs; not declared, because its types are not public

    @cached_property
    def by_id(self) -> dict[str, RecordedMember]:
        return {member.member_id: member for member in self.members}

    @cached_property
    def owners(self) -> dict[TopicPartition, str]:
        """Assigned partition -> its owner's instance id, or member id if it has no instance id."""
        found: dict[TopicPartition, str] = {}
        for member in self.members:
            found |= dict.fromkeys(member.assigned, member.group_instance_id or member.member_id)
        return found

    @cached_property
    def owned(self) -> frozenset[tuple[TopicPartition, str]]:
        """Pairs (assigned partition, owner's id); a share group's partition has several owners."""
        return frozenset((tp, one.member_id) for one in self.members for tp in one.assigned)

    @cached_property
    def idle(self) -> tuple[str, ...]:
        return tuple(member.member_id for member in self.members if not member.assigned)

    @cached_property
    def partition_counts(self) -> dict[str, int]:
        """Topic -> the smallest number of partitions that fits the assignments and claims."""
        counts: dict[str, int] = {}
        for topic, partition in chain(self.owners, *(one.claims for one in self.members)):
            if partition >= counts.setdefault(topic, 0):
                counts[topic] = partition + 1
        return counts

    @cached_property
    def topics(self) -> frozenset[str]:
        return frozenset().union(*(member.topics for member in self.members))

    @cached_property
    def given_topics(self) -> frozenset[str]:
        return frozenset({topic for topic, _ in self.owners})

    @cached_property
    def must_revoke(self) -> tuple[str, ...]:
        """Ids of cooperative members that claimed a partition and did not get it: they rejoin."""
        if self.protocol is None or "cooperative" not in self.protocol:
            return ()
        return tuple(m.member_id for m in self.members if m.claims - m.assigned)

    @cached_property
    def rejoin_ms(self) -> dict[str, int]:
        """Returns, for each thread of a classic Kafka Streams group, when it must join again.

        Times are in ms of the leader's clock. 0 means at once: the thread's process waits for a
        task that another thread must first revoke. Any other time is the time of a probing
        rebalance. Threads without a time are not listed.
        """
        if self.protocol != STREAM:
            return {}
        from kafka_rebalance.wire.streams_protocol import NO_REBALANCE, decode_assignment_info

        found = {}
        for member in self.members:
            with suppress(WireError):  # a client may send any bytes
                sent = member.assignment.user_data if member.assignment else b""
                found[member.member_id] = decode_assignment_info(sent or b"").next_rebalance_ms
        return {member_id: at for member_id, at in found.items() if at != NO_REBALANCE}

    @cached_property
    def leader_library(self) -> str | None:
        if self.group_type != "classic":
            return None  # the broker assigns: no leader's library is involved
        written = [member.assignment for member in self.members]
        versions = [m.subscription.version for m in self.members if m.subscription]
        return leader_library(written, versions)


class Members:
    """Keeps the members of a group's last record, so that unchanged ones are not decoded again."""

    def __init__(self) -> None:
        self.value: bytes | None = None
        self._members: tuple[RecordedMember, ...] = ()

    def read(self, value: bytes, type_: str, sent: list[Any] | None) -> tuple[RecordedMember, ...]:
        """Returns the members of the next record, which then becomes the last record.

        `sent` are the fields of its members; None if type and members did not change.
        """
        if sent is not None:
            known: dict[Any, RecordedMember] = {}
            if self.value is not None:
                before_type, *_, before = _core.decode_group(self.value)
                if before_type == type_:
                    known = dict(zip(before or (), self._members, strict=True))
            subscriptions = {one[6]: member.subscription for one, member in known.items()}
            members = []
            for one in sent:
                member = known.get(one) if known else None
                if member is None:
                    member = _member(one, subscriptions.get(one[6]), is_consumer=type_ == CONSUMER)
                    subscriptions[one[6]] = member.subscription
                members.append(member)
            self._members = tuple(members)
        self.value = value
        return self._members


def read_generation(
    key: Key, record: OffsetsRecord, members: Members | None = None
) -> RecordedGeneration:
    """Reads a group's record. `members` holds the members of the record before it, and afterwards
    those of this record.

    Errors: WireError; unreadable bytes of members are not an error.
    """
    if not isinstance(key, GroupMetadataKey) or record.value is None:
        raise WireError("value: not that of a classic group")
    members = Members() if members is None else members
    protocol_type, generation_id, protocol, leader, joined_ms, sent = _core.decode_group(
        record.value, members.value
    )
    return RecordedGeneration(
        key.group_id,
        record.partition,
        record.offset,
        record.timestamp_ms,
        joined_ms if joined_ms >= 0 else record.timestamp_ms,
        protocol_type,
        generation_id,
        protocol,
        leader,
        members.read(record.value, protocol_type, sent),
    )


def _member(fields: Any, subscription: Subscription | None, *, is_consumer: bool) -> RecordedMember:
    """Returns a member, without subscription and assignment if its bytes are unreadable."""
    name, instance_id, client_id, client_host, rebalance_ms, session_ms, sent, given = fields
    assignment: AssignmentData | None = None
    if is_consumer:
        try:
            subscription = subscription or decode_subscription(sent)
            assignment = decode_assignment(given) if given else None
        except WireError:
            subscription = assignment = None
    named = (name, instance_id, client_id, client_host)
    return RecordedMember(*named, session_ms, rebalance_ms, subscription, assignment)
