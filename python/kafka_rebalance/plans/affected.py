# SPDX-License-Identifier: Apache-2.0
"""Applies one list of changes to many groups; each group gets only the changes that affect it.

A change is left out for a group that does not have the topic, member, client or rack of the change,
or that already has the assignor or protocol to which the change switches (NotAffected). A group is
also not affected if only its topics or subscriptions change and no rebalance follows. Mirror:
`as_far_as_affected` in `src/bulk/batch.rs`.
"""

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from kafka_rebalance.errors import GroupError, NotAffected
from kafka_rebalance.group.spec import GroupSpec

from .changes.change import Change
from .changes.made_up import MadeUp
from .changes.topics import AddPartitions, RemoveTopics, Resubscribe

AnswerOrError = TypeVar("AnswerOrError")

_PLACE = re.compile(r"changes\[(\d+)\]\Z")
_IDLE = "no rebalance follows, because no member sees a change"


def as_far_as_affected(
    work: Callable[[tuple[Change, ...]], AnswerOrError],
    changes: Sequence[Change],
    group: GroupSpec,
    *,
    alone: bool = False,
) -> tuple[AnswerOrError | None, list[str]]:
    """Returns the result of `work` for the changes that affect a group, and the left-out changes.

    A left-out change is a line of text with the reason. The result is None if there are changes but
    none affects the group. If the user asked for this group `alone`, only a switch to the assignor
    or protocol that it already has is left out. Errors: those of `work`; the path of an error
    contains the index of the change in `changes`.
    """
    left = list(range(len(changes)))
    left_out: list[str] = []
    while left or not changes:
        try:
            answer = work(tuple(changes[i] for i in left))
            if alone or not is_idle(group, [changes[i] for i in left]):
                return answer, left_out
            return None, [*left_out, *(f"{changes[i]}: {_IDLE}" for i in left)]
        except GroupError as error:
            place = _PLACE.match(error.path)
            if place is None:
                raise
            change = left[int(place[1])]
            is_left_out = is_already(error.problem) if alone else True
            if not (isinstance(error, NotAffected) and is_left_out):
                raise type(error)(f"changes[{change}]", error.problem) from None
            left.remove(change)
            left_out.append(f"{changes[change]}: {error.problem}")
    return None, left_out


def is_already(problem: str) -> bool:
    """Returns whether the error means that the group already has the new assignor or protocol."""
    return problem.endswith(" already")


def is_idle(group: GroupSpec, changes: Sequence[Change]) -> bool:
    """Returns whether there are changes, all edit topics or subscriptions, and none starts a
    rebalance.
    """
    ids = MadeUp(group.group_id)
    for change in changes:
        if not isinstance(change, AddPartitions | RemoveTopics | Resubscribe):
            return False
        for event in change.events(group):
            edited = event.edit(group, ids)
            if edited.rebalances:
                return False
            group = edited.group
    return bool(changes)
