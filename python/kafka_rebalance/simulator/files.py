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

Times are durations (`250ms`, `3s`, `5m`). Settings have Kafka's names; those in ms leave out `_ms`.
Errors: GroupError with the field's path.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path
from typing import Any

from kafka_rebalance.coordinator import CoordinatorConfig
from kafka_rebalance.errors import GroupError
from kafka_rebalance.member import ConsumerConfig, WorkerConfig
from kafka_rebalance.traces import milliseconds

from .network import Network
from .scenario import Happening, Kind, MemberConfig, MemberPlan, Scenario, TopicPlan, Work

_WORK = {
    "process": "process_ms",
    "start_cost": "start_ms",
    "stop_cost": "stop_ms",
    "cold": "cold_ms",
}
_PLAN = ("name", "count", "start", "every", "topics", "static", "parallel", *_WORK)
_TOP = ("title", "seed", "until", "group_id", "broker", "network")
_TABLES = ("topics", "members", "member", "connectors", "workers", "worker", "happening")
_HAPPENING = ("at", "do", "members", "every", "for", "topic", "partitions", "connectors", "with")


def ready() -> list[str]:
    """Names of the scenarios that come with the package."""
    there = resources.files(__package__).joinpath("ready").iterdir()
    return sorted(one.name.removesuffix(".toml") for one in there if one.name.endswith(".toml"))


def load(name: str) -> Scenario:
    """A ready scenario by name, or a file by its path."""
    if name in ready():
        text = resources.files(__package__).joinpath("ready", f"{name}.toml").read_text("utf-8")
    else:
        path = Path(name)
        if not path.is_file():
            known = ", ".join(ready())
            raise GroupError("scenario", f"no file {name!r}, and none of the ready ones: {known}")
        text = path.read_text(encoding="utf-8")
    return read(text)


def read(text: str) -> Scenario:
    """A scenario from TOML."""
    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise GroupError("scenario", f"not TOML: {error}") from error
    _known("", said, (*_TOP, *_TABLES))
    topics = {name: _topic(name, one) for name, one in said.get("topics", {}).items()}
    connectors = dict(_connectors(said.get("connectors", {})))
    members = (
        *_members("member", said, tuple(topics), ConsumerConfig),
        *_members("worker", said, (), WorkerConfig),
    )
    if not members:
        raise GroupError("member", "there are none, nor workers")
    if said.get("member") and not topics:
        raise GroupError("topics", "there are none")
    happenings = tuple(
        one
        for place, each in enumerate(said.get("happening", ()))
        for one in _happenings(f"happening[{place}]", each, members, connectors)
    )
    return Scenario(
        title=said.get("title", "untitled"),
        members=members,
        topics=topics,
        connectors=connectors,
        happenings=happenings,
        seed=said.get("seed", 1),
        until_ms=_ms("until", said.get("until", "10m")),
        group_id=said.get("group_id", "g"),
        broker=CoordinatorConfig(**_settings("broker", said.get("broker", {}), CoordinatorConfig)),
        network=Network(**_settings("network", said.get("network", {}), Network)),
    )


def _topic(name: str, said: Any) -> TopicPlan:
    if isinstance(said, int):
        return TopicPlan(partitions=said)
    if not isinstance(said, dict):
        raise GroupError(f"topics.{name}", "a number of partitions, or a table with `partitions`")
    return TopicPlan(**_settings(f"topics.{name}", said, TopicPlan))


def _connectors(said: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for name, one in said.items():
        if isinstance(one, int):
            yield name, one
        elif isinstance(one, dict) and isinstance(one.get("tasks"), int):
            _known(f"connectors.{name}", one, ("count", "tasks"))
            for number in range(one.get("count", 1)):
                yield (f"{name}{number}" if one.get("count", 1) > 1 else name), one["tasks"]
        else:
            raise GroupError(f"connectors.{name}", "a number of tasks, or a table with `tasks`")


def _members(
    kind: str, said: Mapping[str, Any], topics: tuple[str, ...], of: type[MemberConfig]
) -> Iterator[MemberPlan]:
    """Of `[[member]]` or `[[worker]]`, over what `[members]` or `[workers]` say of all."""
    for place, own in enumerate(said.get(kind, ())):
        yield from _group(f"{kind}[{place}]", {**said.get(f"{kind}s", {}), **own}, topics, of)


def _group(
    path: str, said: Mapping[str, Any], topics: tuple[str, ...], of: type[MemberConfig]
) -> Iterator[MemberPlan]:
    """One table: as many members as it counts."""
    config = _config(path, {key: value for key, value in said.items() if key not in _PLAN}, of)
    work = {_WORK[key]: _ms(f"{path}.{key}", said[key]) for key in _WORK if key in said}
    count, start = said.get("count", 1), _ms(f"{path}.start", said.get("start", 0))
    every = _ms(f"{path}.every", said.get("every", 0))
    if "name" not in said:
        raise GroupError(f"{path}.name", "is missing")
    for number in range(count):
        name = f"{said['name']}{number}" if count > 1 else said["name"]
        instance = {"group_instance_id": name} if said.get("static") else {}
        yield MemberPlan(
            name=name,
            config=of(**{**config, **instance}),
            topics=tuple(said.get("topics", topics)),
            start_ms=start + number * every,
            work=Work(parallel=said.get("parallel", 1), **work),
        )


def _config(path: str, said: Mapping[str, Any], of: type[MemberConfig]) -> dict[str, Any]:
    config = _settings(path, said, of)
    if "partition_assignment_strategy" in config:
        config["partition_assignment_strategy"] = tuple(config["partition_assignment_strategy"])
    return config


def _happenings(
    path: str,
    said: Mapping[str, Any],
    members: tuple[MemberPlan, ...],
    connectors: Mapping[str, int],
) -> Iterator[Happening]:
    _known(path, said, _HAPPENING)
    kinds = [kind.value for kind in Kind]
    do = said.get("do")
    if do not in (*kinds, "bounce"):
        raise GroupError(f"{path}.do", f"{do!r} is none of {', '.join([*kinds, 'bounce'])}")
    at, every = _ms(f"{path}.at", said.get("at", 0)), _ms(f"{path}.every", said.get("every", 0))
    for_ms = _ms(f"{path}.for", said.get("for", 0))
    if do == Kind.GROW.value:
        topic, partitions = said.get("topic", ""), said.get("partitions", 0)
        yield Happening(at_ms=at, kind=Kind.GROW, topic=topic, partitions=partitions)
        return
    if do == Kind.MOVE.value:
        yield Happening(at_ms=at, kind=Kind.MOVE, for_ms=for_ms)
        return
    if do in (Kind.CREATE.value, Kind.DELETE.value):
        matching = _matching(path, said, "connectors", list(connectors))
        yield Happening(at_ms=at, kind=Kind(do), connectors=tuple(matching))
        return
    names = _matching(path, said, "members", [one.name for one in members])
    plans = {one.name: one.config for one in members}
    for number, name in enumerate(names):
        when = at + number * every
        if do == "bounce":
            changes = _config(f"{path}.with", said.get("with", {}), type(plans[name]))
            back = replace(plans[name], **changes) if changes else None
            yield Happening(at_ms=when, kind=Kind.STOP, member=name)
            yield Happening(at_ms=when + for_ms, kind=Kind.START, member=name, config=back)
        else:
            yield Happening(at_ms=when, kind=Kind(do), member=name, for_ms=for_ms)


def _matching(path: str, said: Mapping[str, Any], key: str, names: list[str]) -> list[str]:
    pattern = said.get(key, "")
    found = [name for name in names if fnmatchcase(name, pattern)]
    if not found:
        raise GroupError(f"{path}.{key}", f"{pattern!r} is no {key.removesuffix('s')}'s name")
    return found


def _settings(path: str, said: Mapping[str, Any], of: type) -> dict[str, Any]:
    """Settings by the names of a dataclass; durations without their `_ms`."""
    names = {one.name for one in fields(of)}
    found = {}
    for key, value in said.items():
        if f"{key}_ms" in names:
            found[f"{key}_ms"] = _ms(f"{path}.{key}", value)
        elif key in names:
            found[key] = value
        else:
            known = sorted(name.removesuffix("_ms") for name in names)
            raise GroupError(f"{path}.{key}", f"not known; known: {', '.join(known)}")
    return found


def _known(path: str, said: Mapping[str, Any], names: tuple[str, ...]) -> None:
    for key in said:
        if key not in names:
            where = f"{path}.{key}" if path else key
            raise GroupError(where, f"not known; known: {', '.join(names)}")


def _ms(path: str, said: Any) -> int:
    found = milliseconds(str(said))
    if found is None:
        raise GroupError(path, f"{said!r} is no duration; 250ms, 3s, 5m and 1h are")
    return found
