# SPDX-License-Identifier: Apache-2.0
"""The description of a streams group (KIP-1071), as the tests change it."""

from __future__ import annotations

from typing import Any

from kafka_rebalance import TopicPartition
from kafka_rebalance.group.model import TaskOffset
from kafka_rebalance.live.streams_groups import StreamsSettings
from kafka_rebalance.wire.streams_group_descriptions import (
    StreamsGroupDescription,
    StreamsMemberDescription,
    SubtopologyDescription,
    TaskLists,
)
from kafka_rebalance.wire.streams_topology import InternalTopic

NOTHING = TaskLists((), (), ())


def tasks_of(*texts: str) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(text[0], int(text[2:])) for text in texts)


def streams_member(name: str, process: str, **more: Any) -> StreamsMemberDescription:
    fields: dict[str, Any] = {
        "member_id": name,
        "epoch": 7,
        "instance_id": None,
        "rack_id": None,
        "client_id": f"app-{name}",
        "client_host": "/10.0.0.1",
        "topology_epoch": 0,
        "process_id": process,
        "user_endpoint": None,
        "client_tags": (),
        "task_offsets": (),
        "task_end_offsets": (),
        "assigned": NOTHING,
        "target": NOTHING,
        "is_classic": False,
    }
    return StreamsMemberDescription(**fields | more)


FIRST = TaskLists(tasks_of("0_0", "0_1", "1_0"), tasks_of("0_2"), ())
SECOND = TaskLists(tasks_of("0_2", "1_1"), tasks_of("0_0", "0_1"), ())
COMPACT = (("cleanup.policy", "compact"),)
GROUP = StreamsGroupDescription(
    error_code=0,
    group_id="app",
    state="Stable",
    epoch=7,
    assignment_epoch=7,
    topology_epoch=0,
    subtopologies=(
        SubtopologyDescription(
            subtopology_id="0",
            source_topics=("orders",),
            repartition_sink_topics=("app-by-repartition",),
            changelog_topics=(InternalTopic("app-count-changelog", 0, 3, COMPACT),),
            repartition_source_topics=(),
        ),
        SubtopologyDescription(
            subtopology_id="1",
            source_topics=(),
            repartition_sink_topics=(),
            changelog_topics=(),
            repartition_source_topics=(InternalTopic("app-by-repartition", 2, 1),),
        ),
    ),
    members=(
        streams_member(
            "m0",
            "p0",
            rack_id="a",
            instance_id="pod-0",
            user_endpoint="host:65535",
            client_tags=(("zone", "z"),),
            task_offsets=(TaskOffset(TopicPartition("0", 2), 5),),
            task_end_offsets=(TaskOffset(TopicPartition("0", 2), 9),),
            assigned=FIRST,
            target=FIRST,
        ),
        streams_member("m1", "p1", assigned=SECOND, target=SECOND),
    ),
)
COUNTS = {"orders": 3, "app-by-repartition": 2}
ONE = StreamsSettings(1, "streams/sticky")
