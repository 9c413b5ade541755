# SPDX-License-Identifier: Apache-2.0
"""The driver protocol: each line is a JSON command, answered by a JSON line, in virtual time.

    {"op": "join", "g": "g", "protos": [["range", "meta"]], "v": 3}
    {"id": 2, "now": 0, "events": [...]}

A program around Kafka's own coordinator reads this protocol too, so that one script tests both. The
commands are in `_REQUESTS` and `_ACTIONS`, the answers in `driver_answers`. The answer to an
unknown command is {"bad": op}, to a broken one {"bad": op, "why": …}; then the next line is read
as usual.
"""

import json
from collections.abc import Callable

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.errors import KafkaRebalanceError
from kafka_rebalance.protocol.error_codes import ErrorCode
from kafka_rebalance.protocol.messages import (
    DeleteGroups,
    DescribeGroups,
    EndTransaction,
    Heartbeat,
    JoinGroup,
    JoinGroupProtocol,
    LeaveGroup,
    ListGroups,
    MemberIdentity,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    OffsetToCommit,
    Request,
    SyncGroup,
    TxnOffsetCommit,
)

from .driver_answers import Json, answer_of, events_of
from .virtual_broker import VirtualBroker


class Driver:
    """Answers commands; `line` takes and returns text, `command` takes and returns objects.

    `new_id` returns the 36 characters of a new member's id.
    """

    def __init__(self, new_id: Callable[[], str] | None = None) -> None:
        self._new_id = new_id
        self._broker = VirtualBroker(new_id=new_id)
        self._count = 0

    def line(self, line: str) -> str:
        """Answers a command that is a line of JSON."""
        try:
            command = json.loads(line)
        except ValueError as error:
            return json.dumps({"bad": line.strip(), "why": f"not JSON: {error}"})
        if not isinstance(command, dict):
            return json.dumps({"bad": line.strip(), "why": "not an object"})
        return json.dumps(self.command(command))

    def command(self, command: Json) -> Json:
        """Answers a command that is an object."""
        op = command.get("op")
        if op not in ("init", *_REQUESTS, *_ACTIONS):
            return {"bad": op}
        self._count += 1
        absent = op == "leave" and _group_id(command) not in self._broker.coordinator.groups()
        try:
            answer = self._play(op, command)
        except (KafkaRebalanceError, KeyError, TypeError, ValueError) as error:
            return {"bad": op, "why": f"{type(error).__name__}: {error}"}
        happened = self._broker.take()
        answer |= answer_of(happened, self._count)
        if absent and answer.get("err") == str(ErrorCode.NONE):
            # Kafka's service turns the code into one for each member; the driver has no service.
            answer = {"err": str(ErrorCode.UNKNOWN_MEMBER_ID)}
        return {
            "id": self._count,
            "now": self._broker.now_ms,
            **answer,
            "events": [event for at, effect in happened for event in events_of(at, effect)],
        }

    def _play(self, op: str, command: Json) -> Json:
        if op == "init":
            self._broker = VirtualBroker(_config(command), self._new_id)
            return {}
        if op in _ACTIONS:
            return _ACTIONS[op](self._broker, command) or {}
        request, version = _REQUESTS[op]
        self._broker.send(
            request(command),
            api_version=command.get("v", version),
            client_id=command.get("client", "c"),
            request_id=self._count,
        )
        return {}


# Commands -----------------------------------------------------------------------------------------


def _config(command: Json) -> CoordinatorConfig:
    return CoordinatorConfig(
        group_initial_rebalance_delay_ms=command.get("init_delay", 3_000),
        group_max_size=command.get("max_size", 2**31 - 1),
        group_min_session_timeout_ms=command.get("min_st", 6_000),
        group_max_session_timeout_ms=command.get("max_st", 1_800_000),
        offset_metadata_max_bytes=command.get("meta_max", 4_096),
        offsets_retention_minutes=command.get("ret_min", 10_080),
    )


def _advance(broker: VirtualBroker, command: Json) -> None:
    broker.advance(command["ms"])


def _state(broker: VirtualBroker, command: Json) -> Json:
    group_id = _group_id(command)
    group = broker.coordinator.groups().get(group_id)
    timers = {
        str(key): due
        for key, due in sorted(broker.coordinator.deadlines().items())
        if key.group_id == group_id
    }
    if group is None:
        return {"state": {"state": f"ABSENT:{ErrorCode.GROUP_ID_NOT_FOUND}", "timers": timers}}
    simple = group.protocol_type is None and not group.members and not group.pending
    state = {
        "state": str(group.state),
        "gen": group.generation_id,
        "proto": group.protocol_name,
        "ptype": group.protocol_type,
        "leader": group.leader_id,
        "ts": group.state_timestamp_ms,
        "members": sorted(group.members),
        "pending": len(group.pending),
        "awaiting": group.awaiting_join,
        "simple": simple,
        "pending_sync": sorted(group.pending_sync),
        "timers": timers,
    }
    return {"state": state}


def _join(command: Json) -> JoinGroup:
    protocols = (JoinGroupProtocol(name, _bytes(data)) for name, data in command.get("protos", ()))
    return JoinGroup(
        group_id=_group_id(command),
        member_id=command.get("m", ""),
        group_instance_id=command.get("inst"),
        session_timeout_ms=command.get("st", 10_000),
        rebalance_timeout_ms=command.get("rt", 300_000),
        protocol_type=command.get("pt", "consumer"),
        protocols=tuple(protocols),
    )


def _sync(command: Json) -> SyncGroup:
    given = command.get("asg") or {}
    return SyncGroup(
        group_id=_group_id(command),
        member_id=command.get("m", ""),
        generation_id=command.get("gen", -1),
        group_instance_id=command.get("inst"),
        protocol_type=command.get("pt"),
        protocol_name=command.get("pn"),
        assignments=tuple((member_id, _bytes(data)) for member_id, data in given.items()),
    )


def _hb(command: Json) -> Heartbeat:
    return Heartbeat(
        group_id=_group_id(command),
        member_id=command.get("m", ""),
        generation_id=command.get("gen", -1),
        group_instance_id=command.get("inst"),
    )


def _leave(command: Json) -> LeaveGroup:
    members = (MemberIdentity(one.get("m", ""), one.get("inst")) for one in command["members"])
    return LeaveGroup(group_id=_group_id(command), members=tuple(members))


def _offsets(command: Json) -> tuple[OffsetToCommit, ...]:
    if "off" not in command:
        return ()  # the commit contains no topics
    return (
        OffsetToCommit(
            *_partition(command), command["off"], command.get("md", ""), command.get("le", -1)
        ),
    )


def _commit(command: Json) -> OffsetCommit:
    return OffsetCommit(
        group_id=_group_id(command),
        offsets=_offsets(command),
        member_id=command.get("m", ""),
        generation_id=command.get("gen", -1),
        group_instance_id=command.get("inst"),
        retention_ms=command.get("retention"),
    )


def _txncommit(command: Json) -> TxnOffsetCommit:
    return TxnOffsetCommit(
        group_id=_group_id(command),
        producer_id=command["pid"],
        offsets=_offsets(command),
        member_id=command.get("m", ""),
        generation_id=command.get("gen", -1),
        group_instance_id=command.get("inst"),
    )


def _endtxn(command: Json) -> EndTransaction:
    return EndTransaction(producer_id=command["pid"], committed=command["commit"])


def _fetch(command: Json) -> OffsetFetch:
    return OffsetFetch(
        group_id=_group_id(command),
        partitions=(_partition(command),),
        require_stable=command.get("stable", False),
    )


def _delete_offsets(command: Json) -> OffsetDelete:
    return OffsetDelete(group_id=_group_id(command), partitions=(_partition(command),))


def _delete_group(command: Json) -> DeleteGroups:
    return DeleteGroups(group_ids=(_group_id(command),))


def _describe(command: Json) -> DescribeGroups:
    return DescribeGroups(group_ids=(_group_id(command),))


def _list(_: Json) -> ListGroups:
    return ListGroups()


def _topic_deleted(broker: VirtualBroker, command: Json) -> None:
    broker.delete_partitions(_partition(command))


def _fail_next(broker: VirtualBroker, command: Json) -> None:
    broker.fail_next(ErrorCode[command["err"]])


def _reload(broker: VirtualBroker, command: Json) -> None:
    broker.reload(group_max_size=command.get("max_size"))


def _raw(broker: VirtualBroker, command: Json) -> None:
    value = command.get("v")
    data = None if value is None else bytes.fromhex(value)
    broker.write(bytes.fromhex(command["k"]), data, command.get("pid"))


def _rawend(broker: VirtualBroker, command: Json) -> None:
    broker.mark(command["pid"], command["commit"])


# Maps op to its request, and to the version if the command has none.
_REQUESTS: dict[str, tuple[Callable[[Json], Request], int | None]] = {
    "join": (_join, 9),
    "sync": (_sync, 4),  # from 5 on, protocol type and name are mandatory
    "hb": (_hb, None),
    "leave": (_leave, None),
    "commit": (_commit, 9),
    "txncommit": (_txncommit, 3),  # from 6 on, an absent group has its own error
    "endtxn": (_endtxn, None),
    "fetch": (_fetch, None),
    "delete_offsets": (_delete_offsets, None),
    "delete_group": (_delete_group, None),
    "describe": (_describe, 5),  # from 6 on, an absent group is an error
    "list": (_list, None),
}

# Maps op to a function that changes the broker and returns the answer without its events.
_ACTIONS: dict[str, Callable[[VirtualBroker, Json], Json | None]] = {
    "advance": _advance,
    "state": _state,
    "topic_deleted": _topic_deleted,
    "cleanup": lambda broker, _: broker.sweep(),
    "hold": lambda broker, _: broker.hold(),
    "release": lambda broker, _: broker.release(),
    "release_last": lambda broker, _: broker.release_last(),
    "fail_next": _fail_next,
    "reload": _reload,
    "unload": lambda broker, _: broker.unload(),
    "raw": _raw,
    "rawend": _rawend,
}


def _group_id(command: Json) -> str:
    return str(command.get("g", "g"))


def _partition(command: Json) -> tuple[str, int]:
    return command.get("topic", "t"), command.get("p", 0)


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text[4:]) if text.startswith("hex:") else text.encode()
