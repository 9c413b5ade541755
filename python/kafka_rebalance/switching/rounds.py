# SPDX-License-Identifier: Apache-2.0
"""Plays a change of assignor without stopping the group: two rolling bounces, event by event.

Each member restarts twice: first with both assignors in its list (the new one first), then with the
new one alone. If both have one name in JoinGroup (range, librdkafka/range), one bounce is enough.
The events of a bounce, with the votes of the members, are in `changes/assignor.py`.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from kafka_rebalance.assignors.python_libraries import PYTHON_LIBRARIES
from kafka_rebalance.assignors.registry import Engine, protocol_name
from kafka_rebalance.assignors.selection import select_protocol
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.changes.assignor import AssignorNames, is_cooperative, restarts
from kafka_rebalance.plans.changes.made_up import MadeUp
from kafka_rebalance.plans.playing import play_led
from kafka_rebalance.plans.rounds import Round, lists_eager

MOST_MEMBERS = 100
"""The most members of a cooperative group that is played; a larger one gets a lower bound."""

MOST_IN_PYTHON = 20_000
"""The largest group, members times partitions, that a Python library's class plays in bounces."""


class Bounce(NamedTuple):
    """One rolling bounce: every member restarts with `assignors` as its list.

    `rebalances` is a lower bound unless `is_exact`. `moves` is how many partitions members gain in
    all these rebalances, under made-up ids; None if not exact. `takes_over` is the event, in words,
    after which the group uses another assignor; None if this bounce does not change the assignor,
    or if the bounce is not played.
    """

    assignors: AssignorNames
    restarts: int
    rebalances: int
    moves: int | None
    is_exact: bool = True
    takes_over: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "assignors": list(self.assignors)}


def two_bounces(group: GroupSpec, old: str, new: str, engine: Engine) -> tuple[Bounce, ...]:
    """Returns the bounces from members that list only `old` to members that list only `new`.

    In an eager group, the members at first list another assignor beside `old`.
    """
    return _bounces(group, (old,), ((new, old), (new,)), engine)


def bounce_of_one_name(group: GroupSpec, old: str, new: str, engine: Engine) -> Bounce:
    """Returns the only bounce between two assignors of one protocol name, or between equal ones.

    If `old` and `new` are equal, an eager group's members list this assignor alone afterwards.
    """
    (only,) = _bounces(group, (old,), ((new,),), engine)
    return only


def one_bounce(group: GroupSpec, both: AssignorNames, new: str, engine: Engine) -> Bounce:
    """Returns the second bounce alone, for members that already list both assignors."""
    (only,) = _bounces(group, both, ((new,),), engine)
    return only


def _bounces(
    group: GroupSpec, first: AssignorNames, lists: Sequence[AssignorNames], engine: Engine
) -> tuple[Bounce, ...]:
    eager = lists_eager(group, first[0])
    played = lists if eager else [first, *lists]
    too_many = len(group.members) > MOST_MEMBERS and any(map(is_cooperative, played))
    in_python = not PYTHON_LIBRARIES.keys().isdisjoint([*first, *lists[0]])
    if too_many or (in_python and is_large(group)):
        return tuple(at_least(group, names) for names in lists)
    ids = MadeUp(group.group_id)
    selected = select_protocol([tuple(map(protocol_name, first))])
    runs = next(name for name in first if protocol_name(name) == selected)
    if runs != group.assignor:
        group = group.edited(assignor=runs)
    bounces = []
    for old, new in pairwise([first, *lists]):
        bounce, group = _bounce(group, old, new, ids, engine)
        bounces.append(bounce)
    return tuple(bounces)


def _bounce(
    group: GroupSpec, old: AssignorNames, new: AssignorNames, ids: MadeUp, engine: Engine
) -> tuple[Bounce, GroupSpec]:
    restarted, takes_over = len(group.members), None
    rounds: list[Round] = []
    for member, event in ((one.member, e) for one in restarts(group, old, new) for e in one.events):
        edited = event.edit(group, ids)
        before, after = group.assignor or "", edited.group.assignor or ""
        if protocol_name(before) != protocol_name(after):
            how = "is back" if edited.renamed else "leaves"
            takes_over = f"{member.group_instance_id or member.member_id} {how}"
        group = edited.group
        if edited.rebalances:
            played = play_led(edited, engine)
            rounds += played.rounds
            group = played.group
    moves = sum(one.moves for one in rounds)
    return Bounce(new, restarted, len(rounds), moves, takes_over=takes_over), group


def at_least(group: GroupSpec, names: AssignorNames) -> Bounce:
    """Returns a bounce with the least number of its rebalances, without playing them."""
    dynamic = sum(member.group_instance_id is None for member in group.members)
    # A member that leaves starts a rebalance of the other members, if there are any.
    least = dynamic if len(group.members) == 1 else 2 * dynamic
    return Bounce(names, len(group.members), least, None, is_exact=False)


def is_large(group: GroupSpec) -> bool:
    """Returns whether the Python libraries' classes are too slow for many rounds of this group."""
    partitions = sum(topic.partitions for topic in group.topics)
    return len(group.members) * partitions > MOST_IN_PYTHON
