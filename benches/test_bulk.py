# SPDX-License-Identifier: Apache-2.0
"""Measures groups a second in bulk, with one thread and with two: `pytest -s benches/test_bulk.py`.

A batch has 2,000 groups as Arrow columns. Each group has 20 members that own 100 partitions under
cooperative-sticky. The plan adds two members. Compare figures of one run only.
"""

from typing import Any

import pyarrow as pa
import pytest

import kafka_rebalance as kr
from kafka_rebalance.bulk import assign_batch, plan_batch

GROUPS = 2000


def _batch() -> pa.RecordBatch:
    topics = (kr.Topic("topic-a", 60), kr.Topic("topic-b", 40))
    names = ("topic-a", "topic-b")
    members = [kr.Member(f"consumer-{m}-0b5c2d1e", names) for m in range(20)]
    group = kr.GroupSpec("bench", topics, tuple(members), "cooperative-sticky")
    owned = kr.plan(group).final.to_dict()
    rows = [{**owned, "group_id": f"bench-{n}"} for n in range(GROUPS)]
    return pa.RecordBatch.from_pylist(rows)


def _plan(batch: pa.RecordBatch, threads: int) -> pa.RecordBatch:
    return plan_batch(batch, None, ["add-members=2"], threads=threads)


def _assign(batch: pa.RecordBatch, threads: int) -> pa.RecordBatch:
    return assign_batch(batch, threads=threads)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("work", [_assign, _plan])
def test_groups_a_second(benchmark: Any, work: Any, threads: int) -> None:
    batch = _batch()
    answers = benchmark(work, batch, threads)
    assert answers.num_rows == GROUPS
    assert answers["error"].null_count == GROUPS
    benchmark.extra_info["groups_a_second"] = round(GROUPS / benchmark.stats["median"])
    a_second = f"{benchmark.extra_info['groups_a_second']:,} groups a second"
    print(f"\n{work.__name__}, {threads} threads: {a_second}")
