# SPDX-License-Identifier: Apache-2.0
"""Finds the members that may run in a lost rack: they send no rack, so it is unknown.

librdkafka sends an empty string if `client.rack` is not set, other libraries send null.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafka_rebalance.group.spec import GroupSpec

from .rounds import Step

if TYPE_CHECKING:
    from .rebalance_plan import RebalancePlan

_LOST_RACK = "remove-rack="


def in_plan(plan: "RebalancePlan") -> list[str] | None:
    """Returns the members whose racks are unknown when a rack is lost; None if none is lost."""
    if not _loses_rack(map(str, plan.changes)):
        return None
    return list(dict.fromkeys(member_id for step in plan.steps for member_id in at_step(step)))


def at_first(group: GroupSpec, changes: Iterable[str]) -> list[str] | None:
    """Returns the members whose racks are unknown before any change; None if no rack is lost."""
    return _without_rack(group) if _loses_rack(changes) else None


def at_step(step: Step) -> list[str]:
    """Returns the members that stay where a rack is lost only because they send no rack."""
    return _without_rack(step.before) if _loses_rack([step.cause]) else []


def _without_rack(group: GroupSpec) -> list[str]:
    return [member.member_id for member in group.members if member.rack is None]


def _loses_rack(changes: Iterable[str]) -> bool:
    return any(change.startswith(_LOST_RACK) for change in changes)
