# SPDX-License-Identifier: Apache-2.0
"""Finds rebalances that kill a leader with librdkafka's cooperative-sticky, or that never settle.

No rule is known for the groups in which this happens (docs/behaviour/librdkafka.md). So the
rebalances of `never_ends.py` are played. If subscriptions differ, one more is played: a new member
joins with the topics of all members.

Cost     a plan for each change; `most_plays` and `most_work` limit them.
Differs  from a live group in the ids of new members; with other ids the rebalance may settle.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from kafka_rebalance.assignors.registry import Engine
from kafka_rebalance.errors import AssignorThrows, GroupError
from kafka_rebalance.group.spec import GroupSpec, first_of
from kafka_rebalance.plans.changes.change import Change
from kafka_rebalance.plans.rebalance_plan import RebalancePlan, parse_changes, plan

from .findings import Note
from .never_ends import MOST_PLAYS, MOST_WORK, simple_changes, work

DIALECT = "librdkafka/cooperative-sticky"
NEWCOMER = "a new member with all topics"

End = Literal["dies", "never settles"]
When = Literal["next", "planned", "following"]


class Trap(NamedTuple):
    """A rebalance that kills the leader or never settles. `when`: "next" is the next rebalance,
    "planned" one that the given changes cause, "following" one that the simple change `change`
    causes after all given changes.
    """

    end: End
    when: When
    change: str | None = None


_MOST_NAMED = 5
_ENDS: dict[End, str] = {
    "dies": "the process of a leader with librdkafka dies (SIGSEGV or SIGABRT), and then that of "
    "the next one",
    "never settles": "a leader with librdkafka lets the group rebalance for ever",
}


def trap_notes(traps: Sequence[Trap]) -> Iterator[Note]:
    """Yields a note for each trap of the next rebalance or of the given changes. Traps after later
    changes share one note for each outcome (a key of `_ENDS`).
    """
    for end, when, change in traps:
        if when != "following":
            at = "At the next rebalance" if when == "next" else f"At {change}"
            yield _note(end, when, at, [] if change is None else [change])
    for end in _ENDS:
        if changes := [trap.change or "" for trap in traps if trap[:2] == (end, "following")]:
            named = first_of(changes, _MOST_NAMED, "; ")
            yield _note(end, "following", f"After {named}", changes)


def _note(end: End, when: When, at: str, changes: Sequence[str]) -> Note:
    text = f"WARNING: {at}, {_ENDS[end]} (docs/behaviour/librdkafka.md)."
    return Note(end, text, detail={"when": when, "changes": changes})


def librdkafka_traps(
    group: GroupSpec,
    assignor: str | None = None,
    changes: Iterable[Change | str] = (),
    *,
    engine: Engine = "rust",
    most_plays: int = MOST_PLAYS,
    most_work: int = MOST_WORK,
) -> tuple[Trap, ...]:
    """Returns the traps of a group that is planned with librdkafka's cooperative-sticky, or with
    cooperative-sticky while its last leader, or a member, uses librdkafka; none for other groups.
    """
    name = group.assignor if assignor is None else assignor
    libraries = {group.leader_library, *(member.client_library for member in group.members)}
    led = "librdkafka" in libraries and name == "cooperative-sticky"
    if not led and name != DIALECT:
        return ()
    parsed = parse_changes(changes)
    planned, found = _played(group, (), "next", engine)
    if parsed:
        planned, trap = _played(group, parsed, "planned", engine)
        found = found or trap
    if planned is None or found is not None:
        return () if found is None else (found,)
    last = planned.final
    left = min(most_plays, most_work // max(1, work(last)))
    following = []
    if last.assignor == DIALECT and left:
        for change in list(simple_changes(last))[:left]:
            following.append(_played(last, (change,), "following", engine)[1])
        if len({frozenset(member.topics) for member in last.members}) > 1:
            _, trap = _played(_with_newcomer(last), (), "following", engine)
            following.append(None if trap is None else trap._replace(change=NEWCOMER))
    return tuple(trap for trap in following if trap is not None)


def _with_newcomer(group: GroupSpec) -> GroupSpec:
    topics = tuple(dict.fromkeys(topic for member in group.members for topic in member.topics))
    model = group.members[-1].owning()
    new = replace(model, member_id=f"{model.member_id}-new", group_instance_id=None, topics=topics)
    return group.edited(members=(*group.members, new))


def _played(
    group: GroupSpec, changes: tuple[Change, ...], when: When, engine: Engine
) -> tuple[RebalancePlan | None, Trap | None]:
    change = ", ".join(map(str, changes)) or None
    try:
        planned = plan(group, DIALECT, changes, engine=engine)
    except AssignorThrows:
        return None, Trap("dies", when, change)
    except GroupError:  # the change fits only a group with another assignor
        return None, None
    return planned, None if planned.settled else Trap("never settles", when, change)
