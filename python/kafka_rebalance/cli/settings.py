# SPDX-License-Identifier: Apache-2.0
"""The options of `check` that judge files of client settings."""

import argparse
from collections.abc import Collection

from kafka_rebalance.checks.verdict import Problem, Verdict, of_settings
from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.declared_types import milliseconds
from kafka_rebalance.settings.clients import LIBRARIES, Client
from kafka_rebalance.settings.files import judge, read_broker, read_clients
from kafka_rebalance.settings.rule import Surroundings

KEYS = {"settings": list, "client": str, "processing": str, "restart": str, "broker-settings": str}
"""The keys of the table in TOML -> the types of their values."""
_MOST_MS = 2**31 - 1


def add_settings(parser: argparse.ArgumentParser) -> None:
    options = parser.add_argument_group(
        "settings of clients", "Judged by the rules of docs/settings.md, in place of groups."
    )
    options.add_argument(
        "--settings",
        nargs="+",
        action="extend",
        metavar="FILE",
        help="properties of Java clients; JSON or YAML of librdkafka or of a Python client",
    )
    options.add_argument(
        "--client", choices=LIBRARIES, help="the library (default: by the form of the file)"
    )
    for name, what in (
        ("processing", "the longest time to process what one poll returns, such as 45s"),
        ("restart", "how long a client is away when it restarts"),
    ):
        options.add_argument(f"--{name}", metavar="TIME", help=what)
    options.add_argument(
        "--broker-settings", metavar="FILE", help="server.properties (default: Kafka's defaults)"
    )


def judged(args: argparse.Namespace, known: Collection[tuple[str, str]]) -> Verdict:
    """Returns the verdict on the files of `--settings`."""
    if args.file is not None or args.bootstrap_server is not None or args.changes:
        args.parser.error("--settings: not with FILE, --bootstrap-server or a change")
    broker = CoordinatorConfig()
    if args.broker_settings is not None:
        broker = read_broker(args.broker_settings)
    around = Surroundings(
        _time("--processing", args.processing), _time("--restart", args.restart), broker
    )
    clients: list[Client] = []
    problems: list[Problem] = []
    for file in args.settings:
        for one in read_clients(file, args.client):
            if isinstance(one, Client):
                clients.append(one)
            else:
                text, page = one.problem, "docs/settings.md"
                problems.append(Problem(one.path, "error", "error", text, page, False, file))
    problems += map(of_settings, judge(clients, around))
    count = len(clients) + sum(one.kind == "error" for one in problems)
    return Verdict.of(count, problems, args.fail_on or ("error",), known, "client")


def _time(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    found = milliseconds(text) if text.isascii() and not text.isdigit() else None
    if found is None or not 0 < found <= _MOST_MS:
        raise GroupError(option, f"{text!r} is not a duration; 250ms, 3s, 5m and 1h are")
    return found
