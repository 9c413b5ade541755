# SPDX-License-Identifier: Apache-2.0
"""Follows a live group by its records in `__consumer_offsets`, and yields each state.

1. The group's partition of the topic is read from its beginning. The newest record of the group is
   the first state.
2. Each later record is a state: one is written when a rebalance completes. A record without members
   is left out, as is one that repeats the state before it.
3. A record has the generation and the leader, which descriptions lack, and what each member sent
   before the assignment. Its partition counts are those that the cluster has when it is read.

Reading changes nothing. A cooperative group has one state after each round.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from kafka_rebalance.errors import GroupError, WireError
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.wire import group_records

from .classic_groups import described_line, sent_members
from .consumer_groups import with_topics
from .offsets_log import TOPIC, NoLogError, followed_records
from .watched_group import EVERY_S

_EMPTY = "state: Empty, it has no members"


def logged_states(
    bootstrap_server: str,
    group_id: str,
    *,
    configs: Mapping[str, Any] | None = None,
    every_s: float = EVERY_S,
    for_s: float | None = None,
    on_waiting: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[GroupSpec, GroupSpec]]:
    """Yields the group after each of its rebalances, and the group as its leader saw it.

    Ends after `for_s` seconds. `on_waiting` is called if the newest record has no members, and at
    each later record without members.

    Errors: NoLogError if this user may not read the topic, or if it has no record of a classic
    consumer group of this name; ClusterError; GroupError for a record that is no valid group.
    """
    ends_s = None if for_s is None else time.monotonic() + for_s
    key = group_records.GroupMetadataKey(group_id)
    yielded: dict[str, Any] | None = None
    is_first = True
    for values in _values(followed_records(bootstrap_server, group_id, configs=configs), key):
        groups = [_consumers(key, value) for value in values]
        # 1.
        if is_first and not any(groups):
            raise NoLogError(f"{TOPIC} has no record of a classic consumer group {group_id}")
        if is_first and not any(group and group.members for group in groups):
            on_waiting(_EMPTY)
        is_first = False
        # 2.
        for group in groups:
            if yielded is not None and not (group and group.members):
                on_waiting(_EMPTY)
            line = _line(group_id, group) if group and group.members else yielded
            if line is not None and line != yielded:
                yielded = line
                after = GroupSpec.from_dict(with_topics(bootstrap_server, line, configs=configs))
                assert group is not None
                yield after, after.edited(members=sent_members(_described(group_id, group)))
        if ends_s is not None and time.monotonic() > ends_s:
            return
        time.sleep(every_s)


def _values(
    followed: Iterable[group_records.OffsetsRecord | None], key: group_records.GroupMetadataKey
) -> Iterator[list[bytes | None]]:
    """Yields the newest value of the key, then, each time the end is reached, all new values."""
    encoded = group_records.encode_key(key)
    values: list[bytes | None] = []
    has_begun = False
    for record in followed:
        if record is None:
            yield values
            has_begun, values = True, []
        elif record.key == encoded:
            values = [*(values if has_begun else ()), record.value]


def _consumers(
    key: group_records.GroupMetadataKey, value: bytes | None
) -> group_records.GroupMetadataValue | None:
    """Returns the group in a record; None for a deleted group, and for one without consumers."""
    try:
        group = group_records.decode_value(key, value)
    except WireError as error:
        raise GroupError("record", f"{key.group_id}: {error}") from error
    assert not isinstance(group, group_records.OffsetCommitValue)
    return group if group and group.protocol_type in ("consumer", "") else None  # "": new, empty


# 3.
def _line(group_id: str, group: group_records.GroupMetadataValue) -> dict[str, Any]:
    """Returns the contract line, without topics, of a group that has members."""
    line = described_line(_described(group_id, group), group.generation_id)
    return {**line, "leader": group.leader}


def _described(group_id: str, group: group_records.GroupMetadataValue) -> Any:
    """Returns the group in the form of a DescribeGroups response."""
    return SimpleNamespace(
        group_id=group_id,
        protocol_data=group.protocol,
        members=[
            SimpleNamespace(
                member_id=one.member_id,
                group_instance_id=one.group_instance_id,
                client_id=one.client_id,
                client_host=one.client_host,
                member_metadata=one.subscription,
                member_assignment=one.assignment,
            )
            for one in group.members
        ],
    )
