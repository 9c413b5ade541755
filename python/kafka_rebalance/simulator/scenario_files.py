# SPDX-License-Identifier: Apache-2.0
"""Reads scenarios from TOML files; docs/simulator.md describes all keys.

Times are durations with a unit (`250ms`, `3s`, `5m`). Settings have Kafka's names, written as
`session_timeout` (`session.timeout.ms`). Errors: GroupError with the field's path.
"""

import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path
from typing import Any

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.errors import GroupError, did_you_mean
from kafka_rebalance.frozen import Message
from kafka_rebalance.group.line_files import read_text
from kafka_rebalance.member.config import ConsumerConfig, WorkerConfig

from . import typed_values as reading
from .agenda import Network
from .scenario import Costs, Happening, Kind, MemberConfig, MemberPlan, Scenario, TopicPlan

_TOP = ("title", "seed", "until", "group_id")
_TABLES = ("topics", "members", "member", "connectors", "workers", "worker", "happening")
# Kind of a `[[happening]]` table (an event) -> its required and its optional keys, besides `at` and
# `do`.
_TAKES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "stop": (("members",), ("every",)),
    "kill": (("members",), ("every",)),
    "start": (("members",), ("every", "with")),
    "pause": (("members", "for"), ("every",)),
    "freeze": (("members", "for"), ("every",)),
    "bounce": (("members", "for"), ("every", "with")),
    "create-topic": (("topic",), ()),
    "delete-topic": (("topic",), ()),
    "grow": (("topic", "partitions"), ()),
    "away": (("for",), ("topics", "rack", "coordinates", "unseen")),
    "move": (("for",), ()),
    "create": (("connectors",), ()),
    "delete": (("connectors",), ()),
}
_PATTERNS = ("members", "topics", "connectors")  # keys whose values may be patterns
_OF_THE_GROUP = ("group_id", "group_instance_id", "client_rack", "partition_assignment_strategy")


class _Members(Message):
    """The keys of a `[[member]]` table, except the member's settings and costs."""

    name: str
    count: int = 1
    start_ms: int = 0
    every_ms: int = 0
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    static: bool = False


class _Connectors(Message):
    """The keys of a table in `[connectors]`."""

    tasks: int
    count: int = 1


def ready() -> list[str]:
    """Returns the names of the scenarios that come with the package."""
    there = resources.files(__package__).joinpath("ready").iterdir()
    return sorted(one.name.removesuffix(".toml") for one in there if one.name.endswith(".toml"))


def load(name: str) -> Scenario:
    """Reads a ready scenario by name, or a file by its path; `-` is standard input."""
    if name == "-":
        return read(read_text(sys.stdin.buffer, "scenario", "standard input"))
    if name in ready():
        text = resources.files(__package__).joinpath("ready", f"{name}.toml").read_text("utf-8")
    else:
        path = Path(name)
        if not path.is_file():
            none = f"no file {name!r}, and none of the ready ones{did_you_mean(name, ready())}"
            raise GroupError("scenario", f"{none}; ready are {', '.join(ready())}")
        with path.open("rb") as source:
            text = read_text(source, "scenario", name)
    return read(text)


def read(text: str) -> Scenario:
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise GroupError("scenario", f"not TOML: {error}") from error
    except RecursionError:
        raise GroupError("scenario", "not TOML: nested too deeply") from None
    return from_dict(given)


def from_dict(given: Mapping[str, Any]) -> Scenario:
    reading.known("", given, (*_TOP, "broker", "network", *_TABLES))
    for name in ("topics", "connectors", "members", "workers", "broker", "network"):
        reading.table(name, given.get(name, {}))
    topics = {name: _topic(name, one) for name, one in given.get("topics", {}).items()}
    connectors = dict(_connectors(given.get("connectors", {})))
    members = (
        *_members("member", given, tuple(topics), ConsumerConfig),
        *_members("worker", given, (), WorkerConfig),
    )
    if not members:
        raise GroupError("member", "there are no [[member]] and no [[worker]] tables")
    [own] = reading.settings("", {key: given[key] for key in _TOP if key in given}, Scenario)
    until = own.get("until_ms", 600_000)
    happenings = tuple(
        one
        for place, each in enumerate(reading.tables("happening", given.get("happening", [])))
        for one in _happenings(f"happening[{place}]", each, members, topics, connectors, until)
    )
    scenario = {
        "title": "untitled",
        **own,
        "members": members,
        "topics": topics,
        "connectors": connectors,
        "happenings": happenings,
        "broker": reading.read("broker", given.get("broker", {}), CoordinatorConfig),
        "network": reading.read("network", given.get("network", {}), Network),
    }
    return reading.build("", Scenario, scenario)


def _topic(name: str, given: Any) -> TopicPlan:
    path = f"topics.{reading.text('topics', name)}"
    if isinstance(given, dict):
        return reading.read(path, given, TopicPlan)
    return reading.build(path, TopicPlan, {"partitions": reading.whole(path, given)})


def _connectors(given: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for name, one in given.items():
        path = f"connectors.{name}"
        if not isinstance(one, dict):
            yield name, reading.whole(path, one, *reading.BOUNDS["tasks"])
            continue
        read = reading.read(path, one, _Connectors)
        for number in range(read.count):
            yield (f"{name}{number}" if read.count > 1 else name), read.tasks


def _members(
    kind: str, given: Mapping[str, Any], topics: tuple[str, ...], of: type[MemberConfig]
) -> Iterator[MemberPlan]:
    """Reads `[[member]]` or `[[worker]]` tables; `[members]` or `[workers]` holds the defaults."""
    for place, own in enumerate(reading.tables(kind, given.get(kind, []))):
        yield from _group(f"{kind}[{place}]", {**given.get(f"{kind}s", {}), **own}, topics, of)


def _group(
    path: str, given: Mapping[str, Any], topics: tuple[str, ...], of: type[MemberConfig]
) -> Iterator[MemberPlan]:
    config, work, own = reading.settings(path, given, of, Costs, _Members)
    one = reading.build(path, _Members, own)
    if "group_instance_id" in config and one.count > 1:
        problem = "is one id for several members; static = true makes each name an instance id"
        raise GroupError(f"{path}.group_instance_id", problem)
    if one.static and of is WorkerConfig:
        raise GroupError(f"{path}.static", "Connect has no static membership")
    wanted = one.topics if "topics" in own or one.pattern is not None else topics
    for name in wanted:
        if name not in topics:
            raise GroupError(f"{path}.topics", f"no topic {name!r} in [topics]")
    if of is ConsumerConfig and not wanted and one.pattern is None:
        raise GroupError("topics" if not topics else f"{path}.topics", "there are none")
    if of is WorkerConfig and one.pattern is not None:
        raise GroupError(f"{path}.pattern", "Connect's workers subscribe to no topics")
    for number in range(one.count):
        name = f"{one.name}{number}" if one.count > 1 else one.name
        instance = {"group_instance_id": name} if one.static else {}
        plan = {
            "name": name,
            "config": reading.build(path, of, {**config, **instance}),
            "topics": wanted,
            "pattern": one.pattern,
            "start_ms": one.start_ms + number * one.every_ms,
            "work": Costs(**work),
        }
        yield reading.build(path, MemberPlan, plan)


def member_settings(path: str, given: Mapping[str, Any]) -> tuple[ConsumerConfig, Costs]:
    """Reads the settings and costs given to `simulate --member`; durations have units."""
    for key in given:
        if key in _OF_THE_GROUP:
            raise GroupError(f"{path}.{key}", "is set by the group; leave it out")
    config, work = reading.settings(path, given, ConsumerConfig, Costs, without=("parallel",))
    return reading.build(path, ConsumerConfig, config), Costs(**work)


def _happenings(
    path: str,
    given: Mapping[str, Any],
    members: tuple[MemberPlan, ...],
    topics: Mapping[str, TopicPlan],
    connectors: Mapping[str, int],
    until_ms: int,
) -> Iterator[Happening]:
    do = given.get("do")
    if not isinstance(do, str) or do not in _TAKES:
        raise GroupError(f"{path}.do", f"{do!r} is none of {', '.join(_TAKES)}")
    needs, takes = _TAKES[do]
    reading.known(path, given, ("at", "do", *needs, *takes))
    for key in ("at", *needs):
        if key not in given:
            raise GroupError(f"{path}.{key}", f"is missing; {do} needs it")
    if "topics" in given and "rack" in given:
        raise GroupError(f"{path}.rack", "cannot be combined with topics; give one of the two")
    others = ("do", "every", "with", *_PATTERNS)
    own = {key: value for key, value in given.items() if key not in others}
    [found] = reading.settings(path, own, Happening)
    for key, names in (("topics", topics), ("connectors", connectors)):
        if key in given:
            found[key] = _matching(path, given, key, names)
    if "members" in needs:
        happenings = list(_of_members(path, given, members, **found))
    else:
        happenings = [Happening(kind=Kind(do), **found)]
    last = max(one.at_ms for one in happenings)
    if last > until_ms:
        raise GroupError(f"{path}.at", f"reaches to {last} ms, beyond the end at {until_ms}")
    yield from happenings


def _of_members(
    path: str,
    given: Mapping[str, Any],
    members: tuple[MemberPlan, ...],
    at_ms: int,
    for_ms: int = 0,
) -> Iterator[Happening]:
    every = reading.ms(f"{path}.every", given.get("every", "0s"))
    plans = {one.name: one.config for one in members}
    for number, name in enumerate(_matching(path, given, "members", plans)):
        when = at_ms + number * every
        back = _changed(f"{path}.with", plans[name], given.get("with", {}))
        if given["do"] == "bounce":
            yield Happening(at_ms=when, kind=Kind.STOP, member=name)
            yield Happening(at_ms=when + for_ms, kind=Kind.START, member=name, config=back)
        else:
            kind = Kind(given["do"])
            yield Happening(at_ms=when, kind=kind, member=name, for_ms=for_ms, config=back)


def _changed(path: str, config: MemberConfig, given: Any) -> MemberConfig | None:
    """Returns the settings with which a member restarts; None if they do not change."""
    [changes] = reading.settings(path, reading.table(path, given), type(config))
    return reading.build(path, type(config), {**asdict(config), **changes}) if changes else None


def _matching(
    path: str, given: Mapping[str, Any], key: str, names: Iterable[str]
) -> tuple[str, ...]:
    """Returns the names that match the pattern at `key`. Errors: GroupError if none matches."""
    pattern = reading.text(f"{path}.{key}", given[key])
    found = tuple(name for name in names if fnmatchcase(name, pattern))
    if not found:
        raise GroupError(f"{path}.{key}", f"{pattern!r} is not a {key.removesuffix('s')}'s name")
    return found
