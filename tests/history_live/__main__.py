# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.history_live [--rebalances 300] [--seed 1] [--minutes 30]`,
with `--exporter [--copies 2]`, or with `--by-broker FILE.jsonl.gz [--minutes 3]`.

A seeded script makes rebalances of known causes with real members on a real broker. Then the
records and the broker's log are read, and the history is judged: from records alone at most 1% of
the causes must be wrong, and 95% right except for groups on quiet topics; with the log, 99.5% must
be right. Each rebalance that a Java member or our plug-ins led must be equal when it is computed
again. `--again` judges the last run, which is kept in build/history_live.pickle.

With `--exporter`, three brokers run, one is killed, and only the counts of `kafka-rebalance
exporter` are judged: each recorded rebalance is counted once, with the cause that history names.

With `--by-broker`, consumer groups (KIP-848), share and streams groups run for that time. Their
records go to
FILE, the changes and the broker's log to files beside it, and each epoch is judged, from records
alone and with the log.

Exit code 0: all demands of `faults` hold; 1: one does not; 2: no broker can run.
"""

from __future__ import annotations

import argparse
import pickle
import sys
from pathlib import Path

from kafka_rebalance.history import read_records
from tests.support.broker import BrokerError

from .by_broker import judged, read_lines, read_script, read_sessions, record, table
from .cast import KINDS, LIBRDKAFKA
from .exported import told
from .judge import RIGHT, WRONG, Verdict, judge, report
from .run import run

OUT = Path(__file__).resolve().parent.parent.parent / "build" / "history_live.pickle"
MOST_UNSCRIPTED = 0.05


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.history_live")
    parser.add_argument("--rebalances", type=int, default=300, help="at least (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the script (%(default)s)")
    parser.add_argument("--minutes", type=float, default=30, help="at most (%(default)s)")
    parser.add_argument("--again", action="store_true", help="judge the last run again")
    parser.add_argument("--exporter", action="store_true", help="judge the exporter's counts")
    parser.add_argument(
        "--copies", type=int, default=1, help="groups of each kind, with --exporter (%(default)s)"
    )
    parser.add_argument("--by-broker", type=Path, metavar="FILE", help="judge consumer groups")
    arguments = parser.parse_args()
    if arguments.copies > 1 and not arguments.exporter:
        parser.error("--copies: the causes are judged by the kinds' names; add --exporter")
    if arguments.by_broker is not None:
        if not arguments.again:
            record(arguments.seed, arguments.minutes, arguments.by_broker)
        return _judge_by_broker(arguments.by_broker)
    try:
        if arguments.again:
            evidence = pickle.loads(OUT.read_bytes())
        else:
            evidence = run(
                arguments.rebalances,
                arguments.seed,
                kinds=[
                    kind._replace(name=f"{kind.name}-{n}" if n else kind.name)
                    for n in range(arguments.copies)
                    for kind in KINDS
                ],
                minutes=arguments.minutes,
                with_exporter=arguments.exporter,
            )
            OUT.parent.mkdir(exist_ok=True)
            OUT.write_bytes(pickle.dumps(evidence))
    except BrokerError as error:
        print(f"history_live: {error}", file=sys.stderr)
        return 2
    if evidence.exported is not None:
        text, is_right = told(evidence.records, evidence.exported)
        print(text)
        return not is_right
    verdict = judge(evidence)
    print(
        f"$ python -m tests.history_live --rebalances {arguments.rebalances} "
        f"--seed {arguments.seed}\n"
    )
    print(report(verdict))
    print(
        f"{len(evidence.scripts)} groups, {len(evidence.records)} records, {evidence.seconds:.0f} s"
    )
    for name, differences in (
        ("records", verdict.from_records.differences),
        ("with the log", verdict.with_lines.differences),
        ("replay", verdict.unequal),
        ("not settled", [f"{name}: {why}" for name, why in evidence.problems.items()]),
    ):
        for one in differences:
            print(f"{name}: {one}")
    failures = faults(verdict, arguments.rebalances)
    print(*failures, sep="\n")
    return bool(failures)


def _judge_by_broker(file: Path) -> int:
    records, script, sessions = (
        list(read_records(str(file))),
        read_script(file),
        read_sessions(file),
    )
    wrong = 0
    for source, lines in (("records", []), ("with the log", read_lines(file))):
        found = [*judged(records, script, sessions, lines)]
        print(source)
        print(table(found))
        print(*(f"  {one.how}: {one.group}: {one.told}" for one in found if one.told), sep="\n")
        wrong += sum(one.how == WRONG for one in found)
    return wrong > 0


def faults(verdict: Verdict, rebalances: int) -> list[str]:
    """Returns which of the demands do not hold."""
    alone, log = verdict.from_records, verdict.with_lines
    demands = {
        f"fewer than {rebalances} rebalances of known cause": alone.total >= rebalances,
        "records alone: less than 95% right": verdict.busy.share(RIGHT) >= 0.95,
        "records alone: more than 1% wrong": alone.share(WRONG) <= 0.01,
        "with the log: less than 99.5% right": log.share(RIGHT) >= 0.995,
        "a rebalance led by Java or a plug-in does not come out equal": not any(
            library != LIBRDKAFKA and not is_equal for library, is_equal in verdict.replayed
        ),
        "more than 5% of the rebalances were not caused by the script": verdict.not_scripted
        <= MOST_UNSCRIPTED * alone.total,
    }
    return [f"FAILED: {problem}" for problem, holds in demands.items() if not holds]


if __name__ == "__main__":
    sys.exit(main())
