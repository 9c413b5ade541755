# SPDX-License-Identifier: Apache-2.0
"""Translates member names of a scenario into member ids, and ids in answers into names.

Member ids are random. To compare two coordinators, each id is replaced by a name: `c~A` stands for
the first id of member A (an id that begins with `c-`), `c~A.2` for the second, and `c~?` for an id
that no member has received yet.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .scenarios import NUMBERS, OPERATIONS, WHO, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .scenarios import Step

Command = dict[str, Any]
Answer = dict[str, Any]
Observation = dict[str, Any]

_ID = re.compile("(.+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_REFERENCE = re.compile(r"([A-Z])(?:\.(\d+))?")
_SUBSCRIPTION = re.compile(r"sub\((.*)\)")

# Operation -> the fields of its answer to compare; an answer may have more fields.
_ANSWER = {
    "hb": ("err",),
    "leave": ("err", "members"),
    "commit": ("err",),
    "txncommit": ("err",),
    "fetch": ("gerr", "err", "off", "md"),
    "delete_offsets": ("err",),
    "delete_group": ("err",),
}
_DESCRIBED = ("state", "proto", "ptype", "members")
_NO_SUCH_GROUP = ("NONE", "GROUP_ID_NOT_FOUND", None)
"""Errors of DescribeGroups that are not compared: those of missing groups differ by version."""

_EVENT = {
    "join": ("err", "gen", "ptype", "proto", "leader", "member", "skip", "members"),
    "sync": ("err", "ptype", "proto", "asg"),
}


def subscription(topics: Iterable[str]) -> str:
    """Encodes a consumer's subscription, version 0, as `hex:…`, which JSON commands take."""
    names = [topic.encode() for topic in topics]
    array = b"".join(len(name).to_bytes(2, "big") + name for name in names)
    return "hex:" + (b"\0\0" + len(names).to_bytes(4, "big") + array + b"\xff" * 4).hex()


def sync_version(command: Command) -> int:
    """Returns the version of a SyncGroup: 5 if it has protocol type or name, which 4 lacks."""
    return 5 if "pt" in command or "pn" in command else 4


@dataclass
class _Member:
    ids: list[str] = field(default_factory=list)
    generation: int = -1
    instance: str | None = None


class Cast:
    """The names and ids of one run of one scenario.

    For each step, call `command`, then `asked` with the number of the command's answer, then
    `observation`; call `observation` again when more events have arrived.
    """

    def __init__(self) -> None:
        self.groups: list[str] = []
        self._members: dict[str, _Member] = {}
        self._names: dict[str, str] = {}
        self._asked: dict[int, tuple[Step, Command]] = {}

    def command(self, step: Step) -> Command:
        """Returns the step as a JSON command to a coordinator."""
        command: Command = {"op": step.operation}
        for name, text in step.fields.items():
            command[name] = self._value(name, text)
        if step.operation == "join" and "pt" in command:
            command["pt"] = command["pt"] or ""  # a join cannot have null here
        if step.operation in WHO:
            member = self._members.setdefault(step.who, _Member())
            command.setdefault("m", member.ids[-1] if member.ids else "")
            if step.operation == "join":
                version = command.setdefault("v", 9)
                member.instance = command.setdefault(
                    "inst", member.instance if version > 4 else None
                )
                command.setdefault("protos", [["range", subscription(["t"])]])
            else:
                command.setdefault("inst", member.instance)
                command.setdefault("gen", member.generation)
        if "g" in OPERATIONS[step.operation].split():
            group = command.setdefault("g", "g")
            if group and group not in self.groups:
                self.groups.append(group)
        return command

    def asked(self, number: int, step: Step, command: Command) -> None:
        """Stores the number of a JSON command, because events refer to commands by number."""
        self._asked[number] = (step, command)

    def observation(
        self,
        step: Step,
        answer: Mapping[str, Any],
        events: Iterable[Mapping[str, Any]],
        groups: Mapping[str, Mapping[str, Any]],
    ) -> Observation:
        """Returns a step's answer, the events since the last step (by request), and the groups."""
        told = [
            (*self._asked[event["id"]], event)
            for event in events
            if event["ev"] in _EVENT and event["id"] in self._asked
        ]
        for asked, command, event in told:
            if event["ev"] == "join":
                self._remember(asked.who, command, event)
        return {
            "answer": self._look(answer)
            if step.operation == "describe"
            else self._renamed(
                {name: answer.get(name) for name in _ANSWER.get(step.operation, ())}
            ),
            "answered": {
                f"{asked.number}:{asked.operation}:{asked.who}": self._event(command, event)
                for asked, command, event in sorted(told, key=lambda one: one[0].number)
            },
            "groups": {group: self._look(look) for group, look in groups.items()},
        }

    def _look(self, look: Mapping[str, Any]) -> Answer:
        if look.get("err") not in _NO_SUCH_GROUP:
            return {"err": look["err"]}
        return self._renamed({name: look.get(name) for name in _DESCRIBED})

    def _remember(self, who: str, command: Command, event: Mapping[str, Any]) -> None:
        member, given = self._members[who], event["member"]
        if event["err"] == "NONE":
            member.generation = event["gen"]
        match = _ID.fullmatch(given)
        if match and given not in self._names:
            member.ids.append(given)
            count = len(member.ids)
            self._names[given] = f"{match[1]}~{who}" + (f".{count}" if count > 1 else "")

    def _event(self, command: Command, event: Mapping[str, Any]) -> Answer:
        """Returns the fields of an event that exist in the request's version."""
        shown = {name: event.get(name) for name in _EVENT[event["ev"]]}
        if event["ev"] == "sync":
            if sync_version(command) < 5:
                del shown["ptype"], shown["proto"]
            return shown
        version = command["v"]
        if version < 9:
            del shown["skip"]
        if version < 7:
            del shown["ptype"]
        # For no protocol, Kafka's request layer writes null or "", depending on the version.
        shown["proto"] = shown["proto"] or (None if version >= 7 else "")
        keys = ("id", "inst", "meta") if version >= 5 else ("id", "meta")
        shown["members"] = [{key: one.get(key) for key in keys} for one in event["members"]]
        return self._renamed(shown)

    def _renamed(self, shown: Answer) -> Answer:
        """Replaces ids by names, and sorts members by name: Kafka lists them in hash order."""
        for key in ("member", "leader"):
            if key in shown:
                shown[key] = self._name(shown[key])
        if shown.get("members"):
            members = [dict(one) for one in shown["members"]]
            for one in members:
                for key in ("id", "m"):
                    if key in one:
                        one[key] = self._name(one[key])
            if "err" not in members[0]:  # a LeaveGroup response keeps the request's order
                members.sort(key=lambda one: [str(value) for value in one.values()])
            shown["members"] = members
        return shown

    def _name(self, member_id: str) -> str:
        match = _ID.fullmatch(member_id or "")
        return self._names.get(member_id, f"{match[1]}~?" if match else member_id)

    def _value(self, name: str, text: str) -> Any:
        if name in NUMBERS:
            return int(text)
        if name in ("commit", "stable"):
            return {"yes": True, "no": False}[text]
        if name == "protos":
            pairs = [] if text == "none" else text.split(",")
            return [
                [protocol, _text(meta)] for protocol, _, meta in (p.partition(":") for p in pairs)
            ]
        if name == "asg":
            pairs = [] if text == "none" else text.split(",")
            return {self._id(who): _text(one) for who, _, one in (p.partition(":") for p in pairs)}
        if name == "members":
            entries = [entry.partition("/") for entry in text.split(",")]
            return [{"m": self._id(m), "inst": instance or None} for m, _, instance in entries]
        if name == "m":
            return self._id(text)
        if text == "none":
            return "" if name in ("g", "md") else None
        return text

    def _id(self, text: str) -> str:
        if text in ("none", ""):
            return ""
        match = _REFERENCE.fullmatch(text)
        if not match:
            return text
        ids = self._members[match[1]].ids if match[1] in self._members else []
        number = int(match[2]) if match[2] else len(ids)
        if not 1 <= number <= len(ids):
            raise ScenarioError(f"{text} has not been told an id yet")
        return ids[number - 1]


def _text(text: str) -> str:
    match = _SUBSCRIPTION.fullmatch(text)
    return subscription(match[1].split("+")) if match else text
