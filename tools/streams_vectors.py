# SPDX-License-Identifier: Apache-2.0
"""Answers cases of classic Kafka Streams groups, a JSON object a line.

    python -m tools.streams_vectors rust|reference < cases > answers

A line has the vectors' `case` (tests/vectors/README.md), alone or as {"case": …}, or is a contract
line whose `application` has `subtopologies` and `configs`; an answer has the form of their
`expected`.
"""

import argparse
import json
import sys
from functools import lru_cache
from typing import Any

from kafka_rebalance.applications.lines import FIELD, read_application, uuid_text, written_assigned
from kafka_rebalance.assignors.streams import engines, leader
from kafka_rebalance.assignors.streams.application import (
    Application,
    LeaderAnswer,
    ProcessTasks,
)
from kafka_rebalance.errors import GroupError
from kafka_rebalance.wire.streams_protocol import (
    AssignmentInfo,
    HostPartitions,
    decode_assignment_info,
    encode_assignment_info,
)
from tools.sent_assignments import sent_assignments

_RECENT = 256


_encoded = lru_cache(_RECENT)(encode_assignment_info)
decoded = lru_cache(_RECENT)(decode_assignment_info)
"""Engines mostly answer equally, and each thread's bytes contain the tasks of all processes."""


def answer_of(given: Application, *, reference: bool) -> dict[str, Any]:
    """Returns an engine's answer in the form of the vectors, or its error."""
    try:
        return expected(given, engines.assign(given, reference=reference))
    except GroupError as error:
        return {"error": str(error)}


def expected(given: Application, answer: LeaderAnswer) -> dict[str, Any]:
    """Returns an answer in the form of the vectors: what threads read from the leader's bytes."""
    sent = {
        member_id: _encoded(info) for member_id, info in sent_assignments(given, answer).items()
    }
    infos = {member_id: decoded(data) for member_id, data in sent.items()}
    host = next(iter(infos.values()), AssignmentInfo())
    processes = answer.processes
    return {
        "stable": answer.stable,
        "probing_rebalance_needed": answer.probing_rebalance_needed,
        "processes": None
        if processes is None
        else {
            uuid_text(process_id): _process(one, with_lags=given.assignor != leader.STICKY)
            for process_id, one in processes.items()
        },
        "members": {
            member_id: written_assigned(one.partitions, infos[member_id], sent[member_id])
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


def _by_host(hosts: tuple[HostPartitions, ...], info: AssignmentInfo) -> dict[str, Any]:
    topics = {one.number: one.topic for one in info.topics}
    return {
        f"{one.host}:{one.port}": [
            *one.named,
            *((topics[tp.topic_number], tp.partition) for tp in one.numbered),
        ]
        for one in hosts
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("engine", choices=("rust", "reference"))
    reference = parser.parse_args().engine == "reference"
    for line in sys.stdin:
        given = json.loads(line)
        read = read_application(given.get("case", given.get(FIELD, given)))
        print(json.dumps(answer_of(read, reference=reference)), flush=True)


if __name__ == "__main__":
    main()
