# SPDX-License-Identifier: Apache-2.0
"""Explains, round by round, why a partition got its owner."""

import re
from collections.abc import Sequence

from kafka_rebalance.errors import GroupError, did_you_mean, shown
from kafka_rebalance.group.field_paths import a_type
from kafka_rebalance.group.html_tables import small_table
from kafka_rebalance.group.model import TopicPartition, quoted
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec, counted, partition_or_task_counts

from .changes.edits import AS_IT_IS
from .rounds import Round, Step
from .samples import Samples

_TASK = re.compile(r"(.+)_([0-9]+)")
"""A task as TaskId.toString formats it: 0_3 is task 3 of subtopology 0."""


def partition_from_text(text: str) -> TopicPartition:
    """Parses `payments-3`, or `payments[3]` as in printed plans; a task is `0-3` or `0[3]`.

    Errors: GroupError at `partition`; TypeError if `text` is not a string.
    """
    if not isinstance(text, str):
        raise TypeError(f"partition: {a_type(text)} is not a text, as payments-3")
    if text.endswith("]"):
        topic, _, number = text[:-1].rpartition("[")
    else:
        topic, _, number = text.rpartition("-")
    if not topic or not number.isascii() or not number.isdigit():
        raise GroupError("partition", f"{quoted(text)} is not TOPIC-PARTITION, as payments-3")
    return TopicPartition(topic, int(number))


class Explanation(list[str]):
    """The lines of an explanation. `summary` is its result in one sentence."""

    summary = ""

    def __str__(self) -> str:
        return "\n".join(map(shown, (self.summary, "", *self)))

    def _repr_html_(self) -> str:
        return small_table("", ("step",), self, lambda line: (line,), self.summary)


def explain(
    group: GroupSpec,
    steps: Sequence[Step],
    partition: TopicPartition | str,
    samples: Samples | None = None,
) -> Explanation:
    """Returns the explanation of `RebalancePlan.explain` for the steps of a plan of this group."""
    from kafka_rebalance.explain.facts import holders  # imported here: few plans are explained

    tp = _partition(partition, group)
    groups = (group, *(step.before for step in steps))
    if not any(tp.partition < partition_or_task_counts(one).get(tp.topic, 0) for one in groups):
        topics = {topic for one in groups for topic in partition_or_task_counts(one)}
        near = "" if tp.topic in topics else did_you_mean(tp.topic, topics)
        problem = f"there is no {tp}, and no change makes it{near}"
        if group.subtopologies is not None:
            problem += "; a streams group has tasks, as 0_1 or 0[1]: give SUBTOPOLOGY_NUMBER"
        raise GroupError("partition", problem)
    text = Explanation()
    text.summary = _outcome(group, steps, tp)
    if samples is not None and samples.draws:
        before = _names(holders(Assignment.owned(group), tp))
        text.summary = samples.with_ends(tp, before, text.summary)
    for step in steps:
        if not step.rounds:
            stays = holders(Assignment.owned(step.after), tp)
            text.append(f"{step.cause}: {tp} stays with {_names(stays)}")
        for number, one in enumerate(step.rounds, 1):
            text.append(f"{step.cause}, round {number} ({one.kind}):")
            text += [f"  {line}" for line in _round(step, one, tp, follows=number > 1)]
    return text


def _outcome(group: GroupSpec, steps: Sequence[Step], tp: TopicPartition) -> str:
    """Returns a sentence: the partition's owner at the end of the plan, and its owner before."""
    from kafka_rebalance.explain.facts import holders

    before, after = (_names(holders(Assignment.owned(one), tp)) for one in (group, steps[-1].after))
    played = [one for step in steps for one in step.rounds]
    rounds, silent = len(played), sum(tp in one.unavailable for one in played)
    moves = f"{tp} stays with {after}" if before == after else f"{tp} goes from {before} to {after}"
    of_them = "meanwhile" if silent == rounds else f"in {silent} of them"
    if (silent, rounds) == (1, 2) and any(tp in one for one in played[0].withheld.values()):
        of_them = "between the two"
    without = f"; nobody reads it {of_them}" if silent else ""
    if silent == rounds == 1 and played[0].kind == "eager":
        read_by_nobody = counted(len(played[0].unavailable), "partition")
        without = f"; meanwhile nobody reads any of the {read_by_nobody} (eager)"
    is_next = rounds == 1 and steps[0].cause == AS_IT_IS.cause
    within = AS_IT_IS.cause if is_next else counted(rounds, "rebalance")
    readers = [one.member_id for one in steps[-1].after.members if tp.topic in one.topics]
    only = f", the only member that subscribes to {tp.topic}," if readers == [after] else ""
    return f"{moves}{only} in {within}{without}."


def _partition(given: TopicPartition | str, group: GroupSpec) -> TopicPartition:
    """Returns the partition; for a streams group, also parses a task as Streams prints it."""
    if isinstance(given, str):
        task = _TASK.fullmatch(given)
        if task is not None and group.subtopologies is not None:
            return TopicPartition(task[1], int(task[2]))
        return partition_from_text(given)
    if isinstance(given, tuple) and len(given) == 2:
        return TopicPartition(*given)
    problem = 'is not a partition; give a TopicPartition or "t-0"'
    raise TypeError(f"partition: {a_type(given)} {problem}")


def _round(step: Step, one: Round, tp: TopicPartition, *, follows: bool) -> list[str]:
    from kafka_rebalance.explain.facts import holders, lines
    from kafka_rebalance.explain.reasons import reasons

    group = one.group
    if tp.partition >= partition_or_task_counts(group).get(tp.topic, 0):
        return [f"there is no {tp} now"]
    if group.subtopologies is None and not any(
        tp.topic in member.topics for member in group.members
    ):
        return [f"nobody subscribes to {tp.topic}"]
    before, after = holders(one.held, tp), holders(one.assignment, tp)
    earlier_answer = one.assignment if follows else None
    steps = lines(reasons(group, step.before.assignor or "", tp, earlier_answer))
    return [*steps, f"{_names(before)} -> {_names(after)}"]


def _names(member_ids: list[str]) -> str:
    return " and ".join(member_ids) or "nobody"
