# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.balance_broker_live [--changes N] [--seed N] [--plays N]`: a plug-in in brokers.

Starts three brokers in three racks, with the jar of tools/balanced-assignor, whose assignor is
their default. Java and librdkafka consumers with racks form groups; half of the groups name
`balanced`, half name no assignor. Plans each change, makes it, and compares every target and group
epoch with the plan. Counts the partitions in the racks of their readers, beside `uniform`.

The exit code is 0 if all changes went as planned, else 1.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import kafka_rebalance as kr
from kafka_rebalance.assignors.balance.figures import balance_figures
from kafka_rebalance.group.ownership import Assignment
from tests.modern_live.__main__ import PROPERTIES
from tests.modern_live.changes import play_changes
from tests.modern_live.members import Members
from tests.support.broker import BALANCED, Broker

if TYPE_CHECKING:
    from tests.modern_live.judge import Outcome

CLASS = "kafkarebalance.balanced.BalancedAssignor"
WITH_BALANCED = PROPERTIES | {"group.consumer.assignors": f"{CLASS},uniform,range"}
RACKS = ("a", "b", "c")
_GROUPS = 1000
"""More than the groups of one play."""


def run(changes: int, seed: int, plays: int = 1, *, timed: bool = True) -> Counter[str]:
    """Returns how many changes were right, their problems, group epochs, and partitions in racks.

    So many `plays`, each with groups and clients of its own, run at the same time. Without `timed`,
    no change depends on the times of heartbeats.
    """
    with (
        Broker(brokers=3, properties=WITH_BALANCED, first=[BALANCED]) as broker,
        ThreadPoolExecutor(plays) as threads,
    ):
        each = partial(_play, broker.bootstrap_server, seed, timed)
        shares = [changes // plays + (n < changes % plays) for n in range(plays)]
        return sum(threads.map(each, range(plays), shares), Counter[str]())


def _play(server: str, seed: int, timed: bool, number: int, changes: int) -> Counter[str]:
    counts: Counter[str] = Counter()
    with (
        tempfile.TemporaryDirectory() as directory,
        Members(server, Path(directory)) as members,
    ):
        for outcome in play_changes(
            members,
            Random(f"{seed}/{number}"),
            changes,
            assignors=("balanced", None),
            racks=RACKS,
            first=_GROUPS * number,
            timed=timed,
        ):
            verdict = outcome.problem or "right"
            counts += Counter({verdict: 1}) + _racks(outcome)
            print(f"{outcome.what}: {verdict}", flush=True)
    return counts


def _racks(outcome: Outcome) -> Counter[str]:
    """Counts the group epochs of a change, and at its end the partitions in racks.

    `uniform` does not look at racks: the other count is that of its answer without present owners.
    """
    counts: Counter[str] = Counter()
    if not outcome.observed:  # two members joined at once
        return counts
    before = outcome.observed["before"]
    group = kr.GroupSpec.from_dict(outcome.observed["seen"][-1])
    counts["group epochs"] = (group.generation_id or 0) - before["generation_id"]
    nobody = group.owning(Assignment.of({member.member_id: () for member in group.members}))
    for name, answer in (
        ("as read", Assignment.owned(group)),
        ("by uniform", kr.assign(nobody, "consumer/uniform")),
        ("at most, and even", kr.assign(nobody, "consumer/balanced")),
    ):
        counts[f"in rack, {name}"] = balance_figures(group, answer)["in_rack"]
        counts["partitions"] = len(answer.partitions)
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.balance_broker_live")
    parser.add_argument("--changes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plays", type=int, default=3, help="at the same time (%(default)s)")
    arguments = parser.parse_args()
    counts = run(arguments.changes, arguments.seed, arguments.plays)
    for what, count in sorted(counts.items()):
        print(f"{what}: {count}")
    return int(counts["right"] < arguments.changes)


if __name__ == "__main__":
    sys.exit(main())
