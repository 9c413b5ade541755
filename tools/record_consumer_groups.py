# SPDX-License-Identifier: Apache-2.0
"""Records Kafka's own answers to runs of consumer groups, for `tests/test_consumer_groups.py`.

    python -m tools.record_consumer_groups                                  # every run again
    python -m tools.record_consumer_groups --add "static member away" < RUN

RUN is a JSON list of the driver's commands, such as the `case` of a difference that
`differential_coordinator` has found.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from pathlib import Path
from typing import Any

from tests.support.coordinator_oracle import CoordinatorOracle
from tests.support.generate_commands import Command
from tests.support.generate_heartbeats import GROUPS
from tools.member_ids import Ids

FILE = Path(__file__).resolve().parent.parent / "tests" / "data" / "consumer_groups.jsonl.gz"
SEED = 1
_STATES = [{"op": op, "g": group} for op in ("state", "mstate") for group in GROUPS]


def record(oracle: CoordinatorOracle, name: str, commands: list[Command]) -> dict[str, Any]:
    """Plays commands on Kafka's coordinator; returns the run with Kafka's answers and random
    ids.
    """
    ids = Ids()
    numbers: dict[int, int] = {}
    steps = []
    for number, command in enumerate(commands, 1):
        seeded = command | ({"seed": SEED} if number == 1 else {})
        # A request that waits for an append has no answer yet, but the states show its new id.
        answer, *states = oracle.commands([ids.concrete(seeded), *_STATES])
        numbers[answer["id"]] = answer["id"] = number
        drawn = [{"member": one} for one in ids.seen(number, [answer, states])]
        steps.append((seeded, _kept(answer, numbers), drawn))
    return {"name": name, "steps": steps}


def _kept(answer: Command, numbers: dict[int, int]) -> Command:
    """Returns the answer without its message; and only the time and the bytes of a record."""
    answer.pop("msg", None)
    for event in answer["events"]:
        if event["ev"] == "record":
            for name in event.keys() - {"ev", "t", "kb", "vb"}:
                del event[name]
        elif "id" in event:
            event["id"] = numbers[event["id"]]
    return answer


def main() -> int:
    """Records all runs, or adds one; writes the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--add", metavar="NAME", help="add or replace the run on standard input")
    chosen = parser.parse_args()
    with gzip.open(FILE, "rt", encoding="utf-8") as lines:
        runs = {run["name"]: run for run in map(json.loads, lines)}
    with CoordinatorOracle() as oracle:
        if chosen.add is not None:
            runs[chosen.add] = record(oracle, chosen.add, json.load(sys.stdin))
        else:
            for name, run in runs.items():
                runs[name] = record(oracle, name, [command for command, *_ in run["steps"]])
    with gzip.GzipFile(FILE, "wb", mtime=0) as out:
        out.writelines(f"{json.dumps(run)}\n".encode() for run in runs.values())
    print(f"{len(runs)} runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
