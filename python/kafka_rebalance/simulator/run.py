# SPDX-License-Identifier: Apache-2.0
"""The result of a run: its rebalances, and the intervals in which members held partitions.

A classic group's rebalance begins when the group becomes PreparingRebalance, and ends when it
becomes Stable, Empty or Dead; for a consumer group's, see `watch_epochs`. Each round of a rebalance
creates a generation. `measure` computes the figures of a run.

The start-up of a group is its first ten seconds, in which its first members start. A member that
starts later joins a running group, so its start is one of the scenario's events.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from kafka_rebalance.coordinator.broker_assigned.group import INITIAL_EPOCH
from kafka_rebalance.coordinator.machine.events import Transition
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.html_tables import small_table
from kafka_rebalance.wire.messages import GroupState

from .intervals import Gap, Hold
from .scenario import Happening, Kind, Scenario

if TYPE_CHECKING:
    from kafka_rebalance.coordinator.consumer_group.group import ConsumerGroup


@dataclass(slots=True)
class Rebalance:
    """One rebalance; if `is_cut_off`, the coordinator moved before the rebalance had ended.

    In a consumer group, `generation_id` is the group epoch, and `untargeted_ms` the time until a
    heartbeat computed the targets of that epoch.
    """

    number: int
    causes: list[str]
    from_ms: int
    generation_id: int = 0
    rounds: int = 0
    to_ms: int | None = None
    is_cut_off: bool = False
    untargeted_ms: int = 0

    @property
    def duration_ms(self) -> int | None:
        return None if self.to_ms is None else self.to_ms - self.from_ms


class Absence(NamedTuple):
    """An interval in which a process was down or stuck, or could not read its partitions."""

    member: str
    from_ms: int
    to_ms: int


class Run(Frozen):
    """A finished run. Times are in ms from the start of the scenario.

    `held` is the noun for the things that members hold: partition or task. `assumed` is a line of
    text with the assumed costs. `empty_handed` lists (member, time) for each empty assignment.
    `joined_ms` is when the last member of the start-up joined; 0 without the consumer protocol.
    `of_seeds` states why this run's seed was chosen if several were tried (`median_seed`); else "".
    """

    title: str
    until_ms: int
    held: str
    assumed: str
    members: tuple[str, ...]
    happenings: tuple[Happening, ...]
    holds: tuple[Hold, ...]
    gaps: tuple[Gap, ...]
    rebalances: tuple[Rebalance, ...]
    absences: tuple[Absence, ...]
    empty_handed: tuple[tuple[str, int], ...]
    crashed: Mapping[str, str]
    events: int
    joined_ms: int = 0
    rates: Mapping[str, float] = field(default_factory=dict)  # records per second, by partition
    of_seeds: str = ""

    @property
    def has_epochs(self) -> bool:
        """Returns whether any member has the consumer protocol and any joined in the start-up."""
        return self.joined_ms > 0

    @property
    def summary(self) -> str:
        """Returns a sentence about the rebalances, moves, stops, and the time without readers."""
        from .measure import in_words

        return in_words(self)

    def __str__(self) -> str:
        return f"{self.title} ({self.assumed}): {self.summary}"

    def _repr_html_(self) -> str:
        columns = ("from_ms", "to_ms", "generation_id", "rounds", "causes")
        title, row = f"{self.title} ({self.assumed})", attrgetter(*columns)
        return small_table(title, columns, self.rebalances, row, self.summary)


_START_UP_MS = 10_000


def start_up_until_ms(scenario: Scenario) -> int:
    """Returns when the start-up ends, in ms; it begins when the first member starts."""
    return min(one.start_ms for one in scenario.members) + _START_UP_MS


def joined_ms(scenario: Scenario, first_joins: Mapping[str, int]) -> int:
    """Returns when the last member of the start-up joined; 0 without the consumer protocol.

    `first_joins` maps each member to the time at which it first got an answer to a join.
    """
    if not scenario.has_consumer_protocol:
        return 0
    until = start_up_until_ms(scenario)
    early = {one.name for one in scenario.members if one.start_ms <= until}
    return max((at for name, at in first_joins.items() if name in early), default=0)


def happenings_with_late_starts(scenario: Scenario) -> tuple[Happening, ...]:
    """Returns the scenario's events, and starts of members after the start-up, by time."""
    until = start_up_until_ms(scenario)
    starts = (
        Happening(at_ms=plan.start_ms, kind=Kind.START, member=plan.name)
        for plan in scenario.members
        if plan.start_ms > until
    )
    return tuple(sorted((*scenario.happenings, *starts), key=lambda one: one.at_ms))


class Rebalances:
    """Collects the rebalances of a run in `seen`; causes show names of processes, not their ids."""

    def __init__(self) -> None:
        self.seen: list[Rebalance] = []
        self.joined_ms: dict[str, int] = {}
        self.names: dict[str, str] = {}
        # A consumer group's epochs, and since when (ms) its targets are older than its epoch.
        self._epoch = self._assignment_epoch = INITIAL_EPOCH
        self._untargeted_since: int | None = None

    def learn(self, member_id: str, name: str, now_ms: int) -> None:
        self.names[member_id] = name
        self.joined_ms.setdefault(name, now_ms)

    def watch(
        self, now_ms: int, transition: Transition, cause: str, gave_up_in: int | None
    ) -> None:
        """Records a change of the group's state; `cause` explains a rebalance that it begins.

        `gave_up_in` concerns the member whose request caused the change: the newest generation in
        which an assignment made this member revoke partitions; -1 if there is none, None if no
        member's request caused the change.

        In a cooperative group, a member whose partitions an assignment has revoked joins again
        (KIP-429). Such a join starts a new round of the last rebalance, not a new rebalance.
        """
        last = self.seen[-1] if self.seen else None
        running = last if last is not None and last.to_ms is None else None
        if transition.after is GroupState.PREPARING_REBALANCE:
            if running is None and last is not None and gave_up_in == last.generation_id:
                last.to_ms = None
            else:
                self._begin(running, now_ms, transition.generation_id, cause)
        elif running is not None and transition.after is GroupState.COMPLETING_REBALANCE:
            running.rounds += 1
            running.generation_id = transition.generation_id
        elif running is not None:
            running.to_ms = now_ms
            # DEAD means that the coordinator has moved; no log shows the end of this rebalance.
            running.is_cut_off = transition.after is GroupState.DEAD
            running.generation_id = transition.generation_id

    def watch_epochs(self, now_ms: int, group: "ConsumerGroup", cause: str) -> bool:
        """Records a change of a consumer group's epochs. Returns whether the group epoch has grown.

        A rebalance lasts from a new group epoch until all members have their targets. Each of its
        rounds is a new target, which only a heartbeat computes.
        """
        is_new = group.epoch > self._epoch
        running = self.seen[-1] if self.seen and self.seen[-1].to_ms is None else None
        if is_new:
            self._begin(running, now_ms, group.epoch, cause)
            running = self.seen[-1]
        self._epoch = group.epoch
        if running is None:
            return is_new
        if self._untargeted_since is not None:
            running.untargeted_ms += now_ms - self._untargeted_since
        self._untargeted_since = now_ms if group.epoch > group.assignment_epoch else None
        running.generation_id = group.epoch
        if group.assignment_epoch > self._assignment_epoch:
            running.rounds += 1
            self._assignment_epoch = group.assignment_epoch
        if group.state in (GroupState.STABLE, GroupState.EMPTY):
            running.to_ms, self._untargeted_since = now_ms, None
        return is_new

    def _begin(self, running: Rebalance | None, now_ms: int, generation_id: int, why: str) -> None:
        """Begins a rebalance, or adds a cause to the running one; `why` contains members' ids."""
        for member_id, name in self.names.items():
            why = why.replace(member_id, name)
        if running is None:
            running = Rebalance(len(self.seen) + 1, [], now_ms, generation_id)
            self.seen.append(running)
        if why not in running.causes:
            running.causes.append(why)
