# SPDX-License-Identifier: Apache-2.0
"""Runs one broker behind a TCP port, so that unmodified clients can produce, subscribe, rebalance,
and commit. For tests and studies: without --log-dir, groups, offsets and records are lost when it
ends. Needs the extra `serve`.
"""

import argparse
import asyncio
import contextlib
import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.report.text.sentences import counted, print_sentence

from . import DONE
from .lines import group_lines, required
from .options import PORT, REPEATED, add_table, topic_count, whole

if TYPE_CHECKING:  # `--help` works without the extra
    from kafka_rebalance.serve.cluster import ServedTopic
    from kafka_rebalance.serve.server import Server


def add_options(parser: argparse.ArgumentParser) -> None:
    delay_ms = CoordinatorConfig().group_initial_rebalance_delay_ms
    options = """
    --topic NAME=N: a topic with N partitions
    --topics-of FILE: the topics of the groups in a snapshot
    --host: address (default: %(default)s)
    --port: 0: any free one (default: %(default)s)
    --initial-delay-ms MS: group.initial.rebalance.delay.ms (default: %(default)s)
    --log-dir DIR: keep groups, offsets and records in DIR, and read them
    --auto-create N: a client that asks for an unknown topic makes it, with N partitions
    """
    add_table(
        parser,
        options,
        topic=REPEATED,
        topics_of=Path,
        host={"default": "127.0.0.1"},
        port={"type": PORT, "default": 9092},
        initial_delay_ms={"type": whole(0), "default": delay_ms},
        log_dir=Path,
        auto_create={"type": whole(0), "default": 0},
    )


def run(args: argparse.Namespace) -> int:
    """Serves until SIGTERM, and returns the exit code; Ctrl-C raises KeyboardInterrupt."""
    from kafka_rebalance.serve.server import Server

    config = CoordinatorConfig(group_initial_rebalance_delay_ms=args.initial_delay_ms)
    server = Server(
        served_topics(args),
        host=args.host,
        port=args.port,
        config=config,
        log_dir=args.log_dir,
        auto_create=args.auto_create,
    )
    asyncio.run(_serve(server))
    return DONE


def served_topics(args: argparse.Namespace) -> "list[ServedTopic]":
    """Returns the topics of --topics-of and --topic; --topic decides if both name a topic."""
    from kafka_rebalance.serve.cluster import Cluster, ServedTopic

    cluster = Cluster(())
    for name, partitions, racks, path in _topics(args):
        if name in cluster.topics:
            cluster.remove(name)
        cluster.add(ServedTopic(name, partitions, racks), path)
    return list(cluster.topics.values())


def _topics(args: argparse.Namespace) -> Iterator[tuple[str, int, Any, str]]:
    """Yields for each topic: name, partitions, racks, and the option and line for errors."""
    if args.topics_of is not None:
        with args.topics_of.open("rb") as source:
            for number, line in group_lines(source):
                path = f"--topics-of {args.topics_of}:{number}"
                try:
                    topics = GroupSpec.from_json(required(line)).topics
                except GroupError as error:
                    raise GroupError(path, str(error)) from None
                for topic in topics:
                    if topic.partitions:  # 0: deleted, but a member still owns partitions
                        yield topic.name, topic.partitions, topic.racks, path
    for text in args.topic:
        yield *topic_count(text), None, "--topic"


async def _serve(server: "Server") -> None:
    from kafka_rebalance.serve.connections import Limits

    ended = asyncio.Event()
    with contextlib.suppress(NotImplementedError):  # on Windows, event loops handle no signals
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with contextlib.AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(server)
        except (socket.gaierror, UnicodeError) as error:  # UnicodeError: not a host name
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


def _recovered(server: "Server") -> Iterator[str]:
    entries, torn = server.recovered
    if entries or torn:
        yield f"{counted(entries, 'record')} of groups read from the log"
    if torn:
        cut = counted(torn, "byte")
        yield f"{cut} of torn batches cut off at the ends of files; nobody was answered"
    yield from server.unreadable
