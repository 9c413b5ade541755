# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.parity [--ours CMD] [--part quick] [--only NAME ...] [--verbose]`.

Plays scenarios on a real broker and on a driver (a coordinator in its own process, started by CMD),
and prints the differences. Needs Java and the broker's jars. `--record` stores the broker's answers
for test_recorded.py, if all agree.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from functools import partial
from typing import TYPE_CHECKING

from tests.support.broker import Broker, BrokerError

from . import recorded, run, scenarios
from .driver_player import OURS

if TYPE_CHECKING:
    from .scenarios import Scenario


BROKERS = {
    ("", "slow"): partial(Broker, properties=scenarios.BROKER),
    ("sweeps",): partial(Broker, properties=scenarios.SWEEPING_BROKER),
    ("moves",): partial(Broker, brokers=2, properties=scenarios.BROKER),
}
"""The needs of scenarios (`needs`) -> the broker that plays them."""

AT_ONCE = dict.fromkeys(BROKERS, run.AT_ONCE) | {("moves",): 1}
"""How many scenarios run at once: with "moves" one, because a move affects all groups."""


def _play(
    chosen: list[Scenario], server: str, arguments: argparse.Namespace, at_once: int
) -> list[run.Result]:
    found = []
    if arguments.broker_alone:
        for scenario, seen in zip(chosen, run.record(chosen, server, at_once), strict=True):
            print(run.show(scenario, seen), flush=True)
        return []
    for result in run.results(chosen, shlex.split(arguments.ours), server, at_once):
        found.append(result)
        print(result, flush=True)
        if arguments.verbose:
            print(run.show(result.scenario, result.broker))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.parity",
        description="Plays scripted steps on a real Kafka broker and on a coordinator's driver.",
    )
    parser.add_argument(
        "--ours", default=shlex.join(OURS), help="the driver's command (%(default)s)"
    )
    parser.add_argument("--part", choices=["full", "quick"], default="full")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="scenarios by name")
    parser.add_argument("--record", action="store_true", help="store the broker's observations")
    parser.add_argument("--verbose", action="store_true", help="print the broker's observations")
    parser.add_argument(
        "--broker-alone", action="store_true", help="play only on the broker, and print"
    )
    arguments = parser.parse_args()
    chosen = [
        scenario
        for scenario in scenarios.load(arguments.part)
        if not arguments.only or scenario.name in arguments.only
    ]
    found: list[run.Result] = []
    try:
        for needs, brokers in BROKERS.items():
            those = [scenario for scenario in chosen if scenario.needs in needs]
            if those:
                with brokers() as broker:
                    found += _play(those, broker.bootstrap_server, arguments, AT_ONCE[needs])
    except BrokerError as error:
        print(f"parity: {error}", file=sys.stderr)
        return 2
    if arguments.broker_alone:
        return 0
    print(run.summary(found))
    if arguments.record and all(result.agrees for result in found):
        recorded.write([(result.scenario, result.broker) for result in found])
    return not all(result.agrees for result in found)


if __name__ == "__main__":
    sys.exit(main())
