# SPDX-License-Identifier: Apache-2.0
"""Computes the leaders' answers for classic Kafka Streams groups, as result lines and as rows."""

from collections.abc import Mapping
from typing import Any

from kafka_rebalance.applications.lines import FIELD, read_application
from kafka_rebalance.applications.replayed import read_replay
from kafka_rebalance.assignors.registry import STREAM, Engine
from kafka_rebalance.assignors.streams import engines
from kafka_rebalance.assignors.streams.application import LeaderAnswer, ThreadAssignment
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group import contract
from kafka_rebalance.group.field_paths import object_
from kafka_rebalance.group.model import in_runs


def leader_answer(group_id: str, field: Any, engine: Engine = "rust") -> LeaderAnswer:
    """Returns the leader's answer for a line's field `application`.

    With `subtopologies` and without `assigned`, the field is the whole input of a leader. Else the
    leader's last call is replayed, and the answer is the present assignment.

    Errors   GroupError for a bad field, or if the replay differs; AssignorThrows.
    """
    if object_(field, FIELD).get("assigned") is None and field.get("subtopologies"):
        application = read_application(field)
    else:
        replay = read_replay(group_id, field, {}, engine=engine)
        if replay.problem is not None:
            raise GroupError(FIELD, replay.problem)
        application = replay.application
    return engines.assign(application, reference=engine == "reference", with_lags=False)


def assigned_line(group_id: str, fields: Mapping[str, Any], engine: Engine) -> bytes:
    """Returns the result line for an application; its standby tasks are [subtopology, number]."""
    members = leader_answer(group_id, fields[FIELD], engine).members
    later = [one.next_rebalance_ms for one in members.values()]
    answer = {
        "group_id": group_id,
        "assignor": STREAM,
        "assignment": {name: one.partitions for name, one in members.items()},
        "standby": {name: _standby(one) for name, one in members.items()},
        "next_rebalance_ms": min((one for one in later if one is not None), default=None),
    }
    return contract.dumps(answer).encode()


def assigned_row(group_id: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the answer to a row. In a row's columns, `application` is the line's field as JSON
    text, because its lists mix types, which Arrow does not allow.
    """
    field = row[FIELD]
    if isinstance(field, str):
        try:
            field = contract.parse(field)
        except GroupError as error:
            raise GroupError(FIELD, error.problem) from None
    members = leader_answer(group_id, field).members
    lists: dict[str, list[dict[str, Any]]] = {"assignment": [], "standby": []}
    for member_id, one in members.items():
        for name, pairs in zip(lists, (one.partitions, _standby(one)), strict=True):
            lists[name].append({"member_id": member_id, "partitions": in_runs(pairs)})
    return {"assignor": STREAM, **lists}


def _standby(one: ThreadAssignment) -> list[tuple[str, int]]:
    return [(str(task.subtopology_id), task.partition) for task in one.standby_tasks]
