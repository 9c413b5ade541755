# SPDX-License-Identifier: Apache-2.0
"""Plans changes of real classic Kafka Streams applications, makes them, and compares.

    python -m tests.streams_classic_live --seed 1 --applications 5 --changes 2

Applications run at the same time on one broker: their probing rebalances are a minute apart at
least. After each change, and after each probing rebalance, the tasks of all threads are compared
with those of the plan. Exits with 1 if an application does not end as planned, or if `history`
does not name each probing rebalance.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from random import Random

from tests.support.broker import Broker

from .judge import Stage, judged, judged_again
from .questions import asked

RECORD = Path("build") / "streams-classic-live.jsonl"
"""All contract lines that were read."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--applications", type=int, default=5)
    parser.add_argument("--changes", type=int, default=2, help="of each application")
    parser.add_argument("--traffic", type=int, default=0, help="seconds with traffic at the end")
    parser.add_argument("--questions", action="store_true", help="ask those of the page")
    parser.add_argument("--again", type=Path, help="judge a recording again: all but times")
    args = parser.parse_args()
    if args.again is not None:
        with args.again.open(encoding="utf-8") as record:
            print(judged_again(record))
        return 0
    RECORD.parent.mkdir(exist_ok=True)
    random = Random(args.seed)
    with tempfile.TemporaryDirectory() as directory, Broker() as broker:
        if args.questions:
            right = asked(broker.bootstrap_server, Path(directory), random)
            print(f"{right} of 9 questions answered")
            return int(right != 9)
        stages = [Stage.drawn(n, random) for n in range(args.applications)]
        with RECORD.open("w", encoding="utf-8") as record:
            server = broker.bootstrap_server
            rest = random, Path(directory), record, args.traffic
            found = judged(server, stages, args.changes, *rest)
    print(f"seed {args.seed}: {found}")
    return int(found.right_ends != found.ends or found.named != len(found.due))


if __name__ == "__main__":
    sys.exit(main())
