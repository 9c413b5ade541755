# SPDX-License-Identifier: Apache-2.0
"""Finds the switches of a plan that a client of the group cannot make by rolling bounces.

A plan plays `SwitchAssignor` as for members that list the old and the new assignor meanwhile. Some
clients refuse such a list, or lack the new assignor (`clients.py`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kafka_rebalance.assignors.registry import BUILT_IN, protocol_name
from kafka_rebalance.group.spec import GroupSpec

from .changes import Change, SwitchAssignor
from .clients import CLIENTS, Recipe, clients_for, recipe


@dataclass(frozen=True, slots=True)
class Switched:
    """A switch from `old` to `new`, with a recipe for each client that must do it otherwise."""

    old: str
    new: str
    recipes: tuple[Recipe, ...]

    def to_dict(self) -> dict[str, Any]:
        recipes = [one.to_dict() for one in self.recipes]
        return {"from": self.old, "to": self.new, "recipes": recipes}


def not_rolling(group: GroupSpec, changes: Iterable[Change]) -> tuple[Switched, ...]:
    """Returns the switches that a member of the group certainly cannot make as they are planned.

    A member may run the client that its client id reveals, or else each client that its bytes fit.
    It certainly refuses a switch if every client that it may run does; these are then named.
    """
    may_run = {clients_for(member, group.group_id) for member in group.members}
    found = []
    for old, new in _switches(group.assignor, changes):
        recipes = {client: recipe(client, old, new) for client in CLIENTS}
        refuse = {client for client, one in recipes.items() if one.way != "rolling"}
        named = {client for clients in may_run if refuse.issuperset(clients) for client in clients}
        if named:
            hard = tuple(one for client, one in recipes.items() if client in named)
            found.append(Switched(old, new, hard))
    return tuple(found)


def _switches(assignor: str | None, changes: Iterable[Change]) -> Iterator[tuple[str, str]]:
    for change in changes:
        if isinstance(change, SwitchAssignor):
            # The settings of a Python library's own assignor are those of Kafka's name.
            old = assignor if assignor in BUILT_IN else protocol_name(assignor or "")
            if {old, change.assignor} <= {*BUILT_IN}:
                yield old, change.assignor
            assignor = change.assignor
