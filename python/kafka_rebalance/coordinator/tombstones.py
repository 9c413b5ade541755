# SPDX-License-Identifier: Apache-2.0
"""Builds the records that remove a group of either kind, without those of its offsets."""

from kafka_rebalance.wire.consumer_group_records import encode_record

from .consumer_group.group import ConsumerGroup
from .consumer_group.records import group_tombstones
from .coordinator_state import AnyGroup
from .interface import LogRecord
from .records import group_tombstone


def tombstones_of(group: AnyGroup) -> list[LogRecord]:
    if isinstance(group, ConsumerGroup):
        return [LogRecord(*encode_record(one)) for one in group_tombstones(group)]
    return [group_tombstone(group.group_id)]
