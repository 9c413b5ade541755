# SPDX-License-Identifier: Apache-2.0
"""Builds the records that remove a group of any kind, without those of its offsets."""

from collections.abc import Sequence

from kafka_rebalance.wire.broker_records import BrokerRecord, encode_record

from ..classic_group.group import Group
from ..classic_group.records import group_tombstone
from ..consumer_group.group import ConsumerGroup
from ..consumer_group.records import group_tombstones
from ..share_group.group import ShareGroup
from ..share_group.records import group_tombstones as share_tombstones
from ..streams_group.group import StreamsGroup
from ..streams_group.records import group_tombstones as streams_tombstones
from .events import LogRecord
from .state import AnyGroup


def tombstones_of(group: AnyGroup) -> list[LogRecord]:
    if isinstance(group, Group):
        return [group_tombstone(group.group_id)]
    return [LogRecord(*encode_record(one)) for one in _records(group)]


def _records(group: ConsumerGroup | ShareGroup | StreamsGroup) -> Sequence[BrokerRecord]:
    if isinstance(group, ConsumerGroup):
        return group_tombstones(group)
    if isinstance(group, ShareGroup):
        return share_tombstones(group)
    return streams_tombstones(group)
