# SPDX-License-Identifier: Apache-2.0
"""A plan: a group, changes to it, and every rebalance that the changes cause.

1. Each change consists of one or more events (`changes`).
2. After each event that starts a rebalance, the group plays rounds until it has settled
   (`rounds.py`).
3. The plan compares its last group with the best result possible from the beginning (`possible`).
   For share and streams groups no such result is known: the last group counts as the best.

`playing.py` does this in Python; with engine "rust", the core plays whole plans (`core_plan.py`).
Mirror: `src/plans/rebalance_plan.rs`.

>>> from kafka_rebalance import AddMembers, GroupSpec, Member, Topic, TopicPartition, plan
>>> owned = lambda *partitions: tuple(TopicPartition("t", p) for p in partitions)
>>> group = GroupSpec(
...     "g",
...     topics=(Topic("t", 4),),
...     members=(
...         Member("C1", ("t",), owned_partitions=owned(0, 1), generation_id=1),
...         Member("C2", ("t",), owned_partitions=owned(2, 3), generation_id=1),
...     ),
... )
>>> done = plan(group, "cooperative-sticky", [AddMembers(1)], engine="reference")
>>> len(done.rounds), done.moves, done.possible.least_moves, done.unavailable
(2, 1, 1, {TopicPartition(topic='t', partition=3): 1})
>>> print(done.rounds[0].revoked)
C1:
C2: t[3]
C3-1bc4c369-f628-4ff3-a63e-da0cd6590cd0:
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import kafka_rebalance._core as _core
from kafka_rebalance.assignors.assigning import assignor_of, from_columns, partitions_from
from kafka_rebalance.assignors.registry import (
    BUILT_IN,
    Engine,
    assigns_tasks,
    check_engine,
    protocol_name,
    protocol_of,
)
from kafka_rebalance.errors import AssignorThrows, GroupError, shown
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.field_paths import a_type
from kafka_rebalance.group.html_tables import clipped, small_table
from kafka_rebalance.group.model import TopicPartition, quoted
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec, counted

from .changes.assignor import SwitchAssignor
from .changes.change import Change
from .changes.edits import AS_IT_IS
from .changes.made_up import PLANNED, Basis, Draw, MadeUp, Newcomer
from .changes.other_assignor import restarted_with
from .changes.protocol import SwitchProtocol
from .changes.text import change_from_text
from .core_plan import CorePlan, core_step
from .explanation import Explanation, explain
from .figures import Figures, as_dict, count_rows, figure_rows, rack_share
from .playing import as_it_began, at_change, play_changes
from .possible.optimum import Possible, from_core
from .rounds import Round, Step, unsubscribed
from .samples import Samples, count_ends, counted_in_core, enough_draws
from .summary import is_not_known, summary

if TYPE_CHECKING:
    from .possible.curve import Curve


_OF_EVENTS = ("rounds", "moves", "unavailable", "unavailable_rounds", "waiting")


class RebalancePlan(Frozen):
    """Every rebalance from the given group to the group after all changes.

    `possible` is the best result that was possible from the beginning. `newcomers` are members that
    do not exist yet: their real ids will differ, and ids break ties (`samples.py`). If
    `places_guessed`, the racks of new partitions' replicas are guesses, too; if `topics_guessed`,
    so is the order of topics in new subscriptions (`changes/edits.py`). If
    `topic_ids_guessed`, so are new topics' ids; only the brokers' assignors read such ids.
    """

    group: GroupSpec
    assignor: str
    changes: tuple[Change, ...]
    steps: tuple[Step, ...]
    possible: Possible
    newcomers: tuple[Newcomer, ...]
    engine: Engine
    places_guessed: bool = False
    topics_guessed: bool = False
    topic_ids_guessed: bool = False
    _core: "_core.Plan | None" = field(default=None, repr=False, compare=False)

    @property
    def title(self) -> str:
        """Returns the group, the assignor and the changes, such as `g, range: add-members=1`."""
        changes = ", ".join(map(str, self.changes)) or AS_IT_IS.cause
        return f"{self.group.group_id}, {self.assignor}: {changes}"

    @property
    def summary(self) -> str:
        """Returns a few sentences: who gets nothing, what moves, and what has no reader."""
        return summary(self)

    def __hash__(self) -> int:
        return hash((self.group, self.assignor, self.changes))  # these determine the other fields

    def __getstate__(self) -> dict[str, Any]:
        """Returns the fields for a copy or a pickle, without `_core`: a copy computes in Python."""
        return vars(self) | {"_core": None}

    def __repr__(self) -> str:
        rounds, moves = counted(len(self.rounds), "rebalance"), counted(self.moves, "move")
        return f"<RebalancePlan {clipped(self.title)}: {rounds}, {moves}>"

    def __str__(self) -> str:
        """Returns the summary, the title and the table of figures, for `print`."""
        rows = [("", "before", "after", "best possible"), *self._rows()]
        names, *others = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = (
            "  ".join([row[0].ljust(names), *map(str.rjust, row[1:], others)]).rstrip()
            for row in rows
        )
        return "\n".join([shown(self.summary), "", clipped(self.title), *lines])

    def _repr_html_(self) -> str:
        columns = ("", "before", "after", "best possible")
        return small_table(self.title, columns, self._rows(), lambda row: row, self.summary)

    def _rows(self) -> list[tuple[str, ...]]:
        figures = self.figures()
        return [*figure_rows(self, figures), *count_rows(figures)]

    @property
    def curve(self) -> "Curve | None":
        """Returns how even the group could be at the end, by the number of partitions taken.

        None for share and streams groups, or if no member is left.
        """
        if self.possible.least_moves is None or not self.steps[-1].after.members:
            return None
        from .possible.curve import balance_curve

        return balance_curve(as_it_began(self.group, self.steps[-1]), engine=self.engine)

    @property
    def unsubscribed(self) -> tuple[TopicPartition, ...]:
        """Returns the partitions whose topics lose their last subscriber: nobody reads them."""
        return unsubscribed(self.group, self.steps[-1].before)

    @property
    def has_guesses(self) -> bool:
        """Returns whether the plan contains guesses; `sample` plays it with other guesses."""
        ids = bool(self.newcomers) or self.topic_ids_guessed
        return ids or self.places_guessed or self.topics_guessed

    @property
    def made_up(self) -> tuple[str, ...]:
        """Returns the made-up member ids; the real ids will be different."""
        return tuple(newcomer.member_id for newcomer in self.newcomers)

    @property
    def final(self) -> GroupSpec:
        """Returns the group after all changes; its members own what they then hold."""
        return self.steps[-1].after

    @property
    def before(self) -> Assignment:
        """Returns the partitions that the members own before the changes."""
        return Assignment.owned(self.group)

    @property
    def after(self) -> Assignment:
        """Returns the partitions that the members own at the end of the plan."""
        if self._core is None:
            return Assignment.owned(self.final)
        return from_columns(self._core.steps[-1].member_ids, self._core.after)

    @property
    def rounds(self) -> tuple[Round, ...]:
        """Returns the rounds of all steps; a round is one rebalance."""
        return tuple(one for step in self.steps for one in step.rounds)

    @property
    def settled(self) -> bool:
        """Returns whether every step ends with a group that needs no further rebalance."""
        return all(step.settled for step in self.steps)

    @property
    def moves(self) -> int:
        """Returns the number of partitions that members gain, added up over all rounds."""
        if self._core is None:
            return sum(one.moves for one in self.rounds)
        return self._core.moves

    @property
    def unavailable(self) -> dict[TopicPartition, int]:
        """Returns partition -> number of rounds in which it is unavailable (only if not 0)."""
        if self._core is None:
            return dict(Counter(tp for one in self.rounds for tp in one.unavailable))
        found = self._core.unavailable
        counts: Counter[TopicPartition] = Counter()
        # If a plan deletes a topic and creates it again, the core lists its partitions twice.
        rounds = memoryview(found.rounds).cast("I")
        for tp, times in zip(partitions_from(found.partitions), rounds, strict=True):
            counts[tp] += times
        return dict(counts)

    @property
    def waiting(self) -> tuple[TopicPartition, ...]:
        """Returns the partitions that wait while their member is down, each of them once."""
        return tuple(dict.fromkeys(tp for step in self.steps for tp in step.waiting))

    @property
    def leaderless(self) -> tuple[TopicPartition, ...]:
        """Returns the partitions that lose all their replicas, each of them once."""
        return tuple(dict.fromkeys(tp for step in self.steps for tp in step.leaderless))

    @property
    def knows_generation(self) -> bool:
        """Returns whether the group's generation is known; else rounds are numbered +1, +2, …"""
        members = self.group.members
        return any(
            one is not None
            for one in (self.group.generation_id, *(m.generation_id for m in members))
        )

    def figures(self) -> Figures:
        """Returns the plan's figures: its rounds, moves, unavailable partitions and balances."""
        unavailable = self.unavailable
        before, after = self.before, self.after
        return Figures(
            rounds=len(self.rounds),
            moves=self.moves,
            least_moves=self.possible.least_moves,
            unavailable=len(unavailable),
            unavailable_rounds=sum(unavailable.values()),
            waiting=len(self.waiting),
            leaderless=len(self.leaderless),
            balance_before=before.balance,
            balance_after=after.balance,
            balance_possible=self.possible.balance,
            rack_share_before=rack_share(self.group, before),
            rack_share_after=rack_share(self.final, after)
            if self._core is None
            else self._core.rack_share_after,
            settled=self.settled,
            depends_on_ids=bool(self.newcomers) or self.topic_ids_guessed,
            owns_nothing=not before.partitions,
        )

    def sample(self, draws: int | None = None) -> Samples:
        """Plays the plan again `draws` times, each time (a draw) with other made-up ids.

        None means 8 draws, or up to 32 if the plan guesses more than UUIDs. For a given group, draw
        i of n always has the same ids. Errors: TypeError; GroupError at `draws` below 1.
        """
        draws = enough_draws(self) if draws is None else draws
        if not isinstance(draws, int) or isinstance(draws, bool):
            raise TypeError(f"draws: {draws!r} is not an int")
        if draws < 1:
            raise GroupError("draws", f"{draws} is not a number of draws from 1 on")
        chosen = [Draw(number, draws, self.newcomers) for number in range(1, draws + 1)]
        if self._core is not None:
            where = (self._core, self.group.interned(), self.group.generation_id, self.assignor)
            try:
                return counted_in_core(self, _core.sample(*where, self.changes, chosen))
            except AssignorThrows:  # Python plays all draws below, and records the errors
                pass
        played = (self.group, self.changes, self.engine)
        return count_ends(self, (partial(replay, *played, one, self.possible) for one in chosen))

    def explain(
        self, partition: TopicPartition | str, samples: Samples | None = None
    ) -> Explanation:
        """Returns lines that explain, round by round, why a partition such as `t-3` got its owner.

        Each round has a heading, the assignor's steps, and the owners before and after it. With
        `samples`, the summary reports whether the last owner depends on guesses.

        Errors   GroupError at `partition` if no group of the plan has this partition.
        """
        return explain(self.group, self.steps, partition, samples)

    def to_dict(self) -> dict[str, Any]:
        """Returns the plan as a dict for JSON: the figures, then all steps and rounds.

        `_OF_EVENTS` are None if a rack is lost, no member's rack is known, and there are no rounds.
        """
        return as_dict(self) | (dict.fromkeys(_OF_EVENTS) if is_not_known(self) else {})


def plan(
    group: GroupSpec,
    assignor: str | None = None,
    changes: Iterable[Change | str] = (),
    *,
    engine: Engine = "rust",
) -> RebalancePlan:
    """Plays changes one after another, each until the group has settled.

    If `assignor` is None, the plan uses the group's own assignor. Any other assignor is planned as
    if the group already used it and its members sent the data for it (`other_assignor.py`);
    `SwitchAssignor` plans the change of assignor itself. Changes may be strings such as
    `add-members=2`. Without changes, the next rebalance of the group is planned.

    Errors   GroupError at `changes[i]` for a change that does not fit; those of `assign`.
    """
    name = assignor_of(group, assignor)
    protocol_of(name)  # raises if the assignor is not known
    if group.subtopologies is not None and not assigns_tasks(name):
        raise GroupError("assignor", f"{quoted(name)} assigns no tasks, as a streams group needs")
    parsed = parse_changes(changes)
    return replay(restarted_with(group, name), parsed, engine, PLANNED)


def parse_changes(changes: Iterable[Change | str]) -> tuple[Change, ...]:
    """Parses those changes that are strings. Errors: GroupError at `changes[i]`; TypeError."""
    if isinstance(changes, str):
        raise TypeError(f"changes: {quoted(changes)} is one text; give a list, [{quoted(changes)}]")
    if not isinstance(changes, Iterable):
        raise TypeError(f"changes: {a_type(changes)} is not a list of changes")
    return tuple(_change(change, i) for i, change in enumerate(changes))


def replay(
    group: GroupSpec,
    changes: tuple[Change, ...],
    engine: Engine,
    draw: Draw,
    possible: Possible | None = None,
) -> RebalancePlan:
    """Plays changes with the made-up ids of `draw`; `possible` is the best result, if known."""
    if check_engine(engine) == "rust" and is_built_in(group, changes):
        where = (group.generation_id, group.assignor or "", changes)
        core = _core.plan(group.interned(), *where, draw)
        if core is not None:
            return _of_core(core, group, changes, draw, possible)
    return played(group, changes, engine, MadeUp(group.group_id, draw), possible)


def played(
    group: GroupSpec,
    changes: tuple[Change, ...],
    engine: Engine,
    ids: MadeUp,
    possible: Possible | None = None,
) -> RebalancePlan:
    """Plays changes round by round in Python; `ids` makes up the ids of newcomers."""
    steps, best = play_changes(group, changes, engine, ids, possible)
    return RebalancePlan(
        group,
        group.assignor or "",
        changes,
        steps,
        best,
        tuple(ids.made),
        engine,
        ids.places_guessed,
        ids.topics_guessed,
        ids.topic_ids_guessed
        and any(one.kind == "broker" for step in steps for one in step.rounds),
    )


def is_built_in(group: GroupSpec, changes: tuple[Change, ...]) -> bool:
    """Returns whether the core can play the plan; it lacks leaders, some assignors and changes."""
    if any(isinstance(change, SwitchProtocol) for change in changes):
        return False
    later = [change.assignor for change in changes if isinstance(change, SwitchAssignor)]
    names = [group.assignor or "", *later]
    if group.leader not in (None, group.members[0].member_id) and any(
        protocol_name(old) == protocol_name(new) for old, new in pairwise(names)
    ):
        return False  # the answer depends on who leads, which the core cannot know
    return all(name.partition("?")[0] in BUILT_IN for name in names)


def _of_core(
    core: "_core.Plan",
    group: GroupSpec,
    changes: tuple[Change, ...],
    draw: Draw,
    possible: Possible | None,
) -> RebalancePlan:
    played = CorePlan(core, group, changes, MadeUp(group.group_id, draw))
    if possible is None:
        assert core.possible is not None
        possible = from_core(core.possible, played.member_ids[-1])
    return RebalancePlan(
        group,
        group.assignor or "",
        changes,
        tuple(core_step(played, step) for step in range(len(played.steps))),
        possible,
        tuple(
            Newcomer(one.member_id, one.name, Basis(one.basis), one.is_static)
            for one in core.newcomers
        ),
        "rust",
        core.places_guessed,
        _core=core,
    )


def _change(change: Change | str, i: int) -> Change:
    if isinstance(change, Change):
        return change
    if not isinstance(change, str):
        raise TypeError(f"changes[{i}]: {change!r} is not a change; give one, as AddMembers(2)")
    try:
        return change_from_text(change)
    except GroupError as error:
        raise at_change(error, i) from None
