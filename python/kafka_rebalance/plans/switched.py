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
from .clients import Recipe, clients_of, clients_that_fit, recipe


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
    """Returns the switches that a client of the group cannot make as they are planned.

    The clients are those that client ids reveal, or else those that the members' bytes fit. If any
    client fits, none is named: nothing says that the group cannot make the switch.
    """
    clients = clients_of(group) or clients_that_fit(group)
    found = []
    for old, new in _switches(group.assignor, changes):
        recipes = tuple(recipe(client, old, new) for client in clients)
        hard = tuple(one for one in recipes if one.way != "rolling")
        if hard and _is_certain(group, recipes, hard):
            found.append(Switched(old, new, hard))
    return tuple(found)


def _is_certain(group: GroupSpec, recipes: tuple[Recipe, ...], hard: tuple[Recipe, ...]) -> bool:
    """Returns whether a member certainly has one of the clients `hard`."""
    return bool(clients_of(group)) or len(hard) == len(recipes)


def _switches(assignor: str | None, changes: Iterable[Change]) -> Iterator[tuple[str, str]]:
    for change in changes:
        if isinstance(change, SwitchAssignor):
            # The settings of a Python library's own assignor are those of Kafka's name.
            old = assignor if assignor in BUILT_IN else protocol_name(assignor or "")
            if {old, change.assignor} <= {*BUILT_IN}:
                yield old, change.assignor
            assignor = change.assignor
