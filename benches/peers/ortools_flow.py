# SPDX-License-Identifier: Apache-2.0
"""Measures OR-Tools' minimum-cost flow on the network of `balanced`, for benches/balance.py.

Reads a contract line, in whose group everybody can have an even share of the partitions. Builds the
network (partition kinds by topic, rack set and owner; hubs by subscription and rack; members), and
writes the times of its solution, which are all that is timed, and the racks and moves found.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from typing import Any

import numpy as np
from ortools.graph.python import min_cost_flow


def answer(group: dict[str, Any]) -> dict[str, Any]:
    members = group["members"]
    every = Counter[tuple[str, tuple[str, ...]]]()
    read = {name for one in members for name in one["topics"]}
    for topic in [one for one in group["topics"] if one["name"] in read]:
        racks = topic.get("racks") or [[]] * topic["partitions"]
        every.update((topic["name"], tuple(sorted(set(of)))) for of in racks)
    replicas = {topic["name"]: topic.get("racks") for topic in group["topics"]}
    node: dict[Any, int] = {}
    arcs: list[tuple[int, int, int, int]] = []

    def at(*name: Any) -> int:
        return node.setdefault(name, len(node))

    total = sum(every.values())
    first = 1 + total  # the price of a read in another rack; a move costs 1
    least, extra = divmod(total, len(members))

    def out(racks: tuple[str, ...], rack: str | None) -> int:
        return first if rack and rack not in racks else 0

    hubs: dict[tuple[tuple[str, ...], str | None], int] = {}
    for one in members:
        rack, name = one.get("rack_id"), one["member_id"]
        listed = tuple(sorted(one["topics"]))
        hub = hubs.setdefault((listed, rack), at("hub", listed, rack))
        owned = Counter[tuple[str, tuple[str, ...]]]()
        for of in one.get("owned_partitions", ()):
            for p in of["partitions"]:
                found = replicas[of["topic"]]
                owned[of["topic"], tuple(sorted(set(found[p]))) if found else ()] += 1
        for kind, count in owned.items():
            arcs.append((at("kind", kind), at("member", name), count, out(kind[1], rack)))
        arcs.append((hub, at("member", name), least + 1, 0))
        arcs.append((at("member", name), at("sink"), least, 0))
        arcs.append((at("member", name), at("extra"), 1, 0))
    arcs.append((at("extra"), at("sink"), extra, 0))
    of_topic: dict[str, list[tuple[str, ...]]] = {}
    for topic, racks in every:
        of_topic.setdefault(topic, []).append(racks)
    for (listed, rack), hub in hubs.items():
        for topic in listed:
            for racks in of_topic[topic]:
                price = 1 + out(racks, rack)
                arcs.append((at("kind", (topic, racks)), hub, every[topic, racks], price))
    columns = [np.array(column, dtype=np.int64) for column in zip(*arcs, strict=True)]
    times = []
    for _ in range(3):
        flow = min_cost_flow.SimpleMinCostFlow()
        flow.add_arcs_with_capacity_and_unit_cost(*columns)
        for kind, count in every.items():
            flow.set_node_supply(at("kind", kind), count)
        flow.set_node_supply(at("sink"), -total)
        once = time.perf_counter()
        status = flow.solve()
        times.append((time.perf_counter() - once) * 1000)
        if status != flow.OPTIMAL:
            return {"error": f"not everybody can have an even share: {status}"}
    outs, moves = divmod(flow.optimal_cost(), first)
    racked = any(one.get("rack_id") for one in members)
    return {
        "ms": times,
        "in_rack": total - outs if racked else 0,
        "moves": moves,
        "arcs": len(arcs),
    }


for line in sys.stdin.buffer:
    print(json.dumps(answer(json.loads(line))), flush=True)
