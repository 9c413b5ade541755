# SPDX-License-Identifier: Apache-2.0
"""The result of a plan in words: the first line of `plan`, and `summary` in JSON."""

from collections import Counter
from typing import TYPE_CHECKING

from kafka_rebalance.assignors.registry import BALANCED, SERVER_SIDE, protocol_name
from kafka_rebalance.group.model import shell_option
from kafka_rebalance.group.spec import counted, first_of

from .changes.assignor import SwitchAssignor
from .changes.members import RemoveMembers
from .figures import new_partitions
from .rounds import subscribed_partitions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_rebalance.group.model import TopicPartition

    from .changes.change import Change
    from .figures import Figures
    from .rebalance_plan import RebalancePlan


def summary(plan: "RebalancePlan") -> str:
    """Returns a few sentences: who gets nothing, what moves, and what has no reader.

    Names of members and topics are written as in the changes: escape them before printing.
    """
    figures, counts = plan.figures(), plan.after.counts()
    noun = "partition" if plan.group.subtopologies is None else "task"
    moved = _moved(plan, figures, sum(counts), noun)
    idle = _idle(plan, figures, counts, noun)
    unknown, silent = _unknown_racks(plan), _without_reader(plan, figures, sum(counts), noun)
    if is_not_known(plan) and not figures.leaderless:
        return unknown.rstrip()
    fullest = figures.balance_after.max
    if not idle and len(counts) > len(plan.group.members) and figures.balance_before.max == fullest:
        ask = " (`scale` says how many help)" * (noun == "partition")
        silent.append(f"the fullest member has {fullest} before and after{ask}")
    return f"{unknown}{_unsubscribed(plan)}{_taken(plan)}{idle}{'; '.join([moved, *silent])}."


def in_words(changes: "Iterable[Change]") -> str:
    """Returns the changes as the subject of a sentence about a plan."""
    return " and ".join(change.in_words() for change in changes) or "the next rebalance"


def is_not_known(plan: "RebalancePlan") -> bool:
    """Returns whether a plan of a lost rack shows nothing, because no member's rack is known."""
    lost = any(isinstance(one, RemoveMembers) and one.rack for one in plan.changes)
    members = plan.group.members
    return lost and not plan.rounds and not any(member.rack_id for member in members)


def without_reader(partitions: int, groups: int) -> str:
    """Returns a clause: how many partitions, in how many groups, have no reader for a time."""
    have = "has" if partitions == 1 else "have"
    whose = f"{groups:,} group{'s' * (groups != 1)}"
    what = f"{partitions:,} partition{'s' * (partitions != 1)} of {whose}"
    return f"{what} {have} no reader in a rebalance or more"


def _unknown_racks(plan: "RebalancePlan") -> str:
    """Returns a sentence on members that may also be in a lost rack; "" if there are none."""
    lost = [one.rack for one in plan.changes if isinstance(one, RemoveMembers) and one.rack]
    unknown = sum(not member.rack_id for member in plan.group.members) if lost else 0
    if not unknown:
        return ""
    members = counted(len(plan.group.members))
    if is_not_known(plan):
        who = f"none of the {members} has a" if unknown > 1 else "the member has no"
        return f"Not known: {who} client.rack. Name those in rack {lost[0]} with --remove-member. "
    have, them = ("has", "it") if unknown == 1 else ("have", "them")
    of = f"{unknown} of {members} {have} no client.rack"
    return f"{of}; whether the rack holds {them} is not known, and this plan keeps {them}. "


def _unsubscribed(plan: "RebalancePlan") -> str:
    """Returns a sentence on topics that lose their last subscriber; "" if there are none."""
    text = nobody_reads(plan.unsubscribed)
    return f"{text[0].upper()}{text[1:]}. " if text else ""


def nobody_reads(partitions: "Iterable[TopicPartition]") -> str:
    """Returns a clause on the partitions of topics without a subscriber; "" if there are none."""
    counts = Counter(tp.topic for tp in partitions)
    if not counts:
        return ""
    topics, number = first_of([*counts], 3), sum(counts.values())
    their = "its" if len(counts) == 1 else "their"
    which = f"{their} {counted(number, 'partition')}" if number > 1 else f"{their} partition"
    return f"no member is left that subscribes to {topics}: nobody reads {which}"


def _taken(plan: "RebalancePlan") -> str:
    """Returns a sentence on how even `balanced` makes the group within its budget; "" for other
    assignors.
    """
    if plan.assignor.partition("?")[0] != BALANCED or (curve := plan.curve) is None:
        return ""
    from kafka_rebalance.assignors.balance.balanced import objective_of

    most = objective_of(plan.assignor).most_taken(curve.partitions)
    return f"{curve.in_words(curve.points[-1] if most is None else curve.within(most))} "


def _idle(plan: "RebalancePlan", figures: "Figures", counts: list[int], noun: str) -> str:
    """Returns a sentence on the members that get nothing; "" if there are none."""
    idle = counts.count(0)
    if not idle or (figures.owns_nothing and not figures.rounds):
        return ""
    why, there = "", sum(1 for _ in subscribed_partitions(plan.final))
    if there < len(counts):
        why = f": there {'is' if there == 1 else 'are'} {counted(there, noun)}"
    elif figures.balance_possible.min:
        why = f", though each could get a {noun}"
    return f"{idle} of {counted(len(counts))} get{'s' * (idle == 1)} nothing{why}. "


def _moved(plan: "RebalancePlan", figures: "Figures", total: int, noun: str) -> str:
    changes, old = in_words(plan.changes), plan.assignor
    only = plan.changes[0] if len(plan.changes) == 1 else None
    new = only.assignor if isinstance(only, SwitchAssignor) else old
    libraries = {one.client_library for one in plan.group.members}
    bounces = "librdkafka" not in libraries and new not in SERVER_SIDE
    if protocol_name(old) != protocol_name(new) and bounces:
        whole = f"`compare {shell_option('--assignors', new)}` has the whole switch"
        changes = f"the first of two bounces to {new} ({whole})"
    what = changes[0].upper() + changes[1:]
    rebalances = counted(figures.rounds, "rebalance")
    if not figures.settled:
        return f"{what} never ends: {noun}s move for ever"
    if not figures.rounds:
        return f"{what} causes no rebalance"
    after = f" in {rebalances}" if plan.changes else ""
    if not figures.moves:
        return f"{what} {f'causes {rebalances} and ' * bool(after)}moves nothing"
    if figures.owns_nothing:
        return f"{what} hands out {counted(figures.moves, noun)}{after}"
    if fresh := new_partitions(plan):
        others = counted(max(0, figures.moves - fresh), "other move")
        return f"{what} hands out {counted(fresh, f'new {noun}')} and makes {others}{after}"
    if len(plan.steps) == 1 and figures.moves <= total:
        return f"{what} moves {figures.moves} of {counted(total, noun)}{after}"
    return f"{what} takes {rebalances} and {counted(figures.moves, 'move')}"


def _without_reader(plan: "RebalancePlan", figures: "Figures", total: int, noun: str) -> list[str]:
    """Returns clauses: how many partitions have no reader for a time, wait, or have no leader.

    `figures.unavailable` also counts partitions that the changes delete, so it can exceed `total`.
    """
    said, silent, then, once = [], figures.unavailable, "", "one rebalance"
    if waiting := figures.waiting:
        waits, their = ("waits", "its") if waiting == 1 else ("wait", "their")
        down = [one for one in plan.steps if one.waiting]
        until = f"while {their} member is down"
        if all(one.rounds and "comes back" not in one.cause for one in down):
            until = f"until {their} member's session ends (45 s by default)"
        said.append(f"{counted(waiting, noun)} {waits} {until}")
        are_these = waiting > 1 and {*plan.waiting} == {*plan.unavailable}
        then, once = "then these " if are_these else "then ", "one rebalance more"
    have = "has" if silent == 1 else "have"
    if silent and (times := figures.unavailable_rounds) > silent:
        where = f"one rebalance or more ({times} times in all)"
        where = "each of these rebalances" if times == silent * figures.rounds else where
        said.append(f"{then}{counted(silent, noun)} {have} no reader in {where}")
    elif silent >= total > 0:
        every = f"all {counted(silent, noun)}" if silent > 1 else f"the {noun}"
        said.append(f"{then}{every} {have} no reader meanwhile")
    elif silent:
        of_them = counted(silent, noun) if then else f"{silent} of them"
        said.append(f"{then}{of_them} {have} no reader for {once}, the others keep theirs")
    if figures.leaderless:
        said.append(f"{counted(figures.leaderless, noun)} without a leader")
    still = f"every {noun} has a reader all the time" if figures.rounds else "nothing moves"
    return said or [still]
