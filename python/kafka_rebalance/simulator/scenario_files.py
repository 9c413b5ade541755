# SPDX-License-Identifier: Apache-2.0
"""Scenarios as TOML: a small file that says who is there, and what happens.

    title = "Two members become four"
    until = "5m"
    [topics]
    orders = { partitions = 12, records_per_second = 100 }
    [members]                          # of all members; every member may say otherwise
    partition_assignment_strategy = ["cooperative-sticky"]
    session_timeout = "10s"
    start_cost = "50ms"
    [[member]]
    name = "c"                         # count > 1: c0, c1, …
    count = 4
    every = "30s"                      # started one after another
    [[happening]]
    at = "2m"
    do = "bounce"                      # stop, and start again after `for`
    members = "c*"
    every = "20s"
    for = "5s"
    with = { partition_assignment_strategy = ["range"] }        # of the member that comes back

Kafka Connect has `[connectors]` in place of topics, `[workers]` and `[[worker]]` in place of
members; a client creates and deletes connectors, each when the one before was accepted:

    [connectors]
    files = 4                          # tasks
    s = { count = 90, tasks = 10 }     # s0, s1, …
    [[happening]]
    at = "1m"
    do = "create"                      # or "delete"
    connectors = "s*"

A member may have `pattern = "orders-.*"` in place of `topics`. A topic may be created later, and a
broker may be away:

    [topics]
    orders-eu = { partitions = 3, racks = [["a", "b"], ["b", "c"]] }    # of each one's replicas
    [[happening]]
    at = "1m"
    do = "create-topic"                # it is not there before
    topic = "orders-eu"
    [[happening]]
    at = "2m"
    do = "away"                        # a broker; what it leads is read by nobody meanwhile
    for = "20s"
    topics = "orders*"                 # whose partitions it leads, else all; or rack = "b"
    coordinates = false                # it is not the group's coordinator
    unseen = "1s"                      # so long after that its metadata lack those topics

Times are durations (`250ms`, `3s`, `5m`), each with its unit. Settings have Kafka's names; those in
ms leave out `_ms`.
Errors: GroupError with the field's path.
"""

import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path
from typing import Any

from kafka_rebalance.coordinator import CoordinatorConfig
from kafka_rebalance.errors import GroupError
from kafka_rebalance.member import ConsumerConfig, WorkerConfig

from . import typed_values as reading
from .network import Network
from .scenario import Costs, Happening, Kind, MemberConfig, MemberPlan, Scenario, TopicPlan

_WORK = {
    "process": "process_ms",
    "start_cost": "start_cost_ms",
    "stop_cost": "stop_cost_ms",
    "cold": "cold_ms",
}
_PLAN = ("name", "count", "start", "every", "topics", "pattern", "static", "parallel", *_WORK)
_TOP = ("title", "seed", "until", "group_id", "broker", "network")
_TABLES = ("topics", "members", "member", "connectors", "workers", "worker", "happening")
# What each kind of happening takes, besides `at` and `do`; what it cannot do without comes first
_TAKES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "stop": (("members",), ("every",)),
    "kill": (("members",), ("every",)),
    "start": (("members",), ("every", "with")),
    "pause": (("members", "for"), ("every",)),
    "freeze": (("members", "for"), ("every",)),
    "bounce": (("members", "for"), ("every", "with")),
    "create-topic": (("topic",), ()),
    "grow": (("topic", "partitions"), ()),
    "away": (("for",), ("topics", "rack", "coordinates", "unseen")),
    "move": (("for",), ()),
    "create": (("connectors",), ()),
    "delete": (("connectors",), ()),
}
_OF_THE_GROUP = ("group_id", "group_instance_id", "client_rack", "partition_assignment_strategy")
_MOST_MEMBERS = 100_000
_MOST_CONNECTORS = 100_000


def ready() -> list[str]:
    """Names of the scenarios that come with the package."""
    there = resources.files(__package__).joinpath("ready").iterdir()
    return sorted(one.name.removesuffix(".toml") for one in there if one.name.endswith(".toml"))


def load(name: str) -> Scenario:
    """A ready scenario by name, or a file by its path; `-` is standard input."""
    if name == "-":
        return read(sys.stdin.read())
    if name in ready():
        text = resources.files(__package__).joinpath("ready", f"{name}.toml").read_text("utf-8")
    else:
        path = Path(name)
        if not path.is_file():
            there = ", ".join(ready())
            raise GroupError("scenario", f"no file {name!r}, and none of the ready ones: {there}")
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise GroupError("scenario", f"{name} is not text in UTF-8") from None
    return read(text)


def read(text: str) -> Scenario:
    """A scenario from TOML."""
    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise GroupError("scenario", f"not TOML: {error}") from error
    return from_dict(said)


def from_dict(said: Mapping[str, Any]) -> Scenario:
    """A scenario from what TOML says."""
    reading.known("", said, (*_TOP, *_TABLES))
    for name in ("topics", "connectors", "members", "workers", "broker", "network"):
        reading.table(name, said.get(name, {}))
    topics = {name: _topic(name, one) for name, one in said.get("topics", {}).items()}
    connectors = dict(_connectors(said.get("connectors", {})))
    members = (
        *_members("member", said, tuple(topics), ConsumerConfig),
        *_members("worker", said, (), WorkerConfig),
    )
    if not members:
        raise GroupError("member", "there are none, nor workers")
    until = reading.ms("until", said.get("until", "10m"))
    happenings = tuple(
        one
        for place, each in enumerate(reading.tables("happening", said.get("happening", [])))
        for one in _happenings(f"happening[{place}]", each, members, topics, connectors, until)
    )
    broker = reading.settings("broker", said.get("broker", {}), CoordinatorConfig)
    network = reading.settings("network", said.get("network", {}), Network)
    return Scenario(
        title=reading.text("title", said.get("title", "untitled")),
        members=members,
        topics=topics,
        connectors=connectors,
        happenings=happenings,
        seed=reading.whole("seed", said.get("seed", 1)),
        until_ms=until,
        group_id=reading.text("group_id", said.get("group_id", "g")),
        broker=reading.build("broker", CoordinatorConfig, broker),
        network=reading.build("network", Network, network),
    )


def _topic(name: str, said: Any) -> TopicPlan:
    path = f"topics.{reading.text('topics', name)}"
    if isinstance(said, dict):
        plain = {key: value for key, value in said.items() if key != "racks"}
        found = reading.settings(path, plain, TopicPlan)
        if "racks" in said:
            found["racks"] = reading.lists(f"{path}.racks", said["racks"])
        return reading.build(path, TopicPlan, found)
    return reading.build(path, TopicPlan, {"partitions": reading.whole(path, said)})


def _connectors(said: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for name, one in said.items():
        path = f"connectors.{name}"
        if not isinstance(one, dict):
            yield name, reading.whole(path, one, 0, _MOST_CONNECTORS)
            continue
        reading.known(path, one, ("count", "tasks"))
        if "tasks" not in one:
            raise GroupError(f"{path}.tasks", "is missing")
        tasks = reading.whole(f"{path}.tasks", one["tasks"], 0, _MOST_CONNECTORS)
        count = reading.whole(f"{path}.count", one.get("count", 1), 1, _MOST_CONNECTORS)
        for number in range(count):
            yield (f"{name}{number}" if count > 1 else name), tasks


def _members(
    kind: str, said: Mapping[str, Any], topics: tuple[str, ...], of: type[MemberConfig]
) -> Iterator[MemberPlan]:
    """Of `[[member]]` or `[[worker]]`, over what `[members]` or `[workers]` say of all."""
    for place, own in enumerate(reading.tables(kind, said.get(kind, []))):
        yield from _group(f"{kind}[{place}]", {**said.get(f"{kind}s", {}), **own}, topics, of)


def _group(
    path: str, said: Mapping[str, Any], topics: tuple[str, ...], of: type[MemberConfig]
) -> Iterator[MemberPlan]:
    """One table: as many members as it counts."""
    own = {key: value for key, value in said.items() if key not in _PLAN}
    config = reading.settings(path, own, of)
    work = _work(path, said)
    work["parallel"] = reading.whole(f"{path}.parallel", said.get("parallel", 1), 1)
    count = reading.whole(f"{path}.count", said.get("count", 1), 1, _MOST_MEMBERS)
    start = reading.ms(f"{path}.start", said.get("start", "0s"))
    every = reading.ms(f"{path}.every", said.get("every", "0s"))
    if "name" not in said:
        raise GroupError(f"{path}.name", "is missing")
    base = reading.text(f"{path}.name", said["name"])
    is_static = reading.flag(f"{path}.static", said.get("static", False))
    if "group_instance_id" in config and count > 1:
        problem = "is the same for all of them; static = true gives each its own"
        raise GroupError(f"{path}.group_instance_id", problem)
    if is_static and of is WorkerConfig:
        raise GroupError(f"{path}.static", "Connect has no static membership")
    pattern = reading.text(f"{path}.pattern", said["pattern"]) if "pattern" in said else None
    everything = list(topics) if pattern is None else []
    wanted = reading.texts(f"{path}.topics", said.get("topics", everything))
    for name in wanted:
        if name not in topics:
            raise GroupError(f"{path}.topics", f"no topic {name!r} in [topics]")
    if of is ConsumerConfig and not wanted and pattern is None:
        raise GroupError("topics" if not topics else f"{path}.topics", "there are none")
    if of is WorkerConfig and pattern is not None:
        raise GroupError(f"{path}.pattern", "Connect's workers subscribe to no topics")
    for number in range(count):
        name = f"{base}{number}" if count > 1 else base
        instance = {"group_instance_id": name} if is_static else {}
        plan = {
            "name": name,
            "config": reading.build(path, of, {**config, **instance}),
            "topics": wanted,
            "pattern": pattern,
            "start_ms": start + number * every,
            "work": Costs(**work),
        }
        yield reading.build(path, MemberPlan, plan)


def _work(path: str, said: Mapping[str, Any]) -> dict[str, int]:
    return {_WORK[key]: reading.ms(f"{path}.{key}", said[key]) for key in _WORK if key in said}


def member_settings(path: str, said: Mapping[str, Any]) -> tuple[ConsumerConfig, Costs]:
    """Settings of consumers that are told apart from a scenario; times have units."""
    own = {key: value for key, value in said.items() if key not in _WORK}
    for key in own:
        if key in _OF_THE_GROUP:
            raise GroupError(f"{path}.{key}", "is the group's; leave it out")
    config = reading.build(path, ConsumerConfig, reading.settings(path, own, ConsumerConfig))
    return config, Costs(**_work(path, said))


def _happenings(
    path: str,
    said: Mapping[str, Any],
    members: tuple[MemberPlan, ...],
    topics: Mapping[str, TopicPlan],
    connectors: Mapping[str, int],
    until_ms: int,
) -> Iterator[Happening]:
    do = said.get("do")
    if not isinstance(do, str) or do not in _TAKES:
        raise GroupError(f"{path}.do", f"{do!r} is none of {', '.join(_TAKES)}")
    needs, takes = _TAKES[do]
    reading.known(path, said, ("at", "do", *needs, *takes))
    for key in ("at", *needs):
        if key not in said:
            raise GroupError(f"{path}.{key}", f"is missing; {do} needs it")
    at = reading.ms(f"{path}.at", said["at"])
    for_ms = reading.ms(f"{path}.for", said.get("for", "0s"))
    if do == "create-topic":
        topic = reading.text(f"{path}.topic", said["topic"])
        happenings = [Happening(at_ms=at, kind=Kind.CREATE_TOPIC, topic=topic)]
    elif do == "away":
        happenings = [_away(path, said, at, for_ms, topics)]
    elif do == "grow":
        topic = reading.text(f"{path}.topic", said["topic"])
        partitions = reading.whole(f"{path}.partitions", said["partitions"])
        one = Happening(at_ms=at, kind=Kind.GROW, topic=topic, partitions=partitions)
        happenings = [one]
    elif do == "move":
        happenings = [Happening(at_ms=at, kind=Kind.MOVE, for_ms=for_ms)]
    elif "connectors" in needs:
        matching = _matching(path, said, "connectors", list(connectors))
        happenings = [Happening(at_ms=at, kind=Kind(do), connectors=tuple(matching))]
    else:
        happenings = list(_of_members(path, do, said, members))
    last = max(one.at_ms for one in happenings)
    if last > until_ms:
        raise GroupError(f"{path}.at", f"reaches to {last} ms, beyond the end at {until_ms}")
    yield from happenings


def _away(
    path: str, said: Mapping[str, Any], at: int, for_ms: int, topics: Mapping[str, TopicPlan]
) -> Happening:
    """A broker, or a rack of them, is away."""
    if "topics" in said and "rack" in said:
        raise GroupError(f"{path}.rack", "does not go with topics; say one of the two")
    led = _matching(path, said, "topics", list(topics)) if "topics" in said else ()
    return Happening(
        at_ms=at,
        kind=Kind.AWAY,
        for_ms=for_ms,
        topics=tuple(led),
        rack=reading.text(f"{path}.rack", said["rack"]) if "rack" in said else "",
        coordinates=reading.flag(f"{path}.coordinates", said.get("coordinates", True)),
        unseen_ms=reading.ms(f"{path}.unseen", said.get("unseen", "0s")),
    )


def _of_members(
    path: str, do: str, said: Mapping[str, Any], members: tuple[MemberPlan, ...]
) -> Iterator[Happening]:
    """What happens to members, one after another."""
    at = reading.ms(f"{path}.at", said["at"])
    every = reading.ms(f"{path}.every", said.get("every", "0s"))
    for_ms = reading.ms(f"{path}.for", said.get("for", "0s"))
    plans = {one.name: one.config for one in members}
    for number, name in enumerate(_matching(path, said, "members", list(plans))):
        when = at + number * every
        back = _changed(f"{path}.with", plans[name], said.get("with", {}))
        if do == "bounce":
            yield Happening(at_ms=when, kind=Kind.STOP, member=name)
            yield Happening(at_ms=when + for_ms, kind=Kind.START, member=name, config=back)
        else:
            yield Happening(at_ms=when, kind=Kind(do), member=name, for_ms=for_ms, config=back)


def _changed(path: str, config: MemberConfig, said: Any) -> MemberConfig | None:
    """The settings with which a member comes back, where they are others."""
    changes = reading.settings(path, reading.table(path, said), type(config))
    if not changes:
        return None
    try:
        return replace(config, **changes)
    except GroupError as error:
        where = error.path.removesuffix("_ms")
        raise GroupError(f"{path}.{where}", error.problem) from None


def _matching(path: str, said: Mapping[str, Any], key: str, names: list[str]) -> list[str]:
    pattern = reading.text(f"{path}.{key}", said.get(key, ""))
    found = [name for name in names if fnmatchcase(name, pattern)]
    if not found:
        raise GroupError(f"{path}.{key}", f"{pattern!r} is no {key.removesuffix('s')}'s name")
    return found
