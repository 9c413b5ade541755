# SPDX-License-Identifier: Apache-2.0
"""Writes the description of a streams group by kio, a library made from Kafka's own schemas."""

from __future__ import annotations

import datetime
import io
from typing import TYPE_CHECKING, Any

from kio.schema.errors import ErrorCode
from kio.schema.streams_group_describe.v0 import response as v0
from kio.schema.types import GroupId, TopicName
from kio.serial import entity_writer
from kio.static.primitive import i16, i32, i32Timedelta, i64, u16

if TYPE_CHECKING:
    from kafka_rebalance.wire.streams_groups import (
        DescribedStreamsGroup,
        DescribedStreamsMember,
        DescribedSubtopology,
        DescribedTaskOffset,
        DescribedTasks,
        InternalTopic,
        KeyValue,
        TaskList,
    )


def response_of(group: DescribedStreamsGroup) -> bytes:
    """Returns the response that describes a group."""
    topology = None
    if group.topology is not None:
        parts = group.topology.subtopologies
        topology = v0.Topology(
            epoch=i32(group.topology.epoch),
            subtopologies=None if parts is None else tuple(map(_subtopology, parts)),
        )
    answer = v0.StreamsGroupDescribeResponse(
        throttle_time=i32Timedelta.parse(datetime.timedelta(0)),
        groups=(
            v0.DescribedGroup(
                error_code=ErrorCode(group.error_code),
                error_message=None,
                group_id=GroupId(group.group_id),
                group_state=group.group_state,
                group_epoch=i32(group.group_epoch),
                assignment_epoch=i32(group.assignment_epoch),
                topology=topology,
                members=tuple(map(_member, group.members)),
                authorized_operations=i32(-(2**31)),
            ),
        ),
    )
    out = io.BytesIO()
    entity_writer(v0.StreamsGroupDescribeResponse)(out, answer)
    return out.getvalue()


def _pairs(some: tuple[KeyValue, ...]) -> Any:
    return tuple(v0.KeyValue(key=key, value=value) for key, value in some)


def _topic(one: InternalTopic) -> Any:
    return v0.TopicInfo(
        name=TopicName(one.name),
        partitions=i32(one.partitions),
        replication_factor=i16(one.replication_factor),
        topic_configs=_pairs(one.configs),
    )


def _lists(tasks: DescribedTasks) -> Any:
    def ids(some: TaskList) -> Any:
        return tuple(
            v0.TaskIds(subtopology_id=one, partitions=tuple(map(i32, p))) for one, p in some
        )

    return v0.Assignment(
        active_tasks=ids(tasks.active),
        standby_tasks=ids(tasks.standby),
        warmup_tasks=ids(tasks.warmup),
    )


def _offsets(some: tuple[DescribedTaskOffset, ...]) -> Any:
    return tuple(
        v0.TaskOffset(subtopology_id=task, partition=i32(number), offset=i64(offset))
        for task, number, offset in some
    )


def _member(one: DescribedStreamsMember) -> Any:
    endpoint = None
    if one.user_endpoint is not None:
        endpoint = v0.Endpoint(host=one.user_endpoint.host, port=u16(one.user_endpoint.port))
    return v0.Member(
        member_id=one.member_id,
        member_epoch=i32(one.member_epoch),
        instance_id=one.instance_id,
        rack_id=one.rack_id,
        client_id=one.client_id,
        client_host=one.client_host,
        topology_epoch=i32(one.topology_epoch),
        process_id=one.process_id,
        user_endpoint=endpoint,
        client_tags=_pairs(one.client_tags),
        task_offsets=_offsets(one.task_offsets),
        task_end_offsets=_offsets(one.task_end_offsets),
        assignment=_lists(one.assignment),
        target_assignment=_lists(one.target_assignment),
        is_classic=one.is_classic,
    )


def _subtopology(one: DescribedSubtopology) -> Any:
    return v0.Subtopology(
        subtopology_id=one.subtopology_id,
        source_topics=tuple(map(TopicName, one.source_topics)),
        repartition_sink_topics=tuple(map(TopicName, one.repartition_sink_topics)),
        state_changelog_topics=tuple(map(_topic, one.state_changelog_topics)),
        repartition_source_topics=tuple(map(_topic, one.repartition_source_topics)),
    )
