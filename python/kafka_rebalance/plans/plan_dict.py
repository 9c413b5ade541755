# SPDX-License-Identifier: Apache-2.0
"""A plan as a dict for JSON."""

from typing import TYPE_CHECKING, Any

from kafka_rebalance.group.ownership import Assignment, Delta
from kafka_rebalance.group.spec import GroupSpec

from .figures import topic_balances
from .rounds import Round, Step

if TYPE_CHECKING:
    from .rebalance_plan import RebalancePlan


def as_dict(plan: "RebalancePlan") -> dict[str, Any]:
    """Returns the figures of a plan, then all its steps and rounds."""
    return {
        "group_id": plan.group.group_id,
        "assignor": plan.assignor,
        "leader_library": plan.group.leader_library,
        "changes": [str(change) for change in plan.changes],
        **plan.figures().to_dict(),
        "made_up": [
            {"member_id": one.member_id, "name": one.name, "basis": one.basis.value}
            for one in plan.newcomers
        ],
        "possible": plan.possible.to_dict(),
        "topics_before": _balances(plan.group, plan.before),
        "topics_after": _balances(plan.final, plan.after),
        "steps": [_step(step, known=plan.knows_generation) for step in plan.steps],
        "assignment": plan.after.to_dict(),
        **({} if plan.after.standby is None else {"standby": plan.after.standby.to_dict()}),
    }


def _balances(group: GroupSpec, assignment: Assignment) -> dict[str, Any]:
    return {name: one.to_dict() for name, one in topic_balances(group, assignment).items()}


def _step(step: Step, *, known: bool) -> dict[str, Any]:
    return {
        "cause": step.cause,
        "settled": step.settled,
        "waiting": [list(tp) for tp in step.waiting],
        "leaderless": [list(tp) for tp in step.leaderless],
        "rounds": [
            {
                "protocol": one.kind,
                "generation_id": one.generation_id if known else None,
                **_changed(one, *_MOVES, "withheld"),
                "unavailable": [list(tp) for tp in one.unavailable],
                **({} if standby is None else {"standby": _changed(standby, *_MOVES)}),
            }
            for one, standby in ((one, one.standby) for one in step.rounds)
        ],
    }


_MOVES = ("kept", "revoked", "gained")


def _changed(one: Round | Delta, *parts: str) -> dict[str, Any]:
    return {
        part: {m: owned for m, owned in getattr(one, part).to_dict().items() if owned}
        for part in parts
    }
