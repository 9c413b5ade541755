# SPDX-License-Identifier: Apache-2.0
"""Plays the changes of a plan event by event, in the steps of `rebalance_plan.py`.

Plans for the engine "reference" are played here, and for "rust" those that the core cannot play;
assignors run in the chosen engine.
"""

from dataclasses import replace

from kafka_rebalance.assignors.registry import SERVER_SIDE, Engine, assigns_tasks, shares_partitions
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec

from .broker_rounds import play_by_broker, play_shared
from .changes.bounces import BounceMembers
from .changes.change import Change
from .changes.edits import AS_IT_IS, Edited, GroupEvent
from .changes.made_up import MadeUp
from .changes.members import AddMembers, RemoveMembers
from .changes.protocol import SwitchProtocol
from .group_kinds import NOT_PLAYED
from .possible.optimum import Possible, best_possible
from .rounds import Played, Step, play


def play_changes(
    group: GroupSpec,
    changes: tuple[Change, ...],
    engine: Engine,
    ids: MadeUp,
    possible: Possible | None = None,
) -> tuple[tuple[Step, ...], Possible]:
    """Plays the changes; returns the steps, and the best result (`possible`, if it is given)."""
    origins = {member.member_id: member.member_id for member in group.members}
    state = group
    steps: list[Step] = []
    most = len(group.members)
    for i, change in enumerate(changes):
        if not is_played(group, change):
            raise GroupError(f"changes[{i}]", NOT_PLAYED)
    # 1.
    if not changes:
        steps.append(_step_of(AS_IT_IS, state, ids, origins, engine, most))
    for i, change in enumerate(changes):
        try:
            events = change.renamed(ids).events(state)
            for event in events:
                steps.append(_step_of(event, state, ids, origins, engine, most))
                state, origins = steps[-1].after, steps[-1].origins
                most = max(most, len(state.members))
                if isinstance(change, SwitchProtocol):
                    state = _as_sent(state, steps[-1])
        except GroupError as error:
            raise at_change(error, i) from None
    # 3.
    if possible is None and shares_partitions(group.assignor):
        # No bound is known for share groups and tasks: the plan's end counts as the best result.
        after = Assignment.owned(steps[-1].after)
        possible = Possible(after.balance, None, (), after, {}, {})
    if possible is None:
        possible = best_possible(as_it_began(group, steps[-1]), engine=engine)
    return tuple(steps), possible


def is_played(group: GroupSpec, change: Change) -> bool:
    """Returns whether a plan can play the change; in a streams group, it plays only members that
    join, leave (but not with their rack) or restart.

    A switch of the protocol counts as played: it raises its own error for a streams group.
    """
    if not assigns_tasks(group.assignor) or isinstance(change, SwitchProtocol):
        return True
    of_rack = isinstance(change, RemoveMembers) and change.rack is not None
    return not of_rack and isinstance(change, AddMembers | RemoveMembers | BounceMembers)


def _as_sent(group: GroupSpec, step: Step) -> GroupSpec:
    """Returns the group with owned partitions in its leader's order; unchanged without a leader."""
    if not step.rounds or step.rounds[-1].kind == "broker":
        return group
    return group.owning(step.rounds[-1].assignment, generation_id=group.generation_id)


def _step_of(
    event: GroupEvent,
    group: GroupSpec,
    ids: MadeUp,
    origins: dict[str, str],
    engine: Engine,
    most: int,
) -> Step:
    edited = event.edit(group, ids)
    origins = origins | {new: origins[old] for new, old in edited.renamed.items() if old in origins}
    # 2.
    played = Played((), edited.group, settled=True)
    if edited.rebalances:
        assignor = edited.group.assignor or ""
        if shares_partitions(assignor) and not assigns_tasks(assignor):
            played = play_shared(group, edited.group, engine=engine, held=edited.held, most=most)
        elif assignor in SERVER_SIDE:
            played = play_by_broker(
                edited.group, eager=edited.eager, engine=engine, held=edited.held, most=most
            )
        else:
            played = play_led(edited, engine)
    return Step(
        event.cause,
        edited.group,
        played.group,
        played.rounds,
        played.settled,
        origins,
        edited.waiting,
        edited.leaderless,
    )


def play_led(edited: Edited, engine: Engine) -> Played:
    """Plays the rounds that follow an event in a group whose leader assigns."""
    group, starts_over = edited.group, edited.starts_over
    where = group, group.assignor or ""
    return play(*where, starts_over=starts_over, forgets=edited.forgets, engine=engine)


def as_it_began(group: GroupSpec, last: Step) -> GroupSpec:
    began = {member.member_id: member for member in group.members}
    members = []
    for member in last.after.members:
        then = began.get(last.origins.get(member.member_id, ""))
        members.append(
            replace(
                member,
                owned_partitions=() if then is None else then.owned_partitions,
                owned_topics=() if then is None else then.owned_topics,
                generation_id=None if then is None else then.generation_id,
                user_data_generation_id=None if then is None else then.user_data_generation_id,
            )
        )
    return last.after.edited(members=tuple(members))


def at_change(error: GroupError, i: int) -> GroupError:
    """Returns the error, with the change's index in its path if it is an error of a change."""
    if error.path != "change":
        return error
    return type(error)(f"changes[{i}]", error.problem)
