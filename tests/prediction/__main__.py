# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.prediction [--changes 112] [--seed 1] [--leaders java,…] [--minutes 40]`.

Takes snapshots of real groups on real brokers, plans changes, makes them, and compares the
results. Also computes every generation of these groups from the members' subscriptions. Then does
so with groups that the broker assigns (`tests/modern_live`): half as many changes of consumer
groups, share groups and streams groups, without `--events` and `--leaders`. Writes
every observation to build/prediction/changes.jsonl, and each wrong prediction (a miss) to a file
beside it. `--again FILE` judges the observations in such a file again, without a broker. The exit
code is 0 without misses, 1 if there is a miss, 2 if it cannot run.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import TextIO

import tests.modern_live.__main__ as modern_live
from tests.support.broker import BrokerError

from . import report, result, run
from .cast import LIBRARIES

OUT = Path(__file__).resolve().parent.parent.parent / "build" / "prediction"


def main() -> int:
    parser = _parser()
    arguments = parser.parse_args()
    leaders = arguments.leaders.split(",")
    unknown = set(leaders) - set(LIBRARIES)
    if unknown:
        parser.error(f"--leaders: {', '.join(sorted(unknown))} is not of {', '.join(LIBRARIES)}")
    if arguments.again:
        results = result.again(arguments.again.read_text().splitlines())
        _misses(results)
        print(report.show(results))
        return any(one.is_miss for one in results)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    try:
        with (OUT / "changes.jsonl").open("w") as out:
            results = run.run(
                arguments.changes,
                arguments.seed,
                leaders=leaders,
                minutes=arguments.minutes,
                brokers=arguments.brokers,
                events=tuple(filter(None, arguments.events.split(","))),
                progress=lambda one: _keep(one, out),
            )
    except BrokerError as error:
        print(f"prediction: {error}", file=sys.stderr)
        return 2
    _misses(results, OUT)
    text = f"{_command(arguments)}\n{report.made_with()}\n\n{report.show(results)}"
    by_broker = _by_broker(arguments)
    text += "".join(f"\n{what}: {count}" for what, count in sorted(by_broker.items()))
    print(text)
    if arguments.write:
        arguments.write.write_text(f"{text}\n")
    return any(one.is_miss for one in results) or any("wrong" in what for what in by_broker)


def _by_broker(arguments: argparse.Namespace) -> Counter[str]:
    """Returns how many changes of groups that the broker assigns were right or wrong."""
    share = arguments.changes // 8
    if not share or arguments.events or arguments.leaders != ",".join(LIBRARIES):
        return Counter()
    return modern_live.run(2 * share, 0, arguments.seed, share=share, streams=share)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.prediction",
        description="Plans changes of real groups, makes them, and compares.",
    )
    parser.add_argument("--changes", type=int, default=112, help="number of changes (%(default)s)")
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of the random draws (%(default)s)"
    )
    parser.add_argument(
        "--leaders", default=",".join(LIBRARIES), help="separated by commas (%(default)s)"
    )
    parser.add_argument("--events", default="", help="only these, separated by commas (all)")
    parser.add_argument(
        "--minutes", type=float, default=40, help="start no change after this time (%(default)s)"
    )
    parser.add_argument(
        "--brokers", type=int, choices=(1, 2, 3), default=3, help="nodes (%(default)s)"
    )
    parser.add_argument(
        "--again", type=Path, metavar="FILE", help="judge the file of an earlier run again"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the report to FILE, too")
    return parser


def _command(arguments: argparse.Namespace) -> str:
    names = ("changes", "seed", "brokers")
    options = [f"--{name}={getattr(arguments, name)}" for name in names]
    if arguments.leaders != ",".join(LIBRARIES):
        options.append(f"--leaders={arguments.leaders}")
    if arguments.events:
        options.append(f"--events={arguments.events}")
    return f"$ {shlex.join(['python', '-m', 'tests.prediction', *options])}"


def _keep(one: result.Result, out: TextIO) -> None:
    """Writes one result at once, so that it is not lost if the run is stopped."""
    print(one.observed.to_json(), file=out, flush=True)
    seen = one.observed.problem or ("a miss" if one.is_miss else "right")
    if one.told is not None and not one.is_miss:
        seen = one.told.verdict
    print(f"{one.observed.group_id}, {one.observed.event}: {seen}", file=sys.stderr, flush=True)


def _misses(results: list[result.Result], out: Path | None = None) -> None:
    """Prints a line for each miss; given `out`, also writes its observations to a file there."""
    for n, one in enumerate((one for one in results if one.is_miss), 1):
        where = ""
        if out:
            path = out / f"miss-{n:03}.jsonl"
            path.write_text(one.observed.to_json() + "\n")
            where = f"{path.name}: "
        print(f"{where}{report.miss(one)}")
    print()


if __name__ == "__main__":
    sys.exit(main())
