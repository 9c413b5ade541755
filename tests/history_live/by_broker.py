# SPDX-License-Identifier: Apache-2.0
"""Rebalances of known causes in groups that brokers assign (KIP-848, 932, 1071), and their judge.

In each step, each group has one random change; then all groups settle. The script knows which
causes a change must have, so each recorded epoch is compared with those of the change under way. A
member that will be killed has a process of its own: a closed Java consumer leaves its group.
"""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from kafka.admin import ConfigResource

from kafka_rebalance.history.all_groups import rebalance_history
from kafka_rebalance.history.coordinator_log import read_coordinator_log
from kafka_rebalance.history.log_causes import with_log
from kafka_rebalance.history.recorded import RecordedRebalance
from kafka_rebalance.history.records import OffsetsRecord
from kafka_rebalance.live import group_sessions, offsets_records
from kafka_rebalance.live.broker_groups import STANDBY_REPLICAS
from kafka_rebalance.live.cluster import admin_client
from tests.modern_live import __main__ as modern_live
from tests.modern_live.judge import await_topics, settled
from tests.modern_live.members import JAVA, LIBRDKAFKA, Client, Librdkafka, Members, for_java
from tests.support.broker import LIB_STREAMS, Broker
from tests.support.live_members import JavaMembers
from tests.support.member_processes import MemberProcesses

from .judge import RIGHT, UNKNOWN, WRONG
from .run import LOGGERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from multiprocessing.connection import Connection

SESSION_MS = 15_000
PROPERTIES = modern_live.PROPERTIES | {
    f"group.{kind}.{limit}session.timeout.ms": str(SESSION_MS)
    for kind in ("consumer", "share", "streams")
    for limit in ("min.", "")
}
PRODUCE_S = 0.2
REST_S = 2.5
"""Longer than two intervals of commits, and than the assignment interval."""

COMMIT_MS = 1_000
SHARE, STREAMS = "share", "streams"
KINDS = {
    "java": (JAVA,),
    "librdkafka": (LIBRDKAFKA,),
    "mixed": (JAVA, LIBRDKAFKA),
    "static": (JAVA,),
    "converted": (JAVA,),
    "share": (SHARE,),
    "streams": (STREAMS,),
}
_CHANGES = {
    "static": ("static restart", "grow", "subscribe", "static away", "join", "kill"),
    "share": ("join", "leave", "kill", "bounce", "grow", "subscribe"),
    "streams": ("join", "leave", "kill", "bounce", "standby"),
}
_OTHER_CHANGES = ("join", "leave", "kill", "bounce", "grow", "subscribe", "assignor")
_NEW_TOPICS = ("start", "grow", "subscribe", "join")
MISSING = "not recorded"
BOTH = "both named"
_NOT_KNOWN = ("topics changed",)
_EITHER = ("left", "timed out")
"""What the cause "gone" stands for."""

_BY_THE_WAY = {
    "share": ("partitions ready",),
    "streams": ("topics changed", "partitions added", "settings changed"),
}
"""Causes of further epochs, of which the script does not know how many come: share state is
initialised, and internal topics are created."""


@dataclass(frozen=True)
class Committing(Client):
    """A client that commits each second; with `alone`, in a process of its own."""

    alone: bool = False

    @property
    def configs(self) -> dict[str, str]:
        return super().configs | {"auto.commit.interval.ms": str(COMMIT_MS)}


class Cast(Members):
    """The members of a run: those of share and of streams groups, and killed ones, too."""

    def __init__(self, bootstrap_server: str, directory: Path) -> None:
        super().__init__(bootstrap_server, directory)
        self._directory = directory
        self._jvms: dict[str, JavaMembers] = {}
        self._logs = itertools.count()
        self._processes = MemberProcesses(run_librdkafka)

    def _jvm(self, client: Committing) -> JavaMembers:
        name = client.name if client.alone else client.library
        if name not in self._jvms:
            log = self._directory / f"{next(self._logs)}.log"
            first = [LIB_STREAMS] if client.library == STREAMS else []
            program = "Consumers" if client.library == JAVA else "BrokerAssigned"
            self._jvms[name] = JavaMembers(self.server, log, program, first)
        return self._jvms[name]

    def start(self, client: Client) -> None:
        assert isinstance(client, Committing)
        if client.library == LIBRDKAFKA and client.alone:
            self._processes.start(client.name, client, self.server)
            return
        if client.library not in (SHARE, STREAMS) and not client.alone:
            super().start(client)
            return
        new = for_java(client) | {"kind": client.library, "threads": 1}
        new |= {"state_dir": str(self._directory / client.name), "stateful": client.topics[:1]}
        if client.library in (SHARE, STREAMS):
            del new["configs"]
        self._jvm(client).send(add=[new], wait=False)

    def close(self, client: Client) -> None:
        assert isinstance(client, Committing)
        if client.library == LIBRDKAFKA and client.alone:
            self._processes.close(client.name)
            return
        if client.library not in (SHARE, STREAMS) and not client.alone:
            super().close(client)
            return
        self._jvm(client).send(close=[client.name], wait=False)
        if client.alone:
            self._jvms.pop(client.name).close()

    def kill(self, client: Client) -> None:
        assert isinstance(client, Committing)
        if client.library == LIBRDKAFKA and client.alone:
            self._processes.kill(client.name)
            return
        if not client.alone:
            super().kill(client)
            return
        jvm = self._jvms.pop(client.name)
        os.kill(jvm.pid, signal.SIGKILL)
        jvm.close()

    def subscribe(self, client: Client) -> None:
        assert isinstance(client, Committing)
        if client.library == LIBRDKAFKA and client.alone:
            self._processes.subscribe(client.name, client.topics)
        elif client.library not in (SHARE, STREAMS) and not client.alone:
            super().subscribe(client)
        else:
            self._jvm(client).send(subscribe={client.name: client.topics}, wait=False)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._processes.kill_all()
        for jvm in self._jvms.values():
            jvm.close()


def run_librdkafka(pipe: Connection, client: Committing, server: str) -> None:
    """Runs a consumer in this process until the command "close"."""
    member = Librdkafka(client, server)
    while (command := pipe.recv())[0] != "close":
        member.subscribe(command[1])
    member.close()


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
    clients: list[Committing] = field(default_factory=list)
    away: list[Committing] = field(default_factory=list)
    standby: int = 0


class Run:
    """Plays the groups on a broker, and keeps what it did in `acted`."""

    def __init__(self, members: Cast, random: Random) -> None:
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
            # The classic group's own rebalances are judged elsewhere.
            causes = ("started", "joined", "joined") if protocol == "consumer" else ()
            self._act(group, "start", causes, starts=clients)
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
            causes = ("converted", "rejoined") if is_first else ("left", "rejoined")
            self._act(group, "convert", causes, closes=[one], starts=[new])
            return
        kind = self._random.choice(_CHANGES.get(group.name, _OTHER_CHANGES))
        if kind == "kill":
            alone = [one for one in group.clients if one.alone]
            kind, one = ("kill", alone[0]) if alone else ("join", one)
        if kind == "join" or len(group.clients) < 2:
            back = bool(group.away) and self._random.random() < 0.5
            new = group.away.pop() if back else self._client(group, "consumer")
            new = replace(new, alone=self._random.random() < 0.5)
            self._act(group, "join", ("rejoined" if back else "joined",), starts=[new])
        elif kind in ("kill", "static away"):
            self._act(group, kind, ("timed out",), kills=[one])
        elif kind == "leave":
            self._act(group, kind, ("left",), closes=[one])
        elif kind == "bounce":
            self._act(group, kind, ("left", "rejoined"), closes=[one], starts=[one])
        elif kind == "assignor":
            # If two are named equally often, the group never settles.
            new = replace(one, assignor=None if one.assignor else "range")
            self._act(group, kind, ("left", "rejoined"), closes=[one], starts=[new])
        elif kind == "static restart":
            self._act(group, kind, (kind,), closes=[one], starts=[one])
        elif kind == "standby":
            group.standby = self._random.choice([n for n in range(3) if n != group.standby])
            self._act(group, kind, ("settings changed",), sets=group.standby)
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
        closes: Sequence[Committing] = (),
        kills: Sequence[Committing] = (),
        starts: Sequence[Committing] = (),
        subscribes: Committing | None = None,
        grows: tuple[str, int] | None = None,
        sets: int | None = None,
    ) -> None:
        self.acted.append(Acted(time.time_ns() // 1_000_000, group.name, what, causes))
        for one in [*closes, *kills]:
            (self._members.kill if one in kills else self._members.close)(one)
            group.clients.remove(one)
            if all(one.name != new.name for new in starts):
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
        if sets is not None:
            value = {STANDBY_REPLICAS: str(sets)}
            with admin_client(self._members.server, None) as admin:
                resource = ConfigResource("GROUP", group.name, value)
                admin.alter_configs([resource], incremental=True)

    def _settle(self) -> None:
        began = time.monotonic()
        killed = any(
            one.what in ("kill", "static away", "grow") for one in self.acted[-len(self.groups) :]
        )
        wait = REST_S + (SESSION_MS / 1000 if killed else 0)
        for group in self.groups:
            settled(self._members.server, group.name, len(group.clients))
            for one in group.clients if group.name != "streams" else ():
                await_topics(self._members.server, group.name, one.name, one.topics)
        time.sleep(max(0.0, began + wait - time.monotonic()))
        for group in self.groups:
            settled(self._members.server, group.name, len(group.clients))
        time.sleep(REST_S)

    def _client(self, group: _Group, protocol: str) -> Committing:
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
    """Plays on a broker for about `minutes`; writes the records, the changes and the broker's lines
    to `out` and to files beside it.
    """
    deadline, ended_ms = time.monotonic() + 60 * minutes, 2**62
    with (
        tempfile.TemporaryDirectory() as directory,
        Broker(properties=PROPERTIES, loggers=LOGGERS) as broker,
        Cast(broker.bootstrap_server, Path(directory)) as members,
    ):
        run = Run(members, Random(seed))
        try:
            run.start()
            while time.monotonic() < deadline:
                run.step()
                print(f"{len(run.acted)} changes", flush=True)
        except (TimeoutError, RuntimeError) as error:  # the change under way is not judged
            print(f"ended early: {error}", flush=True)
            ended_ms = run.acted[-len(run.groups)].at_ms
            run.acted = run.acted[: -len(run.groups)]
        records = [
            one for one in offsets_records(broker.bootstrap_server) if one.timestamp_ms <= ended_ms
        ]
        sessions = group_sessions(broker.bootstrap_server)
        lines = broker.log(0, lines=sys.maxsize).splitlines()
    write(out, records, run.acted, lines, sessions)


def write(
    out: Path,
    records: Sequence[OffsetsRecord],
    acted: Sequence[Acted],
    logged: Sequence[str],
    sessions: Mapping[str, int],
) -> None:
    with gzip.open(out, "wt", encoding="utf-8") as lines:
        lines.writelines(f"{as_line(one)}\n" for one in records)
    _beside(out, "sessions.json").write_text(json.dumps(sessions) + "\n", encoding="utf-8")
    script = [vars(one) for one in acted]
    _beside(out, "script.jsonl").write_text(
        "".join(json.dumps(one) + "\n" for one in script), encoding="utf-8"
    )
    with gzip.open(_beside(out, "log.gz"), "wt", encoding="utf-8") as lines:
        lines.writelines(f"{one}\n" for one in logged)


def as_line(one: OffsetsRecord) -> str:
    """Returns a record as a line that `history` reads."""
    value = None if one.value is None else base64.b64encode(one.value).decode()
    key = base64.b64encode(one.key).decode()
    row = {"partition": one.partition, "offset": one.offset, "timestamp": one.timestamp_ms}
    return json.dumps({**row, "key": key, "value": value})


def _beside(out: Path, end: str) -> Path:
    return out.with_name(f"{out.name.partition('.')[0]}.{end}")


def read_script(out: Path) -> list[Acted]:
    lines = _beside(out, "script.jsonl").read_text(encoding="utf-8").splitlines()
    rows = map(json.loads, lines)
    return [Acted(one["at_ms"], one["group"], one["what"], tuple(one["causes"])) for one in rows]


def read_sessions(out: Path) -> dict[str, int]:
    sessions: dict[str, int] = json.loads(_beside(out, "sessions.json").read_text("utf-8"))
    return sessions


def read_lines(out: Path) -> list[str]:
    with gzip.open(_beside(out, "log.gz"), "rt", encoding="utf-8") as lines:
        return list(lines)


class Judged(NamedTuple):
    """The verdict on a cause; `told` is the row that is not right, or the missing cause."""

    group: str
    cause: str
    how: str
    told: str = ""


def judged(
    records: Sequence[OffsetsRecord],
    acted: Sequence[Acted],
    sessions: Mapping[str, int],
    lines: Sequence[str] = (),
) -> Iterator[Judged]:
    """Yields the verdict for each epoch, and for each that is not recorded."""
    history = rebalance_history(records, session_ms=sessions)
    if lines:
        history = with_log(history, read_coordinator_log(lines))
    rows = defaultdict(list)
    for row in history:
        if row.group_type != "classic" or row.cause == "converted":
            rows[row.group_id].append(row)
    for name in dict.fromkeys(one.group for one in acted):
        script = [one for one in acted if one.group == name]
        ends = [one.at_ms for one in script[1:]] + [2**62]
        for one, end_ms in zip(script, ends, strict=True):
            now = [row for row in rows[name] if one.at_ms <= row.time_ms < end_ms]
            yield from _judged(one, now)


def table(found: Sequence[Judged]) -> str:
    """Returns the verdicts by cause, then by group."""
    verdicts = (RIGHT, BOTH, UNKNOWN, WRONG, MISSING)
    lines = [f"{'':<28}{'n':>5}" + "".join(f"{how:>14}" for how in verdicts)]
    for part in (lambda one: one.cause, lambda one: f"group {one.group}", lambda _: "all"):
        for name in sorted({part(one) for one in found}):
            counts = Counter(one.how for one in found if part(one) == name)
            row = "".join(f"{counts[how]:>14}" for how in verdicts)
            lines.append(f"{name:<28}{counts.total():>5}{row}")
    return "\n".join(lines)


def _judged(one: Acted, rows: Sequence[RecordedRebalance]) -> Iterator[Judged]:
    expected = Counter(one.causes)
    for row in rows:
        told = f"{one.what}, epoch {row.generation_id} at {row.time_ms}: {row.causes}"
        if expected[row.cause]:
            expected[row.cause] -= 1
            yield Judged(one.group, row.cause, RIGHT)
        elif row.cause in _BY_THE_WAY.get(one.group, ()) and one.what in _NEW_TOPICS:
            yield Judged(one.group, f"{row.cause} by the way", RIGHT)
        elif row.cause == "gone" and (either := [one for one in _EITHER if expected[one]]):
            expected[either[0]] -= 1
            yield Judged(one.group, either[0], BOTH, told)
        elif row.cause in _NOT_KNOWN and (rest := +expected):
            expected[next(iter(rest))] -= 1
            yield Judged(one.group, next(iter(rest)), UNKNOWN, told)
        else:
            yield Judged(one.group, row.cause, WRONG, told)
    for cause in expected.elements():
        yield Judged(one.group, cause, MISSING, f"{one.what} at {one.at_ms}")
