# SPDX-License-Identifier: Apache-2.0
"""The leader of a classic Kafka Streams group answers as Kafka's own class, in both engines."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.applications.lines import read_application
from kafka_rebalance.assignors.streams import engines
from kafka_rebalance.assignors.streams.min_cost_flow import Graph
from kafka_rebalance.java.priority_queue import PriorityQueue
from kafka_rebalance.wire.streams_protocol import decode_assignment_info
from tools.differential_streams import compare, differs
from tools.judge import Block
from tools.streams_vectors import answer_of

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine
    from tests.support.oracle import Oracle

VECTORS = Path(__file__).parent / "vectors" / "stream.jsonl.gz"


def _vectors() -> list[dict[str, Any]]:
    with gzip.open(VECTORS, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _comparable(answer: dict[str, Any]) -> Any:
    """Returns an answer without the orders that are hash orders, and bytes as they are read."""
    plain = json.loads(json.dumps(answer))
    for member in plain["members"].values():
        info = decode_assignment_info(base64.b64decode(member.pop("user_data")))
        member["read"] = [str(task.task_id) for task in info.active_tasks]
    for process in (plain["processes"] or {}).values():
        process["active"].sort()
        process["standby"].sort()
    for hosts in ("partitions_by_host", "standby_partitions_by_host"):
        plain[hosts] = {host: sorted(tps) for host, tps in plain[hosts].items()}
    return plain


def test_vectors(engine: Engine) -> None:
    vectors = _vectors()
    assert len({vector["case"]["name"] for vector in vectors}) == len(vectors) == 200
    for vector in vectors:
        ours = answer_of(read_application(vector["case"]), reference=engine == "reference")
        name = vector["case"]["name"]
        assert _comparable(ours) == _comparable(vector["expected"]), name


def test_the_vectors_have_every_kind() -> None:
    kinds = {vector["case"]["name"].split("-")[2] for vector in _vectors()}
    assert kinds == {"fallback", "ha", "kip924", "legacy_sticky", "odd"}


def test_racks_of_kip924(engine: Engine) -> None:
    """Members of a future version have two racks in one process; a broker has no rack."""
    with (VECTORS.parent / "stream-racks.jsonl").open(encoding="utf-8") as lines:
        vectors = [json.loads(line) for line in lines]
    assert len(vectors) == 2
    for vector in vectors:
        ours = answer_of(read_application(vector["case"]), reference=engine == "reference")
        assert differs(vector["expected"], ours) is None, vector["case"]["name"]


@pytest.mark.oracle
def test_kafkas_class_answers_so(streams_oracle: Oracle) -> None:
    """Chains of generated applications; `python -m tools differential-streams` compares more."""
    outcome = compare(Block(seed=1, cases=240), streams_oracle)
    assert [one["difference"] for one in outcome.differences] == []
    assert outcome.cases == 240


def test_a_process_without_known_partitions_ends_the_leader(engine: Engine) -> None:
    """An owned partition of a topic that is no source: Kafka's class throws."""
    case = next(v["case"] for v in _vectors() if v["case"]["name"].endswith("-ha-fresh"))
    case["members"][0]["owned_partitions"] = [["of another application", 0]]
    with pytest.raises(kr.AssignorThrows, match="IllegalStateException"):
        engines.assign(read_application(case), reference=engine == "reference")


def test_a_queue_made_from_a_collection_has_javas_order() -> None:
    """`new PriorityQueue<>(List.of(9, 4, 7, 1, 8, 2))` and `remove(4)` on OpenJDK 17."""
    queue = PriorityQueue[int].of((number, number) for number in (9, 4, 7, 1, 8, 2))
    assert list(queue) == [1, 4, 2, 9, 8, 7]
    queue.remove(4)
    assert list(queue) == [1, 7, 2, 9, 8]
    queue.remove(8)
    assert list(queue) == [1, 7, 2, 9]
    assert [queue.poll() for _ in range(5)] == [1, 2, 7, 9, None]


def test_a_flow_becomes_one_of_minimum_cost() -> None:
    """Two tasks (0, 1) on two processes (2, 3): the other way round is cheaper."""
    graph = Graph()
    for task, process in ((0, 2), (1, 3)):
        graph.add(-1, task, 1, 0, 1)
        for end in (2, 3):
            graph.add(task, end, 1, 5 if end == process else 1, int(end == process))
        graph.add(process, 4, 1, 0, 1)
    graph.solve()
    assert [graph.edges[edge].flow for edge in ((0, 2), (0, 3), (1, 2), (1, 3))] == [0, 1, 1, 0]
