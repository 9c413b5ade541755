# SPDX-License-Identifier: Apache-2.0
"""Checks arguments of the core's bulk functions, and lists the columns that these do not read."""

from collections.abc import Iterable
from typing import Any

from kafka_rebalance.assignors.registry import (
    BUILT_IN,
    WEIGHTED,
    in_core,
    row_of,
)
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import quoted
from kafka_rebalance.plans.changes.assignor import SwitchAssignor
from kafka_rebalance.plans.changes.change import Change
from kafka_rebalance.plans.changes.protocol import SwitchProtocol
from kafka_rebalance.plans.rebalance_plan import parse_changes

NOT_COMPARED = {"members[].client_host"}
"""The fields that comparisons do not read."""

_NOT_PLANNED = NOT_COMPARED | {"leader_library", "members[].client_library"}
_SWITCH = SwitchProtocol.VERBS[0].name

Call = tuple[str, tuple[Any, ...]]
"""A label (a change, or ""), and the arguments of the core's function that follow the batch."""


def assign_call(assignor: str | None, max_partitions: int) -> Call:
    """Returns the arguments for the core's `assign`. Errors: GroupError for an unknown assignor."""
    known(assignor)
    return "", (assignor, max_partitions, 1)


def plan_call(
    assignor: str | None, changes: Iterable[Change | str] | None, max_partitions: int
) -> Call:
    """Returns the arguments for the core's `plan`. Errors: GroupError for a wrong assignor or
    change.
    """
    known(assignor)
    texts = None if changes is None else texts_of(changes)
    return "", (assignor, texts, max_partitions, 1)


def compare_call(changes: Iterable[Change | str], max_partitions: int) -> Call:
    """Returns the arguments for the core's `compare`. Errors: GroupError for a wrong change."""
    parsed = parse_changes(changes)
    for i, change in enumerate(parsed):
        if isinstance(change, SwitchAssignor):
            problem = "a comparison asks every assignor as it is; leave the switch out"
            raise GroupError(f"changes[{i}]", problem)
    return "", (texts_of(parsed), max_partitions, 1)


def known(assignor: str | None) -> None:
    """Raises GroupError for an assignor that the core lacks, and for wrong settings in its name."""
    if assignor is not None and assignor.partition("?")[0] not in in_core():
        raise GroupError(
            "assignor",
            f"{quoted(assignor)} is not built in; Spark's workers know {', '.join(in_core())}",
        )
    if assignor is not None:
        row_of(assignor)


def not_planned(calls: Iterable[Call]) -> set[str]:
    """Returns the fields that these calls of `plan` do not read.

    Only a switch of the protocol reads the members' libraries.
    """
    texts = [text for _, (_, changes, *_) in calls for text in changes or [_SWITCH]]
    return NOT_COMPARED if any(one.startswith(_SWITCH) for one in texts) else _NOT_PLANNED


def texts_of(changes: Iterable[Change | str]) -> list[str]:
    return [str(change) for change in parse_changes(changes)]


def unread(assignor: str | None) -> set[str]:
    """Returns the columns and fields that the assignor does not read; these are not validated."""
    drop = {"members[].client_id", *_NOT_PLANNED}
    if assignor is not None:
        drop |= {"assignor", "rebalance_protocol"}
        if assignor.partition("?")[0] != WEIGHTED:
            drop |= {"topics[].weights", "members[].capacity"}
    row = BUILT_IN.get(assignor or "")
    if row is not None:
        drop |= {"topics[].topic_id", "topics[].initialized"}
        drop |= {"subtopologies", "num_standby_replicas", "members[].process_id"}
        drop |= {f"members[].{name}" for name in ("active_tasks", "standby_tasks", "task_offsets")}
    if row is not None and row.ignores_racks:
        drop |= {"topics[].racks", "members[].rack_id"}
    if row is not None and not row.remembers:
        drop |= {"members[].owned_partitions", "members[].generation_id"}
    return drop
