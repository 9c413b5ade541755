# SPDX-License-Identifier: Apache-2.0
"""The driver protocol: each line is a JSON command, answered by a JSON line, in virtual time.

    {"op": "join", "g": "g", "protos": [["range", "meta"]], "v": 3}
    {"id": 2, "now": 0, "events": [...]}

A program that runs Kafka's own coordinator reads this protocol too, so one script tests both.
`init` starts a new coordinator, `state` returns a group's state; `driver_commands` has the other
commands. The answer to an unknown command is {"bad": op}, that to a wrong command {"bad": op,
"why": …}. After either, the driver continues with the next line.
"""

import json
from collections.abc import Callable

from kafka_rebalance.errors import KafkaRebalanceError
from kafka_rebalance.protocol.error_codes import ErrorCode

from .driver_answers import answer_of, events_of
from .driver_commands import ACTIONS, REQUESTS, Json, config_of, group_id_of, play
from .virtual_broker import VirtualBroker


class Driver:
    """Answers commands: `line` takes text, `command` an object. `new_id` makes members' ids."""

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
        if op not in ("init", "state", *REQUESTS, *ACTIONS):
            return {"bad": op}
        self._count += 1
        absent = op == "leave" and group_id_of(command) not in self._broker.coordinator.groups()
        try:
            answer = self._play(op, command)
        except (KafkaRebalanceError, KeyError, TypeError, ValueError) as error:
            return {"bad": op, "why": f"{type(error).__name__}: {error}"}
        happened = self._broker.take()
        answer |= answer_of(happened, self._count)
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

    def _play(self, op: str, command: Json) -> Json:
        if op == "init":
            self._broker = VirtualBroker(config_of(command), self._new_id)
        elif op == "state":
            return {"state": _state(self._broker, group_id_of(command))}
        else:
            play(self._broker, command, self._count)
        return {}


def _state(broker: VirtualBroker, group_id: str) -> Json:
    group = broker.coordinator.groups().get(group_id)
    timers = {
        str(key): due
        for key, due in sorted(broker.coordinator.deadlines().items())
        if key.group_id == group_id
    }
    if group is None:
        return {"state": f"ABSENT:{ErrorCode.GROUP_ID_NOT_FOUND}", "timers": timers}
    simple = group.protocol_type is None and not group.members and not group.pending
    return {
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
