# SPDX-License-Identifier: Apache-2.0
"""Reports that a group can have more rebalances than a plan counts, and which partitions move."""

from collections.abc import Sequence

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.notes.extra_rebalances import ExtraRebalances, Further
from kafka_rebalance.report.text.names import counted

_MOST_NAMED = 6

_BECAUSE = {
    "polls": "if one ends between two polls of a kafka-python leader, it joins again, and the "
    "group rebalances once more; under sticky, partitions may move again.",
    "metadata": "each member of librdkafka joins again when its own metadata shows the change. If "
    "the group has rebalanced by then, it may rebalance once more.",
    "subscriptions": "all members subscribe at one moment here, as members of Java do by a pattern."
    " A member of librdkafka meets a topic when its own metadata shows it, and processes that name "
    "their topics change one after another: each time, the group rebalances, and partitions may "
    "end elsewhere, also if racks count and a new topic's replicas are in some.",
}
_MOVES_TOO = (
    " With racks, each of these can take partitions outside their owner's rack away: moves are a "
    "lower bound, too, and partitions may end at other members."
)


def extra_rebalances_note(
    extra: ExtraRebalances | None,
    further: Further | None = None,
    readers: Sequence[tuple[TopicPartition, str]] = (),
) -> str | None:
    """Returns the sentences for one group; None if the number of rebalances is exact.

    `further` is what was played, if it was. `readers` are its partitions, each with the short name
    of the member that has it at the end of the plan.
    """
    if extra is None:
        return None
    text = f"The number of rebalances is a lower bound: {_BECAUSE[extra.cause]}"
    if extra.cause == "subscriptions":
        return text + (_apart(further, readers) if further and further.draws else "")
    if extra.cause == "polls" or not extra.may_move:
        return text
    return text + _MOVES_TOO + (_played(further, readers) if further and further.rejoins else "")


def _played(further: Further, readers: Sequence[tuple[TopicPartition, str]]) -> str:
    low, high = further.moves
    after = f" and after {counted(further.draws, 'draw')}" if further.draws else ""
    played = f" Played up to {counted(further.rejoins, 'time')} after this plan{after}, they "
    if not high:
        return f"{played}move nothing."
    moves = f"{low} to {high} times" if low < high else counted(high, "time")
    return f"{played}move partitions {moves} more; {_elsewhere(readers)}."


def _apart(further: Further, readers: Sequence[tuple[TopicPartition, str]]) -> str:
    low, high = further.moves
    moves = f"{low:+} to {high:+}" if low < high else f"{high:+}"
    ends = _elsewhere(readers) if readers else "every partition ends at the same member"
    return (
        f" Played in {counted(further.draws, 'random order')}: up to "
        f"{counted(further.rejoins, 'rebalance')} more, moves {moves}; {ends}."
    )


def _elsewhere(readers: Sequence[tuple[TopicPartition, str]]) -> str:
    named = ", ".join(f"{tp} (here {who})" for tp, who in readers[:_MOST_NAMED])
    if (more := len(readers) - _MOST_NAMED) > 0:
        named += f", and {more} more (--json has all)"
    return f"these may end elsewhere: {named}"


def extra_in_groups_note(extra: Sequence[ExtraRebalances | None]) -> str | None:
    """Returns the sentences below a table of groups, whose marks they explain."""
    there = [one for one in extra if one is not None]
    if not there:
        return None
    moving = sum(one.may_move for one in there)
    too = f" In {moving} of them, partitions may move again." if moving else ""
    return (
        f"+: the rounds of {counted(len(there), 'group')} are lower bounds, because members may "
        f"join once more, or subscribe one after another (docs/plans.md).{too}"
    )
