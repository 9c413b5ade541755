# SPDX-License-Identifier: Apache-2.0
"""Compares plans with rounds that Java's classes play with the claims of real clients.

    python -m tools.differential_plans --plans 500 --seed 1

A case is a group with a history and with clients of several libraries, and one to three changes.
Both engines plan the changes, `plan_batch` (which `plan_groups` calls) computes the figures, and
Java's classes compute the assignment of each round of the plan.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import kafka_rebalance as kr
from kafka_rebalance.assignors.registry import KAFKAS, OURS
from kafka_rebalance.bulk import plan_batch
from tests.support import java_clients
from tests.support.generate import generate
from tests.support.generate_changes import changes as draw_changes
from tests.support.generate_changes import with_protocol
from tests.support.java_clients import Bounced, alone, bounced
from tests.support.oracle import Oracle
from tools import judge
from tools.judge import Block, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK = 100

PLANS = tuple[kr.GroupSpec, list[str], kr.RebalancePlan]


def drawn(plans: int, seed: int) -> Iterator[PLANS]:
    """Yields cases with plans, without those that no engine or no class of Java can answer."""
    rng, protocols = random.Random(f"plans/{seed}"), random.Random(f"protocols/{seed}")
    made = 0
    for case in generate(seed, 100 * plans, KAFKAS, _answer):
        drawn_group = kr.GroupSpec.from_dict(with_protocol(protocols, case))
        group = java_clients.with_clients(drawn_group, rng)
        texts = draw_changes(rng, group)
        if any("librdkafka/" in one or one.partition("=")[2] in OURS for one in texts):
            continue
        try:
            plan = kr.plan(group, None, texts)
        except kr.GroupError as error:
            _refused_too(group, texts, str(error))
            continue
        yield group, texts, plan
        made += 1
        if made == plans:
            return


def _refused_too(group: kr.GroupSpec, texts: list[str], problem: str) -> None:
    try:
        kr.plan(group, None, texts, engine="reference")
        found = "a plan"
    except kr.GroupError as error:
        found = str(error)
    if found != problem:
        raise AssertionError(f"{group.to_json()} {texts}: rust {problem}, reference {found}")


def _answer(case: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"assignment": kr.assign(kr.GroupSpec.from_dict(case)).to_dict()}
    except kr.GroupError as error:
        return {"error": str(error)}


def compare(block: Block) -> Outcome:
    """Generates one block of plans, and compares them with rounds played by Java's classes."""
    plans = list(drawn(block.cases, block.seed))
    outcome = Outcome(len(plans), Counter(rounds=sum(len(plan.rounds) for _, _, plan in plans)))
    with Oracle() as oracle:
        outcome.differences += differences(oracle, plans)
    return outcome


def differences(oracle: Oracle, plans: list[PLANS]) -> Iterator[dict[str, Any]]:
    """Yields up to three differences of each plan: of the engines, a step, and figures in bulk."""
    for group, texts, plan in plans:
        where: dict[str, Any] = {"name": group.group_id, "changes": texts, "case": group.to_dict()}
        if kr.plan(group, None, texts, engine="reference").to_dict() != plan.to_dict():
            yield where | {"difference": f"{texts}: the engines differ"}
        for one in _with_lists(group, texts, plan):
            what = java_clients.difference_in_bounce(oracle, one)
            if what is not None:
                yield where | {"difference": f"{texts}: {one.step.cause}: {what}"}
                break
    for (group, texts, plan), row in zip(plans, _in_bulk(plans), strict=True):
        figures = {name: row[name] for name in tuple(kr.Figures.__annotations__)}
        if row["error"] is not None or figures != plan.figures().to_dict():
            problem = f"{texts}: the figures in bulk differ: {row}"
            yield {"name": group.group_id, "difference": problem, "case": group.to_dict()}


def _with_lists(group: kr.GroupSpec, texts: list[str], plan: kr.RebalancePlan) -> Iterator[Bounced]:
    """Yields the steps with the members' lists; plans of fewer changes show whose step it is."""
    first, state = 0, group
    for number, text in enumerate(texts, 1):
        end = len(kr.plan(group, None, texts[:number]).steps)
        steps = plan.steps[first:end]
        verb, _, new = text.partition("=")
        if verb == "switch-assignor":
            yield from bounced(state, new, steps)
        else:
            for step in steps:
                assignor = step.before.assignor or ""
                yield Bounced(step, alone(step.before), assignor)
        first, state = end, plan.steps[end - 1].after


def _in_bulk(plans: list[PLANS]) -> list[dict[str, Any]]:
    import pyarrow as pa

    # Arrow takes the columns of the first row.
    columns = {"rebalance_protocol": None}
    rows = [columns | group.to_dict() | {"changes": texts} for group, texts, _ in plans]
    table: list[dict[str, Any]] = plan_batch(pa.RecordBatch.from_pylist(rows)).to_pylist()
    return table


def main() -> int:
    """Parses the command line, plays, prints a report; returns the exit code."""
    chosen = judge.options(__doc__, "plans", 500, "plan-differences.jsonl").parse_args()
    return judge.run(
        compare,
        chosen,
        block=BLOCK,
        equal="Java = reference = rust = in bulk",
        details=lambda met: f"{met['rounds']} rounds",
    )


if __name__ == "__main__":
    sys.exit(main())
