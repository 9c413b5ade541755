# SPDX-License-Identifier: Apache-2.0
"""Healthy groups of every kind, as contract lines: each has the assignment of its own assignor."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import kafka_rebalance as kr
from tests.support.generate_server import topic_id

ASSIGNORS = (
    "range", "consumer/uniform", "share/simple", "streams/sticky", "cooperative-sticky",
    "consumer/range", "sticky",
)  # fmt: skip


def lines_of_kinds(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yields groups of 1 to 12 members; the assignors take turns."""
    rng = random.Random(seed)
    for number, assignor in zip(range(count), itertools.cycle(ASSIGNORS), strict=False):
        line = _line(rng, f"group-{number:06}", assignor)
        yield kr.plan(kr.GroupSpec.from_dict(line)).final.to_dict()


def _line(rng: random.Random, group_id: str, assignor: str) -> dict[str, Any]:
    names = [f"topic-{rng.randrange(10_000)}" for _ in range(rng.randint(1, 3))]
    topics = [
        {"name": name, "partitions": rng.randint(1, 24), "topic_id": topic_id(name, 1 << 20)}
        for name in dict.fromkeys(names)
    ]
    ids = [f"member-{number}-{rng.randrange(16**8):08x}" for number in range(rng.randint(1, 12))]
    line: dict[str, Any] = {"group_id": group_id, "assignor": assignor, "generation_id": 5}
    members: list[dict[str, Any]] = [
        {"member_id": one, "client_id": one[:8], "generation_id": 5} for one in ids
    ]
    if not assignor.startswith("streams/"):
        subscribed = [topic["name"] for topic in topics]
        members = [one | {"topics": subscribed} for one in members]
        return line | {"topics": topics, "members": members}
    parts = [
        {"subtopology_id": str(i), "tasks": rng.randint(1, 12), "stateful": rng.random() < 0.5}
        for i in range(rng.randint(1, 3))
    ]
    threads = [
        one | {"topics": [], "process_id": f"process-{number // 2}"}
        for number, one in enumerate(members)
    ]
    more = {"subtopologies": parts, "num_standby_replicas": rng.randint(0, 1)}
    return line | {"topics": [], "members": threads} | more
