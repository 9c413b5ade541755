# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.modern_live [--changes N] [--migrations N] [--share N] [--streams N] …`.

Starts a broker and groups of the consumer protocol, whose members are Java and librdkafka. Takes a
snapshot before each change, plans the change, makes it, and compares every partition. Meanwhile,
does this for rolling restarts from the classic to the consumer protocol and back, step by step; and
for changes of share groups and of streams groups.

Prints a line for each. The exit code is 0 if all were as planned, else 1.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import shlex
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

from tests.support.broker import Broker

from .broker_assigned import BrokerAssigned, play_shares, play_streams
from .changes import play_changes
from .judge import Outcome
from .members import Members
from .migrations import play_migrations

PROPERTIES = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "15000",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "300",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "300",
    "group.streams.initial.rebalance.delay.ms": "500",
    "group.consumer.max.session.timeout.ms": "60000",
}
"""Shorter than the defaults, so that a run is short; but a slow client outlasts no session."""


def run(
    changes: int,
    migrations: int,
    seed: int,
    keep: Callable[[Outcome], None] = lambda _: None,
    *,
    share: int = 0,
    streams: int = 0,
    timed: bool = True,
) -> Counter[str]:
    """Returns how many changes and migrations were right or wrong; calls `keep` with each
    outcome. A busy machine may be too slow for `timed` changes.
    """
    counts: Counter[str] = Counter()
    turn = threading.Lock()

    def count(kind: str, outcomes: Iterator[Outcome]) -> None:
        for outcome in outcomes:
            verdict = "right" if outcome.problem is None else "wrong"
            with turn:
                counts[f"{kind}, {verdict}"] += 1
                counts[f"{kind}, with the planned ids"] += outcome.with_planned_ids
                keep(outcome)
                print(f"{kind} {outcome.what}: {outcome.problem or verdict}", flush=True)

    with (
        tempfile.TemporaryDirectory() as directory,
        Broker(properties=PROPERTIES) as broker,
        Members(broker.bootstrap_server, Path(directory)) as members,
        contextlib.ExitStack() as stack,
    ):
        plays = [
            ("change", play_changes(members, Random(f"{seed}/changes"), changes, timed=timed)),
            *(
                (f"to {one}", play_migrations(one)(members, Random(f"{seed}/{one}"), migrations))
                for one in ("consumer", "classic")
            ),
        ]
        for kind, number, play in (
            ("share", share, play_shares),
            ("streams", streams, play_streams),
        ):
            if number:
                clients = BrokerAssigned(kind, members, Path(directory))
                stack.callback(clients.close)
                plays.append((kind, play(clients, Random(f"{seed}/{kind}"), number)))
        # Groups of different kinds do not touch each other, and mostly wait.
        with ThreadPoolExecutor(len(plays)) as pool:
            for played in [pool.submit(count, *one) for one in plays]:
                played.result()
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.modern_live")
    parser.add_argument("--changes", type=int, default=60)
    parser.add_argument("--migrations", type=int, default=10, help="each way (%(default)s)")
    parser.add_argument("--share", type=int, default=20, help="changes (%(default)s)")
    parser.add_argument("--streams", type=int, default=20, help="changes (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", type=Path, metavar="FILE", help="write the observations")
    arguments = parser.parse_args()
    kept: list[str] = []
    counts = run(
        arguments.changes,
        arguments.migrations,
        arguments.seed,
        lambda one: kept.append(json.dumps(one.observed, separators=(",", ":"))),
        share=arguments.share,
        streams=arguments.streams,
    )
    if arguments.record:
        with gzip.open(arguments.record, "wt", encoding="utf-8") as out:
            out.writelines(f"{line}\n" for line in kept if line != "{}")
    print(f"\n$ python -m tests.modern_live {shlex.join(sys.argv[1:])}")
    for what, count in sorted(counts.items()):
        print(f"{what}: {count}")
    return any(count for what, count in counts.items() if what.endswith("wrong"))


if __name__ == "__main__":
    sys.exit(main())
