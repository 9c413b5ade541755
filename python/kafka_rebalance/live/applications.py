# SPDX-License-Identifier: Apache-2.0
"""Makes the field `application` of a classic Kafka Streams group (docs/streams-classic.md).

It holds the bytes that threads sent and were assigned, the partitions of their topics and of the
changelogs `<group>-…-changelog`, and the ends of the changelogs. It also holds the group's
committed offsets: the ends of source topics that are changelogs too.

Source   DescribeGroups, Metadata, ListOffsets and OffsetFetch messages; StreamsPartitionAssignor
         (kafka-streams 4.3.1), which reads these offsets in each rebalance.
"""

import time
from collections.abc import Iterable, Sequence
from typing import Any

from kafka_rebalance.applications.lines import written_assigned, written_thread
from kafka_rebalance.applications.topology import CHANGELOG
from kafka_rebalance.assignors.streams.application import StreamThread
from kafka_rebalance.errors import GroupError, WireError
from kafka_rebalance.wire.consumer_protocol import decode_assignment, decode_subscription
from kafka_rebalance.wire.streams_protocol import (
    AssignmentInfo,
    decode_assignment_info,
    decode_subscription_info,
    encode_assignment_info,
)

from .committed_offsets import read_ends
from .described_topics import DescribedTopics

_Line = dict[str, Any]
_NOTHING = encode_assignment_info(AssignmentInfo())


def changelog_topics(group_id: str, names: Iterable[str]) -> list[str]:
    return [one for one in names if one.startswith(f"{group_id}-") and one.endswith(CHANGELOG)]


def subscribed_topics(group: Any) -> list[str]:
    """Returns the source topics to which the threads of a described group subscribe."""
    sent = (decode_subscription(one.member_metadata) for one in group.members)
    return list(dict.fromkeys(topic for one in sent for topic in one.topics))


def application_field(
    admin: Any, group: Any, topics: DescribedTopics, changelogs: Sequence[str]
) -> _Line:
    """Returns the field. The ends are None if a broker does not report one of them: a leader then
    also uses its fallback assignor.
    """
    names = [one for one in subscribed_topics(group) if topics.partitions(one)]
    counts = {one: topics.partitions(one) for one in (*names, *changelogs)}
    asked = [(topic, p) for topic in changelogs for p in range(counts[topic])]
    ends = read_ends(admin, asked)
    found = admin.list_group_offsets({group.group_id: None}).get(group.group_id, {})
    committed = {(tp.topic, tp.partition): one.offset for tp, one in found.items()}
    return {
        "now_ms": time.time_ns() // 1_000_000,
        "brokers": {str(broker): rack for broker, rack in topics.racks.items()},
        "topics": {one: topics.replicas[one] for one in counts},
        "end_offsets": None
        if len(ends) < len(asked)
        else {one: [ends[one, p] for p in range(counts[one])] for one in changelogs},
        "committed_offsets": {
            one: [_offset(committed.get((one, p))) for p in range(counts[one])] for one in names
        },
        **sent_and_assigned(group),
    }


def sent_and_assigned(group: Any) -> _Line:
    """Returns subscriptions and assignments in the form of contract lines. Errors: GroupError."""
    members, assigned = [], {}
    for i, one in enumerate(group.members):
        sent = decode_subscription(one.member_metadata)
        data = sent.user_data or b""
        try:
            info = decode_subscription_info(data)
            # The coordinator stores no assignment for a member to which the leader sent nothing.
            read = decode_assignment(one.member_assignment) if one.member_assignment else None
            answer = read.user_data if read and read.user_data else _NOTHING
            assigned[one.member_id] = written_assigned(
                read.partitions if read else (), decode_assignment_info(answer), answer
            )
        except WireError as error:
            raise GroupError(f"members[{i}].user_data", str(error)) from error
        thread = StreamThread(one.member_id, sent.rack_id, sent.owned_partitions, info)
        members.append(written_thread(thread, data))
    return {"members": members, "assigned": assigned}


def _offset(offset: int | None) -> int | None:
    return None if offset is None or offset < 0 else offset
