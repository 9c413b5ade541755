# SPDX-License-Identifier: Apache-2.0
"""Makes contract lines from the tables of `kafka-consumer-groups.sh --describe` and of rpk.

A table starts with a line that names its columns; a row is cut where these names begin. The rows
of all tables count. The table of members (`--members --verbose`) shows each member's partitions
and, by its order, who joined first. In Kafka 3.8 and 3.9 it lacks the topics, so the table of
`--offsets` must show the partitions. Facts that the text lacks are assumed: see ASSUMED.

Order    groups as they first appear; members as in the table of members, else as in the text.
Errors   a group that the text shows only in part becomes a line with `error`; so does a line that
         is not a row of its table, with `group_id` null.
Source   ConsumerGroupCommand (Kafka 2.8.2, 3.9.2, 4.4.0); src/go/rpk/pkg/cli/group/describe.go.
"""

import base64
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import in_runs, quoted

_Line = dict[str, Any]
_Partitions = set[tuple[str, int]]

ASSUMED = {
    "assignor": "the assignor is Kafka's default, range or uniform; --state shows it",
    "members.topics": "every member subscribes to all topics of which its group owns partitions",
    "topics.partitions": "no topic has partitions above the highest in the text",
    "members.rack_id": "no member has a client.rack",
    "generation_id": "all partitions are owned in the newest generation, whose number is unknown",
    "members.client_library": "all members are Java's newest consumers",
    "rebalance_protocol": "members with cooperative-sticky list no eager assignor beside it",
    "topics.topic_id": "topics have made-up ids, which break ties where the broker assigns",
    "members.group_instance_id": "no member is static but those with an instance id in the text, "
    "and they joined in its order; --members --verbose shows both",
    "members.member_id": "members that own nothing, and whose ids the text does not show, are "
    "called idle-1, idle-2 and so on; ids break ties",
}
"""The path of a field -> what is assumed about it."""

_HEADS = (
    {"GROUP", "CONSUMER-ID", "#PARTITIONS"},
    {"GROUP", "TOPIC", "PARTITION", "CONSUMER-ID"},
    {"GROUP", "COORDINATOR (ID)", "STATE", "#MEMBERS"},
    {"TOPIC", "PARTITION", "MEMBER-ID"},
)
"""The columns that identify a table: of members, of offsets, of states, and of rpk."""
_NUMBERS = {"#PARTITIONS", "#MEMBERS", "PARTITION", "CURRENT-EPOCH", "TARGET-EPOCH"}
_SUMMARY = re.compile(r"(GROUP|STATE|BALANCER|MEMBERS) {2,}(\S.*)")
_SAID = re.compile(r"onsumer group '(.*)' (does not exist|is rebalancing|has no active members)")
_NOISE = re.compile(r"\[?\d{4}-\d\d-\d\d|SLF4J|log4j|WARN|ERROR|OpenJDK|Picked up|Error:|Warning:")
_RUN = re.compile(r"([\w.\-]*)(\()?(?(2)|:)(\d{1,19}(?:,\d{1,19})*)(?(2)\))")
_MADE_BY_MEMBER = re.compile(r"[\w\-]{22}")
"""Matches the id that a member of the consumer protocol makes for itself."""
_MOST_SAID = 1000
_MOST_IDLE = 10_000
_EMPTY = "Empty, it has no members"
_UNKNOWN = "unknown to this command; one of Kafka 4 or newer also describes the consumer protocol"
_WHY = {
    "has no active members": _EMPTY,
    "Empty": _EMPTY,
    "Dead": _EMPTY,
    "does not exist": _UNKNOWN,
}
_SHOW_MORE = (
    "the text does not show which partitions members own; add the option --verbose, or, as Kafka "
    "3.8 and 3.9 leave topics out, the table of --offsets (or --topic NAME=N for one topic)"
)


class Pasted(NamedTuple):
    """The result of reading pasted tables.

    `lines` are pairs (number in the text, contract line), `assumed` the keys of ASSUMED that apply,
    `empty` the groups without members, unless there is only one group: its line is an error line.
    """

    lines: list[tuple[int, _Line]]
    assumed: list[str]
    empty: list[str]


def has_tables(lines: Iterable[str]) -> bool:
    """Returns whether one of the lines is the head of a table that is read here."""
    return any(_head(line) or _SUMMARY.fullmatch(line.rstrip()) for line in lines)


class _Head(NamedTuple):
    columns: tuple[str, ...]
    starts: tuple[int, ...]

    def row(self, line: str) -> dict[str, str] | None:
        """Returns the cells of a row by column; None if the line is not a row of this table."""
        ends = (*self.starts[1:], None)
        cells = [line[a:b].strip() for a, b in zip(self.starts, ends, strict=True)]
        if any(line[start - 1 : start].strip() for start in self.starts[1:]):
            cells = line.split(None, len(self.columns) - 1)  # a long cell has shifted the next ones
        row = dict(zip(self.columns, cells, strict=False))
        is_row = all(_is_number(row[name], name) for name in _NUMBERS & row.keys())
        return row if is_row and len(row) == len(self.columns) else None


def _is_number(text: str, name: str) -> bool:
    return (text.isdecimal() and len(text) < 20) or (text == "-" and not name.startswith("#"))


def _head(line: str) -> _Head | None:
    if "PARTITION" not in line and "#MEMBERS" not in line:
        return None
    names = [*re.finditer(r"[A-Z#-]+(?: \(ID\))?", line)]
    columns = tuple(one[0] for one in names)
    is_head = any(needed <= {*columns} for needed in _HEADS)
    return _Head(columns, tuple(one.start() for one in names)) if is_head else None


@dataclass(slots=True)
class _Group:
    """One group, as the text shows it.

    `shown` and `offsets` are the members' partitions in the tables of members and of offsets. In
    `shown`, a topic without a name is #0, #1 and so on, by its place in the row. `said`
    contains the lines of rpk's summary by name, and SAID for a sentence of Kafka's command.
    """

    number: int
    members: dict[str, _Line] = field(default_factory=dict)
    shown: dict[str, _Partitions] = field(default_factory=dict)
    offsets: dict[str, _Partitions] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    problem: str = ""

    def add(self, row: Mapping[str, str], number: int) -> None:
        """Adds a row of a table to the group; of several problems, the first is stored."""
        if "#MEMBERS" in row:
            self.said["STATE"], self.said["MEMBERS"] = row["STATE"], row["#MEMBERS"]
            self.said["BALANCER"] = row.get("ASSIGNMENT-STRATEGY", "")
            return
        member_id = (row.get("CONSUMER-ID") or row.get("MEMBER-ID") or "").strip("-")
        if member_id:
            member = self.members.setdefault(member_id, {"member_id": member_id})
            member |= {"client_id": row.get("CLIENT-ID", ""), "client_host": row.get("HOST", "")}
            if instance := row.get("GROUP-INSTANCE-ID") or row.get("INSTANCE-ID"):
                member["group_instance_id"] = instance
            if row.get("CURRENT-EPOCH", "-") != "-":
                member["generation_id"] = int(row["CURRENT-EPOCH"])
        if "#PARTITIONS" in row:
            try:
                self.shown[member_id] = _shown(row)
            except GroupError as error:
                self.problem = self.problem or f"line {number}: {error}"
        elif row["PARTITION"] != "-":
            topic, partition = row["TOPIC"], int(row["PARTITION"])
            self.counts[topic] = max(partition + 1, self.counts.get(topic, 0))
            if member_id:
                self.offsets.setdefault(member_id, set()).add((topic, partition))

    @property
    def size(self) -> int:
        """Returns the group's number of members in the table of states or rpk's summary; 0 without
        these.
        """
        size = self.said.get("MEMBERS", "0")
        return int(size) if _is_number(size, "#MEMBERS") else 0

    def owned(self, given: Mapping[str, int]) -> dict[str, _Partitions]:
        """Returns member id -> owned partitions. Errors: GroupError if the text lacks them."""
        unnamed = {topic for owned in self.shown.values() for topic, _ in owned if topic[0] == "#"}
        if self.offsets and (unnamed or not self.shown):
            return self.offsets
        if unnamed and (unnamed != {"#0"} or len(given) != 1):
            raise GroupError("ASSIGNMENT", _SHOW_MORE)
        names = dict.fromkeys(unnamed, *given) if unnamed else {}
        return {
            member_id: {(names.get(topic, topic), partition) for topic, partition in owned}
            for member_id, owned in self.shown.items()
        }


def _shown(row: Mapping[str, str]) -> _Partitions:
    """Returns the partitions in a row of the table of members: of the target if it shows one, else
    the owned ones.
    """
    names = ("ASSIGNMENT", "CURRENT-ASSIGNMENT", "TARGET-ASSIGNMENT")
    found = [_partitions(row[name]) for name in names if name in row]
    if not found:  # without --verbose
        return set() if row["#PARTITIONS"] == "0" else {("#", 0)}
    if len(found[0]) != int(row["#PARTITIONS"]):
        raise GroupError("#PARTITIONS", f"{len(found[0])} are in the line; paste whole lines")
    return found[-1] if row.get("TARGET-EPOCH", "-") != "-" else found[0]


def _partitions(text: str) -> _Partitions:
    parts = re.split(r";|(?<=\)), *", text.strip("-"))
    runs = [_RUN.fullmatch(part) for part in parts if part]
    if None in runs:
        raise GroupError("ASSIGNMENT", f"{quoted(text[:40])} is not partitions; paste whole lines")
    pairs = ((one[1] or f"#{i}", one[3]) for i, one in enumerate(runs) if one)
    return {(topic, int(p)) for topic, numbers in pairs for p in numbers.split(",")}


def read_pasted(
    numbered: Iterable[tuple[int, str]], given: Mapping[str, int], only: str | None = None
) -> Pasted:
    """Reads numbered lines of a text; `given` maps topics to their numbers of partitions.

    If no group owns partitions of a given topic, all groups count as subscribed to it. If the text
    shows a group with the id `only`, other groups have no line.
    """
    groups: dict[str, _Group] = {}
    found = list(_rows(numbered, groups))
    chosen = {only: groups[only]} if only is not None and only in groups else groups
    known = {topic for one in chosen.values() for topic in one.counts}
    known |= {name for one in chosen.values() for each in one.shown.values() for name, _ in each}
    assumed, empty = set[str](), list[str]()
    for group_id, one in chosen.items():
        try:
            found.append((one.number, _line(group_id, one, given, known, assumed)))
        except GroupError as error:
            if len(chosen) > 1 and error.problem == _EMPTY:
                empty.append(group_id)
            else:
                found.append((one.number, {"group_id": group_id, "error": str(error)}))
    return Pasted(found, [path for path in ASSUMED if path in assumed], empty)


def _rows(
    numbered: Iterable[tuple[int, str]], groups: dict[str, _Group]
) -> Iterator[tuple[int, _Line]]:
    """Fills `groups`; yields an error line for each line that is not a row of its table."""
    table, described, after_blank = None, "", False
    for number, text in numbered:
        line = text.expandtabs().rstrip()
        if head := _head(line):
            table = head
        elif found := _SUMMARY.fullmatch(line):
            table, described = None, found[2] if found[1] == "GROUP" else described
            groups.setdefault(described, _Group(number)).said[found[1]] = found[2]
        elif found := _SAID.search(line[:_MOST_SAID]):
            groups.setdefault(found[1], _Group(number)).said["SAID"] = found[2]
        elif table and line:
            if (row := table.row(line)) is not None:
                groups.setdefault(row.get("GROUP", described), _Group(number)).add(row, number)
            elif _NOISE.match(line):
                continue
            elif after_blank:
                table = None  # other text follows the table, such as a prompt
            else:
                problem = f"line: not a row of the table {' '.join(table.columns[:3])} …"
                yield number, {"group_id": None, "error": f"{problem}; paste whole lines"}
        after_blank = not line


def _line(
    group_id: str, group: _Group, given: Mapping[str, int], known: set[str], assumed: set[str]
) -> _Line:
    """Returns a group's contract line; adds keys of ASSUMED to `assumed`. Errors: GroupError."""
    by_broker = bool(group.members) and all(map(_MADE_BY_MEMBER.fullmatch, group.members))
    _require_whole(group, by_broker=by_broker)
    owned, counts = group.owned(given), dict[str, int]()
    for topic, partition in (tp for each in owned.values() for tp in each):
        counts[topic] = max(partition + 1, counts.get(topic, 0), group.counts.get(topic, 0))
    counts |= {name: count for name, count in given.items() if name in counts or name not in known}
    if not counts:
        raise GroupError("members", "none owns a partition in the text; give --topic NAME=N")
    ids = dict.fromkeys((*group.shown, *group.members))
    idle = [f"idle-{n + 1}" for n in range(group.size - len(ids))]
    assignor = group.said.get("BALANCER", "").strip("-")
    line: _Line = {
        "group_id": group_id,
        "assignor": assignor or "range",
        "topics": [{"name": name, "partitions": counts[name]} for name in sorted(counts)],
        "members": [
            {
                **group.members.get(member_id, {"member_id": member_id}),
                "topics": sorted(counts),
                "owned_partitions": in_runs(sorted(owned.get(member_id, ()))),
            }
            for member_id in (*ids, *idle)
        ],
    }
    if by_broker:
        line["assignor"] = f"consumer/{assignor or 'uniform'}"
        line["generation_id"] = max(one.get("generation_id", 1) for one in line["members"])
        for topic in line["topics"]:
            topic_id = uuid.uuid5(uuid.NAMESPACE_URL, topic["name"]).bytes
            topic["topic_id"] = base64.urlsafe_b64encode(topic_id).decode()[:22]
        for member in line["members"]:
            member.setdefault("generation_id", line["generation_id"])
    assumed |= {"members.topics", "members.rack_id"}
    assumed |= {"topics.topic_id"} if by_broker else {"generation_id", "members.client_library"}
    assumed |= {"topics.partitions"} if counts.keys() - given.keys() else set()
    assumed |= {"rebalance_protocol"} if assignor == "cooperative-sticky" else set()
    assumed |= {"members.group_instance_id"} if not group.shown else set()
    assumed |= {"members.member_id"} if idle else set()
    assumed |= {"assignor"} if not assignor else set()
    return line


def _require_whole(group: _Group, *, by_broker: bool) -> None:
    """Raises a GroupError if the group is empty or rebalancing, or if the text lacks members."""
    if group.problem:
        raise GroupError(*group.problem.split(": ", 1))
    states = (group.said.get("STATE", "Stable"), group.said.get("SAID", "Stable"), "Stable")
    state = next((one for one in states if one != "Stable"), "Stable")
    changes = f"{state}, so its assignment does not last; run the command again when that has ended"
    if state in _WHY or (state != "Stable" and not by_broker):
        raise GroupError("state", _WHY.get(state, changes))
    lacking = group.size - len(group.members)
    if not group.members or lacking > (0 if group.shown else _MOST_IDLE):
        there = f"{len(group.members)} of {group.size or 'all'} are in the text"
        raise GroupError("members", f"{there}; add the table of --describe --members --verbose")
