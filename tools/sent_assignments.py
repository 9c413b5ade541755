# SPDX-License-Identifier: Apache-2.0
"""The user data that the leader of a classic Kafka Streams group sends to each thread.

Errors   GroupError if an end point has no port.
Differs  Java writes standby tasks, topics and hosts in hash order; ours are sorted.
"""

from collections.abc import Iterable, Mapping, Sequence

from kafka_rebalance.assignors.streams.application import (
    Application,
    LeaderAnswer,
    Partition,
    ThreadAssignment,
    Topology,
)
from kafka_rebalance.errors import GroupError
from kafka_rebalance.java.order import by_name
from kafka_rebalance.wire import streams_protocol as wire

_NUMBERED_SINCE = 5
"""The first version that names topics by their number."""


def sent_assignments(
    application: Application, answer: LeaderAnswer
) -> dict[str, wire.AssignmentInfo]:
    """Returns the user data of each thread, by member id."""
    topology = Topology(application)
    hosts = answer.partitions_by_host, answer.standby_partitions_by_host
    topics = by_name({topic for host in hosts for tps in host.values() for topic, _ in tps})
    numbers = {topic: number for number, topic in enumerate(topics)}
    of_version = {
        version: tuple(_hosts(host, numbers, version) for host in hosts)
        for version in {one.version for one in answer.members.values()}
    }
    return {
        member_id: _sent(one, topology, topics, of_version[one.version])
        for member_id, one in answer.members.items()
    }


def _sent(
    one: ThreadAssignment,
    topology: Topology,
    topics: list[str],
    hosts: Sequence[tuple[wire.HostPartitions, ...]],
) -> wire.AssignmentInfo:
    active, standby = hosts
    return wire.AssignmentInfo(
        one.version,
        one.commonly_supported_version,
        tuple(wire.AssignedTask(*task) for task in one.active_tasks),
        tuple(
            wire.StandbyTask(wire.AssignedTask(*task), _named(sorted(topology.inputs[task])))
            for task in one.standby_tasks
        ),
        tuple(wire.NumberedTopic(number, topic) for number, topic in enumerate(topics)),
        active,
        standby,
        one.error_code,
        wire.NO_REBALANCE if one.next_rebalance_ms is None else one.next_rebalance_ms,
    )


def _hosts(
    hosts: Mapping[str, tuple[Partition, ...]], numbers: dict[str, int], version: int
) -> tuple[wire.HostPartitions, ...]:
    found = []
    for end_point, partitions in hosts.items():
        host, _, port = end_point.rpartition(":")
        if not (port.isascii() and port.isdecimal()):
            raise GroupError("userEndPoint", f"{end_point!r} is not HOST:PORT, so Kafka throws")
        if version < _NUMBERED_SINCE:
            found.append(wire.HostPartitions(host, int(port), named=_named(partitions)))
        else:
            numbered = tuple(wire.NumberedPartition(numbers[topic], p) for topic, p in partitions)
            found.append(wire.HostPartitions(host, int(port), numbered=numbered))
    return tuple(found)


def _named(partitions: Iterable[Partition]) -> tuple[wire.NamedPartition, ...]:
    return tuple(wire.NamedPartition(*tp) for tp in partitions)
