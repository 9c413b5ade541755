# SPDX-License-Identifier: Apache-2.0
"""Answers cases of classic Kafka Streams groups, a JSON object a line.

    python -m tools.streams_vectors rust|reference < cases > answers

A line has the vectors' `case` (tests/vectors/README.md), alone or as {"case": …}; an answer has the
form of their `expected`.
"""

import argparse
import base64
import json
import sys
from typing import Any
from uuid import UUID

from kafka_rebalance.assignors.streams import engines, leader
from kafka_rebalance.assignors.streams.application import (
    Application,
    LeaderAnswer,
    ProcessTasks,
    Settings,
    StreamThread,
    ThreadAssignment,
    TopicsInfo,
)
from kafka_rebalance.assignors.streams.sent_assignments import sent_assignments
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.wire.streams_protocol import (
    NO_REBALANCE,
    AssignmentInfo,
    HostPartitions,
    decode_assignment_info,
    decode_subscription_info,
    encode_assignment_info,
)


def application(case: dict[str, Any]) -> Application:
    """Returns the input of a leader; what members sent comes from their bytes alone."""
    brokers = case["brokers"]
    configs = dict(case["configs"])
    configs["rack_aware_assignment_tags"] = tuple(configs["rack_aware_assignment_tags"])
    return Application(
        case["assignor"],
        case["now_ms"],
        _uuid(case["leader_process_id"]),
        _uuid(case["future_process_id"]),
        Settings(**configs),
        {
            topic: [[brokers[str(one)] for one in replicas] for replicas in partitions]
            for topic, partitions in case["topics"].items()
        },
        tuple(
            TopicsInfo(
                one["subtopology_id"],
                (*one["source_topics"], *one["repartition_source_topics"]),
                tuple(one["changelog_topics"]),
                tuple(one["source_changelog_topics"]),
                one["unlogged_stores"],
            )
            for one in case["subtopologies"]
        ),
        case["end_offsets"],
        case["committed_offsets"],
        tuple(case["new_changelog_topics"]),
        tuple(
            StreamThread(
                one["member_id"],
                one["rack_id"],
                tuple(TopicPartition(*tp) for tp in one["owned_partitions"]),
                decode_subscription_info(base64.b64decode(one["user_data"])),
            )
            for one in case["members"]
        ),
    )


def answer_of(given: Application, *, reference: bool) -> dict[str, Any]:
    """Returns an engine's answer in the form of the vectors, or its error."""
    try:
        return expected(given, engines.assign(given, reference=reference))
    except GroupError as error:
        return {"error": str(error)}


def expected(given: Application, answer: LeaderAnswer) -> dict[str, Any]:
    """Returns an answer in the form of the vectors: what threads read from the leader's bytes."""
    sent = {
        member_id: encode_assignment_info(info)
        for member_id, info in sent_assignments(given, answer).items()
    }
    infos = {member_id: decode_assignment_info(data) for member_id, data in sent.items()}
    host = next(iter(infos.values()), AssignmentInfo())
    processes = answer.processes
    return {
        "stable": answer.stable,
        "probing_rebalance_needed": answer.probing_rebalance_needed,
        "processes": None
        if processes is None
        else {
            _text(process_id): _process(one, with_lags=given.assignor != leader.STICKY)
            for process_id, one in processes.items()
        },
        "members": {
            member_id: _thread(one, infos[member_id], sent[member_id])
            for member_id, one in answer.members.items()
        },
        "partitions_by_host": _by_host(host.partitions_by_host, host),
        "standby_partitions_by_host": _by_host(host.standby_partitions_by_host, host),
    }


def _process(one: ProcessTasks, *, with_lags: bool) -> dict[str, Any]:
    lags = {"lags": {str(task): lag for task, lag in one.lags.items()}} if with_lags else {}
    return {
        "active": [str(task) for task in one.active],
        "standby": [str(task) for task in one.standby],
        **lags,
    }


def _thread(one: ThreadAssignment, read: AssignmentInfo, data: bytes) -> dict[str, Any]:
    return {
        "partitions": one.partitions,
        "active_tasks": [str(task.task_id) for task in read.active_tasks],
        "standby_tasks": {str(task.task_id): tps for task, tps in read.standby_tasks},
        "next_rebalance_ms": None
        if read.next_rebalance_ms == NO_REBALANCE
        else read.next_rebalance_ms,
        "error_code": read.error_code,
        "version": read.version,
        "commonly_supported_version": read.commonly_supported_version,
        "user_data": base64.b64encode(data).decode(),
    }


def _by_host(hosts: tuple[HostPartitions, ...], info: AssignmentInfo) -> dict[str, Any]:
    topics = {one.number: one.topic for one in info.topics}
    return {
        f"{one.host}:{one.port}": [
            *one.named,
            *((topics[tp.topic_number], tp.partition) for tp in one.numbered),
        ]
        for one in hosts
    }


def _uuid(text: str) -> Uuid:
    number = UUID(text).int
    halves = number >> 64, number & (1 << 64) - 1
    most, least = (half - (1 << 64) if half >> 63 else half for half in halves)
    return most, least


def _text(uuid: Uuid) -> str:
    most, least = (half & (1 << 64) - 1 for half in uuid)
    return str(UUID(int=most << 64 | least))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("engine", choices=("rust", "reference"))
    reference = parser.parse_args().engine == "reference"
    for line in sys.stdin:
        given = json.loads(line)
        read = application(given.get("case", given))
        print(json.dumps(answer_of(read, reference=reference)), flush=True)


if __name__ == "__main__":
    main()
