# SPDX-License-Identifier: Apache-2.0
"""Finds whether a group's leader would hang: now, after given changes, or after one more change.

Kafka's sticky assignors may never end for members that subscribe to different topics
(docs/never-ends.md). No rule is known for these groups, so each rebalance is played:

1. The next rebalance without changes, then the given changes.
2. Each simple change alone, after the given changes (or without them, if they hang). Of several
   members with equal topics and one rack, only one is copied or changes its topics.
3. For the first rebalance that hangs: each change that may avoid this (a way out), alone.

Cost     a few rebalances for each change; `most_plays` and `most_work` limit them. Without given
         changes, a group whose assignor always ends costs only a comparison of the members' lists
         of topics.
Differs  from a live group in the ids of new members; with other ids the rebalance may end.
"""

from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import asdict
from typing import Any, NamedTuple

import kafka_rebalance._core as _core
from kafka_rebalance.assignors.registry import BUILT_IN, KAFKAS, Engine
from kafka_rebalance.errors import AssignorThrows, GroupError, NeverEnds, shown
from kafka_rebalance.frozen import Frozen, Mutable
from kafka_rebalance.group.model import Member
from kafka_rebalance.group.spec import GroupSpec, require_group
from kafka_rebalance.plans.changes.assignor import SwitchAssignor
from kafka_rebalance.plans.changes.bounces import BounceMembers
from kafka_rebalance.plans.changes.change import Change
from kafka_rebalance.plans.changes.edits import AS_IT_IS, Edited, GroupEvent, restarted
from kafka_rebalance.plans.changes.made_up import PLANNED, MadeUp
from kafka_rebalance.plans.changes.members import AddMembers, RemoveMembers
from kafka_rebalance.plans.changes.other_assignor import restarted_with, run_by
from kafka_rebalance.plans.changes.topics import Resubscribe
from kafka_rebalance.plans.core_plan import CorePlan
from kafka_rebalance.plans.playing import at_change, play_led
from kafka_rebalance.plans.rebalance_plan import RebalancePlan, is_built_in, parse_changes

from .findings import Note

MOST_PLAYS = 200
MOST_WORK = 1_000_000
"""The largest sum of the partitions and subscriptions in all groups played: a few seconds of work.
"""

_MAY_NEVER_END = tuple(name for name in KAFKAS if BUILT_IN[name].remembers)
_ALWAYS_END = tuple(name for name in KAFKAS if name not in _MAY_NEVER_END)
_MOST_SIMPLE_WAYS = 3
_MOST_NAMED = 5


class WayOut(Frozen):
    """A change after which a hanging rebalance ends and, if `for_good`, so does any later one."""

    change: str
    for_good: bool

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Endless(Frozen):
    """The played rebalances that never end, and the changes that avoid them (ways out).

    `now`        whether the next rebalance never ends, without any change.
    `after`      the first event of the given changes whose rebalance never ends, or None.
    `following`  the simple changes whose rebalance never ends. `tried` simple changes were played;
                 `untried` more were left out, because the limit was reached.
    `ways_out`   changes after which the first hanging group's rebalance ends: the group of `now`,
                 `after` or `following[0]`.
    """

    assignor: str
    now: bool
    after: str | None
    following: tuple[str, ...]
    tried: int
    untried: int
    ways_out: tuple[WayOut, ...]

    @property
    def hangs(self) -> bool:
        """Returns whether any played rebalance never ends."""
        return self.now or self.after is not None or bool(self.following)

    def to_dict(self) -> dict[str, Any]:
        ways_out = [way.to_dict() for way in self.ways_out]
        return {**asdict(self), "following": list(self.following), "ways_out": ways_out}


STOP_ALL = "stop all members, then start them"
"""A way out that is not a change: afterwards, all members join at once and own nothing."""


def endless(
    group: GroupSpec,
    assignor: str | None = None,
    changes: Iterable[Change | str] = (),
    *,
    engine: Engine = "rust",
    most_plays: int = MOST_PLAYS,
    most_work: int = MOST_WORK,
) -> Endless | None:
    """Plays the rebalances in which the group's leader could hang, and returns those that do.

    If `assignor` is None, the group's own assignor is used. For another one, members send the data
    that it reads, as in `plan`. Returns None if no played rebalance hangs and no later one can,
    because another algorithm assigns the group after the changes.

    Errors   those of `plan`, except NeverEnds.
    """
    require_group(group)
    name = group.assignor if assignor is None else assignor
    parsed = parse_changes(changes)
    group = group if name is None else run_by(group, name)
    player = _Player(engine, most_plays, most_work, MadeUp(group.group_id))
    # 1.
    as_it_is = player.play_alone(group) if may_never_end(group) else _Ended(group)
    asked = player.play_asked(group, parsed)
    last = group if asked.hung else asked.group
    hung = as_it_is.hung or asked.hung
    if hung is None and not may_never_end(last):
        return None
    # 2.
    simple = list(simple_changes(last)) if may_never_end(last) else []
    following = []
    tried = 0
    for change in simple:
        if player.is_spent(last):
            break
        tried += 1
        ended = player.play_alone(last, change)
        if ended.hung is not None:
            following.append(str(change))
            hung = hung or ended.hung
    # 3.
    return Endless(
        assignor=name or "",
        now=as_it_is.hung is not None,
        after=asked.cause,
        following=tuple(following),
        tried=tried,
        untried=len(simple) - tried,
        ways_out=() if hung is None else tuple(_ways_out(hung, player)),
    )


def endless_plan(plan: RebalancePlan) -> Endless | None:
    """Returns the result of `endless` for a plan; None at once if no rebalance in it can hang."""
    if not may_never_end(plan.group) and not may_never_end(plan.steps[-1].before):
        return None
    return endless(plan.group, plan.assignor, plan.changes, engine=plan.engine)


def endless_note(found: Endless) -> Note:
    """Returns the note on the played rebalances, with a line for each sentence and each change."""
    return Note("hangs", "\n".join(map(shown, _sentences(found))), detail=found.to_dict())


def _sentences(found: Endless) -> Iterator[str]:
    if found.now:
        yield f"NEVER ENDS: {found.assignor} computes for ever at this group's next rebalance."
    if found.after is not None:
        yield f"NEVER ENDS: {found.assignor} computes for ever at {found.after}."
    played = f"{found.tried} next changes that were played"
    if found.untried:
        played += f" ({found.untried} more were not played: the budget was spent)"
    if found.following:
        yield (
            f"The leader can hang: {found.assignor} never ends after {len(found.following)} of "
            f"{played}:"
        )
        yield from (f"  {change}" for change in found.following[:_MOST_NAMED])
        if (more := len(found.following) - _MOST_NAMED) > 0:
            yield f"  … and {more} more (--json has all)"
    elif found.tried:
        yield (
            "Members with different subscriptions can hang a leader under "
            f"{found.assignor}, but none of {played} does so here."
        )
    for for_good, title in ((True, "always ends"), (False, "ends this time")):
        if changes := [way.change for way in found.ways_out if way.for_good is for_good]:
            yield f"The assignor {title} (played) after: {'; '.join(changes)}."
    if found.now or found.after is not None:
        yield (
            "To change the assignor of a group that hangs, stop all members first: in a rolling "
            "bounce the old assignor still runs (docs/never-ends.md)."
        )


def may_never_end(group: GroupSpec) -> bool:
    """Returns whether the general algorithm of Kafka's sticky assignors assigns this group; all
    other algorithms always end.
    """
    # Kafka's test compares the lengths of lists, too: if only one member lists a topic twice, the
    # lists are unequal.
    lists = {(len(member.topics), frozenset(member.topics)) for member in group.members}
    return group.assignor in _MAY_NEVER_END and len(lists) > 1


class _Ended(NamedTuple):
    """A group after events. `hung` is the group whose rebalance never ends, and `cause` the event
    that starts it; both are None if all rebalances end.
    """

    group: GroupSpec
    hung: GroupSpec | None = None
    cause: str | None = None
    throws: bool = False


class _Player(Mutable):
    """Plays rebalances. Each one reduces `plays` by 1, and `work` by the group's size."""

    engine: Engine
    plays: int
    work: int
    ids: MadeUp

    def is_spent(self, group: GroupSpec) -> bool:
        """Returns whether too little of `plays` or `work` is left for a group of this size."""
        return self.plays < 1 or self.work < work(group)

    def play_asked(self, group: GroupSpec, changes: tuple[Change, ...]) -> _Ended:
        """Plays the changes with a plan's made-up ids, until a rebalance hangs or throws."""
        ended = _Ended(group)
        if changes and self.engine == "rust" and is_built_in(group, changes):
            where = (group.interned(), group.generation_id, group.assignor or "", changes)
            try:
                core = _core.plan(*where, PLANNED)
            except AssignorThrows:
                core = None
            if core is not None:
                plan = CorePlan(core, group, changes, self.ids)
                ended = _Ended(plan.after(len(plan.steps) - 1))
                for before in (plan.before(i).group for i, step in enumerate(plan.rounds) if step):
                    self.spend(work(before))
                return ended
        for i, change in enumerate(changes):
            try:
                events = change.renamed(self.ids).events(ended.group)
            except GroupError as error:
                raise at_change(error, i) from None
            ended = self.play(ended.group, events, self.ids)
            if ended.hung or ended.throws:
                break
        return ended

    def play_alone(self, group: GroupSpec, change: Change | None = None) -> _Ended:
        """Plays a change with one event, or (None) the next rebalance, in the given group.

        If the rebalance ends, the `group` of the result may be the group before it.
        """
        changes = () if change is None else (change,)
        if self.engine == "rust" and is_built_in(group, changes):
            where = (group.interned(), group.generation_id, group.assignor or "")
            played = _core.play_alone(*where, changes, self.ids.count)
            if played is not None:
                rebalances, size = played
                if rebalances:
                    self.spend(size)
                return _Ended(group)
        events = [AS_IT_IS] if change is None else change.events(group)
        return self.play(group, events, deepcopy(self.ids))

    def spend(self, size: int) -> None:
        self.plays -= 1
        self.work -= size

    def play(
        self, group: GroupSpec, events: Iterable[GroupEvent], ids: MadeUp | None = None
    ) -> _Ended:
        ids = MadeUp(group.group_id) if ids is None else ids
        for event in events:
            edited = event.edit(group, ids)
            group = edited.group
            if not edited.rebalances:
                continue
            self.spend(work(group))
            try:
                group = play_led(edited, self.engine).group
            except NeverEnds:
                return _Ended(group, group, event.cause)
            except GroupError:
                return _Ended(group, throws=True)
        return _Ended(group)


def work(group: GroupSpec) -> int:
    partitions = sum(topic.partitions for topic in group.topics)
    return partitions + sum(len(member.topics) for member in group.members)


def simple_changes(group: GroupSpec) -> Iterator[Change]:
    kinds: dict[tuple[frozenset[str], str | None], Member] = {}
    for member in group.members:
        kinds[frozenset(member.topics), member.rack_id] = member
    for member in kinds.values():
        yield AddMembers(1, like=member.member_id)
    if len(group.members) > 1:
        for member in group.members:
            yield RemoveMembers(member=member.member_id)
    known = {topic.name for topic in group.topics}
    alike = list(kinds.values())
    for member, other in zip(alike, [*alike[1:], alike[0]], strict=True):
        topics = tuple(topic for topic in other.topics if topic in known)
        if topics and frozenset(topics) != frozenset(member.topics):
            yield Resubscribe(topics, member.member_id)


def _ways_out(hung: GroupSpec, player: _Player) -> Iterator[WayOut]:
    def ends(events: Iterable[GroupEvent]) -> bool:
        if player.is_spent(hung):
            return False
        ended = player.play(hung, events)
        return ended.hung is None and not ended.throws

    subscribed = {topic for member in hung.members for topic in member.topics}
    topics = tuple(topic.name for topic in hung.topics if topic.name in subscribed)
    # Only the event of a switch that selects the new assignor is played: if earlier rebalances
    # hang, that only delays the switch.
    ends_always = [_taken_over(SwitchAssignor(name)) for name in _ALWAYS_END]
    ends_always += Resubscribe(topics).events(hung)
    for event in ends_always:
        if ends([event]):
            yield WayOut(event.cause, for_good=True)
    if ends([GroupEvent(STOP_ALL, _start_again)]):
        yield WayOut(STOP_ALL, for_good=False)
    found = 0
    restarts = (BounceMembers(member.member_id) for member in hung.members)
    simple: tuple[Change, ...] = (*simple_changes(hung), *restarts)
    for change in simple:
        if found < _MOST_SIMPLE_WAYS and ends(change.events(hung)):
            found += 1
            yield WayOut(str(change), for_good=False)


def _taken_over(switch: SwitchAssignor) -> GroupEvent:
    def edit(group: GroupSpec, _: MadeUp) -> Edited:
        return Edited(restarted_with(group, switch.assignor), starts_over=True)

    return GroupEvent(str(switch), edit)


def _start_again(group: GroupSpec, ids: MadeUp) -> Edited:
    members: list[Member] = []
    for member in group.members:
        members.append(restarted(member, ids, members))
    return Edited(group.edited(members=tuple(members)))
