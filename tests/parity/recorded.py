# SPDX-License-Identifier: Apache-2.0
"""Stores the observations of a real broker, so that tests without Java can compare with them.

tests/data/parity.jsonl.gz contains a line with Kafka's version, then one line for each scenario:
its name, its steps, and the broker's observation at each step. `python -m tests.parity --record`
writes the file again.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .cast import Observation
    from .scenarios import Scenario

TESTS = Path(__file__).resolve().parent.parent
FILE = TESTS / "data" / "parity.jsonl.gz"


def write(seen: Iterable[tuple[Scenario, list[Observation]]]) -> None:
    from tests.support.broker import LIB  # only recording needs the broker's jars

    kafka = next(LIB.glob("kafka-server-[0-9]*.jar")).stem.removeprefix("kafka-server-")
    lines: list[Any] = [{"kafka": kafka}]
    for scenario, shown in seen:
        steps = [step.text for step in scenario.steps]
        lines.append({"scenario": scenario.name, "steps": steps, "shown": shown})
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    FILE.write_bytes(gzip.compress(text.encode(), mtime=0))


def read() -> dict[str, tuple[list[str], list[Observation]]]:
    """Returns scenario name -> its steps, and the broker's observations."""
    lines = gzip.decompress(FILE.read_bytes()).decode().splitlines()[1:]
    found = map(json.loads, lines)
    return {line["scenario"]: (line["steps"], line["shown"]) for line in found}
