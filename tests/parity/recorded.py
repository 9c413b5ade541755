# SPDX-License-Identifier: Apache-2.0
"""What a real broker showed, kept: ours can be judged by it without Java.

tests/data/parity.jsonl.gz has a line for Kafka's version, then one a scenario: its name, its steps,
and what the broker showed at each. `python -m tests.parity --record` writes it anew.
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
    from tests.support.broker import LIB  # Only a run on a broker records.

    kafka = next(LIB.glob("kafka-server-[0-9]*.jar")).stem.removeprefix("kafka-server-")
    lines: list[Any] = [{"kafka": kafka}]
    for scenario, shown in seen:
        steps = [step.text for step in scenario.steps]
        lines.append({"scenario": scenario.name, "steps": steps, "shown": shown})
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    FILE.write_bytes(gzip.compress(text.encode(), mtime=0))


def read() -> dict[str, tuple[list[str], list[Observation]]]:
    """Steps and what was shown at them, by the scenario's name."""
    lines = gzip.decompress(FILE.read_bytes()).decode().splitlines()[1:]
    found = map(json.loads, lines)
    return {line["scenario"]: (line["steps"], line["shown"]) for line in found}
