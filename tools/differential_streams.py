# SPDX-License-Identifier: Apache-2.0
"""Compares the leader of classic Kafka Streams groups with Kafka's own class, in both engines.

    python -m tools differential-streams --cases 20000 --seed 1

Applications come in chains: the class's answer feeds the next case. Threads' partitions, tasks,
deadlines and error codes, versions and host maps are compared, as they are read from the bytes.
"""

from __future__ import annotations

import base64
import random
import sys
from contextlib import suppress
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from kafka_rebalance.applications.lines import read_application
from tests.support.generate_applications import chain
from tests.support.oracle import STREAMS_JAR, Oracle, missing_java_of_the_judges
from tools.judge import Block, Outcome, difference, options, ours, run
from tools.streams_vectors import answer_of, decoded

if TYPE_CHECKING:
    from collections import Counter

CHAIN = 8
"""The number of cases of a chain."""


@cache
def _oracle() -> Oracle:
    return Oracle(STREAMS_JAR)


def question(block: Block) -> Outcome:
    """Answers the cases of a block with Kafka's class and with both engines."""
    return compare(block, _oracle())


def compare(block: Block, oracle: Oracle) -> Outcome:
    """Returns the outcome of a block of cases."""
    rng, outcome = random.Random(block.seed), Outcome()
    while outcome.cases < block.cases:
        cases = chain(rng, f"{block.seed}-{outcome.cases}", CHAIN)
        case = next(cases)
        with suppress(StopIteration):  # at the end of the chain
            while True:
                case = cases.send(_compared(case, oracle, outcome))
    return outcome


def _compared(case: dict[str, Any], oracle: Oracle, outcome: Outcome) -> dict[str, Any]:
    """Compares the answers to one case; returns that of Kafka's class."""
    given = read_application(case)
    answers = {
        "oracle": oracle.ask(case),
        "reference": ours(lambda: answer_of(given, reference=True)),
        "rust": ours(lambda: answer_of(given, reference=False)),
    }
    found = difference(answers, differs)
    if found is not None:
        line = {"name": case["name"], "difference": found, "case": case, "answers": answers}
        outcome.differences.append(line)
    outcome.cases += 1
    outcome.met[case["assignor"]] += 1
    outcome.met["refused"] += "error" in answers["oracle"]
    return answers["oracle"]


def differs(kafkas: dict[str, Any], ours: dict[str, Any]) -> str | None:
    """Returns the first member whose answer differs."""
    if kafkas["members"].keys() != ours["members"].keys():
        return "answers other members"
    for member_id, expected in kafkas["members"].items():
        got = ours["members"][member_id]
        if [tuple(tp) for tp in expected["partitions"]] != [tuple(tp) for tp in got["partitions"]]:
            return f"assigns {member_id} {got['partitions']}, Kafka {expected['partitions']}"
        theirs, own = (_read(one["user_data"]) for one in (expected, got))
        if theirs != own:
            return f"sends {member_id} {own}, Kafka {theirs}"
    return None


@lru_cache(256)
def _read(data: str) -> tuple[Any, ...]:
    """Returns what a thread reads, without orders that are hash orders."""
    info = decoded(base64.b64decode(data))
    topics = {one.number: one.topic for one in info.topics}
    hosts = [
        {
            (one.host, one.port): {
                *one.named,
                *((topics[tp.topic_number], tp.partition) for tp in one.numbered),
            }
            for one in host_map
        }
        for host_map in (info.partitions_by_host, info.standby_partitions_by_host)
    ]
    standby = {task: {*partitions} for task, partitions in info.standby_tasks}
    fixed = (info.version, info.commonly_supported_version, info.active_tasks)
    return *fixed, info.error_code, info.next_rebalance_ms, standby, *hosts


def _details(met: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(met.items()))


def main() -> int:
    chosen = options(__doc__, "cases", 2_000, "differences-streams.jsonl").parse_args()
    if (missing := missing_java_of_the_judges()) is not None:
        print(f"not run: {missing}", file=sys.stderr)
        return 2
    return run(
        question,
        chosen,
        block=CHAIN * 10,
        equal="all equal Kafka's in both engines",
        details=_details,
    )


if __name__ == "__main__":
    sys.exit(main())
