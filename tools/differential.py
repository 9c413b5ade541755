# SPDX-License-Identifier: Apache-2.0
"""Compares Kafka's Java classes, the reference and Rust on generated groups.

    python -m tools.differential --cases 20000 --assignors range,roundrobin --seed 1 --jobs 2
    python -m tools.differential --cases 20000 --by-bytes
    python -m tools.differential --cases 20000 --assignors librdkafka/cooperative-sticky
    python -m tools.differential --cases 20000 --assignors consumer/uniform,consumer/range

For librdkafka's assignors there is no oracle; the reference takes its place. The assignors of the
brokers have their own oracle, `tools/server-oracle`.

With `--by-bytes`, every member is given as the bytes of a subscription, of any version and library.
Java decodes the bytes itself. The reference reads them with `wire.sent_member`; Rust reads a
contract line made from that result.

Each member must have equal partitions in equal order. If Java throws, our engines must raise an
error, with any text. Java lists no anomalies; the reference and Rust must list equal anomalies. The
cases depend on the seed and on the list of assignors.
"""

from __future__ import annotations

import argparse
import functools
import random
import sys
from collections import Counter
from typing import TYPE_CHECKING

from tests.support.generate import generate
from tests.support.generate_sent import by_bytes, group_of
from tests.support.generate_server import for_brokers
from tests.support.generated_groups import Case
from tests.support.oracle import SERVER_JAR, Oracle, ask_once
from tools import judge
from tools.judge import ENGINES, Answer, Block, Outcome

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine

ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
DIALECTS = ("librdkafka/range", "librdkafka/roundrobin", "librdkafka/cooperative-sticky")
SERVER_SIDE = (
    "consumer/uniform",
    "consumer/range",
    "consumer/balanced",
    "share/simple",
    "streams/sticky",
)
# Divisible by 1 to 4, so that every block has equally many cases of each assignor.
BLOCK = 240

# Java answers a case in milliseconds, unless it never ends.
PATIENCE_S = 10


def compare(block: Block, *, assignors: tuple[str, ...], bytes_too: bool) -> Outcome:
    """Generates one block of cases, and compares the answers of Kafka and both engines."""
    outcome = Outcome()
    rng = random.Random(f"{block.seed}/bytes")
    for written in generate(block.seed, block.cases, assignors, _expected):
        case = by_bytes(written, rng) if bytes_too else written
        if case["assignor"] in SERVER_SIDE:
            case = for_brokers(case)
        answers = {"oracle": _expected(case)} | {name: _ours(case, name) for name in ENGINES}
        outcome.cases += 1
        outcome.met[case["assignor"]] += 1
        outcome.met["errors"] += "error" in answers["oracle"]
        what = difference(answers)
        if what is not None:
            found = {"name": case["group_id"], "difference": what, "case": case}
            outcome.differences.append(found | answers)
    return outcome


def difference(answers: dict[str, Answer]) -> str | None:
    """Returns the first difference from Kafka, or a difference of anomalies, as a string; or
    None.
    """
    what = judge.difference(answers, _differs)
    for part in ("anomalies", "owned_topics"):
        first, second = (answers[engine].get(part) for engine in ENGINES)
        if what is None and first != second:
            what = f"the {part} differ"
    return what


def _differs(expected: Answer, got: Answer) -> str | None:
    for part, of in (("assignment", ""), ("standby", " of standby tasks")):
        ours, kafkas = got.get(part, {}), expected.get(part, {})
        if ours.keys() != kafkas.keys():
            return f"has other members{of}"
        for member, partitions in kafkas.items():
            if ours[member] != partitions:
                how = "order" if sorted(ours[member]) == sorted(partitions) else "partitions"
                return f"gives {member} other {how}{of}"
    return None


@functools.cache
def _oracle() -> Oracle:
    """Returns the oracle of this process. It ends with this process, which holds its input open."""
    return Oracle()


def _expected(case: Case) -> Answer:
    if case["assignor"] in SERVER_SIDE:
        return _server_oracle().ask(for_brokers(case))
    return _ours(case, "reference") if case["assignor"] in DIALECTS else _kafkas(case)


@functools.cache
def _server_oracle() -> Oracle:
    return Oracle(SERVER_JAR)


def _kafkas(case: Case) -> Answer:
    """Returns Kafka's answer. If ours is "never ends", no answer within PATIENCE_S is an error."""
    ours = _ours(case, "rust")
    if "never ends" not in ours.get("error", ""):
        return _oracle().ask(case)
    answer = ask_once(case, within_s=PATIENCE_S)
    return {"error": f"no answer in {PATIENCE_S} s"} if answer is None else answer


def _ours(case: Case, engine: Engine) -> Answer:
    import kafka_rebalance as kr

    def ask() -> Answer:
        group = group_of(case)
        if engine == "rust" and "subscription" in case["members"][0]:
            # This tests that a contract line contains everything that the bytes contain.
            group = kr.GroupSpec.from_json(group.to_json())
        result = kr.assign(group, case["assignor"], engine=engine)
        # The result may compute its lists only here, so an error here is an error of the engine.
        answer: Answer = {"assignment": result.to_dict()}
        if result.standby is not None:
            answer["standby"] = result.standby.to_dict()
        answer["owned_topics"] = {
            one: list(result.owned_topics[one]) for one in result.owned_topics
        }
        return answer | {"anomalies": [str(each) for each in result.anomalies]}

    return judge.ours(ask)


def main() -> int:
    """Parses the command line, compares, prints a report; returns the exit code."""
    parser = judge.options(__doc__, "cases", 20_000, "differences.jsonl")
    parser.add_argument("--assignors", type=_assignors, default=ASSIGNORS, metavar="NAME,NAME")
    parser.add_argument(
        "--by-bytes", action="store_true", help="encode members as bytes of any version"
    )
    chosen = parser.parse_args()
    if chosen.by_bytes:
        chosen.noun = "mixed-version cases by bytes"

    def details(met: Counter[str]) -> str:
        parts = ", ".join(f"{assignor} {met[assignor]}" for assignor in chosen.assignors)
        return f"{parts}; {met['errors']} answers were errors"

    question = functools.partial(compare, assignors=chosen.assignors, bytes_too=chosen.by_bytes)
    equal = "oracle = reference = rust"
    if not {*chosen.assignors} - {*DIALECTS}:
        equal = "reference = rust"
    elif chosen.by_bytes and {*chosen.assignors} & {*DIALECTS, *SERVER_SIDE}:
        parser.error("--by-bytes is for Kafka's own assignors")
    return judge.run(question, chosen, block=BLOCK, equal=equal, details=details)


def _assignors(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    for name in names:
        if name not in ASSIGNORS + DIALECTS + SERVER_SIDE:
            known = ", ".join(ASSIGNORS + DIALECTS + SERVER_SIDE)
            raise argparse.ArgumentTypeError(f"{name!r} is not one of {known}")
    return names


if __name__ == "__main__":
    sys.exit(main())
