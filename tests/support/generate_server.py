# SPDX-License-Identifier: Apache-2.0
"""Adds to a generated group the fields that the brokers' assignors read.

A topic's id depends only on its name, so it is equal in all rounds of a group. Many ids have one of
12 hashes, which share a slot of a small Java hash table. For share groups, equal hashes are made
rare: Java orders their partitions of equal hash in a tree by object identity, which nobody can
reproduce.
"""

from __future__ import annotations

import base64
import random
import struct
from typing import Any

Case = dict[str, Any]


def for_brokers(case: Case) -> Case:
    """Returns the case with topic ids, also of deleted topics.

    Some groups also get topics without partitions in their targets, as Kafka's own coordinator
    leaves them in share groups, and some share groups get lists of initialised partitions. A
    streams group has no topics. A case to which these fields were added before is returned
    unchanged.
    """
    held = (one for member in case["members"] for one in member.get("owned_partitions") or [])
    if any("topic_id" in one for one in (*case["topics"], *held)):
        return case
    rng = random.Random(case["group_id"])
    names = {topic["name"] for topic in case["topics"]}
    shares = case["assignor"].startswith("share/")
    hashes = 1 << 20 if shares else 12
    topics = [topic | {"topic_id": topic_id(topic["name"], hashes)} for topic in case["topics"]]
    if shares and rng.random() < 0.4:
        topics = [topic | _initialized(rng, topic["partitions"]) for topic in topics]
    emptied = rng.choice([0, 0.1, 0.6]) if shares or rng.random() < 0.2 else 0
    members = [
        member
        | {
            "owned_partitions": [
                owned
                if owned["topic"] in names
                else owned | {"topic_id": topic_id(owned["topic"], hashes)}
                for owned in _with_emptied(rng, member, [*names, "gone"], emptied)
            ]
        }
        for member in case["members"]
    ]
    return case | {"topics": topics, "members": members}


def _with_emptied(
    rng: random.Random, member: dict[str, Any], names: list[str], share: float
) -> list[dict[str, Any]]:
    """Returns the member's partitions; some of the other topics get an entry without any."""
    owned = list(member.get("owned_partitions") or [])
    held = {one["topic"] for one in owned}
    for name in sorted(names):
        if share and name not in held and rng.random() < share:
            owned.insert(rng.randint(0, len(owned)), {"topic": name, "partitions": []})
    return owned


def topic_id(name: str, hashes: int = 12) -> str:
    """Returns an id; 40% of all ids have a hash of 64 * n, with n below `hashes`."""
    rng = random.Random(name)
    most, least = rng.getrandbits(64), rng.getrandbits(64)
    if rng.random() < 0.4:
        least = most ^ 64 * rng.randrange(hashes)  # `Uuid.hashCode` mixes the halves with XOR
    return base64.urlsafe_b64encode(struct.pack(">QQ", most, least)).decode().rstrip("=")


def _initialized(rng: random.Random, partitions: int) -> dict[str, list[int]]:
    if rng.random() < 0.5:
        return {}
    share = rng.choice([0, 0.3, 0.7, 0.9])
    return {"initialized": [p for p in range(partitions) if rng.random() < share]}
