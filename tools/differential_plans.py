# SPDX-License-Identifier: Apache-2.0
"""Plans against Java's classes: every round is played by clients that send what real ones send.

    python -m tools.differential_plans --plans 500 --seed 1

A plan is drawn (a group in the midst of its life, with clients of several libraries, and one to
three changes), made by both engines and as figures in bulk (`plan_batch`, which is what
`plan_groups` runs), and then each of its rounds is asked of Java. Exit codes: 0 equal, 1
different, 2 not run.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kafka_rebalance as kr
from tests.support import java_clients
from tests.support.generate import generate
from tests.support.generate_changes import changes as draw_changes
from tests.support.oracle import Oracle, OracleError

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent

PLANS = tuple[kr.GroupSpec, list[str], kr.RebalancePlan]


def drawn(plans: int, seed: int) -> Iterator[PLANS]:
    """Plans that could be made; changes that both engines refuse alike are drawn again."""
    rng = random.Random(f"plans/{seed}")
    made = 0
    for case in generate(seed, 100 * plans, kr.assignor_names(), _answer):
        group = java_clients.with_clients(kr.GroupSpec.from_dict(case), rng)
        texts = draw_changes(rng, group)
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


def differences(oracle: Oracle, plans: list[PLANS]) -> Iterator[str]:
    """What differs, a line a plan."""
    for group, texts, plan in plans:
        where = f"{group.group_id} {texts}"
        if kr.plan(group, None, texts, engine="reference").to_dict() != plan.to_dict():
            yield f"{where}: the engines differ"
        for step in plan.steps:
            what = java_clients.difference(oracle, step)
            if what is not None:
                yield f"{where}: {step.cause}: {what}"
                break
    for (group, texts, plan), row in zip(plans, _in_bulk(plans), strict=True):
        figures = {name: row[name] for name in kr.Figures.__slots__}
        if row["error"] is not None or figures != plan.figures().to_dict():
            yield f"{group.group_id} {texts}: the figures in bulk differ: {row}"


def _in_bulk(plans: list[PLANS]) -> list[dict[str, Any]]:
    import pyarrow as pa

    rows = [group.to_dict() | {"changes": texts} for group, texts, _ in plans]
    table: list[dict[str, Any]] = kr.plan_batch(pa.RecordBatch.from_pylist(rows)).to_pylist()
    return table


def main() -> int:
    """Parses the command line, plays, reports."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--plans", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    try:
        oracle = Oracle()
    except OracleError as error:
        print(f"differential_plans: {error}", file=sys.stderr)
        return 2
    plans = list(drawn(options.plans, options.seed))
    with oracle:
        found = list(differences(oracle, plans))
    for line in found:
        print(line)
    rounds = sum(len(plan.rounds) for _, _, plan in plans)
    verdict = "Java = reference = rust = in bulk, " if not found else ""
    print(
        f"{len(plans)} plans, {rounds} rounds: {verdict}{len(found)} differences "
        f"(seed {options.seed})"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
