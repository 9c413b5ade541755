# SPDX-License-Identifier: Apache-2.0
"""Groups of one topic for plans of groups that a broker assigns, or will assign."""

from __future__ import annotations

from typing import Any

import kafka_rebalance as kr
from kafka_rebalance.notes.broker import broker_notes


def broker_line(assignor: str, owned: list[list[int]]) -> dict[str, Any]:
    """Returns a group of one topic `t`; `owned` lists the partitions of each member."""
    return {
        "group_id": "g",
        "generation_id": 5,
        "assignor": assignor,
        "topics": [{"name": "t", "partitions": 6, "topic_id": "AAAAAAAAAAEAAAAAAAAAAg"}],
        "members": [
            {
                "member_id": f"m{i}",
                "client_id": f"c-{i}",
                "topics": ["t"],
                "generation_id": 5,
                "owned_partitions": [{"topic": "t", "partitions": partitions}],
            }
            for i, partitions in enumerate(owned)
        ],
    }


def broker_group(assignor: str, owned: list[list[int]]) -> kr.GroupSpec:
    """Returns the group of `broker_line`."""
    return kr.GroupSpec.from_dict(broker_line(assignor, owned))


def note_kinds(plan: kr.RebalancePlan) -> list[str]:
    """Returns the kinds of a plan's notes on brokers."""
    return [note.kind for note in broker_notes(plan)]
