# SPDX-License-Identifier: Apache-2.0
"""The fields of a group, each stated once: name, type, bounds, and whether it is required.

This table is the source for the reader and the writer of contract lines (`contract.py`), the check
of groups that Python code made, Spark's columns (`spark/schema.py`), the hints for misspelt names,
and the table of docs/contract.md. Errors report the first wrong field in the order of this table,
as in `src/group/contract.rs`.
"""

import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import kafka_rebalance._core as _core
from kafka_rebalance.errors import nearest

from .field_paths import object_
from .field_types import (
    MAX_INT64,
    MIN_INT32,
    MIN_INT64,
    PARTITION,
    TEXT,
    Entry,
    Field,
    Flag,
    List,
    Number,
    OrNull,
    OwnedRuns,
    Record,
    Runs,
    UnreadNames,
    UserDataName,
    Whole,
    check_pairs,
)
from .model import (
    NEWEST_SUBSCRIPTION,
    Member,
    StreamsMember,
    Subtopology,
    TaskOffset,
    Topic,
    TopicPartition,
    in_runs,
)


class OffsetRecord(Record):
    """A TaskOffset; in a line, two fields hold its task."""

    def read(self, value: Any, at: str) -> Any:
        subtopology_id, partition, offset = self.values(object_(value, at), at).values()
        return TaskOffset(TopicPartition(subtopology_id, partition), offset)

    def check_fields(self, value: Any, at: str) -> None:
        check_pairs((value.task,), f"{at}.task")
        self.fields[2].kind.check(value.offset, f"{at}.offset")

    def write(self, value: Any) -> Any:
        values = (*value.task, value.offset)
        return {field.name: one for field, one in zip(self.fields, values, strict=True)}

    def exact_fields(self) -> tuple[tuple[str, tuple[Any, ...]], ...]:
        return ("task", ("pair", TopicPartition)), ("offset", self.fields[2].kind.exact())


class MemberRecord(Record):
    """A member. In a line, the fields of `STREAMS` (the attribute `streams`) are in the member's
    own object.
    """

    def values(self, given: Mapping[str, Any], at: str) -> dict[str, Any]:
        found = super().values(given, at)
        runs = found["owned_partitions"]
        is_whole = all(numbers for _, numbers in runs)
        found["owned_partitions"] = tuple([TopicPartition(t, p) for t, of in runs for p in of])
        found["owned_topics"] = () if is_whole else tuple(dict.fromkeys(t for t, _ in runs))
        has_process = given.get("process_id") is not None
        return found | {"streams": STREAMS.read(given, at) if has_process else None}

    def given(self, value: Any, name: str) -> Any:
        if name != "owned_partitions":
            return getattr(value, name)
        return in_runs(value.owned_partitions, topics=value.owned_topics)

    def write(self, value: Any) -> Any:
        line = super().write(value)
        return line if value.streams is None else line | STREAMS.write(value.streams)

    def in_lines(self) -> tuple[Field, ...]:
        return *self.fields, *(one._replace(required=False) for one in STREAMS.fields)


WEIGHT = Number("weight", 0, 2**53, "from 0 to 9007199254740992")
CAPACITY = Number("capacity", 1e-3, 10**9, "from 0.001 to 1000000000")
GENERATION, COUNT = Whole("generation", MIN_INT32), Whole("count")
PARTITIONS = Field("partitions", List(PARTITION), required=True)

TOPIC = Record(
    (
        Field("name", TEXT, required=True),
        Field("partitions", COUNT, required=True),
        Field("racks", List(OrNull(List(OrNull(TEXT)), ()))),
        Field("topic_id", TEXT, spark="all recorded"),
        Field("initialized", List(PARTITION), spark="all recorded"),
        Field("weights", List(OrNull(WEIGHT)), spark="input all"),
    ),
    Topic,
    "Topic(name, partitions)",
)

_TASKS = Entry((Field("subtopology_id", TEXT, required=True), PARTITIONS), tuple, "")

_OFFSET = OffsetRecord(
    (
        _TASKS.fields[0],
        Field("partition", PARTITION, required=True),
        Field("offset", Whole("task offset", MIN_INT64, MAX_INT64), required=True),
    ),
    TaskOffset,
    "TaskOffset(task, offset)",
)

STREAMS = Record(
    (
        Field("process_id", TEXT, required=True, spark="all recorded"),
        Field("active_tasks", Runs(_TASKS), default=(), spark="all recorded"),
        Field("standby_tasks", Runs(_TASKS), default=(), spark="all recorded"),
        Field("task_offsets", List(_OFFSET), default=(), spark="all"),
    ),
    StreamsMember,
    "StreamsMember(process_id)",
)

_OWNED = (Field("topic", TEXT, required=True), PARTITIONS, Field("topic_id", TEXT, spark="all"))

MEMBER = MemberRecord(
    (
        Field("member_id", TEXT, required=True),
        Field("group_instance_id", TEXT),
        Field("client_id", TEXT),
        Field("client_host", TEXT, spark="recorded"),
        Field("topics", List(TEXT), required=True),
        Field("owned_partitions", OwnedRuns(Entry(_OWNED, tuple, "")), default=()),
        Field("generation_id", GENERATION),
        Field("rack_id", TEXT),
        Field("subscription_version", Whole("subscription version", 0, NEWEST_SUBSCRIPTION)),
        Field("user_data", UserDataName()),
        Field("user_data_generation_id", GENERATION, spark="input all"),
        Field("client_library", TEXT, spark="all"),
        Field("capacity", CAPACITY, spark="input all"),
    ),
    Member,
    "Member(member_id, topics)",
    (Field("owned_topics", List(TEXT), default=()), Field("streams", STREAMS)),
)

SUBTOPOLOGY = Record(
    (
        Field("subtopology_id", TEXT, required=True, spark="all recorded"),
        Field("tasks", Whole("count", 1), required=True, spark="all recorded"),
        Field("stateful", Flag(), default=False, spark="all recorded"),
        Field("source_topics", UnreadNames(TEXT), default=(), spark=""),
    ),
    Subtopology,
    "Subtopology(subtopology_id, tasks)",
)

GROUP = Record(
    (
        Field("group_id", TEXT, required=True),
        Field("generation_id", GENERATION, spark="recorded"),
        Field("assignor", TEXT),
        Field("leader_library", TEXT, spark="all recorded"),
        Field("leader", TEXT, spark=""),
        Field("rebalance_protocol", TEXT, spark="all"),
        Field("topics", List(TOPIC), required=True),
        Field("members", List(MEMBER), required=True),
        Field("subtopologies", List(SUBTOPOLOGY), spark="all recorded"),
        Field("num_standby_replicas", COUNT, spark="all recorded"),
    ),
    object,
    "",
)


def rows(record: Record = GROUP, at: str = "") -> Iterator[tuple[str, bool]]:
    """Yields (path, whether it is required) for a line's fields, except in runs and offsets."""
    for one in record.in_lines():
        entry = one.kind.item if isinstance(one.kind, List) else None
        yield f"{at}{one.name}{'[]' * isinstance(entry, Record)}", one.required
        if isinstance(entry, Record) and not isinstance(entry, Entry | OffsetRecord):
            yield from rows(entry, f"{at}{one.name}[].")


_TYPES = _core.FieldTypes(GROUP.exact_fields())


def check_types(group: object) -> None:
    """Raises a GroupError for the first field whose value is of a wrong type or out of bounds."""
    if not _TYPES.fit(group):
        GROUP.check_fields(group, "")


_OTHERS = {
    "": "cluster error changes assignment_epoch application",
    "topics": "leaderless",
    "members": "assigned_partitions topic_regex is_classic target_active_tasks "
    "target_standby_tasks client_tags",
}
FIELDS = {
    place: [*(one.name for one in record.in_lines()), *_OTHERS[place].split()]
    for place, record in (("", GROUP), ("topics", TOPIC), ("members", MEMBER))
}
"""List of a line ("": the line itself) -> the names of its objects' fields in docs/contract.md,
including fields that only people read.
"""

_EVERY = frozenset().union(*FIELDS.values(), ("topic", "partition", "partitions"))
_KEY = re.compile(r'"(\w+)"\s*:')
_END = 250  # characters searched at each end; more would take longer than the core's reading


def has_unknown(line: str | bytes) -> bool:
    """Returns whether a correct line contains an unknown field near its beginning or its end."""
    text = line if isinstance(line, str) else line.decode()
    return not _EVERY.issuperset(_KEY.findall(text[:_END]) + _KEY.findall(text[-_END:]))


def warn(line: Mapping[str, Any]) -> None:
    """Warns of misspelt fields in a parsed line that is correct otherwise."""
    if not _EVERY.issuperset({*line}.union(*line["topics"], *line["members"])):
        for problem in misspelt(line, set()):
            warnings.warn(problem, stacklevel=3)


def misspelt(value: Any, seen: set[tuple[str, str]]) -> Iterator[str]:
    """Yields a sentence for each unknown field that resembles a field of the contract. Adds all
    unknown fields to `seen`, and passes over those that were already in it.

    The contract allows other fields. But with `ownd` instead of `owned_partitions`, a group would
    be planned as if its members owned nothing.
    """
    objects = [("", "", value)]
    for place in ("topics", "members"):
        each = value.get(place) if isinstance(value, dict) else None
        each = each if isinstance(each, list) else []
        objects += [(place, f"{place}[{number}].", one) for number, one in enumerate(each)]
    for place, path, fields in objects:
        for name in fields.keys() - FIELDS[place] if isinstance(fields, dict) else ():
            if (place, name) not in seen:
                seen.add((place, name))
                # `ownd` resembles only the first word of `owned_partitions`.
                words = {one.partition("_")[0]: one for one in reversed(FIELDS[place])}
                if found := nearest(name, [*FIELDS[place], *words]):
                    meant = words.get(found, found)
                    problem = f"not a field of the contract, so it is ignored; is it {meant}?"
                    yield f"{path}{name}: {problem}"
