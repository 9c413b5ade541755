# SPDX-License-Identifier: Apache-2.0
"""A plan that Rust has played, as `Step`s and `Round`s that read a field when it is first needed.

Assignments are columns of the core. Rust never sends a group back to Python. If the group of a step
is needed, the edits of all events up to that step are made again in Python, and the members'
partitions are read from the core's columns. No assignor runs again.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from kafka_rebalance import _core
from kafka_rebalance.assignors import RebalanceProtocol
from kafka_rebalance.assignors.assigning import from_columns, partitions_from
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.ownership import Assignment, Delta
from kafka_rebalance.group.spec import GroupSpec

from .changes import Change
from .changes.edits import AS_IT_IS, Edited
from .changes.made_up import MadeUp
from .rounds import Round, claiming


class CorePlan:
    """The core's steps, and the groups between them; `ids` makes up the ids that the core has."""

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
        """Returns the group after this many rounds of a step; None means all rounds."""
        group = self.before(step).group
        played = self.rounds[step][:rounds]
        if not played:
            return group
        assignment = self.assignment(step, played[-1].assignment)
        return group.owning(assignment, generation_id=played[-1].generation_id)

    def assignment(self, step: int, columns: "_core.Columns") -> Assignment:
        return from_columns(self.member_ids[step], columns)

    def origins(self, step: int) -> dict[str, str]:
        came_back = ((one.came_back, one.came_back_for) for one in self.steps[: step + 1])
        origins = {member.member_id: member.member_id for member in self._group.members}
        return origins | {new: old for new, old in came_back if new is not None and old is not None}


class CoreStep(NamedTuple):
    """The fields of a `Step`, read from the core."""

    plan: CorePlan
    step: int

    @property
    def cause(self) -> str:
        core = self.plan.steps[self.step]
        if core.cause is not None:
            return core.cause
        return AS_IT_IS.cause if core.change is None else str(self.plan.changes[core.change])

    @property
    def before(self) -> GroupSpec:
        return self.plan.before(self.step).group

    @property
    def after(self) -> GroupSpec:
        return self.plan.after(self.step)

    @property
    def rounds(self) -> tuple[Round, ...]:
        rounds = range(len(self.plan.rounds[self.step]))
        return tuple(Round.late(CoreRound(self.plan, self.step, number)) for number in rounds)

    @property
    def settled(self) -> bool:
        return self.plan.steps[self.step].settled

    @property
    def origins(self) -> dict[str, str]:
        return self.plan.origins(self.step)

    @property
    def waiting(self) -> tuple[TopicPartition, ...]:
        return partitions_from(self.plan.steps[self.step].waiting)

    @property
    def leaderless(self) -> tuple[TopicPartition, ...]:
        return partitions_from(self.plan.steps[self.step].leaderless)


class CoreRound(NamedTuple):
    """The fields of a `Round`, read from the core."""

    plan: CorePlan
    step: int
    number: int

    @property
    def _core(self) -> "_core.PlanRound":
        return self.plan.rounds[self.step][self.number]

    @property
    def group(self) -> GroupSpec:
        starts_over = self.plan.before(self.step).starts_over
        group = self.plan.after(self.step, self.number)
        return claiming(group, self.protocol, starts_over=starts_over)

    @property
    def generation_id(self) -> int:
        return self._core.generation_id

    @property
    def protocol(self) -> RebalanceProtocol:
        return RebalanceProtocol.EAGER if self._core.is_eager else RebalanceProtocol.COOPERATIVE

    @property
    def held(self) -> Assignment:
        return self.plan.assignment(self.step, self._core.held)

    @property
    def assignment(self) -> Assignment:
        return self.plan.assignment(self.step, self._core.assignment)

    @property
    def delta(self) -> Delta:
        delta = self._core.delta
        parts = (delta.kept, delta.revoked, delta.gained, delta.transferring)
        return Delta(*map(partial(self.plan.assignment, self.step), parts))

    @property
    def withheld(self) -> Assignment:
        withheld = self._core.withheld
        return Assignment.of({}) if withheld is None else self.plan.assignment(self.step, withheld)

    @property
    def unavailable(self) -> tuple[TopicPartition, ...]:
        return partitions_from(self._core.unavailable)
