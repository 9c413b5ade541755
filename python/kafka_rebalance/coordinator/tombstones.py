# SPDX-License-Identifier: Apache-2.0
"""Builds the records that remove a group of any kind, without those of its offsets."""

from kafka_rebalance.wire.consumer_group_records import encode_record
from kafka_rebalance.wire.streams_group_records import encode_streams_record

from .consumer_group.group import ConsumerGroup
from .consumer_group.records import group_tombstones
from .coordinator_state import AnyGroup
from .interface import LogRecord
from .records import group_tombstone
from .streams_group.group import StreamsGroup
from .streams_group.records import group_tombstones as streams_tombstones


def tombstones_of(group: AnyGroup) -> list[LogRecord]:
    if isinstance(group, ConsumerGroup):
        return [LogRecord(*encode_record(one)) for one in group_tombstones(group)]
    if isinstance(group, StreamsGroup):
        return [LogRecord(*encode_streams_record(one)) for one in streams_tombstones(group)]
    return [group_tombstone(group.group_id)]
