# SPDX-License-Identifier: Apache-2.0
"""Prints the result of `endless`: whether a group's leader can hang, when, and the ways out."""

from collections.abc import Iterator

from kafka_rebalance.notes.never_ends import Endless
from kafka_rebalance.report.text.sentences import print_sentence

from .plan import print_wrapped

_MOST = 5


def print_endless(found: Endless | None) -> None:
    """Prints the result, or nothing if the group's assignor always ends."""
    if found is not None:
        for text in _sentences(found):
            print_wrapped(text.lstrip(), " " * (len(text) - len(text.lstrip())), "  ")
        print()


def print_endless_error(found: Endless) -> None:
    """Prints the result on standard error, below the error of a group that has no answer."""
    for text in _sentences(found):
        print_sentence(text)


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
        yield from (f"  {change}" for change in found.following[:_MOST])
        if (more := len(found.following) - _MOST) > 0:
            yield f"  … and {more} more (--json has all)"
    elif found.tried:
        yield (
            "Members with different subscriptions can hang a leader under "
            f"{found.assignor}, but none of {played} does so here."
        )
    for for_good, title in ((True, "always ends"), (False, "ends this time")):
        changes = [way.change for way in found.ways_out if way.for_good is for_good]
        if changes:
            yield f"The assignor {title} (played) after: {'; '.join(changes)}."
    if found.now or found.after is not None:
        yield (
            "To change the assignor of a group that hangs, stop all members first: in a rolling "
            "bounce the old assignor still runs (docs/never-ends.md)."
        )
