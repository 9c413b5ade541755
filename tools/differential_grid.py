# SPDX-License-Identifier: Apache-2.0
"""Compares Rust with Kafka's own classes on large cases of the benchmark's grid.

    python -m tools.differential_grid --cases 200 --seed 1

The cases have up to 2,000 members and 20,000 partitions, because Java needs minutes for each larger
case. In most cases, subscriptions differ. Exit codes: 0 equal, 1 different, 2 not run.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path

import kafka_rebalance as kr
from benches.grid import ASSIGNORS, Case
from tests.support.oracle import Oracle, OracleError

ROOT = Path(__file__).resolve().parent.parent


def draw(rng: random.Random) -> Case:
    """Draws a cell of the grid; the joins on which Java is slowest are left out."""
    assignor = rng.choice([*ASSIGNORS, "sticky", "cooperative-sticky"])
    members = rng.choice([100, 200, 500, 500, 1000, 1000, 2000])
    per_member = rng.choice([5, 5, 10])
    subscriptions = rng.choice(["same", "buckets", "buckets", "three", "tenth"])
    kind = rng.choice(["full", "joins"])
    if "sticky" in assignor and subscriptions != "same" and members > 1000:
        members, kind = 2000, "full"
    topics = rng.choice([10, 100, 1000])
    if members * per_member < topics:
        topics = 100
    racks = rng.choice(["none", "none", "racks", "two racks"])
    return Case(assignor, members, per_member, topics, subscriptions, kind, racks)


def differs(oracle: Oracle, case: Case) -> str | None:
    """Returns the difference between Rust's answer and Java's as a string, or None."""
    group = case.group()
    expected = oracle.ask(json.loads(group.to_json()))
    try:
        got = kr.assign(group).to_dict()
    except kr.GroupError as error:
        return None if "error" in expected else f"no answer: {error}"
    if "error" in expected:
        return f"an answer where Kafka throws {expected['error']}"
    for member_id, owned in expected["assignment"].items():
        if got[member_id] != owned:
            return f"{member_id} has other partitions, or in another order"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    different = 0
    try:
        with Oracle() as oracle:
            for number in range(1, options.cases + 1):
                case = draw(rng)
                print(f"{number} of {options.cases}: {case}", file=sys.stderr, flush=True)
                if (what := differs(oracle, case)) is not None:
                    different += 1
                    print(f"{case}: {what}")
    except OracleError as error:
        print(f"differential_grid: {error}", file=sys.stderr)
        return 2
    verdict = "oracle = rust, " if not different else ""
    print(f"{options.cases} grid cases: {verdict}{different} differences (seed {options.seed})")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
