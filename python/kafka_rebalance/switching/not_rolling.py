# SPDX-License-Identifier: Apache-2.0
"""Finds the switches of a plan that need more than a new setting in one member after another.

A plan plays `SwitchAssignor` as for members that list the old and the new assignor meanwhile. Some
clients refuse such a list, or lack the new assignor; kafka-python accepts some lists only with this
project's plug-ins (`plans/clients.py`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kafka_rebalance.assignors.python_libraries import PYTHON_LIBRARIES
from kafka_rebalance.assignors.registry import BUILT_IN
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.changes import Change, SwitchAssignor
from kafka_rebalance.plans.clients import (
    AIOKAFKA,
    CLIENTS,
    KAFKA_PYTHON,
    Recipe,
    clients_for,
    recipe,
)
from kafka_rebalance.plans.rounds import protocol_of


@dataclass(frozen=True, slots=True)
class Switched:
    """A switch from `old` to `new`, with a recipe for each client that must make the switch in
    another way.
    """

    old: str
    new: str
    recipes: tuple[Recipe, ...]

    def to_dict(self) -> dict[str, Any]:
        recipes = [one.to_dict() for one in self.recipes]
        return {"from": self.old, "to": self.new, "recipes": recipes}


def not_rolling(
    group: GroupSpec, changes: Iterable[Change], assignor: str | None = None
) -> tuple[Switched, ...]:
    """Returns the switches that a member of the group certainly cannot make as they are planned.

    A member may run the client that its client id reveals, or else each client that its bytes fit.
    It certainly refuses a switch if every client that it may run refuses it; the result names those
    clients. `assignor` is the one that the plan begins with (None: the group's).
    """
    may_run = {clients_for(member, group.group_id) for member in group.members}
    found = []
    for old, new in _switches(assignor or group.assignor, changes):
        recipes = {client: recipe(client, old, new) for client in CLIENTS}
        refuse = {client for client, one in recipes.items() if one.way != "rolling"}
        named = {client for clients in may_run if refuse.issuperset(clients) for client in clients}
        if named:
            hard = tuple(one for client, one in recipes.items() if client in named)
            found.append(Switched(old, new, hard))
    return tuple(found)


def by_plug_ins(
    group: GroupSpec, changes: Iterable[Change], assignor: str | None = None
) -> tuple[Switched, ...]:
    """Returns the switches that members of kafka-python can make with this project's plug-ins only.

    Members count if their bytes or client ids show kafka-python, or one of the Python libraries:
    the result then contains aiokafka's recipe, too.
    """
    python = {KAFKA_PYTHON, AIOKAFKA}
    may_run = {clients_for(member, group.group_id) for member in group.members}
    found = [one for one in may_run if KAFKA_PYTHON in one and python.issuperset(one)]
    clients = [client for client in CLIENTS if any(client in one for one in found)]
    return tuple(
        Switched(old, new, tuple(recipe(client, old, new) for client in clients))
        for old, new in _switches(assignor or group.assignor, changes)
        if clients
        and recipe(KAFKA_PYTHON, old, new).way == "rolling"
        and protocol_of(old) is not protocol_of(new)
    )


def _switches(assignor: str | None, changes: Iterable[Change]) -> Iterator[tuple[str, str]]:
    """Yields (old, new) for assignors with known settings, not for custom ones."""
    for change in changes:
        if isinstance(change, SwitchAssignor):
            if {assignor, change.assignor} <= {*BUILT_IN, *PYTHON_LIBRARIES}:
                yield assignor or "", change.assignor
            assignor = change.assignor
