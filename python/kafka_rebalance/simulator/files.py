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

Times are durations (`250ms`, `3s`, `5m`). Settings have Kafka's names; those in ms leave out `_ms`.
Errors: GroupError with the field's path.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path
from typing import Any

from kafka_rebalance.coordinator import CoordinatorConfig
from kafka_rebalance.errors import GroupError
from kafka_rebalance.member import ConsumerConfig
from kafka_rebalance.traces import milliseconds

from .network import Network
from .scenario import Happening, Kind, MemberPlan, Scenario, TopicPlan, Work

_WORK = {"process": "process_ms", "start_cost": "start_ms", "stop_cost": "stop_ms"}
_TOP = ("title", "seed", "until", "group_id", "topics", "broker", "network", "members")


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
    _known("", said, (*_TOP, "member", "happening"))
    topics = {name: _topic(name, one) for name, one in said.get("topics", {}).items()}
    if not topics:
        raise GroupError("topics", "there are none")
    members = tuple(
        plan
        for place, one in enumerate(said.get("member", ()))
        for plan in _members(f"member[{place}]", one, said.get("members", {}), tuple(topics))
    )
    if not members:
        raise GroupError("member", "there are none")
    happenings = tuple(
        one
        for place, each in enumerate(said.get("happening", ()))
        for one in _happenings(f"happening[{place}]", each, members)
    )
    return Scenario(
        title=said.get("title", "untitled"),
        topics=topics,
        members=members,
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


def _members(
    path: str, said: Mapping[str, Any], common: Mapping[str, Any], topics: tuple[str, ...]
) -> Iterator[MemberPlan]:
    said = {**common, **said}
    own = ("name", "count", "start", "every", "topics", "static", "parallel", *_WORK)
    settings = {key: value for key, value in said.items() if key not in own}
    config = _settings(path, settings, ConsumerConfig)
    if "partition_assignment_strategy" in config:
        config["partition_assignment_strategy"] = tuple(config["partition_assignment_strategy"])
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
            consumer=ConsumerConfig(**{**config, **instance}),
            topics=tuple(said.get("topics", topics)),
            start_ms=start + number * every,
            work=Work(parallel=said.get("parallel", 1), **work),
        )


def _happenings(
    path: str, said: Mapping[str, Any], members: tuple[MemberPlan, ...]
) -> Iterator[Happening]:
    _known(path, said, ("at", "do", "members", "every", "for", "topic", "partitions"))
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
    pattern = said.get("members", "")
    names = [one.name for one in members if fnmatchcase(one.name, pattern)]
    if not names:
        raise GroupError(f"{path}.members", f"{pattern!r} is no member's name")
    for number, name in enumerate(names):
        when = at + number * every
        if do == "bounce":
            yield Happening(at_ms=when, kind=Kind.STOP, member=name)
            yield Happening(at_ms=when + for_ms, kind=Kind.START, member=name)
        else:
            yield Happening(at_ms=when, kind=Kind(do), member=name, for_ms=for_ms)


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
