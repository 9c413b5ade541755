# SPDX-License-Identifier: Apache-2.0
"""Serves metrics of all groups as OpenMetrics: rebalances by cause, moves, partitions without a
reader, members, idle ones, findings, storms. Reads the records of __consumer_offsets if the user
has Read on this topic, else descriptions. Changes nothing on the cluster. Needs the extra
`exporter`.
"""

import argparse
import signal
import sys
from functools import partial

from kafka_rebalance.errors import ClusterError, GroupError, MissingExtra
from kafka_rebalance.report.text.sentences import print_note

from . import DONE
from .options import (
    PORT,
    add_cluster,
    add_patterns,
    add_table,
    cluster_configs,
    fits,
    seconds,
    whole,
)


def add_options(parser: argparse.ArgumentParser) -> None:
    add_cluster(parser)
    add_patterns(parser)
    options = """
    --host: address (default: %(default)s)
    --port: 0: any free one (default: %(default)s)
    --every S: seconds between two descriptions of all groups (default: %(default)g)
    --max-groups N: metrics of at most N groups (default: %(default)s)
    """
    add_table(
        parser,
        options,
        host={"default": "127.0.0.1"},
        port={"type": PORT, "default": 9409},
        every={"type": seconds, "default": 30.0},
        max_groups={"type": whole(1), "default": 10_000},
    )


def run(args: argparse.Namespace) -> int:
    """Serves until SIGTERM (SystemExit), Ctrl-C (KeyboardInterrupt) or an unexpected error."""
    try:
        from kafka_rebalance.follow.exporter import Exporter
        from kafka_rebalance.follow.server import http_server
    except ImportError as error:
        raise MissingExtra("exporter", "exporter") from error
    ended: list[Exception] = []

    def problem(what: str, error: Exception | None) -> None:
        if error is None or isinstance(error, ClusterError):
            print_note(f"{what}: {'read again' if error is None else error}")
        else:
            ended.append(error)
            server.shutdown()

    exporter = Exporter(
        args.bootstrap_server,
        configs=cluster_configs(args),
        is_wanted=partial(fits, patterns=args.group),
        every_s=args.every,
        most_groups=args.max_groups,
        on_problem=problem,
    )
    try:
        server = http_server(exporter, args.host, args.port)
    except OSError as error:
        why = f"cannot listen at {args.host}: {error.strerror}"
        raise GroupError("--host, --port", why) from None
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(DONE))
    try:
        exporter.followed.start()
        host = f"[{args.host}]" if ":" in args.host else args.host
        print(f"listening on http://{host}:{server.server_port}/metrics; Ctrl-C ends it")
        sys.stdout.flush()
        server.serve_forever()
    finally:
        exporter.followed.stop()
        signal.signal(signal.SIGTERM, before)
        server.server_close()
    raise ended[0]
