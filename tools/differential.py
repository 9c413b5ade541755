# SPDX-License-Identifier: Apache-2.0
"""Three engines, one answer: Kafka's Java classes, the reference and Rust on generated groups.

    python -m tools.differential --cases 20000 --assignors range,roundrobin --seed 1 --jobs 2
    python -m tools.differential --cases 20000 --by-bytes

With `--by-bytes` every member is the bytes of a subscription, of any version and library; Java
decodes them, ours goes through `wire.sent_member`, and through the contract as JSON.

The answers must be equal member by member, partition by partition, in order. Where Java throws,
ours must fail too, in their own words. Anomalies are ours alone: the reference and Rust must agree
on them. The cases depend on the seed, the number and the assignors, not on `--jobs`. Exit codes:
0 equal, 1 different, 2 not run.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.generate import Case, generate
from tests.support.generate_sent import by_bytes, group_of
from tests.support.oracle import Oracle, OracleError, ask_once

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_rebalance.assignors.registry import Engine

ROOT = Path(__file__).resolve().parent.parent

ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
ENGINES: tuple[Engine, ...] = ("reference", "rust")
# Divides by 1 to 4 assignors, so that every block holds as many cases of each.
BLOCK = 240

# A case is answered in milliseconds.
PATIENCE_S = 10

Answer = dict[str, Any]


@dataclass(frozen=True)
class Block:
    """A run of cases with a seed of its own, so that any process may take it."""

    seed: int
    cases: int
    assignors: tuple[str, ...]
    by_bytes: bool = False


@dataclass(frozen=True)
class Outcome:
    """What became of a block."""

    cases: Counter[str]
    errors: int
    differences: list[dict[str, Any]]


def compare(block: Block) -> Outcome:
    """Generates a block's cases and asks all engines."""
    cases: Counter[str] = Counter()
    errors = 0
    differences = []
    rng = random.Random(f"{block.seed}/bytes")
    for written in generate(block.seed, block.cases, block.assignors, _kafkas):
        case = by_bytes(written, rng) if block.by_bytes else written
        answers = {"oracle": _kafkas(case)} | {name: _ours(case, name) for name in ENGINES}
        cases[case["assignor"]] += 1
        errors += "error" in answers["oracle"]
        what = difference(answers)
        if what is not None:
            differences.append({"difference": what, "case": case} | answers)
    return Outcome(cases, errors, differences)


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
            continue
        ours, kafkas = got["assignment"], expected["assignment"]
        if ours.keys() != kafkas.keys():
            return f"{engine} has other members"
        for member, partitions in kafkas.items():
            if ours[member] != partitions:
                how = "order" if sorted(ours[member]) == sorted(partitions) else "partitions"
                return f"{engine} gives {member} other {how}"
    first, second = (answers[engine].get("anomalies") for engine in ENGINES)
    return None if first == second else "the anomalies differ"


@functools.cache
def _oracle() -> Oracle:
    """This process's oracle; it ends when the process does, with its standard input."""
    return Oracle()


def _kafkas(case: Case) -> Answer:
    """Kafka's answer; where ours says that there never is one, whether Kafka has one in a while."""
    ours = _ours(case, "rust")
    if "never ends" not in ours.get("error", ""):
        return _oracle().ask(case)
    answer = ask_once(case, within_s=PATIENCE_S)
    return {"error": f"no answer in {PATIENCE_S} s"} if answer is None else answer


def _ours(case: Case, engine: Engine) -> Answer:
    import kafka_rebalance as kr

    try:
        group = group_of(case)
        if engine == "rust" and "subscription" in case["members"][0]:
            # The contract has to say all of what was sent.
            group = kr.GroupSpec.from_json(group.to_json())
        result = kr.assign(group, case["assignor"], engine=engine)
        # The lists may be made only now, so this belongs to the attempt.
        assignment = {
            member: [[topic, partition] for topic, partition in partitions]
            for member, partitions in result.items()
        }
        return {"assignment": assignment, "anomalies": [str(each) for each in result.anomalies]}
    except kr.KafkaRebalanceError as error:
        return {"error": str(error)}
    except BaseException as error:  # a panic in Rust is not an Exception
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return {"crash": f"{type(error).__name__}: {error}"}


def blocks(
    cases: int, assignors: tuple[str, ...], seed: int, *, by_bytes: bool = False
) -> Iterator[Block]:
    """`cases` cut into blocks; no two seeds share a block's seed below 100,000 blocks."""
    for n, start in enumerate(range(0, cases, BLOCK)):
        yield Block(seed * 100_000 + n, min(BLOCK, cases - start), assignors, by_bytes)


def main() -> int:
    """Parses the command line, compares, reports."""
    options = _options()
    try:
        Oracle().close()
        import kafka_rebalance  # noqa: F401
    except (OracleError, ImportError) as error:
        print(f"differential: {error}", file=sys.stderr)
        return 2

    cases: Counter[str] = Counter()
    errors = 0
    differences: list[dict[str, Any]] = []
    begun = time.monotonic()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with (
        options.out.open("w", encoding="utf-8") as out,
        ProcessPoolExecutor(options.jobs) as pool,
    ):
        try:
            work = blocks(options.cases, options.assignors, options.seed, by_bytes=options.by_bytes)
            for outcome in pool.map(compare, work):
                cases += outcome.cases
                errors += outcome.errors
                differences += outcome.differences
                for each in outcome.differences:
                    out.write(json.dumps(each, ensure_ascii=False) + "\n")
                out.flush()
                _progress(cases.total(), options.cases, len(differences), begun)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            return 130
    for each in differences:
        print(f"{options.out}: {each['case']['group_id']}: {each['difference']}")
    verdict = "oracle = reference = rust, " if not differences else ""
    parts = ", ".join(f"{assignor} {cases[assignor]}" for assignor in options.assignors)
    what = "mixed-version cases by bytes" if options.by_bytes else "cases"
    print(
        f"{cases.total()} {what}: {verdict}{len(differences)} differences "
        f"({parts}; {errors} answers were errors; seed {options.seed})"
    )
    return 1 if differences else 0


def _progress(done: int, of: int, differences: int, begun: float) -> None:
    rate = done / (time.monotonic() - begun)
    end = "\r" if sys.stderr.isatty() and done < of else "\n"
    text = f"{done} of {of} cases, {differences} differences, {rate:.0f} cases/s"
    print(text, end=end, file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--assignors", type=_assignors, default=ASSIGNORS, metavar="NAME,NAME")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--by-bytes", action="store_true", help="members as bytes of any version")
    parser.add_argument("--jobs", type=int, default=2, help="processes, each with its oracle")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "differences.jsonl")
    return parser.parse_args()


def _assignors(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    for name in names:
        if name not in ASSIGNORS:
            raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(ASSIGNORS)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
