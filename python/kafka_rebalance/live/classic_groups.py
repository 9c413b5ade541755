# SPDX-License-Identifier: Apache-2.0
"""Makes a contract line of a classic group that a broker has described.

The description contains the bytes of the members' subscriptions and of the leader's assignments.
`kafka_rebalance.wire` decodes them, not the client library.

The field `application` of a classic Kafka Streams group (docs/streams-classic.md) holds the bytes
that threads sent and were assigned, the partitions of their topics and of the changelogs
`<group>-…-changelog`, and the ends of the changelogs. It also holds the group's committed offsets,
which count as the ends of source topics that are changelogs, too.

Source   Kafka's DescribeGroups, Metadata, ListOffsets, OffsetFetch and ConsumerProtocol messages;
         ConsumerCoordinator.metadata and onJoinPrepare, AbstractCoordinator.Generation
         .NO_GENERATION (Kafka 4.4.0). StreamsPartitionAssignor (kafka-streams 4.3.1), which reads
         an application's offsets in each rebalance.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, TypeVar

from kafka_rebalance.applications.lines import written_assigned, written_thread
from kafka_rebalance.applications.topology import CHANGELOG
from kafka_rebalance.assignors.registry import LISTED
from kafka_rebalance.assignors.streams.application import StreamThread
from kafka_rebalance.errors import GroupError, WireError
from kafka_rebalance.group.model import (
    NEWEST_SUBSCRIPTION,
    Member,
    RebalanceProtocolName,
    TopicPartition,
)
from kafka_rebalance.notes.listed import is_cooperative, may_mix
from kafka_rebalance.wire import consumer_protocol as wire
from kafka_rebalance.wire import streams_protocol as streams
from kafka_rebalance.wire.sent_members import leader_library, sent_member

from .committed_offsets import read_ends
from .described_topics import DescribedTopics

_Line = dict[str, Any]
_T = TypeVar("_T")


def described_line(group: Any) -> _Line:
    """Returns a line without topics; its generation is 1 + the newest that members sent, if any."""
    assignor = group.protocol_data
    sent = sent_members(group)
    # The coordinator stores no assignment for a member to which the leader sent nothing.
    given = [
        _read(wire.decode_assignment, one.member_assignment, f"members[{i}].assignment")
        if one.member_assignment
        else None
        for i, one in enumerate(group.members)
    ]
    generations = [g for one in sent for g in (one.generation_id, one.user_data_generation_id)]
    known = [generation for generation in generations if generation is not None]
    generation_id = 1 + max(known) if known else None
    assigned = sum(len(one.partitions) for one in given if one is not None)
    protocol = subscribed_protocol(group.group_id, assignor, sent, assigned)
    assignor, _ = LISTED.get(assignor, (assignor, ""))
    return {
        "group_id": group.group_id,
        "generation_id": generation_id,
        "assignor": assignor,
        "leader_library": leader_library(given, [one.subscription_version for one in sent]),
        **({} if protocol is None else {"rebalance_protocol": protocol}),
        "topics": [],
        "members": [
            _member(one, assignment.partitions if assignment else (), generation_id)
            for one, assignment in zip(sent, given, strict=True)
        ],
    }


def sent_members(group: Any) -> tuple[Member, ...]:
    """Returns a described group's members, read from the subscriptions in their last JoinGroup."""
    _, protocol = LISTED.get(group.protocol_data, ("", ""))
    is_eager = protocol == "eager"  # only our plug-in for aiokafka, which sends sticky's user data
    assignor = "sticky" if is_eager else group.protocol_data
    sent = tuple(
        sent_member(
            one.member_id,
            _read(wire.decode_subscription, one.member_metadata, f"members[{i}].subscription"),
            assignor,
            group_instance_id=one.group_instance_id,
            client_id=one.client_id,
            client_host=one.client_host,
        )
        for i, one in enumerate(group.members)
    )
    return tuple(replace(one, client_library="aiokafka") for one in sent) if is_eager else sent


def _member(sent: Member, held: Iterable[TopicPartition], generation_id: int | None) -> _Line:
    """Returns a member of a contract line; `held` are the member's partitions."""
    member = {
        "member_id": sent.member_id,
        "group_instance_id": sent.group_instance_id,
        "client_id": sent.client_id,
        "client_host": sent.client_host,
        "topics": list(sent.topics),
        "owned_partitions": [
            {"topic": topic, "partitions": numbers}
            for topic, numbers in wire.by_topic(held).items()
        ],
        "generation_id": generation_id,
        "rack_id": sent.rack_id,
        "client_library": sent.client_library,
    }
    # Without these two fields, the subscription counts as one of Kafka's newest Java client.
    if sent.version < NEWEST_SUBSCRIPTION or sent.user_data is not None:
        member["subscription_version"] = sent.version
        member["user_data"] = sent.user_data
    return member


def _read(decode: Callable[[bytes], _T], data: bytes, at: str) -> _T:
    try:
        return decode(data)
    except WireError as error:
        raise GroupError(at, str(error)) from error


def subscribed_protocol(
    group_id: str, assignor: str, sent: Sequence[Member], assigned: int
) -> RebalanceProtocolName | None:
    """Returns the rebalance protocol that the members' last subscriptions show; None if unclear.

    An eager member revokes all partitions before it joins, so it claims none; a cooperative member
    claims those that it keeps. But a member without partitions claims none either. `sent` are the
    members as they joined, `assigned` is the number of partitions that they were then assigned. A
    member *rejoined* if it sent a generation, and neither this one nor one in its user data is
    negative: it had an assignment before. There is one exception: if the next rebalance begins
    before a member's SyncGroup is answered, the member sends the generation of the interrupted
    rebalance, in which it was assigned nothing.

    1. None under an eager assignor, and if no member's client allows lists that mix eager and
       cooperative assignors.
    2. "cooperative" if each member whose client allows mixed lists claims partitions. If only some
       claim, the other members are eager (in a switch, between its two bounces), idle, or new: a
       new Java member with Kafka's default list, range and cooperative-sticky, is eager. The answer
       is then None.
    3. "eager" if a member rejoined, no member claims partitions, every client allows mixed lists,
       and the members that rejoined had partitions to claim. They had partitions to claim if a
       dynamic member is new, so that a join caused the rebalance, and if there are more partitions
       than members, so that nobody is idle. Otherwise cooperative members may have been idle until
       then, because the owners left, or because a topic was created late.

    Rule 3 is wrong in these rebalances, which have a new member too:

    - a topic was created, or all earlier owners left;
    - the members that rejoined changed their subscriptions, and had revoked all partitions of the
      topics that they left;
    - the new member is the first of a switch's second bounce: it lists only cooperative assignors,
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
    generations = (sent.generation_id, sent.user_data_generation_id)
    return sent.generation_id is not None and all(n is None or n >= 0 for n in generations)


# Applications of Kafka Streams --------------------------------------------------------------------

_NOTHING = streams.encode_assignment_info(streams.AssignmentInfo())


def changelog_topics(group_id: str, names: Iterable[str]) -> list[str]:
    return [one for one in names if one.startswith(f"{group_id}-") and one.endswith(CHANGELOG)]


def subscribed_topics(group: Any) -> list[str]:
    """Returns the source topics to which the threads of a described group subscribe."""
    sent = (wire.decode_subscription(one.member_metadata) for one in group.members)
    return list(dict.fromkeys(topic for one in sent for topic in one.topics))


def application_field(
    admin: Any, group: Any, topics: DescribedTopics, changelogs: Sequence[str]
) -> _Line:
    """Returns the field `application`. Its ends are None if a broker does not report one of them:
    then a leader, too, uses its fallback assignor.
    """
    names = [one for one in subscribed_topics(group) if topics.partitions(one)]
    counts = {one: topics.partitions(one) for one in (*names, *changelogs)}
    asked = {one: [TopicPartition(one, p) for p in range(counts[one])] for one in changelogs}
    ends = read_ends(admin, chain.from_iterable(asked.values()))
    is_known = len(ends) == sum(map(len, asked.values()))
    found = admin.list_group_offsets({group.group_id: None}).get(group.group_id, {})
    committed = {
        (tp.topic, tp.partition): one.offset for tp, one in found.items() if one.offset >= 0
    }
    return {
        "now_ms": time.time_ns() // 1_000_000,
        "brokers": {str(broker): rack for broker, rack in topics.racks.items()},
        "topics": {one: topics.replicas[one] for one in counts},
        "end_offsets": {one: [ends[tp] for tp in tps] for one, tps in asked.items()}
        if is_known
        else None,
        "committed_offsets": {
            one: [committed.get((one, p)) for p in range(counts[one])] for one in names
        },
        **sent_and_assigned(group),
    }


def sent_and_assigned(group: Any) -> _Line:
    """Returns subscriptions and assignments in the form of contract lines. Errors: GroupError."""
    members, assigned = [], {}
    for i, one in enumerate(group.members):
        sent = wire.decode_subscription(one.member_metadata)
        data = sent.user_data or b""
        try:
            info = streams.decode_subscription_info(data)
            # The coordinator holds no bytes for a member to which the leader sent nothing.
            read = wire.decode_assignment(one.member_assignment) if one.member_assignment else None
            answer = read.user_data if read and read.user_data else _NOTHING
            assigned[one.member_id] = written_assigned(
                read.partitions if read else (), streams.decode_assignment_info(answer), answer
            )
        except WireError as error:
            raise GroupError(f"members[{i}].user_data", str(error)) from error
        thread = StreamThread(one.member_id, sent.rack_id, sent.owned_partitions, info)
        members.append(written_thread(thread, data))
    return {"members": members, "assigned": assigned}
