# SPDX-License-Identifier: Apache-2.0
"""Runs a differential tool in several processes, reports progress, and writes the differences.

A tool passes a function (`question`) that draws the cases of one block and compares the answers.
The cases depend on the seed and on their number, not on `--jobs`. Exit codes: 0 equal, 1 different,
2 not run.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.oracle import OracleError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kafka_rebalance.assignors.registry import Engine

ROOT = Path(__file__).resolve().parent.parent
ENGINES: tuple[Engine, ...] = ("reference", "rust")

Answer = dict[str, Any]


@dataclass(frozen=True)
class Block:
    """A number of cases with their own seed, so that any process can run the block."""

    seed: int
    cases: int


@dataclass
class Outcome:
    """The result of a block, or of all blocks; `met` counts the kinds of cases and answers.

    A difference is a JSON object with the `name` of its case and the `difference` as a string.
    """

    cases: int = 0
    met: Counter[str] = field(default_factory=Counter)
    differences: list[dict[str, Any]] = field(default_factory=list)


def options(doc: str | None, noun: str, cases: int, out: str) -> argparse.ArgumentParser:
    """Returns a parser with the options of all tools; `noun` names the cases and their option."""
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    parser.add_argument(f"--{noun}", dest="cases", type=int, default=cases)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--jobs", type=int, default=2, help="number of processes; each starts an oracle"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "build" / out)
    parser.add_argument("--show", type=int, default=20, help="number of differences to print")
    parser.set_defaults(noun=noun)
    return parser


def run(
    question: Callable[[Block], Outcome],
    chosen: argparse.Namespace,
    *,
    block: int,
    equal: str,
    details: Callable[[Counter[str]], str],
) -> int:
    """Runs every block of cases, prints differences and a summary; returns the exit code."""
    total = Outcome()
    begun = time.monotonic()
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    with chosen.out.open("w", encoding="utf-8") as out, ProcessPoolExecutor(chosen.jobs) as pool:
        try:
            for outcome in pool.map(question, blocks(chosen.cases, chosen.seed, block)):
                total.cases += outcome.cases
                total.met.update(outcome.met)
                total.differences += outcome.differences
                for each in outcome.differences:
                    out.write(json.dumps(each, ensure_ascii=False) + "\n")
                out.flush()
                _progress(total, chosen, begun)
        except OracleError as error:
            pool.shutdown(cancel_futures=True)
            print(f"not run: {error}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            return 130
    for each in total.differences[: chosen.show]:
        print(f"{chosen.out}: {each['name']}: {each['difference']}")
    different = len(total.differences)
    print(
        f"{total.cases} {chosen.noun}: {'' if different else f'{equal}, '}{different} differences "
        f"({details(total.met)}; seed {chosen.seed})"
    )
    return 1 if different else 0


def blocks(cases: int, seed: int, block: int) -> Iterator[Block]:
    """Cuts `cases` into blocks. With up to 100,000 blocks, no two seeds have equal block seeds."""
    for n, start in enumerate(range(0, cases, block)):
        yield Block(seed * 100_000 + n, min(block, cases - start))


def ours(ask: Callable[[], Answer]) -> Answer:
    """Returns the answer of one of our engines, or its error, or its crash."""
    import kafka_rebalance as kr

    try:
        return ask()
    except kr.KafkaRebalanceError as error:
        return {"error": str(error)}
    except BaseException as error:  # a panic in Rust is not an Exception
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return {"crash": f"{type(error).__name__}: {error}"}


def difference(
    answers: dict[str, Answer], differs: Callable[[Answer, Answer], str | None]
) -> str | None:
    """Returns the first difference of an engine from Kafka as a string, or None.

    `differs(kafkas, ours)` compares two answers that are not errors; it returns the end of a
    sentence that begins with the engine's name. If Kafka throws, any error of ours counts as equal.
    """
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
        elif (what := differs(expected, got)) is not None:
            return f"{engine} {what}"
    return None


def _progress(total: Outcome, chosen: argparse.Namespace, begun: float) -> None:
    rate = total.cases / (time.monotonic() - begun)
    end = "\r" if sys.stderr.isatty() and total.cases < chosen.cases else "\n"
    text = (
        f"{total.cases} of {chosen.cases} {chosen.noun}, {len(total.differences)} differences, "
        f"{rate:.0f} {chosen.noun}/s"
    )
    print(text, end=end, file=sys.stderr, flush=True)
