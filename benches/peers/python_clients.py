# SPDX-License-Identifier: Apache-2.0
"""Measures the assignors of the Python clients: reads contract lines, writes times.

Called as `python_clients.py CLIENT SECONDS`. CLIENT is kafka-python or aiokafka, or one of these
with `+ours`, which runs our assignors with that client's types.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any


class Cluster:
    """The methods of ClusterMetadata that the assignors of both clients call."""

    def __init__(self, counts: dict[str, int]) -> None:
        self._partitions = {topic: set(range(count)) for topic, count in counts.items()}

    def topics(self) -> set[str]:
        return set(self._partitions)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return self._partitions.get(topic)


def kafka_python(group: dict[str, Any], *, ours: bool = False) -> Callable[[], Any]:
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyAssignorUserData
    from kafka.protocol.consumer.group import JoinGroupResponse
    from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

    name = group["assignor"]
    members = []
    for member in group["members"]:
        owned = member.get("owned_partitions") or []
        history = [(entry["topic"], entry["partitions"]) for entry in owned]
        if name == "cooperative-sticky":
            entry = ConsumerProtocolSubscription.TopicPartition
            sent = ConsumerProtocolSubscription(
                version=1,
                topics=member["topics"],
                user_data=b"",
                owned_partitions=[entry(topic=t, partitions=ps) for t, ps in history],
            )
        else:
            data = StickyAssignorUserData(history, 1).encode() if history else b""
            sent = ConsumerProtocolSubscription(0, member["topics"], data)
        members.append(
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=member["member_id"], group_instance_id=None, metadata=sent
            )
        )
    cluster = Cluster({topic["name"]: topic["partitions"] for topic in group["topics"]})
    chosen = (_plug_ins_of_kafka_python() if ours else _classes_of_kafka_python())[name]
    return lambda: chosen().assign(cluster, members)


def _classes_of_kafka_python() -> dict[str, Any]:
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    return {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }


def _plug_ins_of_kafka_python() -> dict[str, Any]:
    from kafka_rebalance.clients import kafka_python as plug_ins

    return {
        "range": plug_ins.Range,
        "roundrobin": plug_ins.RoundRobin,
        "sticky": plug_ins.Sticky,
        "cooperative-sticky": plug_ins.CooperativeSticky,
    }


def aiokafka(group: dict[str, Any], *, ours: bool = False) -> Callable[[], Any]:
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import (
        StickyAssignorUserDataV1,
        StickyPartitionAssignor,
    )
    from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata

    classes = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
    }
    if ours:
        from kafka_rebalance.clients import aiokafka as plug_ins

        classes = {
            "range": plug_ins.Range,
            "roundrobin": plug_ins.RoundRobin,
            "sticky": plug_ins.Sticky,
        }
    members = {}
    for member in group["members"]:
        owned = member.get("owned_partitions") or []
        history = [(entry["topic"], entry["partitions"]) for entry in owned]
        data = StickyAssignorUserDataV1(history, 1).encode() if history else b""
        members[member["member_id"]] = ConsumerProtocolMemberMetadata(0, member["topics"], data)
    cluster = Cluster({topic["name"]: topic["partitions"] for topic in group["topics"]})
    chosen = classes[group["assignor"]]
    return lambda: chosen.assign(cluster, members)


CLIENTS: dict[str, Callable[[dict[str, Any]], Callable[[], Any]]] = {
    "kafka-python": kafka_python,
    "kafka-python+ours": partial(kafka_python, ours=True),
    "aiokafka": aiokafka,
    "aiokafka+ours": partial(aiokafka, ours=True),
}


def times(ask: Callable[[], Any], seconds: float) -> list[float]:
    ms: list[float] = []
    start = time.perf_counter()
    # One call is enough if it takes longer than `seconds`; else at least three calls are made.
    while time.perf_counter() - start < seconds or (len(ms) < 3 and ms[0] < 1000 * seconds):
        once = time.perf_counter()
        ask()
        ms.append((time.perf_counter() - once) * 1000)
    return ms


def main() -> None:
    prepare, seconds = CLIENTS[sys.argv[1]], float(sys.argv[2])
    for line in sys.stdin:
        try:
            answer: dict[str, Any] = {"ms": times(prepare(json.loads(line)), seconds)}
        except Exception as error:  # any error of the client is its answer
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
