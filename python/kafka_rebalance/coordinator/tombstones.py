# SPDX-License-Identifier: Apache-2.0
"""Builds the records that remove a group of any kind, without those of its offsets."""

from .consumer_group import log
from .consumer_group.group import ConsumerGroup
from .consumer_group.records import group_tombstones
from .coordinator_state import AnyGroup
from .interface import LogRecord
from .records import group_tombstone
from .share_group import records as share_records
from .share_group.group import ShareGroup


def tombstones_of(group: AnyGroup) -> list[LogRecord]:
    if isinstance(group, ConsumerGroup):
        return [log.encode_any(one) for one in group_tombstones(group)]
    if isinstance(group, ShareGroup):
        return [log.encode_any(one) for one in share_records.group_tombstones(group)]
    return [group_tombstone(group.group_id)]
