# SPDX-License-Identifier: Apache-2.0
"""Changes as short texts: one grammar for the command line, Python and columns.

    change  = verb ("=" | " ") value          add-members=2   partitions orders=24
    --verb value                              the option of a command

`VERBS` has every verb with its value. The option with the name of a verb takes its value unchanged.
Mirror: `src/plans/changes/text.rs`.
"""

import re
from collections.abc import Callable

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import quoted

from .change import Change, SwitchAssignor
from .members import AddMembers, BounceMembers, RemoveMembers
from .topics import AddPartitions, AddTopics, RemoveTopics, Resubscribe

_TEXT = re.compile(r"([a-z-]+)(?:[= ](.*))?", re.DOTALL)
_COUNT = re.compile(r"[0-9]{1,9}", re.ASCII)
_OPTION = re.compile(r",(rack|client-id|instance-id)=")


def change_from_text(text: str) -> Change:
    """Reads one change. Errors: GroupError at `change` for any other text."""
    match = _TEXT.fullmatch(text.strip(" \t\r\n"))
    verb, value = (match[1], match[2] or "") if match else (text, "")
    if verb not in VERBS:
        raise _error(f"{quoted(text)} begins with none of {', '.join(VERBS)}")
    return VERBS[verb].parse(value)


class Verb:
    """The form of a verb's value, for help texts, and the function that reads the value."""

    def __init__(self, metavar: str, help: str, parse: Callable[[str], Change]) -> None:
        self.metavar = metavar
        self.help = help
        self.parse = parse


def _add_members(value: str) -> Change:
    rest, like_found, like = value.partition(",like=")
    count, *said = _OPTION.split(rest)
    options: dict[str, str] = {}
    for name, value_of in zip(said[::2], said[1::2], strict=True):
        if name in options:
            raise _error(f"{name}= is there twice")
        options[name] = value_of
    return AddMembers(
        _count(count, "members"),
        like if like_found else None,
        options.get("rack"),
        options.get("client-id"),
        options.get("instance-id"),
    )


def _topic_count(value: str) -> tuple[str, int]:
    topic, separator, count = value.rpartition("=")
    if not separator or not topic:
        raise _error(f"{quoted(value)} is not TOPIC=N")
    return topic, _count(count, "partitions")


def _topics(value: str) -> tuple[str, ...]:
    topics = tuple(value.split(","))
    if not all(topics):
        raise _error(f"{quoted(value)} is not TOPIC,TOPIC,…")
    return topics


def _resubscribe(value: str) -> Change:
    # The name of a topic has no colon, but a member's name may have one.
    member, separator, topics = value.rpartition(":")
    return Resubscribe(_topics(topics), member if separator else None)


def _bounce(value: str) -> Change:
    static = None
    for ending, meant in ((",static", True), (",dynamic", False)):
        if value.endswith(ending):
            value, static = value.removesuffix(ending), meant
            break
    return BounceMembers(None if value in ("", "*") else value, static)


def _some(value: str) -> str:
    if not value:
        raise _error("a value is missing, as in add-members=2")
    return value


VERBS = {
    "add-members": Verb(
        "N[,rack=RACK][,client-id=ID][,instance-id=ID][,like=MEMBER]",
        "new members, like the last one and called as the next one if not said",
        _add_members,
    ),
    "remove-members": Verb(
        "N", "the N that joined last leave", lambda v: RemoveMembers(_count(v, "members"))
    ),
    "remove-member": Verb(
        "MEMBER", "one leaves, by member or instance id", lambda v: RemoveMembers(member=_some(v))
    ),
    "remove-rack": Verb(
        "RACK", "a rack is lost: members and replicas", lambda v: RemoveMembers(rack=_some(v))
    ),
    "remove-client": Verb(
        "CLIENT_ID", "a client's members leave", lambda v: RemoveMembers(client_id=_some(v))
    ),
    "partitions": Verb(
        "TOPIC=N", "a topic grows to N partitions in all", lambda v: AddPartitions(*_topic_count(v))
    ),
    "add-topics": Verb(
        "TOPIC=N,…",
        "new topics, to which all subscribe",
        lambda v: AddTopics(tuple(_topic_count(each) for each in v.split(","))),
    ),
    "remove-topics": Verb("TOPIC,…", "topics are deleted", lambda v: RemoveTopics(_topics(v))),
    "resubscribe": Verb("[MEMBER:]TOPIC,…", "subscribe to these instead", _resubscribe),
    "switch-assignor": Verb(
        "NAME", "the first rebalance by another assignor", lambda v: SwitchAssignor(_some(v))
    ),
    "bounce-members": Verb(
        "*|MEMBER[,static|,dynamic]", "restart, one after another (*: all)", _bounce
    ),
}


def _count(text: str, noun: str) -> int:
    if not _COUNT.fullmatch(text):
        raise _error(f"{quoted(text)} is not a number of {noun}")
    return int(text)


def _error(problem: str) -> GroupError:
    return GroupError("change", problem)
