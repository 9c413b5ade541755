# SPDX-License-Identifier: Apache-2.0
"""The driver protocol: each line is a JSON command, answered by a JSON line, in virtual time.

    {"op": "join", "g": "g", "protos": [["range", "meta"]], "v": 3}
    {"id": 2, "now": 0, "events": [...]}

A program that runs Kafka's own coordinator reads this protocol too, so one script tests both.
`init` starts a new coordinator, `state` and `mstate` return a group's state; `driver_commands` has
the other commands. The answer to an unknown command is {"bad": op}, that to a wrong command
{"bad": op, "why": …}. After either, the driver continues with the next line. An error inside the
coordinator is not an answer: it ends the driver.
"""

import json
from collections.abc import Callable

from kafka_rebalance.coordinator.machine.events import LogEntry
from kafka_rebalance.errors import KafkaRebalanceError
from kafka_rebalance.group.line_files import TOO_LONG
from kafka_rebalance.wire.error_codes import ErrorCode

from .driver_answers import answer_of, classic_state, events_of, state_of_any_type
from .driver_commands import ACTIONS, REQUESTS, Json, group_id_of, read, start
from .virtual_broker import VirtualBroker

_STATES = {"state": classic_state, "mstate": state_of_any_type}


class Driver:
    """Answers commands: `line` takes text, `command` an object. `new_id` makes members' ids."""

    def __init__(self, new_id: Callable[[], str] | None = None) -> None:
        self._new_id = new_id
        self._broker = VirtualBroker(new_id=new_id)
        self._count = 0

    @property
    def log(self) -> list[LogEntry]:
        """The records of the log, and the markers of transactions."""
        return self._broker.log

    def line(self, line: str | bytes | None) -> str:
        """Answers a command that is a line of JSON; None stands for one that is too long."""
        if line is None:
            return json.dumps({"bad": None, "why": TOO_LONG})
        text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
        try:
            command = json.loads(text)
        except (ValueError, RecursionError) as error:  # RecursionError: lists in lists, too deep
            return json.dumps({"bad": text.strip(), "why": f"not JSON: {error}"})
        if not isinstance(command, dict):
            return json.dumps({"bad": text.strip(), "why": "not an object"})
        return json.dumps(self.command(command))

    def command(self, command: Json) -> Json:
        """Answers a command that is an object."""
        op = command.get("op")
        if op not in ("init", *_STATES, *REQUESTS, *ACTIONS):
            return {"bad": op}
        self._count += 1
        absent = op == "leave" and group_id_of(command) not in self._broker.coordinator.groups()
        try:
            play = self._read(op, command)
        except (KafkaRebalanceError, AttributeError, KeyError, TypeError, ValueError) as error:
            # Fields that are absent or of other types: the command is read, but nothing is played.
            return {"bad": op, "why": f"{type(error).__name__}: {error}"}
        answer = play()
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

    def _read(self, op: str, command: Json) -> Callable[[], Json]:
        """Reads a command; the function that is returned plays it."""
        if op == "init":
            self._broker = start(command, self._new_id)
            return dict
        if op in _STATES:
            return lambda: {"state": _STATES[op](self._broker, group_id_of(command))}
        step = read(self._broker, command, self._count)

        def play() -> Json:
            step()
            return {}

        return play
