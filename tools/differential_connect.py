# SPDX-License-Identifier: Apache-2.0
"""Connect's rounds three times: Kafka's Java classes, the reference and Rust on generated scripts.

    python -m tools.differential_connect --scripts 20000 --seed 1 --jobs 2

Every field of every round must be equal, order included. Where Java throws, ours must fail too, in
their own words. The scripts depend on the seed and the number, not on `--jobs`. Exit codes: 0
equal, 1 different, 2 not run.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.connect_oracle import ConnectOracle
from tests.support.generate_connect import Script, generate
from tests.support.oracle import OracleError
from tools.differential import ENGINES, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_rebalance.assignors.registry import Engine

BLOCK = 200

Answer = dict[str, Any]


@dataclass(frozen=True)
class Block:
    """A run of scripts with a seed of its own, so that any process may take it."""

    seed: int
    scripts: int


@dataclass(frozen=True)
class Outcome:
    """What became of a block; `met` counts what its scripts led to."""

    scripts: int
    met: Counter[str]
    differences: list[dict[str, Any]]


def compare(block: Block) -> Outcome:
    """Generates a block's scripts and asks all engines."""
    scripts = list(generate(block.seed, block.scripts))
    met: Counter[str] = Counter()
    differences = []
    for script, expected in zip(scripts, _oracle().ask_many(scripts), strict=True):
        answers = {"oracle": expected} | {name: _ours(script, name) for name in ENGINES}
        met += _met(expected)
        what = difference(answers)
        if what is not None:
            differences.append({"difference": what, "case": script} | answers)
    return Outcome(len(scripts), met, differences)


def difference(answers: dict[str, Answer]) -> str | None:
    """The first thing that the engines disagree on, in words."""
    expected = answers["oracle"]
    for engine in ENGINES:
        got = answers[engine]
        if "crash" in got:
            return f"{engine} crashed: {got['crash']}"
        if "error" in expected or "error" in got:
            if "error" not in got:
                return f"{engine} has an answer, Kafka throws {expected['error']}"
            if "error" not in expected:
                return f"{engine} has no answer, Kafka has: {got['error']}"
        elif got != expected:
            return f"{engine} differs at {_first(expected, got)}"
    return None


def _first(expected: Any, got: Any) -> str:
    """The path to the first difference, and both values there."""
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
    """What happened in a script's rounds, so that a run shows what it has tried."""
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
    """This process's oracle; it ends when the process does, with its standard input."""
    return ConnectOracle()


def _ours(script: Script, engine: Engine) -> Answer:
    import kafka_rebalance as kr
    from kafka_rebalance.plans.connect import run_script

    try:
        # Through JSON: a tuple for a list is no difference, a number for a string is one.
        answer: Answer = json.loads(json.dumps(run_script(script, engine=engine)))
        return answer
    except kr.KafkaRebalanceError as error:
        return {"error": str(error)}
    except BaseException as error:  # a panic in Rust is not an Exception
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return {"crash": f"{type(error).__name__}: {error}"}


def blocks(scripts: int, seed: int) -> Iterator[Block]:
    """`scripts` cut into blocks; no two seeds share a block's seed below 100,000 blocks."""
    for n, start in enumerate(range(0, scripts, BLOCK)):
        yield Block(seed * 100_000 + n, min(BLOCK, scripts - start))


def main() -> int:
    """Parses the command line, compares, reports."""
    options = _options()
    try:
        ConnectOracle().close()
        import kafka_rebalance  # noqa: F401
    except (OracleError, ImportError) as error:
        print(f"differential: {error}", file=sys.stderr)
        return 2

    done = 0
    met: Counter[str] = Counter()
    differences: list[dict[str, Any]] = []
    begun = time.monotonic()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with (
        options.out.open("w", encoding="utf-8") as out,
        ProcessPoolExecutor(options.jobs) as pool,
    ):
        try:
            for outcome in pool.map(compare, blocks(options.scripts, options.seed)):
                done += outcome.scripts
                met.update(outcome.met)
                differences += outcome.differences
                for each in outcome.differences:
                    out.write(json.dumps(each, ensure_ascii=False) + "\n")
                out.flush()
                _progress(done, options.scripts, len(differences), begun)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            return 130
    for each in differences[:20]:
        print(f"{options.out}: {each['case']['id']}: {each['difference']}")
    verdict = "oracle = reference = rust, " if not differences else ""
    print(
        f"{done} scripts: {verdict}{len(differences)} differences ({met['rounds']} rounds, "
        f"{met['revocations']} revoked, {met['delays']} delayed; {met['errors']} answers were "
        f"errors; seed {options.seed})"
    )
    return 1 if differences else 0


def _progress(done: int, of: int, differences: int, begun: float) -> None:
    rate = done / (time.monotonic() - begun)
    end = "\r" if sys.stderr.isatty() and done < of else "\n"
    text = f"{done} of {of} scripts, {differences} differences, {rate:.0f} scripts/s"
    print(text, end=end, file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scripts", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="processes, each with its oracle")
    default = ROOT / "build" / "connect-differences.jsonl"
    parser.add_argument("--out", type=Path, default=default)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
