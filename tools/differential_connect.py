# SPDX-License-Identifier: Apache-2.0
"""Compares Connect's Java classes, the reference and Rust on generated scripts of rounds.

    python -m tools.differential_connect --scripts 20000 --seed 1 --jobs 2

Every field of every round must be equal, including order. If Java throws, our engines must raise an
error, with any text.
"""

from __future__ import annotations

import functools
import json
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.support.connect_oracle import ConnectOracle
from tests.support.generate_connect import Script, generate
from tools import judge
from tools.judge import ENGINES, Answer, Block, Outcome

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine

BLOCK = 200


def compare(block: Block) -> Outcome:
    """Generates one block of scripts, and compares the answers of Kafka and both engines."""
    scripts = list(generate(block.seed, block.cases))
    outcome = Outcome(len(scripts))
    for script, expected in zip(scripts, _oracle().ask_many(scripts), strict=True):
        answers = {"oracle": expected} | {name: _ours(script, name) for name in ENGINES}
        outcome.met += _met(expected)
        what = judge.difference(answers, _differs)
        if what is not None:
            found = {"name": script["id"], "difference": what, "case": script}
            outcome.differences.append(found | answers)
    return outcome


def _differs(expected: Answer, got: Answer) -> str | None:
    return None if got == expected else f"differs at {_first(expected, got)}"


def _first(expected: Any, got: Any) -> str:
    """Returns the path of the first difference with both values, as a string."""
    if isinstance(expected, dict) and isinstance(got, dict):
        for name in [*expected, *got]:
            if expected.get(name) != got.get(name) or (name in expected) != (name in got):
                return f"{name}.{_first(expected.get(name), got.get(name))}"
    if isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for i, (one, other) in enumerate(zip(expected, got, strict=True)):
            if one != other and isinstance(one, dict):
                return f"{i}.{_first(one, other)}"
    return f" Kafka {json.dumps(expected)[:300]}, ours {json.dumps(got)[:300]}"


def _met(answer: Answer) -> Counter[str]:
    """Counts the kinds of rounds in a script; a run prints the totals to show what it covered."""
    met = Counter({"errors": int("error" in answer)})
    for round_ in answer.get("rounds", ()):
        met["rounds"] += 1
        met["delays"] += round_.get("delay", 0) > 0
        met["revocations"] += any(
            worker.get("revoked_connectors") or worker.get("revoked_tasks")
            for worker in round_["workers"].values()
        )
    return met


@functools.cache
def _oracle() -> ConnectOracle:
    """Returns the oracle of this process. It ends with this process, which holds its input open."""
    return ConnectOracle()


def _ours(script: Script, engine: Engine) -> Answer:
    from kafka_rebalance.connect.script import run_script

    def ask() -> Answer:
        # Converted to JSON and back, so that a tuple equals a list, as in the oracle's answer.
        answer: Answer = json.loads(json.dumps(run_script(script, engine=engine)))
        return answer

    return judge.ours(ask)


def main() -> int:
    """Parses the command line, compares, prints a report; returns the exit code."""

    def details(met: Counter[str]) -> str:
        return (
            f"{met['rounds']} rounds, {met['revocations']} revoked, {met['delays']} delayed; "
            f"{met['errors']} answers were errors"
        )

    chosen = judge.options(__doc__, "scripts", 20_000, "connect-differences.jsonl").parse_args()
    equal = "oracle = reference = rust"
    return judge.run(compare, chosen, block=BLOCK, equal=equal, details=details)


if __name__ == "__main__":
    sys.exit(main())
