# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.weighted_live`: groups with `Weighted` beside the clients' own assignors.

    python -m tests.weighted_live [--minutes M] [--patterns zipf,giant,drift] [--clients …]
    python -m tests.weighted_live --kills N [--clients …]

Starts a broker. For each client two groups read one topic, to which a producer writes with a skew:
one group runs `Weighted`, the other the client's own cooperative-sticky or round-robin. A record
costs a member the time `COST_S`, so a member with more than its share falls behind. Every member is
a process, which reports its partitions and, as a leader, its answers.

    load/bound   the greatest load of a member over the least possible one, mean of all seconds
                 after the first third of the run; loads are the producer's rates
    moves        partitions that changed from one living member to another
    unread       seconds in which a partition had no reader, summed; and the longest of them
    lag p99      records, over all partitions and seconds
    taken        by the leader from an owner: all, in second rounds, without fresh weights

With --kills, a random member of each group is killed N times, another one starts, and the loads
are skewed as in zipf. A third group, `again`, runs the client's own assignor too: it shows how much
two runs of one assignor differ. Each kill hits the same number of all groups' members, the groups
take turns in being first, and the longest unread time after each kill is printed as a distribution;
`alone` is the longest one during which no further member of the group was killed.

Weights are read each 10 s in place of 60 s, frozen for 20 s in place of 60 s, and a rebalance is
requested after 30 s at the earliest. The exit code is 1 if a second round
or a leader without weights took a partition.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import math
import random
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka_rebalance.clients import balance
from kafka_rebalance.errors import ClusterError
from tests.support.broker import Broker
from tests.support.long_polls import poll_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PARTITIONS, MEMBERS, TOPIC = 24, 4, "t"
RATE, COST_S = 240.0, 0.01
"""Records a second in all, and a member's time for one: it can read 1.67 times its even share."""
SESSION_MS = 3000
TURNS_S = {"drift": 40, "slow": 120}
"""After so many seconds, the heavy partitions are others; `drift` outruns three readings."""
CLIENTS = ("kafka-python", "aiokafka")


def rates(pattern: str, passed_s: float) -> list[float]:
    """Returns the records a second of each partition, `passed_s` after the start."""
    if pattern == "giant":
        shares = [6.0 if p == 0 else 4.0 if p % MEMBERS == 1 else 0.5 for p in range(PARTITIONS)]
    else:
        shares = [1 / (1 + p // MEMBERS + 4 * (p % MEMBERS)) for p in range(PARTITIONS)]
    if pattern in TURNS_S:
        turn = int(passed_s // TURNS_S[pattern]) * 3 % PARTITIONS
        shares = shares[turn:] + shares[:turn]
    return [RATE * share / sum(shares) for share in shares]


def strategy(client: str, name: str, server: str) -> Any:
    """Returns an assignor by name; `own` and `again` are the client's own."""
    if client == "aiokafka":
        from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as Own

        from kafka_rebalance.clients import aiokafka as plug_ins
    else:
        from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor as Own

        from kafka_rebalance.clients import kafka_python as plug_ins  # type: ignore[no-redef]

    if name == "weighted":
        return plug_ins.Weighted(balance.Load(server), "budget=20%", rebalance_every=30)
    if name == "cooperative-sticky":
        return getattr(plug_ins, "CooperativeSticky")()  # noqa: B009  # kafka-python's only
    return plug_ins.Range() if name == "range" else Own


def say(**event: Any) -> None:
    print(json.dumps({"at": time.time(), **event}), flush=True)


def record_answers() -> None:
    """Lets a leader report which claimed partitions each of its answers takes."""
    decide = balance.Leading.decide

    def recording(self: Any, group_id: str, topics: Any, members: Any, listed: str) -> Any:
        answer = decide(self, group_id, topics, members, listed)
        claims = defaultdict(set)
        newest = max((one.generation_id or -1 for one in members), default=-1)
        for one in members:
            if (one.generation_id or -1) == newest:
                for tp in one.owned_partitions:
                    claims[tp].add(one.member_id)
        sole = {tp: next(iter(who)) for tp, who in claims.items() if len(who) == 1}
        taken = [tp.partition for tp, who in sole.items() if tp not in set(answer[who])]
        given = sum(map(len, answer.values()))
        names, weights = sorted(one.member_id for one in members), bool(self._last.weights)
        say(led=names, taken=taken, given=given, weights=weights)
        return answer

    balance.Leading.decide = recording  # type: ignore[method-assign, assignment]
    balance.READ_EVERY_S, balance.FREEZE_S = 10.0, 20.0


def member(client: str, server: str, group_id: str, assignors: str) -> None:
    """Runs one member until SIGTERM, which closes it."""
    record_answers()
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    settings = {
        "bootstrap_servers": server,
        "group_id": group_id,
        "partition_assignment_strategy": [
            strategy(client, name, server) for name in assignors.split(",")
        ],
        "auto_offset_reset": "earliest",
        "auto_commit_interval_ms": 1000,
        "session_timeout_ms": SESSION_MS,
        "heartbeat_interval_ms": 500,
        "max_poll_records": 10,
    }
    if client == "aiokafka":
        asyncio.run(_aiokafka(settings, stopping))
        return
    from kafka import ConsumerRebalanceListener, KafkaConsumer

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Any) -> None:
            say(lost=[tp.partition for tp in revoked])

        def on_partitions_lost(self, lost: Any) -> None:
            self.on_partitions_revoked(lost)

        def on_partitions_assigned(self, assigned: Any) -> None:
            say(got=[tp.partition for tp in assigned])

    consumer = KafkaConsumer(**settings)
    consumer.subscribe([TOPIC], listener=Listener())
    poll_until(stopping, consumer, lambda got: time.sleep(COST_S * sum(map(len, got.values()))))


async def _aiokafka(settings: dict[str, Any], stopping: threading.Event) -> None:
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_revoked(self, revoked: Any) -> None:
            say(lost=[tp.partition for tp in revoked])

        async def on_partitions_assigned(self, assigned: Any) -> None:
            say(got=[tp.partition for tp in assigned])

    consumer = AIOKafkaConsumer(**settings)
    await consumer.start()
    consumer.subscribe([TOPIC], listener=Listener())
    while not stopping.is_set():
        records = await consumer.getmany(timeout_ms=200, max_records=10)
        await asyncio.sleep(COST_S * sum(map(len, records.values())))
    await consumer.stop()


class Members:
    """The members of all groups; `events` are their lines, with `group` and `name`."""

    def __init__(self, server: str) -> None:
        self._server = server
        self.events: list[dict[str, Any]] = []
        self.running: dict[str, dict[str, subprocess.Popen[str]]] = defaultdict(dict)
        self._count = 0

    def start(self, client: str, group_id: str, assignors: str) -> None:
        self._count += 1
        name = f"{group_id}-{self._count}"
        command = [sys.executable, "-m", "tests.weighted_live", "--member", client, self._server]
        process = subprocess.Popen(
            [*command, group_id, assignors],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.running[group_id][name] = process
        threading.Thread(target=self._read, args=(group_id, name, process), daemon=True).start()

    def _read(self, group_id: str, name: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout
        for line in process.stdout:
            self.events.append({**json.loads(line), "group": group_id, "name": name})

    def kill(self, group_id: str, number: int) -> None:
        name = list(self.running[group_id])[number]
        process = self.running[group_id].pop(name)
        process.kill()
        process.wait(20)
        self.events.append({"at": time.time(), "killed": True, "group": group_id, "name": name})

    def stop(self, group_id: str, name: str) -> int:
        """Closes a member and returns its process's exit code."""
        process = self.running[group_id].pop(name)
        process.terminate()
        return process.wait(30)

    def close(self) -> None:
        for group in self.running.values():
            for process in group.values():
                process.kill()
                process.wait(20)


class Producer(threading.Thread):
    """Writes records with the rates of a pattern until it is stopped."""

    def __init__(self, server: str, pattern: str) -> None:
        super().__init__(daemon=True)
        self._server, self._pattern = server, pattern
        self.began, self.stopped = time.time(), threading.Event()

    def run(self) -> None:
        from kafka import KafkaProducer

        producer = KafkaProducer(bootstrap_servers=self._server, linger_ms=20)
        due = [0.0] * PARTITIONS
        last = time.time()
        while not self.stopped.wait(0.1):
            now = time.time()
            for p, rate in enumerate(rates(self._pattern, now - self.began)):
                due[p] += rate * (now - last)
                for _ in range(int(due[p])):
                    producer.send(TOPIC, b"x", partition=p)
                due[p] %= 1
            last = now
        producer.close(timeout=5)


class Seen(NamedTuple):
    """The figures of one group; times are in seconds."""

    over_bound: float
    moves: int
    unread: float
    longest: tuple[float, ...]
    alone: float
    shared: float
    lag: int
    rebalances: int
    taken: int
    in_second: int
    without_weights: int


def judged(
    events: Sequence[Mapping[str, Any]], lags: Sequence[int], pattern: str, began: float, end: float
) -> Seen:
    readers: list[set[str]] = [set() for _ in range(PARTITIONS)]
    last_reader: list[str | None] = [None] * PARTITIONS
    since: list[float | None] = [None] * PARTITIONS
    killed = 0.0
    moves, unread, longest, alone, shared, ratios = 0, 0.0, [0.0], 0.0, 0.0, []
    dead: set[str] = set()
    tick = began + (end - began) / 3
    previous = None
    for event in [*sorted(events, key=lambda one: one["at"]), {"at": end}]:
        at = event["at"]
        while tick < min(at, end):
            ratios.append(_over_bound(readers, pattern, tick - began))
            tick += 1
        if previous is not None:
            shared += (at - previous) * sum(len(who) > 1 for who in readers)
        previous, name = at, event.get("name", "")
        lost = range(PARTITIONS) if "killed" in event else event.get("lost", ())
        if "killed" in event:
            dead.add(name)
            longest.append(0.0)
            killed = at
        for p in lost:
            if readers[p] == {name}:
                since[p] = at
            readers[p].discard(name)
        for p in event.get("got", ()) if name not in dead else ():
            if not readers[p] and since[p] is not None:
                unread += at - since[p]
                longest[-1] = max(longest[-1], at - since[p])
                alone = max(alone, at - since[p] if killed <= since[p] else 0.0)
            moves += last_reader[p] not in (None, name) and last_reader[p] not in dead
            readers[p].add(name)
            last_reader[p] = name
    led = [event for event in sorted(events, key=lambda one: one["at"]) if "led" in event]
    second = [
        len({*now["taken"]} - {*was["taken"]})  # without those of a member that missed `was`
        for was, now in itertools.pairwise(led)
        if was["led"] == now["led"] and was["given"] < PARTITIONS
    ]
    p99 = sorted(lags)[int(len(lags) * 0.99)] if lags else 0
    return Seen(
        sum(ratios) / len(ratios) if ratios else math.nan, moves, unread, tuple(longest),
        alone, shared,
        p99,
        len(led), sum(len(one["taken"]) for one in led), sum(second),
        sum(len(one["taken"]) for one in led if not one["weights"]),
    )  # fmt: skip


def _over_bound(readers: Sequence[set[str]], pattern: str, passed_s: float) -> float:
    now = rates(pattern, passed_s)
    loads: dict[str, float] = defaultdict(float)
    for p, who in enumerate(readers):
        for name in who:
            loads[name] += now[p]
    return max(loads.values(), default=0.0) / max(sum(now) / MEMBERS, max(now))


def play(
    server: str, pattern: str, clients: Sequence[str], kinds: Sequence[str],
    act: Callable[[Members], None],
) -> bool:  # fmt: skip
    """Plays one pattern, a group of each kind and client; returns whether leaders were right."""
    from kafka import KafkaAdminClient

    from kafka_rebalance.live.committed_offsets import group_lags

    with KafkaAdminClient(bootstrap_servers=server) as admin:
        admin.create_topics({TOPIC: {"num_partitions": PARTITIONS}}, wait_for_metadata=True)
    members, producer = Members(server), Producer(server, pattern)
    groups = {f"{one}-{kind}": one for one in clients for kind in kinds}
    lags: dict[str, list[int]] = defaultdict(list)
    try:
        for _ in range(MEMBERS):
            for group_id, client in groups.items():
                members.start(client, group_id, group_id.rpartition("-")[2])
        producer.start()
        stopped = threading.Event()

        def watch() -> None:
            while not stopped.wait(1.0):
                with contextlib.suppress(ClusterError):  # until all groups have a coordinator
                    for group_id, found in group_lags(server, dict.fromkeys(groups)).items():
                        lags[group_id] += found.values()

        watching = threading.Thread(target=watch, daemon=True)
        watching.start()
        act(members)
        end = time.time()
        stopped.set()
        watching.join(20)
    finally:
        members.close()
        producer.stopped.set()
        producer.join(20)
    right = True
    for group_id in groups:
        events = [one for one in members.events if one["group"] == group_id]
        seen = judged(events, lags[group_id], pattern, producer.began, end)
        right &= not (seen.in_second or seen.without_weights)
        print(
            f"{pattern:6} {group_id:22}",
            *_shown(seen, not group_id.endswith("weighted")),
            flush=True,
        )
    return right


def _shown(seen: Seen, own: bool) -> list[str]:
    shown = [
        f"load/bound {seen.over_bound:.2f}", f"moves {seen.moves}",
        f"unread {seen.unread:.1f} s, longest {_distribution(seen.longest)}",
        f"alone {seen.alone:.2f} s", f"read twice {seen.shared:.1f} s", f"lag p99 {seen.lag}",
    ]  # fmt: skip
    return shown if own else [
        *shown, f"leader's answers {seen.rebalances}: taken {seen.taken},",
        f"in second rounds {seen.in_second}, without weights {seen.without_weights}",
    ]  # fmt: skip


def _distribution(longest: Sequence[float]) -> str:
    """Returns the quantiles of the longest unread times after each kill; the first is before it."""
    after = sorted(longest[1:])
    if not after:
        return f"{longest[0]:.2f} s"
    shown = [f"{after[int(len(after) * q)]:.2f}" for q in (0.5, 0.9, 0.99)]
    return f"p50 {shown[0]}, p90 {shown[1]}, p99 {shown[2]}, max {after[-1]:.2f} s"


def waiting(minutes: float) -> Callable[[Members], None]:
    return lambda _: time.sleep(60 * minutes)


def killing(count: int, seed: int) -> Callable[[Members], None]:
    """Returns what kills a member of each group `count` times and starts another one."""

    def act(members: Members) -> None:
        rng = random.Random(seed)
        time.sleep(15)
        groups = list(members.running)
        for _ in range(count):
            groups.append(groups.pop(0))
            number = rng.randrange(MEMBERS)
            for group_id in groups:
                members.kill(group_id, number)
            time.sleep(rng.uniform(0, 2 * SESSION_MS / 1000))
            for group_id in groups:
                client, _, assignor = group_id.rpartition("-")
                members.start(client, group_id, assignor)
            time.sleep(SESSION_MS / 1000)

    return act


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--patterns", default="zipf,giant,drift")
    parser.add_argument("--clients", default=",".join(CLIENTS))
    parser.add_argument("--kills", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--member", nargs=4)
    given = parser.parse_args()
    if given.member:
        member(*given.member)
        return 0
    clients = given.clients.split(",")
    right = True
    for pattern in ["zipf"] if given.kills else given.patterns.split(","):
        with Broker() as broker:
            act = killing(given.kills, given.seed) if given.kills else waiting(given.minutes)
            kinds = ("own", "again", "weighted") if given.kills else ("own", "weighted")
            right &= play(broker.bootstrap_server, pattern, clients, kinds, act)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
