# SPDX-License-Identifier: Apache-2.0
"""Measures one assignment: `pytest benches/test_assign.py`. Compare figures of one run only.

A member joins; the group then has 200 members and 2,000 partitions. It is given as Python objects.
"""

from typing import Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.assignors.registry import Engine

NAMES = ["range", "roundrobin", "sticky", "cooperative-sticky"]


def _group(assignor: str) -> kr.GroupSpec:
    topics = tuple(kr.Topic(f"topic-{t}", 20) for t in range(100))
    names = tuple(topic.name for topic in topics)
    members = [kr.Member(f"member-{m}", names) for m in range(200)]
    before = kr.assign(kr.GroupSpec("bench", topics, tuple(members[1:])), assignor)
    owning = [
        kr.Member(
            member.member_id,
            names,
            owned_partitions=tuple(before.get(member.member_id, ())),
            generation_id=1 if member.member_id in before else None,
        )
        for member in members
    ]
    return kr.GroupSpec("bench", topics, tuple(owning), assignor)


@pytest.mark.parametrize("engine", ["rust", "reference"])
@pytest.mark.parametrize("assignor", NAMES)
def test_one_member_joins(benchmark: Any, assignor: str, engine: Engine) -> None:
    benchmark.group = assignor
    result = benchmark(kr.assign, _group(assignor), engine=engine)
    assert len(result) == 200
