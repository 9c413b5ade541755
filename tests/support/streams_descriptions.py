# SPDX-License-Identifier: Apache-2.0
"""Makes the description of a streams group (KIP-1071), with the changes of a test."""

from __future__ import annotations

from typing import Any

from kafka_rebalance.live.broker_groups import StreamsSettings
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.streams_groups import (
    DescribedStreamsGroup,
    DescribedStreamsMember,
    DescribedSubtopology,
    DescribedTaskOffset,
    DescribedTasks,
    DescribedTopology,
    InternalTopic,
    KeyValue,
    SubtopologyTasks,
    UserEndpoint,
)

NOTHING = DescribedTasks((), (), ())


def tasks_of(*texts: str) -> tuple[SubtopologyTasks, ...]:
    """Returns tasks such as "0_1" by their subtopology."""
    numbers: dict[str, list[int]] = {}
    for text in texts:
        numbers.setdefault(text[0], []).append(int(text[2:]))
    return tuple(SubtopologyTasks(name, tuple(own)) for name, own in numbers.items())


def streams_member(name: str, process: str, **more: Any) -> DescribedStreamsMember:
    fields: dict[str, Any] = {
        "member_id": name,
        "member_epoch": 7,
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
        "assignment": NOTHING,
        "target_assignment": NOTHING,
        "is_classic": False,
    }
    return DescribedStreamsMember(**fields | more)


FIRST = DescribedTasks(tasks_of("0_0", "0_1", "1_0"), tasks_of("0_2"), ())
SECOND = DescribedTasks(tasks_of("0_2", "1_1"), tasks_of("0_0", "0_1"), ())
COMPACT = (KeyValue("cleanup.policy", "compact"),)
GROUP = DescribedStreamsGroup(
    error_code=ErrorCode.NONE,
    group_id="app",
    group_state="Stable",
    group_epoch=7,
    assignment_epoch=7,
    topology=DescribedTopology(
        epoch=0,
        subtopologies=(
            DescribedSubtopology(
                subtopology_id="0",
                source_topics=("orders",),
                repartition_sink_topics=("app-by-repartition",),
                state_changelog_topics=(InternalTopic("app-count-changelog", 0, 3, COMPACT),),
                repartition_source_topics=(),
            ),
            DescribedSubtopology(
                subtopology_id="1",
                source_topics=(),
                repartition_sink_topics=(),
                state_changelog_topics=(),
                repartition_source_topics=(InternalTopic("app-by-repartition", 2, 1),),
            ),
        ),
    ),
    members=(
        streams_member(
            "m0",
            "p0",
            rack_id="a",
            instance_id="pod-0",
            user_endpoint=UserEndpoint("host", 65535),
            client_tags=(KeyValue("zone", "z"),),
            task_offsets=(DescribedTaskOffset("0", 2, 5),),
            task_end_offsets=(DescribedTaskOffset("0", 2, 9),),
            assignment=FIRST,
            target_assignment=FIRST,
        ),
        streams_member("m1", "p1", assignment=SECOND, target_assignment=SECOND),
    ),
)
COUNTS = {"orders": 3, "app-by-repartition": 2}
ONE = StreamsSettings(1, "streams/sticky")
