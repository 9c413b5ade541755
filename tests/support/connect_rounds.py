# SPDX-License-Identifier: Apache-2.0
"""Reads every rebalance of a live Connect group from the broker's records.

After each SyncGroup of a leader, the group coordinator writes a record to `__consumer_offsets`. It
contains the generation, the leader, and each worker's report (its subscription) and assignment, in
Connect's own encoding. So no round is missed, even if rounds follow each other quickly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kafka_rebalance.wire.connect_protocol import (
    NO_ERROR,
    ConnectAssignment,
    decode_connect_assignment,
    decode_connect_metadata,
)
from kafka_rebalance.wire.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    decode_key,
    decode_value,
)

OFFSETS_TOPIC = "__consumer_offsets"

Pairs = list[list[Any]]
Work = tuple[list[str], Pairs]


@dataclass(frozen=True)
class Told:
    """One worker in one round. Lists are in the order of the bytes.

    `running_…` is the work that the worker reported. `report` and `answer` are the bytes of the
    worker's report and of the leader's assignment.
    """

    member_id: str
    client_id: str
    running_connectors: list[str]
    running_tasks: Pairs
    assigned_connectors: list[str]
    assigned_tasks: Pairs
    revoked_connectors: list[str]
    revoked_tasks: Pairs
    delay_ms: int
    report: bytes
    answer: bytes


@dataclass(frozen=True)
class LiveRound:
    """One rebalance. `members` are in the group's order.

    `time_ms` is the broker's time of the JoinGroup responses.
    """

    generation_id: int
    time_ms: int
    leader: str
    members: list[Told]

    @property
    def delay_ms(self) -> int:
        return max(told.delay_ms for told in self.members)


def group_of(key: bytes) -> str | None:
    """Returns the group id if the key is that of a group's metadata, else None."""
    found = decode_key(key)
    return found.group_id if isinstance(found, GroupMetadataKey) else None


def live_round(value: bytes) -> LiveRound | None:
    """Returns the rebalance in a group's record; None if no member has an assignment."""
    group = decode_value(GroupMetadataKey(""), value)
    assert isinstance(group, GroupMetadataValue)
    told = [_told(member) for member in group.members if member.assignment]
    if not told:
        return None
    time_ms = group.current_state_timestamp_ms
    return LiveRound(group.generation_id, time_ms, group.leader or "", told)


def _told(member: MemberMetadata) -> Told:
    running = decode_connect_metadata(member.subscription).assignment or ConnectAssignment()
    answer = decode_connect_assignment(member.assignment)
    assert answer.error == NO_ERROR, f"assignment: error {answer.error}"
    return Told(
        member.member_id,
        member.client_id,
        *_work(running.connectors, running.tasks),
        *_work(answer.connectors, answer.tasks),
        *_work(answer.revoked_connectors, answer.revoked_tasks),
        answer.delay_ms,
        member.subscription,
        member.assignment,
    )


def _work(connectors: tuple[str, ...], tasks: tuple[tuple[str, int], ...]) -> Work:
    return list(connectors), [list(task) for task in tasks]
