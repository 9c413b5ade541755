# SPDX-License-Identifier: Apache-2.0
"""`serve` among bad clients: it keeps running in bounded memory, and real consumers notice nothing.

    python -m tests.test_serve_soak --seconds 300

The bad clients send random bytes, requests cut short or with changed bytes, a byte now and then,
and halves of large requests; one opens 5,000 connections. Beside them, in one group, live
consumers of confluent-kafka and aiokafka, and a member by hand. Both consumers commit all the time,
and a lost consumer would cause a rebalance, which the heartbeats of the member by hand show.
kafka-python is not among them: see tests/support/served_consumers.py.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import random
import resource
import socket
import struct
import subprocess
import threading
import time
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import pytest

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")
pytest.importorskip("aiokafka", reason="no aiokafka: pip install -e '.[aiokafka]'")
pytest.importorskip("confluent_kafka", reason="no confluent-kafka: pip install -e '.[confluent]'")

from kafka_rebalance.serve.connections import SMALL, Limits
from kafka_rebalance.wire import consumer_protocol as wire
from tests.parity.wire import Connection, encoded, message
from tests.support.served_broker import REQUESTS, running
from tests.support.served_consumers import GROUP, TOPIC, Aiokafka, Confluent, Consumer
from tests.support.waiting import FAR_S, until

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Generator

PARTITIONS = 6
CROWD = 5000
MB = 1024 * 1024
SESSION_MS = 60_000
"""No member outlasts its session because the machine is busy."""
MOST_MB = 256
"""The bound of the server's growth: 64 MiB of large requests, what 500 connections need, and closed
connections until Python's next full collection (in 900 s, 195 at most, and level from 700 s on).
"""
VALID = {
    **dict.fromkeys(("metadata", "find_coordinator", "join_group", "heartbeat", "list_groups"), 4),
    **dict.fromkeys(("offset_fetch", "list_offsets"), 6),
    **dict.fromkeys(("consumer_group_heartbeat", "share_group_heartbeat", "share_fetch"), 1),
    **dict.fromkeys(("streams_group_heartbeat", "consumer_group_describe"), 0),
    **dict.fromkeys(("offset_commit", "produce"), 8),
    "fetch": 12,
}
"""The requests that the bad clients cut and change, with their versions."""


# Bad clients --------------------------------------------------------------------------------------


class Attack:
    """Threads of bad clients; `met` counts their connections."""

    def __init__(self, host: str, port: int, seed: int) -> None:
        self.met: Counter[str] = Counter()
        self.failed: list[Exception] = []
        self._address, self._seed = (host, port), seed
        self._ended = threading.Event()
        kinds = (random_bytes, cut_short, changed, slow, greedy, crowd)
        self._threads = [threading.Thread(target=self._live, args=(kind,)) for kind in kinds]

    def __enter__(self) -> Attack:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _live(self, kind: Callable[[Attack, random.Random], None]) -> None:
        rng = random.Random(f"{self._seed}/{kind.__name__}")
        try:
            while not self._ended.is_set():
                with contextlib.suppress(OSError):  # the server ends connections as it should
                    kind(self, rng)
        except Exception as error:
            self.failed.append(error)

    def open(self, kind: str) -> socket.socket:
        self.met[kind] += 1
        return socket.create_connection(self._address, 10)

    def wait(self, seconds: float) -> bool:
        """Returns whether the attack goes on."""
        return not self._ended.wait(seconds)


def valid(rng: random.Random) -> bytes:
    api = rng.choice(list(VALID))
    fields = {**REQUESTS[api], "group_id": f"bad-{rng.randrange(1000)}"}
    return encoded(message(api, VALID[api], **fields), rng.getrandbits(16), "bad")


def random_bytes(attack: Attack, rng: random.Random) -> None:
    with attack.open("random bytes") as one:
        one.sendall(rng.randbytes(rng.choice([1, 4, 8, 100, 5000])))
        attack.wait(0.002)


def cut_short(attack: Attack, rng: random.Random) -> None:
    with attack.open("cut short") as one:
        data = valid(rng)
        one.sendall(data[: rng.randrange(len(data))])
        attack.wait(0.002)


def changed(attack: Attack, rng: random.Random) -> None:
    with attack.open("changed") as one:
        for _ in range(20):
            data = bytearray(valid(rng))
            for _ in range(rng.randint(0, 3)):
                data[rng.randrange(4, len(data))] = rng.randrange(256)
            one.sendall(data)
            attack.wait(0.002)
            one.settimeout(0)
            with contextlib.suppress(BlockingIOError):
                while one.recv(SMALL):
                    pass
            one.settimeout(10)


def slow(attack: Attack, rng: random.Random) -> None:
    """Slow loris: every 0.2 s, each of 100 connections sends one byte."""
    with ExitStack() as stack:
        ones = [(stack.enter_context(attack.open("slow")), valid(rng)) for _ in range(100)]
        at = 0
        while attack.wait(0.2) and at < 100:
            for one, data in ones:
                with contextlib.suppress(OSError):
                    one.sendall(data[at % len(data) :][:1])
            at += 1


def greedy(attack: Attack, rng: random.Random) -> None:
    """40 connections each announce 4 MiB and send half: more than `large_bytes` in all."""
    size = Limits().request_bytes
    with ExitStack() as stack:
        for _ in range(40):
            one = stack.enter_context(attack.open("greedy"))
            with contextlib.suppress(OSError):
                one.sendall(struct.pack(">i", size) + bytes(size // 2))
        attack.wait(rng.random())


def crowd(attack: Attack, rng: random.Random) -> None:
    """Opens up to 5,000 connections; about half of them are silent."""
    with ExitStack() as stack:
        for _ in range(CROWD):
            with contextlib.suppress(OSError):
                one = stack.enter_context(attack.open("crowd"))
                if rng.random() < 0.5:
                    one.sendall(valid(rng))
            if not attack.wait(0.001):
                return
        attack.wait(2)


# Consumers beside them ----------------------------------------------------------------------------


class Beside(NamedTuple):
    commits: int
    heartbeats: int


def by_hand(host: str, port: int) -> tuple[Connection, dict[str, object]]:
    """Joins GROUP as one more member, and returns the fields of its heartbeats."""
    one = Connection(host, port, "hand")
    subscription = wire.encode_subscription(wire.Subscription((TOPIC,)))
    asked = {
        **REQUESTS["join_group"],
        "session_timeout": SESSION_MS,
        "rebalance_timeout": SESSION_MS,
    }
    asked |= {
        "group_id": GROUP,
        "member_id": "",
        "protocols": [{"name": "range", "metadata": subscription}],
    }
    joined = one.ask("join_group", 3, **asked)
    me = {"group_id": GROUP, "generation_id": joined.generation_id, "member_id": joined.member_id}
    one.ask("sync_group", 2, **me, assignments=[])
    return one, me


def live(host: str, port: int, seconds: float) -> Generator[Beside]:
    """Yields when all are members, then when the time is over. Any trouble is an error."""
    address = f"{host}:{port}"
    with ExitStack() as stack:
        aiokafka = type("Patient", (Aiokafka,), {"session_ms": SESSION_MS})
        consumers: list[Consumer] = [Confluent(address, "confluent"), aiokafka(address, "aiokafka")]
        for consumer in consumers:
            stack.callback(consumer.close)
            _settled(consumer, range(1, PARTITIONS + 1))
        member, me = by_hand(host, port)
        stack.callback(member.close)
        owned = [min(_settled(consumer, {PARTITIONS // 3})) for consumer in consumers]
        yield Beside(0, 0)
        deadline, count = time.monotonic() + seconds, 0
        while time.monotonic() < deadline or not count:
            count += 1
            for consumer, partition in zip(consumers, owned, strict=True):
                consumer.run(functools.partial(consumer.do_commit, partition, count))
            beat = member.ask("heartbeat", 2, **me)
            assert beat.error_code.name == "none", "the group rebalances"
        (topic,) = member.ask("offset_fetch", 5, group_id=GROUP, topics=None).topics
        offsets = {one.partition_index: one.committed_offset for one in topic.partitions}
        assert offsets == dict.fromkeys(owned, count)
        yield Beside(count * len(consumers), count)


def _settled(consumer: Consumer, counts: Container[int]) -> set[int]:
    """Polls the consumer until it owns one of these numbers of partitions."""
    until(f"{counts} partitions", lambda: len(consumer.owned()) in counts)
    return consumer.owned()


def memory_mb(process: subprocess.Popen[str]) -> float:
    shown = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(process.pid)], capture_output=True, text=True, check=True
    )
    return int(shown.stdout) * 1024 / MB


def soak(seconds: float, seed: int) -> str:
    """Runs `serve` among bad clients for some time; returns the counts of attacks."""
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most_files, 8192), most_files))
    arguments = ("--topic", f"{TOPIC}={PARTITIONS}", "--initial-delay-ms", "100")
    with running(*arguments) as (process, host, port):
        living = live(host, port, seconds)
        next(living)
        before = memory_mb(process)
        seen = [before]
        watch = threading.Thread(target=_watch, args=(process, seen, seconds))
        watch.start()
        with Attack(host, port, seed) as attack:
            beside = next(living)
        watch.join()
        living.close()
        seen.append(memory_mb(process))
        with Connection(host, port, "after") as one:
            topics = one.ask("metadata", 7, topics=None, allow_auto_topic_creation=False).topics
        process.terminate()
        _, errors = process.communicate(timeout=FAR_S)
    assert attack.failed == []
    assert TOPIC in [topic.name for topic in topics]  # streams groups make topics of their own
    assert (process.returncode, errors) == (0, "")
    assert max(seen) - before < MOST_MB, seen
    met = ", ".join(f"{kind} {count}" for kind, count in sorted(attack.met.items()))
    return (
        f"{seconds:g} s, seed {seed}: connections: {met}; beside them {beside.commits} commits and "
        f"{beside.heartbeats} heartbeats, no rebalance; memory {before:.0f} MB before, "
        f"{max(seen):.0f} MB at most, {seen[-1]:.0f} MB after"
    )


def _watch(process: subprocess.Popen[str], seen: list[float], seconds: float) -> None:
    for _ in range(int(seconds * 2)):
        time.sleep(0.5)
        if process.poll() is None:
            seen.append(memory_mb(process))


def test_bad_clients_harm_nobody() -> None:
    """`python -m tests.test_serve_soak` does this for 5 minutes."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        shown = soak(3, seed=20)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    kinds = ("random bytes", "cut short", "changed", "slow", "greedy", "crowd")
    assert [kind for kind in kinds if kind not in shown] == []


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(soak(options.seconds, options.seed))


if __name__ == "__main__":
    main()
