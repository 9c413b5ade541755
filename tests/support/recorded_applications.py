# SPDX-License-Identifier: Apache-2.0
"""Contract lines of recorded classic Kafka Streams applications, by number, from 1."""

from __future__ import annotations

import base64
import gzip
import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kafka_rebalance.applications.topology import CHANGELOG
from kafka_rebalance.live.classic_groups import described_line, sent_and_assigned

_FILE = Path(__file__).parent.parent / "data" / "streams_classic_live.jsonl.gz"
GIVEN = {"acceptable.recovery.lag": 5, "probing.rebalance.interval.ms": 60_000}
"""The settings of the recorded application that are not the defaults."""


@cache
def _recordings() -> list[dict[str, Any]]:
    with gzip.open(_FILE, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def stable_numbers() -> list[int]:
    """Returns the numbers of the recordings in which the group was Stable."""
    return [n for n, one in enumerate(_recordings(), 1) if one["group"]["state"] == "Stable"]


def recorded_line(number: int) -> dict[str, Any]:
    """Returns the line that `snapshot` would have written at this moment."""
    one = _recordings()[number - 1]
    members = [
        SimpleNamespace(
            **member
            | {
                name: base64.b64decode(member[name])
                for name in ("member_metadata", "member_assignment")
            }
        )
        for member in one["group"]["members"]
    ]
    group = SimpleNamespace(group_id="shop", protocol_data="stream", members=members)
    line = described_line(group)
    read = {name for member in line["members"] for name in member["topics"]}
    logs = [name for name in one["topics"] if name.startswith("shop-") and name.endswith(CHANGELOG)]
    counts = {name: n for name, n in one["topics"].items() if name in read or name in logs}
    line["topics"] = [{"name": name, "partitions": n} for name, n in counts.items() if name in read]
    line["application"] = {
        "now_ms": one["at_ms"],
        "brokers": {"0": None},
        "topics": {name: [[0]] * n for name, n in counts.items()},
        "end_offsets": {name: one["end_offsets"][name] for name in logs},
        "committed_offsets": {
            name: [one["committed"].get(name, {}).get(str(p)) for p in range(counts[name])]
            for name in read
        },
        **sent_and_assigned(group),
    }
    return line
