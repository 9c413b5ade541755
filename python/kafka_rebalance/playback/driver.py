# SPDX-License-Identifier: Apache-2.0
"""The driver protocol: each line is a JSON command, answered by a line of JSON, in virtual time.

    {"op": "join", "g": "g", "protos": [["range", "meta"]], "v": 3}
    {"id": 2, "now": 0, "events": [...]}

A program that runs Kafka's own coordinator also reads this protocol, so one script tests both.
`init` starts a new coordinator, `state` and `mstate` return a group's state; `driver_commands`
defines the other commands. The answer to an unknown command is {"bad": op}, the answer to a wrong
command {"bad": op, "why": …}. After either, the driver continues with the next line. An error
inside the coordinator is not an answer: it ends the driver.

`_KEYS` maps the name of a class to the keys of its JSON: `gen=generation_id` shows a field under a
short key, `asg=assignment:topics` shows it in the form `topics` of `_FORMS`. The keys of a class
that is not listed are the names of its fields. Each record also shows its bytes, as `kb` and `vb`;
if `vb` is null, the record is a tombstone.
"""

import json
from collections.abc import Callable, Iterable
from enum import Enum, IntEnum
from functools import cache
from struct import pack
from typing import Any

from kafka_rebalance.coordinator.broker_assigned.target import NO_TARGET
from kafka_rebalance.coordinator.classic_group.group import Group
from kafka_rebalance.coordinator.machine import events as interface
from kafka_rebalance.coordinator.machine.events import LogEntry
from kafka_rebalance.coordinator.streams_group.group import NOTHING, MemberTasks, task_list
from kafka_rebalance.errors import KafkaRebalanceError
from kafka_rebalance.group.line_files import TOO_LONG
from kafka_rebalance.group.model import id_text
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.wire import classic_groups as classic
from kafka_rebalance.wire import group_records as wire
from kafka_rebalance.wire import offsets
from kafka_rebalance.wire.broker_records import decode_record
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import Response, field_names

from .driver_commands import ACTIONS, REQUESTS, Json, Step, group_id_of, read, start
from .virtual_broker import Happened, VirtualBroker

NameOf = Callable[[Uuid], str]
"""Returns the name of a topic with this id."""

_HEARTBEAT = "err=error_code member=member_id epoch=member_epoch interval=heartbeat_interval_ms"
_DESCRIBED = "err=error_code state=group_state epoch=group_epoch assignment_epoch"
_GROUP = "state epoch assignment_epoch assigned_at=assignment_timestamp_ms"
_MEMBER = "epoch=member_epoch prev=previous_member_epoch state:name"
_KEYS: dict[str, str] = {
    "HeartbeatResponse": "err=error_code",
    "LeaveGroupResponse": "err=error_code members",
    "LeftMember": "m=member_id inst=group_instance_id err=error_code",
    "ListGroupsResponse": "err=error_code groups:sorted",
    "ListedGroup": "g=group_id ptype=protocol_type state type=group_type",
    "DescribedGroup": "err=error_code state:text proto=protocol_name ptype=protocol_type members",
    "DescribedMember": "id=member_id meta=metadata asg=assignment",
    "JoinGroupResponse": "err=error_code gen=generation_id ptype=protocol_type "
    "proto=protocol_name leader member=member_id skip=skip_assignment members",
    "JoinedMember": "id=member_id inst=group_instance_id meta=metadata",
    "SyncGroupResponse": "err=error_code ptype=protocol_type proto=protocol_name asg=assignment",
    "ConsumerGroupHeartbeatResponse": f"{_HEARTBEAT} asg=assignment:topics",
    "ShareGroupHeartbeatResponse": f"{_HEARTBEAT} asg=assignment:topics",
    "DescribedConsumerGroup": f"{_DESCRIBED} assignor=assignor_name members:by_id",
    "DescribedConsumerMember": "epoch=member_epoch inst=instance_id rack=rack_id "
    "regex=subscribed_topic_regex type=member_type topics=subscribed_topic_names:sorted "
    "asg=assignment:named target=target_assignment:named",
    "DescribedShareGroup": f"{_DESCRIBED} assignor=assignor_name members:by_id",
    "DescribedShareMember": "epoch=member_epoch rack=rack_id "
    "topics=subscribed_topic_names:sorted asg=assignment:named",
    "StreamsGroupHeartbeatResponse": f"{_HEARTBEAT} active=active_tasks:tasks "
    "standby=standby_tasks:tasks warmup=warmup_tasks:tasks status creatable=creatable_topics:names "
    "counts=creatable_topics:counts",
    "DescribedStreamsGroup": f"{_DESCRIBED} members:by_id",
    "DescribedStreamsMember": "epoch=member_epoch inst=instance_id rack=rack_id "
    "process=process_id asg=assignment:roles target=target_assignment:roles",
    "OffsetCommitValue": "ver=version off=offset cts=commit_timestamp_ms ets=expire_timestamp_ms",
    "GroupMetadataValue": "ver=version gen=generation_id proto=protocol ptype=protocol_type "
    "leader ts=current_state_timestamp_ms members",
    "MemberMetadata": "id=member_id inst=group_instance_id rt=rebalance_timeout_ms "
    "st=session_timeout_ms sub=subscription asg=assignment",
    "Group": "state gen=generation_id proto=protocol_name ptype=protocol_type leader=leader_id "
    "ts=state_timestamp_ms members:keys pending:count awaiting=awaiting_join "
    "pending_sync:sorted",
    "ConsumerGroup": _GROUP,
    "ShareGroup": _GROUP,
    "StreamsGroup": _GROUP,
    "ConsumerGroupMember": f"{_MEMBER} assigned:epochs pending=pending_revocation:epochs",
    "ShareGroupMember": f"{_MEMBER} assigned:ids",
    "StreamsGroupMember": f"{_MEMBER} assigned:member_tasks "
    "pending=pending_revocation:member_tasks",
}


def _shown(value: Any, name_of: NameOf = str) -> Any:
    """Returns a value as JSON; a message has the keys in `_KEYS`, else its fields' names."""
    keys = _KEYS.get(type(value).__name__)
    if keys is not None:
        return {
            key: _FORMS[form](getattr(value, field), name_of) for key, field, form in _fields(keys)
        }
    names = field_names(type(value))
    if names:
        return {
            name: id_text(pack(">qq", *one)) if name == "topic_id" else _shown(one, name_of)
            for name, one in ((name, getattr(value, name)) for name in names)
        }
    if isinstance(value, IntEnum):
        return value.name
    if isinstance(value, Enum):
        return str(value)
    if isinstance(value, bytes):
        return text_of(value)
    return [_shown(one, name_of) for one in value] if isinstance(value, tuple) else value


@cache
def _fields(keys: str) -> list[tuple[str, str, str]]:
    """Returns a triple (key, field, form) for each field that is shown."""
    found = []
    for spec in keys.split():
        shown, _, form = spec.partition(":")
        key, _, field = shown.partition("=")
        found.append((key, field or key, form))
    return found


def text_of(data: bytes) -> str:
    """Returns printable ASCII unchanged, other bytes as hex digits after `hex:`."""
    plain = all(32 <= byte <= 126 for byte in data)
    return data.decode("ascii") if plain else f"hex:{data.hex()}"


def _tasks(listed: Iterable[tuple[str, tuple[int, ...]]] | None, _: NameOf) -> Json | None:
    return None if listed is None else {name: list(numbers) for name, numbers in listed}


def _member_tasks(tasks: MemberTasks, name_of: NameOf) -> Json:
    active: Json = {}
    for (name, number), epoch in tasks.active.items():
        active.setdefault(name, {})[str(number)] = epoch
    return _target(tasks, name_of) | {"active": active}


def _target(tasks: Any, name_of: NameOf) -> Json:
    """Returns role -> tasks; `tasks` holds the task numbers of each role, perhaps with epochs."""
    return {role: _tasks(task_list(some), name_of) for role, some in tasks._asdict().items()}


_FORMS: dict[str, Callable[[Any, NameOf], Any]] = {
    "": _shown,
    "name": lambda value, _: value.name,
    "text": lambda value, _: str(value or ""),
    "count": lambda value, _: len(value),
    "keys": lambda value, _: sorted(value),
    "sorted": lambda value, name_of: [_shown(one, name_of) for one in sorted(value)],
    "names": lambda value, _: sorted(one.name for one in value),
    "counts": lambda value, _: {one.name: one.partitions for one in value},
    "by_id": lambda value, name_of: {one.member_id: _shown(one, name_of) for one in value},
    "topics": lambda value, name_of: (
        None if value is None else {name_of(topic): sorted(numbers) for topic, numbers in value}
    ),
    "named": lambda value, _: {one.topic_name: sorted(one.partitions) for one in value},
    "ids": lambda value, name_of: {name_of(topic): sorted(of) for topic, of in value.items()},
    "epochs": lambda value, name_of: {
        name_of(topic): {str(number): epoch for number, epoch in epochs.items()}
        for topic, epochs in value.items()
    },
    "tasks": _tasks,
    "roles": lambda value, name_of: {
        role: _tasks(listed, name_of) for role, listed in value._asdict().items()
    },
    "member_tasks": _member_tasks,
}


# Responses and events -----------------------------------------------------------------------------


def answer_of(happened: list[Happened], number: int, name_of: NameOf) -> Json:
    """Returns the response to request `number`, if the coordinator has already sent it."""
    answer: Json = {}
    for _, effect in happened:
        if isinstance(effect, interface.Respond) and effect.request_id == number:
            answer |= _answer(effect.response, name_of)
    return answer


def _answer(response: Response, name_of: NameOf) -> Json:
    """Returns the keys of a response; none for JoinGroup and SyncGroup (see `events_of`)."""
    match response:
        case classic.JoinGroupResponse() | classic.SyncGroupResponse():
            return {}
        case offsets.OffsetCommitResponse(partitions=partitions):
            return {"err": str(partitions[0].error_code) if partitions else None}
        case offsets.OffsetFetchResponse(error_code=ErrorCode.NONE, offsets=(one,)):
            answer = {"off": one.offset, "le": one.leader_epoch, "md": one.metadata}
            return {"gerr": str(ErrorCode.NONE), "err": str(one.error_code), **answer}
        case offsets.OffsetFetchResponse(error_code=error):
            return {"gerr": str(error)}
        case offsets.OffsetDeleteResponse(error_code=error, partitions=partitions):
            return {"err": str(partitions[0].error_code if partitions else error)}
        case classic.DeleteGroupsResponse(groups=((_, error),)):
            return {"err": str(error)}
        case classic.DescribeGroupsResponse(groups=(group,)):
            answered: Json = _shown(group, name_of)
            return answered
    is_list = isinstance(response, classic.ListGroupsResponse)
    described = () if is_list else getattr(response, "groups", ())
    one_of = described[0] if described else response
    shown: Json = _shown(one_of, name_of) if type(one_of).__name__ in _KEYS else {}
    is_refused = shown.get("err") not in (None, str(ErrorCode.NONE))
    has_parts = isinstance(response, classic.LeaveGroupResponse)
    return {"err": shown["err"]} if is_refused and not has_parts else shown


def events_of(at: int, effect: interface.Effect | interface.AppendFailed) -> list[Json]:
    """Returns the events of an effect: joins, syncs, drops, timers, records, unreadable logs."""
    match effect:
        case interface.Respond(request_id, classic.JoinGroupResponse() as join):
            return [{"ev": "join", "id": request_id, "t": at} | _shown(join)]
        case interface.Respond(request_id, classic.SyncGroupResponse() as sync):
            return [{"ev": "sync", "id": request_id, "t": at} | _shown(sync)]
        case interface.Drop(request_id):
            return [{"ev": "drop", "id": request_id, "t": at}]
        case interface.Expired(key):
            return [{"ev": "timer", "t": at, "key": str(key)}]
        case interface.Append(_, records):
            return [record_event(at, record) for record in records]
        case interface.Unreadable():
            return [{"ev": "refused log", "t": at}]
        case _:
            return []


# Records ------------------------------------------------------------------------------------------


def record_event(at: int, record: interface.LogRecord) -> Json:
    """Returns the event of a record that was written at time `at` (ms)."""
    event: Json = {"ev": "record", "t": at}
    assigning = decode_record(*record)
    if assigning is not None:
        kind, group_id, name = assigning.key
        event |= {"type": kind.name, "key_version": kind.value}
        key_name = "name" if kind.group_type == "consumer" else "member_id"
        event["k"] = {"group_id": group_id} | ({} if name is None else {key_name: name})
        event["value"] = _shown(assigning.value)
    key = wire.decode_key(record.key)
    match key:
        case wire.OffsetCommitKey(group_id, topic, partition):
            event |= {"type": "offset", "key": f"{group_id}/{topic}/{partition}"}
        case wire.GroupMetadataKey(group_id):
            event |= {"type": "group", "key": group_id}
    event |= {"kb": record.key.hex(), "vb": None if record.value is None else record.value.hex()}
    return event | (_shown(wire.decode_value(key, record.value)) or {})


# States -------------------------------------------------------------------------------------------


def classic_state(broker: VirtualBroker, group_id: str) -> Json:
    """Returns a classic group's state; a group of another type counts as absent."""
    group = broker.coordinator.classic_group(group_id)
    timers = {"timers": _timers(broker, group_id)}
    if group is None:
        return {"state": f"ABSENT:{ErrorCode.GROUP_ID_NOT_FOUND}"} | timers
    simple = group.protocol_type is None and not group.members and not group.pending
    shown: Json = _shown(group, broker.topic_name)
    return shown | {"simple": simple} | timers


def state_of_any_type(broker: VirtualBroker, group_id: str) -> Json:
    """Returns the group's type and state; for a broker-assigned group, also epochs and members."""
    group = broker.coordinator.groups().get(group_id)
    timers = {"timers": _timers(broker, group_id)}
    if group is None:
        return timers | {"type": "absent"}
    if isinstance(group, Group):
        return timers | {"type": "classic", "state": str(group.state)}
    shown: Json = _shown(group, broker.topic_name)
    if hasattr(group, "is_homogeneous"):
        shown["subscription"] = "HOMOGENEOUS" if group.is_homogeneous else "HETEROGENEOUS"
    members = {
        one.member_id: _shown(one, broker.topic_name) | _extra(broker, group, one)
        for one in group.members.values()
    }
    return timers | {"type": group.group_type} | shown | {"members": members}


def _extra(broker: VirtualBroker, group: Any, member: Any) -> Json:
    """Returns a member's target and, in a consumer group, whether its protocol is classic."""
    if group.group_type == "streams":
        return {"target": _target(group.targets.get(member.member_id, NOTHING), str)}
    own = group.targets.get(member.member_id, NO_TARGET)
    extra: Json = {"target": _FORMS["ids"](own, broker.topic_name)}
    if group.group_type == "consumer":
        extra["classic"] = member.classic is not None
    return extra


def _timers(broker: VirtualBroker, group_id: str) -> dict[str, int]:
    return {
        str(key): due
        for key, due in sorted(broker.coordinator.deadlines().items())
        if key.group_id == group_id
    }


_STATES = {"state": classic_state, "mstate": state_of_any_type}


class Driver:
    """Answers commands: `line` takes one as text, `command` one as an object. `new_id` makes
    member ids.
    """

    def __init__(self, new_id: Callable[[], str] | None = None) -> None:
        self._new_id = new_id
        self._broker = VirtualBroker(new_id=new_id)
        self._count = 0

    @property
    def log(self) -> list[LogEntry]:
        """Returns the records of the log, and the markers of transactions."""
        return self._broker.log

    def line(self, line: str | bytes | None) -> str:
        """Answers a command as a line of JSON; None stands for a line that is too long."""
        if line is None:
            return json.dumps({"bad": None, "why": TOO_LONG})
        text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
        try:
            command = json.loads(text)
        except (ValueError, RecursionError) as error:  # RecursionError: too many nested lists
            return json.dumps({"bad": text.strip(), "why": f"not JSON: {error}"})
        if not isinstance(command, dict):
            return json.dumps({"bad": text.strip(), "why": "not an object"})
        return json.dumps(self.command(command))

    def command(self, command: Json) -> Json:
        op = command.get("op")
        if op not in ("init", *_STATES, *REQUESTS, *ACTIONS):
            return {"bad": op}
        self._count += 1
        absent = op == "leave" and group_id_of(command) not in self._broker.coordinator.groups()
        try:
            play = self._read(op, command)
        except (KafkaRebalanceError, AttributeError, KeyError, TypeError, ValueError) as error:
            # A field is absent or has a wrong type, so nothing is played.
            return {"bad": op, "why": f"{type(error).__name__}: {error}"}
        played = play()
        answer = played if isinstance(played, dict) else {}
        happened = self._broker.take()
        answer |= answer_of(happened, self._count, self._broker.topic_name)
        if not command.get("counts"):
            answer.pop("counts", None)
        if absent and answer.get("err") == str(ErrorCode.NONE):
            # This protocol shows the answers of Kafka's GroupCoordinatorShard, which has one error
            # for the whole request. Our coordinator, like Kafka's service above the shard, has an
            # error for each member.
            answer = {"err": str(ErrorCode.UNKNOWN_MEMBER_ID)}
        return {
            "id": self._count,
            "now": self._broker.now_ms,
            **answer,
            "events": [event for at, effect in happened for event in events_of(at, effect)],
        }

    def _read(self, op: str, command: Json) -> Step:
        """Reads a command. Returns the function that plays it."""
        if op == "init":
            self._broker = start(command, self._new_id)
            return dict
        if op in _STATES:
            return lambda: {"state": _STATES[op](self._broker, group_id_of(command))}
        return read(self._broker, command, self._count)
