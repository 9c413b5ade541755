# SPDX-License-Identifier: Apache-2.0
"""Asks the plug-in of tools/balanced-assignor for the targets of groups.

    python -m tools.balanced_in_brokers < groups.jsonl > answers.jsonl

Groups are contract lines. They reach the plug-in as a broker passes a group to it: by the code of
Kafka's coordinator, in `tools/server-oracle`. A broker knows less than a line:

1. Topics have ids. Each gets one in the order of its name, as ids break ties there.
2. Each partition is in the target of one member at most: in that of its present owner, which is the
   member with the only claim of the newest generation. Older claims and generations are dropped.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from kafka_rebalance import GroupSpec
from kafka_rebalance.assignors.balance.classes import classify
from kafka_rebalance.group.model import id_text, in_runs
from kafka_rebalance.java.order import by_name
from tests.support.oracle import SERVER_JAR, Oracle


def in_broker(line: dict[str, Any]) -> dict[str, Any]:
    """Returns the group as a broker with the plug-in has it."""
    group = GroupSpec.from_dict(line)
    # 1.
    names = by_name(topic.name for topic in group.topics)
    ids = {name: id_text(n.to_bytes(8, "big") * 2) for n, name in enumerate(names, 1)}
    topics = [topic | {"topic_id": ids[topic["name"]]} for topic in line["topics"]]
    # 2.
    owner = classify(group).owner
    members = [
        {key: value for key, value in member.items() if key != "generation_id"}
        | {"owned_partitions": in_runs(sorted(tp for tp in owner if owner[tp] == m))}
        for m, member in enumerate(line["members"])
    ]
    return line | {"assignor": "consumer/balanced", "topics": topics, "members": members}


def is_single(line: dict[str, Any]) -> bool:
    """Returns whether no partition of the group has claims of several members."""
    claims = [(one, p) for m in GroupSpec.from_dict(line).members for one, p in m.owned_partitions]
    return len(claims) == len({*claims})


def main() -> int:
    lines = [json.loads(line) for line in sys.stdin]
    single = sum(map(is_single, lines))
    print(f"{len(lines)} groups, {single} without contested claims", file=sys.stderr)
    with Oracle(SERVER_JAR) as plug_in:
        for line, answer in zip(lines, plug_in.ask_many(map(in_broker, lines)), strict=True):
            print(json.dumps({"group_id": line["group_id"]} | answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
