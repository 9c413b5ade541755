# SPDX-License-Identifier: Apache-2.0
"""Compares the vectors on standard input with the answers of an engine, order included.

    zcat tests/vectors/range.jsonl.gz | python -m tools.check_vectors --engine reference

A line is {"case": <contract line>, "expected": {"assignment": …} | {"error": …}}. If Kafka's class
throws, our engine must raise an error with any text. Exit code 1 if an answer differs.
"""

import argparse
import json
import sys
from collections.abc import Iterable
from typing import Any

import kafka_rebalance as kr
from kafka_rebalance.assignors.registry import Engine


def answer(case: dict[str, Any], engine: Engine) -> dict[str, Any]:
    """Returns our answer in the form of `expected`."""
    try:
        found = kr.assign(kr.GroupSpec.from_dict(case), engine=engine)
        standby = {} if found.standby is None else {"standby": found.standby.to_dict()}
        return {"assignment": found.to_dict(), **standby}
    except kr.GroupError as error:
        return {"error": str(error)}


def agrees(expected: dict[str, Any], ours: dict[str, Any]) -> bool:
    """Returns whether both assignments are equal, order included, or both are errors."""
    if "error" in expected or "error" in ours:
        return "error" in expected and "error" in ours
    return bool(expected == ours)


def check(lines: Iterable[str], engine: Engine) -> tuple[int, list[str]]:
    """Returns the number of lines, and a message for each difference."""
    count, differences = 0, []
    for line in lines:
        count += 1
        vector = json.loads(line)
        ours = answer(vector["case"], engine)
        if not agrees(vector["expected"], ours):
            differences.append(f"{vector['case']['group_id']}: {vector['expected']} != {ours}")
    return count, differences


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", choices=("rust", "reference"), default="rust")
    engine = parser.parse_args().engine
    count, differences = check(sys.stdin, engine)
    for difference in differences[:10]:
        print(difference[:2000], file=sys.stderr)
    print(f"{count} cases, {len(differences)} differences ({engine})")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
