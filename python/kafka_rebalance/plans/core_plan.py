# SPDX-License-Identifier: Apache-2.0
"""A plan that Rust has played, as `Step`s and `Round`s whose fields are computed at first use.

Rust returns no groups. To get the group of a step, Python repeats the edits of all events up to the
step, and reads the members' partitions from the core's columns. No assignor runs again.
"""

from collections.abc import Iterator
from functools import partial

import kafka_rebalance._core as _core
from kafka_rebalance.assignors.assigning import from_columns, partitions_from
from kafka_rebalance.assignors.interface import RebalanceProtocol
from kafka_rebalance.group.ownership import Assignment, Delta
from kafka_rebalance.group.spec import GroupSpec

from .changes.change import Change
from .changes.edits import AS_IT_IS, Edited
from .changes.made_up import MadeUp
from .rounds import Round, Step, as_claimed, claiming, lists_eager


class CorePlan:
    """The core's steps, and the group before and after each. `ids` makes up the same ids as the
    core.
    """

    def __init__(
        self, core: "_core.Plan", group: GroupSpec, changes: tuple[Change, ...], ids: MadeUp
    ) -> None:
        self.steps = core.steps
        self.rounds = [step.rounds for step in core.steps]
        self.member_ids = [step.member_ids for step in core.steps]
        self.changes = changes
        self._group, self._ids = group, ids
        self._edits = self._edit()
        self._edited: list[Edited] = []

    def _edit(self) -> Iterator[Edited]:
        group, step = self._group, 0
        if not self.changes:
            yield Edited(group)
        for change in self.changes:
            for event in change.renamed(self._ids).events(group):
                yield event.edit(group, self._ids)
                group, step = self.after(step), step + 1

    def before(self, step: int) -> Edited:
        while len(self._edited) <= step:
            self._edited.append(next(self._edits))
        return self._edited[step]

    def after(self, step: int, rounds: int | None = None) -> GroupSpec:
        """Returns the group after the first `rounds` rounds of a step (None means all rounds)."""
        group = self.before(step).group
        played = self.rounds[step][:rounds]
        if not played:
            return group
        assignment = self.assignment(step, played[-1].assignment)
        claimed = as_claimed(group.assignor, assignment)
        return group.owning(claimed, generation_id=played[-1].generation_id)

    def assignment(self, step: int, columns: "_core.Columns") -> Assignment:
        return from_columns(self.member_ids[step], columns)

    def origins(self, step: int) -> dict[str, str]:
        came_back = ((one.came_back, one.came_back_for) for one in self.steps[: step + 1])
        origins = {member.member_id: member.member_id for member in self._group.members}
        return origins | {new: old for new, old in came_back if new is not None and old is not None}


def core_step(plan: CorePlan, step: int) -> Step:
    """Returns a step that Rust played; each field is computed when it is first read."""
    core = plan.steps[step]
    rounds = range(len(plan.rounds[step]))
    change = AS_IT_IS.cause if core.change is None else str(plan.changes[core.change])
    return Step.lazy(
        cause=lambda: change if core.cause is None else core.cause,
        before=lambda: plan.before(step).group,
        after=lambda: plan.after(step),
        rounds=lambda: tuple(_core_round(plan, step, number) for number in rounds),
        settled=lambda: core.settled,
        origins=lambda: plan.origins(step),
        waiting=lambda: partitions_from(core.waiting),
        leaderless=lambda: partitions_from(core.leaderless),
    )


def _core_round(plan: CorePlan, step: int, number: int) -> Round:
    core = plan.rounds[step][number]
    protocol = RebalanceProtocol.EAGER if core.is_eager else RebalanceProtocol.COOPERATIVE
    assignment = partial(plan.assignment, step)

    def group() -> GroupSpec:
        held, assignor = plan.after(step, number), plan.before(step).group.assignor or ""
        edited = plan.before(step)
        starts_over = edited.starts_over or lists_eager(held, assignor)
        return claiming(held, assignor, protocol, starts_over=starts_over, forgets=edited.forgets)

    def delta() -> Delta:
        found = core.delta
        parts = (found.kept, found.revoked, found.gained, found.transferring)
        return Delta(*map(assignment, parts))

    return Round.lazy(
        group=group,
        assignor=lambda: plan.before(step).group.assignor or "",
        generation_id=lambda: core.generation_id,
        protocol=lambda: protocol,
        held=lambda: assignment(core.held),
        assignment=lambda: assignment(core.assignment),
        delta=delta,
        withheld=lambda: assignment(found) if (found := core.withheld) else Assignment.of({}),
        unavailable=lambda: partitions_from(core.unavailable),
    )
