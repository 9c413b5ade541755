# SPDX-License-Identifier: Apache-2.0
"""Lets a real client lead generated groups through `probe`, and compares its answers.

    python -m tools.differential_probe --client java --cases 2000 --seed 1
    python -m tools.differential_probe --client confluent-kafka --cases 20000 --seed 1

Java is compared with `tools/oracle`, which runs Java's own classes: a difference is a fault of the
probe. Groups on which these classes throw or never end are left out, because the consumer ends or
hangs there.

librdkafka is compared with our `librdkafka/*` in both engines: the lists must be equal. Where an
engine reports that the leader's process dies, the client's process must die. In another virtual
environment, the command runs another version of confluent-kafka.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from tests.support.probed import (
    java_cases,
    java_command,
    led,
    librdkafka_cases,
    newest_generation,
    on_the_wire,
    ours,
)
from tools.judge import ENGINES, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.oracle import Oracle
    from tests.support.probed import Answer, Case

ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
DIALECTS = ("librdkafka/range", "librdkafka/roundrobin", "librdkafka/cooperative-sticky")
DEATH = "the client's process ended with signal SIG"
# A new process for each block: a consumer's memory ends with the process.
BLOCK = 500

Found: TypeAlias = "Iterator[tuple[Case, Answer, str | None]]"


# Java ---------------------------------------------------------------------------------------------


def java_block(cases: Iterator[Case], count: int, oracle: Oracle) -> Found:
    """Yields each group that Java's classes answer, the probe's result, and the difference."""
    judged: list[tuple[Case, Answer]] = []
    while len(judged) < count:
        case = next(cases)
        # The oracle would hang where our engine reports that Java's class never ends.
        if "error" not in ours(case) and "error" not in (expected := oracle.ask(case)):
            judged.append((case, expected))
    judged.sort(key=lambda one: newest_generation(one[0]))
    command = java_command(judged[0][0]["assignor"])
    results = led((case for case, _ in judged), command=command)
    for (case, expected), result in zip(judged, results, strict=True):
        yield case, result, _java_difference(expected, result)


def _java_difference(expected: Answer, result: Answer) -> str | None:
    if "error" in result:
        return f"the probe has no answer: {result['error']}"
    if on_the_wire(result["assignment"]) == on_the_wire(expected["assignment"]):
        return None
    return f"the oracle answers {json.dumps(expected['assignment'])}"


# librdkafka ---------------------------------------------------------------------------------------


def librdkafka_block(cases: Iterator[Case], count: int) -> Found:
    """Yields each group, librdkafka's result, and the difference of an engine (else None)."""
    drawn = [(case, [ours(case, engine) for engine in ENGINES]) for case in islice(cases, count)]
    # A death ends all consumers of the process, so groups that lead to one come last.
    drawn.sort(key=lambda one: "error" in one[1][0])
    results = led((case for case, _ in drawn), library="confluent-kafka")
    for (case, answers), result in zip(drawn, results, strict=True):
        yield case, result, librdkafka_difference(answers, result)


def librdkafka_difference(answers: list[Answer], result: Answer) -> str | None:
    """Returns a sentence about the first engine that differs from the client."""
    for engine, answer in zip(ENGINES, answers, strict=True):
        if result.get("error", "").startswith(DEATH):
            same = "kills the leader's process" in answer.get("error", "")
        else:
            same = answer.get("assignment", answer) == result.get("assignment", result)
        if not same:
            return f"{engine} answers {json.dumps(answer)}"
    return None


# The command --------------------------------------------------------------------------------------


def compare(client: str, assignor: str, seed: int, count: int) -> Found:
    """Yields `count` groups of one assignor, in blocks."""
    sizes = [min(BLOCK, count - start) for start in range(0, count, BLOCK)]
    if client != "java":
        drawn = librdkafka_cases(seed, assignor)
        for size in sizes:
            yield from librdkafka_block(drawn, size)
        return
    from tests.support.oracle import Oracle

    drawn = java_cases(seed, assignor)
    with Oracle() as oracle:
        for size in sizes:
            yield from java_block(drawn, size, oracle)


def version(client: str) -> str:
    if client == "java":
        return "Java"
    import confluent_kafka

    library = confluent_kafka.libversion()[0]
    return f"confluent-kafka {confluent_kafka.__version__}, librdkafka {library}"


def main() -> int:
    """Parses the command line, compares, prints a line for each assignor; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--client", choices=("java", "confluent-kafka"), required=True)
    parser.add_argument("--cases", type=int, default=2000, help="for all assignors together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--assignors", help="NAME,NAME; default: all of the client")
    options = parser.parse_args()
    known = ASSIGNORS if options.client == "java" else DIALECTS
    assignors = options.assignors.split(",") if options.assignors else known
    out = ROOT / "build" / "differences-probe.jsonl"
    out.parent.mkdir(exist_ok=True)
    different = 0
    print(version(options.client), flush=True)
    with out.open("w", encoding="utf-8") as file:
        for at, assignor in enumerate(assignors):
            count = len(range(at, options.cases, len(assignors)))
            begun, met = time.monotonic(), Counter[str]()
            for case, result, what in compare(options.client, assignor, options.seed, count):
                met["cases"] += 1
                met["deaths"] += result.get("error", "").startswith(DEATH)
                if what is not None:
                    met["differences"] += 1
                    found: dict[str, Any] = {"difference": what, "case": case, "result": result}
                    file.write(json.dumps(found, ensure_ascii=False) + "\n")
                    file.flush()
                    print(f"{case['group_id']}: {what[:300]}", flush=True)
            different += met["differences"]
            print(
                f"{assignor}: {met['cases']} groups (seed {options.seed}), {met['deaths']} deaths, "
                f"{met['differences']} differences, {time.monotonic() - begun:.0f} s",
                flush=True,
            )
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
