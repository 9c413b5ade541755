"""One list of changes for many groups: what does not concern a group is left out for it.

A change that names a topic, member, client or rack which a group does not have does nothing to that
group (NotAffected); the others are played. Mirror: `plan_as_far_as_affected` in `src/batch.rs`.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from kafka_rebalance.changes import Change
from kafka_rebalance.errors import NotAffected

Answer = TypeVar("Answer")


def as_far_as_affected(
    work: Callable[[tuple[Change, ...]], Answer], changes: Sequence[Change]
) -> tuple[Answer | None, list[str]]:
    """What `work` makes of the changes that concern a group, and a line for each of the others.

    None where there were changes, and none of them concerns it.
    """
    left = list(changes)
    left_out: list[str] = []
    while left or not changes:
        try:
            return work(tuple(left)), left_out
        except NotAffected as error:
            place = int(error.path.removeprefix("changes[").removesuffix("]"))
            left_out.append(f"{left.pop(place)}: {error.problem}")
    return None, left_out
