# SPDX-License-Identifier: Apache-2.0
"""Runs `kafka-rebalance serve`: a server with the topics of the command's options."""

import argparse
import asyncio
import contextlib
import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

from kafka_rebalance.coordinator import CoordinatorConfig
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.line_files import MAX_LINE_BYTES, TOO_LONG, read_lines
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.report.text.names import counted
from kafka_rebalance.report.text.sentences import print_sentence
from kafka_rebalance.serve.cluster import Cluster, ServedTopic
from kafka_rebalance.serve.connections import Limits
from kafka_rebalance.serve.server import Server

from .exit_codes import DONE
from .options import MOST_DIGITS


def serve(args: argparse.Namespace) -> int:
    """Serves until SIGTERM, and returns the exit code; Ctrl-C raises KeyboardInterrupt."""
    config = CoordinatorConfig(group_initial_rebalance_delay_ms=args.initial_delay_ms)
    server = Server(
        served_topics(args), host=args.host, port=args.port, config=config, log_dir=args.log_dir
    )
    asyncio.run(_serve(server))
    return DONE


def served_topics(args: argparse.Namespace) -> list[ServedTopic]:
    """Returns the topics of --topics-of and --topic; if both name a topic, --topic decides."""
    cluster = Cluster(())
    for topic, path in _topics(args):
        if topic.name in cluster.topics:
            cluster.remove(topic.name)
        cluster.add(topic, path)
    return list(cluster.topics.values())


def _topics(args: argparse.Namespace) -> Iterator[tuple[ServedTopic, str]]:
    """Yields each topic with its place in the options, for errors about the topic."""
    for number, line in enumerate(_lines(args.topics_of), 1):
        path = f"--topics-of {args.topics_of}:{number}"
        try:
            if line is None:
                raise GroupError("line", TOO_LONG)
            topics = GroupSpec.from_json(line).topics if line.strip() else ()
        except GroupError as error:
            raise GroupError(path, str(error)) from None
        for topic in topics:
            if topic.partitions:  # a member may own partitions of a topic that is gone
                yield ServedTopic(topic.name, topic.partitions, topic.racks), path
    for text in args.topic:
        name, _, count = text.rpartition("=")
        if not name or not count.isascii() or not count.isdigit() or len(count) > MOST_DIGITS:
            raise GroupError("--topic", f"{json.dumps(text)} is not NAME=N, as orders=6")
        yield ServedTopic(name, int(count)), "--topic"


def _lines(path: Path | None) -> Iterator[bytes | None]:
    if path is not None:
        with path.open("rb") as source:
            yield from read_lines(source, MAX_LINE_BYTES)


async def _serve(server: Server) -> None:
    ended = asyncio.Event()
    with contextlib.suppress(NotImplementedError):  # on Windows, loops handle no signals
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with contextlib.AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(server)
        except (socket.gaierror, UnicodeError) as error:  # UnicodeError: no host can have the name
            host = json.dumps(server.connections.host, ensure_ascii=False)
            problem = f"{host} is not an address of this machine, as 127.0.0.1: {error}"
            raise GroupError("--host", problem) from None
        for line in _recovered(server):
            print_sentence(line)
        most = server.connections.limits.connections
        if most < Limits().connections:
            print_sentence(f"at most {most} connections: ulimit -n bounds the open files")
        print(f"listening on {server.address}; Ctrl-C ends it", flush=True)
        await ended.wait()


def _recovered(server: Server) -> Iterator[str]:
    entries, torn = server.recovered
    if entries or torn:
        yield f"{counted(entries, 'record')} read from the log"
    if torn:
        cut = counted(torn, "byte")
        yield f"{cut} of a torn batch cut off at the log's end; nobody was answered"
    yield from server.unreadable
