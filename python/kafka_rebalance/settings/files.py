# SPDX-License-Identifier: Apache-2.0
"""Reads files of client settings, and judges them by the rules.

    *.properties     Java's form, one client; other names than *.json, *.yaml and *.yml, too
    *.json, *.yaml   one mapping for each client; several documents (YAML) or a list (JSON)

A mapping whose names have dots is read as librdkafka's (`confluent_kafka.Consumer({…})`), one with
underscores as kafka-python's arguments; `library` overrides both.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.errors import GroupError, MissingExtra
from kafka_rebalance.group.field_paths import a_type
from kafka_rebalance.group.line_files import read_text
from kafka_rebalance.live.java_properties import parse_properties

from .clients import SETTINGS, Client, Library
from .rule import Breach, Surroundings, broken
from .rules import RULES

_MOST_CLIENTS = 1_000
_KEY = re.compile(r"""[ \t{,-]*["']?([A-Za-z][\w.]*)["']?[ \t]*[:=]""")
_BROKER = (
    "group.min.session.timeout.ms", "group.max.session.timeout.ms", "group.consumer.assignors",
)  # fmt: skip


def read_clients(file: str, library: Library | None = None) -> Iterator[Client | GroupError]:
    """Yields the clients of a file; a document that is wrong yields its error, with its path.

    So does a file that is too long or not UTF-8. Errors: OSError; MissingExtra without PyYAML.
    """
    with Path(file).open("rb") as source:
        try:
            text = read_text(source, "settings", file)
        except GroupError as error:
            yield GroupError(file, error.problem.removeprefix(f"{file} "))
            return
    forms = {".json": _json, ".yaml": _yaml, ".yml": _yaml}
    form = forms.get(Path(file).suffix.lower())
    read = [parse_properties(text)] if form is None else [*form(text, file)]
    lines = _Lines(text)
    for number, one in enumerate(read[:_MOST_CLIENTS]):
        place = file if len(read) == 1 else f"{file}, documents[{number}]"
        if isinstance(one, GroupError):
            yield one
            continue
        if not isinstance(one, dict):
            yield GroupError(place, f"{a_type(one)} is not a mapping of settings")
            continue
        given = {str(name): value for name, value in one.items()}
        has_dots = any("." in name for name in given)
        named: Library = "java" if form is None else "librdkafka" if has_dots else "kafka-python"
        which = None if len(read) == 1 else number
        client = Client.of(library or named, given, file=file, lines=lines.of(given), number=which)
        if client.given.keys().isdisjoint(SETTINGS):
            problem = "has none of the settings that rules read; write them at the top level"
            yield GroupError(place, problem)
        else:
            yield client
    if len(read) > _MOST_CLIENTS:
        yield GroupError(file, f"has more than {_MOST_CLIENTS} clients; the others are left out")


def judge(clients: Iterable[Client], around: Surroundings) -> Iterator[Breach]:
    """Yields what is wrong with each client, also beside the clients of its group before it.

    Clients without a group.id may be of different groups, so they are not compared.
    """
    before: dict[str, list[Client]] = {}
    for client in clients:
        of_group = before.setdefault(client["group.id"], []) if client["group.id"] else []
        beside = around._replace(others=tuple(of_group))
        yield from filter(None, (broken(rule, client, beside) for rule in RULES))
        of_group.append(client)


def read_broker(file: str) -> CoordinatorConfig:
    """Returns the settings of a broker's `server.properties` that the rules read.

    Errors: GroupError with the name of the setting.
    """
    with Path(file).open("rb") as source:
        given = parse_properties(read_text(source, "settings", file))
    found: dict[str, Any] = {}
    for name in given.keys() & {*_BROKER}:
        value: Any = given[name]
        if name.endswith(".ms"):
            if not re.fullmatch(r"[0-9]{1,10}", value):
                raise GroupError(f"{file}: {name}", f"{value!r} is not a number of ms")
            value = int(value)
        else:  # classes of one's own are not known here, so they are left out
            names = [one.strip() for one in value.split(",")]
            value = tuple(one for one in names if one in ("uniform", "range")) or ("uniform",)
        found[name.replace(".", "_")] = value
    return CoordinatorConfig(**found)


def _json(text: str, file: str) -> Iterable[Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return [GroupError(file, f"is not JSON: {error}")]
    return value if isinstance(value, list) else [value]


def _yaml(text: str, file: str) -> Iterator[Any]:
    try:
        import yaml
    except ImportError:
        raise MissingExtra("Settings in YAML", "rollout") from None
    each, number = yaml.safe_load_all(text), 0
    while True:
        try:
            one = next(each)
        except StopIteration:
            return
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            mark = getattr(error, "problem_mark", None)
            where = "" if mark is None else f" at line {mark.line + 1}"
            why = getattr(error, "problem", None) or type(error).__name__
            yield GroupError(f"{file}, documents[{number}]", f"is not YAML{where}: {why}")
            return
        number += 1
        if one is not None:
            yield one


class _Lines:
    """The lines of the names in a file; each client takes the first that is left of each name."""

    def __init__(self, text: str) -> None:
        self._left: dict[str, list[int]] = {}
        for number, line in enumerate(text.split("\n"), 1):
            if found := _KEY.match(line):
                self._left.setdefault(found[1], []).append(number)

    def of(self, names: Iterable[str]) -> dict[str, int]:
        return {name: self._left[name].pop(0) for name in names if self._left.get(name)}
