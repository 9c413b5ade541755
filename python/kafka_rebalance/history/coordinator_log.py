# SPDX-License-Identifier: Apache-2.0
"""Reads the lines that brokers of Kafka 2.4 to 4.x log about groups.

`coordinator_lines.json` contains regular expressions for lines, for the reasons of a rebalance, and
for the reasons that clients send with requests; the first that matches counts. An expression
matches the message alone. So any layout can be read: Kafka's own, JSON, and the prefixes of
container logs. There are expressions for the lines of both coordinators, Scala's and Java's, and
for those about groups of the new protocol (KIP-848).

A broker writes local times without a time zone; `CoordinatorLog.shifted` corrects them.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.field_paths import each_of

_COORDINATOR = re.compile(r"\[(?:GroupCoordinator|GroupMetadataManager)\b[^\[\]]*\]:? ")
_LEVEL = re.compile(r"\b(?:INFO|WARN|ERROR|DEBUG) ")
_GROUP_LOGGER = "(kafka.coordinator.group."
_BEHIND = re.compile(r" \((?:kafka|org\.apache\.kafka)\.[\w.$]+\)(?: \[[^\]]*\])?\s*$")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)[.,](\d{1,9})")
_MESSAGES = ("message", "msg", "log")
_TIMES = ("@timestamp", "timestamp", "time", "ts")


class CoordinatorEvent(Frozen):
    """A line about a group; a field that the line lacks is None.

    `event`   the kind of line: "prepare", "assigned", "left", …, as in `coordinator_lines.json`.
    `cause`   why the rebalance begins, for example "session_timeout"; only for "prepare"
    `said`    the kind of the reason that the client sent, such as "closed", if its text is known;
              else the text; "not_said" if the client sent none
    """

    event: str
    time_ms: int | None
    group_id: str | None = None
    generation_id: int | None = None
    member_id: str | None = None
    group_instance_id: str | None = None
    cause: str | None = None
    said: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)


class CoordinatorLog(Frozen):
    """The lines of one or several brokers, in order of time.

    `unknown` counts lines of a coordinator that no expression matches; `examples` are the first of
    them. `other` counts all lines that are not a coordinator's.
    """

    events: tuple[CoordinatorEvent, ...]
    unknown: int
    other: int
    examples: tuple[str, ...] = ()

    def shifted(self, ms: int) -> "CoordinatorLog":
        moved = (
            one if one.time_ms is None else replace(one, time_ms=one.time_ms + ms)
            for one in self.events
        )
        return replace(self, events=tuple(moved))


def read_coordinator_log(lines: Iterable[str]) -> CoordinatorLog:
    """Reads the lines of one or several brokers, and orders them by time.

    Errors   TypeError at `lines` for anything but a list of strings.
    """
    if isinstance(lines, str):
        raise TypeError("lines: a str; give a list of lines, or an open file")
    events: list[CoordinatorEvent] = []
    unknown: list[str] = []
    other = unknown_count = 0
    for line in each_of(lines, "lines", str, "open the file as text"):
        found = message_of(line)
        if found is None:
            other += 1
            continue
        message, time_ms = found
        event = read_message(message, time_ms)
        if event is None:
            unknown_count += 1
            unknown = [*unknown, message][:5]
        else:
            events.append(event)
    last = 0
    places = []
    for place, event in enumerate(events):  # a line without a time stays after the line before it
        last = last if event.time_ms is None else event.time_ms
        places.append((last, place))
    ordered = (events[place] for _, place in sorted(places))
    return CoordinatorLog(tuple(ordered), unknown_count, other, tuple(unknown))


def message_of(line: str) -> tuple[str, int | None] | None:
    """Returns the message of a coordinator's line and its time in ms; None for any other line."""
    text, time_ms = _unwrapped(line)
    found = _COORDINATOR.search(text) or _LEVEL.search(text)
    if found is None or ("[" not in found[0] and text.rfind(_GROUP_LOGGER) < found.end()):
        return None
    if time_ms is None:
        time_ms = _last_time(text[: found.start()])
    return _BEHIND.sub("", text[found.end() :].rstrip()), time_ms


def read_message(message: str, time_ms: int | None = None) -> CoordinatorEvent | None:
    """Returns the event of a message (a line without its prefix); None if no expression fits it."""
    found = _matched("lines", message)
    return None if found is None else _event(*found, time_ms)


def _event(event: str, fields: dict[str, str], time_ms: int | None) -> CoordinatorEvent:
    cause, said = None, None
    if event == "prepare":
        cause, more = _matched("reasons", fields["reason"]) or (None, {})
        said = _said(more.pop("client", ""))
        fields = fields | more | fields  # the line's own values override those in its reason
    elif event == "left":
        said = _said(fields.get("reason", ""))
    instance = fields.get("instance1", fields.get("instance"))
    generation = fields.get("generation", fields.get("epoch", ""))
    return CoordinatorEvent(
        event,
        time_ms,
        fields.get("group", fields.get("group2")),
        int(generation) if generation else None,
        fields.get("member", fields.get("member2")),
        None if instance in (None, "null", "None") else instance,
        cause,
        said,
        fields,
    )


def _said(reason: str) -> str:
    found = _matched("client_reasons", reason.rstrip())
    return reason.rstrip() if found is None else found[0]


def _matched(table: str, text: str) -> tuple[str, dict[str, str]] | None:
    """Returns the name and the groups of the first expression that fits; None if none fits."""
    for name, pattern in _expressions(table):
        if found := pattern.match(text):
            return name, {key: one for key, one in found.groupdict().items() if one is not None}
    return None


@cache
def _expressions(table: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    text = files("kafka_rebalance.history").joinpath("coordinator_lines.json").read_text("utf-8")
    return tuple((name, re.compile(pattern)) for name, pattern in json.loads(text)[table])


def _unwrapped(line: str) -> tuple[str, int | None]:
    """Returns a line's text, and its JSON object's time (ms) if the text itself shows no time."""
    if not line.lstrip().startswith("{"):
        return line, None
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return line, None
    text = next((fields[name] for name in _MESSAGES if isinstance(fields.get(name), str)), line)
    return text, _json_time(fields) if _TIME.search(text[:60]) is None else None


def _json_time(fields: Mapping[str, Any]) -> int | None:
    match fields.get("instant"):
        case {"epochSecond": int(seconds), "nanoOfSecond": int(nanos)}:
            return seconds * 1000 + nanos // 1_000_000
    found = next((fields[name] for name in _TIMES if name in fields), None)
    if isinstance(found, int):
        return found
    return _last_time(found) if isinstance(found, str) else None


def _last_time(text: str) -> int | None:
    """Returns the last time (ms) in a text: the broker's own time follows a container's prefix."""
    found = _TIME.findall(text)
    if not found:
        return None
    day, clock, fraction = found[-1]
    try:
        at = datetime.strptime(f"{day} {clock}", "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(at.timestamp()) * 1000 + int(fraction[:3].ljust(3, "0"))
