# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.reality [--protocols classic,consumer] [--assignors range] [--clients java] …`.

Real consumers on a real broker and the simulator play the same scenario, one for each protocol:
the classic one with Java consumers, the consumer protocol with those of each of `--clients`. This
needs Java and the broker's jars, and takes about four minutes. The exit code is 0 if they agree, 1
if they differ, 2 if it cannot run.
"""

from __future__ import annotations

import argparse
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from kafka_rebalance.member.config import CLASSIC, CONSUMER, LIBRDKAFKA
from tests.support.broker import LIB, BrokerError

from . import consumer_compare, report, run
from . import consumer_scenario as modern
from .client_process import CLIENTS, RealityError
from .scenario import ASSIGNORS, HEARTBEAT_MS, POLL_MS, SESSION_MS

PROTOCOLS = (CLASSIC, CONSUMER)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.reality",
        description="Plays a scenario with real consumers, then in the simulator, and compares.",
    )
    parser.add_argument(
        "--protocols", default=",".join(PROTOCOLS), help="separated by commas (%(default)s)"
    )
    parser.add_argument(
        "--assignors", default=",".join(ASSIGNORS), help="separated by commas (%(default)s)"
    )
    parser.add_argument(
        "--clients",
        default=",".join(CLIENTS),
        help="of the consumer protocol, separated by commas (%(default)s)",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="also write the comparison to this file"
    )
    arguments = parser.parse_args()
    assignors = arguments.assignors.split(",")
    unknown = set(assignors) - set(ASSIGNORS)
    if unknown:
        parser.error(f"--assignors: {', '.join(sorted(unknown))} is not of {', '.join(ASSIGNORS)}")
    protocols = arguments.protocols.split(",")
    if not set(protocols) <= set(PROTOCOLS):
        parser.error(f"--protocols: {arguments.protocols} is not of {', '.join(PROTOCOLS)}")
    clients = arguments.clients.split(",")
    if not set(clients) <= set(CLIENTS):
        parser.error(f"--clients: {arguments.clients} is not of {', '.join(CLIENTS)}")
    try:
        found = run.comparisons(assignors) if CLASSIC in protocols else []
        modern_found = run.consumer_comparisons(clients) if CONSUMER in protocols else []
    except (BrokerError, RealityError) as error:
        print(f"reality: {error}", file=sys.stderr)
        return 2
    parts = [_head(assignors, protocols, clients), *map(report.show, found)]
    parts += map(consumer_compare.show, modern_found)
    sums = [*map(report.summary, found), *map(consumer_compare.summary, modern_found)]
    text = "\n\n".join([*parts, "\n".join(sums)])
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")
    return not all([one.agrees for one in found] + [one.agrees for one in modern_found])


def _head(assignors: list[str], protocols: list[str], clients: list[str]) -> str:
    (jar,) = LIB.glob("kafka-clients-*.jar")
    version = jar.stem.removeprefix("kafka-clients-")
    where = f"{datetime.now(UTC).date()}, {os.cpu_count()} cores"
    chosen = "" if assignors == list(ASSIGNORS) else f" --assignors {','.join(assignors)}"
    chosen += "" if protocols == list(PROTOCOLS) else f" --protocols {','.join(protocols)}"
    chosen += "" if clients == list(CLIENTS) else f" --clients {','.join(clients)}"
    has_librdkafka = CONSUMER in protocols and LIBRDKAFKA in clients
    return "\n".join(
        [
            f"$ python -m tests.reality{chosen}",
            f"{where}; real: warm consumers and a broker of Kafka {version}",
            *([f"  and consumers of librdkafka {_librdkafka()}"] if has_librdkafka else []),
            f"session.timeout.ms={SESSION_MS} heartbeat.interval.ms={HEARTBEAT_MS} poll({POLL_MS})",
            f"consumer protocol: group.consumer.session.timeout.ms={modern.SESSION_MS}",
            f"  group.consumer.heartbeat.interval.ms={modern.HEARTBEAT_MS}",
            "",
            "Tolerances: heartbeats × (interval + time between two looks at the clock)",
            "  + generations × (timeout of poll + how late it was + four answers), the last two",
            "  measured. A factor of 1 generation is not written. Consumer protocol: for each",
            "  heartbeat that can lie between, its interval and that time; three callbacks, each",
            "  as late as a poll can be.",
        ]
    )


def _librdkafka() -> str:
    import confluent_kafka

    version: str = confluent_kafka.libversion()[0]
    return version


if __name__ == "__main__":
    sys.exit(main())
