# SPDX-License-Identifier: Apache-2.0
"""Rebalances of known causes in groups of the consumer protocol (KIP-848), and their judge.

In each step, each group has one random change; then all groups settle. The script knows which
causes a change must have, so each recorded epoch is compared with those of the change under way.
"""

from __future__ import annotations

import base64
import gzip
import json
import tempfile
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from kafka_rebalance.history.all_groups import rebalance_history
from kafka_rebalance.history.records import OffsetsRecord
from kafka_rebalance.live import offsets_records
from tests.modern_live.__main__ import PROPERTIES
from tests.modern_live.judge import await_topics, settled
from tests.modern_live.members import JAVA, LIBRDKAFKA, Client, Members
from tests.support.broker import Broker

from .judge import RIGHT, UNKNOWN, WRONG

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SESSION_MS = int(PROPERTIES["group.consumer.session.timeout.ms"])
PRODUCE_S = 0.2
REST_S = 2.5
"""Longer than two intervals of commits, and than the assignment interval."""

COMMIT_MS = 1_000
KINDS = {
    "java": (JAVA,),
    "librdkafka": (LIBRDKAFKA,),
    "mixed": (JAVA, LIBRDKAFKA),
    "static": (JAVA,),
    "converted": (JAVA,),
}
_NOT_KNOWN = ("gone", "topics changed")


class Committing(Client):
    """A client that commits each second."""

    @property
    def configs(self) -> dict[str, str]:
        return super().configs | {"auto.commit.interval.ms": str(COMMIT_MS)}


@dataclass(frozen=True)
class Acted:
    """A change: when it began, and the causes that its epochs must have, one for each epoch."""

    at_ms: int
    group: str
    what: str
    causes: tuple[str, ...]


@dataclass
class _Group:
    name: str
    topics: dict[str, int]
    clients: list[Client] = field(default_factory=list)
    away: list[Client] = field(default_factory=list)


class Run:
    """Plays the groups on a broker, and keeps what it did in `acted`."""

    def __init__(self, members: Members, random: Random) -> None:
        self.acted: list[Acted] = []
        self._members, self._random = members, random
        self.groups = [_Group(name, {f"{name}.a": 6, f"{name}.b": 3}) for name in KINDS]

    def start(self) -> None:
        for group in self.groups:
            self._members.create(group.topics)
        self._produced = threading.Thread(target=self._produce, daemon=True)
        self._produced.start()
        for group in self.groups:
            protocol = "classic" if group.name == "converted" else "consumer"
            clients = [self._client(group, protocol) for _ in range(3)]
            self._act(group, "start", ("started", "joined", "joined"), starts=clients)
        self._settle()

    def step(self) -> None:
        for group in self.groups:
            self._change(group)
        self._settle()

    def _change(self, group: _Group) -> None:
        classic = [one for one in group.clients if one.protocol == "classic"]
        one = self._random.choice(classic or group.clients)
        is_first = len(classic) == len(group.clients)
        if classic:
            new = replace(one, protocol="consumer", assignor=None)
            # Before the conversion, the leave is a rebalance of the classic group.
            causes = ("left", "converted", "rejoined") if is_first else ("left", "rejoined")
            self._act(group, "convert", causes, closes=[one], starts=[new])
            return
        if one.instance_id is not None:
            kinds = ["static restart", "grow", "subscribe", "kill", "join"]
        else:
            kinds = ["join", "leave", "kill", "bounce", "grow", "subscribe"]
        kind = self._random.choice(kinds)
        if kind == "join" or len(group.clients) < 2:
            back = bool(group.away) and self._random.random() < 0.5
            new = group.away.pop() if back else self._client(group, "consumer")
            self._act(group, "join", ("rejoined" if back else "joined",), starts=[new])
        elif kind == "kill" and one.library == JAVA:
            self._act(group, kind, ("timed out",), kills=[one])
        elif kind in ("leave", "kill"):
            self._act(group, "leave", ("left",), closes=[one])
        elif kind == "bounce":
            self._act(group, kind, ("left", "rejoined"), closes=[one], starts=[one])
        elif kind == "static restart":
            self._act(group, kind, (kind,), closes=[one], starts=[one])
        elif kind == "grow":
            topic = self._random.choice(sorted({t for c in group.clients for t in c.topics}))
            group.topics[topic] += self._random.randint(1, 3)
            self._act(group, kind, ("partitions added",), grows=(topic, group.topics[topic]))
        else:
            every = tuple(sorted(group.topics))
            new = replace(one, topics=every[:1] if one.topics == every else every)
            self._act(group, kind, ("resubscription",), subscribes=new)

    def _act(
        self,
        group: _Group,
        what: str,
        causes: tuple[str, ...],
        *,
        closes: Sequence[Client] = (),
        kills: Sequence[Client] = (),
        starts: Sequence[Client] = (),
        subscribes: Client | None = None,
        grows: tuple[str, int] | None = None,
    ) -> None:
        self.acted.append(Acted(time.time_ns() // 1_000_000, group.name, what, causes))
        for one in [*closes, *kills]:
            (self._members.kill if one in kills else self._members.close)(one)
            group.clients.remove(one)
            if one not in starts and what != "convert":
                group.away.append(one)
        for one in starts:
            self._members.start(one)
            group.clients.append(one)
        if subscribes:
            i = next(i for i, one in enumerate(group.clients) if one.name == subscribes.name)
            group.clients[i] = subscribes
            self._members.subscribe(subscribes)
        if grows:
            self._members.grow(*grows)

    def _settle(self) -> None:
        began = time.monotonic()
        killed = any(one.what in ("kill", "grow") for one in self.acted[-len(self.groups) :])
        wait = REST_S + (SESSION_MS / 1000 if killed else 0)
        for group in self.groups:
            settled(self._members.server, group.name, len(group.clients))
            for one in group.clients:
                await_topics(self._members.server, group.name, one.name, one.topics)
        time.sleep(max(0.0, began + wait - time.monotonic()))
        for group in self.groups:
            settled(self._members.server, group.name, len(group.clients))
        time.sleep(REST_S)

    def _client(self, group: _Group, protocol: str) -> Client:
        number = next(self._members.numbers)
        libraries = KINDS[group.name]
        return Committing(
            f"{group.name}-{number}",
            group.name,
            libraries[number % len(libraries)],
            tuple(sorted(group.topics)),
            protocol=protocol,
            assignor="range" if protocol == "classic" else None,
            instance_id=f"pod-{number}" if group.name == "static" else None,
        )

    def _produce(self) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self._members.server, "log_level": 0})
        firsts = [
            (t, p) for group in self.groups for t, n in group.topics.items() for p in range(n)
        ]
        while True:
            for topic, partition in firsts:
                producer.produce(topic, b"", partition=partition)
            producer.flush(2)
            time.sleep(PRODUCE_S)


def record(seed: int, minutes: float, out: Path) -> None:
    """Plays on a broker for about `minutes`; writes the records and the changes to `out`."""
    deadline = time.monotonic() + 60 * minutes
    with (
        tempfile.TemporaryDirectory() as directory,
        Broker(properties=PROPERTIES) as broker,
        Members(broker.bootstrap_server, Path(directory)) as members,
    ):
        run = Run(members, Random(seed))
        run.start()
        while time.monotonic() < deadline:
            run.step()
            print(f"{len(run.acted)} changes", flush=True)
        ended_ms = time.time_ns() // 1_000_000
        records = [
            one for one in offsets_records(broker.bootstrap_server) if one.timestamp_ms <= ended_ms
        ]
    write(out, records, run.acted)


def write(out: Path, records: Sequence[OffsetsRecord], acted: Sequence[Acted]) -> None:
    with gzip.open(out, "wt", encoding="utf-8") as lines:
        for one in records:
            value = None if one.value is None else base64.b64encode(one.value).decode()
            key = base64.b64encode(one.key).decode()
            row = {"partition": one.partition, "offset": one.offset, "timestamp": one.timestamp_ms}
            lines.write(json.dumps({**row, "key": key, "value": value}) + "\n")
    script = [vars(one) for one in acted]
    script_of(out).write_text("".join(json.dumps(one) + "\n" for one in script), encoding="utf-8")


def script_of(out: Path) -> Path:
    return out.with_name(out.name.partition(".")[0] + ".script.jsonl")


def read_script(out: Path) -> list[Acted]:
    lines = script_of(out).read_text(encoding="utf-8").splitlines()
    rows = map(json.loads, lines)
    return [Acted(one["at_ms"], one["group"], one["what"], tuple(one["causes"])) for one in rows]


def judged(records: Sequence[OffsetsRecord], acted: Sequence[Acted]) -> Iterator[tuple[str, str]]:
    """Yields the true cause and the verdict for each epoch, and for each that is not recorded."""
    rows = defaultdict(list)
    for row in rebalance_history(records, session_ms=SESSION_MS):
        if row.group_type == "consumer" or row.cause == "converted":
            rows[row.group_id].append(row)
    for name in KINDS:
        script = [one for one in acted if one.group == name]
        ends = [one.at_ms for one in script[1:]] + [2**62]
        for one, end_ms in zip(script, ends, strict=True):
            expected = Counter(one.causes)
            for row in rows[name]:
                if not one.at_ms <= row.time_ms < end_ms:
                    continue
                if row.cause in expected:
                    expected[row.cause] -= 1
                    yield row.cause, RIGHT if expected[row.cause] >= 0 else WRONG
                    expected += Counter()
                elif row.cause in _NOT_KNOWN and expected:
                    yield expected.popitem()[0], UNKNOWN
                else:
                    yield f"{one.what}: {row.cause}", WRONG
            for cause in expected.elements():
                yield f"{cause}: not recorded", UNKNOWN
