# SPDX-License-Identifier: Apache-2.0
"""Reads files of client settings, and judges them by the rules.

    *.properties     one client; Java's, unless a name is only librdkafka's and none is only Java's;
                     also every file whose name does not end in .json, .yaml or .yml
    *.json, *.yaml   one mapping for each client; several documents (YAML) or a list (JSON)

A mapping with a dot in any name counts as librdkafka's (`confluent_kafka.Consumer({…})`), any other
mapping as kafka-python's arguments; `library` overrides both.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.field_paths import a_type
from kafka_rebalance.group.line_files import read_text
from kafka_rebalance.group.yaml_documents import yaml_documents
from kafka_rebalance.live.java_properties import parse_properties

from .clients import ONLY_JAVA, ONLY_LIBRDKAFKA, SETTINGS, Client, Library
from .rule import Breach, Surroundings, broken
from .rules import RULES

_MOST_CLIENTS = 1_000
_KEY = re.compile(r"""[ \t{,-]*["']?([A-Za-z][\w.]*)["']?[ \t]*[:=]""")
_BROKERS_ASSIGNORS = "uniform", "range"


def read_clients(file: str, library: Library | None = None) -> Iterator[Client | GroupError]:
    """Yields the clients of a file and, for a document that is wrong, its error with its path.

    A file that is too long, not UTF-8 or not JSON is one error; so are all clients after
    number 1,000. Errors: OSError; MissingExtra without PyYAML.
    """
    try:
        text = _text(file)
        found = [*_documents(text, Path(file).suffix.lower())]
    except GroupError as error:
        yield GroupError(file, error.problem.removeprefix(f"{file} "))
        return
    lines = dict[str, list[int]]()  # name -> its lines that no client has taken yet
    for number, line in enumerate(text.split("\n"), 1):
        if key := _KEY.match(line):
            lines.setdefault(key[1], []).append(number)
    for path, form, one in found[:_MOST_CLIENTS]:
        place = file if len(found) == 1 else f"{file}, {path}"
        if isinstance(one, GroupError):
            yield GroupError(place, one.problem)
        elif not isinstance(one, dict):
            yield GroupError(place, f"{a_type(one)} is not a mapping of settings")
        else:
            given = {str(name): value for name, value in one.items()}
            at = {name: lines[name].pop(0) for name in given if lines.get(name)}
            has_dots = any("." in name for name in given)
            which = (
                library or _library(form, given) or ("librdkafka" if has_dots else "kafka-python")
            )
            client = Client.of(which, given, file=file, place=place, lines=at)
            none = "has none of the settings that rules read; write them at the top level"
            yield GroupError(place, none) if SETTINGS.keys().isdisjoint(client.names) else client
    if len(found) > _MOST_CLIENTS:
        yield GroupError(file, f"has more than {_MOST_CLIENTS} clients; the others are left out")


def _library(form: Library | None, given: Mapping[str, Any]) -> Library | None:
    is_librdkafkas = ONLY_JAVA.isdisjoint(given) and not ONLY_LIBRDKAFKA.isdisjoint(given)
    return "librdkafka" if form == "java" and is_librdkafkas else form


def _text(file: str) -> str:
    with Path(file).open("rb") as source:
        return read_text(source, "settings", file)


def _documents(text: str, suffix: str) -> Iterator[tuple[str, Library | None, Any]]:
    """Yields each document with its path, and with its library if the form of the file shows it."""
    if suffix == ".json":
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise GroupError("settings", f"is not JSON: {error}") from None
        for number, one in enumerate(value if isinstance(value, list) else [value]):
            yield f"documents[{number}]", None, one
    elif suffix in (".yaml", ".yml"):
        yield from ((path, None, one) for path, one in yaml_documents(text, "Settings in YAML"))
    else:
        yield "", "java", parse_properties(text)


def judge(clients: Iterable[Client], around: Surroundings) -> Iterator[Breach]:
    """Yields the breaches of each client, also in comparison with earlier clients of its group.

    Clients without a group.id may belong to different groups, so they are not compared.
    """
    before: dict[str, list[Client]] = {}
    for client in clients:
        of_group = before.setdefault(client["group.id"], []) if client["group.id"] else []
        beside = around._replace(others=tuple(of_group))
        yield from filter(None, (broken(rule, client, beside) for rule in RULES))
        of_group.append(client)


def read_broker(file: str) -> CoordinatorConfig:
    """Returns the settings in a broker's `server.properties` that the rules read.

    Errors: GroupError with the name of the setting.
    """
    given, found = parse_properties(_text(file)), dict[str, Any]()
    for name in ("group.min.session.timeout.ms", "group.max.session.timeout.ms"):
        if (ms := given.get(name)) is not None:
            if not re.fullmatch(r"[0-9]{1,10}", ms):
                raise GroupError(f"{file}: {name}", f"{ms!r} is not a number of ms")
            found[name.replace(".", "_")] = int(ms)
    if (names := given.get("group.consumer.assignors")) is not None:
        known = [one for one in map(str.strip, names.split(",")) if one in _BROKERS_ASSIGNORS]
        found["group_consumer_assignors"] = tuple(known) or _BROKERS_ASSIGNORS[:1]
    return CoordinatorConfig(**found)
