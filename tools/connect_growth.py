# SPDX-License-Identifier: Apache-2.0
"""Prints the cost of a Connect rebalance by the number of tasks: a table of docs/simulator.md.

`python -m tools.connect_growth` plays the shipped scenario connect-90-connectors with eager and
with incremental workers, and computes means over the rebalances while connectors are created.
"""

from __future__ import annotations

from statistics import mean

from kafka_rebalance.simulator import Kind, Run, simulate
from kafka_rebalance.simulator.measure import chapters, unavailability
from kafka_rebalance.simulator.scenario_files import load

STEP = 200


def costs(run: Run) -> dict[int, float]:
    """Returns number of running tasks (rounded to STEP) -> mean idle task-seconds a rebalance."""
    first = {hold.partition: hold.from_ms for hold in reversed(run.holds)}
    (deleted_ms,) = (one.at_ms for one in run.happenings if one.kind is Kind.DELETE)
    idle = unavailability(run)
    found: dict[int, list[float]] = {}
    for one in chapters(run):
        if one.rebalance is not None and 60_000 < one.from_ms < deleted_ms:
            running = sum(since < one.from_ms for since in first.values())
            key = round(running / STEP) * STEP
            found.setdefault(key, []).append(idle(one.from_ms, one.to_ms) / 1000)
    return {key: mean(each) for key, each in sorted(found.items())}


if __name__ == "__main__":
    scenario = load("connect-90-connectors")
    tables = {
        name: costs(simulate(scenario.with_protocol(eager=name == "eager")))
        for name in ("eager", "incremental")
    }
    columns = sorted(set(tables["eager"]) & set(tables["incremental"]))[:5]
    print("| tasks running, about |", " | ".join(map(str, columns)), "|")
    print("| --- |" + " --- |" * len(columns))
    for name, table in tables.items():
        print(f"| {name}: task-s idle |", " | ".join(f"{table[at]:,.0f}" for at in columns), "|")
