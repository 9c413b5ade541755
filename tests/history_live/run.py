# SPDX-License-Identifier: Apache-2.0
"""Runs a broker and all groups at once, until enough rebalances are recorded; keeps the evidence.

A producer writes to the partitions that exist at first: librdkafka commits only new offsets. To
the topics of quiet groups it writes for a few seconds, then nothing for three to ten sessions.
"""

from __future__ import annotations

import concurrent.futures
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from random import Random

from kafka_rebalance.history.records import OffsetsRecord
from kafka_rebalance.live import offsets_records
from tests.prediction.log import OffsetsLog
from tests.support.broker import Broker

from . import exported
from .cast import KINDS, TOPICS, Cast, Kind
from .members import Members
from .stage import Stage
from .truth import Acted

LOGGERS = ("kafka.coordinator.group", "org.apache.kafka.coordinator.group")
LOOK_AGAIN_S = 0.5
PRODUCE_S = 0.4
WRITES, PAUSES = (3, 12), (40, 120)
"""How many turns in a row the producer writes to a quiet topic, and then does not."""
START_APART_S = 0.4
GROW_S = 20.0


@dataclass(frozen=True)
class Evidence:
    """The results of a run: records and log lines of the broker, and the script of each group."""

    records: list[OffsetsRecord]
    lines: list[str]
    scripts: dict[str, tuple[Acted, ...]]
    problems: dict[str, str]
    seconds: float
    exported: exported.Exported | None = None


def run(
    rebalances: int,
    seed: int,
    *,
    kinds: Sequence[Kind] = KINDS,
    minutes: float,
    with_exporter: bool = False,
) -> Evidence:
    """Plays until `rebalances` rebalances are recorded, or for about `minutes`.

    With an exporter, there are three brokers, and one is killed when half of them are recorded.
    """
    stop = threading.Event()
    casts = [
        Cast(
            kind.name,
            kind,
            {f"{kind.name}-{name}": count for name, count in TOPICS.items()},
            Random(f"{seed}/{kind.name}"),
        )
        for kind in kinds
    ]
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="kafka-rebalance-history-") as directory,
        Broker(
            loggers=LOGGERS,
            brokers=exported.BROKERS if with_exporter else 1,
            properties=exported.REPLICATED if with_exporter else {},
        ) as broker,
        OffsetsLog(broker.bootstrap_server) as log,
        _topics(broker.bootstrap_server, casts, Random(seed)) as topics,
        Members(broker.bootstrap_server, Path(directory)) as members,
        exported.exporter(broker.bootstrap_server) if with_exporter else nullcontext("") as pages,
        concurrent.futures.ThreadPoolExecutor(len(casts)) as pool,
    ):
        stages = [Stage(cast, members, log, topics.grow, stop) for cast in casts]
        futures = []
        for stage in stages:
            futures.append(pool.submit(stage.play))
            time.sleep(START_APART_S)  # all at once would starve the first heartbeats
        deadline, killed = time.monotonic() + 60 * minutes, ""
        try:
            while not all(future.done() for future in futures):
                written = sum(len(log.of(cast.group_id)) - 1 for cast in casts)
                print(f"\r{written} of {rebalances}", end="", file=sys.stderr, flush=True)
                if with_exporter and not killed and 2 * written >= rebalances:
                    killed = f"after {written} rebalances"
                    broker.kill(exported.BROKERS - 1)
                if written >= rebalances or time.monotonic() > deadline:
                    stop.set()
                time.sleep(LOOK_AGAIN_S)
        finally:
            stop.set()
        print(file=sys.stderr)
        for future in futures:
            future.result()
        records = list(offsets_records(broker.bootstrap_server))
        return Evidence(
            records,
            broker.log(0, lines=sys.maxsize).splitlines(),
            {stage.cast.group_id: tuple(stage.acted) for stage in stages},
            {stage.cast.group_id: stage.problem for stage in stages if stage.problem},
            time.monotonic() - began,
            exported.settled(pages, records, killed) if with_exporter else None,
        )


class _Topics:
    """Creates and grows topics, and writes to each partition that they have at first."""

    def __init__(self, server: str, casts: Sequence[Cast], random: Random) -> None:
        from confluent_kafka import Producer
        from kafka import KafkaAdminClient

        self._lock, self._server = threading.Lock(), server
        self._turns = {cast.group_id: _turns(random) for cast in casts if cast.kind.is_quiet}
        self._of_group = {cast.group_id: dict(cast.topics) for cast in casts}
        counts = {name: n for of in self._of_group.values() for name, n in of.items()}
        self._admin = KafkaAdminClient(bootstrap_servers=server)
        self._admin.create_topics(
            {name: {"num_partitions": n} for name, n in counts.items()},
            wait_for_metadata=True,
        )
        self._producer = Producer({"bootstrap.servers": server, "log_level": 0})
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._produce, daemon=True)
        self._thread.start()

    def grow(self, topic: str, partitions: int) -> None:
        from kafka import KafkaAdminClient
        from kafka.errors import InvalidPartitionsError, KafkaError

        deadline = time.monotonic() + GROW_S
        while True:
            try:
                with self._lock:
                    self._admin.create_partitions({topic: partitions})
            except InvalidPartitionsError:  # a request without an answer has made them
                return
            except KafkaError:  # this client sends to the broker that was killed
                if time.monotonic() > deadline:
                    raise
                time.sleep(LOOK_AGAIN_S)
                with self._lock:
                    self._admin = KafkaAdminClient(bootstrap_servers=self._server)
            else:
                return

    def close(self) -> None:
        self._ended.set()
        self._thread.join(10)
        del self._producer
        self._admin.close()

    def _produce(self) -> None:
        while not self._ended.wait(PRODUCE_S):
            for group_id, topics in self._of_group.items():
                if group_id in self._turns and not next(self._turns[group_id]):
                    continue
                for topic, count in topics.items():
                    for partition in range(count):
                        self._producer.produce(topic, b"", partition=partition)
            self._producer.flush(5)


def _turns(random: Random) -> Iterator[bool]:
    """Yields for each turn of the producer whether a quiet topic gets records, without end."""
    while True:
        yield from [True] * random.randint(*WRITES)
        yield from [False] * random.randint(*PAUSES)


@contextmanager
def _topics(server: str, casts: Sequence[Cast], random: Random) -> Iterator[_Topics]:
    topics = _Topics(server, casts, random)
    try:
        yield topics
    finally:
        topics.close()
